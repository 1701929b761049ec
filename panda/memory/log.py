"""The user's log of assertions and the records of settled contradictions, as they grow (design §3)."""

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from copy import copy
from dataclasses import dataclass, field
from datetime import datetime
from itertools import chain

from panda.errors import FileFormatError, Location
from panda.memory.synthesis import SynthesisRequest, find_contenders
from panda.store.fact import Assertion, Conflict, Subject
from panda.store.layout import UserStore
from panda.store.lines import LineTail, sound_lines


@dataclass(frozen=True)
class Extent:
    """How much of both files: what was there at some moment."""

    assertions: int  # bytes of memory.jsonl
    conflicts: int  # bytes of conflicts.jsonl


@dataclass
class _Facts:
    assertions: list[Assertion] = field(default_factory=list)
    offsets: list[int] = field(default_factory=list)
    by_id: dict[str, Assertion] = field(default_factory=dict)
    by_subject: dict[Subject, list[Assertion]] = field(default_factory=dict)
    positions: dict[str, int] = field(default_factory=dict)
    latest: Assertion | None = None  # the one with the highest clock reading


@dataclass
class _Records:
    conflicts: list[Conflict] = field(default_factory=list)
    offsets: list[int] = field(default_factory=list)
    by_fact: dict[str, list[Conflict]] = field(default_factory=dict)


