"""The past as a bound on reading: which turns, facts and entries of the index count for a turn."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime

from panda.documents.times import parse_time, render_time
from panda.errors import FileFormatError, StoreError
from panda.index.sources import IndexEntry, memory_entries
from panda.index.tables import AsOf
from panda.memory.fact import Kind
from panda.memory.files import KINDS, Projection
from panda.memory.log import MemoryLog
from panda.store.fact import Assertion, Conflict
from panda.store.layout import UserStore
from panda.store.records import MemoryMark, Snapshot
from panda.store.seals import text_digest


@dataclass(frozen=True)
class Bound:
    """What was there when a turn began; nothing else is read by it, however long it takes."""

    turn: int  # its number
    at: datetime  # when it began
    snapshot: Snapshot | None  # what it recorded; None for a turn of before: lower numbers, earlier instants
    is_apart: bool = False  # whether it is run outside the store, which may hold a turn of its number
    memory: Projection | None = None  # the memory of then, where it was read then
    sources: Mapping[str, Sequence[IndexEntry]] = field(default_factory=dict)
    """Entries of what the index lacks, or has as it is now, by source."""
    beside: frozenset[int] = frozenset()  # turns outside the store that it may read

    def holds(self, number: int) -> bool:
        if number == self.turn or number in self.beside:
            return True
        return number < self.turn if self.snapshot is None else self.snapshot.holds(number)


class Moment:
    """What a turn may read of its user's files. Before a turn begins everything counts, as it is."""

    def __init__(self, store: UserStore) -> None:
        self._store = store
        self.pin(None)

    def pin(self, bound: Bound | None) -> None:
        """Stand still at the beginning of a turn; None goes back to everything as it is."""
        self._bound = bound
        self._still = bound.memory if bound else None
        self._memory = self._still or Projection(self._store)
        self._as_of: AsOf | None = None

    @property
    def turn(self) -> int | None:
        return self._bound.turn if self._bound else None

    @property
    def own_turns(self) -> frozenset[int]:
        """Turns that the index need not know: the running one, and those outside the store."""
        return self._bound.beside | {self._bound.turn} if self._bound else frozenset()

    def holds(self, number: int) -> bool:
        return self._bound is None or self._bound.holds(number)

    @property
    def memory(self) -> Projection:
        if self._still is not None:
            return self._still
        self._memory.refresh()
        if self._bound is not None:
            self._still = set_back(self._memory, self._bound)
        return self._still or self._memory

    @property
    def index(self) -> AsOf | None:
        """What of the index counts; None for all."""
        if self._as_of is None and (bound := self._bound) is not None:
            sources = dict(bound.sources)
            with suppress(FileFormatError, StoreError):  # the phase that reads it tells
                memory = self.memory
                for kind in KINDS:
                    name = memory.paths[kind].name
                    with suppress(FileFormatError):
                        sources[name] = memory_entries(name, memory.texts[kind] or "", where=name)
            own = () if bound.is_apart else ((bound.turn, bound.turn),)
            turns = bound.snapshot.turns if bound.snapshot else ((1, bound.turn - 1),)
            self._as_of = AsOf((*turns, *own), sources)
        return self._as_of


def memory_mark(log: MemoryLog) -> MemoryMark:
    latest = max((one.asserted_at for one in log.assertions), default=None)
    return MemoryMark(
        assertions=len(log.assertions),
        last=log.assertions[-1].id if log.assertions else None,
        asserted_at=render_time(latest) if latest else None,
        conflicts=len(log.conflicts),
    )


def memory_digests(memory: Projection) -> dict[str, str | None]:
    """Digest of each memory file by its name; None for one that is not there."""
    return {
        memory.paths[kind].name: None if (text := memory.texts.get(kind)) is None else text_digest(text)
        for kind in KINDS
    }


def set_back(memory: Projection, bound: Bound) -> Projection:
    """Memory as it was when a turn began. Raises FileFormatError: a memory file is corrupt."""
    earlier = known_then(memory.log, bound)
    if len(earlier) == len(memory.log.assertions):
        return memory
    past = memory.with_only(earlier, _settled_then(memory.log, bound, earlier), bound.at)
    past.texts = {kind: text if memory.texts[kind] is not None else None for kind, text in past.texts.items()}
    return past


def kept_memory(memory: Projection, bound: Bound, texts: Mapping[Kind, str | None]) -> Projection:
    """The same where the memory files of then were kept (FileFormatError if the log is corrupt)."""
    memory.log.refresh()
    earlier = known_then(memory.log, bound)
    memory.log = memory.log.with_only(earlier, _settled_then(memory.log, bound, earlier))
    memory.texts = dict(texts)
    return memory


def _settled_then(log: MemoryLog, bound: Bound, earlier: Sequence[Assertion]) -> list[Conflict]:
    known: set[str | None] = {None, *(one.id for one in earlier)}
    count = bound.snapshot.memory.conflicts if bound.snapshot and bound.snapshot.memory else None
    return [one for one in log.conflicts[:count] if one.resolution_fact in known]


def known_then(log: MemoryLog, bound: Bound) -> Sequence[Assertion]:
    """
    The assertions that were there when a turn began: those up to the last that was recorded; what others have
    put between them since is judged by its time. Without a record, or if the last one is gone (forgotten, or
    asserted anew by a batch): those that were asserted by then, in turns that were there; what was typed, set
    or reflected counts by its time alone.
    """
    mark = bound.snapshot.memory if bound.snapshot else None
    if mark is not None and mark.last is None:
        return []
    place = log.place(mark.last) if mark and mark.last else None
    if mark is None or place is None:
        by_then = (one for one in log.assertions if one.asserted_at <= bound.at)
        return [
            one
            for one in by_then
            if one.source_turn is None or (one.source_turn != bound.turn and bound.holds(one.source_turn))
        ]
    found = log.assertions[: place + 1]
    if len(found) <= mark.assertions or mark.asserted_at is None:
        return found
    return [one for one in found if one.asserted_at <= parse_time(mark.asserted_at)]
