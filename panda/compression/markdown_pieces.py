"""Markdown and plain text into pieces: headings, sentences, list items, table rows, lines of code."""

import re
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise

from panda.compression.line_pieces import LONG_CHARS, chunk_spans, has_value, prose_spans
from panda.compression.pieces import Kind, Piece, TextOutline
from panda.documents.context import SECTIONS, heading

_HEADING = re.compile(r" {0,3}#{1,6}\s+\S")
_UNDERLINE = re.compile(r" {0,3}(=+|-+)\s*$")
_FENCE = re.compile(r"\s*(?:[-*+]\s+)?(`{3,}(?=[^`]*$)|~{3,})")
_ITEM = re.compile(r"\s*(?:[-*+•]|\d{1,3}[.)])\s+(?=\S)|\s*>\s?")
_SPEAKER = re.compile(
    r"\s*(?:\*\*)?[^\W\d][\w.'’-]*(?: [^\W\d][\w.'’-]*){0,2}(?: \([^)]{1,20}\))?:(?:\*\*)?\s+(?=\S)"
)
_PIPE = re.compile(r"(?<!\\)\|")
_LONG_CELL_CHARS = 48
_TABLE_RULE = re.compile(r"\s*\|?\s*:?-+:?\s*(?:\|\s*:?-+:?\s*)+\|?\s*$|\s*\|\s*:?-+:?\s*\|\s*$")
_RULE = re.compile(r"\s*([-*_=])(?:\s*\1){2,}\s*$")
_SECTIONS = {heading(kind.number): kind.number for kind in SECTIONS}


def parse_text(source: str, *, lines_alone: bool = False) -> TextOutline:
    r"""
    The pieces of a Markdown or plain text.

    Args:
        source: Any text; of any length, read in linear time.
        lines_alone: Whether no sentence goes over the end of a line, as in a log.

    Returns:
        An outline that renders *source* itself when all pieces are kept.

    >>> outline = parse_text("# Laptops\n\nTwo found. Both\nare fine.\n\n- LOQ 15\n- TUF A15\n")
    >>> [piece.text for piece in outline.pieces]
    ['# Laptops', 'Two found.', 'Both are fine.', '- LOQ 15', '- TUF A15']
    >>> outline.render({1, 4})
    '# Laptops\n\nTwo found. […]\n- TUF A15\n'
    """
    return TextOutline(source, tuple(_Parser(source, lines_alone).run()))


