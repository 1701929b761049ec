"""What a query asks the index for: its words, the names and the dates in it. Pure."""

import re
from calendar import month_name
from dataclasses import dataclass
from datetime import datetime

_STOP_WORDS = frozenset(
    """
    a about also am an and any are as at be been being but by can could d did do does doing don for from had
    has have having he her here him his how i if in into is it its just ll m many may me might more most much
    my no not of on or our re s shall she should so some t than that the their them then there these they this
    those to us ve very was we were what when where which who whom whose why will with would you your
    """.split()  # noqa: SIM905 - a hundred words are easier to read so
)
_MONTHS = tuple(month_name[number].lower() for number in range(1, 13))
_MONTH = "|".join(name.capitalize() for name in _MONTHS)
_ISO = re.compile(r"\b(\d{4})-(\d{2})-(\d{2})\b")
_DAY_MONTH = re.compile(rf"\b(\d{{1,2}})(?:st|nd|rd|th)?(?: of)? ({_MONTH})\b(?:,? (\d{{4}}))?")
_MONTH_DAY = re.compile(rf"\b({_MONTH}) (\d{{1,2}})(?:st|nd|rd|th)?\b(?:,? (\d{{4}}))?")
_MONTH_YEAR = re.compile(rf"\b({_MONTH})(?:,? (\d{{4}}))?\b")


@dataclass(frozen=True)
class DateHint:
    """A date that a query names, as far as it names it."""

    year: int | None
    """None if not named."""
    month: int
    """1 to 12."""
    day: int | None
    """None if only the month is named."""

    def matches(self, moment: datetime) -> bool:
        """Whether the moment lies in what is named."""
        return (
            moment.month == self.month
            and self.year in (None, moment.year)
            and (self.day is None or self.day == moment.day)
        )


def find_query_words(query: str) -> list[str]:
    """
    The words to search for, each once, in order.

    Args:
        query: Any text.

    Returns:
        Words and numbers without the commonest words; if nothing else is there, those.

    >>> find_query_words("What is the price of the RTX 4050 laptop with 16GB?")
    ['price', 'RTX', '4050', 'laptop', '16GB']
    >>> find_query_words("who are you?")
    ['who', 'are', 'you']
    """
    words = list(dict.fromkeys(re.findall(r"\w+", query)))
    return [word for word in words if word.lower() not in _STOP_WORDS] or words


def find_names(query: str) -> list[str]:
    """
    Capitalised words that may name people or things: not the first word of a sentence if it is common.

    >>> find_names("When did Caroline meet the Lenovo people in May?")
    ['Caroline', 'Lenovo']
    """
    words = re.findall(r"\b[A-Z][\w'’]*[a-z][\w]*", query)
    names = (re.sub(r"['’]s$", "", word) for word in words)
    return [name for name in dict.fromkeys(names) if name.lower() not in (*_STOP_WORDS, *_MONTHS)]


def find_dates(query: str) -> list[DateHint]:
    """
    The dates that a query names; relative ones are not among them.

    >>> find_dates("What did we do on 8 May 2023 and in July?")
    [DateHint(year=2023, month=5, day=8), DateHint(year=None, month=7, day=None)]
    >>> find_dates("since 2026-01-04")
    [DateHint(year=2026, month=1, day=4)]
    """
    found: list[tuple[int, DateHint]] = []
    taken: list[range] = []

    def add(start: int, end: int, year: str | None, month: int, day: int | None) -> None:
        if not any(start in span for span in taken) and 1 <= month <= 12:
            taken.append(range(start, end))
            found.append((start, DateHint(int(year) if year else None, month, day)))

    for match in _ISO.finditer(query):
        add(match.start(), match.end(), match[1], int(match[2]), int(match[3]))
    for match in _DAY_MONTH.finditer(query):
        add(match.start(), match.end(), match[3], _month(match[2]), int(match[1]))
    for match in _MONTH_DAY.finditer(query):
        add(match.start(), match.end(), match[3], _month(match[1]), int(match[2]))
    for match in _MONTH_YEAR.finditer(query):
        if not any(match.start() in span for span in taken):
            add(match.start(), match.end(), match[2], _month(match[1]), None)
    return [hint for _, hint in sorted(found, key=lambda pair: pair[0])]


def _month(name: str) -> int:
    return _MONTHS.index(name.lower()) + 1
