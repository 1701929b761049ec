"""
The full-text index of a store: derived from its files, and never the only place where anything stands.

`turn_index.db` holds for every user the sources with their stamps, the rows (one for each node, one for each
section of a knowledge document), the postings of their terms, and what the research files are about. Nothing
in it depends on the order or the time in which it was written.
"""

import errno
import os
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TypeVar
from uuid import uuid4

import numpy as np

from panda.documents.problems import Problem
from panda.documents.times import Clock, parse_time, render_time
from panda.errors import FileFormatError, LockHeldError, StoreError
from panda.storage.files import read_json, read_text, store_errors, write_atomic, write_json
from panda.storage.import_file import ImportReport
from panda.storage.index_database import IndexDatabase, IndexLostError, State
from panda.storage.index_sources import (
    TURNS,
    scan_documents,
    scan_sources,
    scan_turns,
    turn_numbers,
    turn_of,
    turns_stamp,
    users_of,
)
from panda.storage.index_tables import (
    BROKEN_STAMP,
    AsOf,
    Execute,
    IndexView,
    Statistics,
    SyncReport,
    UserTables,
    clear_tables,
)
from panda.storage.layout import Layout, turn_name, turn_number
from panda.storage.vector_store import VectorStore


@dataclass(frozen=True)
class Difference:
    """Where index and files differ."""

    changed: Mapping[str, str]  # sources that are new or were written since, with their stamps
    removed: tuple[str, ...]  # sources that are gone
    turns: str  # stamp of the turns directory, taken before looking
    retried: frozenset[str]  # those of *changed* that could not be read the last time
    noted: tuple[Path, ...]  # files of the journal that this covers
    turns_known: str | None
    """Stamp of the turns directory that the index holds; None if it has never seen the user."""

    @property
    def count(self) -> int:
        """Number of sources that differ, those that cannot be read left out."""
        return len(self.changed) + len(self.removed) - len(self.retried)

    @property
    def turns_behind(self) -> int:
        """Number of turns among them."""
        sources = {*self.changed, *self.removed} - self.retried
        return len({turn_of(source) for source in sources} - {None})

    @property
    def is_nothing(self) -> bool:
        """Whether there is nothing to write."""
        return not self.count and not self.retried and self.turns == self.turns_known and not self.noted


def note_turns(layout: Layout, user: str, numbers: Iterable[int]) -> None:
    """
    Write into the change journal that turns were saved or changed; to be called after their files are there.

    Args:
        numbers: Turn numbers; none writes nothing.
    """
    names = [turn_name(number) for number in numbers]
    if names:
        write_atomic(layout.index_changes / f"{user}.{uuid4().hex}", "\n".join(names) + "\n")


def list_notes(layout: Layout) -> list[Path]:
    """All files of the change journal."""
    try:
        names = sorted(os.listdir(layout.index_changes))  # noqa: PTH208 - names alone
    except OSError:
        return []
    return [layout.index_changes / name for name in names if not name.startswith(".")]


def find_all(layout: Layout, user: str, tables: UserTables) -> Difference:
    """Every difference, by a look at every file."""
    notes = _notes_of(layout, user)
    stamp = turns_stamp(layout, user)
    known = tables.known()
    turns_known = known.pop(TURNS, None)
    return _difference(known, scan_sources(layout, user), stamp, notes, turns_known)


def find_likely(layout: Layout, user: str, tables: UserTables) -> Difference:
    """
    The differences that can be found without a look at every turn.

    Those are: turns that the journal names, directories that came or went, turns that were not saved or not
    readable when last seen, memory files, knowledge documents. Not found: a saved turn edited by hand.

    Args:
        tables: The user's rows; they must have been taken in once.
    """
    notes = _notes_of(layout, user)
    stamp = turns_stamp(layout, user)
    turns_known = tables.known_stamp(TURNS)
    suspects = {name for path in notes for name in _names_in(path)}
    suspects.update(turn for turn in map(turn_of, tables.unsettled()) if turn is not None)
    if stamp != turns_known:
        here = np.fromiter(turn_numbers(layout, user), np.int64)
        suspects.update(map(turn_name, np.setxor1d(here, tables.known_turns()).tolist()))
    known = tables.known_documents()
    for name in suspects:
        known.update(tables.known_below(name))
    on_disk = {**scan_documents(layout, user), **scan_turns(layout, user, sorted(suspects))}
    return _difference(known, on_disk, stamp, notes, turns_known)


