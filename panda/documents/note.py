"""
A note as its owner typed it: title, tags, date and confidence of its front matter, all else as text. Pure.

A table and JSON are read row by row and object by object, as documents of a turn are, a web page for
what it says.

No note is refused. What panda cannot use of a front matter is text like the rest: a key that it does not
know, a value that it cannot read, and the whole front matter where that is no map of keys and values.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from functools import lru_cache
from pathlib import PurePath
from typing import TypeVar

from panda.documents.document_text import (
    DELIMITERS,
    JSON,
    JSON_LINES,
    content_type_of,
    find_broken_lines,
    split_document,
)
from panda.documents.markdown import (
    LONG_CHARS,
    KnowledgeSection,
    TextUnit,
    group_by_headings,
    split_units,
)
from panda.documents.memory_file import render_value
from panda.documents.safe_text import one_line
from panda.documents.times import parse_time
from panda.documents.yaml_text import FrontMatterText, read_number, split_front_matter
from panda.errors import DocumentError, NoteFormatError, Verdict
from panda.language.dates import day_of, find_days

DATE_KEYS = ("updated_at", "updated", "modified", "date", "created_at", "created")
"""Keys that date a note, the one that counts first."""
_DATA = frozenset({*DELIMITERS, JSON, JSON_LINES})
_BORDER = re.compile(r"-{3,}[ \t]*\r?")
_YEAR_FIRST = re.compile(r"(?P<year>\d{4})[-./](?P<month>\d\d?)[-./](?P<day>\d\d?)(?P<time>[T ].*)?")
_PERCENT = re.compile(r"(?P<number>\d{1,3}(?:\.\d+)?)\s*%")

_T = TypeVar("_T")


@dataclass(frozen=True)
class NoteText:
    """What a note says."""

    title: str  # "" if it names none
    tags: str  # on one line; "" if it has none
    aliases: tuple[str, ...]  # its other names
    confidence: float | None  # None if it states none
    at: datetime | None  # when it was written, by its front matter; None if that does not say
    sections: tuple[KnowledgeSection, ...]  # its text; lines are those of the file
    is_long: bool  # whether it is found by section
    faults: tuple[NoteFormatError, ...]  # what of its front matter is text because panda cannot use it


@lru_cache(maxsize=8)
def parse_note(text: str, *, where: str) -> NoteText:
    """Return what the text of a note says; *where* is its path, for its kind and the faults."""
    content_type = content_type_of(PurePath(where).name, "")
    if content_type in _DATA:
        faults = [
            _fault(message, where, line=line) for line, message in find_broken_lines(text, content_type)
        ]
        return _without_properties(text, split_document(text, content_type), faults)
    try:
        front = split_front_matter(text, where=where)
    except DocumentError as exc:
        return _without_front_matter(text, exc, where)
    reader = _FrontMatterReader(front, where)
    title = reader.read("title", _read_title, "a title is one text")
    tags = reader.read("tags", _read_tags, "tags are a list of words")
    aliases = reader.find("aliases", "alias")
    confidence = reader.read("confidence", read_confidence, "a confidence is a number from 0 to 1")
    dates = [reader.read(key, read_date, "a date is a day such as 2026-03-14") for key in DATE_KEYS]
    above = "\n" * (text.count("\n") - front.body.count("\n"))
    return NoteText(
        title=title or "",
        tags=tags or "",
        aliases=aliases,
        confidence=confidence,
        at=next(filter(None, dates), None),
        sections=group_by_headings([*reader.properties(front), *split_units(above + front.body)]),
        is_long=len(front.body) > LONG_CHARS,
        faults=tuple(reader.faults),
    )


def parse_page_note(title: str, text: str) -> NoteText:
    """Return a web page as a note, from its title and what it says; the lines of its file are not named."""
    units = [replace(unit, line=0) for unit in split_units(text)]
    return replace(_without_properties(text, units), title=one_line(title))


def read_date(value: object) -> datetime | None:
    """
    Return the instant that a value typed by a user names, in UTC; None if it names none, several, or one that
    can be read in two ways.

    >>> read_date("14.03.2026"), read_date("03/04/2026")
    (datetime.datetime(2026, 3, 14, 0, 0, tzinfo=datetime.timezone.utc), None)
    """
    text = render_value(value).strip()
    if match := _YEAR_FIRST.fullmatch(text):
        text = f"{match['year']}-{int(match['month']):02}-{int(match['day']):02}{match['time'] or ''}"
    with suppress(ValueError):
        return parse_time(text)
    return day_of(text) if len(set(find_days(text))) == 1 else None


def read_confidence(value: object) -> float | None:
    """Return a confidence from 0 to 1 that a user typed, also as "80 %"; None if it is none."""
    percent = _PERCENT.fullmatch(value.strip()) if isinstance(value, str) else None
    number = float(percent["number"]) / 100 if percent else read_number(value)
    return number if number is not None and 0 <= number <= 1 else None


def _read_title(value: object) -> str | None:
    return None if isinstance(value, Mapping | list) else one_line(render_value(value))


def _read_tags(value: object) -> str | None:
    return None if isinstance(value, Mapping) else render_value(value)


class _FrontMatterReader:
    """Reads keys of a front matter, in any case, and collects what could not be read."""

    def __init__(self, front: FrontMatterText, where: str) -> None:
        self._where = where
        self._values = {name.value.casefold(): (name.line, node.value) for name, node in front.pairs}
        self._used: set[str] = set()
        self.faults: list[NoteFormatError] = []

    def read(self, key: str, parse: Callable[[object], _T | None], expected: str) -> _T | None:
        """Return the value of a key; None if it is missing or empty, or cannot be read, which is a fault."""
        line, value = self._values.get(key, (0, None))
        if value is None or value == "":
            return None
        parsed = parse(value)
        if parsed is None:
            message = f"{key} cannot be read, and the line is text: {expected}"
            self.faults.append(_fault(message, self._where, line=line, key=key))
        else:
            self._used.add(key)
        return parsed

    def find(self, *keys: str) -> tuple[str, ...]:
        """Return the texts of the first of some keys that has any; its line stays text."""
        for key in keys:
            _, value = self._values.get(key, (0, None))
            texts = value if isinstance(value, list) else [value]
            names = [one_line(render_value(text)) for text in texts if isinstance(text, str | int)]
            if any(names):
                return tuple(filter(None, names))
        return ()

    def properties(self, front: FrontMatterText) -> Iterator[TextUnit]:
        """
        Yield the lines that are text, each with its key, but those that are empty: where nothing follows the
        front matter all of them, and of a key that is there more than once all but the last.
        """
        last_lines = {name.value.casefold(): name.line for name, _ in front.pairs}
        for name, node in front.pairs:
            key = name.value.casefold()
            value = "" if node.value is None else render_value(node.value)
            is_last = name.line == last_lines[key]
            if key in self._used and not is_last:
                message = f"{key} is there more than once, and the line is text: the last one counts"
                self.faults.append(_fault(message, self._where, line=name.line, key=key))
            if value and not (key in self._used and is_last and front.body.strip()):
                yield TextUnit(one_line(f"{name.value}: {value}"), name.line, (), "line")


def _without_front_matter(text: str, error: DocumentError, where: str) -> NoteText:
    """A note whose first lines look like a front matter and are none: all of it is text, but the borders."""
    lines = text.split("\n")
    borders = [at for at, line in enumerate(lines) if _BORDER.fullmatch(line.lstrip("\ufeff"))]
    for at in borders[:2]:
        lines[at] = ""
    message = f"{error.message}; it is read as text"
    fault = _fault(message, where, line=error.line)
    return _without_properties(text, split_units("\n".join(lines)), (fault,))


def _without_properties(
    text: str, text_units: Sequence[TextUnit], faults: Sequence[NoteFormatError] = ()
) -> NoteText:
    """Return a note that has no front matter."""
    return NoteText(
        title="",
        tags="",
        aliases=(),
        confidence=None,
        at=None,
        sections=group_by_headings(text_units),
        is_long=len(text) > LONG_CHARS,
        faults=tuple(faults),
    )


def _fault(message: str, where: str, *, line: int | None, key: str | None = None) -> NoteFormatError:
    return NoteFormatError(message, where, line=line, key=key, verdict=Verdict.SOUND)
