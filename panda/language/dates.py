"""Dates, times of day and instants as people write them, each brought to one normal form."""

import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, date, datetime
from fractions import Fraction

_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_LONG_MONTH = r"(?i:january|february|april|june|july|august|september|october|november|december)"
_MONTH = (
    rf"(?P<{{0}}>{_LONG_MONTH}|M(?i:arch|ay\b\.?)"
    r"|(?:Jan|Feb|Mar|Apr|Jun|Jul|Aug|Sept?|Oct|Nov|Dec|JAN|FEB|MAR|APR|MAY|JUN|JUL|AUG|SEP|OCT|NOV|DEC)\b\.?)"
)  # "may" and "march" are also verbs
_SHORT_DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_SHORT_DAY = rf"(?:{'|'.join(_SHORT_DAYS)})"
_HALF_DAY = r"(?:[AaPp]\.[ ]?[Mm]\.|[AaPp][Mm]\b)"
_CLOCK = (
    rf"(?:24:00(?!:)|(?:[01]?\d|2[0-3]):[0-5]\d(?::[0-5]\d)?)(?!\d)(?:[ ]?{_HALF_DAY})?"
    rf"|(?:0?[1-9]|1[0-2])(?:\.[0-5]\d)?[ ]?{_HALF_DAY}"
)
_CLOCK_HOURS = tuple("twelve one two three four five six seven eight nine ten eleven".split())  # noqa: SIM905
_HOUR_WORD = rf"(?:{'|'.join(_CLOCK_HOURS)}|1[0-2]|[1-9])"
_TOLD_CLOCK = (
    rf"(?i:(?:half[ -]past|quarter[ -](?:past|to))[ ]{_HOUR_WORD}|{_HOUR_WORD}[ ]o'clock)"
    rf"(?:[ ]?{_HALF_DAY})?(?!\w)"
    r"|(?i:noon|midday|midnight)\b"
)
_AT = rf"(?:,?[ ](?:at[ ])?(?P<{{0}}>{_CLOCK})(?:[ ](?:UTC|GMT)\b)?)?"
_DAY = r"(?:0?[1-9]|[12]\d|3[01])"
_SMALL = r"(?:and|are|as|at|but|by|costs?|for|from|in|is|of|on|or|the|to|was|were|with)"
"""Words that end a range of days; any other may be what a number counts."""
_TO = r"(?:[ ]?[-–][ ]?|[ ](?:to|and|until|or)[ ])"

DATE_FORMS = tuple(
    """
    iso iso_month digits_month year_first slashed dotted day_first month_first month_year clock told_clock
    month weekday
    """.split()  # noqa: SIM905
)
"""Names of the groups of DATES and TOLD_DATES, one a written form."""
DATES = rf"""
    (?P<iso>(?<!\d)\d{{4}}-\d\d-\d\d(?!\d)
      (?:[T ]\d\d:\d\d(?!\d)(?::\d\d(?:\.\d+)?)?(?:[ ]?(?:Z|UTC|GMT)\b|[+-]\d\d:?\d\d)?)?)
  | (?P<iso_month>(?<![\d-])\d{{4}}-(?:0[1-9]|1[0-2])(?![\d-]))
  | (?P<digits_month>(?<![\d/.,-])(?:0[1-9]|1[0-2])/(?:19|20)\d\d(?![\d/-]|[.,]\d))
  | (?P<year_first>(?<!\d)\d{{4}}/\d\d?/\d\d?(?![\d/]))
  | (?P<slashed>(?<![\d/.,-])\d\d?(?P<mark>[/-])\d\d?(?P=mark)(?:\d{{4}}|(?<=/)\d\d)(?![\d/-]|[.,]\d))
  | (?P<dotted>(?<![\d.])\d\d?\.\d\d?\.\d{{4}}(?!\d|\.\d))
  | (?P<day_first>(?<![\d.,])(?:(?P<d0>{_DAY})(?:st|nd|rd|th|\.)?{_TO})?
      (?P<d1>{_DAY})(?:st|nd|rd|th|\.)?[ -]?(?:[ ]of[ ])?(?<=[ .\d-]){_MONTH.format("m1")}(?!\w)
      (?:,?[ -](?P<y1>\d{{4}})(?!\d){_AT.format("t1")})?)
  | (?P<month_first>(?<!\w){_MONTH.format("m2")}[ ](?P<d2>{_DAY})(?:st|nd|rd|th)?(?![\w:]|[.,]\d)
      (?:{_TO}(?P<d3>{_DAY})(?:st|nd|rd|th)?(?![\w:]|[.,]\d|[ ](?!{_SMALL}\b)[a-z]))?
      (?:,?[ ](?P<y2>\d{{4}})(?!\d){_AT.format("t2")})?)
  | (?P<month_year>(?<!\w){_MONTH.format("m3")},?[ ](?:of[ ])?(?P<y3>\d{{4}})(?!\d))
  | (?P<clock>(?<![\d:.,])(?:{_CLOCK}))
"""
"""Every written form of a date or time with a digit, as a verbose pattern."""
TOLD_DATES = rf"""
    (?P<told_clock>(?<!\w)(?:{_TOLD_CLOCK}))
  | (?P<month>(?<![\w-])(?:{_LONG_MONTH}|March|May|Jan|Feb|Mar|Apr|Jun|Jul|Aug|Sept?|Oct|Nov|Dec)(?![\w-]))
  | (?P<weekday>(?:(?<![\w-])|{"|".join(f"(?<={day}-)" for day in (*_SHORT_DAYS, "day"))})
      (?:(?i:{"|".join(_WEEKDAYS)})s?|Mon|Tues?|Wed|Thu(?:rs?)?|Fri|Sat|Sun)(?!\w|-(?!{_SHORT_DAY})))
"""
"""Times, months and weekdays in words alone, as a verbose pattern."""

