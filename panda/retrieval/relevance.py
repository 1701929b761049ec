"""How far texts have to do with a query: its telling words and names, shared words, nearness in meaning."""

import math
import re
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

from panda.language import names
from panda.language.text import plain_text
from panda.language.words import FUNCTION_WORDS, is_ordinary, query_terms, split_terms, split_words
from panda.messages.matching import common_words

if TYPE_CHECKING:  # it imports numpy and sqlite3
    from panda.models.kept_encoder import KeptEncoder

_ADDRESS = re.compile(r"\bhttps?://(?:[^\s/@]*@)?(?P<host>[^\s/?#]*)(?P<path>[^\s?#]*)\S*", re.IGNORECASE)
_PAGE_KIND = re.compile(r"\.(?:html?|php|aspx?|jsp)$", re.IGNORECASE)
WORDS_WEIGHT = 0.3
"""What having all words of the query is worth beside a cosine; where the encoder cannot read, they decide."""


def find_query_words(query: str) -> list[str]:
    """
    The words and numbers to search for, each once, in order; the commonest words only if nothing else is
    there.

    >>> find_query_words("What is the price of the RTX 4050 laptop with 16GB?")
    ['price', 'RTX', '4050', 'laptop', '16GB']
    >>> find_query_words("Read https://www.shop.example/tents/blue.html?from=mail")
    ['Read', 'shop', 'tents', 'blue']
    """
    words = list(dict.fromkeys(split_words(_ADDRESS.sub(_telling_words, query))))
    common = common_words(query)
    return [word for word in words if word.lower() not in common] or words


def _telling_words(address: re.Match[str]) -> str:
    """
    Return the words of an address that describe its page: its host without www and ending, unless that is a
    number, and its path.
    """
    host = address["host"].lower().partition(":")[0].removeprefix("www.").rpartition(".")[0]
    named = "" if host.replace(".", "").isdigit() else host.replace(".", " ")
    return f"{named} {_PAGE_KIND.sub('', address['path'])}"


def find_names(query: str) -> list[str]:
    """The words of a query that name people or things, each once, in order."""
    return list(dict.fromkeys(name.text for name in names.find_names(plain_text(query))))


def find_entities(query: str) -> list[str]:
    """
    Return the words of a query that name something: names, and words that are in no common vocabulary.

    >>> find_entities("what's the cheapest laptop with nvidia gpu from Dell")
    ['nvidia', 'gpu', 'Dell']
    """
    named = set(find_names(query))
    return [
        word for word in find_query_words(query) if word in named or not (word.isdigit() or is_ordinary(word))
    ]


def folded_names(query: str) -> set[str]:
    """Return the names in a query, folded as they are compared."""
    return {name.folded for name in names.find_names(plain_text(query))}


def share_of_words(query: str, text: str) -> float:
    """Return the share of the query's content words that a text has, 0 to 1; word endings do not count."""
    wanted = {term for word in find_query_words(query) for term in query_terms(word)}
    return len(wanted.intersection(split_terms(text))) / len(wanted) if wanted else 0.0


def measure_closeness(query: str, texts: Sequence[str], encoder: "KeptEncoder | None") -> list[float]:
    """
    Return how close each text is to a query: values above .3 or so may have to do with it.

    It is its words' share of their weight, from 0 to 1; with an encoder its cosine and three tenths of that.
    The texts are compared with each other: a word that few of them have says more. A turn computes the
    vectors of the texts that share most with the query; a text without a vector has its words alone.

    >>> measure_closeness("where is the tent", ["tent: in the attic", "bees: in the garden"], None)
    [1.0, 0.0]
    """
    shares = shares_by_rarity(query, texts)
    if encoder is None or not texts:
        return shares
    by_words = sorted(range(len(texts)), key=lambda at: shares[at], reverse=True)
    cosines = encoder.cosines(query, [texts[at] for at in by_words])
    return [cosines.get(text, 0.0) + WORDS_WEIGHT * share for text, share in zip(texts, shares, strict=True)]


def measure_centrality(texts: Sequence[str], encoder: "KeptEncoder | None") -> list[float]:
    """
    Return how much each text says of what all of them are about, from 0 to 1 or so: its cosine with their
    mean, or for what has no vector the share of its words that others have.

    >>> measure_centrality(["the tent is red", "the tent leaks", "bees fly"], None)
    [0.5, 0.5, 0.0]
    """
    terms = [{term for term in split_terms(text) if term not in FUNCTION_WORDS} for text in texts]
    counts = Counter(term for own in terms for term in own)
    shares = [sum(counts[term] > 1 for term in own) / max(1, len(own)) for own in terms]
    if encoder is None:
        return shares
    return [
        cosine if cosine is not None else WORDS_WEIGHT * share
        for cosine, share in zip(encoder.cosines_with_mean(texts), shares, strict=True)
    ]


def shares_by_rarity(query: str, texts: Sequence[str]) -> list[float]:
    """
    Return the share of the query's words that each text has, 0 to 1; a word that few of the texts have weighs
    more.
    """
    terms = [set(split_terms(text)) for text in texts]
    weights: dict[str, float] = {}
    for word in sorted(set(split_terms(" ".join(find_query_words(query))))):
        holders = sum(word in own for own in terms)
        weights[word] = math.log((len(texts) + 1) / (holders + 0.5))
    whole = sum(weights.values())
    return [sum(weights[word] for word in weights if word in own) / whole if whole else 0.0 for own in terms]
