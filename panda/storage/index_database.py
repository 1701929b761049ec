"""The two index files as databases: opened, read as of one moment, written as a whole."""

import os
import sqlite3
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, closing, contextmanager, nullcontext, suppress
from pathlib import Path
from typing import TypeVar

from panda.errors import LockHeldError, StoreError
from panda.storage.files import make_directory, store_errors
from panda.storage.index_files import Identity, IndexFiles
from panda.storage.index_tables import Execute, create_tables
from panda.storage.layout import Layout
from panda.storage.links import check_links
from panda.storage.temporaries import held_temporary

_VERSION = 4
_BUSY_SECONDS = 30.0

_T = TypeVar("_T")
State = tuple[Identity, int, int]
"""Files in place, SQLite's data_version, own writes: rows read in the same state are the same."""


class IndexDatabase:
    """
    turn_index.db with research_index.db attached as `research`.

    Args:
        layout: Where the store is; on a read-only root both are kept in memory.
        files: The files.
    """

    def __init__(self, layout: Layout, files: IndexFiles) -> None:
        self._layout = layout
        self._files = files
        self.in_memory = layout.read_only_mark.exists()
        """Whether there are no files."""
        self._connection: sqlite3.Connection | None = None
        self._identity: Identity = ()
        self._own_writes = 0

    def close(self) -> None:
        """Close both; the next use opens them again. What was in memory is lost."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def read(self, act: Callable[[Execute], _T], *, start_over: Callable[[], None]) -> _T:
        """
        Run something that only reads.

        Args:
            act: Gets what runs SQL.
            start_over: Called if SQLite cannot read the files, to remove them; then *act* runs once more.

        Raises:
            LockHeldError: SQLite's own lock was held for too long.
            StoreError: The files cannot be used or made.
        """
        try:
            with self._opened() as connection:
                return act(connection.execute)
        except sqlite3.DatabaseError as exc:
            self._raise_if_busy(exc)
            self.close()
            start_over()
        with self._translated(), self._opened() as connection:
            return act(connection.execute)

    @contextmanager
    def snapshot(self) -> Iterator[tuple[Execute, State]]:
        """
        What runs SQL as of one moment, and the state of that moment.

        Raises:
            LockHeldError: SQLite's own lock was held for too long.
            StoreError: The files cannot be used.
        """
        with self._translated(), self._opened() as connection:
            connection.execute("BEGIN")
            try:
                version = connection.execute("PRAGMA data_version").fetchone()[0]
                yield connection.execute, (self._identity, version, self._own_writes)
            finally:
                connection.execute("ROLLBACK")

    @contextmanager
    def transaction(self) -> Iterator[Execute]:
        """What runs SQL that is written as a whole or not at all; only under the writers' lock."""
        with self._translated(), self._opened() as connection:
            try:
                connection.execute("BEGIN IMMEDIATE")
                yield connection.execute
                connection.execute("COMMIT")
            finally:
                self._own_writes += 1
                if connection.in_transaction:
                    connection.execute("ROLLBACK")

    @contextmanager
    def new_files(self, *, copy: bool) -> Iterator[Execute]:
        """
        What runs SQL on new files that are put in place at the end; only under the writers' lock.

        Args:
            copy: Whether the new files begin as copies of the old ones, or else empty.
        """
        make_directory(self._layout.indexes)
        with ExitStack() as stack, self._translated():
            stack.enter_context(store_errors(self._layout.indexes, "write in"))
            built = [stack.enter_context(held_temporary(path)) for path in self._files.paths]
            if copy:
                for path, other in zip(self._files.paths, built, strict=True):
                    _copy(path, other)
            with closing(_connect(*built, journal="OFF")) as connection:
                for name in ("main", "research"):
                    connection.execute(f"PRAGMA {name}.synchronous = OFF")
                    connection.execute(f"PRAGMA {name}.cache_spill = ON")
                connection.execute("BEGIN")
                yield connection.execute
                connection.execute("COMMIT")
            self.close()
            self._files.swap(built, settle=_settle)

    @contextmanager
    def _opened(self) -> Iterator[sqlite3.Connection]:
        """The connection to the files that are in place, which stay there while the block runs."""
        with nullcontext() if self.in_memory else self._files.in_place():
            identity = self._files.identity()
            if self._connection is not None and not self.in_memory and identity != self._identity:
                self.close()
            if self._connection is None:
                if self.in_memory:
                    self._connection = _connect(":memory:", ":memory:")
                else:
                    self._connection = _connect(*self._files.paths)
                    self._identity = self._files.identity()
            yield self._connection

    @contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.DatabaseError as exc:
            self._raise_if_busy(exc)
            raise StoreError(
                f"the index cannot be used: {exc}",
                where=str(self._layout.turn_index),
                fix="run `panda index rebuild --full`",
            ) from exc

    def _raise_if_busy(self, exc: sqlite3.DatabaseError) -> None:
        if "locked" in str(exc) or "busy" in str(exc):
            self.close()
            raise LockHeldError(
                f"the index was locked for more than {_BUSY_SECONDS:g} s",
                where=str(self._layout.turn_index),
                fix="try again when the other program is done",
            ) from exc


def _connect(turns: Path | str, research: Path | str, *, journal: str = "DELETE") -> sqlite3.Connection:
    """
    A connection to both files, with tables in them.

    Raises:
        sqlite3.DatabaseError: They are no databases, or of another version.
    """
    for path in (turns, research):
        check_links(path)
    connection = sqlite3.connect(turns, timeout=_BUSY_SECONDS, isolation_level=None, check_same_thread=False)
    try:
        connection.row_factory = sqlite3.Row
        connection.execute("ATTACH ? AS research", (os.fsencode(research),))
        for name in ("main", "research"):
            connection.execute(f"PRAGMA {name}.journal_mode = {journal}")
            connection.execute(f"PRAGMA {name}.synchronous = NORMAL")
            connection.execute(f"PRAGMA {name}.cache_spill = OFF")  # readers read on until the commit
        if _versions(connection) == (0, 0):
            connection.execute("BEGIN IMMEDIATE")
            if _versions(connection) == (0, 0):
                create_tables(connection.execute)
                for name in ("main", "research"):
                    connection.execute(f"PRAGMA {name}.user_version = {_VERSION}")
            connection.execute("COMMIT")
        if _versions(connection) != (_VERSION, _VERSION):
            raise sqlite3.DatabaseError(f"made by another version of panda: {_versions(connection)}")
    except BaseException:
        connection.close()
        raise
    return connection


def _versions(connection: sqlite3.Connection) -> tuple[int, int]:
    return (
        connection.execute("PRAGMA main.user_version").fetchone()[0],
        connection.execute("PRAGMA research.user_version").fetchone()[0],
    )


def _copy(path: Path, copy: Path) -> None:
    with closing(sqlite3.connect(path, timeout=_BUSY_SECONDS)) as old, closing(sqlite3.connect(copy)) as new:
        new.execute("PRAGMA journal_mode = OFF")
        old.backup(new)


def _settle(paths: Iterable[Path]) -> None:
    """Roll back what a killed writer left half done in files that are about to be replaced."""
    for path in paths:
        with (
            suppress(sqlite3.DatabaseError),
            closing(sqlite3.connect(path, timeout=_BUSY_SECONDS, isolation_level=None)) as old,
        ):
            old.execute("BEGIN IMMEDIATE")
            old.execute("ROLLBACK")
