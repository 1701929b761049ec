"""Values that the sources hold, but of something else, or of which they say the opposite."""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

from panda.language.claims import Found, scan
from panda.language.lexicon import NOT_COUNTED
from panda.language.names import find_names
from panda.language.numbers import size_of
from panda.language.stemming import stem

_CUTS = (
    re.compile(r"\n"),
    re.compile(r"\n|[.!?][\"')*]*\s"),
    re.compile(r"\n|[.!?][\"')*]*\s|;\s|\s·\s"),
    re.compile(r"\n|[.!?][\"')*]*\s|;\s|\s·\s|,\s"),
)
"""Where a source falls into parts, from its lines to what stands between two commas."""
_PIECES = re.compile(
    r"\n|[.!?][\"')*]*\s|;\s|\s·\s|,\s(?:(?:and|but|while|whereas|or)\s)?|\s(?:and|but|while|whereas|or)\s"
)
_SENTENCE = re.compile(r"\n|[.!?][\"')*]*\s|;\s|\s·\s")
_LEAD = re.compile(r"\A[^:\n]{1,60}:\s")
_WORD = re.compile(r"[^\W_]+(?:'[^\W_]+)?")
_PRONOUN = re.compile(r"\b(?:it|its|they|them|their|she|he|her|his|him|this|that|these|both)\b", re.IGNORECASE)
_CONTRAST = re.compile(
    r"\b(?:than|vs|versus|compared|instead|rather|against|unlike|respectively|whereas|from|difference|between)\b",
    re.IGNORECASE,
)
_NEGATED = re.compile(
    r"(?:\b(?:is|are|was|were|has|have|had)(?: not|n't)|\b(?:does|do|did)(?: not|n't)"
    r" (?:cost|have|weigh|take|last|contain|need|include|run|start|begin|end))\b(?: (?!only|just|merely)[a-z]+){0,3} \Z",
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
    r"(?P<first>(?:,| [^\s\d]+)[^.;:\n()\d]{0,40}?)\b(?:(?P<less>below|under|(?:less|lower|lighter|cheaper|shorter) than)"
    r"|(?P<more>above|over|exceed\w*|(?:more|higher|heavier|longer|dearer) than))\b[^.;,\n()\d$€£]{0,40}"
)
_LARGEST = re.compile(
    r"\bthe (?:(?P<most>(?:big|larg|great|heavi|long|high|tall|wid|pric|dear)(?:est|iest)|most expensive|(?:bigger|larger"
    r"|heavier|longer|higher|taller|pricier|dearer|more expensive) (?:one|of the two))"
    r"|(?P<least>(?:cheap|small|light|short|low|thinn|narrow)est|least expensive|(?:cheaper|smaller|lighter|shorter|lower"
    r"|less expensive) (?:one|of the two)))\b"
    r"|\b(?:your|my|our) (?:(?P<my_most>(?:bigg|larg|great|high)est)|(?P<my_least>(?:small|low|cheap)est))\b",
    re.IGNORECASE,
)
_RESTRICTED = re.compile(
    r"\b(?:with|among|that|which|those|second|next|under|below|above|over|third|at least|but|not|n't|who)\b"
)
_LOOK_CHARS = 60


@dataclass(frozen=True)
class _Part:
    """A part of a source: what it names, and its values."""

    words: frozenset[str]
    """Stems of its words, and of what stands over it."""
    names: frozenset[str]
    """Those that are names."""
    key: frozenset[str]
    """Those before its first value, where they are no names."""
    values: tuple[Found, ...]
    """What it claims, in order."""
    refers: bool
    """Whether a pronoun stands for what it is about."""


def contradicted(text: str, held: Sequence[Found], sources: Sequence[str]) -> Iterator[Found]:
    """
    The values of a text that its sources hold, but not as the text tells them.

    That is a value of another thing ("The LOQ costs $749" where that is the price of the TUF, and the LOQ has
    another), one that is denied where the source has it, "at most" for "at least", "from A to B" for "from B
    to A", "142, below 130", and "the cheapest at $749" where another one costs less. What cannot be told for
    sure is left alone.

    Args:
        text: What is said, as plain_text gives it.
        held: Its claims that a source holds.
        sources: What it cites, likewise.

    >>> sources = ("LOQ 15: $697", "TUF A15: $749")
    >>> text = "The LOQ costs $749, the TUF $697."
    >>> [one.claim.text for one in contradicted(text, [one for one in scan(text)], sources)]
    ['$749', '$697']
    """
    quoted = {sentence.strip() for source in sources for sentence in _cut(source, _SENTENCE)}
    checks: tuple[Callable[[str, Found, Sequence[Found], Sequence[str]], bool], ...] = (
        _is_denied,
        _is_bounded_otherwise,
        _is_turned_round,
        _is_compared_wrongly,
        _is_no_extreme,
    )
    values = [found for found in held if found.claims and _measure(found)]
    wrong = {found.start: found for found in values if any(check(text, found, values, sources) for check in checks)}
    wrong |= {found.start: found for found in _of_others(text, values, tuple(sources))}
    for at in sorted(wrong):
        sentence = next((one for start, one in _located(text, _SENTENCE) if start <= at < start + len(one)), "")
        if sentence.strip() not in quoted:
            yield wrong[at]