class _Parser:
    def __init__(self, source: str, lines_alone: bool) -> None:
        self.source = source
        self.lines_alone = lines_alone
        self.lines = list(_line_spans(source))
        self.pieces: list[Piece] = []
        self.heading: int | None = None
        self.section: int | None = None
        self.path: list[tuple[int, str]] = []
        self.line = 0
        self.unit = 0

    def run(self) -> list[Piece]:
        i = self._front()
        while i < len(self.lines):
            text = self._text(i)
            if not text.strip():
                i += 1
            elif _FENCE.match(text):
                i = self._fence(i)
            elif _HEADING.match(text):
                i = self._heading(i, 1, len(text) - len(text.lstrip(" #")))
            elif self._is_table(i):
                i = self._table(i)
            else:
                i = self._paragraph(i)
        return self.pieces

    def _text(self, i: int) -> str:
        start, end = self.lines[i]
        return self.source[start:end]

    def _add(
        self, start: int, end: int, kind: Kind, *, heads: tuple[int, ...] = (), unit: bool = True
    ) -> int:
        """Add a piece less the white space behind it; returns its index."""
        text = self.source[start:end]
        end = start + len(text.rstrip())
        self.unit += unit
        above = () if self.heading is None else (self.heading,)
        said = " ".join(text.split()) if kind == "sentence" else text.rstrip()
        path = tuple(title for _, title in self.path)
        piece = Piece(start, end, kind, said, self.line, self.unit, (*above, *heads), self.section, path)
        self.pieces.append(piece)
        return len(self.pieces) - 1

    def _front(self) -> int:
        if not self.lines or self._text(0).rstrip() != "---":
            return 0
        for i in range(1, min(len(self.lines), 60)):
            if self._text(i).rstrip() == "---":
                self._add(self.lines[0][0], self.lines[i][1], "front")
                return i + 1
        return 0

    def _heading(self, i: int, lines: int, depth: int) -> int:
        text = self._text(i).strip()
        if text in _SECTIONS:
            self.section, self.path = _SECTIONS[text], []
        self.path = [*(one for one in self.path if one[0] < depth), (depth, text.strip("# "))]
        self.heading, self.line = None, self.line + 1
        self.heading = self._add(self.lines[i][0], self.lines[i + lines - 1][1], "heading")
        return i + lines

    def _fence(self, i: int) -> int:
        match = _FENCE.match(self._text(i))
        assert match is not None
        mark = match.group(1)
        end = next(
            (k for k in range(i + 1, len(self.lines)) if _closes(mark, self._text(k))), len(self.lines)
        )
        self.line += 1
        if (
            end < len(self.lines)
            and self._text(i).strip() == "```yaml"
            and self._text(i + 1).startswith("_meta:")
        ):
            self._add(self.lines[i][0], self.lines[end][1], "meta")
            return end + 1
        opener = self._add(self.lines[i][0], self.lines[i][1], "fence")
        first = len(self.pieces)
        heads = (opener,)
        for k in range(i + 1, end):
            if self._text(k).strip():
                self.line += 1
                self._long_line(self.lines[k][0], self.lines[k][1], "code", heads)
        if end < len(self.lines):
            closer = self._add(self.lines[end][0], self.lines[end][1], "fence", heads=heads)
            for k in (opener, *range(first, closer)):
                self.pieces[k] = replace(self.pieces[k], heads=(*self.pieces[k].heads, closer))
        return end + 1

    def _is_table(self, i: int) -> bool:
        if i + 1 >= len(self.lines) or not _TABLE_RULE.match(self._text(i + 1)):
            return False
        return "|" in self._text(i)

    def _table(self, i: int) -> int:
        self.line += 1
        head = self._add(self.lines[i][0], self.lines[i + 1][1], "table_head")
        k = i + 2
        while k < len(self.lines) and "|" in self._text(k) and not _FENCE.match(self._text(k)):
            self.line += 1
            self._row(*self.lines[k], head)
            k += 1
        return k

    def _row(self, start: int, end: int, head: int) -> None:
        """A row as one piece; of a long one the text of its long cells apart, which needs the rest."""
        row = self.source[start:end]
        ends = [match.start() for match in _PIPE.finditer(row)]
        closed = len(ends) > 1 and not row[: ends[0]].strip() and not row[ends[-1] + 1 :].strip()
        if len(row) <= LONG_CHARS or not closed:
            self._add(start, end, "row", heads=(head,))
            return
        spans: list[tuple[int, int, Kind]] = []
        begin = start
        for one, other in pairwise(ends):
            text = row[one + 1 : other]
            if len(text) > _LONG_CELL_CHARS and not has_value(text):
                cell = start + one + 1 + len(text) - len(text.lstrip())
                spans += [(begin, start + one + 1, "row"), (cell, start + other, "sentence")]
                begin = start + other
        spans.append((begin, end, "row"))
        first = len(self.pieces)
        frame = [first + n for n, (_, _, kind) in enumerate(spans) if kind == "row"]
        for n, (one, other, kind) in enumerate(spans):
            beside = tuple(i for i in frame if i != first + n)
            self._add(one, other, kind, heads=(*beside, head))
        for i in frame:
            self.pieces[i] = replace(self.pieces[i], unit=self.pieces[first].unit)

    def _paragraph(self, i: int) -> int:
        """Lines up to a blank one or another structure; each list item and speaker begins a new part."""
        if i + 1 < len(self.lines) and _UNDERLINE.match(self._text(i + 1)) and not _ITEM.match(self._text(i)):
            return self._heading(i, 2, 1 if "=" in self._text(i + 1) else 2)
        k = i + 1
        while k < len(self.lines) and not self._begins_structure(k):
            k += 1
        width = max(self.lines[n][1] - self.lines[n][0] for n in range(i, k))
        begin = i
        for n in range(i + 1, k + 1):
            if n == k or self._begins_part(n, width):
                self._part(begin, n)
                begin = n
        return k

    def _begins_structure(self, i: int) -> bool:
        text = self._text(i)
        return not text.strip() or bool(_FENCE.match(text) or _HEADING.match(text)) or self._is_table(i)

    def _begins_part(self, i: int, width: int) -> bool:
        text, before = self._text(i), self.lines[i - 1]
        if self.lines_alone or _ITEM.match(text) or _SPEAKER.match(text) or _RULE.match(text):
            return True
        short = before[1] - before[0] < 0.6 * width or self._text(i - 1).endswith(("  ", "\\"))
        return short or text.lstrip()[:1] in "[({<|#@$%&0123456789" or bool(_RULE.match(self._text(i - 1)))

    def _part(self, first: int, end: int) -> None:
        """One list item, one speaker's line, or running text."""
        start, stop = self.lines[first][0], self.lines[end - 1][1]
        self.line += 1
        match = _ITEM.match(self.source, start, stop)
        label = match.end() if match else start
        speaker = _SPEAKER.match(self.source, label, stop)
        label = speaker.end() if speaker else label
        spans = list(prose_spans(self.source, label, stop))
        heads: tuple[int, ...] = ()
        if label > start and (len(spans) > 1 or len(spans[0]) > 1):
            heads = (self._add(start, label, "label"),)
        else:
            spans[0][0] = (start, spans[0][0][1])
        for sentence in spans:
            for n, (one, other) in enumerate(sentence):
                self._add(one, other, "sentence", heads=heads, unit=n == 0)

    def _long_line(self, start: int, end: int, kind: Kind, heads: tuple[int, ...]) -> None:
        for n, (one, other) in enumerate(chunk_spans(self.source, start, end)):
            self._add(one, other, kind, heads=heads, unit=n == 0)


def _line_spans(source: str) -> Iterator[tuple[int, int]]:
    start = 0
    while start < len(source):
        end = source.find("\n", start)
        end = len(source) if end < 0 else end
        yield start, end
        start = end + 1


def _closes(mark: str, line: str) -> bool:
    text = line.strip()
    return len(text) >= len(mark) and text == mark[0] * len(text)
