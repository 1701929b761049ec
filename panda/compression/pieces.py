"""A document as pieces that are kept or dropped, and the text that the kept ones make."""

import re
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal, get_args

from panda.documents.context import SECTIONS, heading
from panda.documents.markdown import CELL_EDGE, read_blocks, split_cells
from panda.documents.text import one_line
from panda.language.dates import DATES
from panda.language.numbers import CURRENCY_BEFORE, DIGITS
from panda.language.patterns import lazy_pattern
from panda.language.text import sentence_spans
from panda.language.words import phrases

MARK = "[…]"
"""Stands where something was left out."""

ContentType = Literal["context.md", "research.md", "page_doc", "tool_result", "prior_turn", "generic"]
CONTENT_TYPES: tuple[ContentType, ...] = get_args(ContentType)

Kind = Literal[
    "front",  # front matter
    "heading",
    "label",  # what a line begins with: a list mark, a speaker
    "sentence",  # or a part of one
    "table_head",  # header row and rule
    "row",
    "fence",  # the line that opens or closes a fence
    "code",
    "meta",  # a whole `_meta` fence
    "field",  # a value of a JSON document with its key
]
WORDED_DATE = r"(?<![\d.,])\d{1,2}\.?\s(?:de\s)?[^\W\d_]{3,10}\.?,?\s(?:de\s)?(?:19|20)\d\d(?!\d)"
"""A day with its month as a word, in whatever language, and its year."""

_LONG_CHARS = 110
"""A sentence up to here stays whole, but for the price, URL or date in it …"""
_WHOLE_CHARS = 48
"""… for which it is not cut up to here."""
_CLAUSE_CHARS, _MOST_CHARS, _CRUMB_CHARS = 42, 112, 10
_LONG_CELL_CHARS = 48
_WIDE = "\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff\uff00-\uffef"
_VALUE = rf"""
    \[[^\]\n]{{0,80}}\]\(\S+?://[^\s)]*\)     # a link
  | (?i:(?<![a-z0-9+.-])[a-z][a-z0-9+.-]*://[^\s<>"`|]+)
  | {DATES}
  | {WORDED_DATE}
  | (?<![A-Za-z]){CURRENCY_BEFORE}[ ]?(?:{DIGITS})
  | (?:{DIGITS})\s?(?:[€£¥₽円元]|(?i:USD|EUR|GBP|JPY|dollars?|euros?|руб)\b)
"""
_BREAK = rf"""\s+(?=\S) | (?<=\d),(?=[-+]?\d) | (?<=[{_WIDE}])(?=[{_WIDE}]) | (?<=[\]}}"]),(?=[\[{{"])"""
_HAS_VALUE = lazy_pattern(_VALUE, re.VERBOSE)
_VALUE_OR_BREAK = lazy_pattern(rf"(?P<value>{_VALUE}) | {_BREAK}", re.VERBOSE)
_MAY_HAVE_VALUE = lazy_pattern(r"\d|://")
_NEGATED = lazy_pattern(phrases("marks.txt", "negations").pattern + r"\s+(?:\S+\s+){0,2}\Z", re.IGNORECASE)
_CLAUSE_END = lazy_pattern(r"[,;:)—–、，；：。|]")
_BESIDE_VALUE = lazy_pattern(r"[\d$€£¥₽₹%#]")
_DAY_END = lazy_pattern(r"(?<![\d.,])\d{1,2}\.\Z")
_MONTH = lazy_pattern(r"[^\W\d_]{3,10}\.? (?:19|20)\d\d(?!\d)")
_LABEL = lazy_pattern(r"\s*(?:[-*+•]|\d{1,3}[.)])\s+(?=\S)|\s*>\s?")
_SPEAKER = lazy_pattern(
    r"\s*(?:\*\*)?[^\W\d][\w.'’-]*(?: [^\W\d][\w.'’-]*){0,2}(?: \([^)]{1,20}\))?:(?:\*\*)?\s+(?=\S)"
)
_SECTIONS = {heading(kind.number): kind.number for kind in SECTIONS}
_FRONT_LINES = 60


