"""One document within a budget: whole pieces of it, the most telling ones, nothing invented (S3 §24)."""

import hashlib
import json
import re
import time
from collections import Counter
from collections.abc import Callable, Sequence, Set
from dataclasses import dataclass
from pathlib import Path

from panda.compression.documents import REWRITE, ContentType, Rewrite
from panda.compression.json_pieces import JsonOutline, parse_json
from panda.compression.order import Item, Unit, find_units, rank, score_units
from panda.compression.pieces import Piece, TextOutline, parse_text, with_heads
from panda.compression.protection import Weights, weigh
from panda.compression.rewrite import rewrite_passages
from panda.compression.signals import UnitText, measure
from panda.compression.verification import verify
from panda.documents.records import decode, encode
from panda.errors import LimitError, Problem
from panda.models.cl100k import count_tokens
from panda.store.files import read_json, store_errors, write_json

Outline = TextOutline | JsonOutline
"""A parsed document."""

_ROUGH_BUDGET = 2_000
"""Above this, one item that does not fit leaves too little room to be worth a search for others."""
_MOST_SKIPS = 12
_TINY = 24
_FULL = 0.93


Surprise = Callable[[Sequence[UnitText]], Sequence[float] | None]
"""
Says how much of each unit the NERVES model did not expect, 0 to 1; None when it cannot say. Not asked where
there is a query: measured, it adds nothing to the words that text and query share (docs/compression.md).
"""
_VERSION = 5
"""Changes when the same inputs would give another result."""
_MOST_FILES = 1_000


@dataclass(frozen=True)
class Dropped:
    text: str  # what it said
    reason: str  # why it went
    rung: int  # rung of the ladder that took it: 1, 2 or 3; 4 when another wording stands for it


@dataclass(frozen=True)
class Compression:
    text: str  # the document
    kind: ContentType  # its type
    before_tokens: int  # budget tokens it had
    after_tokens: int  # budget tokens it has
    rung: int  # highest rung of the ladder that was needed; 0 when the document was within budget
    method: str  # none, whole pieces, lexical, model, or rewrite
    kept_pieces: int  # number of pieces kept
    dropped: tuple[Dropped, ...]  # what was left out, in order
    protected: tuple[str, ...]  # what was not to be touched
    seconds: float  # wall clock
    note: str | None = None  # what did not work on the way, e.g. a rewrite that was refused

    @property
    def ratio(self) -> float:
        """Tokens after by tokens before; 1.0 for an empty document."""
        return round(self.after_tokens / self.before_tokens, 4) if self.before_tokens else 1.0


@dataclass(frozen=True)
class _Plan:
    source: str  # the document
    outline: Outline  # its pieces
    weights: Weights  # what is protected
    order: tuple[Item, ...]  # what is kept next
    by_model: bool  # whether the model had a say in the order

    @property
    def protected(self) -> tuple[str, ...]:
        return tuple(self.outline.pieces[i].text for i in sorted(self.weights.protected))

    @property
    def first(self) -> Set[int]:
        """The pieces that are kept before all others where none is protected."""
        return {i for item in self.order[:1] for i in item.pieces}

    def size(self, kept: Set[int]) -> int:
        return count_tokens(self.outline.render(kept))

    def faults(self, output: str, budget_tokens: int) -> list[str]:
        return verify(
            output,
            self.source,
            protected=self.protected,
            budget_tokens=budget_tokens,
            is_json=isinstance(self.outline, JsonOutline),
        )