def _measure(found: Found) -> str:
    """What two claims must have in common to be values of one kind; "" for what is compared with nothing."""
    amount = found.amount
    if found.claim.kind == "date":
        return "time" if re.fullmatch(r"\d\d:\d\d:\d\d", found.claim.value) else "day"
    if amount is None:
        token = re.match(r"[^\W\d]+", found.claim.value) if found.claim.kind == "number" else None
        return f"token:{token[0]}" if token else ""
    if amount.ordinal or amount.label or amount.version:
        return ""
    if amount.currency:
        return amount.currency
    if amount.unit:
        return size_of(amount.unit)[1]
    return f"count:{amount.head}" if amount.head and amount.counts else ""


def _is_value(claimed: Found, other: Found) -> bool:
    """Whether two claims give the same value."""
    one, two = claimed.amount, other.amount
    if one and two and one.value is not None and two.value is not None:
        size, size_two = size_of(one.unit)[0], size_of(two.unit)[0]
        if one.about and abs(one.value * size - two.value * size_two) * 20 <= abs(two.value * size_two):
            return True
        return one.value * size == two.value * size_two
    return bool(claimed.needs & other.gives or (claimed.together and claimed.together <= other.gives))


def _located(text: str, cut: re.Pattern[str]) -> Iterator[tuple[int, str]]:
    """The parts of a text and where they begin; no claim and no parenthesis is cut."""
    taken = [(found.start, found.end) for found in scan(text)]
    taken += [match.span() for match in re.finditer(r"\([^()\n]*\)", text)] if "," in cut.pattern else []
    start = 0
    for match in cut.finditer(text):
        if match[0] != "\n" and any(first < match.end() and match.start() < last for first, last in taken):
            continue
        yield start, text[start : match.start()]
        start = match.end()
    yield start, text[start:]


def _cut(text: str, cut: re.Pattern[str]) -> list[str]:
    return [part for _, part in _located(text, cut) if part.strip()]


@lru_cache(maxsize=256)
def _levels(sources: tuple[str, ...]) -> tuple[tuple[_Part, ...], ...]:
    """The parts of the sources, nodes first, then finer and finer."""
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
                    parts += [_part(one, over) for one in _cut(sentence, cut)]
        levels.append(tuple(parts))
    return tuple(levels)


def _part(text: str, over: str) -> _Part:
    values = tuple(found for found in scan(text) if _measure(found))
    lead = text[: values[0].start] if values else ""
    key = {stem(word) for word in _words(lead)} if len(_words(lead)) <= 4 else set()
    return _Part(
        frozenset(_subjects(text) | {stem(word) for word in _words(f"{over} {text}")} | _subjects(over)),
        frozenset(_subjects(text)),
        frozenset(key),
        values,
        bool(_PRONOUN.search(text)),
    )


def _words(text: str) -> list[str]:
    return [
        word
        for word in (match[0].lower().removesuffix("'s") for match in _WORD.finditer(text))
        if word not in NOT_COUNTED and not re.search(r"\d", word) and len(word) > 1
    ]


def _subjects(text: str) -> set[str]:
    """The names of a text, a single letter with the word before it, and what mixes letters and digits."""
    names = set()
    for name in find_names(text):
        before = re.search(r"(\w+) \Z", text[: name.start])
        names.add(f"{before[1].lower()} {name.folded}" if len(name.folded) == 1 and before else name.folded)
    for found in scan(text):
        if found.amount and found.amount.label:
            names.add(f"{found.amount.label}{found.amount.written}")
        elif found.amount is None and found.claim.kind == "number" and re.search(r"[^\W\d]", found.claim.value):
            names.add(found.claim.value)
    return names


def _of_others(text: str, held: Sequence[Found], sources: tuple[str, ...]) -> Iterator[Found]:
    """Values that the sources have of other things than those they stand with."""
    levels = _levels(sources)
    for start, sentence in _located(text, _SENTENCE):
        values = [found for found in held if start <= found.start < start + len(sentence)]
        if not values or re.search(r"\brespectively\b", sentence):
            continue
        subjects: set[str] = set()
        words: set[str] = set()
        carried = False
        whole = _subjects(sentence), {stem(word) for word in _words(sentence)}
        for at, piece in _located(sentence, _PIECES):
            first = start + at
            mine = [found for found in values if first <= found.start < first + len(piece)]
            named, said = _subjects(piece), {stem(word) for word in _words(piece)}
            if _CONTRAST.search(piece):
                named, said = whole
            if named or not (subjects or words):
                subjects, words = (subjects | named, words | said) if carried else (named, said)
            else:
                words = words | said
            carried = not mine
            for found in mine:
                if _CONTRAST.search(text[max(start, found.start - 14) : found.start]):
                    continue
                who, what = _directly_before(text, found, start) or (subjects, words)
                led = {stem(word) for word in _words(text[first : found.start])}
                if any(_is_of_another(found, who, what, led, parts) for parts in levels):
                    yield found


