"""What the words of a query stand for among the things of its session: lists, names, pronouns. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from panda.language.claims import is_plural
from panda.language.items import Item, Mention, find_mentions, find_pronouns, says_only
from panda.language.words import split_terms, split_words
from panda.session.carry import Carry, Entity
from panda.session.registry import is_active, names

_MOST_OPTIONS = 12


@dataclass(frozen=True)
class Reference:
    """Words of a query that stand for something."""

    words: str  # as they stand
    start: int  # where they begin
    refs: tuple[str, ...] = ()  # what they mean; empty if that is open, or nothing that is there fits
    options: tuple[str, ...] = ()  # entities that they may mean, the likeliest first
    ordinal: bool = False  # whether they count items of a list
    choice: bool = False  # whether they ask for one of those that they mean, as "which one"


def items_of(carry: Carry) -> tuple[list[Item], list[Item]]:
    """The list that was shown last, in its order, and everything else that was spoken of."""
    known = {one.ref: one for one in carry.registry.records}
    listed = [
        Item(one.ref, known[one.ref].label if one.ref in known else "", one.text, _type(known.get(one.ref)))
        for one in carry.registry.listing.items
    ]
    listed_refs = {one.ref for one in listed}
    return listed, [
        Item(one.ref, one.label, "", _type(one)) for ref, one in known.items() if ref not in listed_refs
    ]


def _type(one: Entity | None) -> str:
    return one.type if one is not None and one.type != "item" else ""


def mentions_of(query: str, carry: Carry) -> list[Mention]:
    """The words of a query that mean things of its session by place, description or name, dropped or not."""
    items, others = items_of(carry)
    nouns = {
        term
        for word in split_words(carry.registry.listing.about)
        if is_plural(word.lower())
        for term in split_terms(word)
    }
    aside = [one.ref for one in carry.registry.records if one.state != "active"]
    return find_mentions(query, items, others, nouns=nouns, aside=aside)


def find_references(query: str, carry: Carry) -> list[Reference]:
    """
    The references of a query to what the session has talked about.

    Returns:
        Words and what they mean, in order. A name that stands in the query in full is no reference.
    """
    labels = {one.ref: one.label for one in carry.registry.records}
    found = []
    for one in mentions_of(query, carry):
        meant = _settled(one, carry)
        if not (
            one.how == "named"
            and any(names(query, labels.get(ref, "")) for ref in (*meant.refs, *meant.options))
        ):
            found.append(Reference(one.words, one.start, meant.refs, meant.options, one.how == "counted"))
    for pronoun in find_pronouns(query):
        end = pronoun.start + len(pronoun.words)
        if all(end <= one.start or pronoun.start >= one.start + len(one.words) for one in found):
            refs, options = _meant_by(pronoun.kind, pronoun.words, carry)
            if refs or options or pronoun.kind != "which":
                found.append(
                    Reference(pronoun.words, pronoun.start, refs, options, choice=pronoun.kind == "which")
                )
    return sorted(found, key=lambda one: one.start)


def _settled(one: Mention, carry: Carry) -> Mention:
    """A mention with what only the session knows of it: what was spoken of since, what is active."""
    if one.refs:
        return one
    listing = carry.registry.listing
    if one.how == "counted":
        spoken = (recent.entities_mentioned for recent in reversed(carry.recent_turns))
        pair = next((refs for refs in spoken if len(refs) == 2), ())
        return replace(one, refs=pair, options=listing.refs) if one.words[:4].lower() == "both" else one
    if one.how == "named":
        known = {entity.ref: entity for entity in carry.registry.records}
        active = [ref for ref in one.options if ref in known and is_active(known[ref], carry)]
        order = sorted(active or one.options, key=lambda ref: known[ref].turns[-1:], reverse=True)
        return replace(
            one, refs=tuple(order) if len(order) == 1 else (), options=tuple(order[:_MOST_OPTIONS])
        )
    left = (
        tuple(ref for ref in one.options if ref not in _talked_about(carry)) if one.is_rest else one.options
    )
    return replace(one, refs=left if len(left) == 1 else (), options=left or one.options)


def _meant_by(kind: str, words: str, carry: Carry) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """What a pronoun means, and what it may mean."""
    listing = carry.registry.listing
    known = {one.ref: one for one in carry.registry.records if one.state != "dropped"}
    if kind == "which":
        recent = any(one.turn == listing.turn for one in carry.recent_turns)
        return (listing.refs, ()) if recent and listing.is_list else ((), ())
    salient = tuple(_salient(carry, known))
    if kind == "one":
        return (salient if len(salient) == 1 else ()), salient
    whole = bool(listing.items) and listing.turn == carry.head and words[:3].lower() != "one"
    return (listing.refs if whole else ()), listing.refs or salient


def replace_references(query: str, references: Sequence[Reference], carry: Carry) -> str:
    """
    The query with each resolved reference replaced by the names that it stands for.

    Args:
        references: As find_references gives them, perhaps with refs that a choice has added.
    """
    labels = {one.ref: one.label for one in carry.registry.records}
    for one in reversed(references):
        said = [labels[ref] for ref in one.refs if ref in labels]
        if said:
            text = " and ".join(said) if len(said) < 3 else f"{', '.join(said[:-1])} and {said[-1]}"
            text = f"{one.words[:5]} of {text}" if one.choice else text
            text += "'s" if one.words.lower() in ("its", "their") else ""
            query = query[: one.start] + text + query[one.start + len(one.words) :]
    return query


def follow_up(query: str, references: Sequence[Reference], carry: Carry) -> str | None:
    """
    What a query that only names another thing asks: what was asked of the last thing.

    Args:
        query: The raw query, as "And the last one?".

    Returns:
        The last query that asked something of a thing, with the names of the new one; None if this query
        asks by itself, or none before it did.
    """
    if not any(one.refs for one in references) or not _is_bare(query, references):
        return None
    for recent in reversed(carry.recent_turns):
        before = find_references(recent.user, carry)
        if not _is_bare(recent.user, before):
            meant = [one for one in before if one.refs]
            refs = tuple(dict.fromkeys(ref for one in references for ref in one.refs))
            asked = [replace(meant[0], refs=refs)] if len(meant) == 1 else []
            return replace_references(recent.user, asked, carry) if asked else None
    return None


def _is_bare(query: str, references: Sequence[Reference]) -> bool:
    """Whether a query says nothing besides its references."""
    return bool(references) and says_only(
        query, [(one.start, one.start + len(one.words)) for one in references]
    )


def _talked_about(carry: Carry) -> set[str]:
    """What the turns after the list spoke of, one thing at a time."""
    listing = carry.registry.listing
    later = [one for one in carry.recent_turns if listing.turn is None or one.turn > listing.turn]
    spoken = ([ref for ref in recent.entities_mentioned if ref in listing.refs] for recent in later)
    return {refs[0] for refs in spoken if len(refs) == 1}


def _salient(carry: Carry, known: Mapping[str, Entity]) -> list[str]:
    """What "it" may mean: what the newest turn that spoke of anything was asked about, else told of."""
    for recent in reversed(carry.recent_turns):
        asked = [ref for ref in recent.asked_about if ref in known]
        found = [ref for ref in recent.entities_mentioned if ref in known]
        listing = carry.registry.listing
        if asked and (recent.turn != listing.turn or asked[0] in listing.refs):
            return asked
        if found:
            return found[:_MOST_OPTIONS]
    return []
