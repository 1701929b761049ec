"""Shared words of a query and a text. Pure."""

import re

from panda.retrieval.query_words import find_query_words


def share_of_words(query: str, text: str) -> float:
    """
    How many of the query's content words a text has, 0 to 1; word endings do not count.

    >>> share_of_words("What do the laptops cost?", "Laptop prices")
    0.5
    >>> share_of_words("", "anything")
    0.0
    """
    wanted = {_stem(word) for word in find_query_words(query)}
    found = {_stem(word) for word in re.findall(r"[^\W_]+", text)}
    return len(wanted & found) / len(wanted) if wanted else 0.0


def _stem(word: str) -> str:
    word = word.lower()
    for ending in ("ing", "ies", "es", "ed", "s"):
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            return word[: -len(ending)]
    return word
