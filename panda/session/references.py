"""What words such as "the second one" or "that Lenovo" mean, by rule where a rule can tell. Pure."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from panda.documents.antecedents import has_antecedent
from panda.language.stemming import split_terms
from panda.session.counting import COUNTING, counted_items, is_function_word
from panda.session.describing import SUPERLATIVE, described_item, extreme_item, named_item
from panda.session.entities import is_active, label_terms, names
from panda.session.values import Carry, Entity

_ITEM_NOUNS = frozenset(split_terms("one ones option options item items choice entry result thing"))
_SPOKEN_CHARS = 2_000
_FILLING = re.compile(
    r"(?:and|or|but|ok|okay|then|now|so|please|thanks|what|how|is|about|with|for|[\s.,;:!?])*", re.IGNORECASE
)
_RANKED = re.compile(
    rf"\b(?:the|that) (?P<rank>{SUPERLATIVE})(?: of (?:them|these|those|all))?(?P<noun> [a-z][\w-]*)?",
    re.IGNORECASE,
)
_HAVING = re.compile(
    r"\b(?:the|that|this) (?P<noun>one|(?!one\b)[a-z][\w-]*) "
    r"(?P<how>(?:with|without|that|which|who|whose|where|in|from|for|at|by|on|near|next to|under|below|"
    r"over|above|"
    r"due|set|called|named|made|costing|having|offering)\b(?:[^,.;?!]|[,.](?=\d))*)",
    re.IGNORECASE,
)
_SUCH = re.compile(
    r"\b(?:the|that|this) (?P<what>(?!one\b)\S+(?: (?!one\b)\S+){0,3}?) one\b(?! of)", re.IGNORECASE
)
_DEFINITE = re.compile(r"\b(?P<article>the|that|this) (?=\w)", re.IGNORECASE)
_ASKS = re.compile(r"\b(?:do|does|did|can|could|will|would|should|is|are|was|were)\b[^.?!]*$", re.IGNORECASE)
_WHICH = re.compile(r"\bwhich (?:one|ones|of (?:them|these|those))\b", re.IGNORECASE)
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


def find_references(query: str, carry: Carry) -> list[Reference]:
    """
    The references of a query to what the session has talked about.

    Args:
        query: The raw query.
        carry: What the session carries.

    Returns:
        Words and what they mean, in order. A name that stands in the query in full is no reference.
    """
    return sorted(_Finder(query, carry).find(), key=lambda one: one.start)


class _Finder:
    """Looks for references of each kind in turn; words that one has taken are no other's."""

    def __init__(self, query: str, carry: Carry) -> None:
        self._query = query
        self._carry = carry
        self._listing = carry.registry.listing
        self._labels = {one.ref: one.label for one in carry.registry.records}
        self._known = {one.ref: one for one in carry.registry.records if one.state != "dropped"}
        spoken = [f"{one.user} {one.assistant[:_SPOKEN_CHARS]}" for one in carry.recent_turns]
        told = [self._listing.about, *(one.text for one in self._listing.items)]
        self._nouns = _ITEM_NOUNS | set(split_terms(" ".join(spoken + told)))
        self._found: list[Reference] = []

    def find(self) -> list[Reference]:
        """Everything that refers, in the order in which it was found."""
        self._counted_items()
        if self._listing.items:
            self._described_items()
        self._others()
        self._names()
        self._pronouns()
        return self._found

    def _add(
        self, start: int, end: int, refs: Sequence[str], options: Sequence[str] = (), *, ordinal: bool = False
    ) -> None:
        self._found.append(Reference(self._query[start:end], start, tuple(refs), tuple(options), ordinal))

    def _free(self, pattern: re.Pattern[str]) -> Iterator[re.Match[str]]:
        for match in pattern.finditer(self._query):
            if all(match.end() <= o.start or match.start() >= o.start + len(o.words) for o in self._found):
                yield match

    def _is_thing(self, noun: str) -> bool:
        return set(split_terms(noun)) <= self._nouns

    def _counted_items(self) -> None:
        refs = self._listing.refs
        for match in COUNTING.finditer(self._query):
            meant, end = counted_items(match, refs, self._is_thing) or (None, 0)
            if meant is not None:
                meant = meant or _pair(match, self._carry)
                self._add(match.start(), end, meant, refs, ordinal=True)

    def _described_items(self) -> None:
        items, refs = self._listing.items, self._listing.refs
        for match in self._free(_HAVING):
            if not self._is_thing(match["noun"]):
                continue
            ref, end = extreme_item(match["how"], items)
            if ref is None:
                ref, end = described_item(match["how"], items)
            if ref is not None or match["noun"].lower() == "one":
                end = match.start("how") + end if ref else match.end("noun")
                self._add(match.start(), end, (ref,) if ref else (), refs)
        for match in self._free(_RANKED):
            noun = match["noun"] or ""
            if not self._is_thing(noun) and not is_function_word(noun):
                continue
            ref, _ = extreme_item(match["rank"], items) if noun.lower() != " ones" else (None, 0)
            end = match.end() if self._is_thing(noun) else match.end("rank")
            self._add(match.start(), end, (ref,) if ref else (), refs)
        for match in self._free(_SUCH):
            ref, _ = described_item(match["what"], items)
            if ref is not None:
                self._add(match.start(), match.end(), (ref,), refs)
        named = [(one.ref, self._labels.get(one.ref, ""), one.text) for one in items]
        for match in self._free(_DEFINITE):
            words = self._query[match.end() :]
            pointed = match["article"].lower() != "the" or words[:1].isupper() or words[:1].isdigit()
            ends = bool(_ASKS.search(self._query[: match.start()]))
            ref, end = named_item(words, named, self._nouns, any_words=pointed, ends=ends)
            if ref is not None and not names(self._query, self._labels.get(ref, "")):
                self._add(match.start(), match.end() + end, (ref,), refs)

    def _others(self) -> None:
        refs = self._listing.refs
        for match in self._free(_OTHER):
            left = [ref for ref in refs if ref not in _talked_about(self._carry)]
            self._add(match.start(), match.end(), left if len(left) == 1 else (), left or refs)

    def _names(self) -> None:
        for match in self._free(_NAMED):
            meant = _called(match["name"] or match["noun"], list(self._known.values()), self._carry)
            if meant and not any(names(self._query, one.label) for one in meant):
                refs = (meant[0].ref,) if len(meant) == 1 else ()
                self._add(match.start(), match.end(), refs, [one.ref for one in meant])

    def _pronouns(self) -> None:
        listing, carry = self._listing, self._carry
        is_newest = bool(listing.items) and listing.turn == carry.head
        for match in self._free(_WHICH):
            recent = any(one.turn == listing.turn for one in carry.recent_turns)
            if recent and listing.is_list:
                self._add(match.start(), match.end(), listing.refs)
        for pattern, several in ((_SINGLE, False), (_PLURAL, True)):
            for match in self._free(pattern):
                if has_antecedent(self._query[: match.start()]):
                    continue
                options = _salient(carry, self._known)
                refs = options if len(options) == 1 else []
                if several:
                    options = list(listing.refs) or options
                    whole = is_newest and not match[0].lower().startswith("one")
                    refs = list(listing.refs) if whole else []
                self._add(match.start(), match.end(), refs, options)


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
            text = f"{one.words[:5]} of {text}" if _WHICH.fullmatch(one.words) else text
            text += "'s" if one.words.lower() in ("its", "their") else ""
            query = query[: one.start] + text + query[one.start + len(one.words) :]
    return query


