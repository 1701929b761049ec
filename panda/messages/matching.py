"""By what a query and the lines that may answer it are compared: kind and language. Pure."""

import re
import unicodedata
from itertools import islice

from panda.language.languages import ALL_FOREIGN_WORDS, FOREIGN_WORDS, language_of
from panda.language.patterns import lazy_pattern
from panda.language.words import FUNCTION_WORDS, is_ordinary, phrases, read_words, split_words

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


def tells_figure(query: str, text: str) -> bool:
    """
    Return whether a query asks for a time or a number, and a text tells one.

    >>> tells_figure("how much does she weigh?", "Ada weighed 1,402 g.")
    True
    >>> tells_figure("for how long?", "Tom has the drill.")
    False
    """
    kinds = ("time", "number")
    return wanted_kind(query) in kinds and any(count_kind(text, kind) for kind in kinds)


def is_latin(text: str) -> bool:
    """
    Return whether most letters of a text are Latin; true of a text without letters.

    >>> is_latin("Wo ist der Schlüssel?"), is_latin("Где ключ?"), is_latin("42")
    (True, False, True)
    """
    letters = [char for char in text if char.isalpha()]
    latin = sum("LATIN" in unicodedata.name(char, "") for char in letters)
    return 2 * latin >= len(letters)


def is_foreign(text: str) -> bool:
    """
    Return whether a text is German, French or Spanish.

    >>> is_foreign("wann war die Heizung dran"), is_foreign("Le chien de Zoé s'appelle Gribouille.")
    (True, True)
    """
    language = language_of(text)
    if language or is_english(text):
        return language in FOREIGN_WORDS
    return not ALL_FOREIGN_WORDS.isdisjoint(word.lower() for word in split_words(text))


_FOREIGN_COMMON_WORDS = FUNCTION_WORDS | ALL_FOREIGN_WORDS | read_words("foreign_words.txt", "asks")


def common_words(text: str) -> frozenset[str]:
    """
    Return the lower-case words that tell nothing of what a text is about: in its language, or English ones.

    >>> "was" in common_words("was kostet die Miete"), "code" in common_words("quel est le code du portail")
    (True, False)
    """
    return _FOREIGN_COMMON_WORDS if is_foreign(text) else FUNCTION_WORDS


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
