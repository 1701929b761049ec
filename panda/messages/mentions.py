"""Which of the things that were listed or spoken of a message means, and what it decides on them. Pure."""

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache, lru_cache, partial
from typing import Literal, cast

from panda.language.claims import is_plural, scan
from panda.language.patterns import lazy_pattern
from panda.language.text import plain_signs
from panda.language.words import (
    FUNCTION_WORDS,
    alternatives,
    is_ordinary,
    read_groups,
    read_words,
    split_terms,
    split_words,
    stem,
)
from panda.messages.reading import MESSAGE_CHARS, Action, Excluded

words_of = partial(read_words, "item_words.txt")
one_of = partial(alternatives, "item_words.txt")
How = Literal["counted", "described", "named", "rest", "one", "several", "which"]
_TOKEN = lazy_pattern(r"[^\W_](?:[\w&+]|(?<=\d)[.,:](?=\d)|['’!/-](?=[^\W_]))*|[^\w\s]|\n")
_GLUE = lazy_pattern(r"(?<=\d)(?=[A-Za-z])|(?<=[A-Za-z])(?=\d)")
_PARTS = lazy_pattern(r"[,;|:()\n](?!\d)|\s[–—-]\s")
_LACKS = lazy_pattern(r"\b(?:no|without|not) (?:an? |any )?([\w-]+)", re.IGNORECASE)
_WRITTEN = {"clock": r"\d\d:.*", "day": r"\d{4}-.*", "year": r"(?:1[5-9]|20)\d\d"}
"""How the value of a date begins, by what it tells."""
UNITS = {
    "weight": {"mg": 1e-6, "g": 0.001, "kg": 1, "oz": 0.02835, "lb": 0.4536},
    "time": {"s": 1 / 60, "min": 1, "h": 60, "d": 1_440, "week": 10_080, "month": 43_800, "year": 525_600},
    "length": {"mm": 0.001, "cm": 0.01, "m": 1, "km": 1_000, "mi": 1_609, "in": 0.0254, "ft": 0.3048},
    "size": {"kb": 1e-6, "mb": 0.001, "gb": 1, "tb": 1_000},
    "volume": {"ml": 0.001, "l": 1},
}
"""Units by what they measure, each in terms of one of them."""
_LEAST_LETTERS = 4
_LONGER = 3
_LONGEST_NAME = 12
_AMOUNT_CHARS = 200


@dataclass(frozen=True)
class Thing:
    ref: str  # its name for the caller
    label: str  # how people call it; "" takes what its text begins with
    text: str = ""  # all that was said of it
    type: str = ""  # what it is, as "laptop"


@dataclass(frozen=True)
class Mention:
    words: str  # as they stand
    start: int  # index of their first character
    refs: tuple[
        str, ...
    ] = ()  # what they mean, in the order of the list; empty if nothing that is there fits
    options: tuple[str, ...] = ()  # what they may mean where that is open
    how: How = "named"
    """
    counted: by a place in the list; described: by what was said of it; named: by name or kind; rest: what is
    left of the list, as "the other one"; one, several: pronouns; which: one of several, as "which one".
    """

    @property
    def end(self) -> int:
        """Return the index behind their last character."""
        return self.start + len(self.words)


@dataclass(frozen=True)
class _Token:
    text: str
    low: str
    start: int
    end: int
    terms: tuple[str, ...]  # what a thing must hold to be meant by it; () for words that set nothing apart


@lru_cache(maxsize=256)
def _tokens(text: str) -> tuple[_Token, ...]:
    return tuple(
        _Token(
            match[0],
            low := plain_signs(match[0].lower()),
            match.start(),
            match.end(),
            () if match[0][0].islower() and _is_weak(low) else _terms(match[0]),
        )
        for match in _TOKEN.finditer(text[:MESSAGE_CHARS])
    )


@cache
def _is_weak(word: str) -> bool:
    groups = ("joins", "prepositions", "item_nouns")
    return word in FUNCTION_WORDS or any(word in words_of(name) for name in groups)


@lru_cache(maxsize=4096)
def _terms(text: str) -> tuple[str, ...]:
    bare = re.sub(r"(?<=\d),(?=\d{3}\b)|['’]s?\b", "", text)
    return tuple(split_terms(_GLUE.sub(" ", bare)))


