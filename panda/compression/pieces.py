"""A document as pieces that are kept or dropped, and the text that the kept ones make."""

import re
from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate, pairwise
from typing import Literal, get_args

from panda.documents.markdown import split_cells
from panda.documents.safe_text import count_noun, one_line
from panda.language.patterns import lazy_pattern
from panda.language.text import sentence_spans

MARK = "[…]"
"""Stands where something was left out; `[… 38 rows, 2 errors]` where that can be counted."""

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
    "count",  # no text of the document: what is told of pieces that are left out
]
STRUCTURE: frozenset[Kind] = frozenset(("heading", "label", "fence", "table_head", "count"))
"""Pieces that stand only because others do."""

ERROR_TIER = 2
TITLE_TIER = 1
"""What is kept first of all, and what comes after it: what the document is, totals of a log."""

EDGE = "edge of a box or quotation"
"""Why a line of signs around a text goes; no mark tells of it."""

_LONG_CHARS = 320
"""A sentence up to here stays whole."""
_CLAUSE_CHARS = 120
_MOST_CHARS = 240
_CRUMB_CHARS = 20
_OTHER_LETTER = 3
_CHAINED_CHARS = 1_600
"""Of a longer sentence a later part may stand without the earlier ones."""
_MOST_LINES = 3
_MOST_SHORT = 3
_WIDE = "\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff\uff00-\uffef"
_BREAK = lazy_pattern(
    rf"""\s+(?=\S) | (?<=\d),(?=[-+]?\d) | (?<=[{_WIDE}])(?=[{_WIDE}]) | (?<=[\]}}"]),(?=[\[{{"])""",
    re.VERBOSE,
)
_CLAUSE_END = lazy_pattern(r"[,;:)—–、，；：。|]")
_BESIDE_VALUE = lazy_pattern(r"[\d$€£¥₽₹%#]")
_MORE = lazy_pattern(r"\d+ more")
_DAY_END = lazy_pattern(r"(?<![\d.,])\d{1,2}\.\Z")
_MONTH = lazy_pattern(r"[^\W\d_]{3,10}\.? (?:19|20)\d\d(?!\d)")


@dataclass(slots=True)
class Piece:
    """A stretch of a document that is kept whole or dropped whole."""

    start: int  # index of its first character in the source
    end: int  # index behind its last
    kind: Kind
    text: str  # what it says, as a reader sees it
    line: int  # pieces of the same line or paragraph share this number
    unit: int  # pieces of the same sentence, row or value share this number
    heads: Sequence[int] = ()
    """Pieces that must stand where this one stands: heading, label, what introduces a list, table head, both
    lines of a fence. It may be among them."""
    section: int | None = None  # number of the section of context.md that it stands in
    path: tuple[str, ...] = ()  # headings, or keys of a JSON document, that it stands under
    confidence: float | None = None  # 0 to 1, as the innermost object of a JSON document has it
    cost: float = 0.0
    """How little it says by its place: 0 for what opens the document, 1 for what says half as much."""
    tier: int = 0  # ERROR_TIER, TITLE_TIER or 0
    noun: str = ""  # what it is counted as when it is left out, as "row"; empty where a bare mark stands
    counted_by: int = -1  # the piece that stands for all that say the same, and tells how many they are
    low: str = ""  # why it goes before everything that says something; empty for what says something


Wordings = Mapping[int, tuple[int, str]]
"""Other wordings of stretches, by their first piece: the last piece, and the text."""


def with_heads(pieces: Sequence[Piece], selected: Set[int]) -> set[int]:
    """The pieces kept and all the heads that they need."""
    full = set(selected)
    left = list(selected)
    while left:
        for head in pieces[left.pop()].heads:
            if head not in full:
                full.add(head)
                left.append(head)
    return full


def gap_mark(pieces: Sequence[Piece], *, is_counting: bool = True, line_count: int = 0) -> str:
    """
    Return the mark for a stretch that is left out, with how many rows, lines, … and errors it has.

    Args:
        pieces: The stretch.
        is_counting: Whether it tells how many.
        line_count: Lines of the document that are no row or error; 0 to count those of the pieces.

    >>> row = Piece(0, 1, "row", "a", 1, 1, noun="row")
    >>> gap_mark([row]), gap_mark([row], is_counting=False)
    ('[… 1 row]', '[…]')
    """
    units = {piece.unit: piece for piece in pieces if piece.noun}
    if not units or not is_counting:
        return MARK
    total = Counter[str]()
    for piece in units.values():
        total[piece.noun] += 1 + (piece.text.count("\n") if piece.noun == "line" else 0)
    if "line" in total:
        total["line"] = line_count or total["line"]
    counts = sorted(total.items(), key=lambda pair: pair[0] == "error")
    return f"[… {', '.join(count_noun(count, noun) for noun, count in counts)}]"


