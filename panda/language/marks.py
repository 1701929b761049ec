"""What kind of thing a line tells, and what kind a question wants: times, numbers, names. Pure."""

import re
from itertools import islice

from panda.language.word_lists import alternatives, read_words

FIRST_PERSON = read_words("marks.txt", "first")
"""What somebody who speaks calls himself."""
SECOND_PERSON = read_words("marks.txt", "second")
"""What he calls whom he speaks to."""


def _words(group: str, more: str = "") -> re.Pattern[str]:
    listed = alternatives("marks.txt", group)
    return re.compile(rf"(?<!\w){listed}(?!\w){more}", re.IGNORECASE)


_TELLS = {
    "time": _words("times", r"|\b(?:(?:19|20)\d\d|\d{1,2}:\d\d)\b"),
    "number": _words("numbers", r"|\d"),
    "name": re.compile(r"(?<![.!?:] )(?<!^)\b[A-Z][\w'’-]*\w|[\"“«][^\"”»]{3,60}[\"”»]"),
}
_WANTS = {"time": _words("asks_time"), "number": _words("asks_number"), "name": _words("asks_name")}
_NEGATION = _words("negations", r"|\b\w+n['’]t\b")
_FIRST = _words("first")
_NEGATED_END = re.compile(rf"(?:{_NEGATION.pattern})\s+(?:\S+\s+){{0,2}}\Z", re.IGNORECASE)


def wanted_kind(query: str) -> str | None:
    """
    The kind of thing that a question wants: time, number or name; None if that is not known.

    >>> [wanted_kind(query) for query in ("When is it?", "how much is it", "Who said it?", "Is it far?")]
    ['time', 'number', 'name', None]
    """
    return next((kind for kind, asks in _WANTS.items() if asks.search(query)), None)


def count_kind(text: str, kind: str) -> int:
    """
    How often a text tells a thing of a kind, up to twice.

    >>> count_kind("Two of them on Friday, said Ann", "name"), count_kind("It is far", "number")
    (2, 0)
    """
    return sum(1 for _ in islice(_TELLS[kind].finditer(text), 2))


def negates(text: str) -> bool:
    """Whether a text denies something."""
    return _NEGATION.search(text) is not None


def speaks_of_self(text: str) -> bool:
    """Whether a text is about him who says it."""
    return _FIRST.search(text) is not None


def negation_before(text: str, start: int, end: int) -> int | None:
    """
    Where a negation begins of which at most two words stand between it and a place.

    >>> negation_before("not the old tent", 0, 12), negation_before("the old tent", 0, 8)
    (0, None)
    """
    match = _NEGATED_END.search(text, start, end)
    return match.start() if match else None