class MemoryLog:
    """What one user's log says. `refresh` reads what was added; nothing is written."""

    def __init__(self, store: UserStore) -> None:
        self._path, self._settled_path = store.memory_log, store.conflicts_log
        self._clear()

    def with_only(self, assertions: Iterable[Assertion], conflicts: Iterable[Conflict]) -> "MemoryLog":
        """The log as if nothing else had been said and settled, in this order; it is not read again."""
        log = copy(self)
        log._facts, log._records = _Facts(), _Records()
        for place, one in enumerate(assertions):
            log._add(one, place)
        for place, record in enumerate(conflicts):
            log._add_record(record, place)
        return log

    def _clear(self) -> None:
        self._tail = LineTail(self._path, Assertion)
        self._settled_tail = LineTail(self._settled_path, Conflict)
        self._facts, self._records = _Facts(), _Records()

    def refresh(self) -> None:
        """Take in what was added since the last call. Raises FileFormatError with the line."""
        try:
            self._read_conflicts()
            self._read_assertions()
        except BaseException:
            self._clear()
            raise

    def _read_assertions(self) -> None:
        begins_anew, found = self._tail.read()
        if begins_anew:
            self._facts = _Facts()
        with closing(sound_lines(found)) as lines:
            for line in lines:
                one = line.record
                known = self.get(one.id)
                if known is None:
                    self._add(one, line.end)
                elif known != one:
                    message = f"another line has the id {one.id!r} and says something else"
                    where = Location(self._path, line=line.number, key="id")
                    raise FileFormatError(message, where, fix="remove one of them")

    def _add(self, one: Assertion, offset: int) -> None:
        facts = self._facts
        facts.positions[one.id] = len(facts.assertions)
        facts.assertions.append(one)
        facts.offsets.append(offset)
        facts.by_id[one.id] = one
        facts.by_subject.setdefault(one.subject, []).append(one)
        if facts.latest is None or one.reading > facts.latest.reading:
            facts.latest = one

    def _read_conflicts(self) -> None:
        begins_anew, found = self._settled_tail.read()
        if begins_anew:
            self._records = _Records()
        with closing(sound_lines(found)) as lines:
            for line in lines:
                self._add_record(line.record, line.end)

    def _add_record(self, one: Conflict, offset: int) -> None:
        self._records.conflicts.append(one)
        self._records.offsets.append(offset)
        for fact in {one.fact_a, one.fact_b}:
            self._records.by_fact.setdefault(fact, []).append(one)

    @property
    def reading(self) -> str | None:
        return self._facts.latest.hlc if self._facts.latest else None

    @property
    def extent(self) -> Extent:
        return Extent(self._tail.size_bytes, self._settled_tail.size_bytes)

    @property
    def assertions(self) -> Sequence[Assertion]:
        return self._facts.assertions

    @property
    def conflicts(self) -> Sequence[Conflict]:
        """All conflict records, in the order of the file; the same conflict may be there more than once."""
        return self._records.conflicts

    def get(self, fact_id: str) -> Assertion | None:
        return self._facts.by_id.get(fact_id)

    def place(self, fact_id: str) -> int | None:
        """Where an assertion stands in the order of the file, from 0; None if it is not there."""
        return self._facts.positions.get(fact_id)

    def missing_facts(self, record: Conflict) -> tuple[str, ...]:
        """Ids that a conflict record names and that are not in the log."""
        named = (record.fact_a, record.fact_b, record.resolution_fact)
        return tuple(name for name in named if name is not None and self.get(name) is None)

    def of(self, subject: Subject) -> Sequence[Assertion]:
        return self._facts.by_subject.get(subject, ())

    def subjects(self, scope: str | None = None) -> list[Subject]:
        """Everything that was ever spoken of, in the order of first mention."""
        return [subject for subject in self._facts.by_subject if scope in (None, subject.scope)]

    def contenders(
        self,
        subject: Subject,
        *,
        now: datetime,
        include_expired: bool = False,
        more: Sequence[Assertion] = (),
        settled: Sequence[Conflict] = (),
        extent: Extent | None = None,
    ) -> list[Assertion]:
        """
        What competes for one scope, entity and relation, as find_contenders has it, with what is about to be
        added (*more*, *settled*), or only with what was there at an earlier *extent*.
        """
        facts = self._related(subject, [*more], [*settled], extent)
        request = SynthesisRequest(*subject, include_expired=include_expired)
        records = self._records
        known_records: Iterable[Conflict] = records.conflicts[: self._conflict_count(extent)]
        if extent is None:
            known_records = chain.from_iterable(records.by_fact.get(name, ()) for name in facts)
        named = [one for one in (*settled, *known_records) if one.fact_a in facts or one.fact_b in facts]
        ranked = find_contenders(facts.values(), named, request, now=now).get(subject, [])
        return [facts[fact.id] for fact in ranked]

    def _related(
        self, subject: Subject, more: list[Assertion], settled: list[Conflict], extent: Extent | None
    ) -> dict[str, Assertion]:
        count, positions = self._assertion_count(extent), self._facts.positions
        own = [*self.of(subject), *(one for one in more if one.subject == subject)]
        found = {one.id: one for one in own if positions.get(one.id, -1) < count}
        waiting = list(found) if self._records.conflicts or settled else []
        coming = {one.id: one for one in more}
        while waiting:
            fact_id = waiting.pop()
            new = (one for one in settled if fact_id in (one.fact_a, one.fact_b))
            for record in (*self._records.by_fact.get(fact_id, ()), *new):
                name = record.resolution_fact or ""
                one = coming.get(name) or self.get(name)
                if one and name not in found and positions.get(name, -1) < count:
                    found[one.id] = one
                    waiting.append(one.id)
        return found

    def _assertion_count(self, extent: Extent | None) -> int:
        facts = self._facts
        return len(facts.assertions) if extent is None else bisect_right(facts.offsets, extent.assertions)

    def _conflict_count(self, extent: Extent | None) -> int:
        records = self._records
        return len(records.conflicts) if extent is None else bisect_right(records.offsets, extent.conflicts)

    def added_after(self, extent: Extent) -> Iterator[Subject]:
        """What the assertions and conflict records after a moment are about; may name the same twice."""
        for one in self._facts.assertions[self._assertion_count(extent) :]:
            yield one.subject
        yield from self.settled_by(self._records.conflicts[self._conflict_count(extent) :])

    def settled_by(self, conflicts: Iterable[Conflict]) -> Iterator[Subject]:
        for record in conflicts:
            yield from (one.subject for one in map(self.get, (record.fact_a, record.fact_b)) if one)
