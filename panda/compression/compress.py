"""One document within a budget: whole pieces of it, the most telling ones, nothing invented (S3 §24)."""

import hashlib
import json
import re
import time
from collections import Counter
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from panda.compression.fit import REWRITE, Rewrite
from panda.compression.json import JsonOutline, parse_json
from panda.compression.order import Item, find_first, find_protected, rank
from panda.compression.pieces import ContentType, TextOutline, parse_text, with_heads
from panda.compression.rewrite import word_passages
from panda.documents.records import decode, encode
from panda.errors import LimitError, Problem, UsageError
from panda.models.cl100k import count_tokens
from panda.store.files import read_json, store_errors, write_json

Outline = TextOutline | JsonOutline
"""A parsed document."""

_ROUGH_BUDGET = 2_000
"""Above this, one item that does not fit leaves too little room to be worth a search for others."""
_MOST_SKIPS = 12
_FULL = 0.93
_VERSION = 8
"""Changes when the same inputs would give another result."""
_MOST_FILES = 1_000


@dataclass(frozen=True)
class Dropped:
    text: str  # what it said
    reason: str  # why it went
    rung: int  # rung of the ladder that took it: 1, 2 or 3


@dataclass(frozen=True)
class Compression:
    text: str  # the document
    kind: ContentType  # its type
    before_tokens: int  # budget tokens it had
    after_tokens: int  # budget tokens it has
    rung: int  # highest rung of the ladder that was needed; 0 when the document was within budget
    method: str  # none, whole pieces, lexical, or rewrite
    kept_pieces: int  # number of pieces kept
    dropped: tuple[Dropped, ...]  # what was left out, in order
    protected: tuple[str, ...]  # what was not to be touched
    seconds: float  # wall clock
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
) -> Compression:
    """
    A document within a budget: itself, or some of its pieces as they stand, `[…]` for each stretch left out.
    What is kept at one budget is kept at twice that one. Where a pattern of *keep* occurs, nothing is
    dropped; a rewrite that fails the checks is not used. LimitError: what is protected alone has more tokens
    than the budget, or nothing fits beside the marks and *marks_alone* are no answer.

    >>> compress("Hi. It costs $697. Bye.", kind="generic", budget_tokens=8).text
    'Hi. It costs $697. […]'
    """
    started = time.monotonic()
    before = count_tokens(source)
    if before <= budget_tokens:
        return Compression(source, kind, before, before, 0, "none", 0, (), (), time.monotonic() - started)
    outline, protected = _read(source, kind, tuple(keep))
    pieces, asked = outline.pieces, (query or "").strip()
    order = rank(pieces, protected, kind, query=asked)
    kept = _fill(outline, protected, find_first(pieces, kind), order, budget_tokens, marks_alone)
    full, output = with_heads(pieces, kept), outline.render(kept)
    why = {i: item for item in order for i in item.pieces}
    gone = [i for i in range(len(pieces)) if i not in full]
    dropped = tuple(Dropped(pieces[i].text, why[i].reason, why[i].rung) for i in gone)
    rung = max((piece.rung for piece in dropped), default=1)
    method = "lexical" if rung == 3 else "whole pieces"
    note: str | None = None
    if rung == 3 and rewrite is not None:
        wordings, stay, note = word_passages(outline, full, set(protected), rewrite)
        worded = outline.render(stay, wordings)
        if wordings and count_tokens(worded) <= budget_tokens:
            output, rung, method = worded, 4, REWRITE
    after, seconds = count_tokens(output), time.monotonic() - started
    texts = tuple(pieces[i].text for i in sorted(protected))
    return Compression(output, kind, before, after, rung, method, len(full), dropped, texts, seconds, note)


def least_tokens(source: str, *, kind: ContentType, keep: Sequence[re.Pattern[str]] = ()) -> int:
    """
    The smallest budget that a document can be brought down to: that of what is protected, marks included.

    >>> least_tokens("Hi. It costs $697.\\n", kind="generic")
    2
    """
    outline, protected = _read(source, kind, tuple(keep))
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
    source: str, kind: ContentType, keep: tuple[re.Pattern[str], ...]
) -> tuple[Outline, Mapping[int, str]]:
    """The pieces of a document, and those that are protected with the reason."""
    outline = parse_json(source) or parse_text(source, lines_alone=kind == "tool_result")
    return outline, find_protected(outline.pieces, kind, keep, source)


def _fill(
    outline: Outline,
    protected: Mapping[int, str],
    first: tuple[Set[int], Set[int], float],
    order: Sequence[Item],
    budget: int,
    marks_alone: bool,
) -> set[int]:
    """
    What is kept, heads left out: at half the budget; then what comes *first* (see find_first), whole if it
    fits; then the longest beginning of the order that fits, then what fits behind an item that does not. So
    what is kept at a budget is kept at twice that one.
    """

    def size(kept: Set[int], items: Sequence[Item]) -> int:
        return count_tokens(outline.render({*kept, *(i for item in items for i in item.pieces)}))

    kept = set(protected)
    least = size(kept, ())
    budgets = [budget] if least <= budget else []
    while budgets and budgets[-1] // 2 >= max(least, 1):
        budgets.append(budgets[-1] // 2)
    together, early, share = first
    earlier = [item for item in order if item.rung == 3 and not early.isdisjoint(item.pieces)]
    for most in reversed(budgets):
        if size(together, ()) <= share * most and size(kept | together, ()) <= most:
            kept |= together
        for group in (earlier, order):
            items = [item for item in group if not kept.issuperset(item.pieces)]
            for _ in range(_MOST_SKIPS):
                low, high, room = 0, 0, 2 * most
                while high < len(items) and room >= 0:  # no more can fit
                    room -= max(1, items[high].tokens)
                    high += 1
                while low < high:
                    middle = (low + high + 1) // 2
                    low, high = (middle, high) if size(kept, items[:middle]) <= most else (low, middle - 1)
                kept.update(i for item in items[:low] for i in item.pieces)
                items = items[low + 1 :]
                if not items or most > _ROUGH_BUDGET or size(kept, ()) > _FULL * most:
                    break
            if not all(kept.issuperset(item.pieces) for item in earlier):
                break
    if budgets and (kept or marks_alone):
        return kept
    message = f"nothing fits into a budget of {budget} tokens"
    if not budgets:
        reasons = Counter(protected.values()).most_common()
        what = ", ".join(f"{number} × {reason}" for reason, number in reasons) or "the marks alone"
        over = f"{least - budget} more than the budget of {budget} tokens"
        message = f"what must be kept needs {least} tokens, {over} ({what})"
    needed = least if protected else size(set(), order[:1])
    raise LimitError(message, where=f"budget {budget}", fix=f"give a budget of at least {needed} tokens")


class CompressionCache:
    """Results by all that decides them; none as old as the given age is used."""

    def __init__(self, directory: Path, *, max_age_seconds: float) -> None:
        self._directory, self._max_age_seconds = directory, max_age_seconds

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
