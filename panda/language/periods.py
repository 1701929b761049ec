"""
The times that a message looks back on, "last week" included. Pure.

A grammar of parts: numbers, units, months, weekdays, seasons and dates, joined by words of relation. What
stands beside a word decides whether it is a time ("in May", not "May starts school"), and the tense of the
verb that it belongs to whether a date without a year is a past one.
"""

import re
from calendar import day_name, month_abbr, month_name, monthrange
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta
from difflib import get_close_matches
from functools import cache, partial

from panda.language.numbers import NUMBER_WORDS, number_from_words
from panda.language.text_front import MESSAGE_CHARS, plain_signs
from panda.language.words import FUNCTION_WORDS, is_ordinary, read_groups, read_words

_Days = tuple[date, date]

_TOKEN = re.compile(r"(?P<word>[^\W\d_]+?(?=n't\b)|n't|(?<=\w)'[^\W\d_]+|[^\W\d_]+)|\d+|[^\w\s]")
_NUMBER = re.compile(NUMBER_WORDS, re.IGNORECASE)
_QUOTED = re.compile(r"\"[^\"]*\"|(?<!\w)'[^']*'(?!\w)|`[^`]*`")
_DAYS = {name.lower(): at for at, name in enumerate(day_name)}
_SHORT_DAYS = {short: at for at, names in enumerate(
    ("mon", "tue tues", "wed weds", "thu thur thurs", "fri", "sat", "sun")) for short in names.split()
}  # fmt: skip
_MONTHS = {name.lower(): at for at, name in enumerate(month_name) if name}
_SHORT_MONTHS = {name.lower(): at for at, name in enumerate(month_abbr) if name} | {"sept": 9}
_UNITS = {word: unit for unit, words in read_groups("period_units.txt").items() for word in words.split()}
_SEASONS = {"spring": 3, "summer": 6, "autumn": 9, "fall": 9, "winter": 12}
_FEASTS = {
    "christmas eve": (12, 24, 1), "christmas day": (12, 25, 1), "christmas": (12, 24, 3), "xmas": (12, 24, 3),
    "boxing day": (12, 26, 1), "new year 's eve": (12, 31, 1), "new year 's day": (1, 1, 1),
    "halloween": (10, 31, 1), "valentine 's day": (2, 14, 1),
}  # fmt: skip
"""Feasts of fixed dates: month, day, and how many days."""
_FROM_TODAY = {
    "day before yesterday": 2, "yesterday": 1, "yday": 1, "last night": 1, "today": 0, "tonight": 0,
    "tomorrow": None, "now": None,
}  # fmt: skip
"""How many days ago; None for what is to come."""
_ORDINALS = {"first": 1, "second": 2, "third": 3, "fourth": 4, "last": -1}
_words = partial(read_words, "period_words.txt")
_PARTS_OF_DAY, _LAST, _COMING = (_words(one) for one in ("parts_of_day", "last", "coming"))
_PARTS, _TO, _OPEN, _ADVERB = (_words(one) for one in ("parts", "to", "open", "adverb"))
_OF_NOUN, _OWN, _KIND, _OBJECT = (_words(one) for one in ("of_noun", "own", "kind", "object"))
_FUTURE = _words("future")
_PRESENT = _FUTURE | _words("present")
_NAMES_TOO = _words("names_too")
_HALF_A_YEAR = 183
_MOST_TOKENS = 40  # of one time
_PASTS = read_words("irregular_pasts.txt")
_BORDERS = frozenset((",", ";", ".", "?", "!", ":"))


@dataclass(frozen=True)
class Period:
    """A stretch of days that a message names."""

    start: date  # first day of it
    end: date  # last day of it
    words: tuple[int, int]  # where it stands in the message: first character, and the one after the last
    relative: bool  # whether its words say nothing without the present, as in "last week"


