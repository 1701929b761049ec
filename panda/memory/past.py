"""The moment at which a turn began: which turns count for it, and what its user's memory was."""

import json
from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime

from panda.documents.times import parse_time, render_time
from panda.errors import FileFormatError, StoreError
from panda.index.tables import AsOf
from panda.memory.fact import Assertion
from panda.memory.files import KINDS, Projection, Showing
from panda.memory.log import MemoryLog
from panda.store.files import work_directory, write_atomic
from panda.store.layout import Layout
from panda.store.records import MemoryMark, Snapshot
from panda.store.seals import text_digest


class Moment:
    """
    What a turn may read of its user's files: what was there when it began, however long it takes and however
    often it is taken up again. Before a turn begins everything counts, as it is.
    """

    def __init__(self, layout: Layout, user: str) -> None:
        self._layout, self._user = layout, user
        self._memory = Projection(layout, user)
        self._turn: int | None = None
        self._snapshot: Snapshot | None = None
        self._at: datetime | None = None
        self._is_still = self._sets_back = False

    def release(self) -> None:
        """Go back to everything as it is."""
        self.__init__(self._layout, self._user)  # type: ignore[misc]  # the same again

    def pin(
        self,
        turn: int,
        snapshot: Snapshot | None,
        at: datetime,
        *,
        memory: Projection | None = None,
        sets_back: bool = True,
    ) -> None:
        """
        Stand still at the beginning of a turn.

        Args:
            snapshot: What it recorded; None for a turn of before: then lower numbers and earlier instants
                count.
            memory: The memory as it was, read; None reads it when it is first asked for.
            sets_back: Whether memory that is read later is set back; False leaves it as it is.
        """
        self._sets_back = sets_back
        self._turn, self._snapshot, self._at = turn, snapshot, at
        self._memory = memory or Projection(self._layout, self._user)
        self._is_still = memory is not None

    @property
    def turn(self) -> int | None:
        """The running turn; None before it begins."""
        return self._turn

    def holds(self, number: int) -> bool:
        """Whether what lies in a turn counts: saved by then, or the turn's own."""
        if self._turn is None or number == self._turn:
            return True
        return number < self._turn if self._snapshot is None else self._snapshot.holds(number)

    @property
    def memory(self) -> Projection:
        """Log and memory files, read. Raises FileFormatError: the log or a memory file is corrupt."""
        if not self._is_still:
            self._memory.refresh()
            if self._turn is not None and self._at is not None:
                if self._sets_back:
                    self._memory = self._set_back(self._turn, self._at)
                self._is_still = True
        return self._memory

    def _set_back(self, turn: int, at: datetime) -> Projection:
        log = self._memory.log
        if len(known_then(log, turn, at, self._snapshot)) == len(log.assertions):
            return self._memory
        with work_directory("past") as directory:
            past = Layout(directory / "panda-system-docs")
            set_memory_back(self._layout, past, self._user, turn=turn, at=at, snapshot=self._snapshot)
            memory = Projection(past, self._user)
            memory.refresh()
        return memory

    @property
    def index(self) -> AsOf | None:
        """What of the index counts; None for all."""
        if self._turn is None or self._snapshot is None:
            return None
        texts: dict[str, str] = {}
        with suppress(FileFormatError, StoreError):  # the phase that reads it tells
            memory = self.memory
            texts = {memory.paths[kind].name: memory.texts[kind] or "" for kind in KINDS}
        return AsOf((*self._snapshot.turns, (self._turn, self._turn)), texts)


def memory_mark(log: MemoryLog) -> MemoryMark:
    """How far a log goes that was read."""
    latest = max((one.asserted_at for one in log.assertions), default=None)
    return MemoryMark(
        assertions=len(log.assertions),
        last=log.assertions[-1].fact.id if log.assertions else None,
        asserted_at=render_time(latest) if latest else None,
        conflicts=len(log.conflicts),
    )


def memory_digests(memory: Projection) -> dict[str, str | None]:
    """Digest of each memory file by its name; None for one that is not there."""
    return {
        memory.paths[kind].name: None if (text := memory.texts.get(kind)) is None else text_digest(text)
        for kind in KINDS
    }


def known_then(log: MemoryLog, turn: int, at: datetime, snapshot: Snapshot | None) -> Sequence[Assertion]:
    """
    The assertions that were there when a turn began.

    Returns:
        Those up to the last that was recorded; what others' hands have put between them since is judged by
        its time. Without a record, or if the last one is gone (forgotten, or asserted anew when a batch took
        in what an item had made): those that were asserted by then, in turns that were there; what was typed,
        set or reflected counts by its time alone.
    """
    mark = snapshot.memory if snapshot else None
    if mark is not None and mark.last is None:
        return []
    place = log.place(mark.last) if mark and mark.last else None
    if mark is None or place is None:
        return [
            one
            for one in log.assertions
            if one.asserted_at <= at
            and (one.source_turn is None or _was_there(one.source_turn, turn, snapshot))
        ]
    found = log.assertions[: place + 1]
    if len(found) <= mark.assertions or mark.asserted_at is None:
        return found
    return [one for one in found if one.asserted_at <= parse_time(mark.asserted_at)]


def _was_there(source: int | None, turn: int, snapshot: Snapshot | None) -> bool:
    """Whether what was said in a turn, or in none, may have been known to another one."""
    return source is None or (source < turn if snapshot is None else snapshot.holds(source))


def set_memory_back(
    layout: Layout, past: Layout, user: str, *, turn: int, at: datetime, snapshot: Snapshot | None
) -> None:
    """
    Write a user's log and memory files, as they were when a turn began, to another store, *past*. Raises
    FileFormatError: the log or a memory file is corrupt.
    """
    state = Projection(layout, user)
    state.refresh()
    earlier = known_then(state.log, turn, at, snapshot)
    ids = {one.fact.id for one in earlier}
    known: set[str | None] = {None, *ids}
    count = snapshot.memory.conflicts if snapshot and snapshot.memory else None
    settled = [one for one in state.log.conflicts[:count] if one.resolution_fact in known]
    for path, lines in ((past.of(user).memory_log, earlier), (past.of(user).conflicts_log, settled)):
        if state.log.assertions and (lines or path == past.of(user).memory_log):
            write_atomic(path, "".join(json.dumps(one.to_json(), ensure_ascii=False) + "\n" for one in lines))
    then = Projection(past, user)
    then.refresh()
    kept = set(map(id, settled))
    later = [one.subject for one in state.log.assertions if one.fact.id not in ids]
    later += state.log.settled_by(one for one in state.log.conflicts if id(one) not in kept)
    showing = Showing(state)
    for subject in dict.fromkeys(one for one in later if one.scope == "local"):
        is_, was = (next(iter(one.log.contenders(subject, now=at)), None) for one in (state, then))
        if is_ != was:
            showing.show(subject, was)
    texts = showing.texts()
    for kind in KINDS:
        text = texts[kind]
        if text is not None and state.texts[kind] is not None:
            write_atomic(then.paths[kind], text)
