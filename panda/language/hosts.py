"""Which dotted words are names of hosts: those that end in a public suffix; the only importer of tld."""

from functools import cache

from tld import is_tld

_RESERVED = frozenset(("example", "test", "invalid", "localhost", "local", "internal", "onion"))
"""Endings that RFC 2606 and its like keep for examples and for networks of one's own."""


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
    return labels[-1] in _RESERVED or bool(is_tld(labels[-1]))
