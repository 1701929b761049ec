"""Settled contradictions: where the fact that settles one belongs, and which facts it ends. Pure."""

from collections.abc import Iterable, Mapping

from panda.memory.scope_facts import Conflict, Fact

Triple = tuple[str, str]


def settle(facts: Mapping[str, Fact], conflicts: Iterable[Conflict]) -> list[tuple[Triple, Fact]]:
    """
    Facts with the entity and relation that they compete for, settled losers left out.

    Args:
        facts: The facts of one scope by id.
        conflicts: Conflict records, of this and other scopes; only resolved ones whose resolution fact is
            among the facts count, and only if the facts they name are of one entity and relation.

    Returns:
        Each fact with its own entity and relation, but a resolution fact with those of the facts that it
        settles (once for each, if it settles several). Of the two facts of a resolved conflict, one that says
        otherwise than the resolution is left out; a retraction never is. No order is meant.

    Source:
        Design "Resolved".
    """
    settled: dict[str, list[tuple[str, ...]]] = {}
    for conflict in set(conflicts):
        named = tuple(one for one in (conflict.fact_a, conflict.fact_b) if one in facts)
        resolution = conflict.resolution_fact
        if conflict.status == "resolved" and resolution in facts and any(one != resolution for one in named):
            settled.setdefault(str(resolution), []).append(named)
    if not settled:
        return [(fact.triple, fact) for fact in facts.values()]
    homes = _find_homes(facts, settled)
    lost: set[tuple[Triple, str]] = set()
    for resolution, pairs in settled.items():
        for named in pairs:
            for one in named:
                if facts[one].value.key != facts[resolution].value.key and facts[one].confidence > 0:
                    lost |= {(triple, one) for triple in _shared_home(homes, facts, resolution, named)}
    return [
        (triple, fact)
        for fact in facts.values()
        for triple in homes.get(fact.id, {fact.triple})
        if (triple, fact.id) not in lost
    ]


def _find_homes(
    facts: Mapping[str, Fact], settled: Mapping[str, list[tuple[str, ...]]]
) -> dict[str, set[Triple]]:
    """
    The entities and relations that resolution facts belong to. One may settle a conflict that another is part
    of, so those that depend on no other come first; those in a circle stay where they are.
    """
    homes: dict[str, set[Triple]] = {}
    pending = dict(settled)
    while ready := [
        resolution
        for resolution, pairs in pending.items()
        if not any(one in pending and one != resolution for named in pairs for one in named)
    ]:
        for resolution in ready:
            found: set[Triple] = set()
            for named in pending[resolution]:
                found |= _shared_home(homes, facts, resolution, named)
            homes[resolution] = found or {facts[resolution].triple}
        for resolution in ready:
            del pending[resolution]
    return homes


def _shared_home(
    homes: Mapping[str, set[Triple]], facts: Mapping[str, Fact], resolution: str, named: tuple[str, ...]
) -> set[Triple]:
    """What all facts of a conflict compete for, the resolution itself apart; empty if they never met."""
    return set.intersection(*(homes.get(one, {facts[one].triple}) for one in named if one != resolution))
