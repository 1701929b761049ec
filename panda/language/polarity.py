"""What a clause affirms and what it denies, and the words that it is about. Pure."""

import re
from collections.abc import Iterator, Mapping
from functools import cache
from typing import NamedTuple

from panda.language.languages import ALL_FOREIGN_WORDS
from panda.language.patterns import lazy_pattern
from panda.language.words import (
    FUNCTION_WORDS,
    NOT_COUNTED,
    alternatives,
    read_words,
    split_terms,
    split_words,
)

_DENIAL = lazy_pattern(
    rf"(?<!\w){alternatives('asked_words.txt', 'denials')}" r"(?!\w|[.:]{0,2} ?\d)", re.IGNORECASE
)  # "No. 5" and "No.: 5" deny nothing
_UNSURE = lazy_pattern(rf"(?<!\w){alternatives('polarity_words.txt', 'unsure')}(?!\w)", re.IGNORECASE)
_ACROSS = lazy_pattern(rf"(?<!\w){alternatives('polarity_words.txt', 'across')}(?!\w)", re.IGNORECASE)
_PRONOUN = lazy_pattern(rf"\W*{alternatives('polarity_words.txt', 'pronouns')}(?!\w)", re.IGNORECASE)
JOINT = lazy_pattern(
    rf"[,;](?=\s)|\s[–—·|-]\s|\s{alternatives('polarity_words.txt', 'joints')}(?=\s)", re.IGNORECASE
)
"""What stands between two clauses, or two parts of a list."""
_WORD = lazy_pattern(r"(?:[^\W\d_]{1,2}')?(?P<base>[^\W_]+)(?P<end>'[^\W_]+)?")


class ContentWord(NamedTuple):
    """A word that names or tells something, with where it stands."""

    stem: str
    text: str
    start: int


class Polarity(NamedTuple):
    """What a clause affirms and denies."""

    affirmed: Mapping[str, bool]  # stems of words, the second of two opposites as the first
    denial: str = ""  # from the word that denies to the one that is denied, as they stand
    between: frozenset[str] = frozenset()  # words of place or time between those, as "under" warranty
    is_sure: bool = True  # whether it is clear what is denied, if anything is


@cache
def _plain_words() -> frozenset[str]:
    """Return the words that name nothing."""
    groups = ("pronouns", "plain_verbs", "joints", "foreign")
    words = frozenset[str]().union(*(read_words("polarity_words.txt", group) for group in groups))
    words |= FUNCTION_WORDS | NOT_COUNTED
    words |= ALL_FOREIGN_WORDS | read_words("english_words.txt", "honorifics")
    pairs = read_words("polarity_words.txt", "opposites")
    return words - {word for pair in pairs for word in pair.split("/")}


def content_words(text: str) -> Iterator[ContentWord]:
    """Yield the words of a plain text that name or tell something, in order; a single letter is none."""
    plain_words = _plain_words()
    for match in _WORD.finditer(text):
        word = match["base"]
        is_plain = word.lower() in plain_words or match["end"] == "'t" or (len(word) == 1 and word.isalpha())
        if not is_plain:
            for stem in split_terms(word)[:1]:
                yield ContentWord(stem, word, match.start("base"))


def read_polarity(clause: str) -> Polarity:
    """
    Return what a clause affirms and denies. Denied is the first word that tells something behind the word
    that denies, else the last before it; of the others in such a clause nothing is known. Nothing is sure
    where it holds in some case only, or is denied twice.

    >>> read_polarity("Kessler was not chosen").affirmed, read_polarity("It is not open before noon").affirmed
    ({'chosen': False}, {})
    """
    denials = list(_DENIAL.finditer(clause))
    words = list(content_words(clause))
    if len(denials) > 1 or not words or _UNSURE.search(clause):
        return Polarity({}, is_sure=False)
    if not denials:
        return Polarity(dict(_one_of_two(word.stem, is_affirmed=True) for word in words))
    start, end = denials[0].span()
    if clause.startswith(",", end):  # "no, due on Friday": it answers, and denies nothing behind it
        return Polarity({}, is_sure=False)
    denied = next((word for word in words if word.start >= end), None)
    if denied is None and denials[0][0].lower() not in read_words("polarity_words.txt", "behind"):
        return Polarity({}, is_sure=False)
    denied = denied or words[-1]
    phrase = clause[min(start, denied.start) : max(end, denied.start + len(denied.text))]
    between = frozenset(split_words(clause[end : denied.start].lower())) & NOT_COUNTED - FUNCTION_WORDS
    return Polarity(dict([_one_of_two(denied.stem, is_affirmed=False)]), phrase, between)


def _one_of_two(stem: str, *, is_affirmed: bool) -> tuple[str, bool]:
    first = first_opposite(stem)
    return first, is_affirmed == (first == stem)


def denies(clause: str) -> bool:
    """Return whether a word of a clause denies anything."""
    return _DENIAL.search(clause) is not None


def without_denial(clause: str) -> frozenset[str]:
    """
    Return the words of a clause but those that deny and its helping verbs.

    >>> without_denial("It has not been off") == without_denial("it has been off")
    True
    """
    words = split_words(_DENIAL.sub(" ", clause.lower()))
    return frozenset(words) - read_words("polarity_words.txt", "helping")


def goes_across(clause: str) -> bool:
    """Return whether a clause compares things, or tells of several at once."""
    return _ACROSS.search(clause) is not None


def goes_on(sentence: str) -> bool:
    """Return whether a sentence begins with a pronoun, and so tells of what was named before."""
    return _PRONOUN.match(sentence) is not None


def first_opposite(stem: str) -> str:
    """
    Return the first of two opposites for the second; any other word as it is.

    >>> first_opposite("close"), first_opposite("open")
    ('open', 'open')
    """
    return _opposites().get(stem, stem)


@cache
def _opposites() -> Mapping[str, str]:
    pairs = (pair.split("/") for pair in sorted(read_words("polarity_words.txt", "opposites")))
    return {split_terms(second)[0]: split_terms(first)[0] for first, second in pairs}
