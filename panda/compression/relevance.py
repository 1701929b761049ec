"""How much each unit of a document says: about the query, about the document, and as such."""

import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from panda.language.stemming import split_terms

_STOP_WORDS = frozenset(
    split_terms(
        """
        a about after again all also am an and any are as at be because been before being but by can could
        d did do does doing done don down for from had has have having he her here hers him his how i if
        in into is it its just let ll m may me might mine more most much must my no nor not now of off on
        once only or other our out over own re s same shall she should so some such t than that the their
        them then there these they this those through to too under until up us ve very was we were what
        when where which while who whom whose why will with would yes you your yours oh hi hey wow thank
        thanks ok okay yeah really
        """
    )
)
_ENTITY = re.compile(r"(?<![.!?:] )(?<!^)\b[A-Z][\w'’-]*\w|[\"“«][^\"”»]{3,60}[\"”»]")
_QUANTITY = re.compile(
    r"\d|\b(?:two|three|four|five|six|seven|eight|nine|ten|dozen|hundred|thousand|million)\b", re.I
)
_NEGATION = re.compile(r"\b(?:not|never|no|none|without|cannot|\w+n['’]t|unless|except)\b", re.IGNORECASE)
_TIME = re.compile(
    r"\b(?:yesterday|today|tonight|tomorrow|ago|last|next|this (?:week|month|year|morning|weekend)|since"
    r"|until|week(?:end)?s?|months?|years?|days?|hours?|(?:mon|tues|wednes|thurs|fri|satur|sun)day"
    r"|january|february|march|april|june|july|august|september|october|november|december|\d{4}|\d+:\d\d)\b",
    re.IGNORECASE,
)
_FIRST_PERSON = re.compile(r"\b(?:i|i['’](?:m|ve|d|ll)|my|we|our|we['’](?:re|ve|d|ll))\b", re.IGNORECASE)
_SHARED_START = 5
_SAME_LINE, _LINE_BEFORE, _LINE_AFTER = 0.4, 0.4, 0.2
"""An answer often stands beside the words that the question shares: in the same line, or below a question."""


@dataclass(frozen=True)
class UnitText:
    """One unit as it is weighed."""

    text: str
    """What it says."""
    line: int
    """Units of the same line or paragraph share it."""
    around: str = ""
    """Headings, keys, label that it stands under."""


@dataclass(frozen=True)
class Signals:
    """What is measured of each unit; all lists are in the order of the units."""

    query: list[float]
    """How far it answers the query, 0 to about 1; zeros without one."""
    central: list[float]
    """How much of it is said elsewhere in the document, 0 to 1."""
    specific: list[float]
    """How much rare content it has, 0 to about 1."""
    marks: list[float]
    """Names, numbers, times, negations, 0 to 1."""


def measure(units: Sequence[UnitText], query: str | None) -> Signals:
    """
    The signals of all units of a document.

    Args:
        units: In order; may be empty.
        query: What is asked; None or empty gives no query signal.
    """
    terms = [[term for term in split_terms(unit.text) if term not in _STOP_WORDS] for unit in units]
    counts = Counter(term for own in terms for term in set(own))
    idf = {term: math.log(1 + len(units) / count) for term, count in counts.items()}
    top = math.log(1 + len(units)) or 1.0
    specific = [
        sum(idf[term] for term in set(own)) / top / (3 + len(own)) * min(1.0, len(own) / 4) for own in terms
    ]
    return Signals(
        _query_signal(units, terms, idf, query or ""),
        _central(terms, counts, idf),
        specific,
        [_marks(unit.text) for unit in units],
    )


def _query_signal(
    units: Sequence[UnitText], terms: Sequence[Sequence[str]], idf: Mapping[str, float], query: str
) -> list[float]:
    asked = list(dict.fromkeys(term for term in split_terms(query) if term not in _STOP_WORDS))
    if not asked:
        return [0.0] * len(units)
    unseen = math.log(1 + len(units))
    weights = {term: idf.get(term, unseen) for term in asked}
    total = sum(weights.values()) or 1.0
    starts = {
        term: {word for word in idf if word[:_SHARED_START] == term[:_SHARED_START]}
        for term in asked
        if len(term) >= _SHARED_START
    }
    own = []
    for unit, found in zip(units, terms, strict=True):
        said, under = set(found), set(split_terms(unit.around))
        score = 0.0
        for term in asked:
            if term in said:
                score += weights[term]
            elif term in starts and starts[term] & said:
                score += 0.7 * weights[term]
            elif term in under:
                score += 0.6 * weights[term]
        own.append(score / total)
    lines: dict[int, float] = {}
    for unit, score in zip(units, own, strict=True):
        lines[unit.line] = max(score, lines.get(unit.line, 0.0))
    near = [
        _SAME_LINE * lines[unit.line]
        + _LINE_BEFORE * lines.get(unit.line - 1, 0.0)
        + _LINE_AFTER * lines.get(unit.line + 1, 0.0)
        for unit in units
    ]
    kind = _kind_of_answer(query)
    fits = [1.0 if kind is not None and kind.search(unit.text) else 0.0 for unit in units]
    return [a + b + 0.1 * c for a, b, c in zip(own, near, fits, strict=True)]


def _kind_of_answer(query: str) -> re.Pattern[str] | None:
    asked = query.strip().lower()
    if asked.startswith(("when", "what date", "what day", "what time", "how long", "since when")):
        return _TIME
    if re.match(r"how (?:many|much|often|old|big|large|far)|what (?:is the )?(?:price|number)", asked):
        return _QUANTITY
    return _ENTITY if asked.startswith(("who", "where", "which")) else None


def _central(
    terms: Sequence[Sequence[str]], counts: Mapping[str, int], idf: Mapping[str, float]
) -> list[float]:
    """Similarity to the document as a whole: weights of the terms that other units have too."""
    found = []
    for own in terms:
        shared = sum(idf[term] * min(counts[term] - 1, 5) / 5 for term in set(own))
        found.append(shared / (2 + len(own)) if own else 0.0)
    top = max(found, default=0.0) or 1.0
    return [value / top for value in found]


def _marks(text: str) -> float:
    score = 0.35 * min(2, len(_ENTITY.findall(text)))
    score += (
        0.3 * bool(_QUANTITY.search(text))
        + 0.2 * bool(_TIME.search(text))
        + 0.1 * bool(_NEGATION.search(text))
    )
    score += 0.2 * bool(_FIRST_PERSON.search(text)) - 0.4 * text.rstrip().endswith("?")
    return max(-0.4, min(1.0, score))
