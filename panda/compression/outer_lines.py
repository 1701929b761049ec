"""The line that another one stands below: by indentation, or a title that is a plain line."""

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import groupby

from panda.compression.pieces import Piece
from panda.language.patterns import lazy_pattern

_TAB_CHARS = 8
_HALF = 0.5
"""A title stands so much left of lines of its own indentation, the label of a case right of them."""
_TITLE_CHARS = 70
_TITLE_WORDS = 7
_NUMBERED = lazy_pattern(r"(?:§ ?|Article |Section )?\d+(?:\.\d+)*[.)]?\s+[^\W\d_]")
_NO_TITLE_END = (".", ",", ";", ":", "!", ")", '"', "|", "}", "]", "*", "\\", ">")
_ENUMERATED = lazy_pattern(r"\s*(?:\((?:[ivxl]+|[a-z]|\d{1,2})\)|(?:[ivxl]+|[a-z])[.)])\s")
_CASE_LABEL = lazy_pattern(r"\s*[^\s()#/{}]+(?:\s*\|\s*[^\s()|]+)*\)(?:\s.*;;)?\s*$")
_LATER_BRANCH = lazy_pattern(r"\s*(?:\}\s*)?(?:else|elif|elsif|except|finally|catch|rescue)\b")
_BRACKETS_ALONE = lazy_pattern(r"\s*(?:[{}()\[\];,]+|fi|done|esac|end|;;)\s*$")
_SKIPPED = frozenset(("fence", "meta", "front", "row", "table_head"))


def bind_outer_lines(source: str, pieces: Sequence[Piece]) -> None:
    """
    Let each paragraph and item of a text stand only with the line that it is indented below, and with the
    short title that stands alone above it.
    """
    starts = _line_starts(source)
    above: list[tuple[float, int]] = []  # indentation and piece of the lines that the next may stand below
    enumeration: tuple[float, int | None] | None = None  # indentation and outer piece of the list before
    last = -1
    for kind, members in _parts(pieces):
        if kind == "heading" or kind in _SKIPPED:
            above = above if kind != "heading" else []
            enumeration = None
            last = members[-1]
            continue
        first_line = bisect_right(starts, pieces[members[0]].start) - 1
        last_line = bisect_right(starts, max(0, pieces[members[-1]].end - 1)) - 1
        lines = [source[starts[n] : starts[n + 1]] for n in range(first_line, last_line + 1)]
        depth = min(_indentation(text) for text in lines if text.strip())
        is_title = first_line == last_line and _is_title(source, starts, first_line)
        if is_title:
            depth -= _HALF
        is_enumerated = _ENUMERATED.match(lines[0]) is not None
        while above and above[-1][0] >= depth:
            above.pop()
        outer = above[-1][1] if above else None
        if is_enumerated and enumeration is not None and abs(enumeration[0] - depth) <= len("iii"):
            outer = enumeration[1]
        elif is_enumerated and last >= 0 and pieces[last].text.endswith(":"):
            outer = last
        enumeration = (depth, outer) if is_enumerated else None
        if outer is not None:
            for at in members:
                if outer not in pieces[at].heads:
                    pieces[at].heads = (*pieces[at].heads, outer)
        for n, text in enumerate(lines):
            own_depth = depth if is_title else _indentation(text)
            while above and above[-1][0] >= own_depth:
                above.pop()
            end = starts[first_line + n + 1]
            above.append((own_depth, max(at for at in members if pieces[at].start < end)))
        last = members[-1]


def find_outer_lines(lines: Sequence[str]) -> list[Sequence[int]]:
    """
    Return for each line of a program the lines that it says nothing without: the one that it is indented
    below, and of an "else" the branch before it. Lines of brackets alone are not looked at.

    >>> find_outer_lines(["case $1 in", "-v)", "  verbose=yes", "  ;;", "*)", "  file=$1"])
    [[], [0], [1], [], [0], [4]]
    """
    above: list[tuple[float, int]] = []
    outer: list[Sequence[int]] = []
    for n, text in enumerate(lines):
        if not text.strip() or _BRACKETS_ALONE.match(text):
            outer.append([])
            continue
        depth = _indentation(text)
        if _CASE_LABEL.match(text):
            depth += _HALF
        sibling = -1
        while above and above[-1][0] >= depth:
            sibling_depth, sibling = above.pop()
            if sibling_depth != depth:
                sibling = -1
        own = [above[-1][1]] if above else []
        if sibling >= 0 and _LATER_BRANCH.match(text):
            own.append(sibling)
        outer.append(own)
        above.append((depth, n))
    return outer


def _parts(pieces: Sequence[Piece]) -> Iterator[tuple[str, list[int]]]:
    """Yield the pieces of each paragraph, item or row, with the kind of the first of them."""
    for _, members in groupby(range(len(pieces)), key=lambda i: (pieces[i].line, pieces[i].kind == "fence")):
        indexes = list(members)
        yield pieces[indexes[0]].kind, indexes


def _line_starts(source: str) -> list[int]:
    starts = [0]
    for text in source.split("\n"):
        starts.append(starts[-1] + len(text) + 1)
    return starts


def _indentation(text: str) -> float:
    expanded = text.expandtabs(_TAB_CHARS)
    return float(len(expanded) - len(expanded.lstrip()))


def _is_title(source: str, starts: Sequence[int], number: int) -> bool:
    """Return whether a line stands alone, is short and does not end as a sentence does."""
    text = source[starts[number] : starts[number + 1]].strip()
    before = source[starts[number - 1] : starts[number]].strip() if number else ""
    after = source[starts[number + 1] : starts[number + 2]].strip() if number + 2 < len(starts) else ""
    if before or after or len(text) > _TITLE_CHARS:
        return False
    if text.endswith("?"):
        return True
    if _NUMBERED.match(text):
        return not text.endswith(_NO_TITLE_END[1:])
    is_short = len(text.split()) <= _TITLE_WORDS and text[:1].isupper()
    return is_short and not text.endswith(_NO_TITLE_END)