def _holds(terms: Collection[str], term: str) -> bool:
    """Return whether the terms hold this one, or one that differs by a short ending, as Korea and Korean."""
    if term in terms:
        return True
    near = (other for other in terms if len(other) >= _LEAST_LETTERS and other.isalpha() and term.isalpha())
    return len(term) >= _LEAST_LETTERS and any(
        (other.startswith(term) or term.startswith(other)) and abs(len(other) - len(term)) < _LONGER
        for other in near
    )


@dataclass(frozen=True)
class _Candidate:
    thing: Thing
    name: tuple[str, ...]  # terms of its label
    terms: frozenset[str]  # terms of all that was said of it, without what it is said to lack
    lacks: frozenset[str]
    proper: frozenset[str]  # of capital words of the label
    amounts: frozenset[str]

    def says(self, term: str, pointed: bool) -> bool:
        return _holds(self.name, term) or (pointed and _holds(self.terms, term))


@lru_cache(maxsize=2048)
def _candidate(thing: Thing) -> _Candidate:
    label = (thing.label or _PARTS.split(thing.text, maxsplit=1)[0])[:MESSAGE_CHARS]
    whole = f"{label}\n{thing.text}\n{thing.type}"[:MESSAGE_CHARS]
    lacks = frozenset(term for match in _LACKS.finditer(whole) for term in _terms(match[1]))
    proper = {
        term
        for token in _tokens(label)
        if token.text[0].isupper() and (len(label) > len(token.text) or not is_ordinary(token.text))
        for term in _terms(token.text)
    }
    terms = frozenset(_terms(whole)) - lacks
    return _Candidate(
        thing, name=_terms(label), terms=terms, lacks=lacks, proper=frozenset(proper), amounts=_amounts(whole)
    )


# amounts


@lru_cache(maxsize=2048)
def _amounts(text: str) -> frozenset[str]:
    amounts = set()
    for figure in scan(text[:MESSAGE_CHARS]):
        measures = figure.amount and (figure.amount.unit or figure.amount.currency or figure.amount.counts)
        if figure.claim.kind == "date" or measures:
            amounts.add(
                f"{figure.claim.value} {figure.amount.head if figure.amount and figure.amount.counts else ''}"
            )
    return frozenset(amounts)


def _factor(unit: str) -> float:
    return next((units[unit] for units in UNITS.values() if unit in units), 1.0)


@lru_cache(maxsize=4096)
def amount(text: str, kind: str) -> float | str | None:
    """Return the first amount of a kind in a text: a price, weight, year, time of day …; None if nothing."""
    if kind in _WRITTEN:
        values = (
            figure.claim.value
            for figure in scan(text[:MESSAGE_CHARS])
            if figure.claim.kind in ("date", "number")
        )
        return next((match[0] for value in values if (match := re.match(_WRITTEN[kind], value))), None)
    units = UNITS.get("time" if kind == "age" else kind, ())
    for figure in scan(text[:MESSAGE_CHARS]):
        if (own := figure.amount) is None or own.value is None:
            continue
        if own.currency if kind == "price" else own.unit in units or (own.counts and kind == own.head):
            return float(own.value) * _factor(own.unit)
    return None


def within(words: str, texts: Sequence[str]) -> list[bool | None] | None:
    words = words[:MESSAGE_CHARS]
    match = re.search(
        rf"\b(?:(?P<over>{one_of('over')})|{one_of('under')}) (?=\D{{0,3}}\d)", words, re.IGNORECASE
    )
    figures = scan(words[match.end() :][:_AMOUNT_CHARS]) if match else ()
    limit = next(
        (figure.amount for figure in figures if figure.amount and figure.amount.value is not None), None
    )
    if match is None or limit is None or limit.value is None:
        return None
    kinds = [kind for kind, units in UNITS.items() if limit.unit in units]
    is_price = re.search(rf"\b{one_of('money')}\b", words) or not (limit.unit or limit.counts)
    if limit.counts:
        kinds.append(limit.head)
    if is_price:
        kinds.append("price")
    for values in ([amount(text, kind) for text in texts] for kind in kinds):
        if any(isinstance(value, float) for value in values):
            bound = float(limit.value) * _factor(limit.unit)
            if match["over"]:
                return [value > bound if isinstance(value, float) else None for value in values]
            return [value <= bound if isinstance(value, float) else None for value in values]
    return None


@cache
def _scales() -> dict[str, list[list[str]]]:
    groups = read_groups("scales.txt")
    return {name: [way.split() for way in words.split("|")] for name, words in groups.items()}


