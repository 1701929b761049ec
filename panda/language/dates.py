"""Dates and times of day: one table of the forms in which people write them, and what each says. Pure."""

import re
from calendar import day_name, monthrange
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from fractions import Fraction
from functools import partial

from panda.language.languages import NUMBERS, calendar_names
from panda.language.patterns import lazy_pattern, one_of
from panda.language.words import read_words

_calendar = partial(read_words, "calendar_words.txt")
_MONTH_PLACES = calendar_names("months", "short_months")
_WEEKDAYS = tuple(name.lower() for name in day_name)
_LONG_DAYS = calendar_names("weekdays")
_DAY_PLACES = calendar_names("weekdays", "short_weekdays")
_ENGLISH_DAYS = calendar_names("short_weekdays", language="en")
_ENGLISH_DAY = r"(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)"
_GERMAN_DAYS = calendar_names("short_weekdays", language="de")
_ROMANCE_DAYS = calendar_names("short_weekdays").keys() - _ENGLISH_DAYS.keys() - _GERMAN_DAYS.keys()
_OTHER_DAY = rf"(?:{one_of(map(str.capitalize, _GERMAN_DAYS))}|(?i:{one_of(_ROMANCE_DAYS)}))"
_ANY_DAY = rf"(?:(?i:{one_of(_LONG_DAYS)})|(?:{_ENGLISH_DAY}|{_OTHER_DAY})(?!\w))"
_ARTICLE = rf"(?:{one_of(_calendar('articles'))}[ ])?"
JOINT = rf"(?:[ ]?[-–][ ]?|[ ]{one_of(_calendar('ranges'))}[ ]{_ARTICLE})"
"""What joins the two ends of a range, as a verbose pattern."""
_HALVES = {word: half for half in ("am", "pm") for word in _calendar(half)}
"""Which half of the day words behind a time tell."""
_HALF_DAY = rf"(?:[AaPp]\.[ ]?[Mm]\.|[AaPp][Mm]\b|(?i:{one_of(_HALVES)})(?!\w))"
_TIME = r"(?:24:00(?!:)|(?:[01]?\d|2[0-3]):[0-5]\d(?::[0-5]\d)?)(?!\d)"
_TIME_BY_WORD = (
    rf"{_TIME}[ ]?{_HALF_DAY}"
    rf"|(?:[01]?\d|2[0-4])(?:[.:][0-5]\d)?[ ]?(?i:uhr)\b(?:[ ][0-5]\d(?![\d.,:]))?(?:[ ]{_HALF_DAY})?"
    rf"|(?:0?[1-9]|1[0-2])(?:\.[0-5]\d|[ ]?h)?[ ]?{_HALF_DAY}"
)
_HOURS_AND_MINUTES = rf"(?:[01]?\d|2[0-3])[ ]?h[ ]?[0-5]\d(?!\w|[ ]?m(?:in)?\b)(?:[ ]{_HALF_DAY})?"
"""A time, or how long something takes: "19h30"."""
_CLOCK = rf"(?:{_TIME_BY_WORD}|{_HOURS_AND_MINUTES}|{_TIME})"
_HOURS = {
    word.rstrip("*"): value for words in NUMBERS.values() for word, value in words.items() if 0 < value < 13
}
_HOUR = rf"(?:{one_of(_HOURS)}|1[0-2]|[1-9])"
_TOLD_MINUTES = {
    re.escape(form).replace(r"\ ", "[ -]").replace(r"\*", _HOUR): minutes
    for minutes in (0, 15, 30, -15, -30)
    for form in sorted(_calendar(f"clock_{minutes}"))
}
"""Patterns of times in words, each with the minutes that it adds to its hour."""
_TOLD_CLOCK = (
    rf"(?i:{'|'.join(_TOLD_MINUTES)})(?:[ ]?{_HALF_DAY})?(?!\w)"
    rf"|(?i:{one_of(_calendar('noon') | _calendar('midnight'))})(?!\w)"
)
_AT = rf"(?:,?[ ](?:at[ ])?(?P<{{0}}>{_CLOCK})(?:[ ](?:UTC|GMT)\b)?)?"
DAY_NUMBER = r"(?:0?[1-9]|[12]\d|3[01])"
_NTH = r"(?:st|nd|rd|th|er|ère|°|\.)"
_SMALL = r"(?:and|are|as|at|but|by|costs?|for|from|in|is|of|on|or|the|to|was|were|with)"
"""Words that end a range of days; any other may be what a number counts."""
FEASTS = {
    "christmas eve": (12, 24, 1), "christmas day": (12, 25, 1), "christmas": (12, 24, 3), "xmas": (12, 24, 3),
    "boxing day": (12, 26, 1), "new year's eve": (12, 31, 1), "new year's day": (1, 1, 1),
    "halloween": (10, 31, 1), "valentine's day": (2, 14, 1),
}  # fmt: skip
"""Feasts of fixed dates: month, day, and how many days."""

