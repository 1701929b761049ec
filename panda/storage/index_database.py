"""turn_index.db as a database: opened, read as of one moment, written as a whole."""

import errno
import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from urllib.parse import quote

from panda.errors import LockHeldError, TryAgainError
from panda.storage.files import held_lock, make_directory, store_errors
from panda.storage.index_tables import Execute, create_tables
from panda.storage.layout import Layout
from panda.storage.links import check_links
from panda.storage.temporaries import sweep

_VERSION = 8
_BUSY_SECONDS = 30.0
_SIDE_FILES = ("-journal", "-wal", "-shm")
_SHARED_BYTES = 32_768
_NO_ROOM = {sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR_SHMSIZE, sqlite3.SQLITE_IOERR_SHMOPEN}

Identity = tuple[int, int] | None
"""Device and inode of the file; None if there is none, and for a private copy."""
State = tuple[int, int, int]
"""Number of the connection, SQLite's data_version, own writes: rows read in the same state are the same."""


class IndexLostError(TryAgainError):
    """The index file was deleted, replaced or damaged while it was used."""


class IndexDatabase:
    """
    turn_index.db, with a write-ahead log: who reads is never held up by who writes.

    Where it cannot be written, this process has a copy for itself.
    """

    def __init__(
        self, layout: Layout, on_wait: Callable[[str], None] | None = None, *, private: bool = False
    ) -> None:
        self._layout = layout
        self._path = layout.turn_index
        self._on_wait = on_wait
        self._connection: sqlite3.Connection | None = None
        self._connections = 0
        self._own_writes = 0
        self._is_writing = False
        self._identity: Identity = None
        self.is_private = private or not _is_writable(layout)
        """Whether this process has a copy for itself: it is asked to, or cannot write the store's file."""

    def make_private(self) -> None:
        """From now on use a copy that nobody else sees."""
        self.close()
        self.is_private = True
        log, shared = (self._path.with_name(f"{self._path.name}{ending}") for ending in ("-wal", "-shm"))
        if not _size(log) and _size(shared) < _SHARED_BYTES:  # not made whole on a full disk: nobody's
            for path in (log, shared):
                with suppress(OSError):
                    path.unlink()

    def close(self) -> None:
        """Close it; the next use opens it again. A private copy is lost."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    @contextmanager
    def writing(self, wait_seconds: float) -> Iterator[None]:
        """The writers' lock, once however often it is entered; what killed builds left is removed."""
        if self.is_private or self._is_writing:
            yield
            return
        holder = f"panda index (process {os.getpid()})"
        lock = self._layout.index_lock
        with held_lock(lock, holder=holder, wait_seconds=wait_seconds, on_wait=self._on_wait):
            sweep(self._layout.indexes, is_locked=True)
            self._is_writing = True
            try:
                yield
            finally:
                self._is_writing = False

    @contextmanager
    def snapshot(self) -> Iterator[tuple[Execute, State]]:
        """
        What runs SQL as of one moment, and the state of that moment. Raises LockHeldError: SQLite's own lock
        was held for too long. IndexLostError: SQLite cannot go on with the file.
        """
        with self._opened("BEGIN") as connection:
            version = connection.execute("PRAGMA data_version").fetchone()[0]
            yield connection.execute, (self._connections, version, self._own_writes)

    @contextmanager
    def transaction(self) -> Iterator[Execute]:
        """What runs SQL that is written as a whole or not at all; only under the writers' lock."""
        with self._opened("BEGIN IMMEDIATE") as connection:
            self._own_writes += 1
            yield connection.execute
            connection.execute("COMMIT")

    @contextmanager
    def _opened(self, begin: str) -> Iterator[sqlite3.Connection]:
        """The connection to the file that is in place, in a transaction that is rolled back if it is open."""
        with self._translated():
            if self._connection is not None and self._identity != self._identity_in_place():
                self.close()
            if self._connection is None:
                self._connection = self._connected()
                self._connections += 1
            connection = self._connection
            connection.execute(begin)
            try:
                yield connection
            finally:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")

    def _identity_in_place(self) -> Identity:
        with suppress(OSError):
            if not self.is_private:
                status = self._path.stat()
                return status.st_dev, status.st_ino
        return None

    def _connected(self) -> sqlite3.Connection:
        if self.is_private:
            self._identity = None
            return _private_copy(self._path)
        check_database(self._path)
        if not _size(self._path):
            self._create()
        self._identity = self._identity_in_place()
        connection = _connect(str(self._path))
        try:
            _check_version(connection)
        except BaseException:
            connection.close()
            raise
        if self._identity is None or self._identity != self._identity_in_place():
            connection.close()
            raise self.lost("it was replaced while it was opened")
        return connection

    def _create(self) -> None:
        """Make the file, unless another process has; without what a deleted one left beside it."""
        make_directory(self._path.parent)
        with self.writing(_BUSY_SECONDS):
            if not _size(self._path):
                self._unlink()
                with closing(_connect(str(self._path))) as connection:
                    create_tables(connection.execute)
                    connection.execute(f"PRAGMA user_version = {_VERSION}")
                    connection.execute("PRAGMA journal_mode = WAL")

    def remove(self) -> None:
        """Remove the file that cannot be used, unless it is another by now; only under the writers' lock."""
        if not self.is_private and self._identity == self._identity_in_place():
            self._unlink()

    def _unlink(self) -> None:
        former = self._path.with_name("research_index.db")  # of versions before this one
        for path in (
            *(self._path.with_name(f"{self._path.name}{end}") for end in ("", *_SIDE_FILES)),
            former,
        ):
            with store_errors(path, "delete"):
                path.unlink(missing_ok=True)

    @contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.DatabaseError as exc:
            self.close()
            extended = getattr(exc, "sqlite_errorcode", 0)
            code = extended & 0xFF
            number = errno.ENOSPC if extended in _NO_ROOM else 0
            if code == sqlite3.SQLITE_READONLY and extended != sqlite3.SQLITE_READONLY_DBMOVED:
                number = errno.EROFS
            if number:
                with store_errors(self._layout.indexes, "write in"):
                    raise OSError(number, os.strerror(number)) from exc
            if code == sqlite3.SQLITE_CANTOPEN:
                self._identity = None  # nothing is known of it that would allow to remove it
            if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
                raise LockHeldError(
                    f"the index was locked for more than {_BUSY_SECONDS:g} s",
                    where=str(self._path),
                    fix="try again when the other program is done",
                ) from exc
            raise self.lost(str(exc)) from exc

    def lost(self, why: str) -> IndexLostError:
        """The error that the file cannot be used."""
        return IndexLostError(
            f"the index files cannot be used: {why}",
            where=str(self._path),
            fix="run the command again; if that does not help, `panda index rebuild --full`",
        )