@cache
def scale_of(word: str) -> str | None:
    """Return the adjective of a comparative or superlative that ranks: "heavy" of "heavier"."""
    for ending in ("est", "er"):
        root = word.removesuffix(ending)
        if root == word:
            continue
        for base in (root, root + "e", root[:-1], root[:-1] + "y"):
            if base in _scales():
                return base
    return None


# mentions


@cache
def _in_order(name: str) -> tuple[str, ...]:
    return tuple(read_groups("item_words.txt")[name].split())


_NUMBER = rf"(?:{one_of('numbers')}|\d{{1,2}})"
_COUNTED = lazy_pattern(
    rf"(?:(?:{one_of('counts')} |#|n[or]\. ?)(?P<number>{_NUMBER})|both"
    r"|(?P<the>(?:the|that|this|these|those|your) )?"
    rf"(?:(?P<side>first|last|top|bottom) (?!one\b|1\b)(?P<many>{_NUMBER})"
    rf"|(?P<place>{one_of('before_last')}|{one_of('ordinals')}|\d{{1,2}}(?:st|nd|rd|th)|{one_of('last')}"
    rf"|{one_of('place')}|former|latter)))(?!\w)"
)
_RANKED = lazy_pattern(
    rf"(?:the|that|this) (?:(?P<place>{one_of('ordinals')})[ -])?"
    r"(?:(?P<more>most|more) |(?P<less>least|less) )?(?P<word>[a-z]+)(?!\w)"
)


def find_mentions(
    text: str,
    things: Sequence[Thing],
    others: Sequence[Thing] = (),
    *,
    nouns: Collection[str] = (),
    aside: Collection[str] = (),
) -> list[Mention]:
    """
    Return the words of a message that mean things, by place, rank, description, name or kind, in order; no
    two overlap. *things* is the list that was shown last, *others* are meant by name alone; *nouns* are terms
    for its things, as "laptop"; "the cheapest" passes over refs that are *aside*. Pronouns are not among
    them: the text alone cannot tell.
    """
    return list(_Finder(text, things, others, nouns, aside).find())


