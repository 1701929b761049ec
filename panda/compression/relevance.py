"""How much each unit of a document says: about the query, about the document, and as such."""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from panda.language.topics import count_kind, negates, speaks_of_self, wanted_kind
from panda.language.words import FUNCTION_WORDS, split_terms

_STOP_WORDS = frozenset(split_terms(" ".join(FUNCTION_WORDS)))
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
    kind = wanted_kind(query)
    fits = [1.0 if kind is not None and count_kind(unit.text, kind) else 0.0 for unit in units]
    return [a + b + 0.1 * c for a, b, c in zip(own, near, fits, strict=True)]


def _marks(text: str) -> float:
    score = 0.35 * count_kind(text, "name")
    score += 0.3 * bool(count_kind(text, "number")) + 0.2 * bool(count_kind(text, "time"))
    score += 0.1 * negates(text) + 0.2 * speaks_of_self(text) - 0.4 * text.rstrip().endswith("?")
    return max(-0.4, min(1.0, score))