@dataclass(frozen=True)
class _When:
    """A time as it is worded."""

    find: Callable[[date], _Days | None]  # its latest days that begin on or before a day
    past: bool = False  # whether its words alone say that it is past
    relative: bool = False  # see Period
    beside: str = ""
    """What has to stand before it: "" nothing, "time" a word of time, "name" one that no name follows."""
    year: bool = False  # whether it names its year


@dataclass(frozen=True)
class _Token:
    text: str
    start: int
    end: int
    written: str


def _token(match: re.Match[str]) -> _Token:
    small = match[0].lower()
    return _Token(_spelt(small) if match["word"] else small, *match.span(), match[0])


_At = tuple[_When, int]


def find_periods(message: str, now: datetime) -> list[Period]:
    """
    The past times that a message names.

    Args:
        message: Any text.
        now: From when relative times count.

    Returns:
        Periods in the order of the message. Weeks begin on Monday. A date without its year is the latest one
        that is not in the future, provided that the message speaks of the past there; times to come, times
        that recur, and titles and words in quotation marks are none.

    >>> now = datetime(2026, 1, 14, 12)
    >>> for message in ("on 8 May 2023", "last week", "in the past week", "what did I do on 3 March",
    ...                 "two weeks ago", "between 1 and 5 January, what was on", "since Monday", "last May",
    ...                 "the Friday before last"):
    ...     print(*(f"{p.start:%Y-%m-%d} {p.end:%Y-%m-%d}" for p in find_periods(message, now)))
    2023-05-08 2023-05-08
    2026-01-05 2026-01-11
    2026-01-07 2026-01-13
    2025-03-03 2025-03-03
    2025-12-31 2025-12-31
    2026-01-01 2026-01-05
    2026-01-12 2026-01-14
    2025-05-01 2025-05-31
    2026-01-02 2026-01-02
    >>> [find_periods(m, now) for m in ("May I plant garlic?", "What is on 3 March?")]
    [[], []]
    """
    return _Grammar(plain_signs(message[:MESSAGE_CHARS]), now.date()).run()


