"""The memory of a user: what it says now, and how it is written, also what a turn has staged for it."""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Literal

from msgspec import structs

from panda.documents.memory_file import is_statement, render_value, statement_key
from panda.documents.record_codec import encode
from panda.documents.safe_text import one_line
from panda.errors import NotFoundError, StoreError, UsageError
from panda.memory.assertion_log import MemoryLog
from panda.memory.confidence import MISSING, SAID_BY_USER, confidence_at
from panda.memory.fact_reader import Kind, anew, asserted, tick, typed_value
from panda.memory.markdown_files import KINDS, Comparison, Projection, Standing
from panda.memory.synthesis import CONTRADICTED, find_alternative
from panda.store.fact_records import Assertion, Conflict, SaidKind, Scalar, Subject, entity_name
from panda.store.files import append_json_lines, held_lock, write_atomic
from panda.store.layout import UserStore
from panda.store.node_id import NodeKind
from panda.store.records import Staged

Action = Literal["sets", "adds", "removes", "retracts"]
"""sets: the value holds. adds, removes: of a list. retracts: what was said holds no longer."""
Plain = Scalar | tuple[Scalar, ...]
_MIN_WAIT_SECONDS = 2.0  # each turn holds the lock for a moment, which is no reason to give up at once


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
    return Staged(
        kind=kind,
        entity=about,
        relation=relation,
        value=typed_value(value),
        content_type=ages,
        source_turn=source_turn,
        text=one_line(text),
        action=action,
        told=told,
    )


class Memory:
    """
    The memory of one user, for writing. Every operation holds the user's memory lock, takes in what was
    edited by hand since, and either happens as a whole or not at all.
    """

    def __init__(self, store: UserStore, state: Projection | None = None) -> None:
        self.user = store.user
        self._store = store
        self._clock = store.clock
        self._state = state or Projection(store)
        self.taken_in: tuple[Assertion, ...] = ()
        """What the last operation made of edits by hand."""
        self.unshown: StoreError | None = None
        """Why the memory files do not show yet what the log holds; the next operation shows it."""

    @contextmanager
    def held(self) -> Iterator[MemoryLog]:
        """The lock; edits by hand are taken in, and what a crash left unshown is shown."""
        lock = self._store.memory_lock
        holder = f"memory of {self.user} (pid {os.getpid()})"
        wait_seconds = max(self._store.wait_seconds, _MIN_WAIT_SECONDS)
        with held_lock(lock, holder=holder, wait_seconds=wait_seconds):
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
        """Return the assertions of statements; nothing is written."""
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
        taken_back = self.asserted(retraction(standing, source))
        self.commit([taken_back])
        return taken_back

    def _add(self, new: list[Assertion], statement: Assertion, *, by_hand: bool = False) -> None:
        """
        Add a statement to *new*: typed *by_hand* it retracts what the file showed, else what the user said
        before.
        """
        if statement.confidence:
            standing = self._state.log.contenders(
                statement.subject, now=self._clock(), include_expired=True, more=new
            )
            new_content = (statement.value.key, statement.valid_until)
            former = (
                assertion
                for assertion in standing
                if (assertion.value.key, assertion.valid_until) != new_content
            )
            if other := next((assertion for assertion in former if by_hand or assertion.is_own), None):
                new.append(self.asserted(retraction(other, statement.source, statement.source_turn), new))
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
        state = self._state
        now = self._clock()
        then = state.log.plus(new, settled)
        typed = {comparison.subject: comparison for comparison in also if comparison.verdict == "typed"}
        subjects = [
            *(assertion.subject for assertion in new),
            *(comparison.subject for comparison in also),
            *then.settled_by(settled),
        ]
        local = dict.fromkeys(subject for subject in subjects if subject.scope == "local")
        winners = {subject: next(iter(then.contenders(subject, now=now)), None) for subject in local}
        texts = state.shown(winners, typed)
        if state.mark is None:
            state.write_mark()
        if new:
            append_json_lines(self._store.memory_log, [assertion.to_json() for assertion in new])
        if settled:
            append_json_lines(self._store.conflicts_log, [encode(record) for record in settled])
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

    def read(self) -> tuple[MemoryLog, Sequence[Assertion]]:
        """The log, and what taking in edits by hand would append to it; without lock, nothing is written."""
        self._state.refresh()
        return self._state.log, [] if self._state.is_settled else self._made_of(self._edits())

    def _edits(self) -> list[Comparison]:
        return [
            comparison for comparison in self._state.compare(self._clock()) if comparison.verdict != "same"
        ]

    def _made_of(self, edits: Sequence[Comparison]) -> list[Assertion]:
        new: list[Assertion] = []
        for comparison in edits:
            winner = comparison.standing.winner if comparison.standing else None
            if comparison.verdict == "deleted" and winner is not None:
                new.append(
                    self.asserted(retraction(winner, f"file:{self._state.paths[comparison.kind].name}"), new)
                )
            elif comparison.verdict == "typed":
                self._add(new, self._state.typed(comparison), by_hand=True)
        return new


def retraction(of: Assertion, source: str | None, source_turn: int | None = None) -> Assertion:
    """Return the assertion that retracts another, and with it all that was said before of the same thing."""
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
    assertions = Memory(store, state).assertions_of(statements)
    return (
        state.with_only([*state.log.assertions, *assertions], state.log.conflicts, store.clock())
        if assertions
        else state
    )


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
    held: tuple[Scalar, ...] = ()
    if isinstance(values, tuple):
        held = values
    elif values is not None:
        held = (values,)
    staged_values = staged if isinstance(staged, tuple) else (staged,)
    before, after = ({str(element).casefold() for element in part} for part in (held, staged_values))
    if action == "adds":
        return (*held, *(element for element in staged_values if str(element).casefold() not in before))
    return tuple(element for element in held if str(element).casefold() not in after)


