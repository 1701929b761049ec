"""Which rows of a list a question means by their values: the cheapest, those within a bound, a sum."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache

from panda.language.claims import scan
from panda.language.patterns import lazy_pattern, one_of
from panda.language.text import plain_text
from panda.language.words import (
    is_ordinary,
    phrases,
    query_terms,
    read_groups,
    read_words,
    split_terms,
)
from panda.messages.mentions import UNITS, scale_of, within
from panda.messages.reading import MESSAGE_CHARS

_TABLE_WORDS = "table_words.txt"
_WORD = lazy_pattern(r"[^\W\d_]+")
_AT_LEAST = 0.6  # share of the rows that have a value by which all are compared


@dataclass(frozen=True)
class _Key:
    name: str  # head of its column, or the word before it
    unit: str  # its unit; "price" of prices, "" of a bare number
    currency: str = ""  # of a price


@dataclass(frozen=True)
class Superlative:
    """What a query wants the first of: the cheapest, the longest, the most."""

    rest: frozenset[str]
    """Terms of the query's other words."""
    sign: int
    """1 for the highest value, -1 for the lowest."""
    kinds: Sequence[str] | None
    """What it compares, as "price"; empty of "most", None where no written value compares it ("nicest")."""


def compares(query: str) -> bool:
    return phrases("rank_words.txt", "compares").search(query[:MESSAGE_CHARS]) is not None


def rows_meant(query: str, rows: Sequence[str]) -> list[int] | None:
    """
    Return the places of the rows that a query means by their values; all of them where it wants the first by
    a value and they can't be compared, or no row keeps within its bound; None if it sets no bound and has no
    superlative. A row of a table is given as "Head: cell; Head: cell".
    """
    asked = plain_text(query[:MESSAGE_CHARS])
    row_values = [_values(row) for row in rows]
    bounded = within(asked, rows)
    places = None if bounded is None else [n for n, is_within in enumerate(bounded) if is_within]
    ways = list(find_superlatives(query)) if bounded is None else []
    keys = [(way.sign, *_compared(way, row_values)) for way in ways]
    rankings = sorted(
        (ranking for ranking in keys if ranking[1] is not None), key=lambda ranking: not ranking[2]
    )
    for sign, key, _ in rankings[:1]:  # one that the query names comes first
        best = max(sign * values[key][0] for values in row_values if key in values)
        places = [n for n, values in enumerate(row_values) if key in values and sign * values[key][0] == best]
    if places is None and not ways:
        return None
    return places or list(range(len(rows)))


@cache
def _bound_pattern() -> re.Pattern[str]:
    groups = "|".join(
        rf"(?P<{name}>{one_of(read_words(_TABLE_WORDS, name))})"
        for name in ("at_least", "at_most", "over", "under")
    )
    than = one_of(read_words(_TABLE_WORDS, "than"))
    return re.compile(
        rf"(?<!\w)(?:{groups}|(?P<comparative>\w+er)\ {than})\s+(?=\D{{0,3}}\d)", re.IGNORECASE | re.VERBOSE
    )


def find_bound(query: str) -> re.Match[str] | None:
    """
    Return where a query sets a bound to a number: a match with one of the groups at_least, at_most, over,
    under and comparative.

    >>> find_bound("which walks were longer than 10 km")["comparative"]
    'longer'
    """
    return _bound_pattern().search(query)


def judges(query: str) -> bool:
    """
    Return whether a query asks for the first of a list by what no amount says, as the best or the nicest.
    """
    ways = list(find_superlatives(query))
    return bool(ways) and not any(way.kinds for way in ways)


def find_superlatives(query: str) -> Iterator[Superlative]:
    """
    Yield the superlatives of a query, in order.

    >>> [(way.sign, way.kinds) for way in find_superlatives("the dearest and the least heavy")]
    [(1, ['price']), (-1, ['weight'])]
    """
    scales = read_groups("scales.txt")
    most, least = (read_words("rank_words.txt", name) for name in ("most", "least"))
    words = [match[0].lower() for match in _WORD.finditer(plain_text(query[:MESSAGE_CHARS]))]
    for at, word in enumerate(words):
        rest = frozenset(term for other in words if other != word for term in query_terms(other))
        if word in ("most", "least") and words[at + 1 : at + 2] and words[at + 1] in scales:
            way, *kinds = scales[words[at + 1]].split()
            sign = 1 if (way == "max") == (word == "most") else -1
            yield Superlative(rest, sign, kinds)
        elif word in (*most, *least) and words[max(0, at - 1) : at] != ["at"]:
            yield Superlative(rest, -1 if word in least else 1, [])
        elif base := scale_of(word) if word.endswith("est") else None:
            way, *kinds = scales[base].split()
            yield Superlative(rest, 1 if way == "max" else -1, kinds)
        elif word.endswith("est") and not is_ordinary(word) and any(map(is_ordinary, (word[:-3], word[:-2]))):
            yield Superlative(rest, 1, None)


def _values(row: str) -> dict[_Key, tuple[Fraction, str]]:
    values: dict[_Key, tuple[Fraction, str]] = {}
    cells = row.split("; ")
    heads = [cell.partition(": ")[0] if len(cells) > 1 else "" for cell in cells]
    for place, (head, cell) in enumerate(zip(heads, cells, strict=True)):
        if head and place == 0:  # the first column names the row
            continue
        for figure in scan(cell[:MESSAGE_CHARS]):
            own = figure.amount
            name = head.lower()
            if own is not None and own.value is not None and not own.ordinal and not own.label:
                unit = "price" if own.currency else own.unit or (own.head if own.counts else "")
                key = _Key(name or ("" if unit else own.before), unit, own.currency or "")
                written = f"{figure.claim.text} {own.noun}" if own.counts else figure.claim.text
                values.setdefault(key, (own.value, written))
            elif (
                own is None
                and figure.claim.kind == "date"
                and re.fullmatch(r"\d\d:\d\d:\d\d", figure.claim.value)
            ):
                hours, minutes, seconds = map(int, figure.claim.value.split(":"))
                at = Fraction(3_600 * hours + 60 * minutes + seconds)
                values.setdefault(_Key(name, "clock"), (at, figure.claim.text))
    return values


def _compared(
    superlative: Superlative, row_values: Sequence[Mapping[_Key, object]]
) -> tuple[_Key | None, bool]:
    asked = superlative.rest
    kinds = superlative.kinds
    if kinds is None:
        return None, False
    counts = Counter(key for values in row_values for key in values)
    keys = [key for key, count in counts.items() if count > 1 and count >= _AT_LEAST * len(row_values)]
    keys = [key for key in keys if _is_of(key, kinds)] if kinds else keys
    named = [key for key in keys if asked & {*split_terms(key.name), *split_terms(key.unit)}]
    units = [key for key in keys if key.unit]
    return next((group[0] for group in (named, units, keys) if len(group) == 1), None), len(named) == 1


def _is_of(key: _Key, kinds: Sequence[str]) -> bool:
    if key.unit == "price" or "price" in kinds:
        return key.unit == "price" and "price" in kinds
    own = [kind for kind, units in UNITS.items() if key.unit in units]
    if key.unit == "clock":
        own.append("time")
    return not set(own).isdisjoint(kinds) if own else bool(key.name) and bool(key.unit)
