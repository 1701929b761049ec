"""
Ranking of the index's rows for a query.

First every row gets BM25 over its own text, half of the previous turn of its session and a fifth of the next;
the best 200 by that and the 100 nearest in meaning are looked at more closely.
"""

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime

import numpy as np
from numpy.typing import NDArray

from panda.index.sources import COLUMNS, NO_TIME, IndexEntry
from panda.index.tables import IndexView, session_key
from panda.language.words import query_terms, read_words, split_terms
from panda.messages.matching import count_kind, wanted_kind
from panda.messages.periods import Period, find_periods
from panda.retrieval.meaning import Meaning
from panda.retrieval.relevance import find_query_words

PREVIOUS_WEIGHT = 0.5  # what a term in the previous turn of the session counts
NEXT_WEIGHT = 0.2  # what a term in the next turn of the session counts
POOL = 200  # so many rows are looked at more closely for their words
MEANING_WEIGHT = 1.25
"""What a cosine of 1 is worth, in units of the score of a row that has all the query's words."""
_LEAST_COSINE = 0.25
"""Least cosine with which a row is found by meaning alone, unless all that is near is wanted."""

_K1 = 1.2
_B = 0.75
_SPEAKER_BONUS = 0.5
_ANSWER_BONUS = 0.2
_NEARNESS_BONUS = 0.2
_NEARNESS_TERMS = 8
_PERIOD_WEIGHT = 0.5
_DAY_SECONDS = 86_400
_TOLD_LATER_DAYS = 7
_MOST_TERMS = 64

_SPEAKER = re.compile(r"^([^\W\d_][\w.'’ -]{0,40}):\s", re.MULTILINE)

_Floats = NDArray[np.float32]
_Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class Ranked:
    """One row with its score and where that comes from."""

    entry: IndexEntry  # the row
    score: float
    """Higher is better; above 0. By words, and what its meaning adds."""
    words: float  # the part that comes from words and times; 0 if it is found by meaning alone
    cosine: float | None  # how near it is to the query in meaning; None if unknown
    bm25: float  # the part that comes from words alone, before bonuses
    bonuses: Mapping[str, float]
    """Name of a bonus → what the score was multiplied with for it; "period" is added before, in points."""


@dataclass(frozen=True)
class Bounds:
    before_turn: int | None = None  # only turns with a smaller number
    session: str | None = None  # only turns of this session, and nothing but turns
    since: datetime | None = None  # only rows of this time or later; rows without a time are left out
    turns_only: bool = False  # nothing but turns
    however_far: bool = False  # whether the nearest in meaning count even if they are not near


def rank_rows(
    view: IndexView,
    query: str,
    *,
    now: datetime | None = None,
    bounds: Bounds,
    meaning: Meaning | None = None,
) -> list[Ranked]:
    """
    The rows that share a word with the query, lie in a time that it names or mean what it does, best first:
    at most POOL, of equal ones the lower row id first. "Last week" counts from *now*, None from the user's
    newest turn. A row whose meaning is unknown gets as much of the best one's as it has of the best score by
    words, so that words decide about it; *meaning* None is words alone.
    """
    statistics = view.statistics
    if not statistics.count:
        return []
    allowed = _allowed(view, bounds)
    now = now or _newest(view, allowed) or datetime.now(UTC)
    periods = find_periods(query, now)
    weights, scores, full = _score_words(view, _words_of(query, periods))
    in_period = _score_periods(view, periods, allowed)
    total = np.where(allowed, scores + in_period, 0)
    chosen = _best(total, POOL)
    cosines = meaning.near(view, query, allowed, chosen) if meaning is not None else {}
    least = 0.0 if bounds.however_far else _LEAST_COSINE
    others = {at for at, cosine in cosines.items() if cosine >= least} - set(chosen.tolist())
    chosen = np.concatenate([chosen, np.array(sorted(others), np.intp)])
    entries = view.entries(statistics.rows[chosen].tolist())
    look = _RowScorer(query, weights)
    ranked = []
    for position in chosen:
        entry = entries[int(statistics.rows[position])]
        bonuses = look.bonuses(entry)
        score = float(total[position]) * math.prod(bonuses.values())
        if in_period[position]:
            bonuses["period"] = float(in_period[position])
        cosine = cosines.get(int(position))
        ranked.append(
            Ranked(
                entry,
                score=score,
                words=score,
                cosine=cosine,
                bm25=float(scores[position]),
                bonuses=bonuses,
            )
        )
    return sorted(_with_meaning(ranked, full), key=lambda row: (-row.score, row.entry.row))[:POOL]


