"""Values that the sources hold, but of something else, or of which they say the opposite."""

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise

from panda.language.arithmetic import LESS, MORE
from panda.language.claims import Claim, Found, scan
from panda.language.dates import find_days
from panda.language.names import find_names
from panda.language.numbers import RATES, rate_of, size_of
from panda.language.text import ends_sentence
from panda.language.words import NOT_COUNTED, stem

_CUTS = (
    re.compile(r"\n"),
    re.compile(r"\n|[.!?][\"')*]*\s"),
    re.compile(r"\n|[.!?][\"')*]*\s|;\s|\s·\s"),
    re.compile(r"\n|[.!?][\"')*]*\s|;\s|\s·\s|,\s"),
)
"""Where a source falls into parts, from its lines to what stands between two commas."""
_PIECES = re.compile(
    r"\n|[.!?][\"')*]*\s|;\s|\s·\s|,\s(?:(?:and|but|while|whereas|or)\s)?|\s(?:and|but|while|whereas|or|than)\s"
)
_SENTENCE = re.compile(r"\n|[.!?][\"')*]*\s|;\s|\s·\s")
_LEAD = re.compile(r"\A[^:\n]{1,60}:\s")
_WORD = re.compile(r"[^\W_]+(?:'[^\W_]+)?")
_PRONOUN = re.compile(
    r"\b(?:it|its|they|them|their|she|he|her|his|him|this|that|these|both)\b", re.IGNORECASE
)
_CONTRAST = re.compile(
    r"\b(?:vs|versus|compared|instead|rather|against|unlike|respectively|whereas"
    r"|between|after|before|until|since|from(?= [\d$€£]))\b",
    re.IGNORECASE,
)
_NEGATED = re.compile(
    r"(?:\b(?:is|are|was|were|has|have|had)(?: not|n't)|\b(?:does|do|did)(?: not|n't)"
    r" (?:cost|have|weigh|take|last|contain|need|include|run|start|begin|end))\b"
    r"(?: (?!only|just|merely)[a-z]+){0,3} \Z",
)
_BOUNDED = re.compile(
    r"\b(?:until|till|before|after|above|below|over|under|more|less|fewer|later|earlier|than|beyond|exceed\w*|within|up)\b"
)
_ANY_NEGATION = re.compile(r"\b(?:no|not|never|without|none|cannot)\b|n't\b", re.IGNORECASE)
_AT_MOST = re.compile(
    r"\b(?:at most|no more than|not more than|up to|max(?:imum|\.)?(?: of)?)[: ]+\Z", re.IGNORECASE
)
_AT_LEAST = re.compile(
    r"\b(?:at least|no less than|not less than|min(?:imum|\.)?(?: of)?|from)[: ]+\Z", re.IGNORECASE
)
_FROM = re.compile(r"\bfrom (?:the )?\Z", re.IGNORECASE)
_TO = re.compile(r" to (?:the )?", re.IGNORECASE)
_BESIDE = re.compile(
    r"(?P<first>(?:,| [^\s\d]+)[^.;:\n()\d]{0,40}?)\b"
    r"(?:(?P<less>below|under|(?:less|lower|lighter|cheaper|shorter) than)"
    r"|(?P<more>above|over|exceed\w*|(?:more|higher|heavier|longer|dearer) than))\b[^.;,\n()\d$€£]{0,40}"
)
_LARGEST = re.compile(
    r"\bthe (?:(?P<most>(?:big|larg|great|heavi|long|high|tall|wid|pric|dear)(?:est|iest)|most expensive"
    r"|(?:bigger|larger|heavier|longer|higher|taller|pricier|dearer|more expensive) (?:one|of the two))"
    r"|(?P<least>(?:cheap|small|light|short|low|thinn|narrow)est|least expensive"
    r"|(?:cheaper|smaller|lighter|shorter|lower|less expensive) (?:one|of the two)))\b"
    r"|\b(?:your|my|our) (?:(?P<my_most>(?:bigg|larg|great|high)est)|(?P<my_least>(?:small|low|cheap)est))\b",
    re.IGNORECASE,
)
_BY_PRICE = frozenset(("cheaper", "pricier", "dearer", "costlier", "more expensive", "less expensive"))
_COMPARES = re.compile(
    rf"\b(?P<by>(?P<less>less expensive|{LESS})|(?P<more>more expensive|{MORE}))\b(?=[^.;,]*? than )"
)
_ORDERS = re.compile(rf"\b(?:(?P<less>less expensive|{LESS})|(?P<more>more expensive|{MORE}))\b")
_RESTRICTED = re.compile(
    r"\b(?:with|among|that|which|those|second|next|under|below|above|over|third|at least|but|not|n't|who)\b"
)
_DAY = re.compile(r"(?:\d{4})?-\d\d-\d\d")
_LOOK_CHARS = 60
_MOST_VALUES = 150
_MOST_CHARS = 20_000
"""Of a text, and of the lines of a source that hold values; where there are more, no value counts as held."""


