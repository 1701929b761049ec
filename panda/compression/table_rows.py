"""Tables of comma-separated values into pieces: the header, what the columns hold, rows that differ."""

import csv
import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice, pairwise

from panda.compression.errors_told import ERROR_LINE
from panda.compression.pieces import ERROR_TIER, TITLE_TIER, Piece, TextOutline
from panda.language.patterns import lazy_pattern

_NUMBER = lazy_pattern(r"[-+]?\d+(?:[.,]\d+)?%?\Z")
_DIGIT = lazy_pattern(r"\d")
_FAILED = lazy_pattern(r"(?i)\b(?:errors?|failed|failure|exception|fatal)\b")
_DELIMITERS = ",;\t|"
_SNIFFED_ROWS = 20
_MOST_NAMED = 4
"""Values of a column that are named in its summary."""
_MOST_SUMMARY_CHARS = 420
_MOST_SUMMARY = 0.12
"""Part of the characters of a table that its summary may have."""
_FEW = 0.04
"""Part of the rows up to which a value is rare."""
_MOST_SHARE = 0.5
"""Part of the rows that the most frequent value has at least in a column whose rare values are told."""
_ROW = 0.3


@dataclass(frozen=True)
class _TableRow:
    start: int
    end: int
    cells: Sequence[str]


def parse_table(source: str) -> TextOutline:
    r"""
    The pieces of a table; comments above it are text.

    >>> table = "name,size\na,1\nbread,200\ncorn,3000\n"
    >>> parse_table(table).render({1})
    'name,size\na,1\n[… 2 rows]\n'
    """
    lines = list(_lines(source))
    comments = [span for span in lines if source[span[0]] == "#"]
    delimiter = find_delimiter(source)
    rows = [
        _TableRow(
            start, end, [cell.strip() for cell in next(csv.reader([source[start:end]], delimiter=delimiter))]
        )
        for start, end in lines
        if source[start] != "#"
    ]
    pieces: list[Piece] = []
    for n, (start, end) in enumerate(comments):
        piece = Piece(start, end, "sentence", source[start:end], line=n, unit=n)
        piece.cost = 0.2 * math.log2(1 + n)
        piece.low = "" if any(map(str.isalnum, piece.text)) else "no words"
        pieces.append(piece)
    if comments:
        pieces[0].tier = TITLE_TIER
        pieces[-1].tier = TITLE_TIER  # the line above the rows names the columns
    heads: list[int] = [len(pieces) - 1] if comments else []
    is_headed = bool(rows) and not comments and not any(map(_NUMBER.match, rows[0].cells))
    names = list(rows[0].cells) if is_headed else []
    body = rows[1:] if is_headed else rows
    if is_headed:
        header = Piece(
            rows[0].start, rows[0].end, "table_head", source[rows[0].start : rows[0].end], line=-1, unit=-1
        )
        heads.append(len(pieces))
        pieces.append(header)
    summary = _summary(names, body)
    if summary:
        at = pieces[-1].end if pieces else body[0].start
        text = f"[… {len(body)} rows: {summary}]"
        text = f"\n{text}" if pieces else f"{text}\n"
        pieces.append(
            Piece(at, at, "count", text, line=-2, unit=-2, heads=tuple(heads), cost=0.1, tier=TITLE_TIER)
        )
    pieces += _rows(source, body, heads, len(pieces))
    pieces.sort(key=lambda piece: piece.start)
    return TextOutline(source, tuple(pieces))


def find_delimiter(source: str) -> str:
    """Return what parts the cells of most of the first lines of a table into the same number."""
    rows = (source[slice(*span)] for span in _lines(source) if source[span[0]] != "#")
    lines = list(islice(rows, _SNIFFED_ROWS))

    def fit(delimiter: str) -> tuple[int, int]:
        counts = Counter(line.count(delimiter) for line in lines if delimiter in line)
        return max(((rows, cells) for cells, rows in counts.items()), default=(0, 0))

    return max(_DELIMITERS, key=fit)