def compress(
    source: str,
    *,
    kind: ContentType,
    budget_tokens: int,
    query: str | None = None,
    keep: Sequence[re.Pattern[str]] = (),
    surprise: Surprise | None = None,
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
    plan = _plan(source, kind, query, keep, surprise, budget_tokens)
    output, kept = _fill(plan, budget_tokens)
    if not (kept or marks_alone):
        raise LimitError(
            f"nothing fits into a budget of {budget_tokens} tokens",
            where=f"budget {budget_tokens}",
            fix=f"give a budget of at least {plan.size(plan.first)} tokens",
        )
    full = with_heads(plan.outline.pieces, kept)
    why = {i: item for item in plan.order for i in item.pieces}
    dropped = tuple(
        Dropped(piece.text, why[i].reason, why[i].rung)
        for i, piece in enumerate(plan.outline.pieces)
        if i not in full
    )
    rung = max((piece.rung for piece in dropped), default=1)
    method = ("model" if plan.by_model else "lexical") if rung == 3 else "whole pieces"
    note = None
    if rung == 3 and rewrite is not None and isinstance(plan.outline, TextOutline):
        worded, note = _reword(plan, plan.outline, full, rewrite, budget_tokens)
        if worded is not None:
            output, rung, method = worded, 4, REWRITE
    after, seconds = count_tokens(output), time.monotonic() - started
    return Compression(
        output, kind, before, after, rung, method, len(full), dropped, plan.protected, seconds, note
    )


def least_tokens(source: str, *, kind: ContentType, keep: Sequence[re.Pattern[str]] = ()) -> int:
    """
    The smallest budget that a document can be brought down to: that of what is protected, marks included.

    >>> least_tokens("Hi. It costs $697.\\n", kind="generic")
    2
    """
    outline, said = _parse(source, kind)
    protected = weigh(outline.pieces, kind, said, keep=keep).protected
    return min(count_tokens(source), count_tokens(outline.render(protected)))


def _plan(
    source: str,
    kind: ContentType,
    query: str | None,
    keep: Sequence[re.Pattern[str]],
    surprise: Surprise | None,
    budget_tokens: int,
) -> _Plan:
    outline, text = _parse(source, kind)
    pieces = outline.pieces
    weights = weigh(pieces, kind, text, keep=keep)
    tokens = [count_tokens(piece.text) for piece in pieces]
    units = find_units(pieces)
    texts = [_unit_text(pieces, unit) for unit in units]
    surprises = None
    asked = bool(query and query.strip())
    good = {i for unit in units for i in unit if i not in weights.low}
    if surprise is not None and not asked and sum(tokens[i] for i in good) > budget_tokens:
        surprises = surprise(texts)  # dropping whole pieces of low priority does not suffice
    scores = score_units(pieces, units, measure(texts, query), surprises, kind)
    order = rank(pieces, units, scores, weights, kind, tokens=tokens, has_query=asked)
    return _Plan(source, outline, weights, tuple(order), surprises is not None)


def _parse(source: str, kind: ContentType) -> tuple[Outline, str]:
    """The pieces of a document, and the text that its claims are looked up in."""
    parsed = parse_json(source)
    if parsed is not None:
        return parsed, "\n".join(piece.text for piece in parsed.pieces)
    return parse_text(source, lines_alone=kind == "tool_result"), source


def _unit_text(pieces: Sequence[Piece], unit: Unit) -> UnitText:
    first = pieces[unit[0]]
    around = [pieces[i].text for i in first.heads if pieces[i].kind in ("label", "heading", "table_head")]
    return UnitText(" ".join(pieces[i].text for i in unit), first.line, " ".join([*first.path[:-1], *around]))


def _fill(plan: _Plan, budget_tokens: int) -> tuple[str, set[int]]:
    """The document with as much of the order as fits, verified; and the pieces kept, heads left out."""
    least = plan.size(plan.weights.protected)
    if least > budget_tokens:
        raise _over(least, budget_tokens, plan)
    order = list(plan.order)
    step = 1
    while True:
        kept = _take(plan, order, budget_tokens, max(least, 1))
        output = plan.outline.render(kept)
        faults = plan.faults(output, budget_tokens)
        if not faults:
            return output, kept
        there = [n for n, item in enumerate(order) if kept.issuperset(item.pieces)]
        if not there:
            raise LimitError(f"what was kept is not true to the source: {faults[0]}", fix="raise the budget")
        for n in reversed(there[-step:]):
            del order[n]
        step *= 2  # a document that fails again and again is not worth a check an item


def _take(plan: _Plan, order: Sequence[Item], budget_tokens: int, least: int) -> set[int]:
    """
    What is kept at half the budget, then the longest beginning of the order that fits, then what fits behind
    an item that does not: only facts if that one holds facts. So what is kept at a budget is kept at twice
    that one.
    """
    half = budget_tokens // 2
    kept = _take(plan, order, half, least) if half >= least else set(plan.weights.protected)
    items = list(order)
    for _ in range(_MOST_SKIPS):
        low, high = 0, _furthest(items, 2 * budget_tokens)
        while low < high:
            middle = (low + high + 1) // 2
            if plan.size(_with(kept, items[:middle])) <= budget_tokens:
                low = middle
            else:
                high = middle - 1
        kept = _with(kept, items[:low])
        missed, items = items[low : low + 1], items[low + 1 :]
        has_room = len(kept) > len(plan.weights.protected) or budget_tokens < _TINY
        if missed and missed[0].is_fact and has_room:
            items = [item for item in items if item.is_fact]  # others would take its room at the next budget
        if not items or budget_tokens > _ROUGH_BUDGET or plan.size(kept) > _FULL * budget_tokens:
            break
    return kept


def _furthest(items: Sequence[Item], tokens: int) -> int:
    """Where so many tokens of items end; the search need not look further."""
    place = 0
    while place < len(items) and tokens >= 0:
        tokens -= max(1, items[place].tokens)
        place += 1
    return place


def _with(kept: Set[int], items: Sequence[Item]) -> set[int]:
    return {*kept, *(i for item in items for i in item.pieces)}


def _over(least: int, budget_tokens: int, plan: _Plan) -> LimitError:
    reasons = Counter(plan.weights.reasons.values())
    what = ", ".join(f"{number} × {reason}" for reason, number in reasons.most_common()) or "the marks alone"
    return LimitError(
        f"what must be kept needs {least} tokens, {least - budget_tokens} more than the budget of "
        f"{budget_tokens} tokens ({what})",
        where=f"budget {budget_tokens}",
        fix=f"give a budget of at least {plan.size(plan.weights.protected or plan.first)} tokens",
    )


def _reword(
    plan: _Plan, outline: TextOutline, full: Set[int], rewrite: Rewrite, budget_tokens: int
) -> tuple[str | None, str | None]:
    """The text with accepted wordings, None if there is none or it fails; and what was refused."""
    protected = plan.weights.protected
    output, refused = rewrite_passages(outline, full, protected, rewrite=rewrite)
    note = "; ".join(dict.fromkeys(refused)) or None
    if output is None:
        return None, note
    faults = plan.faults(output, budget_tokens)
    return (None, faults[0]) if faults else (output, note)


class CompressionCache:
    """Results by all that decides them; none older than the given age is used, any if that is None."""

    def __init__(self, directory: Path, *, max_age_seconds: float | None = None) -> None:
        self._directory = directory
        self._max_age_seconds = max_age_seconds

    def key(self, *parts: object) -> str:
        """The name of a result that these plain JSON values decide, always in the same order."""
        return hashlib.sha256(json.dumps([_VERSION, *parts]).encode()).hexdigest()

    def find(self, key: str) -> Compression | None:
        """The result of that name, or None; a damaged file, or one that is too old, counts as none."""
        path, most = self._path(key), self._max_age_seconds
        if not path.is_file() or (most is not None and time.time() - path.stat().st_mtime >= most):
            return None
        try:
            return decode(Compression, read_json(path), where=str(path))
        except Problem:
            return None

    def keep(self, key: str, result: Compression) -> None:
        """Keep a result; of more than 1,000 the oldest go."""
        write_json(self._path(key), encode(result))
        with store_errors(self._directory, "clear"):
            files = sorted(self._directory.glob("*.json"), key=lambda path: path.stat().st_mtime)
            for path in files[:-_MOST_FILES]:
                path.unlink(missing_ok=True)

    def _path(self, key: str) -> Path:
        return self._directory / f"{key}.json"