@dataclass(frozen=True)
class _Part:
    words: frozenset[str]
    """Stems of its words, and of what stands over it."""
    names: frozenset[str]
    """Those that are names."""
    key: frozenset[str]
    """Those before its first value, where they are no names."""
    tail: frozenset[str]
    """Those behind its only value, where none stands before it: "500 g bread flour"."""
    values: tuple[Found, ...]
    """What it claims, in order."""
    refers: bool
    """Whether a pronoun stands for what it is about."""


def contradicted(
    text: str, held: Sequence[Found], sources: Sequence[str], quotable: Sequence[str] = ()
) -> Iterator[Found]:
    """
    The values of a text that its sources hold, but not as the text tells them: a value of another thing, one
    that is denied where the source has it, "at most" for "at least", "from A to B" for "from B to A", "142,
    below 130", "the cheapest at $749" where another one costs less. What cannot be told for sure is left
    alone. *held* are its claims that a source holds, *quotable* lines of the sources as they are quoted.

    >>> sources = ("LOQ 15: $697", "TUF A15: $749")
    >>> text = "The LOQ costs $749, the TUF $697."
    >>> [one.claim.text for one in contradicted(text, [one for one in scan(text)], sources)]
    ['$749', '$697']
    """
    quoted = _quoted(text, sources, quotable)
    own = [found for found in held if found.claims and not any(a <= found.start < b for a, b in quoted)]
    sources = [_lines_with_values(source) for source in sources]
    if max(map(len, (text, *sources)), default=0) > _MOST_CHARS:
        yield from (found for found in own if found.claim.kind != "url")
        yield from (_comparison(text, match) for match in _COMPARES.finditer(text))
        return
    yield from own[_MOST_VALUES:]
    for found in (*_wrong_orders(text, tuple(sources)), *_wrong_weekdays(text, sources)):
        if not any(a <= found.start < b for a, b in quoted):
            yield found
    if not own:
        return
    known: dict[Fraction | None, Found] = {}
    for one in (one for source in sources for one in scan(source) if one.amount and _measure(one)):
        known.setdefault(one.amount.value if one.amount else None, one)
    values = [value for value in (_as_held(found, known) for found in own[:_MOST_VALUES]) if _measure(value)]
    checks: tuple[Callable[[str, Found, Sequence[Found], Sequence[str]], bool], ...] = (
        _is_denied,
        _is_bounded_otherwise,
        _is_turned_round,
        _is_compared_wrongly,
        _is_no_extreme,
    )
    wrong = {
        found.start: found for found in values if any(check(text, found, values, sources) for check in checks)
    }
    wrong |= {found.start: found for found in _of_others(text, values, tuple(sources))}
    for at in sorted(wrong):
        yield wrong[at]


def _lines_with_values(source: str) -> str:
    if len(source) <= _MOST_CHARS:
        return source
    kept: list[str] = []
    size = 0
    for line in source.split("\n"):
        if line.startswith("#") or any(map(_measure, scan(line))):
            kept.append(line)
            size += len(line) + 1
        if size > _MOST_CHARS:
            return source
    return "\n".join(kept)


def _quoted(text: str, sources: Sequence[str], quotable: Sequence[str]) -> list[tuple[int, int]]:
    said = {part.strip() for source in sources for part in _cut(source, _SENTENCE)}
    spans = [(start, start + len(part)) for start, part in _located(text, _SENTENCE) if part.strip() in said]
    for line in quotable:
        at = text.find(line) if line else -1
        spans += [(at, at + len(line))] if at >= 0 else []
    return spans