@dataclass(frozen=True)
class TextOutline:
    source: str  # the document
    pieces: Sequence[Piece]  # its pieces in order; between them there is only white space
    is_counting: bool = True  # whether marks tell how much was left out

    def standing(self, keeping: Set[int]) -> set[int]:
        """Return these pieces, the heads they need, and what between them is no longer than its mark."""
        full = with_heads(self.pieces, keeping)
        free: set[int] = set()
        for last, i in pairwise([*sorted(full), len(self.pieces)]):
            if 1 < i - last <= 1 + _MOST_SHORT and self._is_short(range(last + 1, i), full):
                free.update(range(last + 1, i))
        return full | free

    def _is_short(self, gap_range: range, shown_pieces: Set[int]) -> bool:
        """Return whether a stretch between pieces can stand as it is where its mark would take as much."""
        stretch = self.pieces[gap_range.start : gap_range.stop]
        text = one_line(self.source[stretch[0].start : stretch[-1].end])
        if len(text) > len(self._mark(stretch)):
            return False
        is_whole = all(at in shown_pieces or at in gap_range for piece in stretch for at in piece.heads)
        return is_whole and all(piece.kind != "count" and piece.counted_by < 0 for piece in stretch)

    def _mark(self, stretch: Sequence[Piece], beside: Sequence[Piece] = ()) -> str:
        """Return the mark for pieces left out; lines that are blank or stand *beside* do not count."""
        if not self.is_counting or all(piece.noun != "line" for piece in stretch):
            return gap_mark(stretch, is_counting=self.is_counting)
        lines: set[int] = set()
        for piece in stretch:
            if piece.noun in ("", "line"):
                first = bisect_right(self._line_starts, piece.start) - 1
                last = bisect_right(self._line_starts, max(piece.start, piece.end - 1)) - 1
                lines.update(range(first, last + 1))
        for piece in beside:
            lines.discard(bisect_right(self._line_starts, piece.start) - 1)
            lines.discard(bisect_right(self._line_starts, max(piece.start, piece.end - 1)) - 1)
        return gap_mark(stretch, line_count=len(lines & self._written_lines))

    @cached_property
    def _line_starts(self) -> Sequence[int]:
        """Return where each line of the document begins."""
        return list(accumulate((len(text) + 1 for text in self.source.split("\n")), initial=0))

    @cached_property
    def _written_lines(self) -> Set[int]:
        """Return the numbers of the lines that are not blank."""
        return {number for number, text in enumerate(self.source.split("\n")) if text.strip()}

    @cached_property
    def _repeats(self) -> Mapping[int, Sequence[int]]:
        """Return the pieces that another one stands for, by that one."""
        repeats: dict[int, list[int]] = defaultdict(list)
        for i, piece in enumerate(self.pieces):
            if piece.counted_by >= 0 and piece.kind != "count":
                repeats[piece.counted_by].append(i)
        return repeats

    def _count_text(self, counter: Piece, shown_pieces: Set[int]) -> str:
        """Return what is told of repeats, less those that stand; empty where all of them do."""
        if counter.counted_by < 0:
            return counter.text
        repeats = self._repeats.get(counter.counted_by, ())
        shown_lines = {self.pieces[i].line for i in repeats if i in shown_pieces}
        gone = len({self.pieces[i].line for i in repeats} - shown_lines)
        return _MORE.sub(f"{gone} more", counter.text, count=1) if gone else ""

    def render(self, selected: Set[int], wordings: Wordings | None = None) -> str:
        """The document with only these pieces and the heads they need, a mark for each stretch left out."""
        pieces = self.pieces
        last = before = -1  # the last piece that stands, and the last one that is text of the document
        end = 0  # where that ends in the source
        parts: list[str] = []
        full = self.standing(selected)
        for i in [*sorted(full), len(pieces)]:
            if i <= last:  # its stretch is worded anew
                continue
            if i < len(pieces) and pieces[i].kind == "count":
                parts.append(self._count_text(pieces[i], full))
                last = i
                continue
            left_out = [piece for piece in pieces[last + 1 : i] if piece.kind != "count"]
            uncounted = [piece for piece in left_out if piece.counted_by not in full and piece.low != EDGE]
            start = pieces[i].start if i < len(pieces) else len(self.source)
            if not left_out:
                parts.append(self.source[end:start])
            else:
                parts.append(self._gap(before, i, end, left_out, uncounted))
            if i < len(pieces):
                last = i
                text = self.source[start : pieces[i].end]
                if wordings and i in wordings:
                    last, text = wordings[i]
                before = last
                end = pieces[last].end
                parts.append(text)
        return "".join(parts)

    def text(self, first: int, last: int) -> str:
        """Return what stands from one piece to another."""
        return self.source[self.pieces[first].start : self.pieces[last].end]

    def _gap(
        self, last: int, behind: int, end: int, dropped: Sequence[Piece], uncounted: Sequence[Piece]
    ) -> str:
        """Return what stands in the place of pieces, some of them *uncounted*, with white space beside it."""
        is_end = behind == len(self.pieces)
        left = _short_space(self.source[end : dropped[0].start])
        start = len(self.source) if is_end else self.pieces[behind].start
        right = _short_space(self.source[dropped[-1].end : start])
        if not uncounted:
            has_break = "\n" in left and not is_end and last >= 0
            return left if has_break else right
        after = None if is_end else self.pieces[behind]
        beside = [piece for piece in (after, self.pieces[last] if last >= 0 else None) if piece is not None]
        mark = self._mark(uncounted, beside)
        if last < 0:
            return mark + right
        before = self.pieces[last]
        left = left if "\n" in left else " "
        if not is_end and "\n" not in right:
            right = " "
        if before.kind in ("row", "table_head") and (after is None or after.line != before.line):
            if dropped[0].kind == "row" and before.line != dropped[0].line:
                mark = self._row_mark(before, mark)
                if after is not None and after.kind != "row" and right.count("\n") < 2:
                    right = "\n\n"
            elif left.count("\n") < 2 and before.text.lstrip().startswith("|"):
                left += "\n"
        return left + mark + right

    def _row_mark(self, table_row: Piece, mark: str) -> str:
        """Return a mark as a table_row of the table that a piece belongs to."""
        if table_row.kind != "table_head" and not table_row.heads:
            return mark
        head = table_row if table_row.kind == "table_head" else self.pieces[table_row.heads[-1]]
        if "|" not in head.text:
            return mark
        return f"| {mark} |" + " |" * (len(split_cells(head.text.split("\n", 1)[0])) - 1)


