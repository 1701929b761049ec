"""Which item of a list a description means: what only it has, or what it has the most of. Pure."""

import re
from collections.abc import Callable, Collection, Sequence

from panda.documents.evidence import find_claims
from panda.language.stemming import split_terms
from panda.session.values import Listed

_GLUE = re.compile(r"(?<=\d)(?=[A-Za-z])|(?<=[A-Za-z])(?=\d)")
_GROUPED = re.compile(r"(?<=\d),(?=\d{3}\b)")
_PARTS = re.compile(r"[;|]|,\s|\s[–—-]\s|\band\b")
_YEAR = re.compile(r"\b(?:1[5-9]|20)\d\d\b")
_CLOCK = re.compile(r"\b([01]?\d|2[0-3])[:.]([0-5]\d)\b")
_SPACED = re.compile(r"\b(\d+(?:\.\d+)?) ?([a-z]+)\b")
_LACKS = re.compile(r"(?:without|with no)(?: an?| any)? (?P<what>[\w-]+)", re.IGNORECASE)
_BOUND = re.compile(
    r"\b(?:(?P<most>under|below|less than|up to)|over|above|more than) (?P<price>\S*\d\S*(?: [A-Za-z]+)?)",
    re.IGNORECASE,
)
_WORD = re.compile(r"\S*\w")
_NAME_WORD = re.compile(r"[\w'’&-]+")
_LEAST_LETTERS = 4
_WEAK = frozenset(
    split_terms(
        "a an the this that these those it its is are was were be been has have had do does did can could "
        "will "
        "would should may might with without of in on at by for from to as and or but not no than then "
        "there here "
        "who whom which what when where whose how why one ones option options item items thing things also "
        "too "
        "please me my i you your we our they their he she his her some any all both each most more"
    )
)
"""Terms that set nothing apart."""

_UNITS: dict[str, dict[str, float]] = {
    "weight": {"mg": 1e-6, "g": 0.001, "kg": 1, "oz": 0.02835, "lb": 0.4536},
    "time": {"ms": 1 / 60_000, "s": 1 / 60, "min": 1, "h": 60, "d": 1_440, "week": 10_080, "month": 43_800},
    "length": {"mm": 0.001, "cm": 0.01, "m": 1, "km": 1_000, "mi": 1_609, "in": 0.0254, "ft": 0.3048},
    "size": {"kb": 1e-6, "mb": 0.001, "gb": 1, "tb": 1_000},
    "volume": {"ml": 0.001, "l": 1},
}
"""Units by what they measure, each in terms of one of them."""
_SCALES: tuple[tuple[str, Callable[..., str], tuple[str, ...]], ...] = (
    (r"cheap(?:er|est)|(?:less|least) expensive|(?:more|most) affordable", min, ("price",)),
    (r"dear(?:er|est)|pric(?:ier|iest)|(?:more|most) expensive|best[ -]paid", max, ("price",)),
    (r"light(?:er|est)", min, ("weight",)),
    (r"heav(?:ier|iest)", max, ("weight",)),
    (r"short(?:er|est)|quick(?:er|est)|fast(?:er|est)", min, ("time", "length")),
    (r"long(?:er|est)|slow(?:er|est)", max, ("time", "length")),
    (r"small(?:er|est)|tini(?:er|est)|low(?:er|est)", min, ("length", "size", "volume")),
    (r"big(?:ger|gest)|larg(?:er|est)|tall(?:er|est)|high(?:er|est)", max, ("length", "size", "volume")),
    (r"new(?:er|est)|(?:more|most) recent|young(?:er|est)", max, ("year",)),
    (r"old(?:er|est)", min, ("year",)),
    (r"earl(?:ier|iest)", min, ("clock", "year")),
    (r"lat(?:er|est)", max, ("clock", "year")),
)
SUPERLATIVE = rf"(?:{'|'.join(words for words, _, _ in _SCALES)})"
"""Words that rank the items of a list."""
_HAVING = re.compile(
    r"^(?:with|that has|which has|having|offering) the (?P<end>most|biggest|largest|highest|longest|best|"
    r"least|"
    r"fewest|smallest|lowest|shortest) (?P<what>[\w-]+)",
    re.IGNORECASE,
)
_LESS = ("least", "fewest", "smallest", "lowest", "shortest")


