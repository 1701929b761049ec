"""The pages of memory: what holds and how far it is to be believed, what contradicts it, and its history."""

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from panda.documents.memory_file import render_value
from panda.documents.text import shorten
from panda.errors import NotFoundError
from panda.memory.confidence import DECAYS, Decay, confidence_at
from panda.memory.conflicts import Contradiction
from panda.memory.fact import file_value
from panda.memory.log import MemoryLog
from panda.memory.memory import Remembered
from panda.store.fact import Assertion, Conflict, Subject
from panda.view.memory_reader import MemoryReader, MemoryState
from panda.view.plots import Line, Plot, share_of
from panda.view.shelf import Query, Shelf

PAGE_ROWS = 200
_VALUE_CHARS = 400
_MOST_CONFLICTS = 50
_MOST_HISTORY = 300
_AHEAD_DAYS = 90
_STEPS = 40


@dataclass(frozen=True)
class Saying:
    """What somebody said, as of now."""

    id: str
    text: str
    confidence: float | None  # when it was said; None for a retraction
    now: float | None  # now, as far as it still holds
    source: str  # who says so
    turn: int | None  # the turn in which it was said
    at: datetime | None
    until: datetime | None  # the last instant at which it holds
    clock: str


@dataclass(frozen=True)
class ValueRow:
    """One value that holds."""

    address: str  # of its page
    key: str
    kind: str  # preference or fact
    scope: str
    saying: Saying
    content_type: str  # how it ages
    is_expired: bool
    is_contradicted: bool
    is_typed: bool  # whether it was typed by hand and is not in the log yet


@dataclass(frozen=True)
class Against:
    """A contradiction, both sides of it, and how it was settled if it was."""

    id: str
    key: str
    scope: str
    address: str  # of the page of the value
    sides: tuple[Saying, ...]  # what holds first; of a settled one in the order of the record
    settled: Saying | None  # what holds instead; None while it stands
    missing: tuple[str, ...] = ()  # facts that the record names and the log does not have


@dataclass(frozen=True)
class MemoryPage:
    """What the page of a memory shows."""

    user: str
    users: list[str]
    values: tuple[ValueRow, ...]
    total: int  # number of values
    place: int  # number of this page, from 1
    places: int  # number of pages
    contradicted: int  # number of contradictions that stand
    open: tuple[Against, ...]
    settled: tuple[Against, ...]  # the newest first
    conflicts_left: int  # contradictions that are not shown
    former: tuple[tuple[str, str, str], ...]  # address, key and scope of what is said no longer
    former_left: int
    problems: tuple[tuple[str, str], ...]
    lines: tuple[Saying, ...] | None  # lines of a damaged log, newest first
    lines_left: int


@dataclass(frozen=True)
class ValuePage:
    """What the page of one value shows."""

    user: str
    key: str
    subject: Subject
    current: ValueRow | None  # what holds; None if nothing does
    decay: Decay | None  # how that ages
    history: tuple[Saying, ...]  # newest first
    history_left: int
    plot: Plot | None  # how far it was and will be believed
    conflicts: tuple[Against, ...]
    problems: tuple[tuple[str, str], ...]


def address_of(subject: Subject) -> str:
    """What names a value in an address: keys may hold anything."""
    return hashlib.sha256("\0".join(subject).encode("utf-8", "replace")).hexdigest()[:16]


def read_memory(shelf: Shelf, user: str) -> MemoryState:
    """A user's memory as it is now. Raises NotFoundError: the store has nothing of them."""
    shelf.turns(user)
    reader = shelf.kept(("memory", user), lambda: MemoryReader(shelf.turns(user)))
    return reader.read(shelf.store.clock())