def _with_meaning(ranked: Sequence[Ranked], full: float) -> list[Ranked]:
    """The rows with what their meaning adds: the more, the less of the query's words the best row has."""
    best = max([full, *(row.words for row in ranked)]) or 1.0
    nearest = max((row.cosine for row in ranked if row.cosine is not None), default=0.0)
    rescored = []
    for row in ranked:
        cosine = nearest * row.words / best if row.cosine is None else row.cosine
        rescored.append(replace(row, score=row.words + MEANING_WEIGHT * best * max(cosine, 0.0)))
    return rescored


def searched_words(query: str, now: datetime) -> list[str]:
    """The words of a query that are looked for."""
    return _words_of(query, find_periods(query, now))


def _words_of(query: str, periods: Sequence[Period]) -> list[str]:
    """The words to look for: without those of "last week", if anything else is left."""
    rest = query
    for period in periods:
        if period.relative:
            start, end = period.words
            rest = rest[:start] + " " * (end - start) + rest[end:]
    return find_query_words(rest) or ([] if periods else find_query_words(query))


def _allowed(view: IndexView, bounds: Bounds) -> _Mask:
    statistics = view.statistics
    allowed = np.ones(statistics.count, np.bool_)
    is_turn = statistics.sessions != 0
    if bounds.before_turn is not None:
        allowed &= ~is_turn | (statistics.rows < bounds.before_turn)
    if bounds.session is not None:
        allowed &= statistics.sessions == session_key(bounds.session)
    if bounds.since is not None:
        allowed &= statistics.times >= math.ceil(bounds.since.timestamp())
    if bounds.turns_only:
        allowed &= is_turn
    return allowed


def _newest(view: IndexView, allowed: _Mask) -> datetime | None:
    times = view.statistics.times[allowed & (view.statistics.sessions != 0)]
    return datetime.fromtimestamp(int(times.max()), UTC) if len(times) and times.max() > NO_TIME else None


def _score_words(view: IndexView, words: Iterable[str]) -> tuple[dict[str, float], _Floats, float]:
    """Weight of each term that occurs, the BM25 of all rows, and that of a row that has each term once."""
    statistics = view.statistics
    count = statistics.count
    previous = statistics.previous
    following = statistics.following
    lengths = np.append(statistics.lengths, np.float32(0))
    mean = max(float(statistics.lengths.mean()), 1.0)
    lengths[count] = mean
    around = lengths + PREVIOUS_WEIGHT * lengths[previous] + NEXT_WEIGHT * lengths[following]
    norm = _K1 * (1 - _B + _B * around / (mean * (1 + PREVIOUS_WEIGHT + NEXT_WEIGHT)))
    weights: dict[str, float] = {}
    scores = np.zeros(count, np.float32)
    full = 0.0
    terms = dict.fromkeys(term for word in words for term in query_terms(word))
    for term in list(terms)[:_MOST_TERMS]:
        positions, counts = view.postings(term)
        weight = math.log1p((count - len(positions) + 0.5) / (len(positions) + 0.5))
        full += weight
        if not len(positions):
            continue
        weights[term] = weight
        here = np.zeros(count + 1, np.float32)
        here[positions] = counts
        here += PREVIOUS_WEIGHT * here[previous] + NEXT_WEIGHT * here[following]
        scores += (weights[term] * (_K1 + 1) * here / (here + norm))[:count]
    return weights, scores, full


