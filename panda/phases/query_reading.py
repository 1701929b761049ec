"""The reading of a turn's query: each part from one source, none of which another phase asks again."""

from dataclasses import replace
from typing import cast

from panda.choosing.clauses import clause_options
from panda.choosing.decision import Option
from panda.language.conversation import asks_for_details, named_turns, plain_recap, wants_whole
from panda.language.periods import find_periods
from panda.language.reading import (
    Action,
    Agreement,
    Clause,
    Days,
    Excluded,
    Reading,
    Referred,
    check_reading,
    overall_mood,
)
from panda.language.statements import find_statements
from panda.language.wording import plain_agreement, plain_mood
from panda.phases.session_references import References
from panda.phases.turn import Turn
from panda.recipes.executor import Reply
from panda.session.carry import Carry, Curation, Judged
from panda.session.curation import curate
from panda.session.fold import limits_of

_MOST_ENTITIES = 24


def read_query(turn: Turn, references: References, reply: Reply) -> Reading:
    """
    What the query of a turn means.

    Args:
        turn: The running turn, in phase 0.
        references: What its references mean.
        reply: What the recipe of phase 0 chose: moods, agreement, looking back.
    """
    query = turn.query
    pending = turn.carry.pending_clarification
    is_open = pending is not None and pending.status == "open"
    clauses, telling = _clauses(query, reply)
    curation = curate(query, turn.carry, references.refs)
    is_recap = (
        plain_recap(query) if _is_undecided(reply, "looks_back") else reply.values["looks_back"] == "recap"
    )
    if is_recap:  # whatever it looks like, it asks
        clauses = telling = tuple(replace(one, mood="asks") for one in clauses)
    return Reading(
        mood=overall_mood(clauses),
        clauses=clauses,
        references=(*(Referred(one.words, one.refs) for one in references.found), *_turns_named(query)),
        exclusions=_exclusions(curation),
        clears=_quoted(curation.reason or "") if curation.clear_all else None,
        periods=_periods(turn),
        limits=limits_of(query, turn.carry.constraints),
        agreement=_agreement(query, reply) if is_open else None,
        recap=is_recap,
        all=wants_whole(query),
        details=asks_for_details(query),
        statements=tuple(find_statements(query, telling)),
    )


def written_reading(turn: Turn, reply: Reply) -> Reading | None:
    """
    The reading that a model wrote, which nothing overrides; None if the reply has none.

    Args:
        turn: The running turn, in phase 0; what could not be kept of the reading becomes its warnings.
        reply: The reply of phase 0.
    """
    if not isinstance(reply.values.get("reading"), dict):
        return None
    pending = turn.carry.pending_clarification
    states = {one.ref: one.state for one in turn.carry.registry.records}
    reading, dropped = check_reading(
        reply.values["reading"],
        query=turn.query,
        refs=states,
        is_open=pending is not None and pending.status == "open",
    )
    for part in dropped:
        turn.warn(f"reading: dropped {part}")
    decided = {one.ref for one in reading.exclusions}
    spoken = dict.fromkeys(ref for one in reading.references for ref in one.refs)
    back = [Excluded(ref, "keep", "") for ref in spoken if states[ref] != "active" and ref not in decided]
    return replace(
        reading,
        references=(*reading.references, *_turns_named(turn.query)),
        details=asks_for_details(turn.query),
        exclusions=(*reading.exclusions, *back),
    )


def entity_options(carry: Carry) -> list[Option]:
    """The entities that a written reading may name: the list shown last by its numbers, then the newest."""
    place = {one.ref: n for n, one in enumerate(carry.registry.listing.items, 1)}
    newest = sorted(carry.registry.records, key=lambda one: one.turns[-1:], reverse=True)
    ordered = sorted(newest, key=lambda one: place.get(one.ref, len(place) + 1))
    listed = {ref: f"number {n} of the last list, " for ref, n in place.items()}
    return [
        Option(one.ref, f"{one.label} ({listed.get(one.ref, '')}{one.state})")
        for one in ordered[:_MOST_ENTITIES]
    ]


def curation_of_reading(reading: Reading) -> Curation:
    """What a reading decides on the entities of the session; the user's words are the reasons."""
    judged = {
        action: tuple(
            Judged(ref=one.ref, reason=_reason(one.words))
            for one in reading.exclusions
            if one.action == action
        )
        for action in ("keep", "demote", "drop")
    }
    return Curation(
        retained=judged["keep"],
        demoted=judged["demote"],
        dropped=judged["drop"],
        clear_all=reading.clears is not None,
        reason=_reason(reading.clears) if reading.clears else None,
    )


def _turns_named(query: str) -> list[Referred]:
    return [Referred(words, (f"turn:{number}",)) for words, number in named_turns(query).items()]


def _clauses(query: str, reply: Reply) -> tuple[tuple[Clause, ...], tuple[Clause, ...]]:
    """The clauses with their moods, and as what is told reads them: in doubt one is answered and noted."""
    offered = clause_options(query)
    if _is_undecided(reply, "mood"):
        clauses = tuple(Clause(one.text, plain_mood(one.text)) for one in offered)
        return clauses, clauses
    orders, asks, tells = (set(reply.values.get(name) or ()) for name in ("orders", "asks", "tells"))
    asks |= {one.id for one in offered if one.text.rstrip().endswith("?")}
    clauses = tuple(
        Clause(one.text, "orders" if one.id in orders else "asks" if one.id in asks else "tells")
        for one in offered
    )
    telling = tuple(
        replace(clause, mood="tells") if one.id in tells else clause
        for one, clause in zip(offered, clauses, strict=True)
    )
    return clauses, telling


def _is_undecided(reply: Reply, name: str) -> bool:
    """Whether nothing could tell: no encoder, or a model that left it out."""
    choice = reply.choices.get(name)
    return choice is None or choice.scorer == "prior"


def _exclusions(curation: Curation) -> tuple[Excluded, ...]:
    parts: tuple[tuple[Action, tuple[Judged, ...]], ...] = (
        ("keep", curation.retained),
        ("demote", curation.demoted),
        ("drop", curation.dropped),
    )
    return tuple(Excluded(one.ref, action, _quoted(one.reason)) for action, judged in parts for one in judged)


def _quoted(reason: str) -> str:
    return reason.partition("“")[2].removesuffix("”")


def _reason(words: str) -> str:
    return f"the user said “{words}”" if words else "the user names it again"


def _agreement(query: str, reply: Reply) -> Agreement:
    undecided = _is_undecided(reply, "agreement")
    return plain_agreement(query) if undecided else cast(Agreement, reply.values["agreement"])


def _periods(turn: Turn) -> tuple[Days, ...]:
    found = find_periods(turn.query, turn.context.front.created_at)
    return tuple(Days(str(one.start), str(one.end), turn.query[slice(*one.words)]) for one in found)