def _statements(log: MemoryLog, staged: Sequence[Staged], now: datetime) -> list[Assertion]:
    assertions = filter(None, (_statement(staged_value, log, now) for staged_value in staged))
    return [
        assertion for assertion in assertions if not any(map(assertion.is_said_by, log.of(assertion.subject)))
    ]


def _statement(staged: Staged, log: MemoryLog, now: datetime) -> Assertion | None:
    value = staged.value.v
    action = staged.action
    source = NodeKind.TURN.id(staged.source_turn)
    winner = next(iter(log.contenders(Subject("local", staged.entity, staged.relation), now=now)), None)
    if action in ("adds", "removes"):
        value = listed(winner.value.v if winner else None, value, action)
        action = "sets" if value else "retracts"
    if action == "retracts":
        return retraction(winner, source, staged.source_turn) if winner is not None else None
    return Assertion(
        *("", staged.entity, staged.relation, typed_value(value), source, SAID_BY_USER, "local"),
        kind=staged.kind,
        source_turn=staged.source_turn,
        content_type=staged.content_type,
    )


@dataclass(frozen=True)
class Remembered:
    """One key and what holds of it, edits by hand included, whether or not they are in the log yet."""

    kind: Kind
    key: str  # as the memory file has it
    fact: Assertion  # what holds; without id where it is typed by hand and not taken in yet
    start: float | None  # confidence when it was said; None if a memory file gives none
    at: datetime | None  # when it was said; None if unknown
    expired: bool = False  # whether it held until some instant that is past
    alternative: Assertion | None = None  # the best live fact that says otherwise
    corrects: str = ""  # what the user had said before, if this is a statement that replaced it

    @property
    def subject(self) -> Subject:
        return self.fact.subject

    @property
    def text(self) -> str:
        return render_value(self.fact.value.v)

    @property
    def statement(self) -> str:
        """The value, and if something contradicts it, the mark and what that says: never as plain truth."""
        if self.alternative is None:
            return self.text
        other = render_value(self.alternative.value.v)
        if other == self.text:  # of another type
            other = f"as {self.fact.value.type}, also as {self.alternative.value.type}"
            return f"{self.text} ({CONTRADICTED}: {other})"
        return f"{self.text} ({CONTRADICTED}: also {other})"

    def confidence(self, now: datetime) -> float:
        """Confidence now; 0 once it has expired."""
        start = MISSING if self.start is None else self.start
        return 0.0 if self.expired else confidence_at(start, self.fact.content_type, self.at, now)


def load_remembered(state: Projection, now: datetime) -> list[Remembered]:
    """
    Return what holds, edits by hand included: what preferences.md shows, facts.md, then the other scopes.
    """
    all_remembered: list[Remembered] = []
    for comparison in state.compare(now):
        entry = comparison.entry
        if entry is not None and comparison.verdict == "typed":
            fact = state.typed(comparison)
            start = comparison.typed_confidence if comparison.is_new else entry.confidence
            all_remembered.append(
                Remembered(
                    comparison.kind, entry.key, fact, start, fact.asserted_at if fact.is_dated else None
                )
            )
        elif comparison.standing is None or comparison.verdict == "deleted":
            continue
        elif entry is None or comparison.verdict == "stale":
            all_remembered += _standing(comparison.standing, comparison.kind, comparison.key)
        else:
            for remembered in _standing(comparison.standing, comparison.kind, entry.key):
                if not entry.is_bare:
                    remembered = replace(remembered, start=entry.confidence, at=entry.updated_at)
                if not entry.is_bare and entry.source_turn != remembered.fact.source_turn:
                    fact = structs.replace(remembered.fact, source_turn=entry.source_turn)
                    remembered = replace(remembered, fact=fact)
                all_remembered.append(remembered)
    for subject in state.log.subjects():
        if subject.scope != "local" and not subject.is_system:
            all_remembered += _standing(state.standing(subject, now), None, subject.key(state.user))
    corrected: dict[tuple[str | None, str], str] = {}  # what each statement took back, by source and key
    for assertion in state.log.assertions:
        if (
            not assertion.confidence
            and is_statement(assertion.relation)
            and assertion.source_turn is not None
        ):
            corrected.setdefault(
                (assertion.source, statement_key(assertion.source_turn, 1)), str(assertion.value.v)
            )
    return [
        replace(remembered, corrects=corrected.get((remembered.fact.source, remembered.fact.relation), ""))
        for remembered in all_remembered
    ]


def _standing(standing: Standing, kind: Kind | None, key: str) -> Iterator[Remembered]:
    fact = standing.winner
    rival = find_alternative(standing.live) if standing.live else None
    if fact is not None:
        if fact.subject != standing.subject:  # it settles what is said of another
            fact = structs.replace(fact, entity=standing.subject.entity, relation=standing.subject.relation)
        kind = kind or ("preference" if fact.kind == "preference" else "fact")
        yield Remembered(
            kind,
            key,
            fact,
            start=fact.confidence,
            at=fact.asserted_at,
            expired=standing.expired,
            alternative=rival,
        )
