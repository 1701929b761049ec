"""Which entities of a session a query keeps, demotes, drops or brings back. Pure."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from panda.language.exclusions import find_clearing, find_exclusions, without_exclusions
from panda.session.carry import Carry, Curation, Entity, Judged, clip
from panda.session.references import items_of, mentions_of
from panda.session.registry import CLEARED, names

_QUOTED_CHARS, _REASON_CHARS = 80, 160


def curate(query: str, carry: Carry, mentioned: Sequence[str] = ()) -> Curation:
    """
    What a query decides on the entities of its session.

    Args:
        mentioned: Refs that its references mean.

    Returns:
        What is of a kind that is not wanted ("no cod"), what is removed ("forget the HP"), what is kept, what
        comes back because it is named, and whether everything goes; each with the user's words as the reason.
    """
    cleared = find_clearing(query)
    if cleared:
        return Curation(clear_all=True, reason=f"the user said “{cleared}”")
    states = {one.ref: one.state for one in carry.registry.records}
    items, others = items_of(carry)
    mentions = mentions_of(query, carry)
    found: dict[str, dict[str, str]] = {"keep": {}, "demote": {}, "drop": {}}
    decided = find_exclusions(query, [*items, *others], mentions, meant=mentioned)
    for one in decided:
        if one.ref in states and (one.action != "demote" or states[one.ref] == "active"):
            found[one.action][one.ref] = f"the user said “{clip(one.words, _QUOTED_CHARS)}”"
    spoken = {*mentioned, *(ref for one in mentions for ref in one.refs)} - {one.ref for one in decided}
    for ref, state in states.items():
        if state != "active" and ref in spoken:
            found["keep"][ref] = "the user names it again"
    return Curation(
        retained=_judged(found["keep"]), demoted=_judged(found["demote"]), dropped=_judged(found["drop"])
    )


def with_written(rules: Curation, written: Iterable[Mapping[str, str]], carry: Carry, query: str) -> Curation:
    """
    A curation by rule with what a model added to it.

    Args:
        rules: What the rules decided; it is not out-voted.
        written: {ref, action, reason} as the model wrote them; refs that are not there are passed over. A
            demoted entity comes back only if the user names it.
    """
    known = {one.ref: one for one in carry.registry.records}
    decided = {one.ref for one in (*rules.retained, *rules.demoted, *rules.dropped)}
    found: dict[str, list[Judged]] = {"retain": [], "demote": [], "drop": []}
    cleared: str | None = None
    for one in written:
        ref, action = one["ref"], one["action"]
        if action == "clear_all":
            cleared = one["reason"]
        elif ref in known and ref not in decided:
            if action == "retain" and known[ref].state != "active" and not names(query, known[ref].label):
                continue
            decided.add(ref)
            found[action].append(Judged(ref=ref, reason=clip(one["reason"], _REASON_CHARS)))
    return replace(
        rules,
        retained=(*rules.retained, *found["retain"]),
        demoted=(*rules.demoted, *found["demote"]),
        dropped=(*rules.dropped, *found["drop"]),
        clear_all=rules.clear_all or cleared is not None,
        reason=rules.reason or (clip(cleared, _REASON_CHARS) if cleared else None),
    )


def uses_excluded(texts: Iterable[str], carry: Carry) -> list[Entity]:
    """
    The excluded entities that texts of a plan name, by ref or by label.

    Args:
        texts: Goals, tasks and arguments.
        carry: With this turn's own exclusions.
    """
    excluded = [
        one
        for one in carry.registry.records
        if one.state != "active" and one.reason and CLEARED not in one.reason
    ]
    said = "\n".join(without_exclusions(text) for text in texts)
    return [one for one in excluded if one.ref in said or names(said, one.label)]


def _judged(found: dict[str, str]) -> tuple[Judged, ...]:
    return tuple(Judged(ref=ref, reason=reason) for ref, reason in found.items())
