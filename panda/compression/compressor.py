"""One document within a budget: whole pieces of it, the most telling ones, nothing invented (S3 §24)."""

import hashlib
import json
import re
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from panda.compression.fit import REWRITE, Rewrite
from panda.compression.order import (
    Closeness,
    Item,
    bind_sources,
    find_first,
    find_protected,
    mark_errors,
    rank,
)
from panda.compression.pieces import ERROR_TIER, ContentType, Piece, with_heads
from panda.compression.plans import Format, Outline, detect_format, parse_document
from panda.compression.rewrite import word_passages
from panda.documents.record_codec import decode, encode
from panda.errors import LimitError, Problem, UsageError
from panda.models.cl100k import count_tokens
from panda.store.files import read_json, store_errors, write_json

_LEAST_BUDGET = 16
"""Of a smaller part of a budget nothing is told."""
_MOST_TRIES = 60
"""So many items behind one that does not fit are tried."""
_FULL = 0.98
_Size = Callable[[Set[int], Sequence[Item]], int]
"""Gives the tokens of what is kept with some items more."""
_PROSE: frozenset[Format] = frozenset(("text", "output", "messages", "html"))
"""Formats of sentences, any of which may tell of an error; they are compared by meaning, too."""
_VERSION = 12
"""Changes when the same inputs would give another result."""
_MOST_FILES = 1_000


@dataclass(frozen=True)
class Dropped:
    text: str  # what it said
    reason: str  # why it went
    rung: int  # rung of the ladder that took it: 1, 2 or 3


@dataclass(frozen=True)
class KeptParts:
    """How many parts of one kind a document has, and how many of them are kept."""

    kind: str  # error, heading, sentence, row, line or value
    before: int
    after: int


@dataclass(frozen=True)
class Compression:
    text: str  # the document
    kind: ContentType  # its type
    format: Format | None  # what it was read as; None for one that was within its budget
    before_tokens: int  # budget tokens it had
    after_tokens: int  # budget tokens it has
    rung: int = 0  # highest rung of the ladder that was needed; 0 when the document was within budget
    method: str = "none"  # or whole pieces, lexical, or rewrite
    kept_pieces: int = 0  # number of pieces kept
    dropped: tuple[Dropped, ...] = ()  # what was left out, in order
    protected: tuple[str, ...] = ()  # what was not to be touched
    seconds: float = 0.0  # wall clock
    parts: tuple[KeptParts, ...] = ()  # what it consists of, by kind
    note: str | None = None  # what did not work on the way, e.g. a rewrite that was refused

    @property
    def ratio(self) -> float:
        """Tokens after by tokens before; 1.0 for an empty document."""
        return round(self.after_tokens / self.before_tokens, 4) if self.before_tokens else 1.0


def compress(
    source: str,
    *,
    kind: ContentType,
    budget_tokens: int,
    query: str | None = None,
    keep: Sequence[re.Pattern[str]] = (),
    rewrite: Rewrite | None = None,
    marks_alone: bool = True,
    name: str = "",
    document_format: Format | None = None,
    closeness: Closeness | None = None,
) -> Compression:
    """
    Return a document within a budget: itself, or some of its pieces as they stand, with a mark for each
    stretch that is left out. What is kept at one budget is kept at twice that one.

    Args:
        source: The document.
        kind: Its type (S3 §22), which says what comes first.
        budget_tokens: Most tokens that the result may have.
        query: What the document is wanted for.
        keep: Where one of these occurs, nothing is dropped.
        rewrite: Words passages anew; what fails the checks is not used.
        marks_alone: Whether marks without a piece of the document are a result.
        name: The name of its file, which may tell its format.
        document_format: What it is read as; None to find out.
        closeness: How close texts are by meaning; None to go by words and places.

    Raises:
        LimitError: What is protected alone has more tokens than the budget, or nothing fits beside the marks.

    >>> compress("Hi. It costs $697. Bye.", kind="generic", budget_tokens=8).text
    'Hi. It costs $697. […]'
    """
    started = time.monotonic()
    before = count_tokens(source)
    if before <= budget_tokens:
        return Compression(source, kind, None, before, before, seconds=time.monotonic() - started)
    document_format = document_format or detect_format(name, source, kind)
    outline, protected = _read(source, kind, document_format, tuple(keep))
    pieces = outline.pieces
    closeness = closeness if document_format in _PROSE else None
    order = rank(pieces, protected, kind, query=(query or "").strip(), closeness=closeness)
    kept_pieces = _fill(
        outline,
        protected,
        find_first(pieces, kind),
        order,
        budget=budget_tokens,
        marks_alone=marks_alone,
    )
    full = with_heads(pieces, kept_pieces)
    output = outline.render(kept_pieces)
    why = {i: item for item in order for i in item.pieces}
    gone = [i for i in range(len(pieces)) if i not in full and pieces[i].kind != "count"]
    dropped = tuple(Dropped(pieces[i].text, why[i].reason, why[i].rung) for i in gone)
    rung = max((piece.rung for piece in dropped), default=1)
    method = "lexical" if rung == 3 else "whole pieces"
    note: str | None = None
    if rung == 3 and rewrite is not None:
        errors = {i for i, piece in enumerate(pieces) if piece.tier == ERROR_TIER}
        wordings, stay, note = word_passages(outline, full, set(protected) | errors, rewrite)
        worded = outline.render(stay, wordings)
        if wordings and count_tokens(worded) <= budget_tokens:
            output = worded
            rung = 4
            method = REWRITE
    return Compression(
        text=output,
        kind=kind,
        format=document_format,
        before_tokens=before,
        after_tokens=count_tokens(output),
        rung=rung,
        method=method,
        kept_pieces=len(full),
        dropped=dropped,
        protected=tuple(pieces[i].text for i in sorted(protected)),
        seconds=time.monotonic() - started,
        parts=_count_parts(pieces, full),
        note=note,
    )


