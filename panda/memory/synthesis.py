"""What is known now within a scope: one entry an entity and relation, contradictions shown (S2). Pure."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise

from panda.documents.times import render_time
from panda.memory.keys import is_system
from panda.memory.scope_facts import Conflict, Fact
from panda.memory.settling import settle
from panda.memory.synthesis_request import SynthesisRequest
from panda.memory.values import canonical_json

Triple = tuple[str, str]

CONTRADICTED = "CONTRADICTED"
"""The mark beside whatever something contradicts."""

_BEFORE_ALL = (-2, 0)


@dataclass(frozen=True, slots=True)
class Entry:
    """What is known of one entity and relation."""

    entity: str
    """Normalised."""
    relation: str
    """As written."""
    winner: Fact
    """The most credible fact."""
    alternative: Fact | None
    """The most credible one that says otherwise; None if nothing does."""

    @property
    def contradicted(self) -> bool:
        """Whether something says otherwise."""
        return self.alternative is not None

    def to_json(self) -> dict[str, object]:
        """As S2's SynthesisEntry."""
        entry: dict[str, object] = {
            "entity": self.entity,
            "relation": self.relation,
            "scope": self.winner.scope,
            "value": self.winner.value.to_json(),
            "confidence": self.winner.confidence,
            "hlc": self.winner.hlc,
            "contradicted": self.contradicted,
        }
        if self.alternative is not None:
            entry["alt_value"] = self.alternative.value.to_json()
            entry["alt_confidence"] = self.alternative.confidence
        return entry


@dataclass(frozen=True)
class Envelope:
    """The answer to a request."""

    summary: tuple[Entry, ...]
    """By confidence, then clock, highest first; then by entity and relation."""
    synthesized_at: datetime
    """The instant that expiry was judged by."""
    scope: str
    """The scope asked for."""
    fact_count: int
    """Facts that competed for the entries, those of filtered ones included."""
    filtered_count: int
    """Entries left out because their winner is below the least confidence."""

    @property
    def contradiction_count(self) -> int:
        """Entries of the summary that something contradicts."""
        return sum(entry.contradicted for entry in self.summary)

    def to_json(self) -> dict[str, object]:
        """As S2's response."""
        return {
            "summary": [entry.to_json() for entry in self.summary],
            "synthesized_at": render_time(self.synthesized_at),
            "scope": self.scope,
            "fact_count": self.fact_count,
            "contradiction_count": self.contradiction_count,
            "filtered_count": self.filtered_count,
        }


def synthesize(
    facts: Iterable[Fact], conflicts: Iterable[Conflict], request: SynthesisRequest, *, now: datetime
) -> Envelope:
    """
    The current state of a scope.

    Args:
        facts: All facts, of any scope, in any order; a fact that is there twice counts once. Ids are unique.
        conflicts: All conflict records, in any order.
        request: What is asked.
        now: The clock; the request's own instant goes before it.

    Returns:
        One entry for each entity and relation that a live fact speaks of: the winner's value, and the best of
        what says otherwise. The same for every order of the input.

    Source:
        S2 §16.2, design "Scope synthesis".
    """
    at = request.as_of or now
    contenders = find_contenders(facts, conflicts, request, now=at)
    entries = [Entry(*triple, ranked[0], find_alternative(ranked)) for triple, ranked in contenders.items()]
    least = request.min_confidence
    kept = [entry for entry in entries if least is None or entry.winner.confidence >= least]
    kept.sort(key=lambda entry: (_strength(entry.winner), entry.entity, entry.relation))
    return Envelope(
        summary=tuple(kept),
        synthesized_at=at,
        scope=request.scope,
        fact_count=sum(map(len, contenders.values())),
        filtered_count=len(entries) - len(kept),
    )


def find_contenders(
    facts: Iterable[Fact], conflicts: Iterable[Conflict], request: SynthesisRequest, *, now: datetime
) -> dict[Triple, list[Fact]]:
    """
    The live facts of a scope that compete for each entity and relation.

    Args:
        facts: As for synthesize.
        conflicts: As for synthesize.
        request: What is asked; its `min_confidence` and `as_of` are not looked at.
        now: The instant that expiry is judged by.

    Returns:
        Entity and relation to the facts, the winner first, then by falling rank; no list is empty. A fact
        that settles a conflict stands with the facts that it settles.
    """
    placed = settle({fact.id: fact for fact in facts if fact.scope == request.scope}, conflicts)
    wanted = [
        (triple, fact)
        for triple, fact in placed
        if request.entity in (None, triple[0])
        and request.relation in (None, triple[1])
        and not (is_system(triple[0]) or is_system(triple[1]))
    ]
    silenced: dict[Triple, tuple[int, int]] = {}
    for triple, fact in wanted:
        if fact.confidence == 0 and fact.reading > silenced.get(triple, _BEFORE_ALL):
            silenced[triple] = fact.reading
    found: dict[Triple, list[Fact]] = {}
    for triple, fact in wanted:
        alive = request.include_expired or fact.valid_until is None or fact.valid_until >= now
        if alive and fact.reading > silenced.get(triple, _BEFORE_ALL):
            found.setdefault(triple, []).append(fact)
    return {triple: rank(group) for triple, group in found.items()}


def rank(facts: Sequence[Fact]) -> list[Fact]:
    """
    Facts of one entity and relation, the most credible first.

    Args:
        facts: n live facts, in any order.

    Returns:
        All of them: by confidence, then clock, highest first; then by value and id, so that no order of the
        input matters.
    """
    if len(facts) == 1:
        return list(facts)
    by_strength = sorted(facts, key=_strength)
    if all(_strength(a) != _strength(b) for a, b in pairwise(by_strength)):
        return by_strength
    return sorted(facts, key=lambda fact: (*_strength(fact), canonical_json(fact.value), fact.id))


def find_alternative(ranked: Sequence[Fact]) -> Fact | None:
    """The best of ranked facts whose value differs from that of the first; None if all agree."""
    return next((fact for fact in ranked if fact.value.key != ranked[0].value.key), None)


def _strength(fact: Fact) -> tuple[float, int, int]:
    milliseconds, counter = fact.reading
    return -fact.confidence, -milliseconds, -counter
