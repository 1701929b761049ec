"""Tables and lists of a node as rows with columns, and what their cells measure."""

import re
from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass
from datetime import date
from fractions import Fraction
from functools import cache, cached_property

from panda.language.claims import scan
from panda.language.languages import calendar_names
from panda.language.numbers import size_of
from panda.language.text import plain_text
from panda.language.words import read_words, split_terms, split_words
from panda.memory.budget import is_usable
from panda.memory.node import Node
from panda.messages.list_items import label_of
from panda.store.records import Line

__all__ = [
    "CALENDAR_WORDS",
    "DAYS",
    "LABEL",
    "CellValue",
    "NoteRow",
    "NoteTable",
    "calendar_terms",
    "read_tables",
]

DAYS = frozenset(("date", "day"))
"""Measures of days: with a year and without one."""
_LEAST_ROWS = 2
_TICK = re.compile(r"\A\[(?P<mark>[ xX])\]\s+")
_HOURS = re.compile(r"(?<![\d.,:])(\d{1,3}) ?h ?(\d\d)(?![\d.,:])")
_CLOCK = re.compile(r"(\d\d):(\d\d):(\d\d)")
_DATE = re.compile(r"(\d{4})-(\d\d)(?:-(\d\d))?(?!\d)")
_SIGN = re.compile(r"[$€£¥]")
_DAY = re.compile(r"--(\d\d)-(\d\d)")
_LEAP_YEAR = 2000
LABEL = "name"
"""Column of what stands before the colon of a list's items."""
_MOST_LABEL_CHARS = 60
_LABELLED = re.compile(r"(?P<label>[^:]+(?::\d\d)?): (?P<rest>.+)", re.DOTALL)
_MONTHS = calendar_names("months", "short_months")
_WEEKDAYS = calendar_names("weekdays", "short_weekdays")
CALENDAR_WORDS = frozenset(_MONTHS) | frozenset(_WEEKDAYS)
_OFTEN_OTHER = read_words("calendar_words.txt", "other_words") - {"may"}
"""Short names of months and weekdays that a question rather means otherwise."""


def calendar_terms(text: str, *, is_cell: bool = False) -> frozenset[str]:
    """
    Return the months and weekdays that a text names, whatever the spelling, as "month 11" and "weekday 2".

    >>> sorted(calendar_terms("Tuesday or Wed", is_cell=True))
    ['weekday 2', 'weekday 3']
    """
    words = [word.lower() for word in split_words(text)]
    named = [word for word in words if is_cell or word not in _OFTEN_OTHER]
    months = {f"month {_MONTHS[word]}" for word in named if word in _MONTHS}
    return frozenset(months | {f"weekday {_WEEKDAYS[word]}" for word in named if word in _WEEKDAYS})


@dataclass(frozen=True)
class CellValue:
    """A number, day or time of a cell."""

    measure: str
    """What is compared: a currency, a base unit, "date", "day", "clock", or "" of a bare number."""
    size: Fraction
    """In base units; of a day its ordinal (without a year one of 2000), of a time its seconds."""
    written: str

    @property
    def adds(self) -> bool:
        """Return whether several make a sum."""
        return self.measure not in DAYS and self.measure != "clock"


@dataclass(frozen=True)
class NoteRow:
    line: Line
    name: str
    """What it is called; "" where nothing is."""
    cells: tuple[tuple[str, str], ...]
    """
    Column and text, in the order of the columns; an item of a list has one without a name, and before it one
    for its label, if it has one.
    """
    is_ticked: bool | None = None
    """Whether a box in front is ticked; None without one."""

    @cached_property
    def values(self) -> Mapping[tuple[str, str], CellValue]:
        """The first value of each column and measure."""
        firsts: dict[tuple[str, str], CellValue] = {}
        for column, text in self.cells:
            for value in _values(column, text):
                if column != LABEL or self.line.form == "row" or value.measure in DAYS:
                    firsts.setdefault((column, value.measure), value)
        return firsts

    @cached_property
    def terms(self) -> Mapping[str, frozenset[str]]:
        """Terms of each column's cell, with the months and weekdays that it names or falls on."""
        return {column: self._cell_terms(column, text) for column, text in self.cells}

    def _cell_terms(self, column: str, text: str) -> frozenset[str]:
        terms = set(split_terms(text)) | calendar_terms(text, is_cell=True)
        for (name, measure), value in self.values.items():
            if name == column and measure in DAYS:
                day = date.fromordinal(int(value.size))
                terms.add(f"month {day.month}")
                if measure == "date":
                    terms.add(f"weekday {day.isoweekday()}")
        return frozenset(terms)

    @cached_property
    def all_terms(self) -> frozenset[str]:
        return frozenset().union(*self.terms.values())

    def days(self, year: int) -> list[int]:
        """Return the days of its cells as ordinals; one without a year is in the given one."""
        days = [int(value.size) for value in self.values.values() if value.measure == "date"]
        for value in self.values.values():
            if value.measure == "day":
                days.append(date.fromordinal(int(value.size)).replace(year=year).toordinal())
        return days

    def cell(self, column: str) -> str:
        """Return the text of a column, "" where it has none."""
        return next((text.strip() for name, text in self.cells if name == column), "")

    def has_cell_of(self, terms: Set[str]) -> bool:
        """Return whether some terms have every word of one of its cells, or its month or weekday."""
        cells = [split_words(text) for _, text in self.cells]
        return any(words and all(_is_among(word, terms) for word in words) for words in cells)

    @property
    def text(self) -> str:
        return self.line.text.removeprefix(self.line.carried)


def _is_among(word: str, terms: Set[str]) -> bool:
    own = {*split_terms(word)}
    return bool(own and own <= terms) or not terms.isdisjoint(calendar_terms(word, is_cell=True))


