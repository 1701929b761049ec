"""
The full-text index of a store: derived from its files, and never the only place where anything stands.

Nothing in `turn_index.db` depends on the order or the time in which it was written.
"""

import errno
import os
import sqlite3
import threading
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TypeVar

import numpy as np

from panda.documents.times import Clock, parse_time, render_time
from panda.errors import FileFormatError, LockHeldError, StoreError, TryAgainError
from panda.index.sources import BROKEN, scan_documents, scan_turns, source_of, turn_of, turns_stamp
from panda.index.tables import SCHEMA, TABLES, AsOf, IndexView, Statistics, SyncReport, UserTables
from panda.index.vectors import SIDE_FILES, VectorStore, check_database, uri_of
from panda.store.files import held_lock, make_directory, read_json, remove_tree, store_errors, write_json
from panda.store.import_file import ImportReport
from panda.store.layout import Layout, users_of
from panda.store.links import check_links
from panda.store.temporaries import sweep

_VERSION = 10
_BUSY_SECONDS = 30.0
_PATIENCE_SECONDS = 2.0  # how long a search waits to take changes in before it answers without them
_NEWEST = 64  # so many turns are looked at each time
_TRIES = 3  # how often files that vanish or turn out damaged are made again before that is an error
_SHARED_BYTES = 32_768
_NO_ROOM = {sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR_SHMSIZE, sqlite3.SQLITE_IOERR_SHMOPEN}
_UNWRITABLE = {errno.EROFS, errno.EACCES, errno.EPERM, errno.ENOSPC, errno.EDQUOT}

Watch = Callable[[], None]
_T = TypeVar("_T")
_State = tuple[int, int, int]
"""Number of the connection, SQLite's data_version, own writes: what is read in the same state is the same."""


class IndexLostError(TryAgainError):
    """The index file was deleted, replaced or damaged while it was used."""


class _Database:
    """
    turn_index.db, with a write-ahead log: who reads is never held up by who writes.

    Where nothing may be written it is read as it is; what has to be taken in goes into a temporary copy.
    """

    def __init__(self, layout: Layout, *, private: bool) -> None:
        self._layout, self._path = layout, layout.turn_index
        self._connection: sqlite3.Connection | None = None
        self._identity: tuple[int, int] | None = None  # device and inode of the opened file
        self._connections = self._own_writes = 0
        self._is_writing = self._is_damaged = False
        self._is_copied = private  # for others may write the file while it is read
        place = next(path for path in (layout.indexes, *layout.indexes.parents) if path.exists())
        there = [path for path in (place, layout.turn_index) if path.exists()]
        may_write = not layout.read_only_mark.exists() and all(os.access(path, os.W_OK) for path in there)
        self.is_private = private or not may_write
        """Whether nothing is written into the store."""

    def make_private(self) -> None:
        """From now on write nothing into the store."""
        self.close()
        self.is_private = self._is_copied = True
        log, shared = self._beside("-wal"), self._beside("-shm")
        if not _size(log) and _size(shared) < _SHARED_BYTES:  # not made whole on a full disk: nobody's
            for path in (log, shared):
                with suppress(OSError):
                    path.unlink()

    def close(self) -> None:
        """Close it; the next use opens it again. A copy is lost."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    @contextmanager
    def writing(self, wait_seconds: float) -> Iterator[None]:
        """The writers' lock, once however often it is entered; what killed builds left is removed."""
        if self.is_private or self._is_writing:
            yield
            return
        holder, lock = f"panda index (process {os.getpid()})", self._layout.index_lock
        with held_lock(lock, holder=holder, wait_seconds=wait_seconds):
            sweep(self._layout.indexes, is_locked=True)
            self._is_writing = True
            try:
                yield
            finally:
                self._is_writing = False

    @contextmanager
    def opened(self, *, to_write: bool = False) -> Iterator[tuple[sqlite3.Connection, _State]]:
        """
        The file in place as of one moment, and its state then; to write, under the writers' lock, as a whole
        or not at all. Raises LockHeldError: SQLite's own lock was held for too long. IndexLostError: SQLite
        cannot go on with the file.
        """
        if to_write and self.is_private and not self._is_copied:
            self._is_copied = True
            self.close()
        try:
            if self._connection is not None and self._identity != self._identity_in_place():
                self.close()
            if self._connection is None:
                self._connection = self._private() if self.is_private else self._shared()
                self._connections += 1
            connection = self._connection
            connection.execute("BEGIN IMMEDIATE" if to_write else "BEGIN")
            try:
                version = connection.execute("PRAGMA data_version").fetchone()[0]
                yield connection, (self._connections, version, self._own_writes)
                if to_write:
                    self._own_writes += 1
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
            fix = "try again when the other program is done"
            return LockHeldError(message, where=str(self._path), fix=fix)
        if code == sqlite3.SQLITE_CANTOPEN:
            self._identity = None  # nothing is known of it that would allow to remove it
        return self.lost(str(exc))

    def lost(self, why: str) -> IndexLostError:
        """The error that the file cannot be used."""
        fix = "run the command again; if that does not help, `panda index rebuild --full`"
        return IndexLostError(f"the index files cannot be used: {why}", where=str(self._path), fix=fix)

    def _identity_in_place(self) -> tuple[int, int] | None:
        with suppress(OSError):
            if not self.is_private:
                status = self._path.stat()
                return status.st_dev, status.st_ino
        return None

    def _shared(self) -> sqlite3.Connection:
        """The store's own file, made if there is none."""
        check_database(self._path)
        if not _size(self._path):
            make_directory(self._path.parent)
            with self.writing(_BUSY_SECONDS):
                if not _size(self._path):  # no other process has made it meanwhile
                    self._remove()
                    with closing(_connect(str(self._path))) as connection:
                        _create_tables(connection)
                        connection.execute("PRAGMA journal_mode = WAL")
        self._identity = self._identity_in_place()
        connection = _connect(str(self._path), is_checked=True)
        if self._identity is None or self._identity != self._identity_in_place():
            connection.close()
            raise self.lost("it was replaced while it was opened")
        return connection

    def _private(self) -> sqlite3.Connection:
        """The file as it is; if changes are to be taken in a copy, from nothing if it is of no use."""
        self._identity = None
        check_links(self._path)
        log = self._beside("-wal")
        how = "mode=ro" if _size(log) and not log.is_symlink() else "mode=ro&immutable=1"
        copy = _connect("")
        try:
            if self._is_damaged:
                raise sqlite3.DatabaseError("damaged")
            source = _connect(uri_of(self._path, how), is_checked=True)
            if not self._is_copied:
                return source
            with closing(source):
                source.backup(copy)
        except sqlite3.DatabaseError:
            self._is_copied = True
            _create_tables(copy)
        return copy

    def start_over(self, wait_seconds: float) -> None:
        """Remove the file that cannot be used, unless it is another by now."""
        self.close()
        self._is_damaged = self.is_private
        with self.writing(wait_seconds):
            if not self.is_private and self._identity == self._identity_in_place():
                self._remove()

    def _remove(self) -> None:
        """Remove the file with what is left beside it of itself and of earlier versions."""
        former = self._path.with_name("research_index.db")
        for path in (self._path, *map(self._beside, SIDE_FILES), former):
            with store_errors(path, "delete"):
                path.unlink(missing_ok=True)
        remove_tree(self._path.with_name("changes"))

    def _beside(self, ending: str) -> Path:
        return self._path.with_name(f"{self._path.name}{ending}")


