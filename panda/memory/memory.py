"""The memory of a user: what it says now, and how it is written, also what a turn has staged for it."""

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Literal

from panda.documents.memory_file import is_statement, render_value, statement_key
from panda.documents.records import encode
from panda.documents.text import one_line
from panda.errors import NotFoundError, StoreError, UsageError
from panda.memory.confidence import SAID_BY_USER, confidence_at
from panda.memory.fact import Kind, anew, asserted, file_value, tick, typed_value
from panda.memory.files import KINDS, Comparison, Projection, Showing, Standing, split_key
from panda.memory.log import MemoryLog
from panda.memory.synthesis import CONTRADICTED, find_alternative
from panda.store.fact import EPOCH, Assertion, Conflict, Fact, SaidKind, Scalar, Subject, Value, entity_name
from panda.store.files import append_json_lines, held_lock, write_atomic
from panda.store.layout import UserStore
from panda.store.records import Staged

Action = Literal["sets", "adds", "removes", "retracts"]
"""sets: the value holds. adds, removes: of a list. retracts: what was said holds no longer."""
Plain = Scalar | tuple[Scalar, ...]


def normalise_entity(text: str) -> str:
    """As entity_name; UsageError if it is blank."""
    try:
        return entity_name(text)
    except ValueError as exc:
        raise UsageError(str(exc), fix="name who or what it is about") from exc


def stage_value(
    *,
    user: str,
    kind: SaidKind,
    relation: str,
    value: Plain,
    text: str,
    source_turn: int,
    entity: str | None = None,
    action: Action = "sets",
    told: bool = False,
) -> Staged:
    """A value to be remembered of an entity, or of the user; writes nothing."""
    relation = one_line(relation)
    if not relation or relation.startswith("panda:"):
        raise UsageError(f"{relation!r} is no key for a memory", fix="use a word such as budget")
    if isinstance(value, str) and not value.strip():
        raise UsageError(f"the value of {relation} is blank", fix="say what to remember")
    about = normalise_entity(entity) if entity is not None else f"user:{user}"
    ages = "preference" if kind == "preference" else "general_fact"
    return Staged(kind, about, relation, typed_value(value), ages, source_turn, one_line(text), action, told)


