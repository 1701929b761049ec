"""How close lines are to a question, and how probable it is that the closest answers it."""

import math
from collections.abc import Callable, Sequence

import msgspec

from panda.models.regression import measure_probability, read_weights
from panda.offline.encoded_texts import CLASSIFIERS, Encode, Vectors, cosines
from panda.retrieval.passages import measure_coverage, nearest_cosines

Words = Sequence[tuple[str, Vectors]]
"""The words of a text, each with its vector in its place."""

_BEHIND = 20.0
"""What closeness is multiplied by, by which one of several lines is the right one."""
_MOST_READ = 5
"""So many lines, the nearest in meaning, are read word by word."""
_UNRELATED = 0.25
"""Closeness of a text that has nothing to do with the question, as which a missing second line counts."""


class AnswerWeights(msgspec.Struct, frozen=True):
    """classifiers/answer.json: a logistic regression, by `python -m bench.classifiers answer --fit`."""

    encoder: str
    """Digest of the encoder whose vectors the values are from."""
    weights: tuple[float, ...]
    """Of a constant 1, then of the values of `describe_closest` in their order."""


def load_weights() -> AnswerWeights:
    return read_weights(CLASSIFIERS / "answer.json", AnswerWeights)


def answer_probabilities(
    weights: AnswerWeights,
    question: str,
    lines: Sequence[str],
    encode: Encode,
    words_of: Callable[[str], Words],
) -> list[float]:
    """
    Return the probability of each line that it answers. The closest has what the weights give for it, each
    other the less the further behind that it is.
    """
    closeness, values = describe_closest(question, lines, encode, words_of)
    probability = measure_probability(weights.weights, values)
    return [probability * math.exp(-_BEHIND * (max(closeness) - near)) for near in closeness]


def describe_closest(
    question: str, lines: Sequence[str], encode: Encode, words_of: Callable[[str], Words]
) -> tuple[list[float], list[float]]:
    """
    Return how close each line is to the question, and what describes the closest: its cosine with the
    question, how well it covers the question's words (mean and least), and its lead over the second.

    A line is as close as the mean of its cosine with the question, and of the cosine of each of the
    question's words with the nearest word of the line, each word as the encoder reads it in its place. Lines
    that are not among the nearest in meaning count as the last of those by their words.
    """
    nearness = cosines(encode, question, lines)
    asked = words_of(question)
    read = sorted(range(len(lines)), key=lambda place: -nearness[place])[:_MOST_READ]
    by_words = {place: _mean_nearest(asked, words_of(lines[place])) for place in read}
    least = min(by_words.values())
    closeness = [(near + by_words.get(place, least)) / 2 for place, near in enumerate(nearness)]
    closest = closeness.index(max(closeness))
    coverage = measure_coverage(question, lines[closest], words_of)
    others = [near for place, near in enumerate(closeness) if place != closest]
    lead = closeness[closest] - max(others, default=_UNRELATED)
    return closeness, [nearness[closest], *coverage, round(lead, 6)]


def _mean_nearest(words: Words, others: Words) -> float:
    """Return the mean cosine of each word with the nearest of the others; 0 without either."""
    if not words or not others:
        return 0.0
    return round(math.fsum(nearest_cosines(words, others)) / len(words), 6)