def _size(path: Path) -> int:
    with suppress(OSError):
        return path.stat().st_size
    return 0


def _connect(name: str, *, is_checked: bool = False) -> sqlite3.Connection:
    """A database; of this version, if that is to be checked, else sqlite3.DatabaseError is raised."""
    is_uri = name.startswith("file:")
    connection = sqlite3.connect(
        name, timeout=_BUSY_SECONDS, isolation_level=None, check_same_thread=False, uri=is_uri
    )
    try:
        connection.execute("PRAGMA cache_size = -8000")
        version = connection.execute("PRAGMA user_version").fetchone()[0] if is_checked else _VERSION
        if version != _VERSION:
            raise sqlite3.DatabaseError(f"made by another version of panda: {version}")
    except sqlite3.DatabaseError:
        connection.close()
        raise
    return connection


def _create_tables(connection: sqlite3.Connection) -> None:
    for statement in (*SCHEMA, f"PRAGMA user_version = {_VERSION}"):
        connection.execute(statement)


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


@dataclass(frozen=True)
class Difference:
    """Where index and files of a user differ."""

    changed: Mapping[str, str]  # sources that are new or were written since, with their stamps
    removed: tuple[str, ...]  # sources that are gone
    retried: frozenset[str]  # those of *changed* that could not be read the last time
    turns: str | None  # stamp of the turns directory, taken before looking; None without a user
    turns_known: str | None  # that of when it was last taken in; None if the user never was

    @property
    def count(self) -> int:
        """Number of sources that differ, those that cannot be read left out."""
        return len(self.changed) + len(self.removed) - len(self.retried)

    @property
    def turns_behind(self) -> int:
        """Number of turns among them."""
        return sum(1 for source in {*self.changed, *self.removed} - self.retried if turn_of(source))

    @property
    def is_nothing(self) -> bool:
        """Whether there is nothing to write."""
        return not (self.changed or self.removed) and self.turns == self.turns_known


