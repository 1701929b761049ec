"""The memory of a user: what it says now, and how it is written."""

import os
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import datetime

from panda.documents.memory_file import is_statement, render_value, statement_key
from panda.documents.times import Clock
from panda.errors import FileFormatError, NotFoundError
from panda.memory.confidence import SAID_BY_USER, confidence_at
from panda.memory.fact import Assertion, Conflict, Fact, Statement, tick
from panda.memory.files import KINDS, Comparison, Projection, Showing, Standing
from panda.memory.keys import (
    file_value,
    is_system,
    memory_key,
    split_key,
    typed_value,
)
from panda.memory.log import MemoryLog, Triple
from panda.memory.staging import Action, Kind, StagedValue, Value
from panda.memory.synthesis import CONTRADICTED, find_alternative
from panda.memory.value import FactValue
from panda.storage.files import append_json_lines, held_lock, write_atomic
from panda.storage.layout import Layout

_EVERYWHERE: Triple = ("", "", "")


class Memory:
    """
    The memory of one user, for writing. Every operation holds the user's memory lock, takes in what was
    edited by hand since, and either happens as a whole or not at all.

    Args:
        on_wait: Told once who holds it, if waiting is needed.
    """

    def __init__(
        self,
        layout: Layout,
        user: str,
        clock: Clock,
        wait_seconds: float,
        on_wait: Callable[[str], None] | None = None,
    ) -> None:
        self.user = user
        self._layout = layout
        self._clock = clock
        self._wait_seconds = wait_seconds
        self._on_wait = on_wait
        self._state = Projection(layout, user)
        self.taken_in: tuple[Assertion, ...] = ()
        """What the last operation made of edits by hand."""

    @contextmanager
    def held(self) -> Iterator[MemoryLog]:
        """
        The lock, with the log as it is once edits by hand are taken in.

        Raises:
            LockHeldError: Another process kept the lock.
            FileFormatError: The log or a memory file is corrupt.
        """
        with held_lock(
            self._layout.memory_lock(self.user),
            holder=f"memory of {self.user} (pid {os.getpid()})",
            wait_seconds=self._wait_seconds,
            on_wait=self._on_wait,
        ):
            self._state.refresh()
            self.taken_in = () if self._state.is_settled else tuple(self._take_in())
            yield self._state.log

    def take_in(self) -> tuple[Assertion, ...]:
        """
        Make assertions of what was edited by hand, and show what a crash left unshown.

        Returns:
            What was appended.

        Raises:
            LockHeldError, FileFormatError, StoreError: As for held.
        """
        with self.held():
            return self.taken_in

    def assert_all(self, statements: Sequence[Statement]) -> list[Assertion]:
        """
        Append assertions, while `held`.

        Args:
            statements: What is said, in order. One that says something else than the user said before, or
                that has another end, retracts that first.

        Returns:
            What was appended, retractions included.

        Raises:
            FileFormatError: A memory file cannot be changed; nothing was written.

        Source:
            Scope synthesis, "Contradiction".
        """
        new: list[Assertion] = []
        for statement in statements:
            self._add(new, statement)
        self.commit(new)
        return new

    def retract(self, triple: Triple, source: str) -> Assertion:
        """
        Append a retraction of all that stands for a scope, entity and relation, while `held`.

        Raises:
            NotFoundError: Nothing stands.
            FileFormatError, StoreError: As for assert_all.
        """
        standing = self._state.standing(triple, self._clock()).winner
        if standing is None:
            key = memory_key(triple[1], triple[2], self.user)
            raise NotFoundError(
                f"nothing is remembered under {key} in scope {triple[0]}",
                where=key,
                fix="see `panda memory list`",
            )
        new: list[Assertion] = []
        self._append(new, retraction(standing, source))
        self.commit(new)
        return new[0]

    def append(self, statement: Statement, settled: Callable[[Assertion], Sequence[Conflict]]) -> Assertion:
        """
        Append one assertion as it is, with conflict records that name it, while `held`.

        Raises:
            FileFormatError, StoreError: As for assert_all.
        """
        new: list[Assertion] = []
        self._append(new, statement)
        self.commit(new, settled(new[0]))
        return new[0]

    def _add(
        self,
        new: list[Assertion],
        statement: Statement,
        replaces: Callable[[Assertion], bool] = lambda other: other.is_own,
    ) -> None:
        """Queue a statement, after a retraction of what it replaces if that says something else."""
        if not statement.confidence:
            self._append(new, statement)
            return
        now = self._clock()
        standing = self._state.log.contenders(statement.triple, now=now, include_expired=True, more=new)
        former = [one for one in standing if replaces(one) and not _is_same(one, statement)]
        if former:
            self._append(new, retraction(former[0], statement.source, statement.source_turn))
        self._append(new, statement)

    def _append(self, new: list[Assertion], statement: Statement) -> None:
        now = self._clock()
        last = new[-1].fact.hlc if new else self._state.log.reading
        new.append(statement.asserted(tick(last, int(now.timestamp() * 1000)), now))

    def commit(
        self, new: Sequence[Assertion], settled: Sequence[Conflict] = (), also: Sequence[Comparison] = ()
    ) -> None:
        """
        Write assertions and conflict records, then the lines of the memory files that they change.

        Args:
            new: Assertions, in order.
            also: Keys whose lines must be looked at besides.

        Raises:
            FileFormatError, StoreError: As for assert_all.
        """
        state, now = self._state, self._clock()
        triples = [*(one.triple for one in new), *(self._triple(one) for one in also)]
        triples += [*state.log.settled_by(settled), *self._settled_among(new, settled)]
        typed = {self._triple(one): one for one in also if one.verdict == "typed"}
        showing = Showing(state)
        coming = _by_triple(new, {one.resolution_fact for one in settled})
        for triple in dict.fromkeys(triples):
            if triple[0] == "local":
                more = [*coming.get(triple, ()), *coming.get(_EVERYWHERE, ())]
                winner = next(iter(state.log.contenders(triple, now=now, more=more, settled=settled)), None)
                showing.show(triple, winner, typed.get(triple))
        texts = showing.texts()
        if state.mark is None:
            state.write_mark()
        if new:
            append_json_lines(self._layout.memory_log(self.user), [one.to_json() for one in new])
        if settled:
            append_json_lines(self._layout.conflicts_log(self.user), [one.to_json() for one in settled])
        state.log.refresh()
        for kind in KINDS:
            text = texts[kind]
            if text is not None and text != state.texts[kind]:
                write_atomic(state.paths[kind], text)
        state.texts = texts
        state.write_mark()

    def _settled_among(self, new: Sequence[Assertion], settled: Sequence[Conflict]) -> Iterator[Triple]:
        by_id = {one.fact.id: one for one in new}
        for record in settled:
            yield from (by_id[name].triple for name in (record.fact_a, record.fact_b) if name in by_id)

    def _triple(self, one: Comparison) -> Triple:
        if one.standing is not None:
            return one.standing.triple
        return ("local", *split_key(one.key, one.kind, self.user))

    def read(self) -> tuple[MemoryLog, Sequence[Assertion]]:
        """
        The log, and what taking in edits by hand would append to it; no lock is held and nothing is written.

        Raises:
            FileFormatError: The log or a memory file is corrupt.
        """
        self._state.refresh()
        return self._state.log, [] if self._state.is_settled else self._made_of(self._edits())

    def _edits(self) -> list[Comparison]:
        return [one for one in self._state.compare(self._clock()) if one.verdict != "same"]

    def _take_in(self) -> list[Assertion]:
        found = self._edits()
        new = self._made_of(found)
        self.commit(new, also=found)
        return new

    def _made_of(self, found: Sequence[Comparison]) -> list[Assertion]:
        """The assertions and retractions that edits by hand come to."""
        new: list[Assertion] = []
        for one in found:
            source = f"file:{self._state.paths[one.kind].name}"
            winner = one.standing.winner if one.standing else None
            if one.verdict == "deleted" and winner is not None:
                self._append(new, retraction(winner, source))
            elif one.verdict == "typed":
                self._add(new, self._typed(one, source), replaces=lambda other: True)
        return new

    def _typed(self, one: Comparison, source: str) -> Statement:
        assert one.entry is not None  # it was typed
        scope, entity, relation = self._triple(one)
        is_new = one.entry.is_bare or one.is_relabelled
        return Statement(
            kind=one.kind,
            entity=entity,
            relation=relation,
            value=typed_value(one.entry.value),
            source=source,
            confidence=one.typed_confidence,
            scope=scope,
            source_turn=None if is_new else one.entry.source_turn,
            asserted_at=None if is_new else one.entry.updated_at,
        )


