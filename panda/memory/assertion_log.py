"""The user's log of assertions and the records of settled contradictions, as they grow (design §3)."""

from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing
from datetime import datetime
from pathlib import Path
from typing import NamedTuple, TypeVar

from panda.documents.times import render_time
from panda.errors import FileFormatError, Location
from panda.memory.synthesis import compete, settle
from panda.store.fact_records import SCOPES, Assertion, Conflict, Subject
from panda.store.layout import UserStore
from panda.store.lines import FileLine, LineTail, sound_lines
from panda.store.records import MemoryMark

_R = TypeVar("_R")


LOG_BYTES = 100_000_000
"""The largest memory.jsonl or conflicts.jsonl that is read: about 250,000 statements."""


def check_log_size(path: Path) -> None:
    """Raise FileFormatError if a log of the memory is larger than LOG_BYTES."""
    size_bytes = path.stat().st_size if path.is_file() else 0
    if size_bytes > LOG_BYTES:
        message = f"it has {size_bytes:,} bytes, and a log of the memory may have {LOG_BYTES:,}"
        raise FileFormatError(message, where=str(path), fix="take it from a backup, or move it away")


class Extent(NamedTuple):
    """How much of both files, in bytes: what was there at some moment."""

    assertions: int
    conflicts: int


class MemoryLog:
    """What one user's log says, in the order of its files. `refresh` reads what was added."""

    def __init__(self, store: UserStore) -> None:
        self._store = store
        self._begin()

    def _begin(self) -> None:
        self._tail = LineTail(self._store.memory_log, Assertion)
        self._settled_tail = LineTail(self._store.conflicts_log, Conflict)
        self._fill((), ())

    def _fill(self, assertions: Iterable[Assertion], conflicts: Iterable[Conflict]) -> None:
        self.assertions: list[Assertion] = []
        self.conflicts: list[Conflict] = []
        """In the order of the file; the same conflict may be there more than once."""
        self._ends: tuple[list[int], list[int]] = ([], [])
        self._places: dict[str, int] = {}
        self._by_subject: dict[Subject, list[Assertion]] = {}
        self._settled: Mapping[Subject, Sequence[Assertion]] | None = None
        for assertion in assertions:
            self._add(assertion)
        self.conflicts += conflicts

    def _add(self, assertion: Assertion) -> None:
        self._places[assertion.id] = len(self.assertions)
        self.assertions.append(assertion)
        self._by_subject.setdefault(assertion.subject, []).append(assertion)

    def with_only(self, assertions: Iterable[Assertion], conflicts: Iterable[Conflict]) -> "MemoryLog":
        """The log as if nothing else had been said and settled; it is not to be refreshed."""
        log = MemoryLog(self._store)
        log._fill(assertions, conflicts)
        return log

    def plus(self, assertions: Iterable[Assertion], conflicts: Iterable[Conflict] = ()) -> "MemoryLog":
        return self.with_only((*self.assertions, *assertions), (*self.conflicts, *conflicts))

    def before(self, extent: Extent) -> "MemoryLog":
        """The log as it was at an earlier extent."""
        assertion_count, conflict_count = map(bisect_right, self._ends, extent)
        return self.with_only(self.assertions[:assertion_count], self.conflicts[:conflict_count])

    def refresh(self) -> None:
        """Take in what was added since the last call. Raises FileFormatError with the line."""
        try:
            is_same = self._read(self._settled_tail, self._take_conflict)
            if not (is_same and self._read(self._tail, self._take_assertion)):
                self._begin()
                self.refresh()
        except BaseException:
            self._begin()
            raise

    def _read(self, tail: LineTail[_R], take: Callable[[FileLine[_R]], None]) -> bool:
        """Take the lines that are new; False, and none is taken, if it is another file than before."""
        check_log_size(tail.path)
        begins_anew, new_lines = tail.read()
        with closing(sound_lines(new_lines)) as lines:
            for line in lines:
                if begins_anew:
                    break
                take(line)
                self._settled = None
        return not begins_anew

    def _take_assertion(self, line: FileLine[Assertion]) -> None:
        assertion = line.record
        existing = self.get(line.record.id)
        if existing is None:
            self._add(assertion)
            self._ends[0].append(line.end)
        elif existing != assertion:
            message = f"another line has the id {assertion.id!r} and says something else"
            where = Location(self._store.memory_log, line=line.number, key="id")
            raise FileFormatError(message, where, fix="remove one of them")

    def _take_conflict(self, line: FileLine[Conflict]) -> None:
        self.conflicts.append(line.record)
        self._ends[1].append(line.end)

    @property
    def reading(self) -> str | None:
        """The highest clock reading."""
        return max(self.assertions, key=lambda assertion: assertion.reading).hlc if self.assertions else None

    @property
    def mark(self) -> MemoryMark:
        """Up to where the log goes."""
        at = max((assertion.asserted_at for assertion in self.assertions), default=None)
        last = self.assertions[-1].id if self.assertions else None
        asserted_at = render_time(at) if at else None
        return MemoryMark(len(self.assertions), last, asserted_at, len(self.conflicts))

    @property
    def extent(self) -> Extent:
        return Extent(self._tail.size_bytes, self._settled_tail.size_bytes)

    def get(self, fact_id: str) -> Assertion | None:
        place = self._places.get(fact_id)
        return None if place is None else self.assertions[place]

    def place(self, fact_id: str) -> int | None:
        """Return the place of an assertion in the order of the file, from 0; None if it is not there."""
        return self._places.get(fact_id)

    def missing_facts(self, record: Conflict) -> tuple[str, ...]:
        """Ids that a conflict record names and that are not in the log."""
        named = (record.fact_a, record.fact_b, record.resolution_fact)
        return tuple(name for name in named if name is not None and name not in self._places)

    def of(self, subject: Subject) -> Sequence[Assertion]:
        return self._by_subject.get(subject, ())

    def subjects(self, scope: str | None = None) -> list[Subject]:
        """Everything that was ever spoken of, in the order of first mention."""
        return [subject for subject in self._by_subject if scope in (None, subject.scope)]

    def contenders(
        self,
        subject: Subject,
        *,
        now: datetime,
        include_expired: bool = False,
        more: Iterable[Assertion] = (),
    ) -> list[Assertion]:
        """
        Return the assertions that compete for a subject, best first, with those about to be made (*more*).
        """
        if self._settled is None:
            self._settled = self._settle() if self.conflicts else self._by_subject
        assertions = [
            *self._settled.get(subject, ()),
            *(assertion for assertion in more if assertion.subject == subject),
        ]
        return compete(assertions, now, include_expired=include_expired)

    def _settle(self) -> dict[Subject, list[Assertion]]:
        placed: dict[Subject, list[Assertion]] = {}
        for scope in SCOPES:
            facts = {assertion.id: assertion for assertion in self.assertions if assertion.scope == scope}
            for subject, fact in settle(facts, self.conflicts):
                placed.setdefault(subject, []).append(fact)
        return placed

    def added_after(self, extent: Extent) -> list[Subject]:
        """
        Return the subjects of the assertions and conflict records after an extent; the same one may come
        twice.
        """
        assertion_count, conflict_count = map(bisect_right, self._ends, extent)
        return [
            *(assertion.subject for assertion in self.assertions[assertion_count:]),
            *self.settled_by(self.conflicts[conflict_count:]),
        ]

    def settled_by(self, conflicts: Iterable[Conflict]) -> list[Subject]:
        facts = [self.get(name) for record in conflicts for name in (record.fact_a, record.fact_b)]
        return [fact.subject for fact in facts if fact is not None]
