"""
Dates, times of day and periods: one table of the forms in which people write them, and what each says. Pure.

A text is scanned for the forms that stand for a day by themselves (DATES, TOLD_DATES). A message is read by a
small grammar over these forms and those that count from the present ("last week"): what stands beside a word
decides whether it is a time ("in May", not "May starts school"), and the tense of the verb that it belongs to
whether a date without a year is a past one.
"""

import re
from calendar import day_name, month_name, monthrange
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from difflib import get_close_matches
from fractions import Fraction
from functools import cache, partial

from panda.language.languages import NUMBERS, calendar_names
from panda.language.numbers import NUMBER_WORDS, number_from_words
from panda.language.patterns import lazy_pattern, one_of
from panda.language.text import MESSAGE_CHARS, plain_signs
from panda.language.words import FUNCTION_WORDS, is_ordinary, read_groups, read_words

_words = partial(read_words, "period_words.txt")
_calendar = partial(read_words, "calendar_words.txt")
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
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
_DAY = r"(?:0?[1-9]|[12]\d|3[01])"
_NTH = r"(?:st|nd|rd|th|er|ère|°|\.)"
_SMALL = r"(?:and|are|as|at|but|by|costs?|for|from|in|is|of|on|or|the|to|was|were|with)"
"""Words that end a range of days; any other may be what a number counts."""
_FEASTS = {
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
  | (?P<day_first>(?<![\d.,])(?:(?P<d0>{_DAY}){_NTH}?{JOINT})?
      (?P<d1>{_DAY}){_NTH}?[ -]?(?:[ ](?:of|de)[ ])?(?<=[ .\d-]){_month("m1", _MONTH_PLACES)}(?!\w)
      (?:(?:,?[ -]|[ ]del?[ ])(?P<y1>\d{{4}})(?!\d){_AT.format("t1")})?)
  | (?P<month_first>(?<!\w){_month("m2", _ENGLISH_MONTHS)}[ ](?:the[ ])?
      (?P<d2>{_DAY})(?:st|nd|rd|th)?(?!\w|:\d|[.,]\d)
      (?:{JOINT}(?P<d3>{_DAY})(?:st|nd|rd|th)?(?!\w|:\d|[.,]\d|[ ](?!{_SMALL}\b)[a-z]))?
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
  | (?P<feast>(?<!\w)(?i:{one_of([*_FEASTS, "easter"])})(?!\w))
"""
"""Times, months, weekdays and feasts in words alone, as a verbose pattern."""
SHORT_DATES = rf"(?P<short_weekday>(?<!\w){_OTHER_DAY}(?!\w))"
"""Short weekdays that may be other words or the currency of a price, as a verbose pattern."""

_UNITS = {word: unit for unit, words in read_groups("period_units.txt").items() for word in words.split()}
_UNIT = one_of(_UNITS)
_SEASONS = {"spring": 3, "summer": 6, "autumn": 9, "fall": 9, "winter": 12}
_PLACES = {"first": 1, "second": 2, "third": 3, "fourth": 4, "last": -1}
_PART_OF_DAY = rf"(?:{'|'.join(_words('parts_of_day'))})"
_FROM_TODAY = {
    "day before yesterday": 2, "yesterday": 1, "yday": 1, "last night": 1, "today": 0, "tonight": 0,
}  # fmt: skip
"""How many days ago."""
_COUNT = rf"(?:\d{{1,3}}|(?:a[ ])?couple(?:[ ]of)?|(?:a[ ])?few|several|{NUMBER_WORDS}|an?)"
_TOKEN = lazy_pattern(
    rf"""
    (?P<from_today>(?:the[ ])?(?:{"|".join(_FROM_TODAY).replace(" ", "[ ]")}|this[ ]{_PART_OF_DAY})(?!\w))
  | (?P<to_come>(?:tomorrow|now|in[ ]{_COUNT}[ ]{_UNIT}s?)(?!\w))
  | (?P<ago>(?<!\w)(?P<n1>{_COUNT})[ ](?P<u1>{_UNIT})s?[ ](?:ago|back)(?!\w))
  | (?P<offset>(?<!\w)(?P<n2>{_COUNT})[ ](?P<u2>{_UNIT})s?[ ](?P<way>before|after)(?!\w))
  | (?P<before_last>(?<!\w)(?:the[ ])?(?P<u3>{_UNIT})[ ]before[ ]last(?!\w))
  | (?P<part>(?<!\w)(?:the[ ])?(?:(?P<place>{"|".join(_PLACES)})[ ])?(?P<u4>day|week|weekend)[ ]of
      (?=[ ](?:the[ ])?(?:\d|{"|".join(_MONTHS)}|{"|".join(_SEASONS)}|christmas|last|this)))
  | (?P<recent>(?<!\w)(?:(?P<whose>the|these|my|our)[ ])?(?P<which>last|past|previous|this|current)[ ]
      (?:(?P<n5>{_COUNT})[ ])?(?P<u5>{_UNIT})(?P<s5>s?)(?!\w))
  | (?P<quarter>(?<!\w)(?:q(?P<q1>[1-4])|(?:the[ ])?(?P<q2>first|second|third|fourth)[ ]quarter)(?!\w))
  | (?P<season>(?<!\w)(?:{"|".join(_SEASONS)})(?!\w))
  | {DATES} | {TOLD_DATES}
  | (?P<short>(?<![\w.,:/$€£-])(?:\d\d?/\d\d?|\d\d?\.\d\d?\.(?:\d\d(?!\d))?)(?![\w/:%€$£]|[.,-]\d))
  | (?P<nth>(?<![\w.,:/$€£-])(?P<d6>{_DAY})(?:st|nd|rd|th)(?!\w))
  | (?P<year>(?<![\w.,:/$€£-])(?:19|20)\d\d(?![\w/:%€$£-]))
  | (?P<word>[^\W\d_]+?(?=n't\b)|n't|(?<=\w)'[^\W\d_]+|[^\W\d_]+) | (?P<number>\d+) | (?P<other>[^\w\s])
    """,
    re.VERBOSE | re.IGNORECASE,
)
"""A token of a message: a time as it is worded, a word, or a sign."""
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
_BARE_DAY = lazy_pattern(rf"({_DAY})\.(0?[1-9]|1[0-2])")


@dataclass(frozen=True)
class ReadDate:
    value: str  # normal form
    needs: tuple[str, ...]  # keys of which a source must give one; () where the word may mean something else
    gives: tuple[str, ...]  # all keys that it gives as a source
    together: tuple[str, ...] = ()  # keys that support it if a source gives all: day and time of an instant
    apart: tuple[str, ...] = ()  # keys that the sources give between them: a day, and the year of a heading


def read_date(match: re.Match[str], language: str = "") -> list[ReadDate]:
    """
    What a match says whose last group is one of DATE_FORMS: one reading, two of a range, none of a word that
    only looks like a weekday. Normal form: a date, a month "2026-01", a day of a year left open "--01-04", a
    month alone "--01", a weekday, a time of day, or an instant in UTC (also of no offset). A date that cannot
    be, or can be read in two ways ("01/04/2026" in English), stays as written and is supported by the same
    writing only. A time without "am" or "pm" may be meant in both halves of the day.
    """
    form, written = match.lastgroup, match[0]
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
    """The first whole day that a file name or heading names, in UTC; None if there is none."""
    for day in find_days(text):
        with suppress(ValueError):
            return datetime.fromisoformat(day[: len("2026-01-04")]).replace(tzinfo=UTC)
    return None


def span_between(first: str, second: str, *, in_months: bool) -> Fraction | None:
    """
    How long it is between two values of ReadDate, in seconds or in months, whose days have to be the same;
    None if they are of two forms. A day without a year is the next one after another that has one before it,
    or the last one before another behind it; two such days are of a year that has no 29 February.
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
    value, time = instant.isoformat().replace("+00:00", "Z"), local.time().isoformat(timespec="seconds")
    gives = (f"instant:{value}", *_day(written[:4], local.month, local.day).gives, f"time:{time}")
    return ReadDate(value, (f"instant:{value}",), gives)


def _read_digits(written: str, form: str, *, day_first: bool = False) -> ReadDate:
    parts = re.split(r"[./-]", written) if form != "compact" else [written[:4], written[4:6], written[6:]]
    first, second, third = [*parts, ""][:3]
    if len(first) == 4:
        year, month, day = first, int(second), int(third)
    elif "." in written or int(first) > 12 or int(first) == int(second) or (day_first and int(second) <= 12):
        year, month, day = third, int(second), int(first)
    elif int(second) > 12:
        year, month, day = third, int(first), int(second)
    else:  # either may be the month
        return _as_written(f"{int(first)}/{int(second)}/{third}")
    if not (1 <= month <= 12 and 1 <= day <= (monthrange(int(first), month)[1] if form == "iso" else 31)):
        return _as_written(written)
    century = ("19" if year >= "70" else "20") if len(year) == 2 else ""
    read = _day(f"{century}{year}" or None, month, day)
    also = (f"number:{written}",) if form == "compact" else ()  # it may be a number of eight digits
    return replace(read, needs=(*read.needs, *also), gives=(*read.gives, *also))


def _day(year: str | None, month: int, day: int, clock: str | None = None) -> ReadDate:
    open_year = f"--{month:02d}-{day:02d}"
    if year is None:
        key = f"date:{open_year}"
        return ReadDate(open_year, (key,), (key, f"month:{month}", f"open:{open_year}"))
    value = f"{year}{open_year[1:]}"
    gives = [*(f"date:{one}" for one in (value, value[:7], open_year)), f"month:{month}"]
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
    told = _told_time(small)
    hour, minute, second = told or [*map(int, re.findall(r"\d+", small)), 0, 0][:3]
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
    if told:
        needs.append(f"time:{(hour + 12) % 24:02d}:{minute:02d}:00")
    return ReadDate(value, tuple(needs), (f"time:{value}", *parts))


_Days = tuple[date, date]
_ADVERB, _TO, _COMING, _BORDERS = _words("adverb"), _words("to"), _words("coming"), frozenset(",;.?!:")
_PAST_WORDS, _FUTURE = read_words("irregular_pasts.txt"), _words("future")
_MOST_TOKENS = 40  # of one time
_MONTHS_OF = {"month": 1, "quarter": 3, "year": 12}
_DAY_FORMS = frozenset((*DATE_FORMS[: DATE_FORMS.index("month_year")], "short", "nth"))
_NAMED_FORMS = _DAY_FORMS | {"month", "weekday", "feast", "season"}
_PROPER = (*(name[:3] for name in _WEEKDAYS), *_SEASONS)
_QUOTED = lazy_pattern(r"\"[^\"]*\"|(?<!\w)'[^']*'(?!\w)|`[^`]*`")


@dataclass(frozen=True)
class Period:
    start: date  # first day of it
    end: date  # last day of it
    words: tuple[int, int]  # where it stands in the message: first character, and the one after the last
    relative: bool  # whether its words say nothing without the present, as in "last week"


@dataclass(frozen=True)
class _When:
    find: Callable[[date], _Days | None]  # its latest days that begin on or before a day
    past: bool = False  # whether its words alone say that it is past
    relative: bool = False  # see Period
    beside: str = ""
    """What has to stand before it: "" nothing, "time" a word of time, "name" one that no name follows."""
    year: bool = False  # whether it names its year


_At = tuple[_When, int]
_NEVER = _When(lambda _: None)


@dataclass(frozen=True)
class _Token:
    text: str  # in small letters
    start: int
    end: int
    form: str  # its group of _TOKEN
    match: re.Match[str]


def find_periods(message: str, now: datetime) -> list[Period]:
    """
    The past times that a message names, in its order. Weeks begin on Monday. A date without its year is the
    latest one that is not in the future, if the message speaks of the past there; times to come, times that
    recur, what can be read in two ways ("11/12/2025"), titles and quotations are none.
    """
    return _Message(plain_signs(message[:MESSAGE_CHARS]), now.date()).periods()


class _Message:
    """A message's tokens; each method reads one part at a token and tells where it ends."""

    def __init__(self, text: str, today: date) -> None:
        self._text, self._today = text, today
        self._tokens = [_token(match) for match in _TOKEN.finditer(text)]
        self._quoted = [match.span() for match in _QUOTED.finditer(text)]
        self._tenses = self._find_tenses()
        self._reach = 0  # the last token at which a part may begin

    def periods(self) -> list[Period]:
        found: list[Period] = []
        at = 0
        while at < len(self._tokens):
            self._reach = at + _MOST_TOKENS
            read = self._span(at)
            days = self._resolve(*read, at) if read else None
            if read and days:
                words = self._tokens[at].start, self._tokens[read[1] - 1].end
                found.append(Period(*days, words, read[0].relative))
            at = read[1] if read else at + 1
        return found

    def _word(self, at: int) -> str:
        return self._tokens[at].text if 0 <= at < len(self._tokens) else ""

    def _form(self, at: int) -> str:
        return self._tokens[at].form if 0 <= at < len(self._tokens) else ""

    # what a message names

    def _span(self, at: int) -> _At | None:
        word, read = self._word(at), self._point(at + 1)
        if read and word in ("since", "after"):
            return replace(read[0], find=partial(self._open, read[0], word), past=True, beside=""), read[1]
        if read and word in _words("open"):
            right = self._point(read[1] + 1) if self._word(read[1]) in ("and", "or", *_TO) else None
            return _NEVER, (right or read)[1]
        if read and word in ("from", "between") and (range_ := self._range(*read, between=word == "between")):
            return range_
        left = self._point(at)
        return (self._range(*left, between=False) or left) if left else None

    def _open(self, when: _When, word: str, until: date) -> _Days | None:
        days = when.find(until)
        if days is None or (word == "after" and days[1] == date.max):
            return None
        return days[1] + timedelta(1) if word == "after" else days[0], self._today

    def _range(self, first: _When, end: int, *, between: bool) -> _At | None:
        joins = self._word(end) in _TO or (between and self._word(end) == "and")
        right = self._point(end + 1) if joins else None
        if right is None:
            return None
        last = right[0]

        def find(until: date) -> _Days | None:
            ends = last.find(until)
            begins = first.find(ends[0]) if ends else None
            return (begins[0], ends[1]) if begins and ends else None

        return replace(last, find=find, relative=first.relative and last.relative, beside=""), right[1]

    def _point(self, at: int) -> _At | None:
        if at > self._reach:
            return None
        at += self._word(at) == "the" and self._form(at + 1) in _DAY_FORMS
        read = self._coming(at) or self._time(at)
        return self._within(*read) if read else None

    def _within(self, when: _When, end: int) -> _At:
        """A time with the longer one that it lies in, "last year", if that follows."""
        if when.year or (when.past and not when.relative):
            return when, end
        at = end + (self._word(end) in ("of", "in", ",", "'s"))
        is_outer = self._form(at) == "year" or (self._form(at) == "recent" and not when.past)
        outer = self._time(at) if is_outer else self._coming(at)
        if outer is None:
            return when, end
        whole, end = outer

        def find(until: date) -> _Days | None:
            days = whole.find(until)
            inner = when.find(days[1]) if days else None
            return inner if days and inner and inner[0] >= days[0] else None

        return replace(whole, find=find, relative=when.relative and whole.relative, beside="", year=True), end

    def _coming(self, at: int) -> _At | None:
        """ "next May", "every Monday": none, with what it is said of."""
        if self._word(at) not in _COMING:
            return None
        read = (_NEVER, at + 2) if self._word(at + 1).removesuffix("s") in _UNITS else self._point(at + 1)
        return (_NEVER, read[1]) if read else None

    def _time(self, at: int) -> _At | None:
        if at >= len(self._tokens):
            return None
        token, today = self._tokens[at], self._today
        match, form, text, end = token.match, token.form, token.text, at + 1
        if form == "word":
            return self._named(at, text) if text in _words("last") or text in ("this", "current") else None
        if form == "to_come":
            return _NEVER, end
        if form == "from_today":
            day = today - timedelta(_FROM_TODAY.get(text.removeprefix("the "), 0))
            return _When(lambda _: (day, day), past=day < today, relative=True), end
        if form == "ago":
            count, unit = _count_of(match["n1"]), _UNITS[match["u1"].lower()]
            back = _shift(today, -count, unit)
            days = (_unit_of(back, unit) if unit in _MONTHS_OF else (back, back)) if back else None
            return _When(lambda _: days, past=True, relative=True), end
        if form == "before_last":
            return self._whole(_UNITS[match["u3"].lower()], 2), end
        if form == "recent":
            return self._recent(match, end)
        if form in ("part", "offset"):
            point = self._point(end)
            if point is None:
                return None
            inside = partial(_part_of if form == "part" else _offset_of, match, point[0])
            return replace(point[0], find=inside, beside=""), point[1]
        if form == "quarter":
            return _yearly(3 * int(match["q1"] or _PLACES[match["q2"].lower()]) - 2, 1, 3), end
        if form == "season":
            return _yearly(_SEASONS[text], 1, 3, beside="time"), end
        if form == "year":
            year = date(int(text), 1, 1), date(int(text), 12, 31)
            return _When(lambda _: year, past=year[0] <= today, beside="year", year=True), end
        if form == "nth":
            return (_monthly(int(match["d6"])), end) if self._word(at - 1) == "the" else None
        if form == "feast":
            month, day_, days_ = _FEASTS.get(text, (0, 0, 0))
            return (_yearly(month, day_, 0, day_ + days_ - 1), end) if month else None
        if form == "weekday":
            return self._weekday(text, end)
        if form in DATE_FORMS or form == "short":
            when = _when_of(match, form)
            return (when, end) if when else None
        return None

    def _whole(self, unit: str, back: int) -> _When:
        day = _shift(self._today, -back, unit)
        days = _unit_of(day, unit) if day else None
        return _When(lambda _: days, past=back > 0, relative=True)

    def _recent(self, match: re.Match[str], end: int) -> _At | None:
        """ "last week", "the past three months", "this year"."""
        unit, which, count = _UNITS[match["u5"].lower()], match["which"].lower(), match["n5"]
        is_last = which in _words("last")
        if unit == "hour" or (match["s5"] and not count):
            return None
        of_ours = match["whose"] and which == "last" and unit != "weekend"
        if is_last and (count or which == "past" or of_ours):
            first = _shift(self._today, -_count_of(count or "a"), unit)
            days = (first, self._today - timedelta(1)) if first else None
            return _When(lambda _: days, past=True, relative=True), end
        return (self._whole(unit, int(is_last)), end) if unit != "day" and not count else None

    def _named(self, at: int, which: str) -> _At | None:
        """ "last May", "this summer"."""
        read = self._time(at + 1) if self._form(at + 1) in _NAMED_FORMS else None
        if read is None or read[0].year:
            return None
        when, end = read
        is_last = which in _words("last")
        until = self._today if is_last else None
        if until and (days := when.find(until)) and days[0] <= until <= days[1]:  # "last autumn" in autumn
            until = days[0] - timedelta(1)
        return replace(when, find=lambda day: when.find(until or day), past=is_last, beside=""), end

    def _weekday(self, text: str, end: int) -> _At | None:
        number = next(place - 1 for name, place in _DAY_PLACES.items() if text.startswith(name))
        if text.endswith("days"):
            return None
        then = end + (self._word(end) == ",")
        then += self._word(then) == "the"
        dated = self._time(then) if self._form(then) in _DAY_FORMS else None
        if dated:
            return dated

        def find(until: date) -> _Days:
            until -= timedelta(until == self._today)
            day = until - timedelta((until.weekday() - number) % 7)
            return day, day

        return _When(find, relative=True, beside="day" if text.endswith("day") else "short"), end

    # which of them are meant

    def _resolve(self, when: _When, end: int, at: int) -> _Days | None:
        first, last = self._tokens[at].start, self._tokens[end - 1].end
        before = self._word(at - 1)
        is_property = not _words("property").isdisjoint((before, self._word(at - 2)))
        quoted = any(begin <= first and last <= close for begin, close in self._quoted)
        days = when.find(self._today)
        named = quoted or (when.relative and self._is_title(at, first, last))
        if days is None or days[0] > self._today or named or is_property:
            return None
        if not self._is_time(when, at, end, before):
            return None
        tense = "past" if when.past else self._tense(at, end)
        if tense == "past":
            return days
        if before in _words("of_noun") or self._word(at) in _words("of_noun"):
            return days if tense != "future" else None
        if tense is not None or self._plans():
            return None
        return days if when.relative or (before in _ADVERB and days[0] != days[1]) else None

    def _is_time(self, when: _When, at: int, end: int, before: str) -> bool:
        if when.beside == "year":
            return before in ("in", "of", "during", "since", "from", "throughout", "to", "back")
        if when.beside == "day":
            return before not in _words("kind")
        if when.beside == "short":
            return before in _words("short_beside")
        if before in ("a", "an"):
            return False
        if not when.beside:
            return True
        if self._word(at) == "the" or before in _ADVERB | _words("parts") | {"early", "late", "mid", "-"}:
            follows = self._text[self._tokens[end].start :][:3] if end < len(self._tokens) else ""
            named = follows.startswith("'s") or (follows[:1].isupper() and follows[1:2].islower())
            return when.beside != "name" or not named
        joined = before in ("from", "of", "for", "and", "or", "to")
        if when.beside == "name":
            return before in ("my", "our", "your") or (joined and self._tense(at, end) is None)
        return joined or before in _words("own") | _words("of_noun")

    def _is_title(self, at: int, start: int, end: int) -> bool:
        written = re.findall(r"[^\W\d_]+", self._text[start:end])
        words = [word for word in written if not word.lower().startswith((*_MONTHS, *_PROPER))]
        if not words or self._text.isupper() or any(word[0].islower() for word in words):
            return False
        if at == 0 or self._word(at - 1) in (".", "?", "!"):
            return len(written) > 1 and len(words) == len(written)
        return True

    def _find_tenses(self) -> dict[int, str]:
        found: dict[int, str] = {}
        did = -9
        for at, token in enumerate(self._tokens):
            word, before = token.text, self._word(at - 1)
            if word in ("did", "was", "were", "had"):
                found[at] = "past"
                did = at if word == "did" else did
            elif is_past_form(word) and before not in ("be", "is", "are", "get", "gets"):
                found[at] = "past"
            elif word in _FUTURE | _words("present") and at - did > 4 and before != "to":
                found[at] = "future" if word in _FUTURE else "present"
        return found

    def _tense(self, at: int, end: int) -> str | None:
        for places in (range(at - 1, -1, -1), range(end, len(self._tokens))):
            for place in places:
                if self._word(place) in _BORDERS:
                    break
                if place in self._tenses:
                    return self._tenses[place]
        near = sorted(self._tenses, key=lambda place: min(abs(place - at), abs(place - end)))
        if not near and self._word(0) in _words("questions"):  # a question that has no verb in the past
            return "present"
        return self._tenses[near[0]] if near else None

    def _plans(self) -> bool:
        first = int(self._word(0) == "please")
        word = self._word(first)
        return word not in _words("lookups") | FUNCTION_WORDS and self._word(first + 1) in _words("object")


def _token(match: re.Match[str]) -> _Token:
    small, form = match[0].lower(), match.lastgroup or ""
    if form == "word" and (spelt := _spelt(small)) != small:
        again = _TOKEN.fullmatch(spelt)
        assert again is not None
        return _Token(spelt, *match.span(), again.lastgroup or "", again)
    return _Token(small, *match.span(), form, match)


@cache
def _spelt(word: str) -> str:
    names = (*_WEEKDAYS, *(name.lower() for name in month_name if len(name) > 5), "yesterday")
    if len(word) < 6 or is_ordinary(word):
        return word
    near = get_close_matches(word, names, 1, 0.84)
    return near[0] if near and not word.endswith("s") else word


def _count_of(written: str) -> int:
    small = written.lower()
    if small.isdecimal():
        return int(small)
    if "couple" in small or "few" in small or small == "several":
        return 2 if "couple" in small else 3
    return 1 if small in ("a", "an") else number_from_words(small)[0]


def _when_of(match: re.Match[str], form: str) -> _When | None:
    reads = read_date(match)
    first, last = reads[0].value, reads[-1].value
    if open_year := re.fullmatch(r"--(\d\d)(?:-(\d\d))?", first):
        month, day = int(open_year[1]), open_year[2]
        if day:
            return _yearly(month, int(day), 0, int(last[-2:]), beside="time" if "/" in match[0] else "")
        written = match[0].lower().rstrip(".")
        return _yearly(
            month, 1, 1, beside="name" if written in _words("names_too") else "time" * (len(written) < 5)
        )
    if not re.match(r"\d{4}-\d\d(?:-\d\d)?(?!\d)", first):
        return None
    with suppress(ValueError):
        start, end = (date.fromisoformat(f"{value}-01"[:10]) for value in (first, last))
        days = (start, end) if len(first) > len("2026-01") else _unit_of(start, "month")
        return _When(lambda _: days, past=True, year=True)
    return None


def _monthly(day: int) -> _When:
    def find(until: date) -> _Days | None:
        for back in range(3):
            with suppress(ValueError):  # no such day in that month
                nth = (_shift(until.replace(day=1), -back, "month") or until).replace(day=day)
                if nth <= until:
                    return nth, nth
        return None

    return _When(find, relative=True, beside="time")


def _yearly(month: int, day: int, months: int, last: int = 0, beside: str = "") -> _When:
    """What comes once a year: so many months from a day on, or the days up to another of that month."""

    def find(until: date) -> _Days | None:
        for year in range(until.year, until.year - 9, -1):
            with suppress(ValueError):  # no such day in that year
                start = date(year, month, day)
                after = _shift(start, months, "month") if months else None
                end = after - timedelta(1) if after else date(year, month, last)
                if start <= until:
                    return start, end
        return None

    return _When(find, beside=beside)


def _part_of(match: re.Match[str], when: _When, until: date) -> _Days | None:
    """ "the week of 3 November", "the first week of May"."""
    days = when.find(until)
    place, unit = _PLACES.get((match["place"] or "").lower(), 0), match["u4"].lower()
    if days is None or place == 0:
        return _unit_of(days[0], unit) if days else None
    length = timedelta(0 if unit == "day" else 6)
    first = days[0] + (length + timedelta(1)) * (place - 1) if place > 0 else days[1] - length
    return first, first + length


def _offset_of(match: re.Match[str], when: _When, until: date) -> _Days | None:
    """ "two days before Christmas"."""
    days, count = when.find(until), _count_of(match["n2"])
    unit = _UNITS[match["u2"].lower()]
    day = _shift(days[0], -count if match["way"].lower() == "before" else count, unit) if days else None
    return (day, day) if day else None


def _unit_of(day: date, unit: str) -> _Days:
    if unit in ("week", "weekend", "fortnight"):
        monday = day - timedelta(day.weekday())
        return monday + timedelta(5 if unit == "weekend" else 0), monday + timedelta(6)
    months = _MONTHS_OF.get(unit)
    if months is None:
        return day, day
    first = date(day.year, (day.month - 1) // months * months + 1, 1)
    return first, (_shift(first, months, "month") or first) - timedelta(1)


def _shift(day: date, count: int, unit: str) -> date | None:
    """A day so many units later; of a shorter month its last day. None outside of all years."""
    try:
        if unit not in _MONTHS_OF:
            days = {"week": 7, "weekend": 7, "fortnight": 14, "hour": 0}.get(unit, 1)
            return day + timedelta(count * days)
        at = day.year * 12 + day.month - 1 + count * _MONTHS_OF[unit]
        year, month = at // 12, at % 12 + 1
        return date(year, month, min(day.day, monthrange(year, month)[1]))
    except (ValueError, OverflowError):
        return None


def is_past_form(word: str) -> bool:
    return word in _PAST_WORDS or (len(word) > 4 and word.endswith("ed") and word not in _words("no_past"))
