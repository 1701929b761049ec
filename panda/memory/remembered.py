"""What a user's memory says now, edits by hand included, whether or not they are in the log yet."""

from dataclasses import dataclass, replace
from datetime import datetime

from panda.documents.memory_file import is_statement, render_value, statement_key
from panda.memory.confidence import confidence_at
from panda.memory.keys import (
    file_value,
    is_system,
    memory_key,
    split_key,
    typed_value,
)
from panda.memory.projection import Projection
from panda.memory.scope_facts import Fact
from panda.memory.shown import Comparison, Standing
from panda.memory.staging import Kind
from panda.memory.synthesis import CONTRADICTED, find_alternative
from panda.memory.values import FactValue


@dataclass(frozen=True)
class Remembered:
    """One key and what holds of it."""

    kind: Kind
    """preference or fact."""
    scope: str
    """local, team, company or public."""
    entity: str
    """Normalised."""
    relation: str
    """As written."""
    key: str
    """As the memory file has it."""
    value: FactValue
    """What holds."""
    start: float | None
    """Confidence when it was said; None if a memory file gives none."""
    content_type: str
    """How it ages."""
    at: datetime | None
    """When it was said; None if unknown."""
    source: str | None
    """Who says so."""
    source_turn: int | None
    """Turn in which it was said."""
    expired: bool
    """Whether it held until some instant that is past."""
    fact: Fact | None
    """The fact in the log; None if it is typed by hand and not taken in yet."""
    alternative: Fact | None
    """The best live fact that says otherwise; None if nothing contradicts."""
    corrects: str = ""
    """What the user had said before, if this is a statement that replaced it."""

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
            now: The present.
            missing: What counts if none is given.
        """
        start = missing if self.start is None else self.start
        return 0.0 if self.expired else confidence_at(start, self.content_type, self.at, now)


def load_remembered(state: Projection, now: datetime) -> list[Remembered]:
    """
    All that holds, in every scope.

    Args:
        state: Log and memory files, refreshed.
        now: The present.

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
