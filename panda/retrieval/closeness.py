"""How close texts are to a query: in meaning, and in the words that few of them have."""

import math
from collections.abc import Sequence

from panda.language.words import split_terms
from panda.models.contract import Encoder
from panda.retrieval.query_words import find_query_words

_WORDS_WEIGHT = 0.3
"""What having all words of the query is worth beside a cosine; where the encoder cannot read, they decide."""


def measure_closeness(query: str, texts: Sequence[str], encoder: Encoder | None) -> list[float]:
    """
    How close each text is to a query.

    Args:
        query: The user's query.
        texts: n texts, compared with each other: a word that few of them have says more.
        encoder: Gives the texts' vectors; None leaves their meaning out.

    Returns:
        n values, of which those above .3 or so may have to do with the query: its words' share of their
        weight, from 0 to 1; with an encoder its cosine and three tenths of that.

    >>> measure_closeness("where is the tent", ["tent: in the attic", "bees: in the garden"], None)
    [1.0, 0.0]
    """
    words = _shares(query, texts)
    if encoder is None or not texts:
        return words
    vectors = encoder.encode([query, *texts])
    cosines = vectors[1:] @ vectors[0]
    return [float(near) + _WORDS_WEIGHT * share for near, share in zip(cosines, words, strict=True)]


def _shares(query: str, texts: Sequence[str]) -> list[float]:
    """What share of the query's words, by their rarity, each text has."""
    terms = [set(split_terms(text)) for text in texts]
    weights: dict[str, float] = {}
    for word in sorted(set(split_terms(" ".join(find_query_words(query))))):
        holders = sum(word in own for own in terms)
        weights[word] = math.log((len(texts) + 1) / (holders + 0.5))
    whole = sum(weights.values())
    return [sum(weights[word] for word in weights if word in own) / whole if whole else 0.0 for own in terms]
