"""What words such as "the second one" or "that Lenovo" mean, by rule where a rule can tell. Pure."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from panda.documents.evidence import find_claims
from panda.documents.listings import ListedItem, listed_items
from panda.documents.stemming import split_terms
from panda.session.entities import is_active, names, paragraphs
from panda.session.values import Carry, Entity, RecentTurn

_ORDINALS = [
    *("first", "second", "third", "fourth", "fifth", "sixth"),
    *("seventh", "eighth", "ninth", "tenth", "eleventh", "twelfth"),
]
_ORDINAL = (
    rf"(?:second[ -]to[ -]last|last but one|penultimate|{'|'.join(_ORDINALS)}|\d{{1,2}}(?:st|nd|rd|th)|"
    r"last|final|(?:middle|top|bottom)(?= one| option| item| of|[?.!,;]|$))"
)
_NOT_ITEMS = (
    r"(?:two|three|four|five|six|seven|eight|nine|ten|\d+|couple|several|"
    r"time|times|day|days|week|weeks|month|months|year|years|hour|hours|minute|minutes|night|turn|turns|question|"
    r"message|answer|half|floor|place|season|chapter|thing|step|steps|part|world|name|minute|century|few|"
    r"january|february|march|april|may|june|july|august|september|october|november|december|of)\b"
)
_LISTED = re.compile(
    r"\b(?:the )?(?P<edge>first|last) (?P<many>two|three|four|five|[2-5])(?: (?:ones|of them|options|items))?"
    rf"(?! {_NOT_ITEMS})\b|"
    rf"\b(?:the|that|this|my|your) (?P<list>{_ORDINAL}(?:(?:, | and | or |, and )(?:the )?{_ORDINAL})*)"
    rf"(?P<noun> (?!{_NOT_ITEMS}|{_ORDINAL})[a-z][\w-]*)?(?! {_NOT_ITEMS})(?!\w)|"
    r"\b(?:the )?(?:number|no\.|option|item|choice|entry|result|#) ?"
    r"(?P<number>\d{1,2}|one|two|three|four|five|six|seven|eight|nine|ten|[a-f]\b)(?![\d%$.]*\d|\w)|"
    r"(?<!\w)#(?P<hash>\d{1,2})\b|"
    r"\bthe (?P<pair>former|latter)(?: one)?\b|"
    r"\b(?P<both>both(?: of (?:them|these|those))?|all (?:two|three|four|five) of (?:them|these|those))\b",
    re.IGNORECASE,
)
_ITEM_NOUNS = frozenset(split_terms("one ones option options item items choice entry result thing"))
_SPOKEN_CHARS = 2_000
_NUMBERS = ("one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
_PRICED = re.compile(
    r"\bthe (?:(?P<low>cheaper|cheapest|least expensive|less expensive)|"
    r"(?P<high>most expensive|more expensive|dearest|priciest|pricier))(?: (?:one|option|item|[a-z]+))?\b",
    re.IGNORECASE,
)
_OTHER = re.compile(r"\bthe other(?: (?:one|option|item))?(?= |[?.!,;]|$)", re.IGNORECASE)
_NAMED = re.compile(
    r"\b(?:that|this|the|That|This|The) (?P<name>[A-Z][\w-]*(?: [A-Z0-9][\w-]*)*)(?: one)?|"
    r"\b(?:[Tt]hat|[Tt]his) (?P<noun>(?!(?:one|is|was|time|way)\b)[a-z][\w-]+(?: [a-z][\w-]+)?)\b"
)
_SINGLE = re.compile(r"\b(?:it|its|this one|that one|the same one|the one)\b", re.IGNORECASE)
_PLURAL = re.compile(r"\b(?:they|them|their|these|those|one of them)\b", re.IGNORECASE)


@dataclass(frozen=True)
class Reference:
    """Words of a query that stand for something, and what a rule makes of them."""

    words: str
    """As they stand."""
    start: int
    """Where they begin."""
    refs: tuple[str, ...] = ()
    """What they mean; empty if no rule can tell, or nothing that is there fits."""
    options: tuple[str, ...] = ()
    """Entities that they may mean, the likeliest first."""
    ordinal: bool = False
    """Whether they count items of a list."""


@dataclass(frozen=True)
class _Listing:
    """The last list that the user was shown."""

    refs: tuple[str, ...]
    """Entities, in order."""
    items: tuple[ListedItem, ...]
    """What was said of each."""
    is_newest: bool = False
    """Whether the last turn showed it."""


def find_references(query: str, carry: Carry) -> list[Reference]:
    """
    The references of a query to what the session has talked about.

    Args:
        query: The raw query.
        carry: What the session carries.

    Returns:
        Words and what they mean, in order. A name that stands in the query in full is no reference.
    """
    listing = last_listing(carry)
    spoken = " ".join(f"{one.user} {one.assistant[:_SPOKEN_CHARS]}" for one in carry.recent_turns)
    nouns = _ITEM_NOUNS | set(split_terms(spoken))
    known = {one.ref: one for one in carry.registry.records if one.state != "dropped"}
    found: list[Reference] = []

    def free(match: re.Match[str]) -> bool:
        return all(match.end() <= o.start or match.start() >= o.start + len(o.words) for o in found)

    for match in _LISTED.finditer(query):
        refs = _counted(match, listing.refs) or _pair(match, carry)
        noun = match["noun"] or ""
        words = match[0] if set(split_terms(noun)) <= nouns else match[0].removesuffix(noun)
        found.append(Reference(words, match.start(), refs, listing.refs, ordinal=True))
    for match in filter(free, _PRICED.finditer(query)):
        found.append(Reference(match[0], match.start(), _priced(match, listing), listing.refs))
    for match in filter(free, _OTHER.finditer(query)):
        left = [ref for ref in listing.refs if ref not in _talked_about(carry, listing)]
        refs = tuple(left) if len(left) == 1 else ()
        found.append(Reference(match[0], match.start(), refs, tuple(left) or listing.refs))
    for match in filter(free, _NAMED.finditer(query)):
        words = match["name"] or match["noun"]
        meant = _called(words, list(known.values()), carry)
        if meant and not any(names(query, one.label) for one in meant):
            refs = (meant[0].ref,) if len(meant) == 1 else ()
            found.append(Reference(match[0], match.start(), refs, tuple(one.ref for one in meant)))
    for match in filter(free, _SINGLE.finditer(query)):
        options = _salient(carry, known)
        refs = tuple(options[:1]) if len(options) == 1 else ()
        found.append(Reference(match[0], match.start(), refs, tuple(options)))
    for match in filter(free, _PLURAL.finditer(query)):
        several = listing.refs or tuple(_salient(carry, known))
        whole = listing.is_newest and not match[0].lower().startswith("one")
        found.append(Reference(match[0], match.start(), listing.refs if whole else (), several))
    return sorted(found, key=lambda one: one.start)


def replace_references(query: str, references: Sequence[Reference], carry: Carry) -> str:
    """
    The query with each resolved reference replaced by the names that it stands for.

    Args:
        query: The raw query.
        references: As find_references gives them, perhaps with refs that a choice has added.
        carry: Knows the names.
    """
    labels = {one.ref: one.label for one in carry.registry.records}
    for one in reversed(references):
        said = [labels[ref] for ref in one.refs if ref in labels]
        if said:
            text = " and ".join(said) if len(said) < 3 else f"{', '.join(said[:-1])} and {said[-1]}"
            text += "'s" if one.words.lower() in ("its", "their") else ""
            query = query[: one.start] + text + query[one.start + len(one.words) :]
    return query


def last_listing(carry: Carry) -> _Listing:
    """The newest list that a reply showed; else the newest turn that spoke of several things of one kind."""
    known = {one.ref: one for one in carry.registry.records}
    for recent in reversed(carry.recent_turns):
        items = listed_items(recent.assistant, paragraphs(recent.assistant))
        refs = recent.entities_mentioned[: len(items)]
        labels = [set(split_terms(known[ref].label)) if ref in known else set() for ref in refs]
        fits = all(terms & set(split_terms(one.label)) for terms, one in zip(labels, items, strict=False))
        if len(items) > 1 and len(refs) == len(items) and fits:
            return _Listing(refs, tuple(items), is_newest=recent is carry.recent_turns[-1])
    for recent in reversed(carry.recent_turns):
        said = [known[ref] for ref in recent.entities_mentioned if ref in known]
        said = [one for one in said if not any(_is_part(one, other) for other in said)]
        if len(said) > 1 and len({one.type for one in said}) == 1:
            return _Listing(tuple(one.ref for one in said), ())
    return _Listing((), ())


def _is_part(one: Entity, other: Entity) -> bool:
    """Whether the name of one thing is part of another's, as "Lenovo" of "Lenovo LOQ 15"."""
    return one.label != other.label and names(other.label, one.label)