def _compare(layout: Layout, tables: UserTables, turns: Collection[int] | None) -> Difference:
    """
    Where the index and a user's files differ.

    Args:
        turns: Turns to look at beside the newest, those that came or went, and those that were not saved or
            not readable when last seen; None looks at all. Memory files and notes are always looked at.
    """
    user = tables.user
    stamp, stamp_known = turns_stamp(layout, user), tables.turns_stamp()
    if turns is None or stamp_known is None:
        known, suspects = tables.known(), sorted(layout.of(user).listed_numbers())
    else:
        some = {*turns, *map(turn_of, tables.unsettled()), *tables.newest_turns(_NEWEST)} - {0}
        if stamp != stamp_known:
            here = np.fromiter(layout.of(user).listed_numbers(), np.int64)
            some.update(np.setxor1d(here, tables.known_turns()).tolist())
        suspects = sorted(some)
        known = tables.known_among(map(source_of, suspects))
    on_disk = scan_documents(layout, user) | scan_turns(layout, user, suspects)
    changed = {source: there for source, there in on_disk.items() if known.get(source) != there}
    return Difference(
        changed=changed,
        removed=tuple(source for source in known if source not in on_disk),
        retried=frozenset(source for source in changed if known.get(source) == BROKEN),
        turns=stamp,
        turns_known=stamp_known,
    )


_Looked = tuple[_State, Difference]  # state of the index, and where it and the files of a user differ then


class Index:
    """
    The index of one store.

    A file that is deleted, replaced or damaged at any moment is made again. Where it cannot be written, what
    reads brings a temporary copy in line with the store.

    Args:
        private: Whether nothing is written into the store in any case.
    """

    def __init__(
        self,
        layout: Layout,
        *,
        wait_seconds: float = 30.0,
        private: bool = False,
    ) -> None:
        self._layout, self._wait_seconds = layout, wait_seconds
        self._database = _Database(layout, private=private)
        self._cached: dict[str, tuple[_State, Statistics]] = {}
        """By user: what ranking has to know of all entries, as of a state of the index."""
        self._guard = threading.RLock()

    def close(self) -> None:
        """Close the file; the next use opens it again."""
        with self._guard:
            self._database.close()
            self._cached.clear()

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
            with self._database.opened() as (connection, state):
                difference = _compare(self._layout, UserTables(connection, user), turns)
            if difference.is_nothing:
                return SyncReport()
            try:
                wait = wait_seconds if difference.turns_known is not None else self._wait_seconds
                return self._write([user], wait, turns=turns, looked=(state, difference))[user]
            except LockHeldError:
                if difference.turns_known is None:  # the user was never indexed: nothing to answer from
                    raise
                return SyncReport(behind=difference.count)

        return self._again(act, for_reading=True)

    def rebuild(
        self, users: Sequence[str], *, full: bool = False, watch: Watch = lambda: None
    ) -> dict[str, SyncReport]:
        """
        Bring the index in line with all files of some users; what was done, by user.

        Args:
            users: Whose files; if *full*, these have to be all users of the store.
            full: Start from nothing; until the end others are answered from what was there.

        Raises:
            LockHeldError: Another process kept writing for too long.
        """
        if self._database.is_private and not self._layout.read_only_mark.exists():
            fix = "check who owns the store and whether its disk is mounted read-only"
            raise StoreError("the index files cannot be written", where=str(self._layout.indexes), fix=fix)
        return self._again(lambda: self._write(users, self._wait_seconds, full=full, watch=watch))

    def behind(self, user: str) -> Difference:
        """What rebuild would take in, by a look at every file; makes no file that is gone."""

        def act() -> Difference:
            if not (self._database.is_private or self._layout.turn_index.exists()):
                self._database.make_private()
            with self._database.opened() as (connection, _):
                return _compare(self._layout, UserTables(connection, user), None)

        return self._again(act, for_reading=True)

    def users(self) -> list[str]:
        """Users that the index has ever seen, and that are not forgotten."""

        def act() -> list[str]:
            with self._database.opened() as (connection, _):
                return [user for (user,) in connection.execute("SELECT user FROM users ORDER BY 1")]

        return self._again(act, for_reading=True)

    def read(
        self,
        user: str,
        act: Callable[[IndexView], _T],
        *,
        as_it_is: bool = False,
        as_of: AsOf | None = None,
    ) -> _T:
        """
        What something makes of the user's entries as of one moment.

        Args:
            act: Gets the entries, and asks nothing else of this index. Called again if the files vanish.
            as_it_is: Whether it also gets the entries of a user whose files were never taken in: none.
            as_of: What counts of the entries; None for all.
        """

        def attempt() -> _T:
            for is_last in (False, True):
                with self._database.opened() as (connection, state):
                    is_known = UserTables(connection, user).turns_stamp() is not None
                    if is_known or as_it_is or (is_last and not self._layout.of(user).home.is_dir()):
                        known_state, known = self._cached.pop(user, (None, None))
                        view = IndexView(connection, user, known if known_state == state else None, as_of)
                        self._cached[user] = state, view.all_statistics
                        return act(view)
                if not is_last:  # the files are new: nothing is in them yet
                    self.freshen(user, wait_seconds=self._wait_seconds)
            raise self._database.lost("they were deleted again")

        return self._again(attempt, for_reading=True)

    def _again(self, act: Callable[[], _T], *, for_reading: bool = False) -> _T:
        """Do something; again if the index files vanish, are damaged, or cannot be written by what reads."""
        with self._guard:
            for left in reversed(range(_TRIES)):
                try:
                    return act()
                except IndexLostError:
                    if not left:
                        raise
                    self._cached.clear()
                    self._database.start_over(self._wait_seconds)
                except StoreError as exc:
                    number = exc.__cause__.errno if isinstance(exc.__cause__, OSError) else None
                    if for_reading and number in _UNWRITABLE and not self._database.is_private:
                        self._database.make_private()
                    elif number != errno.ENOENT:
                        raise
                    elif not left:
                        raise self._database.lost(exc.message) from exc
            raise AssertionError("the last try returns or raises")

    def _write(
        self,
        users: Sequence[str],
        wait_seconds: float,
        *,
        turns: Collection[int] | None = None,
        full: bool = False,
        looked: _Looked | None = None,
        watch: Watch = lambda: None,
    ) -> dict[str, SyncReport]:
        """Take in what differs; with *looked*, a look at the one user, if nothing was written since."""
        reports: dict[str, SyncReport] = {}
        with (
            self._database.writing(wait_seconds),
            self._database.opened(to_write=True) as (connection, state),
        ):
            if turns is None:  # perhaps all of them: a page that was put off would be written again
                connection.execute("PRAGMA cache_size = -64000")
            for table in TABLES if full else ():
                connection.execute(f"DELETE FROM {table}")
            for user in users:
                tables = UserTables(connection, user)
                if looked is not None and looked[0] == state:
                    difference = looked[1]
                else:
                    difference = _compare(self._layout, tables, turns)
                reports[user] = tables.take_in(self._layout, difference.changed, difference.removed, watch)
                tables.set_turns_stamp(difference.turns)
        return reports