class Memory:
    """
    The memory of one user, for writing. Every operation holds the user's memory lock, takes in what was
    edited by hand since, and either happens as a whole or not at all.
    """

    def __init__(
        self,
        store: UserStore,
        state: Projection | None = None,
    ) -> None:
        self.user = store.user
        self._layout, self._clock = store, store.clock
        self._wait_seconds = store.wait_seconds
        self._state = state or Projection(store)
        self.taken_in: tuple[Assertion, ...] = ()
        """What the last operation made of edits by hand."""
        self.unshown: StoreError | None = None
        """Why the memory files do not show yet what the log holds; the next operation shows it."""

    @contextmanager
    def held(self) -> Iterator[MemoryLog]:
        """The lock; edits by hand are taken in, and what a crash left unshown is shown."""
        with held_lock(
            self._layout.of(self.user).memory_lock,
            holder=f"memory of {self.user} (pid {os.getpid()})",
            wait_seconds=self._wait_seconds,
        ):
            self._state.refresh()
            self.taken_in = ()
            if not self._state.is_settled:
                edits = self._edits()
                self.taken_in = tuple(self._made_of(edits))
                self.commit(self.taken_in, also=edits)
            yield self._state.log

    def take_in(self) -> tuple[Assertion, ...]:
        with self.held():
            return self.taken_in

    def assert_all(self, statements: Sequence[Assertion]) -> list[Assertion]:
        """
        Append what is said, in order, while `held`; gives all that was appended. What says something else
        than the user said before, or has another end, retracts that first (S2 "Contradiction").
        """
        new = self.assertions_of(statements)
        self.commit(new)
        return new

    def assertions_of(self, statements: Sequence[Assertion]) -> list[Assertion]:
        """The same; nothing is written."""
        new: list[Assertion] = []
        for statement in statements:
            self._add(new, statement)
        return new

    def retract(self, subject: Subject, source: str) -> Assertion:
        """Append a retraction of all that stands for a subject, while `held`."""
        standing = self._state.standing(subject, self._clock()).winner
        if standing is None:
            key = subject.key(self.user)
            message = f"nothing is remembered under {key} in scope {subject.scope}"
            raise NotFoundError(message, where=key, fix="see `panda memory list`")
        new = [self.asserted(retraction(standing, source))]
        self.commit(new)
        return new[0]

    def _add(
        self,
        new: list[Assertion],
        statement: Assertion,
        replaces: Callable[[Assertion], bool] = lambda other: other.is_own,
    ) -> None:
        if statement.confidence:
            log, now = self._state.log, self._clock()
            standing = log.contenders(statement.subject, now=now, include_expired=True, more=new)
            said = (statement.value.key, statement.valid_until)
            former = [one for one in standing if (one.value.key, one.valid_until) != said]
            former = [one for one in former if replaces(one)]
            if former:
                taken_back = retraction(former[0], statement.source, statement.source_turn)
                new.append(self.asserted(taken_back, new))
        new.append(self.asserted(statement, new))

    def asserted(self, statement: Assertion, new: Sequence[Assertion] = ()) -> Assertion:
        """A statement with the next clock reading: behind *new*, else behind the log; nothing is written."""
        now = self._clock()
        last = new[-1].hlc if new else self._state.log.reading
        return asserted(statement, tick(last, int(now.timestamp() * 1000)), now)

    def commit(
        self, new: Sequence[Assertion], settled: Sequence[Conflict] = (), also: Sequence[Comparison] = ()
    ) -> None:
        """
        Write assertions and conflict records, then the lines of the memory files that they change, and those
        of *also* that must be looked at; `held`.
        """
        state, now = self._state, self._clock()
        resolutions = {one.resolution_fact for one in settled}
        subjects = [*(one.subject for one in new), *(self._subject(one) for one in also)]
        subjects += state.log.settled_by(settled)
        typed = {self._subject(one): one for one in also if one.verdict == "typed"}
        showing = Showing(state)
        coming: dict[Subject | None, list[Assertion]] = {}  # what settles something, under None
        for one in new:
            coming.setdefault(None if one.id in resolutions else one.subject, []).append(one)
        for subject in dict.fromkeys(subjects):
            if subject.scope == "local":
                more = [*coming.get(subject, ()), *coming.get(None, ())]
                winner = next(iter(state.log.contenders(subject, now=now, more=more, settled=settled)), None)
                showing.show(subject, winner, typed.get(subject))
        texts = showing.texts()
        if state.mark is None:
            state.write_mark()
        if new:
            append_json_lines(self._layout.of(self.user).memory_log, [one.to_json() for one in new])
        if settled:
            append_json_lines(self._layout.of(self.user).conflicts_log, [encode(one) for one in settled])
        state.log.refresh()
        self.unshown = None
        try:
            for kind in KINDS:
                text = texts[kind]
                if text is not None and text != state.texts[kind]:
                    write_atomic(state.paths[kind], text)
                    state.texts[kind] = text
        except StoreError as exc:  # the log has it: what is said would be told as lost, and said twice
            self.unshown = exc
        else:
            state.write_mark()

    def _subject(self, one: Comparison) -> Subject:
        if one.standing is not None:
            return one.standing.subject
        return Subject("local", *split_key(one.key, one.kind, self.user))

    def read(self) -> tuple[MemoryLog, Sequence[Assertion]]:
        """The log, and what taking in edits by hand would append to it; without lock, nothing is written."""
        self._state.refresh()
        return self._state.log, [] if self._state.is_settled else self._made_of(self._edits())

    def _edits(self) -> list[Comparison]:
        return [one for one in self._state.compare(self._clock()) if one.verdict != "same"]

    def _made_of(self, edits: Sequence[Comparison]) -> list[Assertion]:
        new: list[Assertion] = []
        for one in edits:
            source = f"file:{self._state.paths[one.kind].name}"
            if one.verdict == "deleted" and one.winner is not None:
                new.append(self.asserted(retraction(one.winner, source), new))
            elif one.verdict == "typed" and one.entry is not None:
                scope, entity, relation = self._subject(one)
                statement = Assertion(
                    *("", entity, relation, typed_value(one.entry.value), source, one.typed_confidence),
                    scope=scope,
                    kind=one.kind,
                    source_turn=None if one.is_new else one.entry.source_turn,
                    asserted_at=(not one.is_new and one.entry.updated_at) or EPOCH,
                )
                self._add(new, statement, replaces=lambda other: True)
        return new