@dataclass(frozen=True, slots=True)
class Piece:
    """A stretch of a document that is kept whole or dropped whole."""

    start: int  # index of its first character in the source
    end: int  # index behind its last
    kind: Kind  # what it is
    text: str  # what it says, as a reader sees it
    line: int  # pieces of the same line or paragraph share this number
    unit: int  # pieces of the same sentence, row or value share this number
    heads: Sequence[int] = ()
    """Pieces that must stand where this one stands: heading, label, what introduces a list, table head, both
    lines of a fence. It may be among them."""
    section: int | None = None  # number of the section of context.md that it stands in
    path: tuple[str, ...] = ()  # headings, or keys of a JSON document, that it stands under
    confidence: float | None = None  # 0 to 1, as the innermost object of a JSON document has it


Wordings = Mapping[int, tuple[int, str]]
"""Other wordings of stretches, by their first piece: the last piece, and the text."""


def with_heads(pieces: Sequence[Piece], kept: Set[int]) -> set[int]:
    """The pieces kept and all the heads that they need."""
    full, left = set(kept), list(kept)
    while left:
        for head in pieces[left.pop()].heads:
            if head not in full:
                full.add(head)
                left.append(head)
    return full


@dataclass(frozen=True)
class TextOutline:
    source: str  # the document
    pieces: Sequence[Piece]  # its pieces in order; between them there is only white space

    def render(self, kept: Set[int], wordings: Wordings | None = None) -> str:
        """The document with only these pieces and the heads they need, `[…]` for each stretch left out."""
        pieces, last = self.pieces, -1
        parts: list[str] = []
        for i in [*sorted(with_heads(pieces, kept)), len(pieces)]:
            if i <= last:  # its stretch is worded anew
                continue
            parts.append(self._space(last, last + 1) if i == last + 1 else self._gap(last, i))
            if i < len(pieces):
                last, text = i, self.source[pieces[i].start : pieces[i].end]
                if wordings and i in wordings:
                    last, text = wordings[i]
                parts.append(text)
        return "".join(parts)

    def text(self, first: int, last: int) -> str:
        """What stands from one piece to another."""
        return self.source[self.pieces[first].start : self.pieces[last].end]

    def _space(self, left: int, right: int) -> str:
        """The white space between two neighbours; -1 and the number of pieces are the ends of the text."""
        end = self.pieces[right].start if right < len(self.pieces) else len(self.source)
        return self.source[self.pieces[left].end if left >= 0 else 0 : end]

    def _gap(self, last: int, following: int) -> str:
        pieces, mark = self.pieces, MARK
        is_begin, is_end = last < 0, following == len(pieces)
        left, right = self._space(last, last + 1), self._space(following - 1, following)
        left = left if is_begin or "\n" in left else " "
        right = right if is_end or "\n" in right else " "
        if is_begin:
            return mark + right
        before, after = pieces[last], None if is_end else pieces[following]
        if before.kind in ("row", "table_head") and (after is None or after.line != before.line):
            if pieces[last + 1].kind == "row" and before.line != pieces[last + 1].line:
                head = before if before.kind == "table_head" else pieces[before.heads[-1]]
                mark = f"| {MARK} |" + " |" * (len(split_cells(head.text.split("\n", 1)[0])) - 1)
                if after is not None and after.kind != "row" and right.count("\n") < 2:
                    right = "\n\n"
            elif left.count("\n") < 2:
                left += "\n"
        return left + mark + right


def has_value(text: str) -> bool:
    """Whether a price, URL or date stands in a text."""
    return bool(_MAY_HAVE_VALUE.search(text) and _HAS_VALUE.search(text))


def prose_spans(source: str, start: int, end: int) -> Iterator[list[tuple[int, int]]]:
    """At least one sentence, each as one stretch or, if it is long, several."""
    text = source[start:end]
    spans: list[tuple[int, int]] = []
    for first, last in sentence_spans(text) or [(0, end - start)]:
        if spans and _MONTH.match(text, first) and _DAY_END.search(text, spans[-1][1] - 4, spans[-1][1]):
            spans[-1] = (spans[-1][0], last)  # a date such as "5. Mai 2024" is no end
        else:
            spans.append((first, last))
    for first, last in spans:
        yield list(chunk_spans(source, start + first, start + last))