def _as_held(found: Found, known: Mapping[Fraction | None, Found]) -> Found:
    """A bare number as the sources measure it, if it is there: "9.2" where they have "rating 9.2"."""
    amount = found.amount
    if amount is None or amount.value is None or _measure(found) or amount.label or amount.value not in known:
        return found
    held = known[amount.value].amount
    assert held is not None
    return replace(found, amount=replace(held, about=amount.about))


def _measure(found: Found) -> str:
    """What two claims must have in common to be values of one kind; "" for what is compared with nothing."""
    amount = found.amount
    if found.claim.kind == "date":
        return "time" if re.fullmatch(r"\d\d:\d\d:\d\d", found.claim.value) else "day"
    if amount is None:
        return f"token:{re.sub('[0-9]+', '#', found.claim.value)}" if found.claim.kind == "number" else ""
    if amount.ordinal or amount.label or amount.version:
        return ""
    if amount.currency:
        return f"price {amount.currency}"
    if amount.unit:
        return size_of(amount.unit)[1]
    if amount.head and amount.counts:
        return f"count:{amount.head}"
    return f"named:{amount.before}" if amount.before.isalpha() else ""


def _kinds_of(found: Found) -> set[str]:
    return {_measure(found)} | ({"time"} if re.search(r"T\d\d:", found.claim.value) else set())


def _is_value(claimed: Found, other: Found) -> bool:
    one, two = claimed.amount, other.amount
    if one and two and one.value is not None and two.value is not None:
        size, size_two = size_of(one.unit)[0], size_of(two.unit)[0]
        if one.about and abs(one.value * size - two.value * size_two) * 20 <= abs(two.value * size_two):
            return True
        return one.value * size == two.value * size_two
    return bool(claimed.needs & other.gives or (claimed.together and claimed.together <= other.gives))


@lru_cache(maxsize=1024)
def _located(text: str, cut: re.Pattern[str]) -> tuple[tuple[int, str], ...]:
    inside = bytearray(len(text) + 1)
    taken = [(found.start, found.end) for found in scan(text)]
    taken += [match.span() for match in re.finditer(r"\([^()\n]*\)", text)] if "," in cut.pattern else []
    for first, last in taken:
        inside[first:last] = b"\1" * (last - first)
    parts, start = [], 0
    for match in cut.finditer(text):
        before = text[max(start, match.start() - _LOOK_CHARS) : match.start()]
        after = text[match.end() : match.end() + 20]
        if match[0][0] == "." and not ends_sentence(before, ".", after):
            continue
        if match[0] == "\n" or not any(inside[match.start() : match.end()]):
            parts.append((start, text[start : match.start()]))
            start = match.end()
    return (*parts, (start, text[start:]))


def _cut(text: str, cut: re.Pattern[str]) -> list[str]:
    return [part for _, part in _located(text, cut) if part.strip()]


@lru_cache(maxsize=256)
def _levels(sources: tuple[str, ...]) -> tuple[tuple[_Part, ...], ...]:
    levels = [tuple(_part(source, "") for source in sources)]
    for cut in _CUTS:
        parts: list[_Part] = []
        for source in sources:
            heading = ""
            for line in source.split("\n"):
                if line.startswith("#"):
                    heading = line
                for sentence in _cut(line, _CUTS[1]) if cut is not _CUTS[0] else [line]:
                    lead = _LEAD.match(sentence)
                    over = f"{heading} {lead[0] if lead and cut in _CUTS[2:] else ''}"
                    cuts = _cut(sentence, cut)
                    first = frozenset(map(stem, _words(lead[0]))) if lead and len(cuts) == 1 else frozenset()
                    parts += [_part(one, over, first) for one in cuts]
        levels.append(tuple(parts))
    return tuple(levels)


