"""How a message is worded, and its mood where no model can tell. Pure."""

import re

from panda.language.patterns import lazy_pattern
from panda.language.text import plain_signs
from panda.language.words import CONTENT_FREE_WORDS, alternatives, read_words
from panda.messages.questions import is_question
from panda.messages.reading import Agreement, Mood

_APOSTROPHE_T = lazy_pattern(r"(\w)(n't)\b")
_TYPED_NOT = lazy_pattern(
    r"\b(is|are|was|were|do|does|did|has|have|had|ca|wo|could|should|would)n'?t\b", re.I
)
_TOKEN = lazy_pattern(r"n't|'s|'m|'re|'ve|'ll|'d|[a-z]+|\d+|[^\w\s]")
_STEM_CHARS = 5


def split_words(text: str) -> list[str]:
    """Return the words of a text in lower case, contractions split at the apostrophe, without punctuation."""
    plain = _APOSTROPHE_T.sub(r"\1 \2", plain_signs(text).lower())
    return [
        token for token in _TOKEN.findall(plain) if token[0].isalnum() or token[0] == "'" or token == "n't"
    ]


def content_stems(text: str) -> set[str]:
    """Return the beginnings of the words that are no function words."""
    return {word[:_STEM_CHARS] for word in split_words(text) if word not in CONTENT_FREE_WORDS}


_VERBS = read_words("order_verbs.txt")
_BE, _YES, _NO = (read_words("order_words.txt", group) for group in ("be", "yes", "no"))
_LEFT_OUT = [read_words("order_words.txt", group) for group in ("persons", "single", "several")]


def leaves_out(text: str) -> bool:
    """Return whether a text leaves open what it is about: by a pronoun, or by naming nothing."""
    words = set(split_words(text))
    return not content_stems(text) or any(words & group for group in _LEFT_OUT)


def split_denials(text: str) -> str:
    """
    Return a text in which denials stand apart from their verbs.

    >>> split_denials("which havent been paid")
    'which have not been paid'
    """
    return _TYPED_NOT.sub(r"\1 not", text)


_FOREIGN = "foreign_words.txt"
_MOST_FOLLOW_UP_WORDS = 5
_FOREIGN_QUESTION = lazy_pattern(
    rf"\W*(?:(?:{alternatives(_FOREIGN, 'before_asks')})[\s,]+){{0,2}}"
    rf"(?:{'|'.join(alternatives(_FOREIGN, name) for name in ('asks', 'inverted', 'shows'))})"
    r"(?![\w'-])",
    re.IGNORECASE,
)
_FOREIGN_FOLLOW_UP = lazy_pattern(rf"\W*(?:{alternatives(_FOREIGN, 'goes_on')})(?!\w)", re.IGNORECASE)


def foreign_mood(text: str) -> Mood:
    """
    Return whether a German, French or Spanish text asks or tells.

    >>> foreign_mood("wann war die Heizung dran"), foreign_mood("il s'appelle Moka")
    ('asks', 'tells')
    """
    plain = plain_signs(text)
    is_follow_up = _FOREIGN_FOLLOW_UP.match(plain) and len(plain.split()) <= _MOST_FOLLOW_UP_WORDS
    if plain.rstrip().endswith("?") or is_follow_up or _FOREIGN_QUESTION.match(plain):
        return "asks"
    return "tells"


_UNDECIDED = re.compile(
    r"\W*(?:(?:hm+|well|um+|ok|okay)\W+)?"
    r"(?:maybe|perhaps|possibly|(?:i(?:'m| am) )?(?:not sure|unsure)|i (?:don't|do not) know|no idea"
    r"|let me think(?: about it)?|i(?:'ll| will) think about it)(?: yet| later)?\W*",
    re.IGNORECASE,
)


def plain_mood(clause: str) -> Mood:
    first, *later = split_words(clause) or [""]
    is_verb = first in _VERBS and _BE.isdisjoint(later[1:])
    if is_question(clause):
        return "asks"
    return "orders" if is_verb else "tells"


def is_undecided(query: str) -> bool:
    """
    Return whether a reply says neither yes nor no, and nothing else.

    >>> is_undecided("Hm, maybe."), is_undecided("not sure yet"), is_undecided("maybe the red one")
    (True, True, False)
    """
    return _UNDECIDED.fullmatch(query) is not None


def plain_agreement(query: str) -> Agreement:
    """
    Return what a reply that begins with a bare yes or no says to a question; "neither" for any other reply.
    """
    match = re.match(r"\s*([^\W\d_]+)\s*(?:[,.!;]|$)", query.lower())
    if match is None or query.rstrip().endswith("?"):
        return "neither"
    if match[1] in _YES:
        return "agrees"
    return "declines" if match[1] in _NO else "neither"


_PAST_WORDS = read_words("irregular_pasts.txt")
_NO_PAST = read_words("period_words.txt", "no_past")


def is_past_form(word: str) -> bool:
    return word in _PAST_WORDS or (len(word) > 4 and word.endswith("ed") and word not in _NO_PAST)


PAGE_ADDRESS = lazy_pattern(
    r"(?:\b(?:the|that|this) (?:web)?(?:page|site) )?\bhttps?://[^\s<>\"`|]*[^\s<>\"`|.,;:!?)\]'’”]",
    re.IGNORECASE,
)
"""A web address in a message, with the words that say that it is a page."""


def claims_done(text: str) -> bool:
    lately, done = (alternatives("conversation_words.txt", name) for name in ("lately", "done"))
    claim = rf"(?:(?:I|we)(?:'ve| have)?(?: {lately})?|(?:has|have)(?: {lately})? been|(?:is|are) now) {done}"
    return re.search(rf"(?<!\w)(?:{claim})(?!\w)", plain_signs(text), re.IGNORECASE) is not None


def without_greeting(text: str) -> str:
    greeting = rf"^{alternatives('conversation_words.txt', 'greetings')}\b[^.!?\n]{{0,40}}?(?:[.!?]+|,|$)\s*"
    return re.sub(greeting, "", text.lstrip(), count=1, flags=re.IGNORECASE)