def _short_space(space: str) -> str:
    """Return the white space beside a mark, with one blank line at most."""
    lines = space.split("\n")
    return "\n".join([lines[0], "", lines[-1]]) if len(lines) > _MOST_LINES else space


def prose_spans(source: str, start: int, end: int) -> Iterator[list[tuple[int, int]]]:
    """At least one sentence, each as one stretch or, if it is long, several."""
    text = source[start:end]
    spans: list[tuple[int, int]] = []
    for first, last in sentence_spans(text) or [(0, end - start)]:
        is_date = (
            spans and _MONTH.match(text, first) and _DAY_END.search(text, spans[-1][1] - 4, spans[-1][1])
        )
        if is_date or (spans and not any(map(str.isalpha, text[slice(*spans[-1])]))):
            spans[-1] = (spans[-1][0], last)  # "5. Mai 2024" and "1.3." are no ends
        else:
            spans.append((first, last))
    for first, last in spans:
        yield list(chunk_spans(source, start + first, start + last))


def chunk_spans(source: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """
    Yield the stretches of a sentence or line: one, or of some 150 characters where it is too long, cut at the
    ends of clauses if it has any. Never within a word, and not beside a number, so that no stretch says what
    the line does not; only a long row of numbers is cut, between two of them.
    """
    begin = start
    text = source[start:end]
    is_latin = len(text.encode("utf-8", "replace")) < 1.5 * len(text)
    letter = 1 if is_latin else _OTHER_LETTER  # one of other scripts takes more tokens
    is_long = letter * (end - start) > _LONG_CHARS
    for match in _BREAK.finditer(source, start, end if is_long else start):
        left, right = match.span()
        chars = letter * (left - begin)
        if _BESIDE_VALUE.match(source, left - 1) or _BESIDE_VALUE.match(source, right):
            is_row = source[right] in "0123456789+-" and source[left - 1] in "0123456789,;"
            is_cut = is_row and chars > _MOST_CHARS
        else:
            is_clause = chars > _CLAUSE_CHARS and _CLAUSE_END.match(source, left - 1) is not None
            is_cut = is_clause or chars > _MOST_CHARS
        if is_cut and end - right >= _CRUMB_CHARS:
            yield begin, left
            begin = right
    yield begin, end


def is_chained(spans: Sequence[tuple[int, int]]) -> bool:
    """Return whether a later part of a sentence needs the earlier ones, which may deny or name it."""
    return len(spans) > 1 and spans[-1][1] - spans[0][0] <= _CHAINED_CHARS
