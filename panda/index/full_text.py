"""
The full-text index of a store: derived from its files, and never the only place where anything stands.

Nothing in `turn_index.db` depends on the order or the time in which it was written.
"""

import errno
import os
import sqlite3
import threading
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext, suppress
from pathlib import Path
from typing import Literal, TypeVar

from panda.errors import LockHeldError, StoreError, TryAgainError
from panda.index.tables import (
    SCHEMA,
    TABLES,
    AsOf,
    Difference,
    IndexView,
    Statistics,
    SyncReport,
    UserTables,
)
from panda.index.vectors import check_database, number_of, side_files, uri_of
from panda.store.files import check_links, held_lock, make_directory, remove_tree, store_errors
from panda.store.layout import Layout, users_of

_VERSION = 14
_BUSY_SECONDS = 30.0
_PATIENCE_SECONDS = 2.0  # how long a search waits to take changes in before it answers without them
_TRIES = 3  # how often files that vanish or turn out damaged are made again before that is an error
_SHARED_BYTES = 32_768
_NO_ROOM = {sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR_SHMSIZE, sqlite3.SQLITE_IOERR_SHMOPEN}
_UNWRITABLE = {errno.EROFS, errno.EACCES, errno.EPERM, errno.ENOSPC, errno.EDQUOT}

_T = TypeVar("_T")


class IndexLostError(TryAgainError):
    """The index file was deleted, replaced or damaged while it was used."""


