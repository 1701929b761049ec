"""Messages that ask the last question anew of something else: "and Ivy's?", "and in week 50?". Pure."""

from typing import Literal

from panda.language.languages import calendar_names
from panda.language.patterns import lazy_pattern
from panda.language.text import plain_signs
from panda.language.words import FUNCTION_WORDS, is_ordinary, split_words

_MOST_WORDS = 6
_WORD = lazy_pattern(r"[^\W_]+(?:['-][^\W_]+)*")
_OWNER = lazy_pattern(r"'s?$")
_CALENDAR = frozenset(calendar_names("months", "weekdays"))
_Kind = Literal["number", "calendar", "name", "word"]


def ask_anew(query: str, last_query: str) -> str | None:
    """
    Return the last question with what a short message names in the place of what is like it there: a number,
    a month or weekday, or a name; None where the message says more, or there is no such place, or several.

    >>> ask_anew("and P4?", "how many colonies are on P2")
    'how many colonies are on P4'
    >>> ask_anew("and ivy's?", "when's Theo's next tetanus due")
    "when's ivy's next tetanus due"
    >>> ask_anew("and how much is the boat?", "when's Theo's next tetanus due") is None
    True
    """
    asked = plain_signs(query)
    last = plain_signs(last_query)
    if len(split_words(asked)) > _MOST_WORDS:
        return None
    held = {_bare(word).lower() for word in _WORD.findall(last)}
    named = [word for word in _telling(asked) if _bare(word).lower() not in held]
    if len(named) != 1:
        return None
    kind = _kind_of(named[0])
    own = {_bare(word).lower() for word in _WORD.findall(asked)}
    places = [
        match
        for match in _WORD.finditer(last)
        if _is_telling(match[0]) and _kind_of(match[0]) == kind and _bare(match[0]).lower() not in own
    ]
    if kind == "word" or len(places) != 1:
        return None
    is_owner = _OWNER.search(places[0][0]) is not None
    put = named[0] if is_owner == (_OWNER.search(named[0]) is not None) else _bare(named[0]) + "'s" * is_owner
    return last_query[: places[0].start()] + put + last_query[places[0].end() :]


def _telling(text: str) -> list[str]:
    return [word for word in _WORD.findall(text) if _is_telling(word)]


def _is_telling(word: str) -> bool:
    return word.lower() not in FUNCTION_WORDS and _bare(word).lower() not in FUNCTION_WORDS


def _bare(word: str) -> str:
    return _OWNER.sub("", word)


def _kind_of(word: str) -> _Kind:
    bare = _bare(word).lower()
    if any(map(str.isdigit, bare)):
        return "number"
    if bare in _CALENDAR:
        return "calendar"
    return "word" if is_ordinary(bare) else "name"