class _Finder:
    def __init__(
        self,
        text: str,
        things: Sequence[Thing],
        others: Sequence[Thing],
        nouns: Collection[str],
        aside: Collection[str],
    ) -> None:
        self.text = text
        self.tokens = _tokens(text)
        self.lower = _low(text)
        self.ends = {token.end: at for at, token in enumerate(self.tokens, 1)}
        self.list = [_candidate(thing) for thing in things]
        self.ranked = [candidate for candidate in self.list if candidate.thing.ref not in aside]
        refs = {thing.ref for thing in things}
        self.all = self.list + [_candidate(thing) for thing in others if thing.ref not in refs]
        firsts = [candidate.name[0] for candidate in self.list if candidate.name]  # "coach A", "coach B"
        heads = {candidate.name[-1] for candidate in self.list if candidate.name}
        heads |= {name for name in firsts if firsts.count(name) > 1}
        self.nouns = {
            *nouns,
            *heads,
            *(term for candidate in self.all for term in _terms(candidate.thing.type)),
        }

    def find(self) -> Iterator[Mention]:
        at = 0
        mentions = list[Mention]()
        looks = (self.counted, self.other, self.rank, self.described) if self.list else ()
        while at < len(self.tokens):
            attempts = (look(at) for look in (*looks, self.named))
            end, recognised = next((attempt for attempt in attempts if attempt is not None), (at + 1, None))
            at = end
            if recognised:
                mentions.append(recognised)
        named = {ref for mention in mentions for ref in mention.refs}
        left = tuple(candidate.thing.ref for candidate in self.list if candidate.thing.ref not in named)
        for mention in mentions:
            if mention.how == "rest":
                yield replace(mention, refs=left if len(left) == 1 else (), options=left)
            else:
                yield mention

    def mention(
        self, start: int, end: int, refs: Sequence[str], how: How, options: Sequence[str] = ()
    ) -> tuple[int, Mention]:
        first = self.tokens[start].start
        last = self.tokens[end - 1].end
        return end, Mention(self.text[first:last], first, tuple(refs), tuple(options), how)

    def low(self, at: int) -> str:
        return self.tokens[at].low if 0 <= at < len(self.tokens) else "."

    def is_noun(self, at: int) -> bool:
        word = self.low(at)
        is_kind = word.isalpha() and not _is_weak(word) and set(_terms(word)) <= self.nouns
        return is_kind or word in words_of("item_nouns")

    def stops(self, at: int) -> bool:
        word = self.low(at)
        word_groups = (FUNCTION_WORDS, words_of("verbs"), words_of("joins"), words_of("prepositions"))
        return (
            not word[0].isalnum()
            or any(word in group for group in word_groups)
            or word.endswith(("'s", "'ll"))
        )

    def close(self, start: int, at: int) -> int | None:
        """
        Return where words that point at a thing end, with their noun and "of the three"; None where another
        word follows.
        """
        word = self.low(at)
        verb = self.low(start - 1)
        noun = self.is_noun(at)
        is_described = verb in ("is", "was") and any(
            _holds(candidate.terms, t) for candidate in self.list for t in _terms(word)
        )
        ends = not self.low(at + 1)[0].isalnum() and (
            is_described or start == 1 or verb in words_of("helpers")
        )
        if not (noun or self.stops(at) or ends):
            return None
        end = at + noun
        if self.low(end) != "of":
            return end
        end += 1 + (self.low(end + 1) in words_of("determiners"))
        return end + 1 if self.low(end) in ("them", "all") or self.is_noun(end) else None

    def counted(self, at: int) -> tuple[int, Mention] | None:
        """Read "number 3", "the second one", "the last two", "both"."""
        match = _COUNTED.match(self.lower, self.tokens[at].start)
        behind = self.ends.get(match.end()) if match else None
        end = self.close(at, behind) if behind is not None else None
        if match is None or behind is None or end is None:
            return None
        before = self.low(at - 1)
        here = self.low(behind)
        size = len(self.list)
        bare = end == behind
        word = match["place"]
        joined = at == 0 if match["many"] else before in ("and", "or", ",", "&")
        if (match["many"] or word) and not (match["the"] or joined):
            return None
        days = words_of("dates_on") if word and word[0].isdigit() else ("on",)
        is_place = word in words_of("place") and here[0].isalnum()
        if word and (here == "to" or before in days or is_place if bare else here in words_of("no_item")):
            return None
        places = self.places(match, size)
        there = places and all(0 <= place < size for place in places)
        return self.mention(at, end, [self.list[p].thing.ref for p in places] if there else [], "counted")

    @staticmethod
    def places(match: re.Match[str], size: int) -> list[int]:
        word = match["place"]
        ordered = _in_order("ordinals")
        if match["many"]:
            many = _number(match["many"])
            return list(range(many) if match["side"] in ("first", "top") else range(size - many, size))
        if match["number"]:
            return [_number(match["number"]) - 1]
        if word is None or word in ("former", "latter"):  # both
            if size != 2:
                return [size]
            return [0, 1] if word is None else [int(word == "latter")]
        if word in ordered or word[0].isdigit():
            return [ordered.index(word) if word in ordered else int(word[:-2]) - 1]
        named = {"top": 0, "middle": size // 2 if size % 2 else size}
        return [named.get(word, size - 1 - (word in words_of("before_last")))]

    def other(self, at: int) -> tuple[int, Mention] | None:
        """Read "the other one": what is left when the others are named in the same message."""
        end = at + 2 + self.is_noun(at + 2)
        is_other = self.low(at) in ("the", "that") and self.low(at + 1) == "other" and self.stops(end)
        return self.mention(at, end, (), "rest") if is_other else None

    def rank(self, at: int) -> tuple[int, Mention] | None:
        """Read "the cheapest", "the second-lightest one", by the values shown."""
        match = _RANKED.match(self.lower, self.tokens[at].start)
        behind = self.ends.get(match.end()) if match else None
        if match is None or behind is None:
            return None
        word = match["word"]
        is_told = match["more"] or match["less"]
        scale = scale_of(word)
        if is_told:
            scale = word if word in _scales() else None
        end = self.close(at, behind) if scale else None
        if scale is None or end is None or self.low(end - 1) in ("ones", "options", "items"):
            return None
        noun = end > behind and self.low(end - 1) not in words_of("item_nouns")
        if self.low(0) in words_of("opens") and (noun or at > 2):  # it asks anew
            return None
        place = _in_order("ordinals").index(match["place"]) if match["place"] else 0
        ref = self.extreme(scale, place, match["less"] is not None)
        options = () if ref else tuple(candidate.thing.ref for candidate in self.ranked)
        return self.mention(at, end, [ref] if ref else [], "described", options)

    def extreme(self, scale: str, place: int, less: bool) -> str | None:
        for way, *kinds in _scales()[scale]:
            for kind in kinds:
                texts = [
                    (candidate.thing.text or candidate.thing.label, candidate.thing.ref)
                    for candidate in self.ranked
                ]
                values = [(value, ref) for text, ref in texts if (value := amount(text, kind)) is not None]
                values.sort(reverse=(way == "max") != less)
                enough = len(values) >= max(2, len(texts) - 1) and place < len(values)
                if enough and [value for value, _ in values].count(values[place][0]) == 1:
                    return values[place][1]
        return None

    def described(self, at: int) -> tuple[int, Mention] | None:
        """Read "the red one", "the one with 16 GB", "the hotel by the lake": what one thing is said to be."""
        if self.low(at) not in words_of("determiners"):
            return None
        noun = at + 1
        while noun < at + 6 and not self.is_noun(noun) and self._goes_on(noun, "€$£%"):
            noun += 1
        if not self.is_noun(noun):
            return None
        end = noun + 1
        while self.low(noun + 1) in words_of("relatives") and self._goes_on(end, "€$£%-"):
            end += 1
        before = self.tokens[at + 1 : noun]
        behind = self.tokens[noun + 1 : end]
        fit = [candidate for candidate in self.list if self.fits(candidate, before)] if before else self.list
        texts = [candidate.thing.text or candidate.thing.label for candidate in fit]
        bounded = within(self.text[behind[0].start : behind[-1].end], texts) if behind else None
        fit = [candidate for candidate, fits in zip(fit, bounded or [True] * len(fit), strict=True) if fits]
        lacks = self.low(noun + 1) == "without" or self.low(noun + 2) in ("no", "without", "not")
        scores = [0.0] * len(fit)
        last_matching = noun
        for n in range(noun + 1, end):
            for term in self.tokens[n].terms:
                held = [k for k, own in enumerate(fit) if _holds(own.lacks if lacks else own.terms, term)]
                if len(held) == len(fit):
                    continue
                for k in held:
                    scores[k] += 1 / len(held)
                    last_matching = n
        best = [candidate for candidate, score in zip(fit, scores, strict=True) if score == max(scores)]
        if len(best) != 1 or len(self.list) == 1:
            return None
        return self.mention(at, end if bounded else last_matching + 1, [best[0].thing.ref], "described")

    def _goes_on(self, at: int, marks: str) -> bool:
        return self.low(at)[0].isalnum() or self.low(at) in marks

    def fits(self, candidate: _Candidate, tokens: Sequence[_Token]) -> bool:
        amounts = _amounts(self.text[tokens[0].start : tokens[-1].end])
        terms = [term for token in tokens for term in token.terms]
        measured = bool(amounts) and amounts <= candidate.amounts
        return measured or (bool(terms) and all(_holds(candidate.terms, term) for term in terms))

    def named(self, at: int) -> tuple[int, Mention] | None:
        """Read names, whole or in part, and what only one thing is: "the Bosch", "Les Pins", "the rabbit"."""
        points = words_of("determiners") | words_of("owners")
        start, at = at, at + (self.low(at) in points)
        pointed = at > start or self.low(start - 1) in words_of("determiners")
        fit = self.all
        end = at
        while end < min(at + _LONGEST_NAME, len(self.tokens)):
            terms = _terms(self.tokens[end].text)
            left = [
                candidate
                for candidate in fit
                if terms and all(candidate.says(term, pointed) for term in terms)
            ]
            if not left:
                break
            fit, end = left, end + 1
        run = [token for token in self.tokens[at:end] if token.terms]
        refs = [
            candidate.thing.ref for candidate in fit if run and self.means(candidate, start, at, end, pointed)
        ]
        if not refs or len(refs) == len(self.all) > 1:
            return None
        is_one = len(refs) == 1
        return self.mention(start, end, refs if is_one else [], "named", () if is_one else refs)

    def means(self, candidate: _Candidate, start: int, at: int, end: int, pointed: bool) -> bool:
        """
        Return whether words are the candidate's whole name, a proper part of it, or point at what it is said
        to be.
        """
        run = [token for token in self.tokens[at:end] if token.terms]
        terms = [term for token in self.tokens[at:end] for term in _terms(token.text)]
        in_name = all(_holds(candidate.name, term) for term in terms)
        whole = in_name and len(terms) == len(candidate.name)
        closed = self.close(start, end) == end
        if in_name and any(t.text[0].isupper() and candidate.proper.issuperset(t.terms) for t in run):
            inside = at > 0 and self.low(at - 1) not in ".!?:;\n"
            follows = self.low(end)[0].isalpha() and self.low(end) not in words_of("after_verbs")
            return pointed or inside or follows
        return (whole or pointed) and closed


def _number(word: str) -> int:
    if word.isdecimal() and len(word) <= 2:
        return int(word)
    return _in_order("numbers").index(word) + 1 if word in _in_order("numbers") else 0


# what is put aside

_NAMED = rf"(?:{one_of('articles')}\s+)*◆+(?:\s+{one_of('things')})?"
_ROW = rf"{_NAMED}(?:\s*(?:,|\b(?:and|or|nor|plus)\b|&)\s*{_NAMED})*"
_OBJECT = (
    rf"(?:(?P<row>{_ROW})|{one_of('all_but')}\s+(?P<but>{_ROW})|(?P<rest>{one_of('rest')})\b"
    rf"|(?P<it>{one_of('it')}(?:\s+one)?)\b)"
)
_LIST = rf"(?:(?:the|our|my|your|this|that)\s+(?:\w+\s+)?)?{one_of('lists')}\b"
_LISTS = rf"{one_of('list_leads')}\s+{_LIST}"
_JOINS = r"(?:and|but|because|since|(?:as|so)(?!\s+(?:long|much|far)\b)|though|although|then)\b"
_END = (
    rf"(?=(?:\s*\b(?:{one_of('tails')}\b|{_LISTS}))*+"
    rf"\s*(?:$|[,;:.!?()\n–—]|-\s|\b{_JOINS}|\b{one_of('subjects')}\b))"
)
_LEAD = rf"(?P<lead>(?:(?:{one_of('not')}|{one_of('openers')})\b\s*)*+)"
_ANY = r"(?:any\w*\s+)?(?:(?:with|on|in|at|next to)\s+)?"
_KIND = r"(?P<kind>[^,;:.!?()\n–—]+?)"
_STARTS = lazy_pattern(rf"(?:^|[,;:.!?()\n–—]|\s-\s|\b{_JOINS})\s*")
_ASKS = lazy_pattern(rf"(?:{one_of('leads')}\b\s*)*{one_of('asks')}\b(?!\s+(?:not|nothing)\b)")
_POLITE = lazy_pattern(rf"(?:can|could|would|will) you\b(?=.*(?:\bplease\b|\bpls\b|{_LISTS}))", re.DOTALL)
_HINDERS = lazy_pattern(rf"{one_of('hinders')}\b")


def _orders(name: str) -> list[str]:
    verbs, behind = zip(*(words.split(" ", 1) for words in words_of(f"{name}_with")), strict=True)
    apart = rf"(?P<verb>{'|'.join(verbs)})\s+{_OBJECT}\s+(?P<behind>{'|'.join(behind)})\b(?:\s+{_LIST})?"
    return [rf"{_LEAD}(?:{one_of(name)}|{one_of(name + '_with')})\s+{_OBJECT}", rf"{_LEAD}{apart}"]


_SAID = rf"(?:{one_of('leads')}\s+)*(?P<row>{_ROW})\s+(?:{one_of('adverbs')}\s+)*"
_RULES = [
    *((name, lazy_pattern(way + _END)) for name in ("drop", "keep") for way in _orders(name)),
    ("drop", lazy_pattern(rf"{_SAID}{one_of('out')}{_END}")),
    ("keep", lazy_pattern(rf"{_SAID}{one_of('in')}{_END}")),
    ("drop", lazy_pattern(rf"(?:{one_of('bare_not')}\s+)*not\s+(?P<row>{_ROW})(?!\s+yet){_END}")),
    ("bound", lazy_pattern(r"(?P<bound>(?:no|nothing|none)\b[^,;:.!?()\n–—]*\d[^;:!?()\n–—]*)")),
    ("demote", lazy_pattern(rf"(?:please\s+)?{one_of('none')}\s+(?:more\s+)?{_ANY}{_KIND}{_END}")),
    ("wish", lazy_pattern(rf"{_LEAD}(?:(?:{one_of('wish_not')}|{one_of('fond')})\s+)*{_ANY}{_KIND}{_END}")),
]  # fmt: skip
"""What puts aside, and what keeps, by the words between the ends of a clause; names are masked."""


def find_exclusions(
    text: str, things: Sequence[Thing], mentions: Sequence[Mention], *, meant: Sequence[str] = ()
) -> list[Excluded]:
    """
    Return what a message decides on things, in orders and declarations about that very thing, never in
    questions; one for each thing, of which the last counts. *mentions* are those of find_mentions; *meant* is
    what "it" means where the message names nothing before.
    """
    objects = {mention.start: mention.refs for mention in mentions if mention.refs}
    masked = _low(text)
    for mention in mentions:
        if mention.start in objects:
            masked = masked[: mention.start] + "◆" * len(mention.words) + masked[mention.end :]
    exclusions: dict[str, Excluded] = {}
    for start in _clauses(masked):
        for name, rule in _RULES:
            if (match := rule.match(masked, start)) and (
                decided := _decide(name, match, text, things=things, objects=objects, meant=meant)
            ):
                action, put = decided
                words = text[start : match.end()].rstrip()
                exclusions |= {ref: Excluded(ref, action, words) for ref in put}
                break
    return list(exclusions.values())


def _low(text: str) -> str:
    return "".join(
        low if len(low := char.lower()) == 1 else char for char in plain_signs(text[:MESSAGE_CHARS])
    )


def _clauses(masked: str) -> Iterator[int]:
    begin = 0
    for end in [match.start() for match in re.finditer(r"[.!?;\n]|$", masked)]:
        starts = [begin + match.end() for match in _STARTS.finditer(masked[begin:end])]
        asking = [at for at in starts if _ASKS.match(masked, at) and not _POLITE.match(masked[:end], at)]
        asked = masked[end : end + 1] == "?"
        for start in starts:
            if _HINDERS.match(masked, start) or start in asking:
                break
            if not asked or _POLITE.match(masked[:end], start):
                yield start
        begin = end + 1


def _decide(
    name: str, match: re.Match[str], text: str, things: Sequence[Thing], objects: dict[int, tuple[str, ...]],
    meant: Sequence[str],
) -> tuple[Action, Sequence[str]] | None:  # fmt: skip
    parts = match.groupdict()
    lead = parts.get("lead") or ""
    negated = len(re.findall(rf"\b{one_of('not')}\b", lead)) % 2 == 1
    if " or " in (parts.get("row") or ""):
        return None
    if name == "bound":
        fits = (
            within(text[match.start() : match.end()], [thing.text or thing.label for thing in things]) or ()
        )
        refs = [thing.ref for thing, is_within in zip(things, fits, strict=False) if is_within]
        return ("demote", refs) if refs else None
    spans = [match.span(group) for group in ("row", "kind") if group in parts]
    inside = [at for at in sorted(objects) if any(start <= at < end for start, end in spans)]
    row: Sequence[str] = [ref for at in inside for ref in objects[at]]
    if name in ("demote", "wish"):
        if name == "wish" and not (negated and re.search(r"\b(?:i|we)\b", lead)):
            return None
        words = text[match.start("kind") : match.end("kind")]
        row = row if re.fullmatch(_ROW, match["kind"]) else []
        if name == "wish" and len(row) == 1 and any(map(str.isupper, words)):
            return "drop", row
        kind = _of_kind(words, things)
        row = kind or row
        return ("demote", row) if row else None
    if parts.get("rest") or parts.get("but"):
        named = {ref for some in objects.values() for ref in some}
        row = [thing.ref for thing in things if thing.ref not in named]
    elif parts.get("it"):
        row = _meant_by_it(match, objects, meant)
    action: Action = "keep" if (name == "keep") != negated else "drop"
    return (action, row) if row and not (name == "keep" and negated) else None


def _meant_by_it(
    match: re.Match[str], objects: dict[int, tuple[str, ...]], meant: Sequence[str]
) -> Sequence[str]:
    """
    Return what was named last, unless as the owner of something else ("the lid of the X"); else what is
    meant.
    """
    before = match.string[: match.start("it")]
    last = max((at for at in objects if at < len(before)), default=None)
    if last is None:
        return () if re.fullmatch(r"\s*forget (?:it|that)", match[0]) else tuple(meant)  # or never mind
    part = re.search(r"(\w+) (?:of|on|in|inside) $", before[:last])
    row = () if part and not _is_weak(part[1]) else objects[last]
    return row if len(row) == 1 or match["it"] in words_of("several") else ()


def _of_kind(words: str, things: Sequence[Thing]) -> list[str]:
    """Return all of a kind, as "steel bikes": what is said to be so, unless that is everything."""
    tokens = [*_tokens(re.sub(rf"^(?:{one_of('articles')}\s+)+", "", words, flags=re.IGNORECASE))]
    for run in (tokens, tokens[:-1] if tokens and is_plural(tokens[-1].low) else []):
        if run and all(token.terms for token in run):
            amounts = _amounts(" ".join(token.text for token in run))
            candidates = [(thing.ref, _candidate(thing)) for thing in things]
            terms = [term for token in run for term in token.terms]
            fit = [
                ref
                for ref, candidate in candidates
                if (amounts and amounts <= candidate.amounts)
                or all(_holds(candidate.terms, term) for term in terms)
            ]
            if fit and len(fit) < max(2, len(things)):
                return fit
    return []


def find_clearing(text: str) -> str | None:
    masked = _low(text)
    rule = re.compile(rf"{_LEAD}(?P<words>{one_of('afresh')}){_END}")
    for start in _clauses(masked):
        if (match := rule.match(masked, start)) and not re.search(rf"\b{one_of('not')}\b", match["lead"]):
            return text[match.start("words") : match.end("words")]
    return None


def without_exclusions(text: str) -> str:
    return re.sub(rf" ?\b{one_of('excepts')}\b[^,.;:!?()\n–—]*", "", text, flags=re.IGNORECASE)


# what a message goes on with

_INTRODUCED = lazy_pattern(
    r"\b(?:which|what|whose|the|a|an|my|our|your|his|her|any|some|every|this|that)\s+"
    r"(?!(?:is|are|was|were|do|does|did|can|could|will|would|has|have|had|ones?|first|second|third|last|other|"
    r"same|it|they|i|you|we)\b)[a-z][\w-]+|(?<=[a-z,;] )(?!I\b)(?-i:[A-Z])[\w-]+",
    re.IGNORECASE,
)
_LEAST_NAMED = 2
_CLAUSE = lazy_pattern(r"[,;:]|\b(?:and|but|or|so|because|if|when|while)\b", re.IGNORECASE)
_PRONOUN = lazy_pattern(
    rf"\b(?!(?:its|their|these|those) {one_of('no_item')}\b)(?:(?P<which>{one_of('pronouns_which')})"
    rf"|(?P<several>{one_of('pronouns_several')})|(?P<one>{one_of('pronouns_one')})"
    r"|th(?:is|at) (?P<noun>[a-z]+))\b",
    re.IGNORECASE,
)


def find_pronouns(text: str, nouns: Collection[str] = ()) -> list[Mention]:
    """
    Return the pronouns of a message that stand for things, but not for what it names itself before them;
    "that laptop" is one where *nouns* has the stem.
    """
    mentions = []
    for pronoun in _PRONOUN.finditer(text[:MESSAGE_CHARS]):
        kind = "one" if pronoun["noun"] else pronoun.lastgroup or ""
        noun = (pronoun["noun"] or "thing").lower()
        names_item = noun in words_of("item_nouns") or stem(noun) in nouns
        clauses = [match.start() for match in _CLAUSE.finditer(text[: pronoun.start()])]
        before = text[: clauses[-1]] if clauses else ""
        is_introduced = _INTRODUCED.search(before) or _is_about_something(before)
        if names_item and (kind == "which" or not is_introduced):
            mentions.append(Mention(pronoun[0], pronoun.start(), how=cast(How, kind)))
    return mentions


def _is_about_something(clause: str) -> bool:
    """Return whether a clause names what it is about, so that a pronoun behind it means that."""
    passing = FUNCTION_WORDS | read_words("talk_words.txt")
    return sum(word.lower() not in passing for word in split_words(clause)) >= _LEAST_NAMED


def says_only(text: str, spans: Sequence[tuple[int, int]]) -> bool:
    """Return whether a message says nothing besides some of its words, as "And the last one?"."""
    return all(
        not token.text[0].isalnum()
        or token.low in words_of("filling")
        or any(start <= token.start < end for start, end in spans)
        for token in _tokens(text)
    )


def names_nothing(query: str) -> bool:
    """
    Return whether a query asks and names no thing at all, so that it goes on with what was just spoken of.
    """
    words = [token.low for token in _tokens(query) if token.text[0].isalnum()]
    asks = any(word in words_of("asks") - words_of("verbs") for word in words)
    return asks and all(_is_weak(word) and word not in ("you", "your") for word in words)