def _part(text: str, over: str, title: frozenset[str] = frozenset()) -> _Part:
    values = tuple(found for found in scan(text) if _measure(found))
    lead = text[: values[0].start] if values else ""
    key = {stem(word) for word in _words(lead)} if len(_words(lead)) <= 4 else set()
    return _Part(
        frozenset(_subjects(text) | {stem(word) for word in _words(f"{over} {text}")} | _subjects(over)),
        frozenset(_subjects(text)) | title,
        frozenset(key),
        frozenset(map(stem, _words(text[values[0].end :])))
        if len(values) == 1 and not lead.strip()
        else frozenset(),
        values,
        bool(_PRONOUN.search(text)),
    )


def _words(text: str) -> list[str]:
    return [
        word
        for word in (match[0].lower().removesuffix("'s") for match in _WORD.finditer(text))
        if word not in NOT_COUNTED and word.isalpha() and len(word) > 1 and rate_of(word) not in RATES
    ]


def _subjects(text: str) -> set[str]:
    """The names of a text, a single letter with the word before it, and what mixes letters and digits."""
    names = set()
    for name in find_names(text):
        words = text[max(0, name.start - _LOOK_CHARS) : name.start] if len(name.folded) == 1 else ""
        before = re.search(r"(\w+) \Z", words)
        names.add(f"{before[1].lower()} {name.folded}" if before else name.folded)
    for found in scan(text):
        if found.amount and found.amount.label:
            names.add(f"{found.amount.label}{found.amount.written}")
        elif (
            found.amount is None and found.claim.kind == "number" and re.search(r"[^\W\d]", found.claim.value)
        ):
            names.add(found.claim.value)
    return names


def _of_others(text: str, held: Sequence[Found], sources: tuple[str, ...]) -> Iterator[Found]:
    levels = _levels(sources)
    for start, sentence in _located(text, _SENTENCE):
        values = [found for found in held if start <= found.start < start + len(sentence)]
        if not values or re.search(r"\brespectively\b", sentence):
            continue
        subjects: set[str] = set()
        words: set[str] = set()
        carried = after_than = False
        whole = _subjects(sentence), {stem(word) for word in _words(sentence)}
        for at, piece in _located(sentence, _PIECES):
            first = start + at
            mine = [found for found in values if first <= found.start < first + len(piece)]
            named, said = _subjects(piece), {stem(word) for word in _words(piece)}
            compared = text[:first].rstrip().endswith(" than")
            if _CONTRAST.search(piece) or (after_than and not named):
                named, said = whole
            after_than = after_than or compared
            if named or not (subjects or words):
                subjects, words = (subjects | named, words | said) if carried else (named, said)
            else:
                words = words | said
            carried = not mine
            for found in mine:
                if _CONTRAST.search(text[max(start, found.start - 14) : found.start]):
                    continue
                who, what = _directly_before(text, found, start) or (subjects, words)
                if not who and not what:
                    continue
                led = {stem(word) for word in _words(text[first : found.start])}
                kinds = Counter(_measure(one) for one in mine)
                beside = [one for one in mine if one is not found and kinds[_measure(one)] == 1]
                beside = beside if kinds[_measure(found)] == 1 else []
                if any(
                    _is_of_another(found, who, what if who else said, led, parts)
                    or any(_is_crossed(found, one, parts) for one in beside)
                    for parts in levels
                ):
                    yield found


def _directly_before(text: str, found: Found, start: int) -> tuple[set[str], set[str]] | None:
    opens = text.rfind("(", start, found.start)
    if opens < 0 or ")" in text[opens : found.start]:
        return None
    inside = [one for one in scan(text[opens : text.find(")", opens) + 1]) if _measure(one)]
    if len(inside) > 1:
        return set(), set()
    names = [name for name in find_names(text) if start <= name.start and name.end <= opens]
    numbers = r"(?:[ ]?[\w.-]*\d[\w.-]*)*[*\"']*[ ]"
    if not names or not re.fullmatch(numbers, text[names[-1].end : opens]):
        return None
    group = [names[-1]]
    while len(names) > len(group) and text[names[-len(group) - 1].end : group[-1].start] in (" ", "-"):
        group.append(names[-len(group) - 1])
    return _subjects(text[group[-1].start : opens]), set()


