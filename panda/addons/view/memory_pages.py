"""The pages of memory: what holds and how far it is to be believed, what contradicts it, and its history."""

import hashlib
from collections.abc import Iterator, Sequence
from contextlib import closing
from datetime import datetime, timedelta
from pathlib import Path
from threading import Lock
from types import SimpleNamespace

from panda.addons.view.plots import Plot, PlotLine, Point, share_of
from panda.addons.view.shelf import PageQuery, RowsPage, Shelf
from panda.documents.memory_file import render_value
from panda.documents.safe_text import shorten
from panda.errors import NotFoundError, Problem, StoreError
from panda.memory.assertion_log import MemoryLog
from panda.memory.confidence import DECAYS, confidence_at
from panda.memory.conflicts import Contradiction, find_contradictions
from panda.memory.fact_reader import file_value
from panda.memory.markdown_files import KINDS, Projection
from panda.memory.user_memory import Remembered, load_remembered
from panda.store.fact_records import Assertion, Conflict, Subject
from panda.store.files import read_text
from panda.store.layout import CONFLICTS_JSONL, MEMORY_JSONL, UserStore
from panda.store.lines import LineTail

_PAGE_ROWS = 200
_VALUE_CHARS = 400
_MOST_CONFLICTS = 50
_MOST_HISTORY = 300
_MOST_BAD = 50
_AHEAD_DAYS = 90
_STEPS = 40


class MemoryReader:
    """
    A user's memory, read again and again, each line once, as far as it can be; writes nothing, takes no edits
    in. What it holds is that of the last `read`.
    """

    def __init__(self, store: UserStore) -> None:
        self._state = Projection(store)
        self._logs = (store.memory_log, store.conflicts_log)
        self.guard = Lock()
        self.values: list[Remembered] = []  # what holds; [] if the log is damaged
        self.contradictions: list[Contradiction] = []  # those that stand
        self.problems: list[tuple[str, str]] = []  # name of each damaged file, and what is wrong with it
        self.lines: list[Assertion] | None = None
        """The lines of a damaged log that can be read, in its order; None if it is sound."""

    @property
    def log(self) -> MemoryLog:
        """Return the log of the memory."""
        return self._state.log

    def subjects(self) -> list[Subject]:
        """
        Return every subject of the log; nothing of a damaged log, where any line may have retracted anything.
        """
        return (
            [subject for subject in self.log.subjects() if not subject.is_system]
            if self.lines is None
            else []
        )

    def read(self, now: datetime) -> None:
        """Read the memory as it is now."""
        self.values = []
        self.contradictions = []
        self.lines = None
        try:
            for path in self._logs:  # a pipe or a device would be read for ever
                if path.exists() and not path.is_file():
                    raise StoreError("not a regular file", where=str(path))
            self.log.refresh()
        except (Problem, OSError) as exc:
            parts = list(_sound(self._logs[0]))
            self.lines = [part for part in parts if isinstance(part, Assertion)]
            bad = [(MEMORY_JSONL, part) for part in parts if isinstance(part, str)]
            name = CONFLICTS_JSONL if self._logs[0].is_file() else MEMORY_JSONL
            self.problems = bad[:_MOST_BAD] or [(name, _message(exc))]
            return
        self.problems = list(self._load_texts())
        self.values = load_remembered(self._state, now)
        self.contradictions = find_contradictions(self.log, now)

    def _load_texts(self) -> Iterator[tuple[str, str]]:
        try:
            self._state.refresh()
        except (Problem, OSError):
            self._state.texts = dict.fromkeys(KINDS)
            for kind, path in self._state.paths.items():
                try:
                    self._state.texts[kind] = read_text(path) if path.exists() else None
                except (Problem, OSError) as exc:
                    yield path.name, _message(exc)
        for kind, path in self._state.paths.items():
            try:
                self._state.entries(kind)
            except Problem as exc:
                self._state.texts[kind] = None
                yield path.name, _message(exc)


def _sound(path: Path) -> Iterator[Assertion | str]:
    if not path.is_file():
        return
    try:
        with closing(LineTail(path, Assertion).read()[1]) as parts:
            for part in parts:
                yield f"line {part.line}: {part.message}" if isinstance(part, Problem) else part.record
    except (Problem, OSError) as exc:
        yield _message(exc)


def _message(error: Problem | OSError) -> str:
    if isinstance(error, Problem):
        return f"{error.where}: {error.message}" if error.where else error.message
    return error.strerror or "it cannot be read"


def address_of(subject: Subject) -> str:
    """Return the name of a value in an address: keys may hold anything."""
    return hashlib.sha256("\0".join(subject).encode("utf-8", "replace")).hexdigest()[:16]


def value_text(fact: Assertion) -> str:
    """Return the value of a fact as text, cut where it is long."""
    return shorten(render_value(file_value(fact.value)), _VALUE_CHARS)


def belief(fact: Assertion, now: datetime) -> float | None:
    """Return the confidence of a fact now; None of a retraction, or if it holds no more."""
    if not fact.confidence or (fact.valid_until is not None and fact.valid_until < now):
        return None
    return confidence_at(fact.confidence, fact.content_type, fact.asserted_at, now)


def _reader(shelf: Shelf, user: str) -> MemoryReader:
    return shelf.get_reader(("memory", user), lambda: MemoryReader(shelf.turns(user)))