def follow_up(query: str, references: Sequence[Reference], carry: Carry) -> str | None:
    """
    What a query that only names another thing asks: what was asked of the last thing.

    Args:
        query: The raw query, as "And the last one?".
        references: Its references.
        carry: What the session carries.

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
    rest = query
    for one in sorted(references, key=lambda one: -one.start):
        rest = rest[: one.start] + rest[one.start + len(one.words) :]
    return bool(references) and _FILLING.fullmatch(rest) is not None


def _pair(match: re.Match[str], carry: Carry) -> tuple[str, ...]:
    """What "both" means if the list has more than two items: the two that a later turn was about."""
    if not match["both"] or "both" not in match["both"].lower():
        return ()
    spoken = (one.entities_mentioned for one in reversed(carry.recent_turns))
    return next((refs for refs in spoken if len(refs) == 2), ())


def _talked_about(carry: Carry) -> set[str]:
    """What the turns after the list spoke of, one thing at a time."""
    listing = carry.registry.listing
    later = [one for one in carry.recent_turns if listing.turn is None or one.turn > listing.turn]
    spoken = ([ref for ref in recent.entities_mentioned if ref in listing.refs] for recent in later)
    return {refs[0] for refs in spoken if len(refs) == 1}


def _called(words: str, known: Sequence[Entity], carry: Carry) -> list[Entity]:
    """Entities whose names or types share most words with the words, the active ones first."""
    wanted = set(split_terms(words))
    scores = {one.ref: len(wanted & {*label_terms(one.label), *label_terms(one.type)}) for one in known}
    best = max(scores.values(), default=0)
    found = [one for one in known if best and scores[one.ref] == best]
    active = [one for one in found if is_active(one, carry)]
    return sorted(active or found, key=lambda one: one.turns[-1:], reverse=True)[:12]


def _salient(carry: Carry, known: Mapping[str, Entity]) -> list[str]:
    """What "it" may mean: what the newest turn that spoke of anything was asked about, else told of."""
    for recent in reversed(carry.recent_turns):
        asked = [ref for ref in recent.asked_about if ref in known]
        found = [ref for ref in recent.entities_mentioned if ref in known]
        listing = carry.registry.listing
        if asked and (recent.turn != listing.turn or asked[0] in listing.refs):
            return asked
        if found:
            return found[:12]
    return []