def retraction(of: Assertion, source: str, source_turn: int | None = None) -> Statement:
    """What takes back an assertion, and with it all that was said before of the same thing."""
    fact = of.fact
    return Statement(
        kind=of.kind,
        entity=fact.entity,
        relation=fact.relation,
        value=fact.value,
        source=source,
        confidence=0.0,
        scope=fact.scope,
        source_turn=source_turn,
        content_type=of.content_type,
    )


def _is_same(one: Assertion, statement: Statement) -> bool:
    return (one.fact.value.key, one.fact.valid_until) == (statement.value.key, statement.valid_until)


def _by_triple(new: Sequence[Assertion], named: Collection[str | None]) -> dict[Triple, list[Assertion]]:
    """Assertions by what they are about; those that settle something under _EVERYWHERE."""
    found: dict[Triple, list[Assertion]] = {}
    for one in new:
        found.setdefault(_EVERYWHERE if one.fact.id in named else one.triple, []).append(one)
    return found


def apply_staged(
    layout: Layout, user: str, staged: Sequence[StagedValue], clock: Clock, wait_seconds: float
) -> list[Assertion]:
    """
    Write staged values of a turn to the user's log and memory files.

    Args:
        staged: What the turn staged.

    Returns:
        What was appended: for each value a retraction of the user's own earlier, different one, if there is
        one, then the assertion. Nothing for a value that this turn has asserted before. Values that
        are added to a list or taken from it leave the rest of the list as it is by then.

    Raises:
        LockHeldError: Another process kept the lock.
        FileFormatError: The log or a memory file is corrupt; nothing was written.

    Source:
        Design §3, S2 "Contradiction".
    """
    if not staged:
        return []
    memory = Memory(layout, user, clock, wait_seconds)
    with memory.held() as log:
        statements = [_statement(one, log, clock()) for one in staged]
        return memory.assert_all([one for one in statements if one is not None and not _was_said(log, one)])