def _score_periods(view: IndexView, periods: Sequence[Period], allowed: _Mask) -> _Floats:
    """A named time is one more term: rows in it have it once, those of the days after it half."""
    times = view.statistics.times
    score = np.zeros(len(times), np.float32)
    for period in periods:
        start = _midnight(period.start)
        end = _midnight(period.end) + _DAY_SECONDS
        within = allowed & (times >= start) & (times < end)
        after = allowed & (times >= end) & (times < end + _TOLD_LATER_DAYS * _DAY_SECONDS)
        count = int(within.sum() + after.sum())
        weight = _PERIOD_WEIGHT * math.log1p((len(times) - count + 0.5) / (count + 0.5))
        score = np.maximum(score, np.where(within, weight, np.where(after, weight / 2, 0)).astype(np.float32))
    return score


def _midnight(day: date) -> int:
    return int(datetime(day.year, day.month, day.day, tzinfo=UTC).timestamp())


def _best(total: _Floats, limit: int) -> NDArray[np.intp]:
    """Positions of the highest scores above 0; of equal ones the first."""
    positions = np.flatnonzero(total > 0)
    if len(positions) > limit:
        least = np.partition(total[positions], -limit)[-limit]
        positions = positions[total[positions] >= least]
    return positions[np.argsort(-total[positions], kind="stable")][:limit]


class _RowScorer:
    """A closer look at single rows: who said it, is it the kind of answer wanted, how near are the words."""

    def __init__(self, query: str, weights: Mapping[str, float]) -> None:
        self._weights = weights
        self._whole = sum(weights.values())
        self._words = {word.casefold() for word in re.findall(r"\w+", query)}
        self._kind = kind if (kind := wanted_kind(query)) != "name" else None

    def bonuses(self, entry: IndexEntry) -> dict[str, float]:
        bonuses: dict[str, float] = {}
        if self._kind is not None and count_kind(entry.body, self._kind):
            bonuses["answer"] = 1 + _ANSWER_BONUS
        if not self._whole:
            return bonuses
        parts = list(_parts(entry))
        terms = [split_terms(text) for _, text in parts]
        spoken: set[str] = set()
        for (speakers, _), part_terms in zip(parts, terms, strict=True):
            if named := speakers & self._words:
                spoken.update(set(part_terms) - {term for name in named for term in query_terms(name)})
        if share := self._share(spoken):
            bonuses["speaker"] = 1 + _SPEAKER_BONUS * share
        if near := max((self._nearness(own_terms) for own_terms in terms), default=0.0):
            bonuses["nearness"] = 1 + _NEARNESS_BONUS * near
        return bonuses

    def _share(self, terms: Iterable[str]) -> float:
        return sum(self._weights.get(term, 0.0) for term in terms) / self._whole

    def _nearness(self, terms: Sequence[str]) -> float:
        """The largest share of the query that stands within a few terms; 0 for a single term."""
        hits = [(at, term) for at, term in enumerate(terms) if term in self._weights]
        best = 0.0
        for first, (start, _) in enumerate(hits):
            within = {
                term for at, term in hits[first : first + _NEARNESS_TERMS] if at - start <= _NEARNESS_TERMS
            }
            if len(within) > 1:
                best = max(best, self._share(within))
        return best


def _parts(entry: IndexEntry) -> Iterable[tuple[frozenset[str], str]]:
    """Yield the words that each speaker in a row is called by, with what that speaker says."""
    for text, person in ((entry.query, "first"), (entry.response, "second")):
        pieces = _SPEAKER.split(text)
        if pieces[0].strip():
            pronouns = read_words("marks.txt", person) if entry.number is not None else frozenset()
            yield pronouns, pieces[0]
        for name, piece in zip(pieces[1::2], pieces[2::2], strict=True):
            yield frozenset(name.casefold().split()), piece


def matched_columns(entry: IndexEntry, words: Iterable[str]) -> dict[str, list[str]]:
    """Which of some words stand in which column of a row; columns without any are left out."""
    terms: dict[str, str] = {term: word for word in words for term in query_terms(word)}
    by_column: dict[str, list[str]] = {}
    for column in COLUMNS:
        there = set(split_terms(getattr(entry, column)))
        if matched := list(dict.fromkeys(word for term, word in terms.items() if term in there)):
            by_column[column] = matched
    return by_column