def _directly_before(text: str, found: Found, start: int) -> tuple[set[str], set[str]] | None:
    """The name that a value in parentheses stands behind."""
    opens = text.rfind("(", start, found.start)
    if opens < 0 or ")" in text[opens : found.start]:
        return None
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
    """Whether, among parts that all have a value of this kind, those that are spoken of have another."""
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
    keyed = [part for part in having if part.key and part.key <= led]
    return (
        bool(keyed)
        and not any(part in holding for part in keyed)
        and all(part.key and not words & part.words - keyed[0].words for part in holding)
    )


def _sentence_of(text: str, found: Found) -> tuple[int, str]:
    return next((at, one) for at, one in _located(text, _SENTENCE) if at <= found.start <= at + len(one))


def _is_denied(text: str, found: Found, held: Sequence[Found], sources: Sequence[str]) -> bool:
    """Whether "is not 142" stands against a source that says so, with nothing else in its place."""
    start, sentence = _sentence_of(text, found)
    before = _NEGATED.search(text[max(start, found.start - _LOOK_CHARS) : found.start])
    if not before or _BOUNDED.search(before[0]):
        return False
    if any(one != found and _measure(one) == _measure(found) for one in scan(sentence) if one.claim != found.claim):
        return False
    said = [one for source in sources for one in _cut(source, _SENTENCE)]
    return not any(
        _ANY_NEGATION.search(one) for one in said if any(_is_value(found, other) for other in scan(one))
    )


def _is_bounded_otherwise(text: str, found: Found, held: Sequence[Found], sources: Sequence[str]) -> bool:
    """Whether "at most" stands where every source has "at least", or the other way round."""
    before = text[max(0, found.start - 20) : found.start]
    told = [
        source[max(0, one.start - 20) : one.start] for source in sources for one in scan(source) if _is_value(found, one)
    ]
    if _AT_MOST.search(before):
        return bool(told) and all(_AT_LEAST.search(one) for one in told)
    return bool(_AT_LEAST.search(before)) and bool(told) and all(_AT_MOST.search(one) for one in told)


def _is_turned_round(text: str, found: Found, held: Sequence[Found], sources: Sequence[str]) -> bool:
    """Whether "from A to B" stands where a source has "from B to A"."""
    for first, second in _ways(text):
        if first.start != found.start:
            continue
        ways = [way for source in sources for way in _ways(source)]
        there = any(_is_value(first, one) and _is_value(second, two) for one, two in ways)
        back = any(_is_value(first, two) and _is_value(second, one) for one, two in ways)
        return back and not there
    return False


def _ways(text: str) -> Iterator[tuple[Found, Found]]:
    claims = [found for found in scan(text) if _measure(found)]
    for first, second in zip(claims, claims[1:], strict=False):
        if _FROM.search(text, max(0, first.start - 10), first.start) and _TO.fullmatch(text, first.end, second.start):
            yield first, second


def _is_compared_wrongly(text: str, found: Found, held: Sequence[Found], sources: Sequence[str]) -> bool:
    """Whether a value stands as "below" a smaller one or "above" a greater one."""
    after = next((one for one in held if one.start >= found.end), None)
    if after is None or not found.amount or not after.amount or _measure(found) != _measure(after):
        return False
    beside = _BESIDE.fullmatch(text, found.end, after.start)
    first, second = _value(found), _value(after)
    if not beside or first is None or second is None or _ANY_NEGATION.search(beside[0]):
        return False
    return first >= second if beside["less"] else first <= second


def _value(found: Found) -> float | None:
    amount = found.amount
    return None if amount is None or amount.value is None else float(amount.value * size_of(amount.unit)[0])


def _is_no_extreme(text: str, found: Found, held: Sequence[Found], sources: Sequence[str]) -> bool:
    """Whether a value is told as the least or greatest where another part of the sources goes beyond it."""
    start, sentence = _sentence_of(text, found)
    superlatives = list(_LARGEST.finditer(sentence))
    values = [one for one in held if start <= one.start < start + len(sentence) and _measure(one) == _measure(found)]
    if len(superlatives) != 1 or values != [found] or _RESTRICTED.search(sentence):
        return False
    most = superlatives[0]["most"] or superlatives[0]["my_most"]
    words = superlatives[0][0].lower()
    if found.amount is None or bool(re.search("cheap|expens|pric|dear", words)) > bool(found.amount.currency):
        return False
    for parts in _levels(tuple(sources)):
        having = [[one for one in part.values if _measure(one) == _measure(found)] for part in parts]
        first = [_value(values[0]) for values in having if values and values[0].amount]
        known = [value for value in first if value is not None]
        mine = _value(found)
        if len(known) > 1 and mine in known:
            return mine < max(known) if most else mine > min(known)
    return False