class Index:
    """
    The index of one store, with a write-ahead log: who reads is never held up by who writes.

    A file that is deleted, replaced or damaged at any moment is made again. Where nothing may be written it
    is read as it is, and what has to be taken in goes into a temporary copy; if *private*, in any case.
    """

    def __init__(self, layout: Layout, *, wait_seconds: float = 30.0, private: bool = False) -> None:
        self._layout = layout
        self._path = layout.turn_index
        self._wait_seconds = wait_seconds
        self._connection: sqlite3.Connection | None = None
        self._identity: tuple[int, int] | None = None  # device and inode of the opened file
        self._statistics: dict[str, Statistics] = {}  # by user, as long as nothing is written
        self._version = 0  # SQLite's data_version of these
        self._guard = threading.RLock()
        place = next(path for path in (layout.indexes, *layout.indexes.parents) if path.exists())
        there = [path for path in (place, self._path) if path.exists()]
        may_write = not layout.read_only_mark.exists() and all(os.access(path, os.W_OK) for path in there)
        self._uses: Literal["file", "file as it is", "copy", "nothing"] = "file as it is"
        """What is opened; "nothing" is a copy of none: it begins empty."""
        if private:
            self._uses = "copy"
        elif may_write:
            self._uses = "file"

    def close(self) -> None:
        """Close the file; the next use opens it again. A copy is lost."""
        with self._guard:
            self._statistics.clear()
            if self._connection is not None:
                self._connection.close()
                self._connection = None

    def record(self, user: str, numbers: Collection[int]) -> SyncReport:
        """Index turns whose files were just written; if another process is writing, the next reader does."""
        return self.freshen(user, wait_seconds=0.0, turns=numbers)

    def freshen(
        self, user: str, *, wait_seconds: float = _PATIENCE_SECONDS, turns: Collection[int] = ()
    ) -> SyncReport:
        """
        Take in some turns, and what shows without a look at every turn: all but older saved turns that were
        edited by hand. The report has *behind* above 0 if another process was writing for longer.
        """

        def act() -> SyncReport:
            difference = self._compare(user, turns)
            if not (difference.changed or difference.removed) and difference.turns == difference.turns_known:
                return SyncReport()
            is_known = difference.turns_known is not None  # else there is nothing to answer from
            try:
                with self._opened(wait_seconds if is_known else self._wait_seconds) as connection:
                    return UserTables(connection, user).take_in(self._layout.of(user), turns)
            except LockHeldError:
                if not is_known:
                    raise
                return SyncReport(behind=len(difference.sources))

        return self._again(act)

    def rebuild(self, users: Sequence[str] | None = None, *, full: bool = False) -> dict[str, SyncReport]:
        """
        Bring the index in line with all files of some users; what was done, by user. None is all users that
        the store or the index has. *full* starts from nothing, for all users; until the end others are
        answered from what was there. Raises LockHeldError: another process kept writing for too long.
        """
        if self._uses != "file" and not self._layout.read_only_mark.exists():
            fix = "check who owns the store and whether its disk is mounted read-only"
            raise StoreError("the index files cannot be written", where=str(self._layout.indexes), fix=fix)

        def act() -> dict[str, SyncReport]:
            with self._opened(self._wait_seconds) as connection:
                connection.execute("PRAGMA cache_size = -64000")  # a page put off would be written again
                if full:
                    for table in TABLES:
                        connection.execute(f"DELETE FROM {table}")
                rebuilt_users = users
                if full or rebuilt_users is None:
                    indexed_users = (user for (user,) in connection.execute("SELECT user FROM users"))
                    rebuilt_users = sorted({*users_of(self._layout), *indexed_users})
                return {
                    user: UserTables(connection, user).take_in(self._layout.of(user), None)
                    for user in rebuilt_users
                }

        return self._again(act, for_reading=False)

    def behind(self, user: str) -> Difference:
        """Return what rebuild would take in, by a look at every file; makes no file that is gone."""
        with self._guard:
            if self._uses == "file" and not self._path.exists():
                self._leave_the_file()
            return self._again(lambda: self._compare(user, None))

    def read(self, user: str, act: Callable[[IndexView], _T], *, as_of: AsOf | None = None) -> _T:
        """
        Return what a function makes of the user's entries, all or as of one moment. It gets the entries, asks
        nothing else of this index, and is called again if the files vanish.
        """

        def attempt() -> _T:
            for _ in range(_TRIES):
                with self._opened() as connection:
                    view = IndexView(connection, user, self._statistics.get(user), as_of)
                    if view.turns_stamp() is not None or not self._layout.of(user).home.is_dir():
                        self._statistics[user] = view.all_statistics
                        return act(view)
                self.freshen(user)  # the file is new: nothing is in it yet
            raise self._lost("they were deleted again")

        return self._again(attempt)

    def _compare(self, user: str, turns: Collection[int] | None) -> Difference:
        with self._opened() as connection:
            return UserTables(connection, user).compare(self._layout.of(user), turns)

    def _again(self, act: Callable[[], _T], *, for_reading: bool = True) -> _T:
        """Do something; again if the index files vanish, are damaged, or cannot be written by what reads."""
        with self._guard:
            for left in reversed(range(_TRIES)):
                try:
                    return act()
                except IndexLostError:
                    if not left:
                        raise
                    self._start_over()
                except StoreError as exc:
                    number = exc.__cause__.errno if isinstance(exc.__cause__, OSError) else None
                    if for_reading and number in _UNWRITABLE and self._uses == "file":
                        self._leave_the_file()
                    elif number != errno.ENOENT:
                        raise
                    elif not left:
                        raise self._lost(exc.message) from exc
            raise AssertionError("the last try returns or raises")

    @contextmanager
    def _opened(self, wait_seconds: float | None = None) -> Iterator[sqlite3.Connection]:
        """
        Yield a connection to the index at one moment; with a time to wait it may be written, as a whole or
        not at all.
        """
        to_write = wait_seconds is not None
        if to_write and self._uses == "file as it is":
            self.close()
            self._uses = "copy"
        try:
            if self._connection is None or self._identity != self._identity_in_place():
                self.close()
                self._connection = self._open_file() if self._uses == "file" else self._open_copy()
                self._connection.execute("PRAGMA cache_size = -8000")
            connection = self._connection
            with nullcontext() if wait_seconds is None else self._lock(wait_seconds):
                connection.execute("BEGIN IMMEDIATE" if to_write else "BEGIN")
                try:
                    if number_of(connection, "user_version") != _VERSION:
                        raise sqlite3.DatabaseError("made by another version of panda")
                    version = number_of(connection, "data_version")
                    if to_write or version != self._version:
                        self._statistics.clear()
                    self._version = version
                    yield connection
                    if to_write:
                        connection.execute("COMMIT")
                finally:
                    if connection.in_transaction:
                        connection.execute("ROLLBACK")
        except sqlite3.DatabaseError as exc:
            self.close()
            raise self._translated(exc) from exc

    def _translated(self, exc: sqlite3.DatabaseError) -> Exception:
        extended = getattr(exc, "sqlite_errorcode", 0)
        code = extended & 0xFF
        is_moved = extended == sqlite3.SQLITE_READONLY_DBMOVED
        if extended in _NO_ROOM or (code == sqlite3.SQLITE_READONLY and not is_moved):
            number = errno.ENOSPC if extended in _NO_ROOM else errno.EROFS
            with store_errors(self._layout.indexes, "write in"):
                raise OSError(number, os.strerror(number)) from exc
        if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
            message = f"the index was locked for more than {_BUSY_SECONDS:g} s"
            return LockHeldError(
                message, where=str(self._path), fix="try again when the other program is done"
            )
        if code == sqlite3.SQLITE_CANTOPEN:
            self._identity = None  # nothing is known of it that would allow to remove it
        return self._lost(str(exc))

    def _lost(self, why: str) -> IndexLostError:
        fix = "run the command again; if that does not help, `panda index rebuild --full`"
        return IndexLostError(f"the index files cannot be used: {why}", where=str(self._path), fix=fix)

    def _lock(self, wait_seconds: float) -> AbstractContextManager[None]:
        if self._uses != "file":  # nobody else has it
            return nullcontext()
        holder = f"panda index (process {os.getpid()})"
        return held_lock(self._layout.index_lock, holder=holder, wait_seconds=wait_seconds)

    def _identity_in_place(self) -> tuple[int, int] | None:
        with suppress(OSError):
            if self._uses == "file":
                status = self._path.stat()
                return status.st_dev, status.st_ino
        return None

    def _open_file(self) -> sqlite3.Connection:
        check_database(self._path)
        if not size_of(self._path):
            make_directory(self._path.parent)
            with self._lock(_BUSY_SECONDS):
                if not size_of(self._path):  # no other process has made it meanwhile
                    self._remove()
                    with closing(_connect(str(self._path))) as connection:
                        _create_tables(connection)
                        connection.execute("PRAGMA journal_mode = WAL")
        self._identity = self._identity_in_place()
        connection = _connect(str(self._path))
        if self._identity is None or self._identity != self._identity_in_place():
            connection.close()
            raise self._lost("it was replaced while it was opened")
        return connection

    def _open_copy(self) -> sqlite3.Connection:
        """The file as it is, or a copy of it in SQLite's temporary files."""
        self._identity = None
        if self._uses == "nothing":
            _create_tables(copy := _connect(""))
            return copy
        check_links(self._path)
        _, log, _ = side_files(self._path)
        how = "mode=ro" if size_of(log) and not log.is_symlink() else "mode=ro&immutable=1"
        connection = _connect(uri_of(self._path, how))
        if self._uses == "file as it is":
            return connection
        with closing(connection):
            self._connection = copy = _connect("")
            connection.backup(copy)
        return copy

    def _leave_the_file(self) -> None:
        """From now on write nothing into the store."""
        self.close()
        self._uses = "copy"
        _, log, shared = side_files(self._path)
        if not size_of(log) and size_of(shared) < _SHARED_BYTES:  # not made whole on a full disk: nobody's
            for path in (log, shared):
                with suppress(OSError):
                    path.unlink()

    def _start_over(self) -> None:
        """Remove the file that cannot be used, unless it is another by now."""
        self.close()
        if self._uses != "file":
            self._uses = "nothing"
            return
        with self._lock(self._wait_seconds):
            if self._identity == self._identity_in_place():
                self._remove()

    def _remove(self) -> None:
        """Remove the file with what is left beside it of itself and of earlier versions."""
        former = self._path.with_name("research_index.db")
        for path in (self._path, *side_files(self._path), former):
            with store_errors(path, "delete"):
                path.unlink(missing_ok=True)
        remove_tree(self._path.with_name("changes"))


def size_of(path: Path) -> int:
    """Bytes of a file; 0 of one that is not there."""
    with suppress(OSError):
        return path.stat().st_size
    return 0


def _connect(name: str) -> sqlite3.Connection:
    is_uri = name.startswith("file:")
    return sqlite3.connect(name, _BUSY_SECONDS, isolation_level=None, check_same_thread=False, uri=is_uri)


def _create_tables(connection: sqlite3.Connection) -> None:
    connection.executescript(f"BEGIN; {'; '.join(SCHEMA)}; PRAGMA user_version = {_VERSION}; COMMIT")


def copy_database(source: Path, target: Path) -> None:
    """Copy what an index or the kept vectors hold at one moment; nothing of a file gone or damaged."""
    if not source.exists():
        return
    check_links(source)
    try:
        with closing(_connect(uri_of(source, "mode=ro"))) as original, closing(_connect(str(target))) as copy:
            original.backup(copy)
    except sqlite3.DatabaseError:
        target.unlink(missing_ok=True)
