"""Markdown into quotable one-line passages, knowledge documents into sections, links between notes. Pure."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import groupby, pairwise, zip_longest
from typing import Literal

from panda.documents.text import one_line
from panda.language.sentences import split_sentences
from panda.language.words import FUNCTION_WORDS

_HEADING = re.compile(r"^ {0,3}(#{1,6})\s++(.*)$")
_UNDERLINE = re.compile(r"^ {0,3}(?:=+|-{3,})\s*$")
_FENCE = re.compile(r"^\s*(```+|~~~+)")
_LIST_ITEM = re.compile(r"^\s*(?:[-*+•]|(?P<number>\d{1,3})[.)])\s+(?P<text>.*)$")
_TABLE_RULE = re.compile(r"^\s*+(?:\|\s*+)?:?-++:?\s*+(?:\|\s*+:?-++:?\s*+)*+\|?\s*+$")
_CELL_EDGE = re.compile(r"(?<!\\)\|")
_RULE = re.compile(r"^\s*+([-*_])(?:\s*+\1){2,}+\s*+$")
_COMMENT = re.compile(r"^\s*<!--.*-->\s*$")
_CLOSED = (".", "!", "?", "…", ":", ";")
_WRAP_CHARS = 60  # text is broken into lines for lack of room at this width or more
_UNFINISHED_CHARS = 40  # a line of this length may go on in one that begins with a small letter
_WHOLE_CHARS = 160  # a line among lines is quoted whole up to this length
_HEAD_WORDS = 6

Form = Literal["sentence", "line", "item", "row", "code"]


@dataclass(frozen=True)
class Passage:
    """One sentence, line, list item, table row or line of code."""

    text: str  # one line, as it stands in the document
    line: int  # line where it begins, from 1
    headings: tuple[str, ...]  # headings it stands under, outermost first
    form: Form = "sentence"  # what it is: a line is one of a paragraph whose lines stand for themselves
    list_line: int | None = None
    """Line where the list, table or run of lines begins that it belongs to; None if it belongs to none."""
    heads_line: int | None = None
    """Line where the list begins that it introduces, as "Hotels:" does; None if it does not."""
    number: int | None = None  # its number in a numbered list


def split_passages(markdown: str) -> list[Passage]:
    """
    The passages of a markdown text, in order.

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
    """Cuts one text."""

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
                self._head(len(heading.group(1)), heading.group(2).rstrip().rstrip("#").rstrip())
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
    before = line.rsplit(maxsplit=1)
    if line.endswith(",") or (len(before) > 1 and before[1].lower() in FUNCTION_WORDS):
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


LONG_CHARS = 6_000
"""A longer document is found by section, and a longer section is cut into parts: about 1,500 tokens."""


@dataclass(frozen=True)
class KnowledgeSection:
    """What stands below one heading of a document, or a part of it."""

    anchor: str
    """Names it within the document, as "visa-rules"; "visa-rules-2" below the second heading of that name,
    "visa-rules~2" for the second part of a long section. No length changes the name of another section."""
    headings: tuple[str, ...]  # headings it stands under, outermost first
    passages: tuple[Passage, ...]  # its passages in order
    former: str  # what turns of before called it: parts and headings of one name were counted together

    @property
    def text(self) -> str:
        """Its passages, a line each."""
        return "\n".join(passage.text for passage in self.passages)


@lru_cache(maxsize=4)
def split_knowledge(body: str) -> tuple[KnowledgeSection, ...]:
    """
    The sections of a document. The last ones are kept, since a turn asks for each section of a note.

    Returns:
        Sections in order, each with another anchor; () if there is no text.

    >>> [section.anchor for section in split_knowledge("# A\\nOne.\\n## B\\nTwo.\\n# A\\nThree.")]
    ['a', 'b', 'a-2']
    >>> long = "# A\\n" + "Bring a passport. " * 400 + "\\n# B\\nOnce more.\\n# A\\nThree."
    >>> [(section.anchor, section.former) for section in split_knowledge(long)]
    [('a', 'a'), ('a~2', 'a-2'), ('b', 'b'), ('a-2', 'a-3')]
    """
    found: list[KnowledgeSection] = []
    taken: dict[str, int] = {}
    taken_before: dict[str, int] = {}
    for headings, group in groupby(split_passages(body), key=lambda passage: passage.headings):
        anchor = _free(_slug(headings), taken)
        for n, part in enumerate(_parts(list(group)), 1):
            former = _free(_slug(headings), taken_before)
            name = anchor if n == 1 else f"{anchor}~{n}"
            found.append(KnowledgeSection(name, headings, tuple(part), former))
    return tuple(found)


def section_named(sections: Sequence[KnowledgeSection], anchor: str) -> KnowledgeSection | None:
    """The section of an anchor, of today or of before; None if there is none."""
    by_name = {one.former: one for one in sections} | {one.anchor: one for one in sections}
    return by_name.get(anchor)


def _parts(passages: Sequence[Passage]) -> Iterator[list[Passage]]:
    """Passages in runs of at most LONG_CHARS."""
    part: list[Passage] = []
    size = 0
    for passage in passages:
        if part and size + len(passage.text) > LONG_CHARS:
            yield part
            part, size = [], 0
        part.append(passage)
        size += len(passage.text)
    yield part


def _slug(headings: Sequence[str]) -> str:
    """As web pages name headings: lower-case words with hyphens."""
    words = re.findall(r"\w+", one_line(headings[-1]).lower()) if headings else []
    return "-".join(words) or "text"


def _free(anchor: str, taken: dict[str, int]) -> str:
    """An anchor with the next number that is free; *taken* has the last number of each."""
    number = taken.get(anchor, 0) + 1
    while (name := anchor if number == 1 else f"{anchor}-{number}") in taken:
        number += 1
    taken[anchor] = number
    taken.setdefault(name, 1)
    return name


_LINK = re.compile(
    r"(?<![\w\])])!?\[\[(?P<note>[^\[\]|#^\n]*)(?:[#^](?P<part>[^\[\]|\n]*))?(?:\|(?P<shown>[^\[\]\n]*))?\]\]"
)


def find_wikilinks(text: str) -> list[str]:
    """
    The notes that a text links to, each once, in order.

    Returns:
        Names or paths as written, without headings; links within the note itself are left out.

    >>> find_wikilinks("See [[Trips/Bergen#Hotels|the hotels]], [[Money]] and [[#Below]]; again [[Money]].")
    ['Trips/Bergen', 'Money']
    """
    names = (match["note"].strip().removesuffix("\\") for match in _LINK.finditer(text))
    return list(dict.fromkeys(name for name in names if name))


def spell_out_wikilinks(text: str) -> str:
    """
    A text with its links as a reader sees them.

    >>> spell_out_wikilinks("Ask [[People/Nora|Nora]] about [[Money#Rent]].")
    'Ask Nora about Money: Rent.'
    >>> spell_out_wikilinks("No [link], no a[[0]]")
    'No [link], no a[[0]]'
    """
    return _LINK.sub(_shown, text)


def is_only_wikilinks(text: str) -> bool:
    """
    Whether a text says nothing beside its links.

    >>> is_only_wikilinks("[[Money]], [[Trips]]."), is_only_wikilinks("See [[Money]]"), is_only_wikilinks("")
    (True, False, False)
    """
    rest, links = _LINK.subn("", text)
    return links > 0 and not any(char.isalnum() for char in rest)


def _shown(match: re.Match[str]) -> str:
    note = match["note"].removesuffix("\\").strip()
    return (match["shown"] or "").strip() or ": ".join(filter(None, [note, (match["part"] or "").strip()]))