DATE_FORMS = tuple(
    """
    iso iso_month digits_month year_first compact slashed day_month dotted day_first month_first month_year
    clocks clock told_clock month weekday short_weekday feast
    """.split()  # noqa: SIM905
)
"""Names of the groups of DATES, TOLD_DATES and SHORT_DATES, one a written form."""


def _month(group: str, months: Iterable[str]) -> str:
    """Return a pattern of a month beside its day or year; another word has a capital or a year behind it."""
    words = _calendar("other_words").intersection(months)
    short = calendar_names("short_months").keys() & set(months) - words
    with_capital = one_of([*map(str.capitalize, words), *map(str.upper, words)])
    return (
        rf"(?P<{group}>(?i:{one_of(set(months) - words - short)})(?!\w)"
        rf"|(?:(?i:{one_of(short)})|{with_capital})(?!\w)\.?"
        rf"|(?i:{one_of(words)})(?!\w)\.?(?=,?[ -](?:del?[ ])?\d{{4}}))"
    )


_ENGLISH_MONTHS = calendar_names("months", "short_months", language="en")
DATES = rf"""
    (?P<iso>(?<!\d)\d{{4}}-\d\d-\d\d(?!\d)
      (?:[T ]\d\d:\d\d(?!\d)(?::\d\d(?:\.\d+)?)?(?:[ ]?(?:Z|UTC|GMT)\b|[+-]\d\d:?\d\d)?)?)
  | (?P<iso_month>(?<![\d-])\d{{4}}-(?:0[1-9]|1[0-2])(?![\d-]))
  | (?P<digits_month>(?<![\d/.,-])(?:0[1-9]|1[0-2])/(?:19|20)\d\d(?![\d/-]|[.,]\d))
  | (?P<year_first>(?<!\d)\d{{4}}/\d\d?/\d\d?(?![\d/]))
  | (?P<compact>(?<![\w.,/:#$€£+-])(?:19|20)\d\d(?:0[1-9]|1[0-2])(?:0[1-9]|[12]\d|3[01])(?![\w/-]|[.,]\d))
  | (?P<slashed>(?<![\d/.,-])\d\d?(?P<mark>[/-])\d\d?(?P=mark)(?:\d{{4}}|(?<=/)\d\d)(?![\d/-]|[.,]\d))
  | (?P<day_month>(?<![\d/.,-])(?:(?:0[1-9]|1[3-9]|2\d|3[01])/(?:0[1-9]|1[0-2])|1[0-2]/0[1-9])
      (?![\d/%-]|[.,]\d))
  | (?P<dotted>(?<![\d.])(?:(?P<d4>\d\d?)\.(?:(?P<m4>\d\d?)\.)?{JOINT})?
      (?P<d5>\d\d?\.\d\d?\.\d{{4}})(?!\d|\.\d))
  | (?P<day_first>(?<![\d.,])(?:(?P<d0>{DAY_NUMBER}){_NTH}?{JOINT})?
      (?P<d1>{DAY_NUMBER}){_NTH}?[ -]?(?:[ ](?:of|de)[ ])?(?<=[ .\d-]){_month("m1", _MONTH_PLACES)}(?!\w)
      (?:(?:,?[ -]|[ ]del?[ ])(?P<y1>\d{{4}})(?!\d){_AT.format("t1")})?)
  | (?P<month_first>(?<!\w){_month("m2", _ENGLISH_MONTHS)}[ ](?:the[ ])?
      (?P<d2>{DAY_NUMBER})(?:st|nd|rd|th)?(?!\w|:\d|[.,]\d)
      (?:{JOINT}(?P<d3>{DAY_NUMBER})(?:st|nd|rd|th)?(?!\w|:\d|[.,]\d|[ ](?!{_SMALL}\b)[a-z]))?
      (?:,?[ ](?P<y2>\d{{4}})(?!\d){_AT.format("t2")})?)
  | (?P<month_year>(?<!\w){_month("m3", _MONTH_PLACES)},?[ ](?:(?:of|del?)[ ])?(?P<y3>\d{{4}})(?!\d))
  | (?P<clocks>(?<![\d:.,/$€£-])(?P<c0>(?:[01]?\d|2[0-4])(?:[.:][0-5]\d)?){JOINT}(?P<c1>{_TIME_BY_WORD}))
  | (?P<clock>(?<![\d:.,])(?:{_CLOCK}))
"""
"""Every written form of a date or time with a digit, as a verbose pattern."""
_CAPITAL_MONTHS = calendar_names("short_months", language="en").keys() | {"may", "march"}
_SMALL_MONTHS = {"mars", "mayo"}  # with a capital they are a planet and a county
TOLD_DATES = rf"""
    (?P<told_clock>(?<!\w)(?:{_TOLD_CLOCK}))
  | (?P<month>(?<![\w-])(?:(?i:{one_of(calendar_names("months").keys() - _CAPITAL_MONTHS - _SMALL_MONTHS)})
      |{one_of(_SMALL_MONTHS)}|{one_of(map(str.capitalize, _CAPITAL_MONTHS))})(?![\w-]))
  | (?P<weekday>(?:(?i:(?<!\w){one_of(_LONG_DAYS)}{one_of(_calendar("weekday_ends"))}?)
      |(?:(?<![\w-])|(?<=day-)|(?<={_ENGLISH_DAY}-))(?:{_ENGLISH_DAY}|Tues|Thurs?))(?!\w|-(?!{_ANY_DAY})))
  | (?P<feast>(?<!\w)(?i:{one_of([*FEASTS, "easter"])})(?!\w))
"""
"""Times, months, weekdays and feasts in words alone, as a verbose pattern."""
SHORT_DATES = rf"(?P<short_weekday>(?<!\w){_OTHER_DAY}(?!\w))"
"""Short weekdays that may be other words or the currency of a price, as a verbose pattern."""