@dataclass(frozen=True)
class NoteTable:
    node: Node
    name: str
    """Which list of its node."""
    about: str
    """What it stands under."""
    rows: tuple[NoteRow, ...]

    @cached_property
    def terms(self) -> frozenset[str]:
        """Terms of all that it says, and of what it stands under."""
        return self.about_terms.union(self.column_terms, *(row.all_terms for row in self.rows))

    @cached_property
    def about_terms(self) -> frozenset[str]:
        return frozenset(split_terms(self.about))

    @cached_property
    def node_terms(self) -> frozenset[str]:
        """Terms of all that its node says, and of what that is called."""
        texts = (self.node.id, self.node.title, *(line.text for line in self.node.items))
        return frozenset(term for text in texts for term in split_terms(text))

    @cached_property
    def unit_terms(self) -> frozenset[str]:
        """Terms of units: "kg" of "1.2 kg"."""
        written = (value.written for row in self.rows for value in row.values.values() if value.measure)
        return frozenset(
            term for text in written for term in split_terms(text) if not any(map(str.isdigit, term))
        )

    @cached_property
    def column_terms(self) -> frozenset[str]:
        return frozenset(term for column in self.columns for term in split_terms(column))

    @cached_property
    def spread(self) -> frozenset[str]:
        """Return the columns of months or weekdays: one value, spread over time."""
        named = {column for column in self.columns if column and calendar_terms(column, is_cell=True)}
        return frozenset(named) if len(named) > 1 else frozenset()

    @cached_property
    def is_series(self) -> bool:
        """Return whether its rows are days with one number each: what is counted is that number."""
        days = [row for row in self.rows if any(key == (LABEL, "date") for key in row.values)]
        numbers = {key for row in self.rows for key in row.values if key[1] not in DAYS and key[1] != "clock"}
        return len(days) == len(self.rows) and len(numbers) == 1

    @property
    def columns(self) -> list[str]:
        return list(dict.fromkeys(column for row in self.rows for column, _ in row.cells))


def read_tables(node: Node) -> Iterator[NoteTable]:
    """Return the tables and lists of a node, in its order, of which lines can be quoted."""
    for name in dict.fromkeys(line.list_id for line in node.items if line.list_id):
        lines = [line for line in node.items if line.list_id == name and is_usable(line)]
        if len(lines) < _LEAST_ROWS:
            continue
        heads = [line.text for line in node.items if line.heads == name]
        yield NoteTable(
            node=node,
            name=name,
            about=" ".join([lines[0].above, *heads]),
            rows=tuple(map(_read_row, lines)),
        )


def _read_row(line: Line) -> NoteRow:
    text = line.text.removeprefix(line.carried)
    tick = _TICK.match(text)
    is_ticked = tick["mark"] != " " if tick else None
    if line.form == "row":
        cells = []
        for cell in text.split("; "):
            column, colon, text_of_cell = cell.partition(": ")
            if not colon:
                is_empty = cell.endswith(":")
                column = cell[:-1] if is_empty else ""
                text_of_cell = "" if is_empty else cell
            cells.append((column, text_of_cell))
        named = (words for _, words in cells if words and not any(map(str.isdigit, words)))
        return NoteRow(line, next(named, cells[0][1]), tuple(cells), is_ticked)
    bare = text[tick.end() :] if tick else text
    labelled = _LABELLED.fullmatch(bare)
    if labelled and len(labelled["label"]) <= _MOST_LABEL_CHARS:
        return NoteRow(
            line, labelled["label"], ((LABEL, labelled["label"]), ("", labelled["rest"])), is_ticked
        )
    return NoteRow(line, label_of(bare), (("", bare),), is_ticked)


def _values(column: str, text: str) -> Iterator[CellValue]:
    """Return what a cell measures, in order; its unit may stand in the head of its column."""
    title = f"{column}: " if column else ""
    plain = plain_text(f"{title}{text}")
    if match := _HOURS.search(plain, len(title)):
        seconds = 3_600 * int(match[1]) + 60 * int(match[2])
        yield CellValue("s", Fraction(seconds), match[0])
        plain = plain[: match.start()] + " " * len(match[0]) + plain[match.end() :]
    for mention in scan(plain):
        if mention.start < len(title):
            continue
        amount = mention.amount
        if amount is None:
            if mention.claim.kind == "date" and (value := _dated(mention.claim.value, mention.claim.text)):
                yield value
            continue
        if amount.value is None or amount.label or amount.ordinal:
            continue
        unit = amount.unit or next(iter(sorted(amount.units_before)), "")
        size, base = size_of(unit)
        measure = amount.currency or (base or _currency_of(column))
        written = plain[mention.start : mention.end]
        yield CellValue(measure, amount.value * size, written)


@cache
def _currency_of(column: str) -> str:
    """Return the currency whose sign stands in the head of a column; "" without one."""
    sign = _SIGN.search(column)
    amounts = [mention.amount for mention in scan(f"{sign[0]}1")] if sign else []
    return next((amount.currency for amount in amounts if amount and amount.currency), "")


def _dated(value: str, written: str) -> CellValue | None:
    """Return the day or time of a claim; None of a month alone or what is no day."""
    if match := _CLOCK.fullmatch(value):
        hours, minutes, seconds = map(int, match.groups())
        return CellValue("clock", Fraction(3_600 * hours + 60 * minutes + seconds), written)
    try:
        if match := _DATE.match(value):
            day = date(int(match[1]), int(match[2]), int(match[3] or 1))
            return CellValue("date", Fraction(day.toordinal()), written)
        if match := _DAY.fullmatch(value):
            day = date(_LEAP_YEAR, int(match[1]), int(match[2]))
            return CellValue("day", Fraction(day.toordinal()), written)
    except ValueError:
        return None
    return None
