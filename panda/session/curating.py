"""Which entities a query keeps, demotes or drops, by rule. Pure."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from panda.language.stemming import split_terms
from panda.session.clipping import clip
from panda.session.entities import CLEARED, names
from panda.session.values import Carry, Curation, Entity, Judged
from panda.session.words import excluded_words, kept_words, starts_over, without_exclusions

_QUOTED_CHARS, _REASON_CHARS = 80, 160
_FILLERS = frozenset(split_terms("the a an any all that this those these please one ones option more and or"))
_REFERS = re.compile(
    r"\b(?:ones?|it|them|those|these|first|second|third|fourth|fifth|last|latter|former)\b", re.IGNORECASE
)


def curate(query: str, carry: Carry, mentioned: Sequence[str] = ()) -> Curation:
    """
    What a query decides on the entities of its session.

    Args:
        query: The raw query.
        carry: What the session carries.
        mentioned: Refs that its references mean.

    Returns:
        Exclusions ("no cod"), removals ("forget the HP"), what is kept, what comes back because it is named,
        and whether everything goes; each with the user's words as the reason.
    """
    records = carry.registry.records
    words = starts_over(query)
    if words:
        return Curation(clear_all=True, reason=f"the user said “{words}”")
    demoted: dict[str, str] = {}
    dropped: dict[str, str] = {}
    excluded: list[str] = []
    for action, what, clause in excluded_words(query):
        found = _meant(what, records, mentioned)
        excluded += [one.ref for one in found]
        target = dropped if action == "drop" else demoted
        target |= {one.ref: _reason(clause) for one in found if action == "drop" or one.state == "active"}
    kept: dict[str, str] = {}
    for what, clause in kept_words(query):
        kept |= {one.ref: _reason(clause) for one in _meant(what, records, mentioned)}
    for one in records:
        if one.state != "active" and one.ref not in excluded and _is_named(one, query, mentioned):
            kept.setdefault(one.ref, "the user names it again")
    for ref in (*demoted, *dropped):
        kept.pop(ref, None)
    for ref in dropped:
        demoted.pop(ref, None)
    return Curation(retained=_judged(kept), demoted=_judged(demoted), dropped=_judged(dropped))


def with_written(rules: Curation, written: Iterable[Mapping[str, str]], carry: Carry, query: str) -> Curation:
    """
    A curation by rule with what a model added to it.

    Args:
        rules: What the rules decided; it is not out-voted.
        written: {ref, action, reason} as the model wrote them; refs that are not there are passed over. A
            demoted entity comes back only if the user names it.
        carry: What the session carries.
        query: The raw query.
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


def _meant(what: str, records: Sequence[Entity], mentioned: Sequence[str]) -> list[Entity]:
    """The entities that excluded or kept words are about: those whose labels hold most of them in a row."""
    wanted = [term for term in split_terms(what) if term not in _FILLERS]
    by_reference = [one for one in records if one.ref in mentioned]
    if not wanted or _REFERS.search(what):
        return by_reference
    for size in range(len(wanted), 0, -1):
        for start in range(len(wanted) - size + 1):
            part = set(wanted[start : start + size])
            found = [one for one in records if part <= set(split_terms(f"{one.label} {one.type}"))]
            if found:
                return found
    return []


def _is_named(one: Entity, query: str, mentioned: Sequence[str]) -> bool:
    return one.ref in mentioned or names(query, one.label)


def _reason(clause: str) -> str:
    return f"the user said “{clip(clause, _QUOTED_CHARS)}”"


def _judged(found: dict[str, str]) -> tuple[Judged, ...]:
    return tuple(Judged(ref=ref, reason=reason) for ref, reason in found.items())