_DAYS = lazy_pattern(DATES, re.VERBOSE)
_BEFORE_TIME = lazy_pattern(
    rf"(?:\b(?i:{one_of(_calendar('before_time'))})|(?<!\w){_ANY_DAY}\w*\.?[,:]?)[ ]"
    rf"(?:[\d.:]{{1,5}}{JOINT})?\Z"
)
_TIME_BEHIND = lazy_pattern(
    rf",?[ ]\d\d?[ ]?[-–][ ]?\d|\.?[,:]?[ ](?:{one_of(_calendar('before_time'))}[ ])?{_ARTICLE}\d{{1,4}}"
    r"(?:[:/-]\d|[ ]?h(?![^\W\d_])|(?:\.\d\d)?[ ]?(?i:uhr)|\.\d\d?\.|\.?[ ]?[-–][ ]?\d\d?\."
    rf"|\.?[ ](?:de[ ])?(?i:{one_of(_MONTH_PLACES)})(?!\w))"
)
"""A range of hours, a time or a date behind a short weekday. "Fr. 19.50" is none: it is a price."""
_DAY_BEHIND = lazy_pattern(rf"\.?(?P<joint>{JOINT}|[ ]?[,/+&][ ]?)(?P<day>{_ANY_DAY})")
_DAY_BEFORE = lazy_pattern(rf"(?<!\w){_ANY_DAY}\w*\.?(?:{JOINT}|[ ]?[,/+&][ ]?)\Z")
_DATE_BEHIND = lazy_pattern(rf",?[ ]{_ARTICLE}(?:{DATES})", re.VERBOSE)
_BEFORE_MONTH = {
    size: lazy_pattern(rf"(?<!\w){one_of(_calendar(f'before_{size}_month'))}[ -]\Z", re.IGNORECASE)
    for size in ("large", "small")
}
_BARE_TIME = lazy_pattern(r"(?:[01]?\d|2[0-3])(?:\.[0-5]\d|(?P<h>[ ]?h))?")
_BARE_DAY = lazy_pattern(rf"({DAY_NUMBER})\.(0?[1-9]|1[0-2])")


@dataclass(frozen=True)
class ReadDate:
    value: str  # normal form
    needs: tuple[str, ...]  # keys of which a source must give one; () where the word may mean something else
    gives: tuple[str, ...]  # all keys that it gives as a source
    together: tuple[str, ...] = ()  # keys that support it if a source gives all: day and time of an instant
    apart: tuple[str, ...] = ()  # keys that the sources give between them: a day, and the year of a heading