def described_item(words: str, items: Sequence[Listed]) -> tuple[str | None, int]:
    """
    The item that a description fits best.

    Args:
        words: The description, e.g. "with the belt drive" or "single speed".
        items: A list, each item with all that was said of it.

    Returns:
        Its ref, and where in *words* the last word stands that fits it; (None, 0) if none fits, or two do.

    >>> bikes = [Listed(ref="a", text="Cube: 500 Wh, rack"), Listed(ref="b", text="Vado: 710 Wh, belt drive")]
    >>> described_item("with the belt drive cost", bikes), described_item("with 500Wh", bikes)
    (('b', 19), ('a', 10))
    >>> described_item("with the mirror", bikes)
    (None, 0)
    """
    if _LACKS.match(words):
        return _lacking(words, items)
    found, end = _bounded(words, items)
    if found is not None:
        return found, end
    told = [set(_terms(one.text)) for one in items]
    scores = [0.0] * len(items)
    ends = [0] * len(items)
    for match in _WORD.finditer(words):
        for term in _terms(match[0]):
            having = [at for at, terms in enumerate(told) if term not in _WEAK and _holds(terms, term)]
            for at in having if len(having) < len(items) else ():
                scores[at] += 1 / len(having)
                ends[at] = match.end()
    best = max(scores, default=0.0)
    if best <= 0 or scores.count(best) > 1:
        return None, 0
    at = scores.index(best)
    return items[at].ref, ends[at]


def extreme_item(words: str, items: Sequence[Listed]) -> tuple[str | None, int]:
    """
    The item that ranks first or last by what a description names.

    Args:
        words: "cheapest", or "with the biggest battery".
        items: A list.

    Returns:
        Its ref, and where the words end that rank; (None, 0) if fewer than two items say how much they have,
        or the first two are equal.

    >>> laptops = [Listed(ref="a", text="E14: $849, 16 GB RAM"), Listed(ref="b", text="Zen: $999, 32 GB RAM")]
    >>> extreme_item("cheapest", laptops), extreme_item("with the most RAM", laptops)
    (('a', 8), ('b', 17))
    """
    having = _HAVING.match(words)
    if having:
        values = [_amount(one.text, having["what"]) for one in items]
        return _ranked(values, items, min if having["end"].lower() in _LESS else max), having.end()
    for pattern, choose, kinds in _SCALES:
        match = re.match(rf"(?:{pattern})\b", words, re.IGNORECASE)
        for kind in kinds if match else ():
            found = _ranked([_measure(one.text, kind) for one in items], items, choose)
            if found is not None and match:
                return found, match.end()
    return None, 0


def _ranked(
    values: Sequence[tuple[str, float] | None], items: Sequence[Listed], choose: Callable[..., object]
) -> str | None:
    known = [(value, one.ref) for value, one in zip(values, items, strict=True) if value is not None]
    if len(known) < 2 or len(known) < len(items) - 1 or len({kind for (kind, _), _ in known}) > 1:
        return None
    best = choose(value for (_, value), _ in known)
    refs = [ref for (_, value), ref in known if value == best]
    return refs[0] if len(refs) == 1 else None


def _measure(text: str, kind: str) -> tuple[str, float] | None:
    """The first that a text says of a kind: what it is measured in, and how much."""
    if kind == "year":
        return next((("year", float(match[0])) for match in _YEAR.finditer(text)), None)
    if kind == "clock":
        return next((("min", int(match[1]) * 60.0 + int(match[2])) for match in _CLOCK.finditer(text)), None)
    prices = [claim.value.rpartition(" ") for claim in find_claims(text) if claim.kind == kind == "price"]
    if prices:
        return prices[0][0], float(prices[0][2])
    values = [claim.value.partition(" ") for claim in find_claims(text) if claim.kind == "quantity"]
    for value, unit in [(value, unit) for value, _, unit in values] + _SPACED.findall(text):
        if unit in _UNITS.get(kind, ()):
            return kind, float(value) * _UNITS[kind][unit]
    return None


