"""Logs and the output of programs into pieces: distinct messages, with how often and until when each came."""

import math
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence

from panda.compression.errors_told import ERROR_LINE, is_error_level, mask_values
from panda.compression.pieces import ERROR_TIER, TITLE_TIER, Piece, TextOutline, chunk_spans
from panda.language.patterns import lazy_pattern

_TRACEBACK = lazy_pattern(r"\s*Traceback \(most recent call last\):")
_TIME = lazy_pattern(r"\d\d:\d\d(?::\d\d)?")
_STAMP = lazy_pattern(
    r"(?:\d{4}-\d\d-\d\d[T ]?|[A-Z][a-z]{2} +\d{1,2} )?\d\d:\d\d(?::\d\d)?(?:[.,]\d+)?Z?|\d{4}-\d\d-\d\d"
)
_NAME = lazy_pattern(r"[^\s\"'(),]*(?:/|\w[-:._@=]\w)[^\s\"'(),]*|\b\w*[a-z]\d+\b")
"""A path, a host, the name of a module or package: lines that differ in these alone say the same."""
_WARNING = lazy_pattern(r"(?i)\bwarn(?:ing|ings)?\b|\"level\": ?\"warn")
_TOTAL = lazy_pattern(
    r"(?i)\b\d[\d,.]*\s+(?:\w+\s+){0,2}?"
    r"(?:passed|failed|errors?|failures?|warnings?|tests?|requests|skipped|files? changed)\b"
    r"|\b(?:failures?|errors?|failed|passed|total|skipped|exit code|exit status)\s*[:=]\s*\d"
)
_RULE = lazy_pattern(r"\W*$")
_LAST_LINES = 3
_MOST_TOTALS = 6
"""Lines with totals that differ in numbers alone are told apart, if there are no more of them."""
_LATER_PART = 0.6
"""What a later part of a long line costs more."""


def parse_log(source: str) -> TextOutline:
    r"""
    The pieces of a log, a line each; the first of lines that say the same stands for all of them.

    >>> log = "".join(f"12:00:{n:02d} INFO sent {n} bytes\n" for n in range(9)) + "12:01:00 ERROR disk full\n"
    >>> parse_log(log).render({10})
    '[… 9 lines]\n12:01:00 ERROR disk full\n'
    >>> parse_log(log).render({0, 10})
    '12:00:00 INFO sent 0 bytes [… 8 more like it, last 12:00:08]\n12:01:00 ERROR disk full\n'
    """
    return TextOutline(source, tuple(_Reader(source).read()))