def retraction(of: Assertion, source: str | None, source_turn: int | None = None) -> Assertion:
    """What takes back an assertion, and with it all that was said before of the same thing."""
    return anew(of, source=source, source_turn=source_turn, confidence=0.0)


def apply_staged(store: UserStore, staged: Sequence[Staged]) -> list[Assertion]:
    """
    Write staged values of a turn to the user's log and memory files, and give what was appended: for each
    value that the turn has not asserted before a retraction of the user's earlier, different one, then the
    assertion. What is added to a list or taken from it leaves the rest as it is by then.
    """
    if not staged:
        return []
    memory = Memory(store)
    with memory.held() as log:
        return memory.assert_all(_statements(log, staged, store.clock()))


def with_staged(state: Projection, store: UserStore, staged: Sequence[Staged]) -> Projection:
    """Memory as applying staged values by the clock of the store would leave it; nothing is written."""
    statements = _statements(state.log, staged, store.clock())
    said = Memory(store, state).assertions_of(statements)
    settled = state.log.conflicts
    return state.with_only([*state.log.assertions, *said], settled, store.clock()) if said else state


def _statements(log: MemoryLog, staged: Sequence[Staged], now: datetime) -> list[Assertion]:
    return [
        one
        for one in filter(None, (_statement(value, log, now) for value in staged))
        if not any(
            known.confidence > 0 and (known.source, known.value.key) == (one.source, one.value.key)
            for known in log.of(one.subject)
        )
    ]


def take_in_edits(store: UserStore) -> Projection:
    """Make assertions of what a user edited by hand; gives the memory as it was under the lock."""
    memory = Projection(store)
    if not store.home.is_dir():
        memory.refresh()
        return memory
    with Memory(store).held():
        memory.refresh()
    return memory


def listed(values: Plain, staged: Plain, action: Action) -> Plain:
    """
    A list with values added to it, or without them; *values* is what holds: a list, one value, or None.

    >>> listed(("nuts",), ("Nuts", "kiwi"), "adds"), listed("nuts", ("nuts",), "removes")
    (('nuts', 'kiwi'), ())
    """
    held = () if values is None else values if isinstance(values, tuple) else (values,)
    given = staged if isinstance(staged, tuple) else (staged,)
    if action == "adds":
        known = {str(one).casefold() for one in held}
        return (*held, *(one for one in given if str(one).casefold() not in known))
    gone = {str(one).casefold() for one in given}
    return tuple(one for one in held if str(one).casefold() not in gone)


def _statement(staged: Staged, log: MemoryLog, now: datetime) -> Assertion | None:
    value, action, source = staged.value.v, staged.action, f"turn:{staged.source_turn}"
    subject = Subject("local", staged.entity, staged.relation)
    winner = next(iter(log.contenders(subject, now=now)), None)
    if action in ("adds", "removes"):
        value = listed(winner.value.v if winner else None, value, action)
        action = "sets" if value else "retracts"
    if action == "retracts":
        return retraction(winner, source, staged.source_turn) if winner is not None else None
    return Assertion(
        *("", staged.entity, staged.relation, typed_value(value), source, SAID_BY_USER),
        scope="local",
        kind=staged.kind,
        source_turn=staged.source_turn,
        content_type=staged.content_type,
    )