class _Grammar:
    """One message, as plain_signs gives it; each method reads one part at a token and tells where it ends."""

    def __init__(self, text: str, today: date) -> None:
        self._text, self._today = text, today
        self._tokens = [_token(match) for match in _TOKEN.finditer(text)]
        self._quoted = [match.span() for match in _QUOTED.finditer(text)]
        self._tenses = self._find_tenses()
        self._reach = 0

    def run(self) -> list[Period]:
        found: list[Period] = []
        at = 0
        while at < len(self._tokens):
            self._reach = at + _MOST_TOKENS
            read = self._span(at)
            if read is None:
                at += 1
                continue
            when, end = read
            days = self._resolve(when, at, end)
            if days is not None:
                first, last = self._tokens[at].start, self._tokens[end - 1].end
                found.append(Period(*days, (first, last), when.relative))
            at = end
        return found

    # what a message names

    def _span(self, at: int) -> _At | None:
        word = self._word(at)
        if word in ("since", "after") and (read := self._point(at + 1)):
            when, end = read
            return self._open(when, after=word == "after"), end
        if word in _OPEN and (read := self._point(at + 1)):
            return _never(), self._span_end(read[1])
        if word in ("from", "between") and (read := self._range(at + 1, between=word == "between")):
            return read
        return self._range(at, between=False) or self._point(at)

    def _span_end(self, at: int) -> int:
        read = self._point(at + 1) if self._word(at) in ("and", "or", *_TO) else None
        return read[1] if read else at

    def _range(self, at: int, *, between: bool) -> _At | None:
        left = self._point(at)
        if left is None or not (self._word(left[1]) in _TO or (between and self._word(left[1]) == "and")):
            return None
        right = self._point(left[1] + 1)
        if right is None:
            return None
        first, last = left[0], right[0]

        def find(until: date) -> _Days | None:
            ends = last.find(until)
            begins = first.find(ends[0]) if ends else None
            return (begins[0], ends[1]) if begins and ends else None

        return replace(last, find=find, relative=first.relative and last.relative, beside=""), right[1]

    def _open(self, when: _When, *, after: bool) -> _When:
        def find(until: date) -> _Days | None:
            days = when.find(until)
            if days is None:
                return None
            return (days[1] + timedelta(1) if after else days[0], self._today)

        return replace(when, find=find, past=True, beside="")

    def _point(self, at: int) -> _At | None:
        """One time, with what it lies in: "Tuesday last week"."""
        if at > self._reach:
            return None
        read = self._from_today(at) or self._ago(at) or self._coming(at) or self._last(at)
        read = read or self._before_last(at) or self._week_of(at) or self._bare(at)
        if read is None:
            return None
        when, end = self._within(*read)
        while self._word(end) in _PARTS_OF_DAY:
            end += 1
        return when, end

    def _within(self, when: _When, end: int) -> _At:
        """A time with the longer one that it lies in, "last year", if that follows."""
        if when.year or (when.past and not when.relative):
            return when, end
        at = end + (self._word(end) in ("of", "in", ",", "'s"))
        outer = self._year(at) or (self._last(at) if not when.past else None)
        if outer is None and self._word(at) in _COMING:
            outer = self._coming(at)
        if outer is None:
            return when, end
        whole, end = outer

        def find(until: date) -> _Days | None:
            days = whole.find(until)
            inner = when.find(days[1]) if days else None
            return inner if days and inner and inner[0] >= days[0] else None

        return replace(whole, find=find, relative=when.relative and whole.relative, beside="", year=True), end

    # parts that count from today

    def _from_today(self, at: int) -> _At | None:
        start = at + (self._word(at) == "the")
        for words, days in _FROM_TODAY.items():
            if self._stands(words, start):
                end = start + len(words.split())
                return (self._days_ago(days) if days is not None else _never()), end
        if self._word(start) == "this" and self._word(start + 1) in _PARTS_OF_DAY:
            return self._days_ago(0), start + 2
        return None

    def _stands(self, words: str, at: int) -> bool:
        return all(self._word(at + n) == word for n, word in enumerate(words.split()))

    def _days_ago(self, count: int) -> _When:
        day = self._today - timedelta(count)
        return _When(lambda _: (day, day), past=count > 0, relative=True)

    def _ago(self, at: int) -> _At | None:
        """ "three weeks ago", "two days before Christmas", "in two weeks"."""
        ahead = self._word(at) == "in"
        read = self._count(at + ahead)
        unit = _UNITS.get(_single(self._word(read[1]))) if read else None
        if read is None or unit is None:
            return None
        count, end = read[0], read[1] + 1
        after = self._word(end)
        if after in ("ago", "back") and not ahead:
            return _When(lambda _: self._back(count, unit), past=True, relative=True), end + 1
        if after in ("before", "after") and not ahead and (point := self._point(end + 1)):
            step = -1 if after == "before" else 1

            def find(until: date) -> _Days | None:
                days = point[0].find(until)
                day = _shift(days[0], step * count, unit) if days else None
                return (day, day) if day else None

            return replace(point[0], find=find, beside=""), point[1]
        return (_never(), end) if ahead else None

    def _back(self, count: int, unit: str) -> _Days | None:
        day = _shift(self._today, -count, unit)
        if day is not None and unit in ("month", "year", "quarter"):
            return _unit_of(day, unit)
        return (day, day) if day else None

    def _coming(self, at: int) -> _At | None:
        """ "next May", "every Monday": none, with what it is said of."""
        if self._word(at) not in _COMING:
            return None
        read = self._point(at + 1)
        if read is None and _single(self._word(at + 1)) in _UNITS:
            return _never(), at + 2
        return (_never(), read[1]) if read else None

    def _last(self, at: int) -> _At | None:
        """ "last week", "the past three months", "this year", "last May"."""
        article = self._word(at) in ("the", "these", "my", "our")
        start = at + article
        which = self._word(start)
        if which not in _LAST and which not in ("this", "current"):
            return None
        count = self._count(start + 1) if which in _LAST else None
        at_unit = count[1] if count else start + 1
        name = self._word(at_unit)
        unit = _UNITS.get(_single(name))
        if (
            unit == "hour"
            or (unit and not count and name not in _UNITS)
            or (
                self._word(at_unit + 1) == "of" and self._bare(at_unit + 2)  # "last week of June"
            )
        ):
            unit = None
        if unit and which in _LAST and (count or which == "past" or (article and which == "last")):
            number = count[0] if count else 1
            if unit == "weekend":
                return None
            first = _shift(self._today, -number, unit)
            days = (first, self._today - timedelta(1)) if first else None
            return _When(lambda _: days, past=True, relative=True), at_unit + 1
        if unit == "day" or count:
            return None
        if unit:
            back = 1 if which in _LAST else 0
            return self._whole(unit, back), at_unit + 1
        bare = self._bare(at_unit)
        if bare is None or bare[0].year:
            return None
        when, end = bare
        until = self._today if which in _LAST else None
        if until and (days := when.find(until)) and days[0] <= until <= days[1]:  # "last autumn" in autumn
            until = days[0] - timedelta(1)
        return replace(when, find=lambda day: when.find(until or day), past=which in _LAST, beside=""), end

    def _whole(self, unit: str, back: int) -> _When:
        def find(_: date) -> _Days | None:
            day = _shift(self._today, -back, unit)
            return _unit_of(day, unit) if day else None

        return _When(find, past=back > 0, relative=True)

    def _before_last(self, at: int) -> _At | None:
        start = at + (self._word(at) == "the")
        if (self._word(start + 1), self._word(start + 2)) != ("before", "last"):
            return None
        unit = _UNITS.get(self._word(start))
        if unit:
            return self._whole(unit, 2), start + 3
        bare = self._bare(start)
        if bare is None:
            return None

        def find(_: date) -> _Days | None:
            days = bare[0].find(self._today - timedelta(1))
            return bare[0].find(days[0] - timedelta(1)) if days else None

        return replace(bare[0], find=find, past=True, beside=""), start + 3

    def _week_of(self, at: int) -> _At | None:
        """ "the week of 3 November", "the first week of May", "the third quarter"."""
        start = at + (self._word(at) == "the")
        place = _ORDINALS.get(self._word(start), 0)
        start += place != 0
        unit = _UNITS.get(self._word(start))
        if place > 0 and unit == "quarter":
            return _yearly(3 * place - 2, 1, 3), start + 1
        if unit not in ("day", "week", "weekend") or self._word(start + 1) != "of":
            return None
        read = self._bare(start + 2)
        if read is None:
            return None
        when, end = self._within(*read)

        def find(until: date) -> _Days | None:
            days = when.find(until)
            if days is None:
                return None
            if place == 0:
                return _unit_of(days[0], unit)
            length = 1 if unit == "day" else 7
            first = (
                days[0] + timedelta(length * (place - 1)) if place > 0 else days[1] - timedelta(length - 1)
            )
            return first, first + timedelta(length - 1)

        return replace(when, find=find, beside=""), end

    # parts that need no today

    def _bare(self, at: int) -> _At | None:
        return self._date(at) or self._feast(at) or self._weekday(at) or self._day_alone(at) or self._long(at)

    def _date(self, at: int) -> _At | None:
        digits = re.compile(
            r"(?P<y>\d{4})-(?P<m>\d\d)(?:-(?P<d>\d\d))?(?![\w-]|\.\d)"
            r"|(?P<a>\d{1,2})(?P<s>[./-])(?P<b>\d{1,2})(?:(?P=s)(?P<c>\d{4}|\d\d)|(?P<dot>\.))?(?![\w/:%€$£]|[.,-]\d)"
        ).match(self._text, self._tokens[at].start if at < len(self._tokens) else len(self._text))
        if digits and not re.search(r"[\w.,:/$€£-]\Z", self._text[: digits.start()]):
            when = _digital(digits)
            return (when, self._token_at(digits.end())) if when else None
        start = at + (self._word(at) == "the")
        first = self._ordinal(start)
        if first:
            day, end, _ = first
            last, then = day, end
            if self._word(end) in _TO or (self._word(end) == "and" and self._word(start - 1) == "between"):
                second = self._ordinal(end + 1 + (self._word(end + 1) == "the"))
                if second:
                    last, then, _ = second
            then += self._word(then) == "of"
            month = self._month(then)
            if month:
                return self._dated(month, day, last, then + 1)
        month = self._month(at)
        then = at + 1 + (self._word(at + 1) == "." and self._word(at) in _SHORT_MONTHS)
        if month and (one := self._ordinal(then + (self._word(then) == "the"))):
            day, end, _ = one
            last = day
            if self._word(end) in _TO and (second := self._ordinal(end + 1)) and not self._month(second[1]):
                last, end, _ = second
            return self._dated(month, day, last, end)
        return None

    def _dated(self, month: int, first: int, last: int, end: int) -> _At | None:
        year = self._year(end + (self._word(end) == ","))
        if not 1 <= first <= last <= 31:
            return None
        when = _yearly(month, first, 0, last)
        return self._within(when, end) if year else (when, end)

    def _month(self, at: int) -> int | None:
        word = self._word(at)
        return _MONTHS.get(word) or _SHORT_MONTHS.get(word)

    def _ordinal(self, at: int) -> tuple[int, int, bool] | None:
        word = self._word(at)
        if not (word.isdecimal() and len(word) <= 2 and 1 <= int(word) <= 31):
            return None
        if self._text[: self._tokens[at].start].endswith(tuple("0123456789.,:/$€£")):
            return None
        end = at + 1
        named = self._word(end) in ("st", "nd", "rd", "th") and self._glued(end)
        if named or (self._word(end) == "." and self._glued(end) and self._month(end + 1)):
            end += 1
        return int(word), end, named

    def _day_alone(self, at: int) -> _At | None:
        if self._word(at) != "the" or not (read := self._ordinal(at + 1)) or not read[2]:
            return None
        day, end, _ = read
        of = end + (self._word(end) in ("of", "in"))
        if end < len(self._tokens) and of == end and self._word(end) not in FUNCTION_WORDS | _BORDERS:
            return None

        def find(until: date) -> _Days | None:
            for back in range(3):
                month = _shift(until.replace(day=1), -back, "month")
                if (
                    month
                    and day <= monthrange(month.year, month.month)[1]
                    and month.replace(day=day) <= until
                ):
                    return month.replace(day=day), month.replace(day=day)
            return None

        return _When(find, relative=True, beside="time"), end

    def _feast(self, at: int) -> _At | None:
        for words, (month, day, days) in _FEASTS.items():
            if self._stands(words, at):
                return _yearly(month, day, 0, day + days - 1), at + len(words.split())
        return None

    def _weekday(self, at: int) -> _At | None:
        word = self._word(at)
        number = _DAYS.get(word, _SHORT_DAYS.get(word))
        if number is None:
            return None
        then = at + 1 + (self._word(at + 1) == ",")
        dated = self._date(then) or self._day_alone(then)
        if dated:
            return dated

        def find(until: date) -> _Days:
            until = until - timedelta(1) if until == self._today else until
            day = until - timedelta((until.weekday() - number) % 7)
            return day, day

        end = at + 1
        last = self._word(end) == "last" and _single(self._word(end + 1)) not in _UNITS
        return (
            _When(find, past=last, relative=True, beside="day" if word in _DAYS else "short"),
            end + last,
        )

    def _long(self, at: int) -> _At | None:
        word = self._word(at)
        month = self._month(at)
        if month:
            beside = "name" if word in _NAMES_TOO else "" if word in _MONTHS else "time"
            return _yearly(month, 1, 1, beside=beside), at + 1
        if word in _SEASONS:
            return _yearly(_SEASONS[word], 1, 3, beside="time"), at + 1
        quarter = self._word(at + 1)
        if word == "q" and quarter in ("1", "2", "3", "4") and self._glued(at + 1):
            return _yearly(3 * int(quarter) - 2, 1, 3), at + 2
        return self._year(at)

    def _year(self, at: int) -> _At | None:
        word = self._word(at)
        if not (word.isdecimal() and len(word) == 4 and word[:2] in ("19", "20")):
            return None
        if self._glued(at + 1) and self._word(at + 1) in ("-", "/", ":", "%", "€", "$", "£", "s"):
            return None
        year = int(word)
        days = date(year, 1, 1), date(year, 12, 31)
        return _When(lambda _: days, past=date(year, 1, 1) <= self._today, beside="year", year=True), at + 1

    # which of them are meant

    def _resolve(self, when: _When, at: int, end: int) -> _Days | None:
        """The days of a time that is read at a token; None if it is none that the message looks back on."""
        first, last = self._tokens[at].start, self._tokens[end - 1].end
        before = self._word(at - 1)
        is_property = not _words("property").isdisjoint((before, self._word(at - 2)))
        quoted = any(begin <= first and last <= close for begin, close in self._quoted)
        days = when.find(self._today)
        named = quoted or (when.relative and self._is_title(at, end))
        if days is None or days[0] > self._today or named or is_property:
            return None
        if before in _words("mentioned") or not self._is_time(when, at, end, before):
            return None
        tense = "past" if when.past else self._tense(at, end)
        if tense == "past":
            return days
        if before in _OF_NOUN or self._word(at) in _OF_NOUN:
            return days if tense != "future" else None
        if tense is not None or self._plans():
            return None
        sure = (before in _ADVERB and days[0] != days[1]) or when.relative
        return days if sure or (self._today - days[1]).days < _HALF_A_YEAR else None

    def _is_time(self, when: _When, at: int, end: int, before: str) -> bool:
        if when.beside == "year":
            return before in ("in", "of", "during", "since", "from", "throughout", "to", "back")
        if when.beside == "day":
            return before not in _KIND
        if when.beside == "short":
            return before in _words("short_beside")
        if before in ("a", "an"):
            return False
        if not when.beside or self._word(at) in ("early", "late", "mid", "from", "between"):
            return True
        if self._word(at) == "the" or before in (_ADVERB | _PARTS | {"early", "late", "mid", "-"}):
            follows = self._tokens[end].written if end < len(self._tokens) else ""
            named = follows == "'s" or (follows[:1].isupper() and follows[1:2].islower())
            return when.beside != "name" or not named
        joined = before in ("from", "of", "for", "and", "or", "to")
        if when.beside == "name":
            return before in ("my", "our", "your") or (joined and self._tense(at, end) is None)
        return joined or before in _OWN | _OF_NOUN

    def _is_title(self, at: int, end: int) -> bool:
        tokens = [token for token in self._tokens[at:end] if token.written.isalpha()]
        words = [t for t in tokens if not self._is_proper(t.text)]
        if not words or self._text.isupper() or any(t.written[0].islower() for t in words):
            return False
        if at == 0 or self._word(at - 1) in (".", "?", "!"):
            return len(tokens) > 1 and len(words) == len(tokens)
        return True

    @staticmethod
    def _is_proper(word: str) -> bool:
        return any(word in names for names in (_DAYS, _SHORT_DAYS, _MONTHS, _SHORT_MONTHS, _SEASONS))

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
            elif word == "'s" and before not in _words("auxiliary_s"):
                continue  # a possessive
            elif word in _PRESENT and at - did > 4 and before != "to":
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
        """Whether the message orders something other than to look: "book the hall"."""
        first = int(self._word(0) == "please")
        word = self._word(first)
        looks = word in _words("lookups") or word in FUNCTION_WORDS
        return not looks and self._word(first + 1) in _OBJECT

    # tokens

    def _word(self, at: int) -> str:
        return self._tokens[at].text if 0 <= at < len(self._tokens) else ""

    def _glued(self, at: int) -> bool:
        return 0 < at < len(self._tokens) and self._tokens[at - 1].end == self._tokens[at].start

    def _token_at(self, char: int) -> int:
        return next((n for n, token in enumerate(self._tokens) if token.start >= char), len(self._tokens))

    def _count(self, at: int) -> tuple[int, int] | None:
        word = self._word(at)
        if word.isdecimal():
            return (int(word), at + 1) if len(word) <= 3 else None
        start = at + (word == "a")
        if self._word(start) == "couple":
            return 2, start + 1 + (self._word(start + 1) == "of")
        if self._word(start) in ("few", "several"):
            return 3, start + 1
        match = _NUMBER.match(self._text, self._tokens[at].start) if at < len(self._tokens) else None
        if match:
            return number_from_words(match[0])[0], self._token_at(match.end())
        return (1, at + 1) if word in ("a", "an") else None