def load_memory(shelf: Shelf, query: PageQuery) -> SimpleNamespace:
    """The page of a memory. Raises UsageError: its place is no number."""
    user = query.parameters["user"]
    now = shelf.store.clock()
    shelf.turns(user)
    memory = _reader(shelf, user)
    with memory.guard:
        memory.read(now)
        settled = [record for record in reversed(memory.log.conflicts) if record.status == "resolved"]
        held = {remembered.subject for remembered in memory.values}
        settled_part = RowsPage(settled, _MOST_CONFLICTS)
        standing = RowsPage(memory.contradictions, _MOST_CONFLICTS)
        return SimpleNamespace(
            user=user,
            users=shelf.users(),
            values=query.part(memory.values, _PAGE_ROWS),
            contradicted=standing.total,
            open=[_standing(contradiction) for contradiction in standing],
            settled=[_settled(record, memory.log) for record in settled_part],
            conflicts_left=standing.left + settled_part.left,
            former=RowsPage([subject for subject in memory.subjects() if subject not in held], _PAGE_ROWS),
            problems=memory.problems,
            lines=None if memory.lines is None else RowsPage(memory.lines[::-1], _PAGE_ROWS),
        )


def load_value(shelf: Shelf, query: PageQuery) -> SimpleNamespace:
    """The page of a value. Raises NotFoundError: nothing was ever said of it."""
    user = query.parameters["user"]
    address = query.parameters["value"]
    now = shelf.store.clock()
    store = shelf.turns(user)
    memory = _reader(shelf, user)
    with memory.guard:
        memory.read(now)
        current = next(
            (remembered for remembered in memory.values if address_of(remembered.subject) == address), None
        )
        named = [subject for subject in memory.subjects() if address_of(subject) == address]
        if not named and current is None:
            raise NotFoundError(f"nothing was ever said of {address[:80]}", where=str(store.home))
        subject = named[0] if named else current.subject  # type: ignore[union-attr]  # it is there
        assertions = memory.log.of(subject)
        ids = {assertion.id for assertion in assertions}
        conflicts = [
            _standing(contradiction)
            for contradiction in memory.contradictions
            if contradiction.subject == subject
        ]
        for record in memory.log.conflicts:
            if record.status == "resolved" and {record.fact_a, record.fact_b} & ids:
                conflicts.append(_settled(record, memory.log))
        return SimpleNamespace(
            user=user,
            key=subject.key(user),
            subject=subject,
            current=current,
            decay=DECAYS.get(current.fact.content_type, DECAYS["default"]) if current else None,
            history=RowsPage(assertions[::-1], _MOST_HISTORY),
            plot=_plot(assertions[-_MOST_HISTORY:], current, now),
            conflicts=conflicts[:_MOST_CONFLICTS],
            problems=memory.problems,
        )


def _standing(contradiction: Contradiction) -> SimpleNamespace:
    """A contradiction that stands: what holds, and what is against it."""
    sides = (contradiction.winner, contradiction.rival)
    return SimpleNamespace(
        id=contradiction.conflict_id, subject=contradiction.subject, sides=sides, settled=None, missing=()
    )


def _settled(record: Conflict, log: MemoryLog) -> SimpleNamespace:
    """A settled one: what the log has of both sides in the order of the record, and what holds instead."""
    sides = [fact for id_ in (record.fact_a, record.fact_b) if (fact := log.get(id_)) is not None]
    return SimpleNamespace(
        id=record.conflict_id,
        subject=sides[0].subject if sides else None,
        sides=sides,
        settled=log.get(record.resolution_fact or ""),
        missing=log.missing_facts(record),
    )


def _plot(assertions: Sequence[Assertion], current: Remembered | None, now: datetime) -> Plot | None:
    """
    Return a plot of the confidence of what was said last, from the first time that anything was said until
    soon.
    """
    by_time = sorted(assertions, key=lambda assertion: assertion.asserted_at)
    if not by_time:
        return None
    first = by_time[0].asserted_at
    last = now + timedelta(days=_AHEAD_DAYS)
    if first >= last:
        return None
    past = []
    ahead = []
    for assertion, following in zip(by_time, [*by_time[1:], None], strict=True):
        end = last if following is None else following.asserted_at
        if assertion.valid_until is not None:
            end = min(end, assertion.valid_until)
        if assertion.confidence and end > assertion.asserted_at:
            past.append(
                _curve(
                    assertion, assertion.asserted_at, min(end, max(now, assertion.asserted_at)), first, last
                )
            )
            if end > now:
                ahead.append(_curve(assertion, max(now, assertion.asserted_at), end, first, last))
    lines = [PlotLine("so far", "one", past)]
    if current is not None and ahead:
        lines.append(PlotLine("from now on, if nothing is said", "ahead", ahead))
    rows = [
        (f"{assertion.asserted_at:%Y-%m-%d %H:%M}", f"{assertion.confidence:.2f}") for assertion in by_time
    ]
    return Plot(
        id="confidence",
        title="How far what was said last is believed",
        lines=lines,
        top="1.0",
        bottom="0",
        marks=[(50.0, "0.5"), (20.0, "0.8")],
        ends=(f"{first:%Y-%m-%d}", f"{last:%Y-%m-%d}"),
        now=share_of((now - first).total_seconds(), (last - first).total_seconds()),
        heads=("said", "confidence then"),
        rows=rows,
    )


def _curve(
    assertion: Assertion, start: datetime, end: datetime, first: datetime, last: datetime
) -> list[Point]:
    whole = (last - first).total_seconds()
    points = []
    for step in range(_STEPS + 1):
        at = start + (end - start) * (step / _STEPS)
        sure = confidence_at(assertion.confidence, assertion.content_type, assertion.asserted_at, at)
        points.append((share_of((at - first).total_seconds(), whole), 100 * (1 - sure)))
    return points