def _count_parts(pieces: Sequence[Piece], selected: Set[int]) -> tuple[KeptParts, ...]:
    """Return how many errors, headings, sentences, rows, lines and values there are, and are kept."""
    before: dict[str, set[int]] = {}
    after: dict[str, set[int]] = {}
    for i, piece in enumerate(pieces):
        kind: str = piece.noun or ("value" if piece.kind == "field" else piece.kind)
        if piece.noun or kind in ("heading", "sentence", "value"):
            before.setdefault(kind, set()).add(piece.unit)
            if i in selected:
                after.setdefault(kind, set()).add(piece.unit)
    return tuple(KeptParts(kind, len(units), len(after.get(kind, ()))) for kind, units in before.items())


def least_tokens(source: str, *, kind: ContentType, keep: Sequence[re.Pattern[str]] = ()) -> int:
    """
    The smallest budget that a document can be brought down to: that of what is protected, marks included.

    >>> least_tokens("Hi. It costs $697.\\n", kind="generic")
    2
    """
    outline, protected = _read(source, kind, detect_format("", source, kind), tuple(keep))
    return min(count_tokens(source), count_tokens(outline.render(set(protected))))


def compile_keep(patterns: Sequence[str]) -> tuple[re.Pattern[str], ...]:
    compiled = []
    for pattern in patterns:
        try:
            compiled.append(re.compile(pattern))
        except re.error as exc:
            fix = "escape characters such as ( and [ with a backslash"
            raise UsageError(f"not a regular expression: {exc}", where=f"--keep {pattern}", fix=fix) from exc
    return tuple(compiled)


@lru_cache(maxsize=16)  # least_tokens and compress are asked about the same documents
def _read(
    source: str, kind: ContentType, document_format: Format, keep: tuple[re.Pattern[str], ...]
) -> tuple[Outline, Mapping[int, str]]:
    """The pieces of a document, and those that are protected with the reason."""
    outline = parse_document(source, document_format, kind)
    if document_format in _PROSE or document_format == "settings":
        is_told = kind == "tool_result" or document_format in ("messages", "settings")
        mark_errors(outline.pieces, outline.source, is_told=is_told)
    if kind == "research.md":
        bind_sources(outline.pieces)
    return outline, find_protected(outline.pieces, kind, keep)


