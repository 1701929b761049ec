"""
What a fit reads of pieces of evidence: likelihoods of a query after them, and of them after the query.

A fit whose prompt file has `# foreign` (the file of a likelihood) judges options by these values and needs no
hidden states. It asks what the scorer `likelihood` asks, in reverse too.
"""

import math
import string
from collections.abc import Callable, Mapping, Sequence

from panda.language.stemming import split_terms
from panda.models.contract import ScoreCase
from panda.recipes.choices import Option, forward_cases, reverse_cases
from panda.recipes.schemas import Step

Values = tuple[float, ...]
TokenFunction = Callable[[str, Sequence[ScoreCase]], list[tuple[float, ...]]]
"""Maps a prefix and cases to the log-probabilities of each continuation's tokens."""
_MOST_READ_ON = 2
"""How many of the options are read further; the others count as the last of them."""
_SENTENCE = " The"
"""How a reply begins that is not taken from the evidence."""
_LEAST = -12.0
"""Logarithms below this say no more."""


def compares_rivals(sections: Mapping[str, str]) -> bool:
    """Whether a fit with this prompt file reads options beside each other."""
    return "foreign" in sections and "case" not in sections


def wanted_sections(step: Step, sections: Mapping[str, str]) -> list[str]:
    """The sections that a step's prompt file must have, besides the classes of a channel."""
    if step.scorer != "likelihood" and not (step.scorer == "fit" and compares_rivals(sections)):
        return ["shots", "case"] if step.scorer == "fit" else []
    turned = ["reverse", "unrelated question"] if step.scorer == "fit" or step.reverse else []
    return ["shots", "foreign", *turned]


def rival_values(
    options: Sequence[Option], sections: Mapping[str, str], query: str, score: TokenFunction
) -> list[Values]:
    """
    Values of each option: how much likelier the query becomes by it than by foreign notes, and how much
    likelier it becomes by the query than by an unrelated one, both also with no token counting more than one;
    the words it shares with the query; and if the prompt file has worked answers, how a reply begins.

    Args:
        options: n options.
        sections: Of a prompt file: shots, foreign, reverse, unrelated question, perhaps answer.
        query: The user's query.
        score: Asks the model.

    Returns:
        n tuples of equal length, in order.
    """
    if not options:
        return []
    found = [one[:-1] or one for one in score(*forward_cases(options, sections, query))]
    foreign, given = found[: -len(options)], found[-len(options) :]
    gains = [_gains(one, foreign) for one in given]
    plain = [_mean(gain) for gain in gains]
    bounded = [_bounded_mean(gain) for gain in gains]
    first = sorted(range(len(options)), key=lambda n: -plain[n] - bounded[n])[:_MOST_READ_ON]
    back = score(*reverse_cases([options[n] for n in first], sections, query))
    turned = {n: _gains(back[i], back[len(first) + i :: len(first)]) for i, n in enumerate(first)}
    columns = [
        plain,
        bounded,
        _of_first({n: _mean(one) for n, one in turned.items()}, len(options)),
        _of_first({n: _bounded_mean(one) for n, one in turned.items()}, len(options)),
        weigh_words(query, [option.scored for option in options]),
    ]
    if "answer" in sections:
        said = _ask_answers([options[n] for n in first], sections, query, score)
        columns += [_of_first(dict(zip(first, column, strict=True)), len(options)) for column in said]
    return list(zip(*columns, strict=True))


def _ask_answers(
    options: Sequence[Option], sections: Mapping[str, str], query: str, score: TokenFunction
) -> list[list[float]]:
    """How probably a reply begins with something that the query lacks and the option has; and with a sentence
    of its own. Two lists, of each option the logarithm."""
    asked = {_bare(word) for word in query.split()}
    cases: list[ScoreCase] = []
    for option in options:
        context = f"Evidence: {option.scored}\nQuestion: {query}\nAnswer:"
        told = "".join(f" {word}" for word in option.scored.split() if _bare(word) not in asked)
        cases += [ScoreCase(context, start, any_of=True) for start in (told or "\n", _SENTENCE)]
    found = [max(one[0], _LEAST) for one in score(sections["answer"].strip() + "\n\n", cases)]
    return [found[0::2], found[1::2]]


def _bare(word: str) -> str:
    return word.strip(string.punctuation).lower()


def weigh_words(query: str, texts: Sequence[str]) -> list[float]:
    """
    How many of the query's words each text has; a word counts more, the fewer of the texts have it.

    Args:
        query: The user's query.
        texts: n texts.

    Returns:
        n weights from 0.

    >>> [round(weight, 2) for weight in weigh_words("the tent", ["the tent", "the bees", "a tent"])]
    [0.67, 0.34, 0.34]
    """
    terms = [set(split_terms(text)) for text in texts]
    weights = [0.0] * len(texts)
    for word in sorted(set(split_terms(query))):
        holders = [n for n, own in enumerate(terms) if word in own]
        for n in holders:
            weights[n] += math.log((len(texts) + 0.5) / (len(holders) + 0.5))
    return weights


def _of_first(found: Mapping[int, float], count: int) -> list[float]:
    """A value of each option; those that were not read further count as the last of those that were."""
    return [found.get(n, min(found.values())) for n in range(count)]


def _gains(given: Sequence[float], otherwise: Sequence[Sequence[float]]) -> list[float]:
    """How much likelier each token is than otherwise in the mean."""
    usual = [sum(column) / len(otherwise) for column in zip(*otherwise, strict=True)]
    return [value - base for value, base in zip(given, usual, strict=True)]


def _bounded_mean(values: Sequence[float]) -> float:
    return _mean([math.tanh(value) for value in values])


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)