def _never() -> _When:
    return _When(lambda _: None)


def _yearly(month: int, day: int, months: int, last: int = 0, beside: str = "") -> _When:

    def find(until: date) -> _Days | None:
        for year in range(until.year, until.year - 9, -1):
            try:
                start = date(year, month, day)
                end = (_shift(start, months, "month") or start) - timedelta(1) if months else start
                end = end if months else date(year, month, last)
            except ValueError:  # no such day in that year
                continue
            if start <= until:
                return start, end
        return None

    return _When(find, beside=beside)


def _digital(match: re.Match[str]) -> _When | None:
    if match["y"]:
        try:
            first = date(int(match["y"]), int(match["m"]), int(match["d"] or 1))
        except ValueError:
            return None
        days = (first, first) if match["d"] else _unit_of(first, "month")
        return _When(lambda _: days, past=True, year=True)
    day, month = int(match["a"]), int(match["b"])
    if month > 12 >= day and match["s"] == "/":
        day, month = month, day
    if not (1 <= month <= 12 and 1 <= day <= 31) or (match["s"] == "-" and not match["c"]):
        return None
    if match["c"]:
        year = int(match["c"]) + (2000 if len(match["c"]) == 2 else 0)
        try:
            exact = date(year, month, day)
        except ValueError:
            return None
        return _When(lambda _: (exact, exact), past=True, year=True)
    return _yearly(month, day, 0, day, beside="" if match["dot"] else "time")


