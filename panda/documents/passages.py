"""Markdown into quotable one-line passages with their line numbers."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise, zip_longest
from typing import Literal

from panda.documents.sentences import one_line
from panda.language.lexicon import FUNCTION_WORDS
from panda.language.sentences import split_sentences

_HEADING = re.compile(r"^ {0,3}(#{1,6})\s+(.*?)\s*#*\s*$")
_UNDERLINE = re.compile(r"^ {0,3}(?:=+|-{3,})\s*$")
_FENCE = re.compile(r"^\s*(```+|~~~+)")
_LIST_ITEM = re.compile(r"^\s*(?:[-*+•]|(?P<number>\d{1,3})[.)])\s+(?P<text>.*)$")
_TABLE_RULE = re.compile(r"^\s*\|?\s*:?-+:?\s*(?:\|\s*:?-+:?\s*)*\|?\s*$")
_CELL_EDGE = re.compile(r"(?<!\\)\|")
_RULE = re.compile(r"^\s*([-*_])(?:\s*\1){2,}\s*$")
_COMMENT = re.compile(r"^\s*<!--.*-->\s*$")
_CLOSED = (".", "!", "?", "…", ":", ";")
_WRAP_CHARS = 60
"""Text is broken into lines for lack of room at this width or more."""
_UNFINISHED_CHARS = 40
"""A line of this length may go on in one that begins with a small letter."""
_WHOLE_CHARS = 160
"""A line among lines is quoted whole up to this length."""
_HEAD_WORDS = 6

Form = Literal["sentence", "line", "item", "row", "code"]


@dataclass(frozen=True)
class Passage:
    """One sentence, line, list item, table row or line of code."""

    text: str
    """One line, as it stands in the document."""
    line: int
    """Line where it begins, from 1."""
    headings: tuple[str, ...]
    """Headings it stands under, outermost first."""
    form: Form = "sentence"
    """What it is: a line is one of a paragraph whose lines stand for themselves."""
    list_line: int | None = None
    """Line where the list, table or run of lines begins that it belongs to; None if it belongs to none."""
    heads_line: int | None = None
    """Line where the list begins that it introduces, as "Hotels:" does; None if it does not."""
    number: int | None = None
    """Its number in a numbered list."""


def split_passages(markdown: str) -> list[Passage]:
    """
    The passages of a markdown text, in order.

    Args:
        markdown: Any text; may be empty.

    Returns:
        Sentences of running text, lines that stand for themselves, whole list items, table rows as
        "Header: cell; Header: cell", and lines of fenced code. Headings, rules and comments are no passages;
        headings are kept with what is below.

    >>> [p.text for p in split_passages("# Laptops\\nTwo found. Both\\nare fine.\\n\\n- LOQ 15\\n- TUF A15")]
    ['Two found.', 'Both are fine.', 'LOQ 15', 'TUF A15']
    >>> [p.text for p in split_passages("May 12: dentist\\nMay 20: optician, old glasses")]
    ['May 12: dentist', 'May 20: optician, old glasses']
    >>> [p.text for p in split_passages("| Product | Price |\\n|---|---|\\n| LOQ 15 | $697 |")]
    ['Product: LOQ 15; Price: $697']
    """
    found = list(_Splitter(markdown.split("\n")).passages())
    return [
        replace(one, heads_line=following.list_line) if _introduces(one, following) else one
        for one, following in zip_longest(found, found[1:])
    ]


def _introduces(one: Passage, following: Passage | None) -> bool:
    if following is None or following.list_line is None or following.headings != one.headings:
        return False
    is_short = len(one.text.split()) <= _HEAD_WORDS and not one.text.endswith(_CLOSED)
    return one.list_line is None and (is_short or one.text.endswith(":"))


class _Splitter:
    """
    Cuts one text.

    Args:
        lines: Its lines.
    """

    def __init__(self, lines: Sequence[str]) -> None:
        self._lines = [line.rstrip("\r") for line in lines]
        self._headings: list[tuple[int, str]] = []
        self._held: list[tuple[int, str]] = []
        self._item: re.Match[str] | None = None  # what is held is this item
        self._list_line: int | None = None
        self._last_number = 0
        self._table: list[str] | None = None  # cells of its head, [] without

    def passages(self) -> Iterator[Passage]:
        """All passages."""
        fence: str | None = None
        for number, line in enumerate(self._lines, 1):
            mark = _FENCE.match(line)
            if fence is not None:
                if mark and mark.group(1).startswith(fence) and not line.strip().strip(fence[0]):
                    fence = None
                elif line.strip():
                    yield self._passage(one_line(line), number, "code", self._list_line)
                continue
            is_row = self._is_row(number, line)
            if not is_row:
                self._table = None
            if mark:
                yield from self._flush()
                fence = mark.group(1)
            elif heading := _HEADING.match(line):
                yield from self._flush()
                self._head(len(heading.group(1)), heading.group(2))
            elif self._is_underline(line):
                self._head(1 if "=" in line else 2, one_line(self._held.pop()[1]))
            elif is_row:
                yield from self._flush()
                yield from self._row(number, line)
            elif not line.strip() or _RULE.match(line) or _COMMENT.match(line):
                yield from self._flush()
            elif item := _LIST_ITEM.match(line):
                yield from self._flush()
                self._begin_item(number, item)
            else:
                if self._item and not (line[0].isspace() or _goes_on(self._held[-1][1], line)):
                    yield from self._flush()
                if not self._held:
                    self._list_line = None
                self._held.append((number, line))
        yield from self._flush()

    def _passage(
        self, text: str, line: int, form: Form, list_line: int | None = None, number: int | None = None
    ) -> Passage:
        path = tuple(title for _, title in self._headings)
        return Passage(text, line, path, form, list_line, number=number)

    def _head(self, depth: int, title: str) -> None:
        self._headings = [*(one for one in self._headings if one[0] < depth), (depth, title)]
        self._list_line = None

    def _is_underline(self, line: str) -> bool:
        """Whether a line makes the one line above it a heading."""
        if len(self._held) != 1 or self._item or not _UNDERLINE.match(line):
            return False
        above = self._held[0][1]
        return "=" in line or (len(above.split()) <= _HEAD_WORDS and not above.rstrip().endswith(_CLOSED))

    def _begin_item(self, number: int, item: re.Match[str]) -> None:
        numbered = int(item["number"]) if item["number"] else 0
        is_deeper = item[0][0].isspace()
        if self._list_line is None or (numbered == 1 and self._last_number and not is_deeper):
            self._list_line = number
        if not is_deeper:
            self._last_number = numbered
        self._held.append((number, item["text"]))
        self._item = item

    def _is_row(self, number: int, line: str) -> bool:
        if line.lstrip().startswith("|"):
            return line.count("|") >= 2
        return "|" in line and (self._table is not None or self._is_ruled(number))

    def _is_ruled(self, number: int) -> bool:
        """Whether a table's rule stands below a line."""
        below = self._lines[number] if number < len(self._lines) else ""
        return "|" in below and _TABLE_RULE.match(below) is not None

    def _row(self, number: int, line: str) -> Iterator[Passage]:
        cells = [one_line(cell) for cell in _CELL_EDGE.split(line.strip().strip("|"))]
        if self._is_ruled(number) or self._table is None:
            self._list_line = number
            self._table = cells if self._is_ruled(number) else []
            if self._table:
                return
        if not _TABLE_RULE.match(line):
            yield self._passage(_row_text(self._table, cells), number, "row", self._list_line)

    def _flush(self) -> Iterator[Passage]:
        """The passages of what is held: an item or a paragraph."""
        held, item = self._held, self._item
        self._held, self._item = [], None
        if not held:
            return
        at = held[0][0]
        if item:
            text = one_line(" ".join(line for _, line in held))
            numbered = int(item["number"]) if item["number"] else None
            if text:
                yield self._passage(text, at, "item", self._list_line, numbered)
            return
        runs = _runs(held)
        begins = 1 if len(runs) > 1 and runs[0][1].endswith(":") else 0
        listed = runs[begins:]
        if len(listed) < 2 or any(len(text) > _WHOLE_CHARS for _, text in listed):
            begins = len(runs)
        for n, (line, text) in enumerate(runs):
            if n >= begins:
                yield self._passage(text, line, "line", runs[begins][0])
            else:
                for sentence in _sentences(text):
                    yield self._passage(sentence, line, "sentence")


