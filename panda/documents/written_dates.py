"""Dates, times of day and instants as people write them, each brought to one normal form."""

import re
from datetime import datetime

from panda.documents.times import parse_time

_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_MONTH = (
    r"(?P<{0}>(?i:january|february|april|june|july|august|september|october|november|december)|M(?i:arch|ay\b\.?)"
    r"|(?:Jan|Feb|Mar|Apr|Jun|Jul|Aug|Sept?|Oct|Nov|Dec)\b\.?)"
)  # "may" and "march" are also verbs
_CLOCK = (
    r"(?:[01]?\d|2[0-3]):[0-5]\d(?::[0-5]\d)?(?!\d)(?:[ ]?[AaPp]\.?[Mm]\b\.?)?"
    r"|(?:0?[1-9]|1[0-2])[ ]?[AaPp][Mm]\b"
)
_AT = rf"(?:,?[ ](?:at[ ])?(?P<{{0}}>{_CLOCK})(?:[ ](?:UTC|GMT)\b)?)?"
_DAY = r"(?:0?[1-9]|[12]\d|3[01])"

DATE_FORMS = (
    "iso",
    "iso_month",
    "year_first",
    "slashed",
    "dotted",
    "day_first",
    "month_first",
    "month_year",
    "clock",
)
"""Names of the groups of DATES, one a written form."""
DATES = rf"""
    (?P<iso>(?<!\d)\d{{4}}-\d\d-\d\d(?!\d)
      (?:[T ]\d\d:\d\d(?!\d)(?::\d\d(?:\.\d+)?)?(?:[ ]?(?:Z|UTC|GMT)\b|[+-]\d\d:?\d\d)?)?)
  | (?P<iso_month>(?<![\d-])\d{{4}}-(?:0[1-9]|1[0-2])(?![\d-]))
  | (?P<year_first>(?<!\d)\d{{4}}/\d\d?/\d\d?(?![\d/]))
  | (?P<slashed>(?<![\d/])\d\d?/\d\d?/\d{{4}}(?![\d/]))
  | (?P<dotted>(?<![\d.])\d\d?\.\d\d?\.\d{{4}}(?!\d|\.\d))
  | (?P<day_first>(?<![\d.,]){_DAY}(?:st|nd|rd|th)?[ ](?:of[ ])?{_MONTH.format("m1")}(?!\w)
      (?:,?[ ](?P<y1>\d{{4}})(?!\d){_AT.format("t1")})?)
  | (?P<month_first>(?<!\w){_MONTH.format("m2")}[ ](?P<d2>{_DAY})(?:st|nd|rd|th)?(?![\w:]|[.,]\d)
      (?:,?[ ](?P<y2>\d{{4}})(?!\d){_AT.format("t2")})?)
  | (?P<month_year>(?<!\w){_MONTH.format("m3")},?[ ](?:of[ ])?(?P<y3>\d{{4}})(?!\d))
  | (?P<clock>(?<![\d:.,])(?:{_CLOCK}))
"""
"""Every written form of a date or time, as a verbose pattern."""

Reading = tuple[str, str, list[str]]
"""Normal form, the key that a source must give, and all keys that the date gives as a source."""


def read_date(match: re.Match[str]) -> Reading:
    """
    What a written date or time says.

    Args:
        match: A match whose last group is one of DATE_FORMS.

    Returns:
        Normal form: a date, a month "2026-01", a day of a year left open "--01-04", a time of day, or an
        instant in UTC (a date with a time and no offset is UTC). A date that cannot be, or can be read in
        two ways ("01/04/2026"), stays as written and is supported by the same writing only.

    >>> pattern = re.compile(DATES, re.VERBOSE)
    >>> for text in ("4th of January 2026", "Jan. 4", "1:20 PM", "2026-01-04 14:20+01:00", "01/04/2026"):
    ...     print(read_date(pattern.fullmatch(text))[0])
    2026-01-04
    --01-04
    13:20:00
    2026-01-04T13:20:00Z
    01/04/2026
    """
    form = match.lastgroup
    if form == "iso":
        return _read_iso(match[0])
    if form == "iso_month":
        return match[0], f"date:{match[0]}", [f"number:{int(match[0][:4])}"]
    if form == "clock":
        time = _clock(match[0])
        return time, f"time:{time}", []
    if form in ("year_first", "slashed", "dotted"):
        return _read_digits(match[0], form)
    month = 1 + _MONTHS.index(next(match[m] for m in ("m1", "m2", "m3") if match[m])[:3].lower())
    if form == "month_year":
        value = f"{match['y3']}-{month:02d}"
        return value, f"date:{value}", [f"number:{int(match['y3'])}"]
    day = int(re.sub(r"\D.*", "", match["d2"] or match[0], flags=re.DOTALL))
    return _day(match["y1"] or match["y2"], month, day, match["t1"] or match["t2"])


def _read_iso(written: str) -> Reading:
    text = re.sub(r"[ ]?(?:UTC|GMT|Z)\Z", "+00:00", written)
    try:
        instant, local = parse_time(text), datetime.fromisoformat(text)
    except (ValueError, OverflowError):
        return _as_written(written)
    if len(written) == 10:
        return _day(written[:4], local.month, local.day, None)
    value = instant.isoformat().replace("+00:00", "Z")
    gives = _day(written[:4], local.month, local.day, None)[2]
    return value, f"instant:{value}", [*gives, f"time:{local.time().isoformat(timespec='seconds')}"]


def _as_written(written: str) -> Reading:
    return written, f"written:{written}", []


def _read_digits(written: str, form: str) -> Reading:
    first, second, third = re.split(r"[./]", written)
    if form == "year_first":
        year, month, day = first, int(second), int(third)
    elif form == "dotted" or int(first) > 12:
        year, month, day = third, int(second), int(first)
    elif int(second) > 12:
        year, month, day = third, int(first), int(second)
    else:
        return _as_written(written)
    return _day(year, month, day, None) if 1 <= month <= 12 and 1 <= day <= 31 else _as_written(written)


def _day(year: str | None, month: int, day: int, clock: str | None) -> Reading:
    open_year = f"--{month:02d}-{day:02d}"
    if year is None:
        return open_year, f"date:{open_year}", []
    date = f"{year}-{month:02d}-{day:02d}"
    gives = [f"date:{date}", f"date:{year}-{month:02d}", f"date:{open_year}", f"number:{int(year)}"]
    if clock is None:
        return date, f"date:{date}", gives
    time = _clock(clock)
    instant = f"{date}T{time}Z"
    return instant, f"instant:{instant}", [*gives, f"time:{time}"]


def _clock(written: str) -> str:
    hour, minute, second = [*(int(part) for part in re.findall(r"\d+", written)), 0, 0][:3]
    half = re.search(r"[AaPp]", written)
    if half:
        hour = hour % 12 + (12 if half[0] in "Pp" else 0)
    return f"{hour:02d}:{minute:02d}:{second:02d}"