def _unit_of(day: date, unit: str) -> _Days:
    if unit in ("week", "weekend", "fortnight"):
        monday = day - timedelta(day.weekday())
        return monday + timedelta(5 if unit == "weekend" else 0), monday + timedelta(6)
    months = {"month": 1, "quarter": 3, "year": 12}.get(unit)
    if months is None:
        return day, day
    first = date(day.year, (day.month - 1) // months * months + 1, 1)
    return first, (_shift(first, months, "month") or first) - timedelta(1)


def _shift(day: date, count: int, unit: str) -> date | None:
    """A day so many units later; of a shorter month its last day. None outside of all years."""
    months = {"month": 1, "quarter": 3, "year": 12}.get(unit)
    try:
        if months is None:
            days = {"week": 7, "weekend": 7, "fortnight": 14, "hour": 0}.get(unit, 1)
            return day + timedelta(count * days)
        at = day.year * 12 + day.month - 1 + count * months
        year, month = at // 12, at % 12 + 1
        return date(year, month, min(day.day, monthrange(year, month)[1]))
    except (ValueError, OverflowError):
        return None


def _single(word: str) -> str:
    return word.removesuffix("s")


@cache
def _spelt(word: str) -> str:
    """A name of a day or month that is misspelt, as it is spelt."""
    known = (*_DAYS, *(name for name in _MONTHS if len(name) > 5), "yesterday", "fortnight")
    if len(word) < 6 or word in known or is_ordinary(word):
        return word
    near = get_close_matches(word, known, 1, 0.84)
    return near[0] if near and not word.endswith("s") else word


def is_past_form(word: str) -> bool:
    """Whether a word is a verb in the past, or a participle."""
    return word in _PASTS or (len(word) > 4 and word.endswith("ed") and word not in _words("no_past"))
