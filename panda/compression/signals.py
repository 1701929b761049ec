"""How much each unit of a document says: about the query, about the document, as such, and to a model."""

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from panda.language.text import count_kind, wanted_kind
from panda.language.words import FUNCTION_WORDS, phrases, split_terms
from panda.models.contract import Model, ScoreParams, Usage

_STOP_WORDS = frozenset(split_terms(" ".join(FUNCTION_WORDS)))
_SHARED_START = 5
_SAME_LINE, _LINE_BEFORE, _LINE_AFTER = 0.4, 0.4, 0.2
"""An answer often stands beside the words that the question shares: in the same line, or below a question."""
_WINDOW_TOKENS = 1_024
_BEFORE_CHARS = 400
_MAX_CHARS = 24_000
"""A longer document is judged by its words alone: the model would read it for a minute."""
_TIMEOUT_SECONDS = 300.0


@dataclass(frozen=True)
class UnitText:
    text: str  # what it says
    line: int  # units of the same line or paragraph share it
    around: str = ""  # headings, keys, label that it stands under


@dataclass(frozen=True)
class Signals:
    """What is measured of each unit; all lists are in the order of the units."""

    query: list[float]  # how far it answers the query, 0 to about 1; zeros without one
    specific: list[float]  # how much rare content it has, 0 to about 1
    marks: list[float]  # names, numbers, times, negations, 0 to 1


def measure(units: Sequence[UnitText], query: str | None) -> Signals:
    """The signals of all units of a document; without a query, none of how far they answer it."""
    terms = [[term for term in split_terms(unit.text) if term not in _STOP_WORDS] for unit in units]
    counts = Counter(term for own in terms for term in set(own))
    idf = {term: math.log(1 + len(units) / count) for term, count in counts.items()}
    top = math.log(1 + len(units)) or 1.0
    specific = [
        sum(idf[term] for term in set(own)) / top / (3 + len(own)) * min(1.0, len(own) / 4) for own in terms
    ]
    return Signals(
        _query_signal(units, terms, idf, query or ""), specific, [_marks(unit.text) for unit in units]
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
    for unit, terms_of_unit in zip(units, terms, strict=True):
        own_terms, under = set(terms_of_unit), set(split_terms(unit.around))
        score = 0.0
        for term in asked:
            if term in own_terms:
                score += weights[term]
            elif term in starts and starts[term] & own_terms:
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
    denies, of_self = (bool(phrases("marks.txt", name).search(text)) for name in ("negations", "first"))
    score += 0.1 * denies + 0.2 * of_self - 0.4 * text.rstrip().endswith("?")
    return max(-0.4, min(1.0, score))


@dataclass(frozen=True)
class _Window:
    units: tuple[int, ...]  # their indexes
    text: str  # what is read
    spans: tuple[tuple[int, int], ...]  # where each of them stands in it


class NervesReader:
    """Asks a model how much of each unit it did not expect."""

    def __init__(self, model: Model, *, max_chars: int = _MAX_CHARS) -> None:
        self.model = model.info
        """What was asked."""
        self.readings: list[tuple[Usage, float]] = []
        """Tokens and seconds of every window read so far."""
        self._model = model
        self._max_chars = max_chars

    def __call__(self, units: Sequence[UnitText]) -> list[float] | None:
        """Rank of each unit by mean surprise, 0 to 1; None if the model does not score, or not so much."""
        length = sum(len(unit.text) for unit in units)
        if not self._model.info.scores or not 0 < length <= self._max_chars:
            return None
        means = [0.0] * len(units)
        before = ""
        for window in self._windows(units):
            for i, mean in zip(window.units, self._read(before, window), strict=True):
                means[i] = mean
            before = window.text[-_BEFORE_CHARS:] + "\n"
        order = sorted(range(len(units)), key=lambda i: (means[i], i))
        ranks = [0.0] * len(units)
        for place, i in enumerate(order):
            ranks[i] = place / max(1, len(units) - 1)
        return ranks

    def _windows(self, units: Sequence[UnitText]) -> Iterator[_Window]:
        room = max(64, min(_WINDOW_TOKENS, self._model.info.n_ctx - 2 * _BEFORE_CHARS - 8))
        members: list[int] = []
        spans: list[tuple[int, int]] = []
        text = ""
        tokens = 0
        for i, unit in enumerate(units):
            is_line = not members or units[i - 1].line != unit.line
            is_told = bool(members) and units[i - 1].around == unit.around
            lead = ("\n" if text and is_line else " " if text else "") + (
                "" if is_told or not unit.around else unit.around[-80:] + " "
            )
            size = self._model.count_model_tokens(lead + unit.text)
            if members and tokens + size > room:
                yield _Window(tuple(members), text, tuple(spans))
                members, spans, text, tokens = [], [], "", 0
                lead = lead.lstrip("\n ")
            start = len(text) + len(lead)
            text += lead + unit.text[: 4 * room]
            members.append(i)
            spans.append((start, len(text)))
            tokens += size
        if members:
            yield _Window(tuple(members), text, tuple(spans))

    def _read(self, prefix: str, window: _Window) -> list[float]:
        scores = self._model.score_tokens(prefix, window.text, ScoreParams(_TIMEOUT_SECONDS))
        self.readings.append((scores.usage, scores.seconds))
        sums, counts = [0.0] * len(window.units), [0] * len(window.units)
        place = 0
        for value, end in zip(scores.logprobs, scores.ends, strict=True):
            while place < len(window.spans) - 1 and end > window.spans[place + 1][0]:
                place += 1
            if window.spans[place][0] < end <= window.spans[place][1]:
                sums[place] -= value
                counts[place] += 1
        return [total / count if count else 0.0 for total, count in zip(sums, counts, strict=True)]