def _difference(
    known: Mapping[str, str],
    on_disk: Mapping[str, str],
    stamp: str,
    notes: tuple[Path, ...],
    turns_known: str | None,
) -> Difference:
    changed = {source: on_disk[source] for source in on_disk if known.get(source) != on_disk[source]}
    return Difference(
        changed=changed,
        removed=tuple(source for source in known if source not in on_disk),
        turns=stamp,
        retried=frozenset(source for source in changed if known.get(source) == BROKEN_STAMP),
        noted=notes,
        turns_known=turns_known,
    )


def _notes_of(layout: Layout, user: str) -> tuple[Path, ...]:
    return tuple(path for path in list_notes(layout) if path.name.startswith(f"{user}."))


def _names_in(path: Path) -> list[str]:
    try:
        return [name for name in read_text(path).split() if turn_number(name)]
    except (FileFormatError, StoreError):  # gone: another process has taken it in
        return []


_PATIENCE_SECONDS = 2.0
"""How long a search waits to take changes in, before it answers from what the index holds."""

_TRIES = 6  # how often files that vanish or turn out damaged are made again before that is an error
_UNWRITABLE = {errno.EROFS, errno.EACCES, errno.EPERM, errno.ENOSPC, errno.EDQUOT}

Watch = Callable[[], None]
_T = TypeVar("_T")


_Looked = tuple[State, Difference]  # state of the index, and where it and the files of a user differ then


