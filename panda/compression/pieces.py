"""A document as pieces that are kept or dropped, and the text that the kept ones make."""

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Literal

from panda.compression.documents import MARK
from panda.documents.context import SECTIONS, heading
from panda.documents.markdown import CELL_EDGE, Block, read_blocks, split_cells
from panda.documents.text import one_line
from panda.language.dates import DATES
from panda.language.numbers import CURRENCY_BEFORE, DIGITS
from panda.language.text import sentence_spans
from panda.language.words import phrases

Kind = Literal[
    "front",  # front matter
    "heading",
    "label",  # what a line begins with: a list mark, a speaker
    "sentence",
    "table_head",  # header row and rule
    "row",
    "fence",  # the line that opens or closes a fence
    "code",
    "meta",  # a whole `_meta` fence
    "field",  # a value of a JSON document with its key
]
LONG_CHARS = 110
"""A sentence up to here stays whole."""
_AIM_CHARS = 70
_WIDE = "\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff\uff00-\uffef"
_MOST_CHARS = 4 * _AIM_CHARS
_NEGATED = re.compile(phrases("marks.txt", "negations").pattern + r"\s+(?:\S+\s+){0,2}\Z", re.IGNORECASE)
_BREAK = re.compile(rf"\s+(?=\S)|(?<=[{_WIDE}])(?=[{_WIDE}])|(?<=[\]}}\"]),(?=[\[{{\"])")
_CLAUSE_END = re.compile(r"[,;:)—–、，；：。|]\Z")
_BESIDE_VALUE = re.compile(r"[\d$€£¥₽₹%#]")
_BETWEEN_VALUES = re.compile(r"(?<=\d)[;,\t]?\s+(?=[-+]?\d)|(?<=\d),(?=[-+]?\d)")
WORDED_DATE = r"(?<![\d.,])\d{1,2}\.?\s(?:de\s)?[^\W\d_]{3,10}\.?,?\s(?:de\s)?(?:19|20)\d\d(?!\d)"
"""A day with its month as a word, in whatever language, and its year."""
_DAY_WITH_DOT = re.compile(rf"(?=\d\d?\.){WORDED_DATE}")
_VALUE = re.compile(
    rf"""
    \[[^\]\n]{{0,80}}\]\(\S+?://[^\s)]*\)     # a link
  | (?i:(?<![a-z0-9+.-])[a-z][a-z0-9+.-]*://[^\s<>"`|]+)
  | {DATES}
  | {WORDED_DATE}
  | (?<![A-Za-z]){CURRENCY_BEFORE}[ ]?(?:{DIGITS})
  | (?:{DIGITS})\s?(?:[€£¥₽円元]|(?i:USD|EUR|GBP|JPY|dollars?|euros?|руб)\b)
    """,
    re.VERBOSE,
)
_MAY_HAVE_VALUE = re.compile(r"\d|://")
_WHOLE_CHARS = 48
"""What is no longer is not cut for the price, URL or date in it."""
_CRUMB_CHARS = 10
_LABEL = re.compile(r"\s*(?:[-*+•]|\d{1,3}[.)])\s+(?=\S)|\s*>\s?")
_SPEAKER = re.compile(
    r"\s*(?:\*\*)?[^\W\d][\w.'’-]*(?: [^\W\d][\w.'’-]*){0,2}(?: \([^)]{1,20}\))?:(?:\*\*)?\s+(?=\S)"
)
_LINE = re.compile(r"(?m)^.*$")
_LONG_CELL_CHARS = 48
_SECTIONS = {heading(kind.number): kind.number for kind in SECTIONS}


@dataclass(frozen=True)
class Piece:
    """A stretch of a document that is kept whole or dropped whole."""

    start: int  # index of its first character in the source
    end: int  # index behind its last
    kind: Kind  # what it is
    text: str  # what it says, as a reader sees it
    line: int  # pieces of the same line or paragraph share this number
    unit: int  # pieces of the same sentence, row or value share this number
    heads: tuple[int, ...] = ()
    """Pieces that must stand where this one stands: heading, label, table head, both lines of a fence."""
    section: int | None = None  # number of the section of context.md that it stands in
    path: tuple[str, ...] = ()  # headings, or keys of a JSON document, that it stands under


