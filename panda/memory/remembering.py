"""Writing a user's memory: the log first, then the lines concerned of the memory files (design §3)."""

import os
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager

from panda.documents.times import Clock
from panda.errors import NotFoundError
from panda.memory.assertions import Assertion, Statement
from panda.memory.hlc import tick
from panda.memory.keys import memory_key, split_key, typed_value
from panda.memory.log import MemoryLog, Triple
from panda.memory.projection import KINDS, Projection
from panda.memory.scope_facts import Conflict
from panda.memory.showing import Showing
from panda.memory.shown import Comparison
from panda.storage.files import append_json_lines, held_lock, write_atomic
from panda.storage.layout import Layout

_EVERYWHERE: Triple = ("", "", "")


class Memory:
    """
    The memory of one user, for writing. Every operation holds the user's memory lock, takes in what was
    edited by hand since, and either happens as a whole or not at all.

    Args:
        layout: Where the store is.
        user: Whose memory.
        clock: Gives the instant of writing.
        wait_seconds: How long to wait for the lock.
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
            StoreError: A file cannot be read or written.
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
            StoreError: A file cannot be written.

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
            settled: Conflict records.
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
            StoreError: A file cannot be read.
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