class Index:
    """
    The index of one store.

    A file that is deleted, replaced or damaged at any moment is made again. Where it cannot be written, what
    reads has a private copy, brought in line with the store.

    Args:
        private: Whether it has such a copy in any case, and writes nothing into the store.
    """

    def __init__(
        self,
        layout: Layout,
        *,
        wait_seconds: float = 30.0,
        on_wait: Callable[[str], None] | None = None,
        private: bool = False,
    ) -> None:
        self._layout = layout
        self._wait_seconds = wait_seconds
        self._database = IndexDatabase(layout, on_wait, private=private)
        self._cached: dict[str, tuple[State, Statistics]] = {}
        """By user: lengths, times and neighbours of all rows, as of a state of the index."""
        self._guard = threading.RLock()

    def close(self) -> None:
        """Close the file; the next use opens it again."""
        with self._guard:
            self._database.close()
            self._cached.clear()

    def look(self) -> None:
        """From now on write nothing: what is read is a private copy of the file, or of an empty one."""
        with self._guard:
            self._database.make_private()

    def record(self, user: str, numbers: Sequence[int]) -> SyncReport:
        """
        Index turns that were just saved; to be called when their files are on disk.

        They are in the change journal first: if another process is writing the index, the next reader takes
        them in.
        """
        if not self._database.is_private:
            note_turns(self._layout, user, numbers)
        return self.freshen(user, wait_seconds=0.0)

    def freshen(self, user: str, *, wait_seconds: float = _PATIENCE_SECONDS) -> SyncReport:
        """
        Take in what the change journal names, and what else shows without a look at every turn.

        Returns:
            What was done; *behind* is above 0 if another process was writing for longer.
        """

        def act() -> SyncReport:
            looked = self._look(user, thorough=False)
            found = looked[1]
            if found.is_nothing:
                return SyncReport()
            try:
                wait = wait_seconds if found.turns_known is not None else self._wait_seconds
                return self._write((user,), wait, looked=looked)[user]
            except LockHeldError:
                if found.turns_known is None:  # the user was never indexed: nothing to answer from
                    raise
                return SyncReport(behind=found.count)

        return self._again(act, for_reading=True)

    def rebuild(
        self, users: Sequence[str], *, full: bool = False, watch: Watch = lambda: None
    ) -> dict[str, SyncReport]:
        """
        Bring the index in line with all files of some users.

        Args:
            users: Whose files; if *full*, these have to be all users of the store.
            full: Start from nothing; until the end others are answered from what was there.

        Returns:
            What was done, by user.

        Raises:
            LockHeldError: Another process kept writing for too long.
        """
        if self._database.is_private and not self._layout.read_only_mark.exists():
            raise StoreError(
                "the index files cannot be written",
                where=str(self._layout.indexes),
                fix="check who owns the store and whether its disk is mounted read-only",
            )
        return self._again(lambda: self._write(users, self._wait_seconds, full=full, watch=watch))

    def behind(self, user: str) -> Difference:
        """What rebuild would take in, by a look at every file; writes nothing."""
        return self._again(lambda: self._look(user, thorough=True)[1], for_reading=True)

    def users(self) -> list[str]:
        """Users that the index has ever seen, and that are not forgotten."""

        def act() -> list[str]:
            with self._database.snapshot() as (execute, _):
                return [row["user"] for row in execute("SELECT DISTINCT user FROM sources ORDER BY 1")]

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
        What something makes of the user's rows as of one moment.

        Args:
            act: Gets the rows, and asks nothing else of this index. Called again if the files vanish.
            as_it_is: Whether it also gets the rows of a user whose files were never taken in: none.
            as_of: What counts of the rows; None for all.

        Raises:
            LockHeldError: SQLite's own lock was held for too long.
            IndexLostError: The files vanish again and again.
        """

        def attempt() -> _T:
            with self._database.snapshot() as (execute, state):
                if as_it_is or UserTables(execute, user).known_stamp(TURNS) is not None:
                    return act(self._view(execute, user, state, as_of))
            self.freshen(user, wait_seconds=self._wait_seconds)  # the files are new: nothing is in them yet
            with self._database.snapshot() as (execute, state):
                if UserTables(execute, user).known_stamp(TURNS) is None and self._layout.user(user).is_dir():
                    raise self._database.lost("they were deleted again")
                return act(self._view(execute, user, state, as_of))

        return self._again(attempt, for_reading=True)

    def _view(self, execute: Execute, user: str, state: State, as_of: AsOf | None) -> IndexView:
        known_state, known = self._cached.pop(user, (None, None))
        if known_state != state:
            known = None  # let go before others are read
        view = IndexView(execute, user, known, as_of)
        self._cached[user] = state, view.all_statistics
        return view

    def _again(self, act: Callable[[], _T], *, for_reading: bool = False) -> _T:
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
                    if for_reading and number in _UNWRITABLE and not self._database.is_private:
                        self._database.make_private()
                    elif number != errno.ENOENT:
                        raise
                    elif not left:
                        raise self._database.lost(exc.message) from exc
            raise AssertionError("the last try returns or raises")

    def _look(self, user: str, *, thorough: bool, last: _Looked | None = None) -> _Looked:
        """What differs; *last*, a look at the same user, if nothing was written to the index since."""
        with self._database.snapshot() as (execute, state):
            if last is not None and last[0] == state:
                return last
            tables = UserTables(execute, user)
            seen = tables.known_stamp(TURNS) is not None
            find = find_likely if seen and not thorough else find_all
            return state, find(self._layout, user, tables)

    def _start_over(self) -> None:
        """Remove files that cannot be used, unless they are others by now."""
        self._database.close()
        self._cached.clear()
        if not self._database.is_private:
            with self._database.writing(self._wait_seconds):
                self._database.remove()

    def _write(
        self,
        users: Sequence[str],
        wait_seconds: float,
        *,
        full: bool = False,
        looked: _Looked | None = None,
        watch: Watch = lambda: None,
    ) -> dict[str, SyncReport]:
        """Take in what differs; with *looked*, a look at the one user, what shows without a full look."""
        with self._database.writing(wait_seconds):
            found: dict[str, Difference] = {}
            if not full:  # another process may have written while this one waited
                found = {user: self._look(user, thorough=looked is None, last=looked)[1] for user in users}
            noted = [path for one in found.values() for path in one.noted]
            noted = list_notes(self._layout) if full else noted
            with self._database.transaction() as execute:
                if full:
                    clear_tables(execute)
                reports = {user: self._take_in(execute, user, found.get(user), watch) for user in users}
            for path in noted:
                with store_errors(path, "remove"):
                    path.unlink(missing_ok=True)
            return reports

    def _take_in(self, execute: Execute, user: str, found: Difference | None, watch: Watch) -> SyncReport:
        tables = UserTables(execute, user)
        if found is not None and found.turns_known != tables.known_stamp(TURNS):
            raise self._database.lost("they are not those any more that the files were compared with")
        found = found or find_all(self._layout, user, tables)
        report = tables.take_in(self._layout, found.changed, found.removed, watch)
        if self._layout.user(user).is_dir():
            tables.set_stamp(TURNS, found.turns, 0)
        else:
            tables.forget_stamp(TURNS)
        return report


@dataclass(frozen=True)
class RebuildReport:
    """What a rebuild did."""

    users: Mapping[str, SyncReport]  # by user
    seconds: float  # how long it took

    @property
    def problems(self) -> list[Problem]:
        """Files that cannot be read or parsed."""
        return [problem for report in self.users.values() for problem in report.problems]

    @property
    def updated(self) -> int:
        """Files or directories whose rows were written anew."""
        return sum(report.updated for report in self.users.values())

    @property
    def removed(self) -> int:
        """Files or directories that are gone from the index."""
        return sum(report.removed for report in self.users.values())


@dataclass(frozen=True)
class IndexStatus:
    """How the index stands to the files of a user."""

    rows: Mapping[str, int]  # number of rows by source type
    research: int  # number of research files
    size_bytes: int  # all files, all users
    vectors: int  # number of kept vectors, of all users
    turns_behind: int  # turns that were added, changed or removed since they were last taken in
    files_behind: int  # the same for all files and directories, turns included
    unreadable: int  # files that could not be read or parsed the last time
    rebuilt_at: datetime | None  # when `rebuild` last ran; None if it never did


def rebuild_index(
    index: Index,
    layout: Layout,
    clock: Clock,
    *,
    user: str | None = None,
    full: bool = False,
    watch: Callable[[], None] = lambda: None,
) -> RebuildReport:
    """
    Bring the index in line with the files.

    Args:
        user: Only this user's files; None for all users. Without effect if *full*.

    Raises:
        LockHeldError: Another process kept writing for too long.
    """
    started = time.monotonic()
    users: Sequence[str] = [user] if user is not None and not full else users_of(layout)
    if user is None and not full:
        users = sorted({*users, *index.users()})
    reports = index.rebuild(users, full=full, watch=watch)
    seconds = time.monotonic() - started
    if not layout.read_only_mark.exists():
        value = {"at": render_time(clock()), "full": full, "seconds": round(seconds, 3)}
        write_json(layout.last_rebuild, value)
    return RebuildReport(reports, seconds)


def index_imported(layout: Layout, report: ImportReport) -> None:
    """
    Index the turns of an import that were not there before.

    If another process is writing the index, they wait in its change journal.
    """
    created: dict[str, list[int]] = {}
    for turn in report.turns:
        if turn.created:
            created.setdefault(turn.user, []).append(turn.turn)
    index = Index(layout)
    for user, numbers in created.items():
        index.record(user, numbers)
    index.close()


def index_status(index: Index, layout: Layout, user: str) -> IndexStatus:
    """How the index stands, by a look at every file of a user; writes nothing."""
    if not layout.turn_index.exists():  # what is not there is not made by looking
        index.look()
    difference = index.behind(user)
    rows, research = index.read(user, lambda view: (view.count_rows(), len(view.research())), as_it_is=True)
    files = (layout.turn_index, layout.vectors)
    return IndexStatus(
        rows=rows,
        research=research,
        size_bytes=sum(path.stat().st_size for path in files if path.exists()),
        vectors=VectorStore(layout).count(),
        turns_behind=difference.turns_behind,
        files_behind=difference.count,
        unreadable=len(difference.retried),
        rebuilt_at=_last_rebuild(layout),
    )


def _last_rebuild(layout: Layout) -> datetime | None:
    try:
        value = read_json(layout.last_rebuild)
        return parse_time(value["at"])
    except (StoreError, FileFormatError, ValueError, KeyError, TypeError):  # never, or made by another hand
        return None