def load_memory(shelf: Shelf, query: Query) -> MemoryPage:
    """The page of a memory. Raises UsageError: its place is no number."""
    user, now = (
        query.parameters.get("user") or query.fields.get("user") or shelf.store.user,
        shelf.store.clock(),
    )
    state = read_memory(shelf, user)
    place = max(1, query.number("place") or 1)
    rows = state.values[(place - 1) * PAGE_ROWS : place * PAGE_ROWS]
    standing = [_standing(one, user, now) for one in state.contradictions[:_MOST_CONFLICTS]]
    records = [one for one in reversed(state.log.conflicts) if one.status == "resolved"]
    held = {one.subject for one in state.values}
    former = [] if state.lines is not None else [one for one in _spoken(state.log) if one not in held]
    lines = None if state.lines is None else [_said(one, now) for one in reversed(state.lines)]
    left = max(0, len(state.contradictions) - _MOST_CONFLICTS) + max(0, len(records) - _MOST_CONFLICTS)
    return MemoryPage(
        user=user,
        users=shelf.users(),
        values=tuple(_row(one, now) for one in rows),
        total=len(state.values),
        place=place,
        places=_places(state),
        contradicted=len(state.contradictions),
        open=tuple(standing),
        settled=tuple(_settled(one, state.log, user, now) for one in records[:_MOST_CONFLICTS]),
        conflicts_left=left,
        former=tuple((address_of(one), one.key(user), one.scope) for one in former[:PAGE_ROWS]),
        former_left=max(0, len(former) - PAGE_ROWS),
        problems=state.problems,
        lines=None if lines is None else tuple(lines[:PAGE_ROWS]),
        lines_left=max(0, len(lines or ()) - PAGE_ROWS),
    )


def memory_places(shelf: Shelf, user: str) -> range:
    """The pages of a user's memory behind the first."""
    return range(2, _places(read_memory(shelf, user)) + 1)


def value_addresses(shelf: Shelf, user: str) -> Iterator[str]:
    """What names each value that there is a page of."""
    state = read_memory(shelf, user)
    if state.lines is None:
        subjects = dict.fromkeys([*(one.subject for one in state.values), *_spoken(state.log)])
        yield from map(address_of, subjects)


def load_value(shelf: Shelf, query: Query) -> ValuePage:
    """The page of a value. Raises NotFoundError: nothing was ever said of it."""
    user, address, now = query.parameters["user"], query.parameters["value"], shelf.store.clock()
    state = read_memory(shelf, user)
    current = next((one for one in state.values if address_of(one.subject) == address), None)
    subjects = _spoken(state.log) if state.lines is None else ()
    subject = next((one for one in subjects if address_of(one) == address), None)
    subject = subject or (current.subject if current else None)
    if subject is None:
        raise NotFoundError(f"nothing was ever said of {address[:80]}", where=str(shelf.turns(user).home))
    said = state.log.of(subject)
    row = _row(current, now) if current else None
    ids = {one.id for one in said}
    records = [one for one in state.log.conflicts if {one.fact_a, one.fact_b} & ids]
    standing = [_standing(one, user, now) for one in state.contradictions if one.subject == subject]
    settled = [_settled(one, state.log, user, now) for one in records if one.status == "resolved"]
    return ValuePage(
        user=user,
        key=subject.key(user),
        subject=subject,
        current=row,
        decay=DECAYS.get(row.content_type, DECAYS["default"]) if row else None,
        history=tuple(_said(one, now) for one in reversed(said[-_MOST_HISTORY:])),
        history_left=max(0, len(said) - _MOST_HISTORY),
        plot=_plot(said[-_MOST_HISTORY:], current, now),
        conflicts=tuple([*standing, *settled][:_MOST_CONFLICTS]),
        problems=state.problems,
    )