def with_heads(pieces: Sequence[Piece], kept: Set[int]) -> set[int]:
    """The pieces kept and all the heads that they need."""
    full = set(kept)
    left = list(kept)
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

    def render(self, kept: Set[int]) -> str:
        """The document with only these pieces and the heads they need, `[…]` for each stretch left out."""
        full = self._with_small_gaps(with_heads(self.pieces, kept))
        pieces, source = self.pieces, self.source
        if len(full) == len(pieces):
            return source
        parts: list[str] = []
        last = -1
        for i in sorted(full):
            if i == last + 1:
                parts.append(source[pieces[last].end if i else 0 : pieces[i].start])
            else:
                parts.append(self._gap(last, i))
            parts.append(source[pieces[i].start : pieces[i].end])
            last = i
        if last == len(pieces) - 1:
            parts.append(source[pieces[last].end :])
        else:
            parts.append(self._gap(last, len(pieces)))
        return "".join(parts)

    def _gap(self, last: int, following: int) -> str:
        pieces, source = self.pieces, self.source
        is_end = following == len(pieces)
        left = source[pieces[last].end : pieces[last + 1].start] if last >= 0 else ""
        right = source[pieces[following - 1].end : len(source) if is_end else pieces[following].start]
        mark = MARK
        if last >= 0 and "\n" not in left:
            left = " "
        if not is_end and "\n" not in right:
            right = " "
        if last >= 0 and not is_end and pieces[last].line == pieces[following].line:
            return left + mark + right
        if last >= 0 and pieces[last].kind in ("row", "table_head"):
            if pieces[last + 1].kind == "row":
                head = pieces[last] if pieces[last].kind == "table_head" else pieces[pieces[last].heads[-1]]
                cells = len(split_cells(head.text.split("\n", 1)[0]))
                mark = f"| {MARK} |" + " |" * (cells - 1)
                if not is_end and pieces[following].kind != "row" and right.count("\n") < 2:
                    right = "\n\n"
            elif left.count("\n") < 2:
                left += "\n"
        return left + mark + right

    def _with_small_gaps(self, kept: set[int]) -> set[int]:
        """Also what is no longer than the mark that would stand for it, within a line."""
        pieces = self.pieces
        full = set(kept)
        ordered = sorted(kept)
        for before, after in pairwise(ordered):
            if after == before + 2 and pieces[before].line == pieces[before + 1].line == pieces[after].line:
                between = pieces[before + 1]
                if between.end - between.start <= len(MARK) and set(between.heads) <= full:
                    full.add(before + 1)
        return full


def has_value(text: str) -> bool:
    """Whether a price, URL or date stands in a text."""
    return bool(_MAY_HAVE_VALUE.search(text) and _VALUE.search(text))


def prose_spans(source: str, start: int, end: int) -> Iterator[list[tuple[int, int]]]:
    """At least one sentence, each as one stretch or, if it is long, several."""
    text = source[start:end]
    for one, other in _with_dates_whole(text, sentence_spans(text) or [(0, end - start)]):
        yield list(chunk_spans(source, start + one, start + other))


