"""By what a query and the lines that may answer it are compared: kind, owner and language. Pure."""

import re
import unicodedata
from itertools import islice

from panda.language.patterns import lazy_pattern
from panda.language.words import FUNCTION_WORDS, is_ordinary, phrases

_TELLS = {
    "time": lazy_pattern(
        phrases("marks.txt", "times").pattern + r"|\b(?:(?:19|20)\d\d|\d\d?:\d\d)\b", re.IGNORECASE
    ),
    "number": lazy_pattern(phrases("marks.txt", "numbers").pattern + r"|\d", re.IGNORECASE),
    "name": lazy_pattern(r"(?<![.!?:] )(?<!^)\b[A-Z][\w'’-]*\w|[\"“«][^\"”»]{3,60}[\"”»]"),
}


def wanted_kind(query: str) -> str | None:
    return next((kind for kind in _TELLS if phrases("marks.txt", f"asks_{kind}").search(query)), None)


def count_kind(text: str, kind: str) -> int:
    """Return how often a text tells a thing of a kind, up to twice."""
    return sum(1 for _ in islice(_TELLS[kind].finditer(text), 2))


_OWNER = re.compile(r"\b(\w+)['’]s?\s+\w|\b(his|her|their|your)\b", re.IGNORECASE)
_CONTRACTED = frozenset(
    {"it", "that", "what", "he", "she", "there", "here", "who", "where", "how", "let", "i"}
)


def find_owners(text: str) -> frozenset[str]:
    """
    Return whose something is besides the user's own, in small letters.

    >>> sorted(find_owners("My brother's favourite cyclist is Wout.")), find_owners("It's my bike.")
    (['brother'], frozenset())
    """
    words = (match[1] or match[2] for match in _OWNER.finditer(text))
    return frozenset(word.lower() for word in words) - _CONTRACTED


def is_latin(text: str) -> bool:
    """
    Return whether most letters of a text are Latin; true of a text without letters.

    >>> is_latin("Wo ist der Schlüssel?"), is_latin("Где ключ?"), is_latin("42")
    (True, False, True)
    """
    letters = [char for char in text if char.isalpha()]
    latin = sum("LATIN" in unicodedata.name(char, "") for char in letters)
    return 2 * latin >= len(letters)


_LETTERS = lazy_pattern(r"(?<![\w'’-])[^\W\d_]{2,}(?!\w)")
_LEAST_ENGLISH = 0.9  # english texts measured 1.0 and more, others .86 and less: function words count twice


def is_english(text: str) -> bool:
    """
    Return whether most words that cannot be names are English; without such words, whether the letters are
    Latin.
    """
    words = _LETTERS.findall(text)
    small = [word for word in words if word[0].islower()]
    if not small:
        return all(word.isascii() for word in words)
    value = sum((word in FUNCTION_WORDS) + is_ordinary(word) for word in small)
    return value >= _LEAST_ENGLISH * len(small)