def read_date(match: re.Match[str], language: str = "") -> list[ReadDate]:
    """
    Return what a match says whose last group is one of DATE_FORMS: one date, two of a range, none for a word
    that only looks like a weekday. Normal form: a date, a month "2026-01", a day of a year left open
    "--01-04", a month alone "--01", a weekday, a time of day, or an instant in UTC (also of no offset). A
    date that cannot be, or can be read in two ways ("01/04/2026" in English), stays as written and is
    supported by the same writing only. A time without "am" or "pm" may be meant in both halves of the day.
    """
    form = match.lastgroup
    written = match[0]
    if form in ("clock", "told_clock"):
        behind = match.string[match.end() : match.end() + 4]
        is_at_the = language != "en" and re.match(r" (?:[A-ZÄÖÜ]|\d\d?\.)", behind)
        return [_read_clock(written.removesuffix(" am") if is_at_the else written)]  # "9:15 am Bahnhof"
    if form == "clocks":
        return _read_clocks(match)
    if form == "iso" and len(written) > 10:
        return [_read_instant(written)]
    if form in ("iso", "compact", "year_first", "slashed", "day_month", "short"):
        return [_read_digits(written, form, day_first=language in ("de", "fr", "es"))]
    if form == "dotted":
        _, month, year = match["d5"].split(".")
        first = [f"{match['d4']}.{match['m4'] or month}.{year}"] if match["d4"] else []
        return [_read_digits(day, form) for day in (*first, match["d5"])]
    if form == "feast":
        return [ReadDate(written.lower(), (), ())]
    if form in ("weekday", "short_weekday"):
        return [] if language == "en" and written.lower() in _ROMANCE_DAYS else _read_weekday(match)
    if form == "month":
        number = _MONTH_PLACES[written.lower()]
        key = (f"month:{number}",)
        before = _BEFORE_MONTH["large" if written[0].isupper() else "small"]
        is_sure = written.lower() not in _calendar("unsure_months")
        start = match.start()
        is_claim = is_sure or before.search(match.string, max(0, start - 12), start)
        return [ReadDate(f"--{number:02d}", key if is_claim else (), key)]
    if form in ("iso_month", "digits_month"):
        year, month = sorted(re.split("[/-]", written), key=len, reverse=True)
        return [_month_of(year, int(month))]
    name = next(match[group] for group in ("m1", "m2", "m3") if match[group])
    number = _MONTH_PLACES[name.lower().rstrip(".")]
    if form == "month_year":
        return [_month_of(match["y3"], number)]
    days = [int(day) for day in (match["d0"], match["d1"], match["d2"], match["d3"]) if day]
    return [_day(match["y1"] or match["y2"], number, day, match["t1"] or match["t2"]) for day in days]


def _read_weekday(match: re.Match[str]) -> list[ReadDate]:
    """Return the weekday that a name stands for; [] where a short one is another word."""
    text = match.string
    start, end = match.span()
    small = match[0].lower()
    long_name = next((name for name in _LONG_DAYS if small.startswith(name)), "")
    place = _DAY_PLACES[long_name or small]
    key = f"weekday:{_WEEKDAYS[place - 1]}"
    other = _DAY_BEHIND.match(text, end)
    if other and not long_name and "," in other["joint"] and other["day"].lower() in _LONG_DAYS:
        other = None  # "So, Montag um 9" and "à la mer, dimanche" begin with other words
    is_sure = bool(long_name or small in ("tues", "thurs") or other or _TIME_BEHIND.match(text, end))
    is_sure = is_sure or _DAY_BEFORE.search(text, max(0, start - 24), start) is not None
    if not (is_sure or small in _ENGLISH_DAYS):
        return []
    gives = [key]
    if other and other["joint"].strip().partition(" ")[0] in _calendar("through"):
        last = _DAY_PLACES[other["day"].lower()]
        if not text.endswith("from ", 0, start):  # what is moved from Monday to Friday is not on Wednesday
            gives += [f"weekday:{_WEEKDAYS[day % 7]}" for day in range(place, last + 7 * (last < place))]
    dated = _DATE_BEHIND.match(text, end)
    day = read_date(dated)[0] if dated else None
    needs: tuple[str, ...] = (key,)
    apart: tuple[str, ...] = ()
    if day and day.apart:  # a weekday that its date does not have is in no source but one that says it
        apart = day.apart if key in day.gives else ()
        needs = (key, *day.needs) if apart else (f"{key}, {day.value}",)
    return [ReadDate(_WEEKDAYS[place - 1], needs if is_sure else (), (*gives, *needs), apart=apart)]