def _with_dates_whole(text: str, spans: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """The sentences, two of them joined where a date such as "5. Mai 2024" goes from one to the next."""
    starts = [one for one, _ in spans]
    within = set()
    for day in _DAY_WITH_DOT.finditer(text):
        n = bisect_right(starts, day.start())
        if n < len(starts) and starts[n] < day.end():
            within.add(n)
    joined: list[tuple[int, int]] = []
    for n, span in enumerate(spans):
        if n in within and joined:
            joined[-1] = (joined[-1][0], span[1])
        else:
            joined.append(span)
    return joined


def chunk_spans(source: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """
    A line cut into stretches of about 70 characters where it is long, at the ends of clauses if it has any.
    Never within a word, and not beside a number, so that no stretch says what the line does not; only a long
    row of numbers is cut, between two of them. A line without a blank stays whole. What holds a price, URL or
    date is cut around it, so that this can stay when the room is too small for all that is said about it.
    """
    for one, other in _clauses(source, start, end):
        begin = one
        if other - one > _MOST_CHARS:
            for match in _BETWEEN_VALUES.finditer(source, one, other):
                if match.start() - begin > _AIM_CHARS:
                    yield begin, match.start()
                    begin = match.end()
        yield from _around_values(source, begin, other)


def _around_values(source: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """A stretch cut before and behind each price, URL and date in it, with the words next to them."""
    if end - start <= _WHOLE_CHARS or not _MAY_HAVE_VALUE.search(source, start, end):
        yield start, end
        return
    cuts = [
        match.span()
        for match in _BREAK.finditer(source, start, end)
        if not _is_beside_value(source, match.start(), match.end())
    ]
    cores: list[tuple[int, int]] = []
    for match in _VALUE.finditer(source, start, end):
        left = max((other for _, other in cuts if other <= match.start()), default=start)
        right = min((one for one, _ in cuts if one >= match.end()), default=end)
        negated = _NEGATED.search(source, max(start, left - 40), left)  # what it denies goes with the value
        left = negated.start() if negated else left
        left = start if left - start < _CRUMB_CHARS else left
        right = end if end - right < _CRUMB_CHARS else right
        if cores and left - cores[-1][1] < _CRUMB_CHARS:
            cores[-1] = (cores[-1][0], max(right, cores[-1][1]))
        else:
            cores.append((left, right))
    begin = start
    for left, right in cores:
        if left > begin:
            yield begin, _skip_blanks_back(source, left)
        yield left, right
        begin = _skip_blanks(source, right)
    if begin < end:
        yield begin, end


def _clauses(source: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    begin, clause, last = start, start, start
    if end - start > LONG_CHARS:
        for match in _BREAK.finditer(source, start, end):
            at = match.start()
            if at - begin > 1.6 * _AIM_CHARS and max(clause, last) > begin:
                cut = clause if clause > begin else last
                yield begin, cut
                begin = _skip_blanks(source, cut)
            if _is_beside_value(source, at, match.end()):
                continue
            last = at
            if at - begin > 0.4 * _AIM_CHARS and _CLAUSE_END.search(source, max(begin, at - 1), at):
                clause = at
        if end - begin > LONG_CHARS and max(clause, last) > begin:
            cut = clause if clause > begin else last
            yield begin, cut
            begin = _skip_blanks(source, cut)
    yield begin, end


def _is_beside_value(source: str, left: int, right: int) -> bool:
    return bool(_BESIDE_VALUE.match(source, left - 1) or _BESIDE_VALUE.match(source, right))


def _skip_blanks(source: str, at: int) -> int:
    while at < len(source) and source[at].isspace():
        at += 1
    return at


def _skip_blanks_back(source: str, at: int) -> int:
    while at > 0 and source[at - 1].isspace():
        at -= 1
    return at


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
        self.source = source
        self.lines_alone = lines_alone
        self.lines = [match.span() for match in _LINE.finditer(source)]
        self.pieces: list[Piece] = []
        self.heading: int | None = None
        self.section: int | None = None
        self.path: list[tuple[int, str]] = []
        self.line = 0
        self.unit = 0

    def run(self) -> list[Piece]:
        above = self._front()
        for block in read_blocks(self.source[self.lines[above][0] :] if above < len(self.lines) else ""):
            first, end = above + block.first, above + block.end
            if block.kind == "heading":
                self._heading(first, end, block)
            elif block.kind == "fence":
                self._fence(first, end, block.is_closed)
            elif block.kind == "table" and block.is_ruled:
                self._table(first, end)
            else:
                self._parts(first, end, is_table=block.kind == "table")
        return self.pieces

    def _text(self, i: int) -> str:
        start, end = self.lines[i]
        return self.source[start:end]

    def _add(
        self, start: int, end: int, kind: Kind, *, heads: tuple[int, ...] = (), unit: bool = True
    ) -> int:
        """Add a piece less the white space behind it; returns its index."""
        text = self.source[start:end].rstrip()
        self.unit += unit
        above = () if self.heading is None else (self.heading,)
        shown = one_line(text) if kind == "sentence" else text
        path = tuple(title for _, title in self.path)
        heads, section = (*above, *heads), self.section
        self.pieces.append(
            Piece(start, start + len(text), kind, shown, self.line, self.unit, heads, section, path)
        )
        return len(self.pieces) - 1

    def _front(self) -> int:
        marks = [i for i in range(min(len(self.lines), 60)) if self._text(i).rstrip() == "---"]
        if len(marks) < 2 or marks[0] != 0:
            return 0
        self._add(self.lines[0][0], self.lines[marks[1]][1], "front")
        return marks[1] + 1

    def _heading(self, first: int, end: int, block: Block) -> None:
        text = self._text(first).strip()
        if text in _SECTIONS:
            self.section, self.path = _SECTIONS[text], []
        self.path = [*(above for above in self.path if above[0] < block.depth), (block.depth, block.title)]
        self.heading, self.line = None, self.line + 1
        self.heading = self._add(self.lines[first][0], self.lines[end - 1][1], "heading")

    def _fence(self, first: int, end: int, is_closed: bool) -> None:
        self.line += 1
        if (
            is_closed
            and self._text(first).strip() == "```yaml"
            and self._text(first + 1).startswith("_meta:")
        ):
            self._add(self.lines[first][0], self.lines[end - 1][1], "meta")
            return
        opener = self._add(*self.lines[first], "fence")
        for i in range(first + 1, end - is_closed):
            if self._text(i).strip():
                self.line += 1
                for n, (start, stop) in enumerate(chunk_spans(self.source, *self.lines[i])):
                    self._add(start, stop, "code", heads=(opener,), unit=n == 0)
        if is_closed:
            closer = self._add(*self.lines[end - 1], "fence", heads=(opener,))
            for i in range(opener, closer):
                self.pieces[i] = replace(self.pieces[i], heads=(*self.pieces[i].heads, closer))

    def _table(self, first: int, end: int) -> None:
        self.line += 1
        head = self._add(self.lines[first][0], self.lines[first + 1][1], "table_head")
        for i in range(first + 2, end):
            self.line += 1
            self._row(*self.lines[i], head)

    def _row(self, start: int, end: int, head: int) -> None:
        """A row as one piece; of a long one the text of its long cells apart, which needs the rest."""
        row = self.source[start:end]
        ends = [match.start() for match in CELL_EDGE.finditer(row)]
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

    def _parts(self, first: int, end: int, *, is_table: bool) -> None:
        """Lines of text: each item, speaker's line and row begins another part."""
        width = max(self.lines[i][1] - self.lines[i][0] for i in range(first, end))
        begin = first
        for i in range(first + 1, end + 1):
            if i == end or is_table or self._begins_part(i, width):
                self._part(begin, i)
                begin = i

    def _begins_part(self, i: int, width: int) -> bool:
        text, before = self._text(i), self.lines[i - 1]
        if self.lines_alone or _LABEL.match(text) or _SPEAKER.match(text):
            return True
        short = before[1] - before[0] < 0.6 * width or self._text(i - 1).endswith(("  ", "\\"))
        return short or text.lstrip()[:1] in "[({<|#@$%&0123456789"

    def _part(self, first: int, end: int) -> None:
        start, stop = self.lines[first][0], self.lines[end - 1][1]
        self.line += 1
        match = _LABEL.match(self.source, start, stop)
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
