"""The two index files as databases: opened, read as of one moment, written as a whole."""

import errno
import os
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager, nullcontext, suppress
from pathlib import Path
from urllib.parse import quote

from panda.errors import LockHeldError, TryAgainError
from panda.storage.files import make_directory, store_errors
from panda.storage.index_files import Identity, IndexFiles
from panda.storage.index_tables import Execute, create_tables
from panda.storage.layout import Layout
from panda.storage.links import check_links
from panda.storage.temporaries import held_temporary

_VERSION = 7
_BUSY_SECONDS = 30.0

_NAMES = ("main", "research")
State = tuple[int, int, int]
"""Number of the connection, SQLite's data_version, own writes: rows read in the same state are the same."""


class IndexLostError(TryAgainError):
    """The index files were deleted, replaced or damaged while they were used."""


class IndexDatabase:
    """
    turn_index.db with research_index.db attached as `research`.

    Args:
        layout: Where the store is.
        files: The files.
    """

    def __init__(self, layout: Layout, files: IndexFiles) -> None:
        self._layout = layout
        self._files = files
        self._is_private = not files.are_writable()
        self._connection: sqlite3.Connection | None = None
        self._connections = 0
        self._own_writes = 0
        self.identity: Identity = ()
        """Which files were opened last, or could not be used; empty for a private copy."""

    @property
    def is_private(self) -> bool:
        """Whether this process has a copy for itself, since the files of the store cannot be written."""
        return self._is_private

    def make_private(self) -> None:
        """From now on use a copy that nobody else sees."""
        self.close()
        self._is_private = True

    def close(self) -> None:
        """Close both; the next use opens them again. A private copy is lost."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    @contextmanager
    def snapshot(self) -> Iterator[tuple[Execute, State]]:
        """
        What runs SQL as of one moment, and the state of that moment.

        Raises:
            LockHeldError: SQLite's own lock was held for too long.
            IndexLostError: SQLite cannot go on with the files.
        """
        with self._opened() as connection:
            connection.execute("BEGIN")
            try:
                version = connection.execute("PRAGMA data_version").fetchone()[0]
                yield connection.execute, (self._connections, version, self._own_writes)
            finally:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")

    @contextmanager
    def transaction(self) -> Iterator[Execute]:
        """What runs SQL that is written as a whole or not at all; only under the writers' lock."""
        with self._opened() as connection:
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
                with self._opened() as connection:
                    _copy(connection, built)
            with closing(_connect(*built, journal="OFF")) as connection:
                for name in _NAMES:
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
        with self._translated(), nullcontext() if self._is_private else self._files.in_place():
            if self._connection is not None and self.identity != self._identity_in_place():
                self.close()
            if self._connection is None:
                self._connection = self._connected()
                self._connections += 1
            yield self._connection

    def _identity_in_place(self) -> Identity:
        return () if self._is_private else self._files.identity()

    def _connected(self) -> sqlite3.Connection:
        before = self.identity = self._identity_in_place()
        if self._is_private:
            return _private_copy(self._files.paths)
        connection = _connect(*self._files.paths)
        self.identity = self._files.identity()
        if None in self.identity or (None not in before and before != self.identity):
            connection.close()
            raise self.lost("they were replaced while they were opened")
        return connection

    @contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.DatabaseError as exc:
            self.close()
            extended = getattr(exc, "sqlite_errorcode", 0)
            code = extended & 0xFF
            if code == sqlite3.SQLITE_FULL:
                with store_errors(self._layout.indexes, "write in"):
                    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)) from exc
            if code == sqlite3.SQLITE_READONLY and extended != sqlite3.SQLITE_READONLY_DBMOVED:
                with store_errors(self._layout.indexes, "write in"):
                    raise OSError(errno.EROFS, os.strerror(errno.EROFS)) from exc
            if code == sqlite3.SQLITE_CANTOPEN:
                self.identity = ()  # nothing is known of them that would allow to remove them
            if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
                raise LockHeldError(
                    f"the index was locked for more than {_BUSY_SECONDS:g} s",
                    where=str(self._layout.turn_index),
                    fix="try again when the other program is done",
                ) from exc
            raise self.lost(str(exc)) from exc

    def lost(self, why: str) -> IndexLostError:
        """The error that the files cannot be used."""
        return IndexLostError(
            f"the index files cannot be used: {why}",
            where=str(self._layout.turn_index),
            fix="run the command again; if that does not help, `panda index rebuild --full`",
        )


def _connect(turns: Path | str, research: Path | str, *, journal: str = "DELETE") -> sqlite3.Connection:
    """
    A connection to both files, with tables in them.

    Raises:
        sqlite3.DatabaseError: They are no databases, or of another version.
    """
    for path in (turns, research):
        check_links(path)
    connection = sqlite3.connect(
        turns, timeout=_BUSY_SECONDS, isolation_level=None, check_same_thread=False, uri=turns == ""
    )
    try:
        connection.row_factory = sqlite3.Row
        connection.execute("ATTACH ? AS research", (os.fsencode(research),))
        for name in _NAMES:
            if journal != "DELETE":
                connection.execute(f"PRAGMA {name}.journal_mode = {journal}")
            connection.execute(f"PRAGMA {name}.synchronous = NORMAL")
            connection.execute(f"PRAGMA {name}.cache_spill = OFF")  # readers read on until the commit
        if _versions(connection) == (0, 0):
            connection.execute("BEGIN IMMEDIATE")
            if _versions(connection) == (0, 0):
                create_tables(connection.execute)
                for name in _NAMES:
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


def _copy(connection: sqlite3.Connection, copies: Sequence[Path]) -> None:
    for name, path in zip(_NAMES, copies, strict=True):
        with closing(sqlite3.connect(path)) as copy:
            copy.execute("PRAGMA journal_mode = OFF")
            connection.backup(copy, name=name)


def _private_copy(paths: Sequence[Path]) -> sqlite3.Connection:
    """A connection to temporary databases, with what the files hold; with nothing if they are damaged."""
    connection = _connect("", "", journal="MEMORY")
    try:
        for name, path in zip(_NAMES, paths, strict=True):
            check_links(path)
            uri = f"file:{quote(os.fsencode(path.absolute()))}?mode=ro"
            connection.execute(f"ATTACH ? AS old_{name}", (uri,))
        connection.execute("BEGIN")
        for name in _NAMES:
            if connection.execute(f"PRAGMA old_{name}.user_version").fetchone()[0] != _VERSION:
                raise sqlite3.DatabaseError("made by another version of panda")
            tables = connection.execute(f"SELECT name FROM old_{name}.sqlite_master WHERE type = 'table'")
            for table in [row["name"] for row in tables]:
                connection.execute(f"INSERT INTO {name}.{table} SELECT * FROM old_{name}.{table}")
        connection.execute("COMMIT")
    except sqlite3.DatabaseError:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
    return connection


def _settle(paths: Iterable[Path]) -> None:
    """Roll back what a killed writer left half done in files that are about to be replaced."""
    for path in paths:
        with (
            suppress(sqlite3.DatabaseError),
            closing(sqlite3.connect(path, timeout=_BUSY_SECONDS, isolation_level=None)) as old,
        ):
            old.execute("BEGIN IMMEDIATE")
            old.execute("ROLLBACK")
