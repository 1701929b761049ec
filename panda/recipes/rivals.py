"""
What a fit reads of pieces of evidence: likelihoods of a query, alone and beside those of the other pieces.

A fit whose prompt file has `# foreign` (the file of a likelihood) judges options by these values and needs no
hidden states. It asks what the scorer `likelihood` asks, in reverse too.
"""

import math
from collections.abc import Callable, Mapping, Sequence

from panda.documents.stemming import split_terms
from panda.models.contract import ScoreCase
from panda.recipes.choices import Option, forward_cases, reverse_cases, reverse_leads
from panda.recipes.schemas import Step

Values = tuple[float, ...]
TokenFunction = Callable[[str, Sequence[ScoreCase]], list[tuple[float, ...]]]
"""Maps a prefix and cases to the log-probabilities of each continuation's tokens."""
_MOST_REVERSED = 3
"""How many of the options are scored in reverse; the others count as the last of them."""


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
    Values of each option, as they are and as their lead over the best of the others: how much likelier the
    query becomes by it than by foreign notes, the same with no token counting more than one, how much
    likelier it becomes by the query than by an unrelated one, and the words it shares with the query.

    Args:
        options: n options.
        sections: Of a prompt file: shots, foreign, reverse, unrelated question.
        query: The user's query.
        score: Asks the model.

    Returns:
        n tuples of equal length, in order.
    """
    if not options:
        return []
    found = [one[:-1] or one for one in score(*forward_cases(options, sections, query))]
    foreign, given = found[: -len(options)], found[-len(options) :]
    base = [sum(column) / len(foreign) for column in zip(*foreign, strict=True)]
    gains = [[value - usual for value, usual in zip(one, base, strict=True)] for one in given]
    plain = [_mean(gain) for gain in gains]
    bounded = [_mean([math.tanh(value) for value in gain]) for gain in gains]
    first = sorted(range(len(options)), key=lambda n: -plain[n] - bounded[n])[:_MOST_REVERSED]
    back = [_mean(one) for one in score(*reverse_cases([options[n] for n in first], sections, query))]
    turned = dict(zip(first, reverse_leads(back, len(first)), strict=True))
    columns = [
        plain,
        bounded,
        [turned.get(n, min(turned.values())) for n in range(len(options))],
        weigh_words(query, [option.scored for option in options]),
    ]
    return list(zip(*columns, *map(find_leads, columns), strict=True))


def find_leads(values: Sequence[float]) -> list[float]:
    """
    How far each value is above the best of the others, or above 0 when there is none.

    >>> find_leads([3.0, 1.0, 2.0])
    [1.0, -2.0, -1.0]
    >>> find_leads([2.0])
    [2.0]
    """
    return [value - max((*values[:n], *values[n + 1 :]), default=0.0) for n, value in enumerate(values)]


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


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)
