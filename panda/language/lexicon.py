"""Which words of English are ordinary, and which only hold a sentence together."""

from functools import cache

from panda.language.stemming import stem
from panda.language.word_lists import read_words

FUNCTION_WORDS = read_words("english_words.txt", "function")
"""The commonest words: a search looks for others, and none of them is what a number counts."""
NOT_COUNTED = FUNCTION_WORDS | read_words("english_words.txt", "beside_numbers")
"""Words that end the run of words behind a number: none of them is, or leads to, what is counted."""
LABELS = read_words("english_words.txt", "labels")
"""Words that a number behind them only tells apart: "room 12" is no twelve of anything."""
_HONORIFICS = read_words("english_words.txt", "honorifics")
_ACRONYMS = read_words("english_words.txt", "acronyms")


@cache
def is_ordinary(word: str) -> bool:
    """
    Whether an English word is written small when it stands within a sentence.

    The list beside this file was drawn from two tokenizers' vocabularies: words that occur in small letters
    more often than with a capital (docs/decisions/0014).

    Args:
        word: One word, in any case; what is not English is not ordinary.

    >>> [word for word in ("Breakfast", "Currently", "Dell", "Lisbon", "Booked") if not is_ordinary(word)]
    ['Dell', 'Lisbon']
    """
    small, stems = word.lower().partition("'")[0], read_words("ordinary_words.txt")
    if not (small.isascii() and small.isalpha()):
        return False
    if len(small) == 1 or small in NOT_COUNTED or small in _HONORIFICS or stem(small) in stems:
        return True
    base = small.removesuffix("ly")  # an adverb is as ordinary as what it is made of; "Waverly" is none
    return base != small and len(base) > 4 and not base.endswith("er") and stem(base) in stems


def is_acronym(word: str) -> bool:
    """
    Whether capitals stand for a kind of thing, not for a name.

    >>> is_acronym("RAM"), is_acronym("IBM")
    (True, False)
    """
    return word.lower() in _ACRONYMS or word.lower() in FUNCTION_WORDS


def is_honorific(word: str) -> bool:
    """Whether a word is a title before a name, as "Dr"."""
    return word.lower().rstrip(".") in _HONORIFICS
