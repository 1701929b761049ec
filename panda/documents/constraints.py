"""Constraints that a query states in so many words. Pure."""

import re

_CLAUSE = re.compile(
    r"\b(?:under|below|less than|no more than|at most|up to|max(?:imum)?(?: of)?|over|above|at least|"
    r"more than|min(?:imum)?(?: of)?|between|within|before|after|without|except|excluding|only|"
    r"must (?:have|be)|not?|never)\b"
    r"[^,;.?!\n]*(?:\.\d[^,;.?!\n]*)*",
    re.IGNORECASE,
)
_MOST_WORDS = 10


def find_constraints(query: str) -> list[str]:
    """
    The clauses of a query that limit what it asks for.

    Args:
        query: Any text.

    Returns:
        Clauses as they stand, in order; long ones, which limit nothing in particular, are left out.

    >>> find_constraints("Find a laptop under $800, no refurbished ones please")
    ['under $800', 'no refurbished ones please']
    >>> find_constraints("How much is the Lenovo?")
    []
    """
    clauses = (" ".join(match.group(0).split()) for match in _CLAUSE.finditer(query))
    return list(dict.fromkeys(c for c in clauses if 1 < len(c.split()) <= _MOST_WORDS))