def _runs(held: Sequence[tuple[int, str]]) -> list[tuple[int, str]]:
    """The lines of a paragraph, those joined that were broken for lack of room, with their numbers."""
    lines = [line.strip() for _, line in held]
    width = max(map(len, lines))
    full = (len(one) + len(following.split()[0]) >= width for one, following in pairwise(lines))
    is_wrapped = len(lines) > 2 and width >= _WRAP_CHARS and all(full)
    runs: list[tuple[int, str]] = []
    for (number, _), line in zip(held, lines, strict=True):
        if runs and (is_wrapped or _goes_on(runs[-1][1], line)):
            runs[-1] = (runs[-1][0], f"{runs[-1][1]} {line}")
        else:
            runs.append((number, line))
    return [(number, one_line(text)) for number, text in runs]


def _goes_on(line: str, following: str) -> bool:
    """Whether a sentence of one line goes on in the next."""
    line, following = line.strip(), following.lstrip()
    if not line or line.endswith(_CLOSED):
        return False
    if line.endswith(",") or (len(line.split()) > 1 and line.split()[-1].lower() in FUNCTION_WORDS):
        return True
    is_word = following[:1].islower() and following.split()[0].rstrip(".,;:!?)").isalpha()
    return is_word and (len(line) >= _UNFINISHED_CHARS or len(split_sentences(line)) > 1)


def _sentences(text: str) -> list[str]:
    """The sentences of a paragraph; one of a single word stays with the one before, which it is about."""
    found: list[str] = []
    for sentence in split_sentences(text):
        if found and sentence.endswith(".") and len(sentence.split()) == 1:
            found[-1] += f" {sentence}"
        else:
            found.append(sentence)
    return found


def _row_text(header: Sequence[str], cells: Sequence[str]) -> str:
    if len(header) != len(cells):
        return "; ".join(cell for cell in cells if cell)
    return "; ".join(
        f"{name}: {cell}" if name else cell for name, cell in zip(header, cells, strict=True) if cell
    )
