"""How close lines are to a question, and how probable it is that the closest answers it."""

import math
from collections.abc import Callable, Sequence
from functools import cache

import msgspec
import numpy as np

from panda.language.words import FUNCTION_WORDS, split_terms
from panda.offline.encoded_texts import CLASSIFIERS, Encode, Vectors, cosines
from panda.retrieval.passages import nearest_cosines

Words = Sequence[tuple[str, Vectors]]
"""The words of a text, each with its vector in its place."""

_BEHIND = 20.0  # what closeness is multiplied by, by which one of several lines is the right one in folds
_MOST_LACKING = 4  # so many words at most count as lacking
_NONE_LACKING = 0.75  # what counts as the partners' cosine where a line has all words of a query
_MOST_READ = 5  # so many lines, the nearest in meaning, are read word by word


class AnswerWeights(msgspec.Struct, frozen=True):
    """classifiers/answer.json: a logistic regression."""

    encoder: str
    """Digest of the encoder whose vectors the values are from."""
    bias: float
    cosine: float
    partners: float
    lacking: float
    rest: float


@cache
def load_weights() -> AnswerWeights:
    return msgspec.json.decode((CLASSIFIERS / "answer.json").read_bytes(), type=AnswerWeights)


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
    closeness, values = read_lines(question, lines, encode, words_of)
    total = weights.bias + math.fsum(getattr(weights, name) * value for name, value in values.items())
    probability = 1 / (1 + math.exp(-total))
    return [probability * math.exp(-_BEHIND * (max(closeness) - near)) for near in closeness]


def read_lines(
    question: str, lines: Sequence[str], encode: Encode, words_of: Callable[[str], Words]
) -> tuple[list[float], dict[str, float]]:
    """
    Return how close each line is to the question, and what describes the closest.

    A line is as close as the mean of its cosine with the question, and of the cosine of each of the
    question's words with the nearest word of the line, each word as the encoder reads it in its place. Lines
    that are not among the nearest in meaning count as the last of those by their words.
    """
    nearness, asked = cosines(encode, question, lines), words_of(question)
    read = sorted(range(len(lines)), key=lambda place: -nearness[place])[:_MOST_READ]
    nearest = {place: _mean_nearest(asked, words_of(lines[place])) for place in read}
    least = min(nearest.values())
    closeness = [(near + nearest.get(place, least)) / 2 for place, near in enumerate(nearness)]
    best = closeness.index(max(closeness))
    return closeness, {"cosine": nearness[best], **describe_line(asked, words_of(lines[best]))}


def describe_line(asked: Words, said: Words) -> dict[str, float]:
    """
    What a line says beyond the words that a question and it have in common.

    - partners: the mean cosine of the question's telling words that the line lacks with the nearest of its
      other words
    - lacking: how many these words are, by ten
    - rest: the cosine of all that the question asks beyond those words with all that the line says beyond
      them
    """
    held = {term for word, _ in said for term in split_terms(word)}
    telling = [pair for pair in asked if pair[0] not in FUNCTION_WORDS] or asked
    terms = {term for word, _ in telling for term in split_terms(word)}
    lacking = [pair for pair in telling if held.isdisjoint(split_terms(pair[0]))]
    others = [pair for pair in said if terms.isdisjoint(split_terms(pair[0]))]
    partners = _mean_nearest(lacking, others) if lacking else _NONE_LACKING
    beyond = [pair for pair in asked if held.isdisjoint(split_terms(pair[0]))]
    means = [
        np.mean([vector for _, vector in words], axis=0)
        for words in (beyond or asked, others or said)
        if words
    ]
    rest = 0.0
    if len(means) == 2:
        rest = float(np.prod(means, axis=0).sum() / math.prod(map(np.linalg.norm, means)))
    return {"partners": partners, "lacking": min(len(lacking), _MOST_LACKING) / 10, "rest": round(rest, 6)}


def _mean_nearest(words: Words, others: Words) -> float:
    """The mean of each word's cosine with the nearest of the others; 0 where there are none of either."""
    if not words or not others:
        return 0.0
    return round(math.fsum(nearest_cosines(words, others)) / len(words), 6)
