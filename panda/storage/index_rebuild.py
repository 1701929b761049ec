"""Rebuilding the index of a store, and saying how it stands."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from panda.documents.problems import Problem
from panda.documents.times import Clock, parse_time, render_time
from panda.errors import FileFormatError, StoreError
from panda.storage.files import read_json, write_json
from panda.storage.importing import ImportReport
from panda.storage.index import Index
from panda.storage.index_scan import users_of
from panda.storage.index_tables import SyncReport
from panda.storage.layout import Layout
from panda.storage.temporaries import sweep_below
from panda.storage.vector_store import VectorStore


@dataclass(frozen=True)
class RebuildReport:
    """What a rebuild did."""

    users: Mapping[str, SyncReport]
    """By user."""
    seconds: float
    """How long it took."""

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

    rows: Mapping[str, int]
    """Number of rows by source type."""
    research: int
    """Number of research files."""
    size_bytes: int
    """All files, all users."""
    vectors: int
    """Number of kept vectors, of all users."""
    turns_behind: int
    """Turns that were added, changed or removed since they were last taken in."""
    files_behind: int
    """The same for all files and directories, turns included."""
    unreadable: int
    """Files that could not be read or parsed the last time."""
    rebuilt_at: datetime | None
    """When `rebuild` last ran; None if it never did."""


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
        index: The index of the store.
        layout: Where the store is.
        clock: Gives the time that `status` tells.
        user: Only this user's files; None for all users. Without effect if *full*.
        full: Start from nothing.
        watch: Called after each file or directory that was read.

    Raises:
        LockHeldError: Another process kept writing for too long.
        StoreError: The index files cannot be written.
    """
    started = time.monotonic()
    if not layout.read_only_mark.exists():
        sweep_below(layout.root)
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

    Args:
        layout: Where the store is.
        report: What the import did.

    Raises:
        StoreError: Journal or index cannot be written.
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
    """
    How the index stands, by a look at every file of a user; writes nothing but an empty index.
    """
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
