"""
Dates, times of day and periods: one table of the forms in which people write them, and what each says. Pure.

A text is scanned for the forms that stand for a day by themselves (DATES, TOLD_DATES). A message is read by a
small grammar over these forms and those that count from the present ("last week"): what stands beside a word
decides whether it is a time ("in May", not "May starts school"), and the tense of the verb that it belongs to
whether a date without a year is a past one.
"""

import re
from calendar import day_name, month_name, monthrange
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from difflib import get_close_matches
from fractions import Fraction
from functools import cache, partial

from panda.language.numbers import NUMBER_WORDS, number_from_words
from panda.language.patterns import lazy_pattern, one_of
from panda.language.text import MESSAGE_CHARS, plain_signs
from panda.language.words import FUNCTION_WORDS, is_ordinary, read_groups, read_words

_words = partial(read_words, "period_words.txt")
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_WEEKDAYS = tuple(name.lower() for name in day_name)
_LONG_MONTHS = "january february april june july august september october november december".split()  # noqa: SIM905
_LONG_MONTH = rf"(?i:{one_of(_LONG_MONTHS)})"
_MONTH = (
    rf"(?P<{{0}}>{_LONG_MONTH}|M(?i:arch|ay\b\.?)"
    r"|(?:Jan|Feb|Mar|Apr|Jun|Jul|Aug|Sept?|Oct|Nov|Dec|JAN|FEB|MAR|APR|MAY|JUN|JUL|AUG|SEP|OCT|NOV|DEC)\b\.?)"
)  # "may" and "march" are also verbs
_SHORT_DAY = r"(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)"
_HALF_DAY = r"(?:[AaPp]\.[ ]?[Mm]\.|[AaPp][Mm]\b)"
_CLOCK = (
    rf"(?:24:00(?!:)|(?:[01]?\d|2[0-3]):[0-5]\d(?::[0-5]\d)?)(?!\d)(?:[ ]?{_HALF_DAY})?"
    rf"|(?:0?[1-9]|1[0-2])(?:\.[0-5]\d)?[ ]?{_HALF_DAY}"
)
_HOURS = tuple("twelve one two three four five six seven eight nine ten eleven".split())  # noqa: SIM905
_HOUR = rf"(?:{one_of(_HOURS)}|1[0-2]|[1-9])"
_TOLD_CLOCK = (
    rf"(?i:(?:half[ -]past|quarter[ -](?:past|to))[ ]{_HOUR}|{_HOUR}[ ]o'clock)(?:[ ]?{_HALF_DAY})?(?!\w)"
    r"|(?i:noon|midday|midnight)\b"
)
_AT = rf"(?:,?[ ](?:at[ ])?(?P<{{0}}>{_CLOCK})(?:[ ](?:UTC|GMT)\b)?)?"
_DAY = r"(?:0?[1-9]|[12]\d|3[01])"
_SMALL = r"(?:and|are|as|at|but|by|costs?|for|from|in|is|of|on|or|the|to|was|were|with)"
"""Words that end a range of days; any other may be what a number counts."""
_RANGE = r"(?:[ ]?[-–][ ]?|[ ](?:to|and|until|or)[ ])"
_FEASTS = {
    "christmas eve": (12, 24, 1), "christmas day": (12, 25, 1), "christmas": (12, 24, 3), "xmas": (12, 24, 3),
    "boxing day": (12, 26, 1), "new year's eve": (12, 31, 1), "new year's day": (1, 1, 1),
    "halloween": (10, 31, 1), "valentine's day": (2, 14, 1),
}  # fmt: skip
"""Feasts of fixed dates: month, day, and how many days."""

