"""Which of the closest passages answer a question, and whether they surely do. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from panda.language.words import split_terms
from panda.memory.node import is_statement_id
from panda.models.regression import measure_probability, read_weights
from panda.retrieval.passages import RankedPassage, WordCoverage
from panda.retrieval.relevance import WORDS_WEIGHT, find_names, find_query_words
from panda.retrieval.updates import is_of_another, is_of_others

MAX_PASSAGES = 3
"""Passages that are shown, as an answer or as what is closest."""
_MAX_GATHERED = 8
"""Passages of which §2 has the lines."""
_FAR_BEHIND = 0.3
"""How far behind the closest those may be that are not shown."""
MAX_BEHIND = 0.2
"""How far behind the closest a passage may be to be part of the answer."""
MAX_BEHIND_LATER = 0.4
"""The same of what the user told after the closest was told: it may correct it."""
WEIGHTS = Path(__file__).with_name("selection.json")
_MAX_MISSING = 2
_UNRELATED = 0.25
"""Assumed closeness of a runner-up where there are too few passages."""


class SelectionWeights(msgspec.Struct, frozen=True):
    """selection.json: two logistic regressions, written by `python -m bench.everyday --fit`."""

    weights: tuple[float, ...]
    """Of a constant 1, then of the values of `describe_passages` in their order."""
    by_words: tuple[float, ...]
    """The same where passages were ranked by words alone: without the two values of WordCoverage."""
    least: float
    """Probability from which on passages are called the answer."""
    least_by_words: float
    """The same where words alone count."""


@dataclass(frozen=True)
class Selection:
    passages: tuple[RankedPassage, ...]
    """Closest first; empty if nothing shares a word or a meaning with the question."""
    probability: float
    """How likely they answer it, 0 to 1."""
    is_sure: bool
    """Whether that is enough to call them the answer."""


def select_passages(
    query: str, ranked_passages: Sequence[RankedPassage], coverage: WordCoverage | None
) -> Selection:
    """
    Return the passages to show for a question, at most MAX_PASSAGES, and how likely they answer it.

    Args:
        query: With names for what it refers to.
        ranked_passages: Closest first; at least the first four, if there are so many.
        coverage: How well the closest covers the query's words; None where words alone count.
    """
    near = [passage for passage in ranked_passages if passage.closeness > 0][:MAX_PASSAGES]
    if not near:
        return Selection((), 0.0, is_sure=False)
    weights = read_weights(WEIGHTS, SelectionWeights)
    used = weights.by_words if coverage is None else weights.weights
    probability = measure_probability(used, describe_passages(query, ranked_passages, coverage))
    least = weights.least_by_words if coverage is None else weights.least
    is_sure = probability >= least and not _is_of_others(query, near[0])
    return Selection(
        tuple(answering_passages(query, near) if is_sure else near), round(probability, 4), is_sure=is_sure
    )


def prefer_own(query: str, ranked_passages: Sequence[RankedPassage]) -> Sequence[RankedPassage]:
    """
    Return passages without statements of what others have where a query asks for the user's own; all of them
    if no other passage is about as close.
    """
    own = [ranked for ranked in ranked_passages if not _is_of_others(query, ranked)]
    is_near = bool(own) and own[0].closeness >= ranked_passages[0].closeness - MAX_BEHIND
    return own if is_near else ranked_passages


def _is_of_others(query: str, leading: RankedPassage) -> bool:
    return is_statement_id(leading.best.node) and is_of_others(query, leading.best.text)


def answering_passages(query: str, nearest: Sequence[RankedPassage]) -> list[RankedPassage]:
    """
    Return the closest of some passages, at least one, with those that may belong to the answer: they are not
    far behind, and hold a word of the question that the closest lacks, or all that it has.
    """
    closest, *others = nearest
    answering = [closest]
    for other in others:
        may_correct = _may_correct(query, other, closest)
        max_behind = MAX_BEHIND_LATER if may_correct else MAX_BEHIND
        is_near = other.closeness >= closest.closeness - max_behind
        if is_near and (may_correct or not _has_fewer_words(query, other, closest)):
            answering.append(other)
    return answering


def _has_fewer_words(query: str, runner_up: RankedPassage, leading: RankedPassage) -> bool:
    """Return whether a passage has only some of the question's words that the leading one has."""
    words = {term for word in find_query_words(query) for term in split_terms(word)}
    held = words.intersection(split_terms(leading.passage.encoded))
    return words.intersection(split_terms(runner_up.passage.encoded)) < held


def near_the_first(ranked_passages: Sequence[RankedPassage]) -> list[RankedPassage]:
    """Return the passages of which §2 has the lines: the first few, and others that are not far behind."""
    return [
        near
        for place, near in enumerate(ranked_passages[:_MAX_GATHERED])
        if near.closeness > 0
        and (place < MAX_PASSAGES or near.closeness >= ranked_passages[0].closeness - _FAR_BEHIND)
    ]


def _may_correct(query: str, runner_up: RankedPassage, leading: RankedPassage) -> bool:
    """Return whether a passage is a statement of the same thing that was told after the leading one."""
    statement = leading.best
    later = runner_up.best
    are_statements = is_statement_id(statement.node) and is_statement_id(later.node)
    if not are_statements or statement.at is None or later.at is None or later.at <= statement.at:
        return False
    return not is_of_another(query, statement.text, later.text)


def describe_passages(
    query: str, ranked_passages: Sequence[RankedPassage], coverage: WordCoverage | None
) -> list[float]:
    """
    Return what the probability is worked out from.

    Cosine and share of words of the closest passage; its lead over the second and the fourth; the share of
    the query's words that the first three hold together; how many of its names and numbers none of them has;
    how well the closest covers the query's words, unless words alone count.
    """
    first = ranked_passages[0]
    words = find_query_words(query)
    asked = {term for word in words for term in split_terms(word)}
    held = set(split_terms(" ".join(near.passage.encoded for near in ranked_passages[:MAX_PASSAGES])))
    exact = [*find_names(query), *(word for word in words if any(map(str.isdigit, word)))]
    missing = {term for word in exact for term in split_terms(word)} - held
    return [
        first.closeness - WORDS_WEIGHT * first.words,
        first.words,
        _lead(ranked_passages, 1),
        _lead(ranked_passages, 3),
        len(asked & held) / max(1, len(asked)),
        float(min(len(missing), _MAX_MISSING)),
        *(coverage or ()),
    ]


def _lead(ranked_passages: Sequence[RankedPassage], place: int) -> float:
    other = (
        ranked_passages[place].closeness
        if len(ranked_passages) > place
        else min(_UNRELATED, ranked_passages[-1].closeness)
    )
    return ranked_passages[0].closeness - other
