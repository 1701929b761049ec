"""
The full-text index of a store: derived from its files, and never the only place where anything stands.

`turn_index.db` holds for every user the sources with their stamps, the rows (one for each node, one for each
section of a knowledge document), and the postings of their terms; `research_index.db` the research files.
Nothing in them depends on the order or the time in which they were written.
"""

import os
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from panda.errors import LockHeldError
from panda.storage.index_blocks import Statistics
from panda.storage.index_changes import Difference, clear_notes, find_all, find_likely, list_notes, note_turns
from panda.storage.index_database import IndexDatabase, State
from panda.storage.index_files import IndexFiles
from panda.storage.index_scan import TURNS
from panda.storage.index_tables import Execute, SyncReport, UserTables
from panda.storage.index_view import IndexEntry, IndexView
from panda.storage.layout import Layout

__all__ = ["Index", "IndexEntry", "IndexView", "SyncReport"]

_PATIENCE_SECONDS = 2.0
"""How long a search waits to take changes in, before it answers from what the index holds."""

Watch = Callable[[], None]


@dataclass(frozen=True)
class _Cached:
    """Statistics of one user as of one state of the file."""

    state: State
    """State of the files when they were read."""
    statistics: Statistics
    """Lengths, times and neighbours of all rows."""


class Index:
    """
    The index files of one store.

    Args:
        layout: Where the store is; on a read-only root the index is kept in memory.
        wait_seconds: How long to wait for another process that is writing.
        on_wait: Told once who is writing, when waiting begins.
        copy_from: With so many changed files or more, a copy is changed and swapped in, so that readers do
            not wait.
    """

    def __init__(
        self,
        layout: Layout,
        *,
        wait_seconds: float = 30.0,
        on_wait: Callable[[str], None] | None = None,
        copy_from: int = 2_000,
    ) -> None:
        self._layout = layout
        self._wait_seconds = wait_seconds
        self._on_wait = on_wait
        self._copy_from = copy_from
        self._files = IndexFiles(layout)
        self._database = IndexDatabase(layout, self._files)
        self._is_writing = False
        self._cached: dict[str, _Cached] = {}
        self._guard = threading.RLock()

    def close(self) -> None:
        """Close the files; the next use opens them again."""
        with self._guard:
            self._database.close()
            self._cached.clear()

    def record(self, user: str, numbers: Sequence[int]) -> SyncReport:
        """
        Index turns that were just saved; to be called when their files are on disk.

        They are in the change journal first: if another process is writing the index, the next reader takes
        them in.

        Args:
            user: Whose turns.
            numbers: Their numbers.

        Raises:
            StoreError: Journal or index cannot be written.
        """
        if not self._database.in_memory:
            note_turns(self._layout, user, numbers)
        return self.freshen(user, wait_seconds=0.0)

    def freshen(self, user: str, *, wait_seconds: float = _PATIENCE_SECONDS) -> SyncReport:
        """
        Take in what the change journal names, and what else shows without a look at every turn.

        Args:
            user: Whose files.
            wait_seconds: How long to wait for another process that is writing.

        Returns:
            What was done; *behind* is above 0 if another process was writing for longer.

        Raises:
            StoreError: The index file cannot be written.
        """
        with self._guard:
            found = self._look(user, thorough=False)
            if found.is_nothing:
                return SyncReport()
            try:
                wait = wait_seconds if found.turns_known is not None else self._wait_seconds
                return self._write((user,), thorough=False, wait_seconds=wait)[user]
            except LockHeldError:
                if found.turns_known is None:  # the user was never indexed: nothing to answer from
                    raise
                return SyncReport(behind=found.count)

    def sync(self, user: str) -> SyncReport:
        """
        Bring the index in line with all files of a user: what was added, changed or removed on disk.

        Raises:
            LockHeldError: Another process kept writing for too long.
            StoreError: The index file cannot be written.
        """
        with self._guard:
            if self._look(user, thorough=True).is_nothing:
                return SyncReport()
            return self._write((user,), thorough=True, wait_seconds=self._wait_seconds)[user]

    def rebuild(
        self, users: Sequence[str], *, full: bool = False, watch: Watch = lambda: None
    ) -> dict[str, SyncReport]:
        """
        Bring the index in line with all files of some users.

        Args:
            users: Whose files; if *full*, these have to be all users of the store.
            full: Start from nothing: built beside the old files, which answer until the end, and swapped in.
            watch: Called after each file or directory that was read.

        Returns:
            What was done, by user.

        Raises:
            LockHeldError: Another process kept writing for too long.
            StoreError: The index files cannot be written.
        """
        with self._guard:
            return self._write(users, thorough=True, wait_seconds=self._wait_seconds, full=full, watch=watch)

    def behind(self, user: str) -> Difference:
        """What rebuild would take in, by a look at every file; writes nothing."""
        with self._guard:
            return self._look(user, thorough=True)

    def users(self) -> list[str]:
        """Users that the index has ever seen, and that are not forgotten."""
        query = "SELECT DISTINCT user FROM sources ORDER BY 1"
        with self._guard:
            return self._database.read(
                lambda execute: [row["user"] for row in execute(query)], start_over=self._start_over
            )

    @contextmanager
    def reading(self, user: str) -> Iterator[IndexView]:
        """
        The user's rows as of one moment; nothing else may be asked of this index while the block runs.

        Args:
            user: Whose rows.

        Raises:
            LockHeldError: SQLite's own lock was held for too long.
            StoreError: The index cannot be used.
        """
        with self._guard, self._database.snapshot() as (execute, state):
            known = self._cached.get(user)
            view = IndexView(execute, user, known.statistics if known and known.state == state else None)
            self._cached[user] = _Cached(state, view.statistics)
            yield view

    def _look(self, user: str, *, thorough: bool) -> Difference:
        def act(execute: Execute) -> Difference:
            tables = UserTables(execute, user)
            seen = tables.known_stamp(TURNS) is not None
            return (find_likely if seen and not thorough else find_all)(self._layout, user, tables)

        return self._database.read(act, start_over=self._start_over)

    def _start_over(self) -> None:
        if not self._database.in_memory:
            with self._writing(self._wait_seconds):
                self._files.remove()

    def _write(
        self,
        users: Sequence[str],
        *,
        thorough: bool,
        wait_seconds: float,
        full: bool = False,
        watch: Watch = lambda: None,
    ) -> dict[str, SyncReport]:
        with self._writing(wait_seconds):
            if full:
                notes, found = list_notes(self._layout), {}
            else:  # looked at again: another process may have written while this one waited
                found = {user: self._look(user, thorough=thorough) for user in users}
                notes = [path for one in found.values() for path in one.noted]
            if self._database.in_memory and full:
                self._database.close()
            many = sum(one.count for one in found.values()) >= self._copy_from
            if (full or many) and not self._database.in_memory:
                writing = self._database.new_files(copy=not full)
            else:
                writing = self._database.transaction()
            with writing as execute:
                reports = {user: self._take_in(execute, user, found.get(user), watch) for user in users}
            clear_notes(self._layout, notes)
            return reports

    def _take_in(self, execute: Execute, user: str, found: Difference | None, watch: Watch) -> SyncReport:
        tables = UserTables(execute, user)
        found = found or find_all(self._layout, user, tables)
        report = tables.take_in(self._layout, found.changed, found.removed, watch)
        if self._layout.user(user).is_dir():
            tables.set_stamp(TURNS, found.turns, 0)
        else:
            tables.forget_stamp(TURNS)
        return report

    @contextmanager
    def _writing(self, wait_seconds: float) -> Iterator[None]:
        if self._database.in_memory or self._is_writing:
            yield
            return
        holder = f"panda index (process {os.getpid()})"
        with self._files.writing(holder, wait_seconds=wait_seconds, on_wait=self._on_wait):
            self._is_writing = True
            try:
                yield
            finally:
                self._is_writing = False