DATE_FORMS = tuple(
    """
    iso iso_month digits_month year_first compact slashed dotted day_first month_first month_year clock
    told_clock month weekday feast
    """.split()  # noqa: SIM905
)
"""Names of the groups of DATES and TOLD_DATES, one a written form."""
DATES = rf"""
    (?P<iso>(?<!\d)\d{{4}}-\d\d-\d\d(?!\d)
      (?:[T ]\d\d:\d\d(?!\d)(?::\d\d(?:\.\d+)?)?(?:[ ]?(?:Z|UTC|GMT)\b|[+-]\d\d:?\d\d)?)?)
  | (?P<iso_month>(?<![\d-])\d{{4}}-(?:0[1-9]|1[0-2])(?![\d-]))
  | (?P<digits_month>(?<![\d/.,-])(?:0[1-9]|1[0-2])/(?:19|20)\d\d(?![\d/-]|[.,]\d))
  | (?P<year_first>(?<!\d)\d{{4}}/\d\d?/\d\d?(?![\d/]))
  | (?P<compact>(?<![\w.,/:#$€£+-])(?:19|20)\d\d(?:0[1-9]|1[0-2])(?:0[1-9]|[12]\d|3[01])(?![\w/-]|[.,]\d))
  | (?P<slashed>(?<![\d/.,-])\d\d?(?P<mark>[/-])\d\d?(?P=mark)(?:\d{{4}}|(?<=/)\d\d)(?![\d/-]|[.,]\d))
  | (?P<dotted>(?<![\d.])\d\d?\.\d\d?\.\d{{4}}(?!\d|\.\d))
  | (?P<day_first>(?<![\d.,])(?:(?P<d0>{_DAY})(?:st|nd|rd|th|\.)?{_RANGE})?
      (?P<d1>{_DAY})(?:st|nd|rd|th|\.)?[ -]?(?:[ ]of[ ])?(?<=[ .\d-]){_MONTH.format("m1")}(?!\w)
      (?:,?[ -](?P<y1>\d{{4}})(?!\d){_AT.format("t1")})?)
  | (?P<month_first>(?<!\w){_MONTH.format("m2")}[ ](?:the[ ])?(?P<d2>{_DAY})(?:st|nd|rd|th)?(?!\w|:\d|[.,]\d)
      (?:{_RANGE}(?P<d3>{_DAY})(?:st|nd|rd|th)?(?!\w|:\d|[.,]\d|[ ](?!{_SMALL}\b)[a-z]))?
      (?:,?[ ](?P<y2>\d{{4}})(?!\d){_AT.format("t2")})?)
  | (?P<month_year>(?<!\w){_MONTH.format("m3")},?[ ](?:of[ ])?(?P<y3>\d{{4}})(?!\d))
  | (?P<clock>(?<![\d:.,])(?:{_CLOCK}))
"""
"""Every written form of a date or time with a digit, as a verbose pattern."""
TOLD_DATES = rf"""
    (?P<told_clock>(?<!\w)(?:{_TOLD_CLOCK}))
  | (?P<month>(?<![\w-])(?:{_LONG_MONTH}|March|May|Jan|Feb|Mar|Apr|Jun|Jul|Aug|Sept?|Oct|Nov|Dec)(?![\w-]))
  | (?P<weekday>(?:(?<![\w-])|(?<=day-)|(?<={_SHORT_DAY}-))
      (?:(?i:{one_of(_WEEKDAYS)})s?|Mon|Tues?|Wed|Thu(?:rs?)?|Fri|Sat|Sun)(?!\w|-(?!{_SHORT_DAY})))
  | (?P<feast>(?<!\w)(?i:{one_of([*_FEASTS, "easter"])})(?!\w))
"""
"""Times, months, weekdays and feasts in words alone, as a verbose pattern."""

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
  | (?P<nth>(?<![\w.,:/$€£-])(?P<d5>{_DAY})(?:st|nd|rd|th)(?!\w))
  | (?P<year>(?<![\w.,:/$€£-])(?:19|20)\d\d(?![\w/:%€$£-]))
  | (?P<word>[^\W\d_]+?(?=n't\b)|n't|(?<=\w)'[^\W\d_]+|[^\W\d_]+) | (?P<number>\d+) | (?P<other>[^\w\s])
    """,
    re.VERBOSE | re.IGNORECASE,
)
"""A token of a message: a time as it is worded, a word, or a sign."""
_DAYS = lazy_pattern(DATES, re.VERBOSE)
_BEFORE_TIME = lazy_pattern(
    r"\b(?:at|by|from|between|before|after|since|until|till|um|ab|von|bis)[ ]"
    r"(?:[\d.:]{4,5}(?:[ ]?[-–][ ]?|[ ](?:to|and|until|or|bis|und)[ ]))?\Z",
    re.IGNORECASE,
)
_BEFORE_MONTH = lazy_pattern(
    r"\b(?:in|of|since|until|till|by|from|to|early|late|mid|this|last|next|every|through|during|between|before|after|and|or)"
    r"[ -]\Z",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class ReadDate:
    value: str  # normal form
    needs: tuple[str, ...]  # keys of which a source must give one; () where the word may mean something else
    gives: tuple[str, ...]  # all keys that it gives as a source
    together: tuple[str, ...] = ()  # keys that support it if a source gives all: day and time of an instant


def read_date(match: re.Match[str]) -> list[ReadDate]:
    """
    What a match says whose last group is one of DATE_FORMS: one reading, two of a range of days. Normal form:
    a date, a month "2026-01", a day of a year left open "--01-04", a month alone "--01", a weekday, a time of
    day, or an instant in UTC (also of no offset). A date that cannot be, or can be read in two ways
    ("01/04/2026"), stays as written and is supported by the same writing only. A time without "am" or "pm"
    may be meant in both halves of the day.
    """
    form, written = match.lastgroup, match[0]
    if form in ("clock", "told_clock"):
        return [_read_clock(written)]
    if form == "iso" and len(written) > 10:
        return [_read_instant(written)]
    if form in ("iso", "compact", "year_first", "slashed", "dotted", "short"):
        return [_read_digits(written, form)]
    if form == "feast":
        return [ReadDate(written.lower(), (), ())]
    if form == "weekday":
        name = next(name for name in _WEEKDAYS if name.startswith(written[:3].lower()))
        key = (f"weekday:{name}",)
        return [ReadDate(name, key if re.fullmatch(r"(?i:[a-z]+days?)|Tues|Thurs?", written) else (), key)]
    if form == "month":
        number = 1 + _MONTHS.index(written[:3].lower())
        before = match.string[max(0, match.start() - 12) : match.start()]
        is_sure = re.fullmatch(rf"{_LONG_MONTH}|Sept|Oct|Nov|Dec|Feb|Aug", written) is not None
        key = (f"month:{number}",)
        return [ReadDate(f"--{number:02d}", key if is_sure or _BEFORE_MONTH.search(before) else (), key)]
    if form in ("iso_month", "digits_month"):
        year, month = sorted(re.split("[/-]", written), key=len, reverse=True)
        return [_month(year, int(month))]
    number = 1 + _MONTHS.index(next(match[m] for m in ("m1", "m2", "m3") if match[m])[:3].lower())
    if form == "month_year":
        return [_month(match["y3"], number)]
    days = [int(day) for day in (match["d0"], match["d1"], match["d2"], match["d3"]) if day]
    return [_day(match["y1"] or match["y2"], number, day, match["t1"] or match["t2"]) for day in days]


def find_days(text: str) -> list[str]:
    return [read_date(match)[0].value for match in _DAYS.finditer(text) if match.lastgroup != "clock"]


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


def dot_time(text: str, start: int, end: int) -> ReadDate | None:
    is_time = re.fullmatch(r"(?:[01]?\d|2[0-3])\.[0-5]\d", text[start:end]) is not None
    if not is_time or not _BEFORE_TIME.search(text, max(0, start - 24), start):
        return None
    return _read_clock(text[start:end].replace(".", ":"))


def _month(year: str, month: int) -> ReadDate:
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


def _read_digits(written: str, form: str) -> ReadDate:
    parts = re.split(r"[./-]", written) if form != "compact" else [written[:4], written[4:6], written[6:]]
    first, second, third = [*parts, ""][:3]
    if len(first) == 4:
        year, month, day = first, int(second), int(third)
    elif "." in written or int(first) > 12 or int(first) == int(second):
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
        return ReadDate(open_year, (f"date:{open_year}",), (f"date:{open_year}", f"month:{month}"))
    value = f"{year}{open_year[1:]}"
    gives = [*(f"date:{one}" for one in (value, value[:7], open_year)), f"month:{month}"]
    gives.append(f"number:{int(year)}")
    with suppress(ValueError):
        gives.append(f"weekday:{_WEEKDAYS[date(int(year), month, day).weekday()]}")
    if clock is None:
        return ReadDate(value, (f"date:{value}",), tuple(gives))
    time = _read_clock(clock)
    instant = f"instant:{value}T{time.value}Z"
    both = (f"date:{value}", f"time:{time.value}")
    return ReadDate(instant.partition(":")[2], (instant,), (*gives, instant, *time.gives), both)


def _read_clock(written: str) -> ReadDate:
    small = {"noon": "12 pm", "midday": "12 pm", "midnight": "12 am"}.get(written.lower(), written.lower())
    told = re.match(rf"(?:(half|quarter)[ -](past|to) )?({_HOUR})(?: o'clock)?(?!\w|[:.])", small)
    if told:
        hour = _HOURS.index(told[3]) if told[3] in _HOURS else int(told[3])
        before = {"half": 30, "quarter": 45 if told[2] == "to" else 15}.get(told[1] or "", 0)
        hour, minute, second = (hour - (told[2] == "to") - 1) % 12 + 1, before, 0
    else:
        hour, minute, second = [*(int(part) for part in re.findall(r"\d+", small)), 0, 0][:3]
    half = re.search(r"(?<![a-z])([ap])\.? ?m", small)
    as_told = f"clock:{hour % 12}:{minute:02d}:{second:02d}"
    if hour > 12:  # "16:15 am Bahnhof" is German, where "am" is "at the"
        half = None
    hour = hour % 12 + (12 if half[1] == "p" else 0) if half else hour % 24
    value = f"{hour:02d}:{minute:02d}:{second:02d}"
    if small != written.lower():
        return ReadDate(value, (f"time:{value}",), (f"time:{value}",))
    if half:
        return ReadDate(value, (f"time:{value}",), (f"time:{value}", as_told))
    open_half = 1 <= hour <= 12 and not small.startswith("0")
    parts = tuple(f"number:{int(part)}" for part in re.findall(r"\d+", small))  # "11:14" may be a score
    needs = (f"time:{value}", as_told) if open_half else (f"time:{value}",)
    return ReadDate(value, needs, (f"time:{value}", *parts))


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
            return (_monthly(int(match["d5"])), end) if self._word(at - 1) == "the" else None
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
        number = next((n for n, name in enumerate(_WEEKDAYS) if name[:3] == text[:3]), 0)
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