def chunk_spans(source: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """
    A line cut into stretches of about 70 characters where it is long, at the ends of clauses if it has any.
    Never within a word, and not beside a number, so that no stretch says what the line does not; only a long
    row of numbers is cut, between two of them. A line without a blank stays whole. What holds a price, URL or
    date is cut around it, so that this can stay when the room is too small for all that is said about it.
    """
    is_long = end - start > _LONG_CHARS
    if not is_long and (end - start <= _WHOLE_CHARS or not _MAY_HAVE_VALUE.search(source, start, end)):
        yield start, end
        return
    cuts: list[tuple[int, int, bool]] = []  # and whether it is one in a row of numbers
    edges: set[int] = set()
    free, is_behind_value = -1, False  # the last cut beside no number
    for match in _VALUE_OR_BREAK.finditer(source, start, end):
        left, right = match.span()
        if match["value"]:
            negated = _NEGATED.search(source, max(start, left - 40), left)
            while negated and free >= 0 and cuts[free][1] > negated.start():  # what it denies goes with it
                free -= 1
            edges.add(free)
            is_behind_value = True
        elif not (_BESIDE_VALUE.match(source, left - 1) or _BESIDE_VALUE.match(source, right)):
            free = len(cuts)
            edges |= {free} if is_behind_value else set()
            is_behind_value = False
            cuts.append((left, right, False))
        elif source[right] in "0123456789+-" and source[left - 1] in "0123456789,;":
            cuts.append((left, right, True))
    begin = start
    for n, (left, right, is_row) in enumerate(cuts):
        chars = left - begin
        if is_row:
            is_cut = chars > 2 * _MOST_CHARS
        elif n in edges:
            is_cut = chars >= _CRUMB_CHARS
        else:
            is_clause = chars > _CLAUSE_CHARS and _CLAUSE_END.match(source, left - 1) is not None
            is_cut = is_long and (is_clause or chars > _MOST_CHARS)
        if is_cut and end - right >= _CRUMB_CHARS:
            yield begin, left
            begin = right
    yield begin, end


def parse_text(source: str, *, lines_alone: bool = False) -> TextOutline:
    r"""
    The pieces of a Markdown or plain text of any length; all of them render the text itself. With
    *lines_alone* no sentence goes over the end of a line, as in a log.

    >>> outline = parse_text("# Laptops\n\nTwo found. Both\nare fine.\n\n- LOQ 15\n- TUF A15\n")
    >>> [piece.text for piece in outline.pieces]
    ['# Laptops', 'Two found.', 'Both are fine.', '- LOQ 15', '- TUF A15']
    >>> outline.render({1, 4})
    '# Laptops\n\nTwo found. […]\n- TUF A15\n'
    """
    return TextOutline(source, tuple(_Parser(source, lines_alone).run()))


class _Parser:
    def __init__(self, source: str, lines_alone: bool) -> None:
        self.source, self.lines_alone = source, lines_alone
        self.lines = [match.span() for match in re.finditer(r"(?m)^.*$", source)]
        self.pieces: list[Piece] = []
        self.above: tuple[int, ...] = ()  # the heading
        self.intro: tuple[int, ...] = ()  # and what introduces the list that may follow
        self.section: int | None = None
        self.path: list[tuple[int, str]] = []
        self.line = self.unit = 0

    def run(self) -> list[Piece]:
        marks = [i for i in range(min(len(self.lines), _FRONT_LINES)) if self._text(i).rstrip() == "---"]
        top = marks[1] + 1 if len(marks) > 1 and marks[0] == 0 else 0
        if top:
            self._add(0, self.lines[top - 1][1], "front")
        for block in read_blocks(self.source[self.lines[top][0] :] if top < len(self.lines) else ""):
            first, end = top + block.first, top + block.end
            self.line += 1
            if block.kind not in ("item", "text"):
                self.intro = ()
            if block.kind == "heading":
                text = self._text(first).strip()
                if text in _SECTIONS:
                    self.section, self.path = _SECTIONS[text], []
                self.path = [*(at for at in self.path if at[0] < block.depth), (block.depth, block.title)]
                self.above = ()
                self.above = (self._add(self.lines[first][0], self.lines[end - 1][1], "heading"),)
            elif block.kind == "fence":
                self._fence(first, end, block.is_closed)
            elif block.kind == "table" and block.is_ruled:
                head = self._add(self.lines[first][0], self.lines[first + 1][1], "table_head")
                for i in range(first + 2, end):
                    self.line += 1
                    self._row(*self.lines[i], head)
            else:
                self._parts(first, end, block.kind)
        return self.pieces

    def _text(self, i: int) -> str:
        return self.source[slice(*self.lines[i])]

    def _add(
        self, start: int, end: int, kind: Kind, *, heads: Sequence[int] | None = None, unit: bool = True
    ) -> int:
        """Add a piece less the white space behind it; returns its index."""
        text = self.source[start:end].rstrip()
        self.unit += unit
        shown = one_line(text) if kind == "sentence" else text
        path = tuple(title for _, title in self.path)
        heads = self.above if heads is None else heads
        at = Piece(start, start + len(text), kind, shown, self.line, self.unit, heads, self.section, path)
        self.pieces.append(at)
        return len(self.pieces) - 1

    def _fence(self, first: int, end: int, is_closed: bool) -> None:
        if is_closed and self.source.startswith("```yaml\n_meta:", self.lines[first][0]):
            self._add(self.lines[first][0], self.lines[end - 1][1], "meta")
            return
        both = [*self.above, len(self.pieces)]
        self._add(*self.lines[first], "fence", heads=both)
        for i in range(first + 1, end - is_closed):
            if self._text(i).strip():
                self.line += 1
                for n, (start, stop) in enumerate(chunk_spans(self.source, *self.lines[i])):
                    self._add(start, stop, "code", heads=both, unit=n == 0)
        if is_closed:
            both.append(self._add(*self.lines[end - 1], "fence", heads=both))

    def _row(self, start: int, end: int, head: int) -> None:
        """A row as one piece; of a long one the text of its long cells apart, which needs the rest."""
        edges = [start + match.start() for match in CELL_EDGE.finditer(self.source[start:end])]
        cells: list[tuple[int, int]] = []
        if end - start > _LONG_CHARS and edges and self.source[start : edges[0]].strip() == "":
            for left, right in pairwise(edges):
                text = self.source[left + 1 : right]
                if len(text) > _LONG_CELL_CHARS and not has_value(text):
                    cells.append((right - len(text.lstrip()), right))
        frame, unit = [*self.above], self.unit + 1
        begin = start
        for left, right in [*cells, (end, end)]:
            self.unit = unit - 1  # the frame is one unit
            frame.append(self._add(begin, left, "row", heads=frame))
            self.unit = unit + 1 + len(self.pieces)
            if left < right:
                self._add(left, right, "sentence", heads=frame)
                begin = right
        frame.append(head)

    def _parts(self, first: int, end: int, kind: str) -> None:
        """Lines of text: each item, speaker's line and row begins another part."""
        width = max(self.lines[i][1] - self.lines[i][0] for i in range(first, end))
        begin = first
        for i in range(first + 1, end + 1):
            if i == end or kind == "table" or self._begins_part(i, width):
                self._part(self.lines[begin][0], self.lines[i - 1][1], is_item=kind == "item")
                begin = i

    def _begins_part(self, i: int, width: int) -> bool:
        text, before = self._text(i), self._text(i - 1)
        if self.lines_alone or _LABEL.match(text) or _SPEAKER.match(text):
            return True
        is_short = len(before) < 0.6 * width or before.endswith(("  ", "\\"))
        return is_short or text.lstrip()[:1] in "[({<|#@$%&0123456789"

    def _part(self, start: int, stop: int, *, is_item: bool) -> None:
        self.line += 1
        match = _LABEL.match(self.source, start, stop)
        label = match.end() if match else start
        speaker = _SPEAKER.match(self.source, label, stop)
        label = speaker.end() if speaker else label
        spans = list(prose_spans(self.source, label, stop))
        heads = [*self.above, *(self.intro if is_item else ())]
        if label > start and (len(spans) > 1 or len(spans[0]) > 1):
            heads.append(self._add(start, label, "label", heads=tuple(heads)))
        else:
            spans[0][0] = (start, spans[0][0][1])
        first = len(self.pieces)
        for sentence in spans:
            for n, (left, right) in enumerate(sentence):
                self._add(left, right, "sentence", heads=heads, unit=n == 0)
        if not is_item:
            is_intro = len(self.pieces) - first == 1 and self.pieces[-1].text.endswith(":")
            self.intro = (first,) if is_intro else ()