def _counted(match: re.Match[str], refs: Sequence[str]) -> tuple[str, ...]:
    """The items that an ordinal counts; none if the list is too short."""
    if match["both"]:
        wanted = {"both": 2, "two": 2, "three": 3, "four": 4, "five": 5}
        size = next(count for word, count in wanted.items() if word in match["both"].lower())
        return tuple(refs) if len(refs) == size else ()
    if match["many"]:
        many = match["many"].lower()
        size = int(many) if many.isdigit() else _NUMBERS.index(many) + 1
        taken = refs[:size] if match["edge"].lower() == "first" else refs[-size:]
        return tuple(taken) if len(refs) >= size else ()
    if match["pair"]:
        return (refs[0 if match["pair"].lower() == "former" else 1],) if len(refs) == 2 else ()
    number = match["number"] or match["hash"]
    if number:
        at = int(number) if number.isdigit() else _position(number.lower())
        return (refs[at - 1],) if 0 < at <= len(refs) else ()
    found = [_index(word, len(refs)) for word in re.findall(_ORDINAL, match["list"], re.IGNORECASE)]
    return tuple(refs[at] for at in found if at is not None) if None not in found else ()


def _pair(match: re.Match[str], carry: Carry) -> tuple[str, ...]:
    """What "both" means if the list has more than two items: the two that a later turn was about."""
    if not match["both"] or "both" not in match["both"].lower():
        return ()
    spoken = (one.entities_mentioned for one in reversed(carry.recent_turns))
    return next((refs for refs in spoken if len(refs) == 2), ())