def find_days(text: str) -> list[str]:
    matches = (match for match in _DAYS.finditer(text) if match.lastgroup not in ("clocks", "clock"))
    return [read_date(match)[0].value for match in matches]


def day_of(text: str) -> datetime | None:
    """Return the first whole day that a file name or heading names, in UTC; None if there is none."""
    for day in find_days(text):
        with suppress(ValueError):
            return datetime.fromisoformat(day[: len("2026-01-04")]).replace(tzinfo=UTC)
    return None


def span_between(first: str, second: str, *, in_months: bool) -> Fraction | None:
    """
    Return the time between two values of ReadDate, in seconds or, with *in_months*, in months; None if their
    forms differ or, for months, their days. A day without a year is the next one after another that has one
    before it, or the last one before another behind it; two such days are of a year that has no 29 February.
    """
    texts = [re.sub("^--", "2001-", value) for value in _with_years(first, second)]
    if in_months:
        months = [re.fullmatch(r"(\d{4})-(\d\d)(-\d\d)?", text) for text in texts]
        if not months[0] or not months[1] or months[0][3] != months[1][3]:
            return None
        start, end = (int(month[1]) * 12 + int(month[2]) for month in months if month)
        return Fraction(abs(start - end))
    if any(re.fullmatch(r"\d\d:\d\d:\d\d", text) for text in texts):
        texts = [f"2001-01-01T{text}" for text in texts]
    with suppress(ValueError):
        times = sorted(map(datetime.fromisoformat, texts))
        return Fraction(int((times[1] - times[0]).total_seconds()))
    return None


def _with_years(first: str, second: str) -> tuple[str, str]:
    if first.startswith("--") and re.fullmatch(r"\d{4}-\d\d-\d\d", second):
        year = int(second[:4]) - (first[2:] > second[5:])
        return f"{year}-{first[2:]}", second
    if second.startswith("--") and re.fullmatch(r"\d{4}-\d\d-\d\d", first):
        year = int(first[:4]) + (second[2:] < first[5:])
        return first, f"{year}-{second[2:]}"
    return first, second


def age_between(first: str, second: str) -> int | None:
    """Return how many whole years it is between two days, as values of ReadDate; None if one is no day."""
    with suppress(ValueError):
        born, then = sorted(map(date.fromisoformat, (first, second)))
        return then.year - born.year - ((then.month, then.day) < (born.month, born.day))
    return None


def read_beside(text: str, start: int, end: int, language: str) -> ReadDate | None:
    """Return what a number may be by what stands beside it: "um 9", "Fr 8-12", "am 26.4.", "à 19 h"."""
    written = text[start:end].lstrip("-–")
    day = _BARE_DAY.fullmatch(written) if text.startswith(".", end) else None
    if day:
        return _day(None, int(day[2]), int(day[1]))
    time = _BARE_TIME.fullmatch(written)
    is_time = time and (
        _BEFORE_TIME.search(text, max(0, start - 24), start) or (time["h"] and language != "en")
    )
    return _read_clock(written.replace(".", ":")) if is_time else None


def _month_of(year: str, month: int) -> ReadDate:
    value = f"{year}-{month:02d}"
    return ReadDate(value, (f"date:{value}",), (f"date:{value}", f"month:{month}", f"number:{int(year)}"))


def _as_written(written: str) -> ReadDate:
    return ReadDate(written, (f"written:{written}",), (f"written:{written}",))


def _read_instant(written: str) -> ReadDate:
    try:
        local = datetime.fromisoformat(re.sub(r"[ ]?(?:UTC|GMT|Z)\Z", "+00:00", written))
        instant = (local if local.tzinfo else local.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError):
        return _as_written(written)
    value = instant.isoformat().replace("+00:00", "Z")
    time = local.time().isoformat(timespec="seconds")
    gives = (f"instant:{value}", *_day(written[:4], local.month, local.day).gives, f"time:{time}")
    return ReadDate(value, (f"instant:{value}",), gives)


