"""What somebody says that he does or has: the verb, and what it is about. Pure."""

import re

from panda.language.lexicon import NOT_COUNTED
from panda.language.numbers import NUMBER_WORDS
from panda.language.text_front import plain_signs
from panda.language.word_lists import read_words

_PASSING = NOT_COUNTED | read_words("conversation_words.txt", "passing")
_BEFORE_VERBS = read_words("conversation_words.txt", "before_verbs")
_ENDS = NOT_COUNTED | read_words("marks.txt", "times")
_SELF = re.compile(r"(?:i|we)(?=['\s])", re.IGNORECASE)
_WORD = re.compile(r"\s*('?[^\W_]+(?:['-][^\W_]+)*)")
_COUNTED = re.compile(rf"(?:an?|the|my|our|some|no|many|several|few|{NUMBER_WORDS})(?![\w'-])", re.IGNORECASE)


def read_habit(sentence: str) -> tuple[str, str] | None:
    """
    A key made of the verb and the thing, and what the sentence says behind the verb; None if it is no habit.

    >>> read_habit("I drive an old Volvo V70"), read_habit("We have two sheds")
    (('drive_v70', 'an old Volvo V70'), ('have_sheds', 'two sheds'))
    >>> read_habit("I want the blue one"), read_habit("I can't swim"), read_habit("It rains")
    (None, None, None)
    """
    plain = plain_signs(sentence)
    said = _SELF.match(plain)
    place, verb = said.end() if said else len(plain), ""
    while (word := _WORD.match(plain, place)) and not verb:
        rest = plain[word.end() :].lstrip()
        place = word.end()
        if word[1].lower() not in _BEFORE_VERBS or (word[1].lower() == "have" and _COUNTED.match(rest)):
            verb = word[1].lower()
    rest = sentence[place:].strip()
    thing = (
        _thing_of(plain[place:].lower())
        if verb == "have" or (verb.isalpha() and verb not in _PASSING)
        else None
    )
    return (f"{verb}_{thing}", rest) if thing else None


def _thing_of(words: str) -> str | None:
    """The noun that words begin with: of "an old Volvo V70 with a dent" the last word before "with"."""
    thing = None
    for match in re.finditer(r"[^\W_]+(?:['-][^\W_]+)*|[^\w\s'-]", words):
        is_end = not match[0][0].isalnum() or match[0] in _ENDS
        if thing and is_end:
            break
        thing = None if is_end else match[0].rpartition("-")[2]
    return thing