def _is_of_another(
    found: Found, subjects: set[str], words: set[str], led: set[str], parts: Sequence[_Part]
) -> bool:
    measure = _measure(found)
    having = [part for part in parts if any(_measure(one) == measure for one in part.values)]
    holding = [part for part in having if any(_is_value(found, one) for one in part.values)]
    if not holding or len(having) < 2 or any(part.refers for part in holding):
        return False
    own = {one for one in subjects if 0 < sum(one in part.words for part in having) < len(having)}
    own -= {found.claim.value}
    if own:
        meant = [part for part in having if own & part.words]
        return not any(part in holding for part in meant) and all(
            any(name not in meant[0].words and name != found.claim.value for name in part.names)
            and not words & part.words - meant[0].words
            for part in holding
        )
    for side, said in (("key", led), ("tail", words - led)):
        keyed = [part for part in having if getattr(part, side) and getattr(part, side) <= said]
        if (
            keyed
            and not any(part in holding for part in keyed)
            and all(getattr(part, side) and not words & part.words - keyed[0].words for part in holding)
        ):
            return True
    return False


def _is_crossed(found: Found, other: Found, parts: Sequence[_Part]) -> bool:
    measure, second = _measure(found), _measure(other)
    holding = [part for part in parts if any(_is_value(found, one) for one in part.values)]
    meant = [part for part in parts if any(_is_value(other, one) for one in part.values)]
    if not holding or not meant or any(part in holding for part in meant):
        return False
    return all(
        {measure, second} <= {kind for one in part.values for kind in _kinds_of(one)} and not part.refers
        for part in (*holding, *meant)
    )


def _wrong_orders(text: str, sources: tuple[str, ...]) -> Iterator[Found]:
    for start, sentence in _located(text, _SENTENCE):
        found = _COMPARES.search(sentence)
        if not found or _ANY_NEGATION.search(sentence) or len(_COMPARES.findall(sentence)) > 1:
            continue
        one, two = _subjects(sentence[: found.start()]), _subjects(sentence[found.end() :])
        measures = {_measure(value) for value in scan(sentence) if _measure(value)}
        if re.search("cheap|expens|pric|dear|cost", found[0]) or not measures:
            measures = (
                {m for m in _kinds(sources) if m.startswith("price")} if found["by"] in _BY_PRICE else set()
            )
        if re.search("light|heav", found[0]):
            measures = {"g"}
        if len(measures) != 1:
            continue
        measure = measures.pop()
        for parts in _levels(sources):
            firsts = [_first(part, measure) for part in parts if one & part.words and not two & part.words]
            seconds = [_first(part, measure) for part in parts if two & part.words and not one & part.words]
            mine, other = ([value for value in values if value] for values in (firsts, seconds))
            if len(mine) == len(other) == 1 and mine[0][1] == other[0][1]:
                less = bool(found["less"])
                if mine[0][0] == other[0][0] or (mine[0][0] < other[0][0]) != less:
                    yield _comparison(text, found, start)
                break


def _comparison(text: str, match: re.Match[str], start: int = 0) -> Found:
    return Found(Claim(match[0], "number", match[0].lower()), start + match.start(), start + match.end())


def _wrong_weekdays(text: str, sources: Sequence[str]) -> Iterator[Found]:
    for first, second in pairwise(scan(text)):
        if not first.claim.value.endswith("day") or text[first.end : second.start] not in (
            " ",
            ", ",
            ", the ",
        ):
            continue
        value = second.claim.value[: len("2026-01-04")]
        written = text[first.start : second.end]
        if not _DAY.fullmatch(value) or any(written in source for source in sources):
            continue
        known = (day for source in sources for day in find_days(source))
        days = {value} if value[0] != "-" else {day for day in known if day[4:] == value[1:]}
        weekday = f"weekday:{first.claim.value}"
        given = {any(weekday in found.gives for found in scan(day)) for day in days}
        if given == {False}:
            yield second


def _first(part: _Part, measure: str) -> tuple[float, str] | None:
    for found in part.values:
        value = _value(found)
        if _measure(found) == measure and value is not None and found.amount:
            return value, found.amount.rate
    return None


def _kinds(sources: tuple[str, ...]) -> set[str]:
    return {_measure(found) for source in sources for found in scan(source)}


