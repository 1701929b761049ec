"""Which dotted words are names of hosts: those that end in a public suffix; addresses by a plain name."""

import re
from functools import cache
from importlib.metadata import distribution
from pathlib import Path

_RESERVED = frozenset(("example", "test", "invalid", "localhost", "local", "internal", "onion"))
"""Endings that RFC 2606 and its like keep for examples and for networks of one's own."""
_PAGE = re.compile(
    r"(?:\b(?:the|that|this) (?:web)?(?:page|site) )?\bhttps?://[^\s<>\"`|]*[^\s<>\"`|.,;:!?)\]'’”]",
    re.IGNORECASE,
)
_SUFFIXES = "tld/res/effective_tld_names.dat.txt"


@cache
def is_host(name: str) -> bool:
    """
    Whether a dotted name may be that of a host, by the list of public suffixes; nothing is looked up.

    Args:
        name: Words joined by dots, in any case.

    >>> [is_host(name) for name in ("cheap-tents.store", "shop.co.uk", "shop.example", "e.g", "pytest.ini")]
    [True, True, True, False, False]
    """
    labels = name.lower().split(".")
    if len(labels) < 2 or not all(labels) or not any(len(label) > 1 for label in labels[:-1]):
        return False
    return labels[-1] in _RESERVED or labels[-1].startswith("xn--") or labels[-1] in _suffixes()


def with_pages_named(query: str) -> str:
    """
    A query with a plain name for every web address, whose letters would outweigh what is asked.

    >>> with_pages_named("What does http://a.example/x.html?y=1 say about tea?")
    'What does the page say about tea?'
    """
    return _PAGE.sub("the page", query)


@cache
def _suffixes() -> frozenset[str]:
    """The public suffixes of one label, from the list that the package tld brings; its code reads slowly."""
    text = Path(str(distribution("tld").locate_file(_SUFFIXES))).read_text(encoding="utf-8")
    rules = map(str.strip, text.splitlines())
    return frozenset(rule for rule in rules if rule and "." not in rule and not rule.startswith("//"))