def rebuild_index(
    index: Index,
    layout: Layout,
    clock: Clock,
    *,
    user: str | None = None,
    full: bool = False,
    watch: Watch = lambda: None,
) -> dict[str, SyncReport]:
    """
    Bring the index in line with the files of a user; of all users if *full* or if none is given. What was
    done, by user. Raises LockHeldError: another process kept writing for too long.
    """
    started = time.monotonic()
    users: Sequence[str] = [user] if user is not None and not full else users_of(layout)
    if user is None and not full:
        users = sorted({*users, *index.users()})
    reports = index.rebuild(users, full=full, watch=watch)
    if not layout.read_only_mark.exists():
        seconds = round(time.monotonic() - started, 3)
        value = {"at": render_time(clock()), "full": full, "seconds": seconds}
        write_json(layout.last_rebuild, value)
    return reports


def index_imported(layout: Layout, report: ImportReport) -> None:
    """Index the turns of an import that were not there before, or leave them to the next reader."""
    created: dict[str, list[int]] = {}
    for turn in report.turns:
        if turn.created:
            created.setdefault(turn.user, []).append(turn.turn)
    index = Index(layout)
    for user, numbers in created.items():
        index.record(user, numbers)
    index.close()


@dataclass(frozen=True)
class IndexStatus:
    """How the index stands to the files of a user."""

    rows: Mapping[str, int]  # number of entries by source type
    research: int  # number of research files
    size_bytes: int  # all files, all users
    vectors: int  # number of kept vectors, of all users
    turns_behind: int  # turns that were added, changed or removed since they were last taken in
    files_behind: int  # the same for all files and turns
    unreadable: int  # files or turns that could not be read or parsed the last time
    rebuilt_at: datetime | None  # when `rebuild` last ran; None if it never did


def index_status(index: Index, layout: Layout, user: str) -> IndexStatus:
    """How the index stands, by a look at every file of a user; writes nothing."""
    difference = index.behind(user)
    rows = index.read(user, IndexView.count_rows, as_it_is=True)
    try:
        rebuilt_at = parse_time(read_json(layout.last_rebuild)["at"])
    except (StoreError, FileFormatError, ValueError, KeyError, TypeError):  # never, or made by another hand
        rebuilt_at = None
    return IndexStatus(
        rows=rows,
        research=rows.get("research_cache", 0),
        size_bytes=sum(map(_size, (layout.turn_index, layout.vectors))),
        vectors=VectorStore(layout).count(),
        turns_behind=difference.turns_behind,
        files_behind=difference.count,
        unreadable=len(difference.retried),
        rebuilt_at=rebuilt_at,
    )