@dataclass(frozen=True)
class Remembered:
    """One key and what holds of it, edits by hand included, whether or not they are in the log yet."""

    kind: Kind
    subject: Subject
    key: str  # as the memory file has it
    value: Value  # what holds
    start: float | None  # confidence when it was said; None if a memory file gives none
    content_type: str  # how it ages
    at: datetime | None  # when it was said; None if unknown
    source: str | None  # who says so
    source_turn: int | None  # turn in which it was said
    expired: bool = False  # whether it held until some instant that is past
    fact: Fact | None = None  # the fact in the log; None if it is typed by hand and not taken in yet
    alternative: Fact | None = None  # the best live fact that says otherwise; None if nothing contradicts
    corrects: str = ""  # what the user had said before, if this is a statement that replaced it

    @property
    def text(self) -> str:
        return render_value(file_value(self.value))

    @property
    def statement(self) -> str:
        """The value, and if something contradicts it, the mark and what that says: never as plain truth."""
        if self.alternative is None:
            return self.text
        other = render_value(file_value(self.alternative.value))
        if other == self.text:  # of another type
            types = f"as {self.value.type}, also as {self.alternative.value.type}"
            return f"{self.text} ({CONTRADICTED}: {types})"
        return f"{self.text} ({CONTRADICTED}: also {other})"

    def confidence(self, now: datetime, *, missing: float) -> float:
        """Confidence now; 0 once it has expired; *missing* is what it starts from if none is given."""
        start = missing if self.start is None else self.start
        return 0.0 if self.expired else confidence_at(start, self.content_type, self.at, now)


def load_remembered(state: Projection, now: datetime) -> list[Remembered]:
    """
    All that holds, in every scope, of refreshed log and files: what preferences.md shows, then what facts.md
    shows, then the other scopes; what was deleted by hand is left out.
    """
    corrected: dict[tuple[str | None, str], str] = {}  # what each statement took back, by source and key
    for one in state.log.assertions:
        if not one.confidence and is_statement(one.relation) and one.source_turn is not None:
            key = statement_key(one.source_turn, 1)
            corrected.setdefault((one.source, key), str(one.value.v))
    compared = [_of_file(state, one) for one in state.compare(now) if one.verdict != "deleted"]
    found = [
        one and replace(one, corrects=corrected.get((one.source, one.subject.relation), ""))
        for one in compared
    ]
    for subject in state.log.subjects():
        if subject.scope != "local" and not subject.is_system:
            standing = state.standing(subject, now)
            if standing.winner is not None:
                kind: Kind = "preference" if standing.winner.kind == "preference" else "fact"
                found.append(_of_log(standing, kind, subject.key(state.user)))
    return [one for one in found if one is not None]


def _of_file(state: Projection, one: Comparison) -> Remembered | None:
    standing, entry = one.standing, one.entry
    if one.verdict == "stale" or entry is None:
        return _of_log(standing, one.kind, one.key) if standing else None
    known = _of_log(standing, one.kind, entry.key) if standing and one.verdict == "same" else None
    if known is not None:
        if entry.is_bare:
            return known
        noted = entry.confidence, entry.updated_at, entry.source_turn
        return replace(known, start=noted[0], at=noted[1], source_turn=noted[2])
    return Remembered(
        kind=one.kind,
        subject=Subject("local", *split_key(entry.key, one.kind, state.user)),
        key=entry.key,
        value=typed_value(entry.value),
        start=one.typed_confidence if one.is_new else entry.confidence,
        content_type="preference" if one.kind == "preference" else "general_fact",
        at=None if one.is_new else entry.updated_at,
        source=f"file:{state.paths[one.kind].name}",
        source_turn=None if one.is_new else entry.source_turn,
    )


def _of_log(standing: Standing, kind: Kind, key: str) -> Remembered | None:
    winner = standing.winner
    if winner is None:
        return None
    live = standing.live
    return Remembered(
        kind=kind,
        subject=standing.subject,
        key=key,
        value=winner.value,
        start=winner.confidence,
        content_type=winner.content_type,
        at=winner.asserted_at,
        source=winner.source,
        source_turn=winner.source_turn,
        expired=not live,
        fact=winner,
        alternative=find_alternative(live) if live else None,
    )