class _Reader:
    def __init__(self, source: str) -> None:
        self.source = source
        self.pieces: list[Piece] = []
        self.firsts: dict[str, int] = {}  # the first piece of the lines that say the same, by what they say
        self.repeats: Counter[int] = Counter()  # how many of them came, by that piece

    def read(self) -> list[Piece]:
        entries = list(_entries(self.source))
        templates = self._templates(entries)
        alike: dict[str, list[tuple[int, int]]] = defaultdict(list)
        for entry, template in zip(entries, templates, strict=True):
            alike[template].append(entry[0])
        message_count = 0
        for number, (entry, template) in enumerate(zip(entries, templates, strict=True)):
            is_first = template not in self.firsts
            near_end = len(entries) - number
            top = len(self.pieces)
            self._entry(
                entry,
                number,
                alike[template],
                first=self.firsts.get(template, -1),
                message_count=message_count,
                near_end=near_end,
            )
            if is_first:
                self.firsts[template] = top
                message_count += 1
        return self.pieces

    def _templates(self, log_entries: Sequence[Sequence[tuple[int, int]]]) -> Sequence[str]:
        """Return what each entry says but for its values, by which entries are alike; few totals are not."""
        templates = [self._template(entry) for entry in log_entries]
        counts = Counter(templates)
        for number, entry in enumerate(log_entries):
            text = self.source[slice(*entry[0])]
            if counts[templates[number]] <= _MOST_TOTALS and _TOTAL.search(text):
                templates[number] = _STAMP.sub("", text)
        return templates

    def _template(self, entry_lines: Sequence[tuple[int, int]]) -> str:
        first = self.source[slice(*entry_lines[0])]
        is_trace = _TRACEBACK.match(first) is not None
        last = self.source[slice(*entry_lines[-1])] if is_trace else ""
        text = _STAMP.sub("", first)
        if is_trace or ERROR_LINE.search(text) or is_error_level(text):
            return mask_values(text + last)
        return mask_values(_NAME.sub("*", text))

    def _entry(
        self,
        entry_lines: Sequence[tuple[int, int]],
        number: int,
        alike: Sequence[tuple[int, int]],
        *,
        first: int,
        message_count: int,
        near_end: int,
    ) -> None:
        is_first = first < 0
        texts = [self.source[start:end] for start, end in entry_lines]
        level = is_error_level(texts[0])
        is_error = level if level is not None else ERROR_LINE.search(texts[0]) is not None
        is_total = level is not True and any(map(_TOTAL.search, texts[:1])) and len(alike) < 3
        cost = 0.9 + 0.2 * math.log2(1 + message_count)
        if is_total:
            cost = 0.0
        elif is_error:
            cost = 0.1
        elif _WARNING.search(texts[0]):
            cost = 0.5 + 0.1 * math.log2(1 + message_count)
        elif number < 2 or near_end <= _LAST_LINES:
            cost = 0.4
        if not is_first:
            cost += 2.0 + math.log2(1 + self.repeats[first])
            self.repeats[first] += 1
        top = len(self.pieces)
        is_trace = _TRACEBACK.match(texts[0]) is not None
        for n, (start, end) in enumerate(entry_lines):
            is_last = n == len(entry_lines) - 1
            is_message = (is_error and n == 0 and not is_trace) or (is_trace and is_last)
            is_message = is_message or (n > 0 and ERROR_LINE.search(texts[n]) is not None)
            heads = [top] if n and not is_trace else []
            if is_trace and not is_last:
                heads = [top, top + len(entry_lines) - 1] if n else []
            for part, (left, right) in enumerate(chunk_spans(self.source, start, end)):
                piece = Piece(
                    left, right, "code", self.source[left:right], line=number, unit=number, noun="line"
                )
                piece.unit = len(self.pieces)
                piece.heads = heads
                piece.cost = cost if n == 0 or is_message else cost + 0.6 + 0.2 * math.log2(n)
                piece.cost += _LATER_PART * math.log2(1 + part)
                if is_trace and n >= len(entry_lines) - 3:
                    piece.cost = cost + 0.3
                if is_message and is_first:
                    piece.tier = ERROR_TIER
                    piece.noun = "error"
                elif is_total and is_first:
                    piece.tier = ERROR_TIER
                elif number < 1 and n == 0:
                    piece.tier = TITLE_TIER
                if _RULE.match(piece.text):
                    piece.low = "no words"
                elif not is_first:
                    piece.low = "says what an earlier line says"
                    piece.counted_by = first
                self.pieces.append(piece)
        if is_first and len(alike) > 1:
            self._count(top, alike)

    def _count(self, owner: int, alike: Sequence[tuple[int, int]]) -> None:
        """Add what tells of the lines that say the same as the one before."""
        last = _TIME.search(self.source, *alike[-1])
        until = f", last {last[0]}" if last else ""
        text = f" [… {len(alike) - 1} more like it{until}]"
        at = len(self.pieces)
        end = self.pieces[at - 1].end
        piece = Piece(end, end, "count", text, line=self.pieces[owner].line, unit=self.pieces[at - 1].unit)
        piece.heads = [at - 1]
        piece.counted_by = owner
        piece.cost = self.pieces[at - 1].cost
        self.pieces.append(piece)
        self.pieces[at - 1].heads = [*self.pieces[at - 1].heads, at]


def _entries(source: str) -> Iterator[list[tuple[int, int]]]:
    """Yield the lines of each entry: one, with those below that are indented or belong to its traceback."""
    entry: list[tuple[int, int]] = []
    in_trace = False
    start = 0
    for text in source.split("\n"):
        end = start + len(text.rstrip())
        begin, start = start, start + len(text) + 1
        if not text.strip():
            if entry and not in_trace:
                yield entry
                entry = []
            continue
        is_indented = text[0] in " \t"
        if entry and (is_indented or in_trace):
            entry.append((begin, end))
            if in_trace and not is_indented:
                yield entry
                entry = []
                in_trace = False
            continue
        if entry:
            yield entry
        entry = [(begin, end)]
        in_trace = _TRACEBACK.match(text) is not None
    if entry:
        yield entry
