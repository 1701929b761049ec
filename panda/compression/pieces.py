"""A document as pieces that are kept or dropped, and the text that the kept ones make."""

from collections.abc import Sequence, Set
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal, Protocol

MARK = "[…]"
"""Stands where something was left out."""

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


@dataclass(frozen=True)
class Piece:
    """A stretch of a document that is kept whole or dropped whole."""

    start: int
    """Index of its first character in the source."""
    end: int
    """Index behind its last."""
    kind: Kind
    """What it is."""
    text: str
    """What it says, as a reader sees it."""
    line: int
    """Pieces of the same line or paragraph share this number."""
    unit: int
    """Pieces of the same sentence, row or value share this number."""
    heads: tuple[int, ...] = ()
    """Pieces that must stand where this one stands: heading, label, table head, both lines of a fence."""
    section: int | None = None
    """Number of the section of context.md that it stands in."""
    path: tuple[str, ...] = ()
    """Headings, or keys of a JSON document, that it stands under."""


class Outline(Protocol):
    """A parsed document."""

    @property
    def pieces(self) -> Sequence[Piece]: ...

    def render(self, kept: Set[int]) -> str:
        """The document with only these pieces and the heads they need, `[…]` for each stretch left out."""
        ...


def with_heads(pieces: Sequence[Piece], kept: Set[int]) -> set[int]:
    """
    The pieces kept and all the heads that they need.

    Args:
        pieces: All pieces of a document.
        kept: Indexes of some.
    """
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
    """A Markdown or plain text."""

    source: str
    """The document."""
    pieces: Sequence[Piece]
    """Its pieces in order; between them there is only white space."""

    def render(self, kept: Set[int]) -> str:
        """See Outline."""
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
        """The mark between two kept pieces with the white space that parts it from them."""
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
                cells = count_cells(pieces[self._table_head(last)].text.split("\n", 1)[0])
                mark = f"| {MARK} |" + " |" * (cells - 1)
                if not is_end and pieces[following].kind != "row" and right.count("\n") < 2:
                    right = "\n\n"
            elif left.count("\n") < 2:
                left += "\n"
        return left + mark + right

    def _table_head(self, row: int) -> int:
        heads = self.pieces[row].heads
        return row if self.pieces[row].kind == "table_head" else heads[-1]

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


def count_cells(row: str) -> int:
    r"""
    Number of cells of a table row in Markdown.

    >>> count_cells("| a | b \\| c |"), count_cells("a | b")
    (2, 2)
    """
    plain = row.strip().replace("\\|", "")
    return max(1, plain.strip("|").count("|") + 1) if plain else 1
