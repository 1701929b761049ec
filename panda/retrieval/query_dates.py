"""The times that a query names, "last week" included, as periods. Pure."""

import re
from calendar import day_name, month_name
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

_MONTHS = tuple(month_name[number].lower() for number in range(1, 13))
_DAYS = tuple(name.lower() for name in day_name)
_MONTH = "|".join(name.capitalize() for name in _MONTHS)
_DAY = "|".join(_DAYS)
_NUMBERS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
_COUNT = rf"(\d{{1,3}}|an?|{'|'.join(_NUMBERS[1:])}|a couple of|a few)"
_YEARS_BACK = 10

_ISO = re.compile(r"\b(\d{4})-(\d{2})-(\d{2})\b")
_DAY_MONTH = re.compile(rf"\b(\d{{1,2}})(?:st|nd|rd|th)?(?: of)? ({_MONTH})\b(?:,? (\d{{4}}))?")
_MONTH_DAY = re.compile(rf"\b({_MONTH}) (\d{{1,2}})(?:st|nd|rd|th)?\b(?:,? (\d{{4}}))?")
_MONTH_YEAR = re.compile(rf"\b({_MONTH})(?:,? (\d{{4}}))?\b")
_YEAR = re.compile(r"\b(?:in|of|during|since) ((?:19|20)\d{2})\b")
_NEAR = re.compile(r"\b(today|tonight|yesterday|the day before yesterday)\b", re.IGNORECASE)
_UNIT = re.compile(r"\b(last|this|previous|past) (weekend|week|month|year)\b", re.IGNORECASE)
_WEEKDAY = re.compile(rf"\b(?:last|on|this) ({_DAY})\b", re.IGNORECASE)
_AGO = re.compile(rf"\b{_COUNT} (day|week|month|year)s? ago\b", re.IGNORECASE)
_LAST_FEW = re.compile(rf"\b(?:last|past|previous) {_COUNT} (day|week|month|year)s?\b", re.IGNORECASE)
_UNIT_DAYS = {"day": 1, "week": 7, "month": 30, "year": 365}


@dataclass(frozen=True)
class Period:
    """A stretch of time that a query names."""

    start: datetime
    """First instant in it."""
    end: datetime
    """First instant after it."""
    words: tuple[int, int]
    """Where it stands in the query: first character, and the one after the last."""
    relative: bool
    """Whether its words say nothing without the present, as in "last week"."""


def find_periods(query: str, now: datetime) -> list[Period]:
    """
    The times that a query names.

    Args:
        query: Any text.
        now: From when relative times count.

    Returns:
        Periods in the order of the query. A day or month without a year is one period in each of the last
        years. Weeks begin on Monday.

    >>> now = datetime(2026, 1, 14, 12, tzinfo=UTC)
    >>> for query in ("on 8 May 2023", "last week", "yesterday", "3 weeks ago", "in 2024", "last Friday"):
    ...     print(*(f"{p.start:%Y-%m-%d} {p.end:%Y-%m-%d}" for p in find_periods(query, now)))
    2023-05-08 2023-05-09
    2026-01-05 2026-01-12
    2026-01-13 2026-01-14
    2025-12-22 2025-12-29
    2024-01-01 2025-01-01
    2026-01-09 2026-01-10
    """
    found: list[Period] = []
    for pattern, read in _READERS:
        for match in pattern.finditer(query):
            if any(one.words[0] < match.end() and match.start() < one.words[1] for one in found):
                continue
            relative = read in _RELATIVE
            with suppress(ValueError, OverflowError):  # no such day, or before all years
                found += [Period(*span, match.span(), relative) for span in read(match, now)]
    return sorted(found, key=lambda one: (one.words, one.start))


_Spans = list[tuple[datetime, datetime]]


def _iso(match: re.Match[str], now: datetime) -> _Spans:
    return _dates(int(match[1]), int(match[2]), int(match[3]), now)


def _day_month(match: re.Match[str], now: datetime) -> _Spans:
    return _dates(int(match[3]) if match[3] else None, _month(match[2]), int(match[1]), now)


