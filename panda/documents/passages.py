"""Markdown into quotable one-line passages with their line numbers."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import zip_longest

from panda.documents.sentences import one_line, split_sentences

_HEADING = re.compile(r"^ {0,3}(#{1,6})\s+(.*?)\s*#*\s*$")
_FENCE = re.compile(r"^\s*(```+|~~~+)")
_LIST_ITEM = re.compile(r"^\s*(?:[-*+•]|\d{1,3}[.)])\s+(.*)$")
_TABLE_RULE = re.compile(r"^\s*\|?\s*:?-+:?\s*(?:\|\s*:?-+:?\s*)*\|?\s*$")
_CELL_EDGE = re.compile(r"(?<!\\)\|")
_RULE = re.compile(r"^\s*([-*_])(?:\s*\1){2,}\s*$")
_COMMENT = re.compile(r"^\s*<!--.*-->\s*$")


@dataclass(frozen=True)
class Passage:
    """One sentence, list item, table row or line of code."""

    text: str
    """One line, as it stands in the document."""
    line: int
    """Line where it begins, from 1."""
    headings: tuple[str, ...]
    """Headings it stands under, outermost first."""
    is_list_item: bool = False
    """Whether it is an item of a list."""
    list_line: int | None = None
    """Line where the list or table begins that it belongs to; None if it belongs to none."""
    heads_line: int | None = None
    """Line where the list or table begins that it introduces, as "Hotels:" does; None if it does not."""


def split_passages(markdown: str) -> list[Passage]:
    """
    The passages of a markdown text, in order.

    Args:
        markdown: Any text; may be empty.

    Returns:
        Sentences of paragraphs, whole list items, table rows as "Header: cell; Header: cell", and lines of
        fenced code. Headings, rules and comments are no passages; headings are kept with what is below.

    >>> [p.text for p in split_passages("# Laptops\\nTwo found. Both\\nare fine.\\n\\n- LOQ 15\\n- TUF A15")]
    ['Two found.', 'Both are fine.', 'LOQ 15', 'TUF A15']
    >>> [p.text for p in split_passages("| Product | Price |\\n|---|---|\\n| LOQ 15 | $697 |")]
    ['Product: LOQ 15; Price: $697']
    """
    found = list(_passages(markdown.split("\n")))
    return [
        replace(one, heads_line=following.list_line) if _introduces(one, following) else one
        for one, following in zip_longest(found, found[1:])
    ]


def _introduces(one: Passage, following: Passage | None) -> bool:
    follows = following is not None and following.headings == one.headings
    return follows and one.list_line is None and one.text.endswith(":")


def _passages(lines: list[str]) -> Iterator[Passage]:
    headings: list[tuple[int, str]] = []
    fence: str | None = None
    table: list[str] | None = None
    held: list[str] = []
    held_at = 0
    held_is_item = False
    list_line: int | None = None
    in_table = False

    def flush() -> list[Passage]:
        path = tuple(title for _, title in headings)
        texts = [one_line(" ".join(held))] if held_is_item else split_sentences(" ".join(held))
        at = list_line if held_is_item else None
        found = [Passage(text, held_at, path, held_is_item, at) for text in texts if text]
        held.clear()
        return found

    for number, raw in enumerate(lines, 1):
        line = raw.rstrip("\r")
        mark = _FENCE.match(line)
        if fence is not None:
            if mark and mark.group(1).startswith(fence) and not line.strip().strip(fence[0]):
                fence = None
            elif line.strip():
                yield Passage(one_line(line), number, tuple(t for _, t in headings))
            continue
        heading = _HEADING.match(line)
        item = _LIST_ITEM.match(line)
        is_row = line.count("|") >= 2 and line.lstrip().startswith("|")
        if not is_row:
            table = None
        if mark or heading or is_row or item or not line.strip() or _RULE.match(line) or _COMMENT.match(line):
            yield from flush()
        if item or is_row:
            goes_on = list_line is not None and is_row == in_table
            list_line, in_table = list_line if goes_on else number, is_row
        elif line.strip() and not held:
            list_line = None
        if mark:
            fence = mark.group(1)
        elif heading:
            depth = len(heading.group(1))
            headings = [*(h for h in headings if h[0] < depth), (depth, heading.group(2))]
        elif is_row:
            cells = [one_line(cell) for cell in _CELL_EDGE.split(line.strip().strip("|"))]
            if table is None:
                following = lines[number] if number < len(lines) else ""
                table = cells if _TABLE_RULE.match(following.rstrip("\r")) else []
                if table:
                    continue
            if _TABLE_RULE.match(line):
                continue
            path = tuple(title for _, title in headings)
            yield Passage(_row_text(table, cells), number, path, list_line=list_line)
        elif item and not _RULE.match(line):
            held.append(item.group(1))
            held_at, held_is_item = number, True
        elif line.strip() and not _RULE.match(line) and not _COMMENT.match(line):
            if not held:
                held_at, held_is_item = number, False
            held.append(line)
    yield from flush()


def _row_text(header: list[str], cells: list[str]) -> str:
    if len(header) != len(cells):
        return "; ".join(cell for cell in cells if cell)
    return "; ".join(
        f"{name}: {cell}" if name else cell for name, cell in zip(header, cells, strict=True) if cell
    )