def _read_digits(written: str, form: str, *, day_first: bool = False) -> ReadDate:
    parts = re.split(r"[./-]", written) if form != "compact" else [written[:4], written[4:6], written[6:]]
    first, second, third = [*parts, ""][:3]
    if len(first) == 4:
        year = first
        month = int(second)
        day = int(third)
    elif "." in written or int(first) > 12 or int(first) == int(second) or (day_first and int(second) <= 12):
        year = third
        month = int(second)
        day = int(first)
    elif int(second) > 12:
        year = third
        month = int(first)
        day = int(second)
    else:  # either may be the month
        return _as_written(f"{int(first)}/{int(second)}/{third}")
    if not (1 <= month <= 12 and 1 <= day <= (monthrange(int(first), month)[1] if form == "iso" else 31)):
        return _as_written(written)
    if len(year) == 2:
        century = "19" if year >= "70" else "20"
        year = f"{century}{year}"
    read = _day(year or None, month, day)
    also = (f"number:{written}",) if form == "compact" else ()  # it may be a number of eight digits
    return replace(read, needs=(*read.needs, *also), gives=(*read.gives, *also))


def _day(year: str | None, month: int, day: int, clock: str | None = None) -> ReadDate:
    open_year = f"--{month:02d}-{day:02d}"
    if year is None:
        key = f"date:{open_year}"
        return ReadDate(open_year, (key,), (key, f"month:{month}", f"open:{open_year}"))
    value = f"{year}{open_year[1:]}"
    gives = [*(f"date:{written}" for written in (value, value[:7], open_year)), f"month:{month}"]
    gives.append(f"number:{int(year)}")
    with suppress(ValueError):
        gives.append(f"weekday:{_WEEKDAYS[date(int(year), month, day).weekday()]}")
    apart = (f"open:{open_year}", f"heading:{year}")
    if clock is None:
        return ReadDate(value, (f"date:{value}",), tuple(gives), apart=apart)
    time = _read_clock(clock)
    instant = f"instant:{value}T{time.value}Z"
    both = (f"date:{value}", f"time:{time.value}")
    gives += [instant, *time.gives]
    return ReadDate(instant.partition(":")[2], (instant,), tuple(gives), both, (*apart, both[1]))


def _read_clocks(match: re.Match[str]) -> list[ReadDate]:
    """Return both ends of a range of times, of which the last one says what they are: "10-12 Uhr"."""
    mark = re.sub(r"\A[\d.:]+|\d", "", match["c1"])
    first = _read_clock(match["c0"] + mark)
    last = _read_clock(match["c1"])
    is_early = first.value > last.value and _half_of(match["c1"].lower()) == "pm"  # "10 to 2 pm"
    return [_read_clock(f"{match['c0']} am") if is_early else first, last]


def _told_time(small: str) -> tuple[int, int, int] | None:
    """Return hour, minute and second of a time in words, None of one in digits, as of "9 Uhr"."""
    hour = None if re.match(r"\d+ ?uhr", small) else re.search(rf"\b{_HOUR}\b", small)
    for form, minutes in _TOLD_MINUTES.items():
        if hour and re.match(rf"{form}(?!\w)", small):
            whole = 60 * (_HOURS.get(hour[0]) or int(hour[0])) + minutes
            return (whole // 60 - 1) % 12 + 1, whole % 60, 0
    return None


def _half_of(small: str) -> str | None:
    """Return "am" or "pm" as a time says it, None if it does not."""
    sign = re.search(r"(?<![a-z])([ap])\.? ?m", small)
    return f"{sign[1]}m" if sign else next((_HALVES[word] for word in _HALVES if small.endswith(word)), None)


def _read_clock(written: str) -> ReadDate:
    small = written.lower()
    is_noon = small in _calendar("noon")
    if is_noon or small in _calendar("midnight"):
        value = "12:00:00" if is_noon else "00:00:00"
        return ReadDate(value, (f"time:{value}",), (f"time:{value}",))
    spoken_time = _told_time(small)
    hour, minute, second = spoken_time or [*map(int, re.findall(r"\d+", small)), 0, 0][:3]
    half = _half_of(small)
    as_told = f"clock:{hour % 12}:{minute:02d}:{second:02d}"
    if hour > 12:  # "16:15 am Bahnhof" is German, where "am" is "at the"
        half = None
    hour = hour % 12 + (12 if half == "pm" else 0) if half else hour % 24
    value = f"{hour:02d}:{minute:02d}:{second:02d}"
    if half:
        return ReadDate(value, (f"time:{value}",), (f"time:{value}", as_told))
    open_half = 1 <= hour <= 12 and not small.startswith("0")
    parts = tuple(f"number:{int(part)}" for part in re.findall(r"\d+", small))  # "11:14" may be a score
    needs = [f"time:{value}", as_told] if open_half else [f"time:{value}"]
    if spoken_time:
        needs.append(f"time:{(hour + 12) % 24:02d}:{minute:02d}:00")
    return ReadDate(value, tuple(needs), (f"time:{value}", *parts))
