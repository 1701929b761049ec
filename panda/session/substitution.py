"""Messages that ask the last question anew of something else: "and Ivy's?", "and in week 50?". Pure."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from panda.language.languages import calendar_names
from panda.language.patterns import lazy_pattern
from panda.language.text import plain_signs
from panda.language.words import alternatives, is_ordinary, split_words
from panda.messages.matching import common_words, is_foreign

_WORDS_FILE = "item_words.txt"
_MOST_WORDS = 6
_WORD = lazy_pattern(r"[^\W_]+(?:['-][^\W_]+)*")
_OWNER = lazy_pattern(r"'s?$")
_CALENDAR = frozenset(calendar_names("months", "weekdays"))
_JOINS = lazy_pattern(rf"\s+(?:&|{alternatives(_WORDS_FILE, 'joins')})\s+", re.IGNORECASE)
_GOES_ON = lazy_pattern(rf"\W*(?:{alternatives(_WORDS_FILE, 'goes_on')})(?!\w)", re.IGNORECASE)
_Kind = Literal["number", "calendar", "name", "word"]
_MAX_PHRASE_WORDS = 3
_LOOK_CHARS = 40
_BEFORE_PHRASE = lazy_pattern(
    rf"(?:(?P<verb>\b(?:{alternatives(_WORDS_FILE, 'before_subjects')})\s+)"
    rf"|(?P<of>\b(?:{alternatives(_WORDS_FILE, 'of')})\s+))?"
    rf"(?P<determiner>\b(?:{alternatives(_WORDS_FILE, 'determiners_of_one')})\s+)?\Z",
    re.IGNORECASE,
)
_AROUND_PHRASE = lazy_pattern(
    rf"\W*(?:(?:{alternatives(_WORDS_FILE, 'goes_on')})\s+)*"
    rf"(?:(?:{alternatives(_WORDS_FILE, 'before_places')})\s+)?",
    re.IGNORECASE,
)
"""What stands before the thing in a message that names nothing else."""


def ask_anew(query: str, last_query: str) -> str | None:
    """
    Return the last question with what a short message names in the place of what is like it there: a number,
    a month or weekday, a name, or a thing; None where the message says more, or there is no such place, or
    several.

    >>> ask_anew("and P4?", "how many colonies are on P2")
    'how many colonies are on P4'
    >>> ask_anew("and ivy's?", "when's Theo's next tetanus due")
    "when's ivy's next tetanus due"
    >>> ask_anew("and how much is the boat?", "when's Theo's next tetanus due") is None
    True
    >>> ask_anew("and the night porter?", "which key does the cook need?")
    'which key does the night porter need?'
    >>> ask_anew("and Brock's?", "what's saffrons flying weight")
    "what's Brock's flying weight"
    """
    asked = plain_signs(query)
    last = plain_signs(last_query)
    if len(split_words(asked)) > _MOST_WORDS:
        return None
    held = {_without_possessive(word).lower() for word in _WORD.findall(last)}
    named = [word for word in _telling(asked) if _without_possessive(word).lower() not in held]
    kind = "word" if len(named) != 1 or is_foreign(last) else _kind_of(named[0])
    if kind == "word":
        return _ask_of_noun_phrase(asked, last) if named else None
    own = {_without_possessive(word).lower() for word in _WORD.findall(asked)}
    places = [
        match
        for match in _WORD.finditer(last)
        if _is_telling(match[0], common_words(last))
        and _kind_of(match[0]) == kind
        and _without_possessive(match[0]).lower() not in own
    ]
    if not places:
        return _ask_of_noun_phrase(asked, last)
    if len(places) > 1:
        return None
    replacement = _without_possessive(named[0])
    if _OWNER.search(places[0][0]):
        replacement = named[0] if _OWNER.search(named[0]) else f"{named[0]}'s"
    return last_query[: places[0].start()] + replacement + last_query[places[0].end() :]


def _ask_of_noun_phrase(query: str, last_query: str) -> str | None:
    """Return the last question with the one noun phrase of a message instead of its owner or last phrase."""
    named = _noun_phrases(query)
    places = _noun_phrases(last_query)
    if len(named) != 1 or not places:
        return None
    (thing,) = named
    is_all = _AROUND_PHRASE.fullmatch(query[: thing.start]) and not query[thing.end :].strip(" ?!.")
    if len(thing.words) > _MAX_PHRASE_WORDS or not is_all:
        return None
    replacement = query[thing.start : thing.end]
    if thing.is_owner:
        owners = [place for place in places if place.is_owner or place.is_owned]
        owners = owners or [place for place in map(_typed_owner, places) if place is not None]
        if len(owners) != 1:
            return None
        if not owners[0].is_owner:
            replacement = _without_possessive(replacement)
        return last_query[: owners[0].start] + replacement + last_query[owners[0].end :]
    alike = [place for place in places if place.has_determiner == thing.has_determiner]
    names = [place for place in places if _kind_of(place.words[-1]) == "name"]
    place = (alike or names or places)[-1]
    if not last_query[: place.start].strip():
        return None
    return last_query[: place.start] + replacement + last_query[place.end :]


def begins_as_follow_up(query: str) -> bool:
    """Return whether a message begins as what goes on from the last one does: "and", "what about"."""
    return _GOES_ON.match(plain_signs(query)) is not None


def ask_in_turn(latest_queries: Sequence[str]) -> str:
    """
    Return the last of some messages, read with those before it where each asks anew of something else.

    >>> ask_in_turn(["which shelf is Ida's?", "and Piet's?", "and Ivy's?"])
    "which shelf is Ivy's?"
    """
    asked = ""
    for query in latest_queries:
        asked = (ask_anew(query, asked) if asked else None) or query
    return asked


def _typed_owner(noun_phrase: "_NounPhrase") -> "_NounPhrase | None":
    """Return the owner of a noun phrase that is typed without its apostrophe, as "saffrons weight" is."""
    first, *others = noun_phrase.words
    if noun_phrase.has_determiner or not others or not first.endswith("s"):
        return None
    return replace(noun_phrase, end=noun_phrase.start + len(first), words=(first,), is_owner=True)


@dataclass(frozen=True)
class _NounPhrase:
    start: int  # of its determiner, if it has one
    end: int
    words: tuple[str, ...]
    has_determiner: bool
    is_owner: bool  # "the cook's"
    is_owned: bool  # behind "of"


def _noun_phrases(text: str) -> list[_NounPhrase]:
    """Return the runs of words that name something, each with its determiner; numbers and days are none."""
    phrases = []
    common = common_words(text)
    run: list[re.Match[str]] = []
    for word in _WORD.finditer(text):
        is_next = not run or text[run[-1].end() : word.start()] == " "
        ends = run and _OWNER.search(run[-1][0]) is not None
        if run and (not _is_telling(word[0], common) or not is_next or ends):
            phrases.append(_noun_phrase(text, run))
            run = []
        if _is_telling(word[0], common):
            run.append(word)
    if run:
        phrases.append(_noun_phrase(text, run))
    named = [
        phrase
        for phrase in phrases
        if not any(_kind_of(word) in ("number", "calendar") for word in phrase.words)
    ]
    joined = named[:1]
    for phrase in named[1:]:
        if _JOINS.fullmatch(text[joined[-1].end : phrase.start]):  # "Kit and Rosalind"
            words = (*joined[-1].words, *phrase.words)
            joined[-1] = replace(joined[-1], end=phrase.end, words=words, is_owner=phrase.is_owner)
        else:
            joined.append(phrase)
    return joined


def _noun_phrase(text: str, word_matches: Sequence[re.Match[str]]) -> _NounPhrase:
    start = word_matches[0].start()
    before = _BEFORE_PHRASE.search(text, max(0, start - _LOOK_CHARS), start)
    has_determiner = before is not None and before["determiner"] is not None
    if before is not None and before["verb"] and len(word_matches) > 1:
        word_matches = word_matches[:-1]
    return _NounPhrase(
        start=before.start("determiner") if before is not None and has_determiner else start,
        end=word_matches[-1].end(),
        words=tuple(word[0] for word in word_matches),
        has_determiner=has_determiner,
        is_owner=_OWNER.search(word_matches[-1][0]) is not None,
        is_owned=before is not None and before["of"] is not None,
    )


def _telling(text: str) -> list[str]:
    common = common_words(text)
    return [word for word in _WORD.findall(text) if _is_telling(word, common)]


def _is_telling(word: str, common: frozenset[str]) -> bool:
    return {word.lower(), _without_possessive(word).lower()}.isdisjoint(common)


def _without_possessive(word: str) -> str:
    return _OWNER.sub("", word)


def _kind_of(word: str) -> _Kind:
    bare = _without_possessive(word).lower()
    if any(map(str.isdigit, bare)):
        return "number"
    if bare in _CALENDAR:
        return "calendar"
    return "word" if is_ordinary(bare) else "name"
