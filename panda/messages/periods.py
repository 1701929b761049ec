"""
The past times that a message names, as "last week". Pure.

A message is read by a small grammar over the forms of dates and those that count from the present. What
stands beside a word decides whether it is a time ("in May", not "May starts school"), and the tense of its
verb whether a date without a year is a past one.
"""

import re
from calendar import day_name, month_name, monthrange
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta
from difflib import get_close_matches
from functools import cache, partial

from panda.language.dates import DATE_FORMS, DATES, DAY_NUMBER, FEASTS, TOLD_DATES, read_date
from panda.language.languages import calendar_names
from panda.language.numbers import NUMBER_WORDS, number_from_words
from panda.language.patterns import lazy_pattern, one_of
from panda.language.text import plain_signs
from panda.language.words import FUNCTION_WORDS, is_ordinary, read_groups, read_words
from panda.messages.reading import MESSAGE_CHARS
from panda.messages.wording import is_past_form

_words = partial(read_words, "period_words.txt")
_WEEKDAYS = tuple(name.lower() for name in day_name)
_DAY_PLACES = calendar_names("weekdays", "short_weekdays")
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
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
  | (?P<nth>(?<![\w.,:/$€£-])(?P<d6>{DAY_NUMBER})(?:st|nd|rd|th)(?!\w))
  | (?P<year>(?<![\w.,:/$€£-])(?:19|20)\d\d(?![\w/:%€$£-]))
  | (?P<word>[^\W\d_]+?(?=n't\b)|n't|(?<=\w)'[^\W\d_]+|[^\W\d_]+) | (?P<number>\d+) | (?P<other>[^\w\s])
    """,
    re.VERBOSE | re.IGNORECASE,
)
"""A token of a message: a time as it is worded, a word, or a sign."""
_Days = tuple[date, date]
_ADVERB = _words("adverb")
_TO = _words("to")
_COMING = _words("coming")
_BORDERS = frozenset(",;.?!:")
_FUTURE = _words("future")
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
class _PeriodToken:
    text: str  # in small letters
    start: int
    end: int
    form: str  # its group of _TOKEN
    match: re.Match[str]


def find_periods(message: str, now: datetime) -> list[Period]:
    """
    Return the past times that a message names, in its order. Weeks begin on Monday. A date without its year
    is the latest one that is not in the future, if the message speaks of the past there; times to come, times
    that recur, what can be read in two ways ("11/12/2025"), titles and quotations are none.
    """
    return _PeriodFinder(plain_signs(message[:MESSAGE_CHARS]), now.date()).periods()


class _PeriodFinder:
    """A message's tokens; each method reads one part at a token and tells where it ends."""

    def __init__(self, text: str, today: date) -> None:
        self._text = text
        self._today = today
        self._tokens = [_token(match) for match in _TOKEN.finditer(text)]
        self._quoted = [match.span() for match in _QUOTED.finditer(text)]
        self._tenses = self._find_tenses()
        self._reach = 0  # the last token at which a part may begin

    def periods(self) -> list[Period]:
        periods: list[Period] = []
        at = 0
        while at < len(self._tokens):
            self._reach = at + _MOST_TOKENS
            read = self._span(at)
            days = self._resolve(*read, at) if read else None
            if read and days:
                words = self._tokens[at].start, self._tokens[read[1] - 1].end
                periods.append(Period(*days, words, read[0].relative))
            at = read[1] if read else at + 1
        return periods

    def _word(self, at: int) -> str:
        return self._tokens[at].text if 0 <= at < len(self._tokens) else ""

    def _form(self, at: int) -> str:
        return self._tokens[at].form if 0 <= at < len(self._tokens) else ""

    # what a message names

    def _span(self, at: int) -> _At | None:
        word = self._word(at)
        read = self._point(at + 1)
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
        """Return a time with the longer one that it lies in, "last year", if that follows."""
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
        """Read "next May" or "every Monday", which are no past time, with what they are said of."""
        if self._word(at) not in _COMING:
            return None
        read = (_NEVER, at + 2) if self._word(at + 1).removesuffix("s") in _UNITS else self._point(at + 1)
        return (_NEVER, read[1]) if read else None

    def _time(self, at: int) -> _At | None:
        if at >= len(self._tokens):
            return None
        token = self._tokens[at]
        today = self._today
        match = token.match
        form = token.form
        text = token.text
        end = at + 1
        if form == "word":
            return self._named(at, text) if text in _words("last") or text in ("this", "current") else None
        if form == "to_come":
            return _NEVER, end
        if form == "from_today":
            day = today - timedelta(_FROM_TODAY.get(text.removeprefix("the "), 0))
            return _When(lambda _: (day, day), past=day < today, relative=True), end
        if form == "ago":
            count = _count_of(match["n1"])
            unit = _UNITS[match["u1"].lower()]
            back = _shift(today, -count, unit)
            days: _Days | None = None
            if back:
                days = _unit_of(back, unit) if unit in _MONTHS_OF else (back, back)
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
            month, day_, days_ = FEASTS.get(text, (0, 0, 0))
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
        """Read "last week", "the past three months", "this year"."""
        unit = _UNITS[match["u5"].lower()]
        which = match["which"].lower()
        count = match["n5"]
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
        """Read "last May", "this summer"."""
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
        first = self._tokens[at].start
        last = self._tokens[end - 1].end
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
        tenses: dict[int, str] = {}
        did = -9
        for at, token in enumerate(self._tokens):
            word = token.text
            before = self._word(at - 1)
            if word in ("did", "was", "were", "had"):
                tenses[at] = "past"
                did = at if word == "did" else did
            elif is_past_form(word) and before not in ("be", "is", "are", "get", "gets"):
                tenses[at] = "past"
            elif word in _FUTURE | _words("present") and at - did > 4 and before != "to":
                tenses[at] = "future" if word in _FUTURE else "present"
        return tenses

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


def _token(match: re.Match[str]) -> _PeriodToken:
    small = match[0].lower()
    form = match.lastgroup or ""
    if form == "word" and (spelt := _spelt(small)) != small:
        again = _TOKEN.fullmatch(spelt)
        assert again is not None
        return _PeriodToken(spelt, *match.span(), again.lastgroup or "", again)
    return _PeriodToken(small, *match.span(), form, match)


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
    first = reads[0].value
    last = reads[-1].value
    if open_year := re.fullmatch(r"--(\d\d)(?:-(\d\d))?", first):
        month = int(open_year[1])
        day = open_year[2]
        if day:
            return _yearly(month, int(day), 0, int(last[-2:]), beside="time" if "/" in match[0] else "")
        written = match[0].lower().rstrip(".")
        beside = "time" if len(written) < 5 else ""
        if written in _words("names_too"):
            beside = "name"
        return _yearly(month, 1, 1, beside=beside)
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
    """
    Return a period that comes once a year: so many months from a day on, or the days up to another of that
    month.
    """

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
    """Return the days of "the week of 3 November", "the first week of May"."""
    days = when.find(until)
    place = _PLACES.get((match["place"] or "").lower(), 0)
    unit = match["u4"].lower()
    if days is None or place == 0:
        return _unit_of(days[0], unit) if days else None
    length = timedelta(0 if unit == "day" else 6)
    first = days[0] + (length + timedelta(1)) * (place - 1) if place > 0 else days[1] - length
    return first, first + length


def _offset_of(match: re.Match[str], when: _When, until: date) -> _Days | None:
    """Return the day of "two days before Christmas"."""
    days = when.find(until)
    count = _count_of(match["n2"])
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
    """Return the day so many units later, in a shorter month its last day; None outside of all years."""
    try:
        if unit not in _MONTHS_OF:
            days = {"week": 7, "weekend": 7, "fortnight": 14, "hour": 0}.get(unit, 1)
            return day + timedelta(count * days)
        at = day.year * 12 + day.month - 1 + count * _MONTHS_OF[unit]
        year = at // 12
        month = at % 12 + 1
        return date(year, month, min(day.day, monthrange(year, month)[1]))
    except (ValueError, OverflowError):
        return None