_DAYS = re.compile(DATES, re.VERBOSE)
_DOT_TIME = re.compile(r"(?:[01]?\d|2[0-3])\.[0-5]\d")
_BEFORE_TIME = re.compile(
    r"\b(?:at|by|from|between|before|after|since|until|till|um|ab|von|bis)[ ]"
    r"(?:[\d.:]{4,5}(?:[ ]?[-–][ ]?|[ ](?:to|and|until|or|bis|und)[ ]))?\Z",
    re.IGNORECASE,
)
_SURE_MONTH = re.compile(rf"{_LONG_MONTH}|Sept|Oct|Nov|Dec|Feb|Aug")
_SURE_WEEKDAY = re.compile(r"(?i:[a-z]+days?)|Tues|Thurs?")
_BEFORE_MONTH = re.compile(
    r"\b(?:in|of|since|until|till|by|from|to|early|late|mid|this|last|next|every|through|during|between|before|after|and|or)"
    r"[ -]\Z",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class ReadDate:
    """What a written date or time says."""

    value: str  # normal form
    need: tuple[str, ...]
    """Keys of which a source must give one; () where the word may mean something else and claims nothing."""
    gives: tuple[str, ...]  # all keys that it gives as a source
    together: tuple[str, ...] = ()
    """Keys that support it if a source gives all of them: the day and the time of an instant."""


def read_date(match: re.Match[str]) -> list[ReadDate]:
    """
    What a written date or time says.

    Args:
        match: A match whose last group is one of DATE_FORMS.

    Returns:
        One reading, two of a range of days. Normal form: a date, a month "2026-01", a day of a year left
        open "--01-04", a month alone "--01", a weekday, a time of day, or an instant in UTC (a date with a
        time and no offset is UTC). A date that cannot be, or can be read in two ways ("01/04/2026"), stays
        as written and is supported by the same writing only. A time without "am" or "pm" may be meant in
        both halves of the day.

    >>> pattern = re.compile(f"{DATES}|{TOLD_DATES}", re.VERBOSE)
    >>> for text in ("4th of January 2026", "Jan. 4", "1:20 PM", "2026-01-04 14:20+01:00", "01/04/2026",
    ...              "7. October 2026", "10-Oct-2025", "9.30 a.m.", "half past nine", "Oct", "Fridays"):
    ...     print(read_date(pattern.fullmatch(text))[0].value)
    2026-01-04
    --01-04
    13:20:00
    2026-01-04T13:20:00Z
    1/4/2026
    2026-10-07
    2025-10-10
    09:30:00
    09:30:00
    --10
    friday
    """
    form = match.lastgroup
    if form == "iso":
        return [_read_iso(match[0])]
    if form == "digits_month":
        return [_month(match[0][3:], int(match[0][:2]))]
    if form == "iso_month":
        return [_month(match[0][:4], int(match[0][5:]))]
    if form in ("clock", "told_clock"):
        return [_read_clock(match[0])]
    if form in ("year_first", "slashed", "dotted"):
        return [_read_digits(match[0], form)]
    if form == "weekday":
        day = next(name for name in _WEEKDAYS if name.startswith(match[0][:3].lower()))
        need = (f"weekday:{day}",)
        return [ReadDate(day, need if _SURE_WEEKDAY.fullmatch(match[0]) else (), need)]
    if form == "month":
        number = 1 + _MONTHS.index(match[0][:3].lower())
        need = (f"month:{number}",)
        sure = _SURE_MONTH.fullmatch(match[0]) or _BEFORE_MONTH.search(
            match.string, max(0, match.start() - 12), match.start()
        )
        return [ReadDate(f"--{number:02d}", need if sure else (), need)]
    month = 1 + _MONTHS.index(next(match[m] for m in ("m1", "m2", "m3") if match[m])[:3].lower())
    if form == "month_year":
        return [_month(match["y3"], month)]
    days = [day for day in (match["d0"], match["d1"], match["d2"], match["d3"]) if day]
    return [_day(match["y1"] or match["y2"], month, int(day), match["t1"] or match["t2"]) for day in days]


def find_days(text: str) -> list[str]:
    """
    The days and months that a text writes with digits, in normal form.

    >>> find_days("2026-05-12 vet"), find_days("May 12, at 9:30"), find_days("12.05.2026_minutes")
    (['2026-05-12'], ['--05-12'], ['2026-05-12'])
    """
    return [read_date(match)[0].value for match in _DAYS.finditer(text) if match.lastgroup != "clock"]


def day_of(text: str) -> datetime | None:
    """
    The first whole day that a file name or heading names, at its beginning in UTC; None if there is none.

    >>> day_of("2026-05-12 vet").isoformat(), day_of("May 2026")
    ('2026-05-12T00:00:00+00:00', None)
    """
    for day in find_days(text):
        with suppress(ValueError):
            return datetime.fromisoformat(day[: len("2026-01-04")]).replace(tzinfo=UTC)
    return None


def span_between(first: str, second: str, year: str, *, in_months: bool) -> Iterator[Fraction]:
    """
    How long it is between two dates or times, in seconds or in months.

    Args:
        first: A value of ReadDate: a day, a month, an instant or a time of day.
        second: Another; nothing is given if it is of another form.
        year: That of days that have none.
        in_months: Whether months are counted; days have to be the same day of theirs.

    >>> [int(span) // 86400 for span in span_between("--02-27", "--03-06", "2026", in_months=False)]
    [7]
    >>> [int(span) for span in span_between("23:50:00", "00:10:00", "2026", in_months=False)]
    [85200, 1200]
    """
    texts = [one.replace("--", f"{year}-", 1) if one.startswith("--") else one for one in (first, second)]
    if all(re.fullmatch(r"\d\d:\d\d:\d\d", one) for one in texts):
        if not in_months:
            low, high = sorted(
                sum(int(part) * size for part, size in zip(one.split(":"), (3600, 60, 1), strict=True))
                for one in texts
            )
            yield from (Fraction(high - low), Fraction(86_400 - high + low))
        return
    by_month = [re.fullmatch(r"(\d{4})-(\d\d)(-\d\d)?", one) for one in texts]
    if in_months:
        if by_month[0] and by_month[1] and by_month[0][3] == by_month[1][3]:
            count = [int(one[1]) * 12 + int(one[2]) for one in by_month if one]
            yield Fraction(abs(count[0] - count[1]))
        return
    with suppress(ValueError):
        low_at, high_at = sorted(datetime.fromisoformat(one) for one in texts)
        yield Fraction(int((high_at - low_at).total_seconds()))


def dot_time(text: str, start: int, end: int) -> ReadDate | None:
    """
    The time that "6.15" tells behind "at" or another word of time; None if it is none.

    >>> dot_time("leaves at 6.15", 10, 14).value, dot_time("costs 6.15", 6, 10)
    ('06:15:00', None)
    """
    if not _DOT_TIME.fullmatch(text, start, end) or not _BEFORE_TIME.search(text, max(0, start - 24), start):
        return None
    return _read_clock(text[start:end].replace(".", ":"))


def _month(year: str, month: int) -> ReadDate:
    value = f"{year}-{month:02d}"
    return ReadDate(value, (f"date:{value}",), (f"date:{value}", f"month:{month}", f"number:{int(year)}"))


def _read_iso(written: str) -> ReadDate:
    text = re.sub(r"[ ]?(?:UTC|GMT|Z)\Z", "+00:00", written)
    try:
        local = datetime.fromisoformat(text)
        instant = (local if local.tzinfo else local.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError):
        return _as_written(written)
    day = _day(written[:4], local.month, local.day, None)
    if len(written) == 10:
        return day
    value = instant.isoformat().replace("+00:00", "Z")
    time = f"time:{local.time().isoformat(timespec='seconds')}"
    return ReadDate(value, (f"instant:{value}",), (f"instant:{value}", *day.gives, time))


def _as_written(written: str) -> ReadDate:
    return ReadDate(written, (f"written:{written}",), (f"written:{written}",))


def _read_digits(written: str, form: str) -> ReadDate:
    first, second, third = re.split(r"[./-]", written)
    if form == "year_first":
        year, month, day = first, int(second), int(third)
    elif form == "dotted" or int(first) > 12 or int(first) == int(second):
        year, month, day = third, int(second), int(first)
    elif int(second) > 12:
        year, month, day = third, int(first), int(second)
    else:
        return _as_written(f"{int(first)}/{int(second)}/{third}")
    if not (1 <= month <= 12 and 1 <= day <= 31) or len(year) < 4:
        return _as_written(written)
    return _day(year, month, day, None)


def _day(year: str | None, month: int, day: int, clock: str | None) -> ReadDate:
    open_year = f"--{month:02d}-{day:02d}"
    if year is None:
        return ReadDate(open_year, (f"date:{open_year}",), (f"date:{open_year}", f"month:{month}"))
    value = f"{year}-{month:02d}-{day:02d}"
    gives = [
        f"date:{value}",
        f"date:{year}-{month:02d}",
        f"date:{open_year}",
        f"month:{month}",
        f"number:{int(year)}",
    ]
    with suppress(ValueError):
        gives.append(f"weekday:{_WEEKDAYS[date(int(year), month, day).weekday()]}")
    if clock is None:
        return ReadDate(value, (f"date:{value}",), tuple(gives))
    time = _read_clock(clock)
    instant = f"{value}T{time.value}Z"
    gives += [f"instant:{instant}", *time.gives]
    return ReadDate(instant, (f"instant:{instant}",), tuple(gives), (f"date:{value}", f"time:{time.value}"))


def _read_clock(written: str) -> ReadDate:
    small = written.lower()
    if small in ("noon", "midday", "midnight"):
        value = "00:00:00" if small == "midnight" else "12:00:00"
        return ReadDate(value, (f"time:{value}",), (f"time:{value}",))
    hour, minute, second = _told_hour(small) or [*(int(part) for part in re.findall(r"\d+", small)), 0, 0][:3]
    as_told = f"clock:{hour % 12}:{minute:02d}:{second:02d}"
    half = re.search(r"(?<![a-z])([ap])\.? ?m", small)
    if half:
        hour = hour % 12 + (12 if half[1] == "p" else 0)
    hour %= 24
    value = f"{hour:02d}:{minute:02d}:{second:02d}"
    if half:
        return ReadDate(value, (f"time:{value}",), (f"time:{value}", as_told))
    open_half = 1 <= hour <= 12 and not small.startswith("0")
    parts = tuple(f"number:{int(part)}" for part in re.findall(r"\d+", small))  # "11:14" may be a score
    need = (f"time:{value}", as_told) if open_half else (f"time:{value}",)
    return ReadDate(value, need, (f"time:{value}", *parts))


def _told_hour(written: str) -> list[int] | None:
    found = re.match(rf"(?:(half|quarter)[ -](past|to) )?({_HOUR_WORD})(?: o'clock)?(?!\w|[:.])", written)
    if not found:
        return None
    hour = _CLOCK_HOURS.index(found[3]) if found[3] in _CLOCK_HOURS else int(found[3])
    hour = hour or 12
    if found[1] is None:
        return [hour, 0, 0]
    if found[2] == "to":
        return [(hour - 2) % 12 + 1, 45, 0]
    return [hour, 30 if found[1] == "half" else 15, 0]