def _lines(source: str) -> Iterator[tuple[int, int]]:
    """Yield where each row stands; one in quotation marks may have several lines."""
    begin = -1
    quotes = 0
    start = 0
    for text in source.split("\n"):
        end = start + len(text)
        if begin < 0 and text.strip():
            begin = start
        quotes += text.count('"')
        if begin >= 0 and quotes % 2 == 0:
            yield begin, begin + len(source[begin:end].rstrip())
            begin = -1
            quotes = 0
        start = end + 1
    if begin >= 0:
        yield begin, begin + len(source[begin:].rstrip())


def _columns(rows: Sequence[_TableRow]) -> list[list[str]]:
    width = max((len(row.cells) for row in rows), default=0)
    return [[row.cells[n] if n < len(row.cells) else "" for row in rows] for n in range(width)]


def _summary(names: Sequence[str], rows: Sequence[_TableRow]) -> str:
    """Return what the columns hold; empty where a table is too short for it."""
    if len(rows) < _SNIFFED_ROWS:
        return ""
    parts: list[str] = []
    chars = 0
    for n, values in enumerate(_columns(rows)):
        name = names[n] if n < len(names) else f"column {n + 1}"
        text = f"{name} {_describe([value for value in values if value])}"
        if text.endswith(f" {len(rows)} values"):
            continue  # each row has its own
        chars += len(text)
        if chars > _MOST_SUMMARY_CHARS:
            break
        parts.append(text)
    table_chars = rows[-1].end - rows[0].start
    return "; ".join(parts) if chars <= _MOST_SUMMARY * table_chars else ""


def _describe(values: Sequence[str]) -> str:
    if not values:
        return "empty"
    counts = Counter(values)
    if len(counts) > _MOST_NAMED and all(map(_NUMBER.match, values)):
        ordered = sorted(values, key=_number)
        return f"{ordered[0]} to {ordered[-1]}"
    is_ascending = all(first <= second for first, second in pairwise(values))
    if len(counts) > _MOST_NAMED and is_ascending and all(map(_DIGIT.search, values)):
        return f"{values[0]} to {values[-1]}"
    if len(counts) > 0.5 * len(values):
        return f"{len(counts)} values"
    most = [value for value, _ in counts.most_common(_MOST_NAMED)]
    more = f" and {len(counts) - len(most)} more" if len(counts) > len(most) else ""
    return ", ".join(f"{value} × {counts[value]}" for value in most) + more


def _number(value: str) -> float:
    return float(value.rstrip("%").replace(",", "."))


def _rows(source: str, rows: Sequence[_TableRow], heads: Sequence[int], first: int) -> Iterator[Piece]:
    unusual = _find_unusual(rows)
    for n, row in enumerate(rows):
        text = source[row.start : row.end]
        from_end = len(rows) - 1 - n
        cost = 0.6 + _ROW * math.log2(1 + min(n, from_end)) + 0.05 * (from_end < n)
        cost = min(cost, unusual.get(n, cost))
        piece = Piece(
            row.start, row.end, "row", text, line=n, unit=n, heads=tuple(heads), cost=cost, noun="row"
        )
        if ERROR_LINE.search(text) or any(map(_FAILED.search, row.cells)):
            piece.tier = ERROR_TIER
            piece.noun = "error"
        yield piece


def _find_unusual(rows: Sequence[_TableRow]) -> Mapping[int, float]:
    """Return the cost of the rows in which a value stands that few others have."""
    unusual: dict[int, float] = {}
    for values in _columns(rows):
        counts = Counter(values)
        (_, most), *_ = counts.most_common(1)
        if most >= _MOST_SHARE * len(values):
            few = max(1, _FEW * len(values))
            rare = [n for n, value in enumerate(values) if value and counts[value] <= few]
            if len(rare) <= max(_MOST_NAMED, 2 * few):
                unusual |= {n: 0.5 + 0.1 * math.log2(1 + place) for place, n in enumerate(rare)}
    return unusual
