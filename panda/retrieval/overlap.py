"""Shared words of a query and a text. Pure."""

from panda.language.stemming import query_terms, split_terms
from panda.retrieval.query_words import find_query_words


def share_of_words(query: str, text: str) -> float:
    """
    How many of the query's content words a text has, 0 to 1; word endings do not count.

    >>> share_of_words("What do the laptops and batteries cost?", "Battery prices, laptop sizes")
    0.6666666666666666
    >>> share_of_words("price", "prices"), share_of_words("", "anything")
    (1.0, 0.0)
    """
    wanted = {term for word in find_query_words(query) for term in query_terms(word)}
    return len(wanted.intersection(split_terms(text))) / len(wanted) if wanted else 0.0