def take_in_edits(layout: Layout, user: str, clock: Clock, wait_seconds: float) -> Projection | None:
    """
    Make assertions of what a user edited by hand, before a turn begins. What is corrupt is left for the phase
    that reads it to tell.

    Returns:
        The memory as it is then, while the lock was held; None if it is corrupt.

    Raises:
        LockHeldError: Another process kept the lock.
    """
    memory = Projection(layout, user)
    if not layout.user(user).is_dir():
        memory.refresh()
        return memory
    with suppress(FileFormatError), Memory(layout, user, clock, wait_seconds).held():
        memory.refresh()
        return memory
    return None


def listed(values: Value | None, staged: Value, action: Action) -> Value:
    """
    A list with values added to it, or without them.

    Args:
        values: What holds: a list, one value, or None for nothing.
        staged: What is added or removed.

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


def _statement(staged: StagedValue, log: MemoryLog, now: datetime) -> Statement | None:
    """What a staged value comes to as things stand; None if there is nothing left to do."""
    value, action, source = staged.value, staged.action, f"turn:{staged.source_turn}"
    winner = next(iter(log.contenders(("local", staged.entity, staged.relation), now=now)), None)
    if action in ("adds", "removes"):
        value = listed(winner.fact.value.v if winner else None, value, action)
        action = "sets" if value else "retracts"
    if action == "retracts":
        return retraction(winner, source, staged.source_turn) if winner is not None else None
    return Statement(
        kind=staged.kind,
        entity=staged.entity,
        relation=staged.relation,
        value=typed_value(value),
        source=source,
        confidence=SAID_BY_USER,
        source_turn=staged.source_turn,
        content_type=staged.content_type,
    )


def _was_said(log: MemoryLog, statement: Statement) -> bool:
    return any(
        one.fact.confidence > 0
        and one.fact.source == statement.source
        and one.fact.value.key == statement.value.key
        for one in log.of(statement.triple)
    )


@dataclass(frozen=True)
class Remembered:
    """One key and what holds of it."""

    kind: Kind
    scope: str  # local, team, company or public
    entity: str  # normalised
    relation: str  # as written
    key: str  # as the memory file has it
    value: FactValue  # what holds
    start: float | None  # confidence when it was said; None if a memory file gives none
    content_type: str  # how it ages
    at: datetime | None  # when it was said; None if unknown
    source: str | None
    source_turn: int | None  # turn in which it was said
    expired: bool  # whether it held until some instant that is past
    fact: Fact | None  # the fact in the log; None if it is typed by hand and not taken in yet
    alternative: Fact | None  # the best live fact that says otherwise; None if nothing contradicts
    corrects: str = ""  # what the user had said before, if this is a statement that replaced it

    @property
    def text(self) -> str:
        """The value on one line."""
        return render_value(file_value(self.value))

    @property
    def statement(self) -> str:
        """The value, and if something contradicts it, the mark and what that says: never as plain truth."""
        if self.alternative is None:
            return self.text
        other = render_value(file_value(self.alternative.value))
        if other == self.text:  # of another type
            return (
                f"{self.text} ({CONTRADICTED}: as {self.value.type}, also as {self.alternative.value.type})"
            )
        return f"{self.text} ({CONTRADICTED}: also {other})"

    def confidence(self, now: datetime, *, missing: float) -> float:
        """
        Confidence now; 0 once it has expired.

        Args:
            missing: What counts if none is given.
        """
        start = missing if self.start is None else self.start
        return 0.0 if self.expired else confidence_at(start, self.content_type, self.at, now)


def load_remembered(state: Projection, now: datetime) -> list[Remembered]:
    """
    All that holds, in every scope.

    Args:
        state: Log and memory files, refreshed.

    Returns:
        What preferences.md shows, then what facts.md shows, each in the order of its file; then the other
        scopes, in the order of the log. What was deleted by hand is left out.

    Raises:
        DocumentError: A memory file is corrupt.
    """
    found = [_of_file(state, one) for one in state.compare(now) if one.verdict != "deleted"]
    corrected = _corrected(state)
    found = [one and replace(one, corrects=corrected.get((one.source, one.relation), "")) for one in found]
    for triple in state.log.triples():
        if triple[0] != "local" and not (is_system(triple[1]) or is_system(triple[2])):
            standing = state.standing(triple, now)
            if standing.winner is not None:
                key = memory_key(triple[1], triple[2], state.user)
                kind: Kind = "preference" if standing.winner.kind == "preference" else "fact"
                found.append(_of_log(standing, kind, key))
    return [one for one in found if one is not None]


def _corrected(state: Projection) -> dict[tuple[str | None, str], str]:
    """What each statement took back of what the user had said before, by source and key."""
    found: dict[tuple[str | None, str], str] = {}
    for one in state.log.assertions:
        if not one.fact.confidence and is_statement(one.fact.relation) and one.source_turn is not None:
            key = statement_key(one.source_turn, 1)
            found.setdefault((one.fact.source, key), str(one.fact.value.v))
    return found


def _of_file(state: Projection, one: Comparison) -> Remembered | None:
    standing, entry = one.standing, one.entry
    if one.verdict == "stale" or entry is None:
        return _of_log(standing, one.kind, one.key) if standing else None
    known = _of_log(standing, one.kind, entry.key) if standing and one.verdict == "same" else None
    if known is not None:
        if entry.is_bare:
            return known
        given = {"start": entry.confidence, "at": entry.updated_at, "source_turn": entry.source_turn}
        return Remembered(**{**vars(known), **given})
    entity, relation = split_key(entry.key, one.kind, state.user)
    is_own = entry.is_bare or one.is_relabelled
    return Remembered(
        kind=one.kind,
        scope="local",
        entity=entity,
        relation=relation,
        key=entry.key,
        value=typed_value(entry.value),
        start=one.typed_confidence if is_own else entry.confidence,
        content_type="preference" if one.kind == "preference" else "general_fact",
        at=None if is_own else entry.updated_at,
        source=f"file:{state.paths[one.kind].name}",
        source_turn=None if is_own else entry.source_turn,
        expired=False,
        fact=None,
        alternative=None,
    )


def _of_log(standing: Standing, kind: Kind, key: str) -> Remembered | None:
    winner = standing.winner
    if winner is None:
        return None
    scope, entity, relation = standing.triple
    fact, live = winner.fact, standing.live
    return Remembered(
        kind=kind,
        scope=scope,
        entity=entity,
        relation=relation,
        key=key,
        value=fact.value,
        start=fact.confidence,
        content_type=winner.content_type or "default",
        at=winner.asserted_at,
        source=fact.source,
        source_turn=winner.source_turn,
        expired=not live,
        fact=fact,
        alternative=find_alternative([one.fact for one in live]) if live else None,
    )