def _position(word: str) -> int:
    return _NUMBERS.index(word) + 1 if word in _NUMBERS else ord(word) - ord("a") + 1


def _index(word: str, size: int) -> int | None:
    word = re.sub(r"[ -]", " ", word.lower())
    if word in ("last", "final", "bottom"):
        at = size - 1
    elif word == "top":
        at = 0
    elif word == "middle":
        at = size // 2 if size % 2 else -1
    elif word in ("penultimate", "second to last", "last but one"):
        at = size - 2
    else:
        at = _ORDINALS.index(word) if word in _ORDINALS else int(word[:-2]) - 1
    return at if 0 <= at < size else None


def _priced(match: re.Match[str], listing: _Listing) -> tuple[str, ...]:
    """The cheapest or dearest item, if every item but at most the odd one has a price in one currency."""
    prices: dict[str, tuple[str, float]] = {}
    for ref, item in zip(listing.refs, listing.items, strict=False):
        claims = [claim.value for claim in find_claims(item.text) if claim.kind == "price"]
        if claims:
            currency, _, value = claims[0].rpartition(" ")
            prices[ref] = (currency, float(value))
    if len(prices) < 2 or len({currency for currency, _ in prices.values()}) > 1:
        return ()
    chosen = (min if match["low"] else max)(prices, key=lambda ref: prices[ref][1])
    return (chosen,)


def _talked_about(carry: Carry, listing: _Listing) -> set[str]:
    """What the turns after the list spoke of, one thing at a time."""
    later: list[RecentTurn] = []
    for recent in reversed(carry.recent_turns):
        if recent.entities_mentioned[: len(listing.refs)] == listing.refs:
            break
        later.append(recent)
    spoken = ([ref for ref in recent.entities_mentioned if ref in listing.refs] for recent in later)
    return {refs[0] for refs in spoken if len(refs) == 1}


def _called(words: str, known: Sequence[Entity], carry: Carry) -> list[Entity]:
    """Entities whose names or types share most words with the words, the active ones first."""
    wanted = set(split_terms(words))
    scores = {one.ref: len(wanted & set(split_terms(f"{one.label} {one.type}"))) for one in known}
    best = max(scores.values(), default=0)
    found = [one for one in known if best and scores[one.ref] == best]
    active = [one for one in found if is_active(one, carry)]
    return sorted(active or found, key=lambda one: one.turns[-1:], reverse=True)[:12]


def _salient(carry: Carry, known: dict[str, Entity]) -> list[str]:
    """What "it" may mean: what the newest turn that spoke of anything spoke of."""
    for recent in reversed(carry.recent_turns):
        asked = [ref for ref, one in known.items() if names(recent.user, one.label)]
        if len(asked) == 1:
            return asked
        found = [ref for ref in recent.entities_mentioned if ref in known]
        if found:
            return found[:12]
    return []