def _is_writable(layout: Layout) -> bool:
    """Whether this process may write the index, by permissions, mounts and the store's own mark."""
    place = next(path for path in (layout.indexes, *layout.indexes.parents) if path.exists())
    there = [path for path in (place, layout.turn_index) if path.exists()]
    return not layout.read_only_mark.exists() and all(os.access(path, os.W_OK) for path in there)


def check_database(path: Path) -> None:
    """Let a database pass as check_links does; what is no file in the place of one of SQLite's own goes."""
    check_links(path)
    for side in foreign_sides(path):
        with store_errors(path.parent, "write in"):
            side.unlink()


def foreign_sides(path: Path) -> list[Path]:
    """What is no file in the place of one of SQLite's own; it would wait for a pipe."""
    sides = [path.with_name(f"{path.name}{ending}") for ending in _SIDE_FILES]
    return [side for side in sides if side.is_symlink() or (side.exists() and not side.is_file())]


def _size(path: Path) -> int:
    with suppress(OSError):
        return path.stat().st_size
    return 0


def _connect(name: str) -> sqlite3.Connection:
    is_uri = name.startswith("file:") or not name
    connection = sqlite3.connect(
        name, timeout=_BUSY_SECONDS, isolation_level=None, check_same_thread=False, uri=is_uri
    )
    connection.row_factory = sqlite3.Row
    return connection


def _check_version(connection: sqlite3.Connection) -> None:
    version = connection.execute("PRAGMA user_version").fetchone()[0]
    if version != _VERSION:
        raise sqlite3.DatabaseError(f"made by another version of panda: {version}")


def _private_copy(path: Path) -> sqlite3.Connection:
    """A connection to a temporary database, with what the file holds; with nothing if it is damaged."""
    check_links(path)
    log = path.with_name(f"{path.name}-wal")
    how = "mode=ro" if _size(log) and not log.is_symlink() else "immutable=1"
    copy = _connect("")
    try:
        with closing(_connect(f"file:{quote(os.fsencode(path.absolute()))}?{how}")) as source:
            _check_version(source)
            source.backup(copy)
        if copy.execute("PRAGMA quick_check(1)").fetchone()[0] != "ok":
            raise sqlite3.DatabaseError("damaged")
    except sqlite3.DatabaseError:
        copy.close()
        copy = _connect("")
        create_tables(copy.execute)
    return copy


def copy_database(source: Path, target: Path) -> None:
    """Copy what an index or the kept vectors hold at one moment; nothing of a file gone or damaged."""
    if not source.exists():
        return
    check_links(source)
    try:
        with (
            closing(_connect(f"file:{quote(os.fsencode(source.absolute()))}?mode=ro")) as one,
            closing(_connect(str(target))) as other,
        ):
            one.backup(other)
    except sqlite3.DatabaseError:
        target.unlink(missing_ok=True)
