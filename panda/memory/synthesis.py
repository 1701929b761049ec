"""What is known now within a scope: one entry an entity and relation, contradictions shown (S2). Pure."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from itertools import pairwise
from typing import Annotated, Any, TypeVar

from msgspec import UNSET, Meta, UnsetType
from msgspec.structs import force_setattr

from panda.documents.record_codec import Record, decode
from panda.documents.times import render_time
from panda.errors import Problem, UsageError
from panda.memory.fact_reader import canonical_json
from panda.store.fact_records import (
    SCOPES,
    Conflict,
    Fact,
    Filled,
    Scope,
    Subject,
    Value,
    entity_name,
    read_time,
)

_F = TypeVar("_F", bound=Fact)
_Share = Annotated[float, Meta(ge=0, le=1)]
_Count = Annotated[int, Meta(ge=0)]
CONTRADICTED = "CONTRADICTED"
"""The mark beside whatever something contradicts."""
_BEFORE_ALL = (-2, 0)


class SynthesisRequest(Record, frozen=True):
    """What is asked of a scope."""

    scope: Scope  # matched exactly
    entity: Filled | None = None  # only this one, as user:default; None for all
    relation: Filled | None = None  # only this one, case-sensitive; None for all
    min_confidence: _Share | None = None  # least confidence of an entry's winner; None for any
    include_expired: bool | None = False  # whether facts past their valid_until compete too
    as_of: Annotated[str, Meta(extra_json_schema={"format": "date-time"})] | None = None
    """The instant that expiry is judged by; None for the present."""

    def __post_init__(self) -> None:
        if self.entity is not None:
            force_setattr(self, "entity", entity_name(self.entity))
        if self.as_of is not None:
            read_time(self.as_of, "as_of: ")


def read_scope(value: object) -> Scope:
    for scope in SCOPES:
        if value == scope:
            return scope
    raise ValueError(f"{str(value)[:60]!r} is no scope: {', '.join(SCOPES)}")


def parse_request(raw: object, *, where: str = "") -> SynthesisRequest:
    """A request of JSON values, null for what is not given; UsageError names the field behind *where*."""
    if not isinstance(raw, Mapping):
        raise UsageError("the request is no JSON object", where="body", fix='send {"scope": "local"}')
    values = {_plain(key): _plain(value) for key, value in raw.items() if value is not None}
    try:
        return decode(SynthesisRequest, values, where="request")
    except Problem as exc:
        key = exc.key or exc.message.partition(":")[0]
        raise UsageError(
            exc.message, where=where + key.replace("_", "-" if where else "_"), fix=exc.fix
        ) from exc


def _plain(value: Any) -> Any:
    """A text without half surrogate pairs, which no record can hold."""
    return value.encode("utf-8", "backslashreplace").decode() if isinstance(value, str) else value


def settle(facts: Mapping[str, _F], conflicts: Iterable[Conflict]) -> list[tuple[Subject, _F]]:
    """
    Each fact of one scope with what it competes for, a resolution fact once for each of the facts that it
    settles (design "Resolved"). Of the two facts of a resolved conflict, which counts if they have one
    subject and the resolution is there, one that says otherwise is left out; a retraction never is.
    """
    settled: dict[str, list[tuple[str, ...]]] = {}
    for conflict in set(conflicts):
        named = tuple(fact_id for fact_id in (conflict.fact_a, conflict.fact_b) if fact_id in facts)
        resolution = conflict.resolution_fact
        if (
            conflict.status == "resolved"
            and resolution in facts
            and any(fact_id != resolution for fact_id in named)
        ):
            settled.setdefault(str(resolution), []).append(named)
    if not settled:
        return [(fact.subject, fact) for fact in facts.values()]
    homes = _find_homes(facts, settled)
    lost: set[tuple[Subject, str]] = set()
    for resolution, pairs in settled.items():
        for named in pairs:
            for fact_id in named:
                if facts[fact_id].value.key != facts[resolution].value.key and facts[fact_id].confidence > 0:
                    lost |= {(subject, fact_id) for subject in _shared_home(homes, facts, resolution, named)}
    placed = ((at, fact) for fact in facts.values() for at in homes.get(fact.id, {fact.subject}))
    return [(subject, fact) for subject, fact in placed if (subject, fact.id) not in lost]


def _find_homes(
    facts: Mapping[str, Fact], settled: Mapping[str, list[tuple[str, ...]]]
) -> dict[str, set[Subject]]:
    """
    Return the subjects of each resolution, those that others rest on first; those in a circle stay where they
    are.
    """
    homes: dict[str, set[Subject]] = {}
    pending = dict(settled)
    while ready := [
        resolution
        for resolution, pairs in pending.items()
        if not any(fact_id in pending and fact_id != resolution for named in pairs for fact_id in named)
    ]:
        for resolution in ready:
            shared_homes = (_shared_home(homes, facts, resolution, named) for named in pending[resolution])
            homes[resolution] = set().union(*shared_homes) or {facts[resolution].subject}
        for resolution in ready:
            del pending[resolution]
    return homes


def _shared_home(
    homes: Mapping[str, set[Subject]], facts: Mapping[str, Fact], resolution: str, named: tuple[str, ...]
) -> set[Subject]:
    return set.intersection(
        *(homes.get(fact_id, {facts[fact_id].subject}) for fact_id in named if fact_id != resolution)
    )


class Entry(Record, frozen=True):
    """The most credible value of an entity and relation, and the most credible one that says otherwise."""

    entity: str  # normalised
    relation: str  # as written
    scope: Scope
    value: Value
    confidence: _Share
    hlc: str | None
    contradicted: bool
    alt_value: Value | UnsetType = UNSET
    alt_confidence: _Share | UnsetType = UNSET


class Envelope(Record, frozen=True):
    """What is known within a scope."""

    summary: tuple[Entry, ...]  # by confidence, then clock, highest first; then by entity and relation
    synthesized_at: Annotated[str, Meta(extra_json_schema={"format": "date-time"})]
    scope: Scope  # the scope asked for
    fact_count: _Count  # facts that competed for the entries, those of filtered ones included
    contradiction_count: _Count
    filtered_count: _Count  # entries left out because their winner is below the least confidence


def synthesize(
    facts: Iterable[Fact], conflicts: Iterable[Conflict], request: SynthesisRequest, *, now: datetime
) -> Envelope:
    """
    The current state of a scope (S2 §16.2, design "Scope synthesis"): one entry for each entity and relation
    that a live fact speaks of, with the winner and the best of what says otherwise. The same for every order
    of the input, repetitions included; the request's own instant goes before *now*.
    """
    at = read_time(request.as_of) if request.as_of else now
    contenders = find_contenders(facts, conflicts, request, now=at)
    least = request.min_confidence or 0
    included = [(subject, ranked) for subject, ranked in contenders.items() if ranked[0].confidence >= least]
    included.sort(key=lambda pair: (_strength(pair[1][0]), pair[0].entity, pair[0].relation))
    summary = tuple(_entry(subject, ranked) for subject, ranked in included)
    return Envelope(
        summary=summary,
        synthesized_at=render_time(at),
        scope=request.scope,
        fact_count=sum(map(len, contenders.values())),
        contradiction_count=sum(entry.contradicted for entry in summary),
        filtered_count=len(contenders) - len(included),
    )


def _entry(subject: Subject, ranked: Sequence[Fact]) -> Entry:
    winner = ranked[0]
    other = find_alternative(ranked)
    return Entry(
        entity=subject.entity,
        relation=subject.relation,
        scope=winner.scope,
        value=winner.value,
        confidence=winner.confidence,
        hlc=winner.hlc,
        contradicted=other is not None,
        alt_value=UNSET if other is None else other.value,
        alt_confidence=UNSET if other is None else other.confidence,
    )


def find_contenders(
    facts: Iterable[Fact], conflicts: Iterable[Conflict], request: SynthesisRequest, *, now: datetime
) -> dict[Subject, list[Fact]]:
    """Return the facts that compete for each entity and relation; what settles something stands with it."""
    groups: dict[Subject, list[Fact]] = {}
    for subject, fact in settle({fact.id: fact for fact in facts if fact.scope == request.scope}, conflicts):
        is_asked_for = request.entity in (None, subject.entity) and request.relation in (
            None,
            subject.relation,
        )
        if is_asked_for and not subject.is_system:
            groups.setdefault(subject, []).append(fact)
    past = bool(request.include_expired)
    ranked = ((at, compete(group, now, include_expired=past)) for at, group in groups.items())
    return {subject: live for subject, live in ranked if live}


def compete(facts: Sequence[_F], now: datetime, *, include_expired: bool = False) -> list[_F]:
    """The facts of one subject that nothing said later took back, live ones alone, the winner first."""
    silenced = max((fact.reading for fact in facts if fact.confidence == 0), default=_BEFORE_ALL)
    live = (fact for fact in facts if include_expired or fact.valid_until is None or fact.valid_until >= now)
    return rank([fact for fact in live if fact.reading > silenced])


def rank(facts: Sequence[_F]) -> list[_F]:
    """Live facts of one subject by confidence, then clock, highest first, then by value and id."""
    if len(facts) <= 1:
        return list(facts)
    by_strength = sorted(facts, key=_strength)
    if all(_strength(a) != _strength(b) for a, b in pairwise(by_strength)):
        return by_strength
    return sorted(facts, key=lambda fact: (*_strength(fact), canonical_json(fact.value), fact.id))


def find_alternative(ranked: Sequence[_F]) -> _F | None:
    """The best of ranked facts whose value differs from that of the first; None if all agree."""
    return next((fact for fact in ranked if fact.value.key != ranked[0].value.key), None)


def _strength(fact: Fact) -> tuple[float, int, int]:
    milliseconds, counter = fact.reading
    return -fact.confidence, -milliseconds, -counter
