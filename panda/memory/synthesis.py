"""What is known now within a scope: one entry an entity and relation, contradictions shown (S2). Pure."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise
from typing import Any

from panda.documents.text import nearest
from panda.documents.times import render_time
from panda.errors import UsageError
from panda.memory.fact import canonical_json
from panda.store.fact import SCOPES, Conflict, Fact, Scope, Subject, entity_name, read_time

CONTRADICTED = "CONTRADICTED"
"""The mark beside whatever something contradicts."""
_BEFORE_ALL = (-2, 0)


@dataclass(frozen=True)
class SynthesisRequest:
    scope: Scope  # matched exactly
    entity: str | None = None  # only this entity, normalised; None for all
    relation: str | None = None  # only this relation; None for all
    min_confidence: float | None = None  # least confidence of an entry's winner; None for any
    include_expired: bool = False  # whether facts past their end compete too
    as_of: datetime | None = None  # the instant that expiry is judged by; None for the present


def read_scope(value: object) -> Scope:
    for scope in SCOPES:
        if value == scope:
            return scope
    raise ValueError(f"{str(value)[:60]!r} is no scope: {', '.join(SCOPES)}")


def _share(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError(f"the least confidence is no number: {str(value)[:60]!r}")
    if not 0 <= value <= 1:
        raise ValueError(f"the least confidence is {str(value)[:60]}, not from 0 to 1")
    return float(value)


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise ValueError(f"{str(value)[:60]} is no text")
    return value


def _relation(value: object) -> str:
    if not _text(value).strip():
        raise ValueError("the relation is blank")
    return _text(value)


def _flag(value: object) -> bool:
    if not isinstance(value, bool):
        raise ValueError(f"{str(value)[:60]!r} is neither true nor false")
    return value


_FIELDS: Mapping[str, tuple[Callable[[Any], object], str, Mapping[str, object], str]] = {
    "scope": (read_scope, "string", {"enum": list(SCOPES)}, "Matched exactly."),
    "entity": (
        lambda value: entity_name(_text(value)),
        *("string", {"pattern": r"\S"}, "Only this entity, such as user:default."),
    ),
    "relation": (_relation, "string", {"pattern": r"\S"}, "Only this relation; case-sensitive."),
    "min_confidence": (
        _share,
        *("number", {"minimum": 0, "maximum": 1}, "Least confidence of an entry."),
    ),
    "include_expired": (_flag, "boolean", {}, "Whether facts past their valid_until count."),
    "as_of": (
        lambda value: read_time(_text(value)),
        *("string", {"format": "date-time"}, "The instant that expiry is judged by, the present if absent."),
    ),
}
"""How each field is read, its JSON type, what else its schema says, and what it means."""

REQUEST_SCHEMA: Mapping[str, Any] = {
    "type": "object",
    "properties": {
        name: {"type": kind if name == "scope" else [kind, "null"], **rest, "description": what}
        for name, (_, kind, rest, what) in _FIELDS.items()
    },
    "required": ["scope"],
    "additionalProperties": False,
}
"""JSON Schema of a request."""


def parse_request(raw: object, *, where: str = "") -> SynthesisRequest:
    """
    A request of JSON values, checked the same way from shell, HTTP and MCP; null counts as not given.
    UsageError names the field, *where* put before, as "--" for options.
    """
    if not isinstance(raw, Mapping):
        raise UsageError("the request is no JSON object", where="body", fix='send {"scope": "local"}')
    for key in raw:
        if key not in _FIELDS:
            fix = nearest(str(key), _FIELDS, f"known fields: {', '.join(_FIELDS)}")
            raise UsageError(f"unknown field {str(key)[:60]!r}", where=f"{where}{str(key)[:60]}", fix=fix)
    given = {key: value for key, value in raw.items() if value is not None}
    if "scope" not in given:
        fix = f"give one of {', '.join(SCOPES)}"
        raise UsageError("the scope is missing", where=f"{where}scope", fix=fix)
    values: dict[str, Any] = {}
    for key, value in given.items():
        try:
            values[key] = _FIELDS[key][0](value)
        except ValueError as exc:
            raise UsageError(str(exc), where=where + key.replace("_", "-" if where else "_")) from exc
    return SynthesisRequest(**values)


def settle(facts: Mapping[str, Fact], conflicts: Iterable[Conflict]) -> list[tuple[Subject, Fact]]:
    """
    Each fact of one scope with what it competes for, a resolution fact once for each of the facts that it
    settles (design "Resolved"). Of the two facts of a resolved conflict, which counts if they have one
    subject and the resolution is there, one that says otherwise is left out; a retraction never is.
    """
    settled: dict[str, list[tuple[str, ...]]] = {}
    for conflict in set(conflicts):
        named = tuple(one for one in (conflict.fact_a, conflict.fact_b) if one in facts)
        resolution = conflict.resolution_fact
        if conflict.status == "resolved" and resolution in facts and any(one != resolution for one in named):
            settled.setdefault(str(resolution), []).append(named)
    if not settled:
        return [(fact.subject, fact) for fact in facts.values()]
    homes = _find_homes(facts, settled)
    lost: set[tuple[Subject, str]] = set()
    for resolution, pairs in settled.items():
        for named in pairs:
            for one in named:
                if facts[one].value.key != facts[resolution].value.key and facts[one].confidence > 0:
                    lost |= {(subject, one) for subject in _shared_home(homes, facts, resolution, named)}
    placed = ((at, fact) for fact in facts.values() for at in homes.get(fact.id, {fact.subject}))
    return [(subject, fact) for subject, fact in placed if (subject, fact.id) not in lost]


def _find_homes(
    facts: Mapping[str, Fact], settled: Mapping[str, list[tuple[str, ...]]]
) -> dict[str, set[Subject]]:
    """
    One may settle a conflict that another is part of, so those that depend on no other come first; those in a
    circle stay where they are.
    """
    homes: dict[str, set[Subject]] = {}
    pending = dict(settled)
    while ready := [
        resolution
        for resolution, pairs in pending.items()
        if not any(one in pending and one != resolution for named in pairs for one in named)
    ]:
        for resolution in ready:
            found = (_shared_home(homes, facts, resolution, named) for named in pending[resolution])
            homes[resolution] = set().union(*found) or {facts[resolution].subject}
        for resolution in ready:
            del pending[resolution]
    return homes


def _shared_home(
    homes: Mapping[str, set[Subject]], facts: Mapping[str, Fact], resolution: str, named: tuple[str, ...]
) -> set[Subject]:
    return set.intersection(*(homes.get(one, {facts[one].subject}) for one in named if one != resolution))


@dataclass(frozen=True, slots=True)
class Entry:
    entity: str  # normalised
    relation: str  # as written
    winner: Fact  # the most credible fact
    alternative: Fact | None  # the most credible one that says otherwise; None if nothing does

    def to_json(self) -> dict[str, object]:
        entry: dict[str, object] = {
            "entity": self.entity,
            "relation": self.relation,
            "scope": self.winner.scope,
            "value": self.winner.value.to_json(),
            "confidence": self.winner.confidence,
            "hlc": self.winner.hlc,
            "contradicted": self.alternative is not None,
        }
        if self.alternative is not None:
            entry["alt_value"] = self.alternative.value.to_json()
            entry["alt_confidence"] = self.alternative.confidence
        return entry


@dataclass(frozen=True)
class Envelope:
    summary: tuple[Entry, ...]  # by confidence, then clock, highest first; then by entity and relation
    synthesized_at: datetime  # the instant that expiry was judged by
    scope: str  # the scope asked for
    fact_count: int  # facts that competed for the entries, those of filtered ones included
    filtered_count: int  # entries left out because their winner is below the least confidence

    @property
    def contradiction_count(self) -> int:
        return sum(entry.alternative is not None for entry in self.summary)

    def to_json(self) -> dict[str, object]:
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
    The current state of a scope (S2 §16.2, design "Scope synthesis"): one entry for each entity and relation
    that a live fact speaks of, with the winner and the best of what says otherwise. The same for every order
    of the input, repetitions included; the request's own instant goes before *now*.
    """
    at = request.as_of or now
    contenders = find_contenders(facts, conflicts, request, now=at)
    entries = [Entry(*one[1:], ranked[0], find_alternative(ranked)) for one, ranked in contenders.items()]
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
) -> dict[Subject, list[Fact]]:
    """
    The live facts of a scope that compete for each entity and relation, the winner first, then by falling
    rank; a fact that settles a conflict stands with the facts that it settles. `min_confidence` and `as_of`
    are passed over.
    """
    placed = settle({fact.id: fact for fact in facts if fact.scope == request.scope}, conflicts)
    wanted = [
        (subject, fact)
        for subject, fact in placed
        if request.entity in (None, subject.entity)
        and request.relation in (None, subject.relation)
        and not subject.is_system
    ]
    silenced: dict[Subject, tuple[int, int]] = {}
    for subject, fact in wanted:
        if fact.confidence == 0 and fact.reading > silenced.get(subject, _BEFORE_ALL):
            silenced[subject] = fact.reading
    found: dict[Subject, list[Fact]] = {}
    for subject, fact in wanted:
        alive = request.include_expired or fact.valid_until is None or fact.valid_until >= now
        if alive and fact.reading > silenced.get(subject, _BEFORE_ALL):
            found.setdefault(subject, []).append(fact)
    return {subject: rank(group) for subject, group in found.items()}


def rank(facts: Sequence[Fact]) -> list[Fact]:
    """Live facts of one subject by confidence, then clock, highest first, then by value and id."""
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