def _fill(
    outline: Outline,
    protected: Mapping[int, str],
    leading: tuple[Set[int], Set[int], float],
    order: Sequence[Item],
    *,
    budget: int,
    marks_alone: bool,
) -> set[int]:
    """
    Return what is kept, heads left out: what is *leading* (see find_first), whole if it fits; then the
    longest beginning of the order that fits, then of what would fit into twice the budget what fits into this
    one. So what is kept at a budget is kept at twice that one.
    """

    def measure(selected: Set[int], following: Sequence[Item]) -> int:
        return count_tokens(outline.render({*selected, *(i for item in following for i in item.pieces)}))

    selected = set(protected)
    least = measure(selected, ())
    together, early, share = leading
    if measure(together, ()) <= share * budget and measure(selected | together, ()) <= budget:
        selected |= together
    earlier = [item for item in order if item.rung == 3 and not early.isdisjoint(item.pieces)]
    if not selected:
        selected |= _first_short(order, measure, budget)
    for group in (earlier, order):
        if least > budget:
            break
        items = [item for item in group if not selected.issuperset(item.pieces)]
        count = _longest_fitting(selected, items, measure, budget)
        reach = _longest_fitting(selected, items, measure, 2 * budget)
        selected.update(i for item in items[:count] for i in item.pieces)
        _fill_up(selected, items[count:reach], measure, budget)
        if not all(selected.issuperset(item.pieces) for item in earlier):
            break
    if least <= budget and (selected or marks_alone):
        return selected
    message = f"nothing fits into a budget of {budget} tokens"
    if least > budget:
        reasons = Counter(protected.values()).most_common()
        what = ", ".join(f"{number} × {reason}" for reason, number in reasons) or "the marks alone"
        over = f"{least - budget} more than the budget of {budget} tokens"
        message = f"what must be kept needs {least} tokens, {over} ({what})"
    needed = least if protected else measure(set(), order[:1])
    raise LimitError(message, where=f"budget {budget}", fix=f"give a budget of at least {needed} tokens")


def _first_short(order: Sequence[Item], measure: _Size, budget: int) -> set[int]:
    """
    Return what is kept where all that comes first is too long: the first piece that fits into the smallest
    half, quarter, … of the budget into which anything fits; empty if the beginning of the order fits there.
    """
    if budget < _LEAST_BUDGET:
        return set()
    parts = [budget]
    while parts[-1] // 2 >= _LEAST_BUDGET:
        parts.append(parts[-1] // 2)
    for part in reversed(parts):
        if _longest_fitting(set(), order[:1], measure, part):
            return set()
        short = (
            item for item in order[:_MOST_TRIES] if item.tokens <= part and measure(set(), [item]) <= part
        )
        for item in short:
            return set(item.pieces)
    return set()


def _fill_up(picked: set[int], following: Sequence[Item], measure: _Size, most: int) -> None:
    """Add the items that fit, in their order, until there is next to no room."""
    room = most - measure(picked, ())
    for item in following[:_MOST_TRIES]:
        if room < (1 - _FULL) * most:
            return
        if item.tokens <= room and (after := measure(picked, [item])) <= most:
            picked.update(item.pieces)
            room = most - after


def _longest_fitting(selected: Set[int], following: Sequence[Item], measure: _Size, most: int) -> int:
    """Return how many of the following items fit beside what is kept."""
    low = 0
    high = 0
    room = 2 * most
    while high < len(following) and room >= 0:  # no more can fit
        room -= max(1, following[high].tokens)
        high += 1
    while low < high:
        middle = (low + high + 1) // 2
        if measure(selected, following[:middle]) <= most:
            low = middle
        else:
            high = middle - 1
    return low


class CompressionCache:
    """Results by all that decides them; none as old as the given age is used."""

    def __init__(self, directory: Path, *, max_age_seconds: float) -> None:
        self._directory = directory
        self._max_age_seconds = max_age_seconds

    def key(self, *parts: object) -> str:
        """The name of a result that these plain JSON values decide, always in the same order."""
        return hashlib.sha256(json.dumps([_VERSION, *parts]).encode()).hexdigest()

    def find(self, key: str) -> Compression | None:
        """The result of that name, or None; a damaged file, or one that is too old, counts as none."""
        path = self._directory / f"{key}.json"
        if not path.is_file() or time.time() - path.stat().st_mtime >= self._max_age_seconds:
            return None
        try:
            return decode(Compression, read_json(path), where=str(path))
        except Problem:
            return None

    def keep(self, key: str, result: Compression) -> None:
        """Keep a result; of more than 1,000 the oldest go."""
        write_json(self._directory / f"{key}.json", encode(result))
        with store_errors(self._directory, "clear"):
            files = sorted(self._directory.glob("*.json"), key=lambda path: path.stat().st_mtime)
            for path in files[:-_MOST_FILES]:
                path.unlink(missing_ok=True)