def _sentence_of(text: str, found: Found) -> tuple[int, str]:
    sentences = _located(text, _SENTENCE)
    return sentences[bisect_right(sentences, found.start, key=lambda one: one[0]) - 1]


def _is_denied(text: str, found: Found, held: Sequence[Found], sources: Sequence[str]) -> bool:
    start, sentence = _sentence_of(text, found)
    before = _NEGATED.search(text[max(start, found.start - _LOOK_CHARS) : found.start])
    if not before or _BOUNDED.search(before[0]):
        return False
    if any(
        one != found and _measure(one) == _measure(found)
        for one in scan(sentence)
        if one.claim != found.claim
    ):
        return False
    said = [one for source in sources for one in _cut(source, _SENTENCE)]
    return not any(
        _ANY_NEGATION.search(one) for one in said if any(_is_value(found, other) for other in scan(one))
    )


def _is_bounded_otherwise(text: str, found: Found, held: Sequence[Found], sources: Sequence[str]) -> bool:
    before = text[max(0, found.start - 20) : found.start]
    told = [
        source[max(0, one.start - 20) : one.start]
        for source in sources
        for one in scan(source)
        if _is_value(found, one)
    ]
    if _AT_MOST.search(before):
        return bool(told) and all(_AT_LEAST.search(one) for one in told)
    return bool(_AT_LEAST.search(before)) and bool(told) and all(_AT_MOST.search(one) for one in told)


def _is_turned_round(text: str, found: Found, held: Sequence[Found], sources: Sequence[str]) -> bool:
    for first, second in _ways(text):
        if first.start != found.start:
            continue
        ways = [way for source in sources for way in _ways(source)]
        there = any(_is_value(first, one) and _is_value(second, two) for one, two in ways)
        back = any(_is_value(first, two) and _is_value(second, one) for one, two in ways)
        return back and not there
    return False


@lru_cache(maxsize=256)
def _ways(text: str) -> tuple[tuple[Found, Found], ...]:
    claims = [found for found in scan(text) if _measure(found)]
    return tuple(
        (first, second)
        for first, second in pairwise(claims)
        if _FROM.search(text, max(0, first.start - 10), first.start)
        and _TO.fullmatch(text, first.end, second.start)
    )


def _is_compared_wrongly(text: str, found: Found, held: Sequence[Found], sources: Sequence[str]) -> bool:
    after = next((one for one in held if one.start >= found.end), None)
    if after is None or not found.amount or not after.amount or _measure(found) != _measure(after):
        return False
    beside = _BESIDE.fullmatch(text, found.end, after.start)
    first, second = _value(found), _value(after)
    instead = re.compile(r" (?:instead of|rather than) (?:the )?").fullmatch(text, found.end, after.start)
    way = list(_ORDERS.finditer(text, _sentence_of(text, found)[0], found.start)) if instead else []
    if len(way) == 1 and first is not None and second is not None:
        return first >= second if way[0]["less"] else first <= second
    if not beside or first is None or second is None or _ANY_NEGATION.search(beside[0]):
        return False
    return first >= second if beside["less"] else first <= second


def _value(found: Found) -> float | None:
    amount = found.amount
    return None if amount is None or amount.value is None else float(amount.value * size_of(amount.unit)[0])


def _is_no_extreme(text: str, found: Found, held: Sequence[Found], sources: Sequence[str]) -> bool:
    start, sentence = _sentence_of(text, found)
    superlatives = list(_LARGEST.finditer(sentence))
    values = [
        one for one in held if start <= one.start < start + len(sentence) and _measure(one) == _measure(found)
    ]
    if len(superlatives) != 1 or values != [found] or _RESTRICTED.search(sentence):
        return False
    most = superlatives[0]["most"] or superlatives[0]["my_most"]
    words = superlatives[0][0].lower()
    if found.amount is None or bool(re.search("cheap|expens|pric|dear", words)) > bool(found.amount.currency):
        return False
    for parts in _levels(tuple(sources)):
        first = [value for part in parts if (value := _first(part, _measure(found)))]
        known, mine = [value for value, _ in first], _value(found)
        if len(known) > 1 and len({rate for _, rate in first}) == 1 and mine in known:
            return mine < max(known) if most else mine > min(known)
    return False