def _places(state: MemoryState) -> int:
    return max(1, -(-len(state.values) // PAGE_ROWS))


def _spoken(log: MemoryLog) -> list[Subject]:
    return [one for one in log.subjects() if not one.is_system]


def _row(one: Remembered, now: datetime) -> ValueRow:
    confidence = one.confidence(now, missing=0.5)
    saying = Saying(
        id=one.fact.id if one.fact else "",
        text=shorten(one.text, _VALUE_CHARS),
        confidence=one.start,
        now=confidence,
        source=one.source or "",
        turn=one.source_turn,
        at=one.at,
        until=one.fact.valid_until if one.fact else None,
        clock=one.fact.hlc or "" if one.fact else "",
    )
    return ValueRow(
        address=address_of(one.subject),
        key=one.key,
        kind=one.kind,
        scope=one.subject.scope,
        saying=saying,
        content_type=one.content_type,
        is_expired=one.expired,
        is_contradicted=one.alternative is not None,
        is_typed=one.fact is None,
    )


def _said(one: Assertion, now: datetime) -> Saying:
    confidence = None
    if one.confidence and (one.valid_until is None or one.valid_until >= now):
        confidence = confidence_at(one.confidence, one.content_type, one.asserted_at, now)
    return Saying(
        id=one.id,
        text=shorten(render_value(file_value(one.value)), _VALUE_CHARS),
        confidence=one.confidence or None,
        now=confidence,
        source=one.source or "",
        turn=one.source_turn or _turn_of(one.source),
        at=one.asserted_at,
        until=one.valid_until,
        clock=one.hlc or "",
    )


def _turn_of(source: str | None) -> int | None:
    kind, _, number = (source or "").partition(":")
    return (
        int(number) if kind == "turn" and number.isascii() and number.isdigit() and len(number) < 16 else None
    )


def _standing(one: Contradiction, user: str, now: datetime) -> Against:
    sides = (_said(one.winner, now), _said(one.rival, now))
    address = address_of(one.subject)
    return Against(one.conflict_id, one.subject.key(user), one.subject.scope, address, sides, None)


def _settled(record: Conflict, log: MemoryLog, user: str, now: datetime) -> Against:
    found = [one for one in map(log.get, (record.fact_a, record.fact_b)) if one is not None]
    resolution = log.get(record.resolution_fact or "")
    subject = found[0].subject if found else None
    return Against(
        id=record.conflict_id,
        key=subject.key(user) if subject else "",
        scope=subject.scope if subject else "",
        address=address_of(subject) if subject else "",
        sides=tuple(_said(one, now) for one in found),
        settled=_said(resolution, now) if resolution else None,
        missing=log.missing_facts(record),
    )


def _plot(said: Sequence[Assertion], current: Remembered | None, now: datetime) -> Plot | None:
    """How far what was said last was believed, from the first time that anything was said until soon."""
    by_time = sorted(said, key=lambda one: one.asserted_at)
    if not by_time:
        return None
    first, last = by_time[0].asserted_at, now + timedelta(days=_AHEAD_DAYS)
    if first >= last:
        return None
    past, ahead = [], []
    for one, following in zip(by_time, [*by_time[1:], None], strict=True):
        end = last if following is None else following.asserted_at
        if one.valid_until is not None:
            end = min(end, one.valid_until)
        if one.confidence and end > one.asserted_at:
            past.append(_curve(one, one.asserted_at, min(end, max(now, one.asserted_at)), first, last))
            if end > now:
                ahead.append(_curve(one, max(now, one.asserted_at), end, first, last))
    lines = [Line("so far", "one", tuple(past))]
    if current is not None and ahead:
        lines.append(Line("from now on, if nothing is said", "ahead", tuple(ahead)))
    rows = [(f"{one.asserted_at:%Y-%m-%d %H:%M}", f"{one.confidence:.2f}") for one in by_time]
    return Plot(
        id="confidence",
        title="How far what was said last is believed",
        lines=tuple(lines),
        top="1.0",
        bottom="0",
        marks=((50.0, "0.5"), (20.0, "0.8")),
        ends=(f"{first:%Y-%m-%d}", f"{last:%Y-%m-%d}"),
        now=share_of((now - first).total_seconds(), (last - first).total_seconds()),
        heads=("said", "confidence then"),
        rows=tuple(rows),
    )


def _curve(
    one: Assertion, start: datetime, end: datetime, first: datetime, last: datetime
) -> tuple[tuple[float, float], ...]:
    whole = (last - first).total_seconds()
    points = []
    for step in range(_STEPS + 1):
        at = start + (end - start) * (step / _STEPS)
        sure = confidence_at(one.confidence, one.content_type, one.asserted_at, at)
        points.append((share_of((at - first).total_seconds(), whole), 100 * (1 - sure)))
    return tuple(points)