def _month_day(match: re.Match[str], now: datetime) -> _Spans:
    return _dates(int(match[3]) if match[3] else None, _month(match[1]), int(match[2]), now)


def _month_year(match: re.Match[str], now: datetime) -> _Spans:
    return _dates(int(match[2]) if match[2] else None, _month(match[1]), None, now)


def _year(match: re.Match[str], now: datetime) -> _Spans:
    return _year_of(int(match[1]))


def _near(match: re.Match[str], now: datetime) -> _Spans:
    back = {"yesterday": 1, "the day before yesterday": 2}.get(match[1].lower(), 0)
    start = _midnight(now) - timedelta(days=back)
    return [(start, start + timedelta(days=1))]


def _unit(match: re.Match[str], now: datetime) -> _Spans:
    unit, back = match[2].lower(), int(match[1].lower() != "this")
    if unit in ("week", "weekend"):
        start = _monday(now) - timedelta(days=7 * back)
        return [(start + timedelta(days=5 if unit == "weekend" else 0), start + timedelta(days=7))]
    if unit == "month":
        return [_whole_month(now.year, now.month - back)]
    return _year_of(now.year - back)


def _weekday(match: re.Match[str], now: datetime) -> _Spans:
    back = (now.weekday() - _DAYS.index(match[1].lower())) % 7 or 7
    start = _midnight(now) - timedelta(days=back)
    return [(start, start + timedelta(days=1))]


def _ago(match: re.Match[str], now: datetime) -> _Spans:
    count, unit = _count(match[1]), match[2].lower()
    if unit == "day":
        start = _midnight(now) - timedelta(days=count)
        return [(start, start + timedelta(days=1))]
    if unit == "week":
        start = _monday(now) - timedelta(days=7 * count)
        return [(start, start + timedelta(days=7))]
    if unit == "month":
        return [_whole_month(now.year, now.month - count)]
    return _year_of(now.year - count)


def _last_few(match: re.Match[str], now: datetime) -> _Spans:
    days = _count(match[1]) * _UNIT_DAYS[match[2].lower()]
    return [(_midnight(now) - timedelta(days=days), now + timedelta(seconds=1))]


_READERS = (
    (_ISO, _iso),
    (_DAY_MONTH, _day_month),
    (_MONTH_DAY, _month_day),
    (_MONTH_YEAR, _month_year),
    (_YEAR, _year),
    (_NEAR, _near),
    (_LAST_FEW, _last_few),
    (_UNIT, _unit),
    (_WEEKDAY, _weekday),
    (_AGO, _ago),
)
_RELATIVE = (_near, _last_few, _unit, _weekday, _ago)


def _dates(year: int | None, month: int, day: int | None, now: datetime) -> _Spans:
    years = [year] if year is not None else range(now.year - _YEARS_BACK, now.year + 1)
    found: _Spans = []
    for one in years:
        try:
            if day is None:
                found.append(_whole_month(one, month))
            else:
                start = datetime(one, month, day, tzinfo=UTC)
                found.append((start, start + timedelta(days=1)))
        except (ValueError, OverflowError):  # no such day
            continue
    return found


def _year_of(year: int) -> _Spans:
    return [(datetime(year, 1, 1, tzinfo=UTC), datetime(year + 1, 1, 1, tzinfo=UTC))]


def _whole_month(year: int, month: int) -> tuple[datetime, datetime]:
    """A month of which the number may lie outside of 1 to 12."""
    first = year * 12 + month - 1
    starts = [datetime(one // 12, one % 12 + 1, 1, tzinfo=UTC) for one in (first, first + 1)]
    return starts[0], starts[1]


def _count(word: str) -> int:
    word = word.lower()
    if word.isdigit():
        return int(word)
    return {"a": 1, "an": 1, "a couple of": 2, "a few": 3}.get(word) or _NUMBERS.index(word)


def _month(name: str) -> int:
    return _MONTHS.index(name.lower()) + 1


def _midnight(moment: datetime) -> datetime:
    return moment.replace(hour=0, minute=0, second=0, microsecond=0)


def _monday(moment: datetime) -> datetime:
    return _midnight(moment) - timedelta(days=moment.weekday())