def _bounded(words: str, items: Sequence[Listed]) -> tuple[str | None, int]:
    """The only item whose price is on one side of a bound."""
    match = _BOUND.search(words)
    bound = _measure(match["price"], "price") if match else None
    if match is None or bound is None:
        return None, 0
    prices = [(one.ref, found) for one in items if (found := _measure(one.text, "price"))]
    fit = [
        ref
        for ref, (currency, value) in prices
        if currency == bound[0] and (value <= bound[1] if match["most"] else value >= bound[1])
    ]
    return (fit[0], match.end()) if len(fit) == 1 else (None, 0)


def _lacking(words: str, items: Sequence[Listed]) -> tuple[str | None, int]:
    """The only item that is said to be without something."""
    match = _LACKS.match(words)
    what = re.escape(match["what"]) if match else ""
    fit = [
        one.ref for one in items if re.search(rf"\b(?:no|without)(?: an?)? {what}", one.text, re.IGNORECASE)
    ]
    return (fit[0], match.end()) if match and len(fit) == 1 else (None, 0)


def _amount(text: str, what: str) -> tuple[str, float] | None:
    """The number in the part of a text that speaks of something."""
    wanted = set(_terms(what))
    for part in _PARTS.split(text):
        if wanted <= set(_terms(part)):
            numbers = re.findall(r"\d+(?:\.\d+)?", _GROUPED.sub("", part))
            return (what, float(numbers[0])) if numbers else None
    return None


def named_item(
    words: str, items: Sequence[tuple[str, str, str]], nouns: Collection[str], *, any_words: bool, ends: bool
) -> tuple[str | None, int]:
    """
    The item that words behind an article name in part.

    Args:
        words: What follows "the" or "that".
        items: Ref, name and text of each item of a list.
        nouns: Terms that the conversation has for its things.
        any_words: Whether every word that is said of an item counts ("that thriller"), not its name alone.
        ends: Whether a verb may follow at once.

    Returns:
        Its ref, and where its last word ends; (None, 0) if no item, or more than one, is meant.

    >>> menu = [("a", "mushroom risotto", "mushroom risotto"), ("b", "Arrival", "Arrival, a thriller")]
    >>> named_item("risotto, please", menu, (), any_words=False, ends=False)
    ('a', 7)
    >>> named_item("thriller", menu, (), any_words=False, ends=False)
    ('b', 8)
    >>> named_item("risotto spoon", menu, (), any_words=False, ends=False)
    (None, 0)
    """
    refs, end = {ref for ref, _, _ in items}, 0
    for match in _NAME_WORD.finditer(words):
        terms = [term for term in _terms(match[0]) if term not in _WEAK]
        if not terms or words[end : match.start()].strip():
            break
        fit = {ref for ref, name, text in items if _says(terms, match[0], name, text, any_words=any_words)}
        if not fit and not (end and set(terms) <= set(nouns)):
            if not ends or not end:
                return None, 0
            break
        refs, end = refs & fit if fit else refs, match.end()
        if not refs:
            return None, 0
    return (refs.pop(), end) if end and len(refs) == 1 else (None, 0)


def _says(terms: Sequence[str], word: str, name: str, text: str, *, any_words: bool) -> bool:
    """Whether an item is named by a word: in its name, or as what it is ("a thriller")."""
    told = set(_terms(text if any_words else name))
    kind = re.search(rf"\b(?:an?|some) (?:[\w-]+ )?{re.escape(word)}\b", text, re.IGNORECASE)
    return all(_holds(told, term) for term in terms) or kind is not None


def _spread(text: str) -> str:
    """The text with its words of letters and digits taken apart, as "16 GB" for "16GB"."""
    return _GLUE.sub(" ", _GROUPED.sub("", text))


def _terms(text: str) -> list[str]:
    return split_terms(_spread(text))


def _holds(terms: set[str], term: str) -> bool:
    """Whether a term stands there, or one that begins with it or that it begins with, as Korea and Korean."""
    if term in terms or len(term) < _LEAST_LETTERS or not term.isalpha():
        return term in terms
    longer = (one for one in terms if len(one) >= _LEAST_LETTERS and one.isalpha())
    return any(one.startswith(term) or term.startswith(one) for one in longer)
