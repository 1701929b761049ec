"""One document within a budget: whole pieces of it, the most telling ones, nothing invented (S3 §24)."""

import re
import time
from collections.abc import Callable, Sequence, Set
from dataclasses import dataclass

from panda.compression.content_types import ContentType
from panda.compression.facts import Weights, weigh
from panda.compression.filling import Plan, fill
from panda.compression.json_pieces import parse_json
from panda.compression.markdown_pieces import parse_text
from panda.compression.pieces import Outline, TextOutline, with_heads
from panda.compression.ranking import Unit, find_units, rank, score_units
from panda.compression.relevance import UnitText, measure
from panda.compression.rewriting import REWRITE, Rewrite, apply_rewrite, rewrite_passages
from panda.compression.verification import verify

Surprise = Callable[[Sequence[UnitText]], Sequence[float] | None]
"""
Says how much of each unit the NERVES model did not expect, 0 to 1; None when it cannot say. Not asked where
there is a query: measured, it adds nothing to the words that text and query share (docs/compression.md).
"""


@dataclass(frozen=True)
class Dropped:
    """One piece that was left out."""

    text: str
    """What it said."""
    reason: str
    """Why it went."""
    rung: int
    """Rung of the ladder that took it: 1, 2 or 3; 4 when another wording stands for it."""


@dataclass(frozen=True)
class Compression:
    """A document within its budget."""

    text: str
    """The document."""
    kind: ContentType
    """Its type."""
    before_tokens: int
    """Budget tokens it had."""
    after_tokens: int
    """Budget tokens it has."""
    rung: int
    """Highest rung of the ladder that was needed; 0 when the document was within budget."""
    method: str
    """none, whole pieces, lexical, model, or rewrite."""
    kept_pieces: int
    """Number of pieces kept."""
    dropped: tuple[Dropped, ...]
    """What was left out, in order."""
    protected: tuple[str, ...]
    """What was not to be touched."""
    seconds: float
    """Wall clock."""
    note: str | None = None
    """What did not work on the way, e.g. a rewrite that was refused."""

    @property
    def ratio(self) -> float:
        """Tokens after by tokens before; 1.0 for an empty document."""
        return round(self.after_tokens / self.before_tokens, 4) if self.before_tokens else 1.0


def compress(
    source: str,
    *,
    kind: ContentType,
    budget_tokens: int,
    count: Callable[[str], int],
    query: str | None = None,
    keep: Sequence[re.Pattern[str]] = (),
    surprise: Surprise | None = None,
    rewrite: Rewrite | None = None,
) -> Compression:
    r"""
    A document within a budget.

    Args:
        source: The document.
        kind: Its type.
        budget_tokens: Most budget tokens it may have.
        count: Maps a text to budget tokens.
        query: What the document is wanted for, if that is known.
        keep: Where one of these occurs, nothing is dropped.
        surprise: Asks the NERVES model; None decides by words alone.
        rewrite: Asks it to word passages anew, if it writes; a wording that fails the checks is not used.

    Returns:
        The document itself if it is within budget; otherwise some of its pieces as they stand, with `[…]`
        for each stretch left out. What is kept at one budget is kept at twice that one.

    Raises:
        LimitError: What is protected alone has more tokens than the budget.

    >>> compress("Hi. It costs $697. Bye.", kind="generic", budget_tokens=22, count=len).text
    'Hi. It costs $697. […]'
    """
    started = time.monotonic()
    before = count(source)
    if before <= budget_tokens:
        return Compression(source, kind, before, before, 0, "none", 0, (), (), time.monotonic() - started)
    plan = _plan(source, kind, count, query, keep, surprise, budget_tokens)
    output, kept = fill(plan, source, budget_tokens=budget_tokens, count=count)
    full = with_heads(plan.outline.pieces, kept)
    dropped = _dropped(plan, full)
    rung = max((one.rung for one in dropped), default=1)
    method = ("model" if plan.by_model else "lexical") if rung == 3 else "whole pieces"
    note = None
    if rung == 3 and rewrite is not None and isinstance(plan.outline, TextOutline):
        worded, note = _reword(plan, plan.outline, full, rewrite, budget_tokens, count)
        if worded is not None:
            output, rung, method = worded, 4, REWRITE
    protected = tuple(plan.outline.pieces[i].text for i in sorted(plan.weights.protected))
    return Compression(
        output,
        kind,
        before,
        count(output),
        rung,
        method,
        len(full),
        dropped,
        protected,
        time.monotonic() - started,
        note,
    )


def least_tokens(
    source: str, *, kind: ContentType, count: Callable[[str], int], keep: Sequence[re.Pattern[str]] = ()
) -> int:
    """
    The smallest budget that a document can be brought down to: that of what is protected, marks included.

    Args:
        source: The document.
        kind: Its type.
        count: Maps a text to budget tokens.
        keep: As for compress.

    >>> least_tokens("Hi. It costs $697.\\n", kind="generic", count=len)
    4
    """
    outline, said = _parse(source, kind)
    protected = weigh(outline.pieces, kind, said, keep=keep).protected
    return min(count(source), count(outline.render(protected)))


def _reword(
    plan: Plan,
    outline: TextOutline,
    full: Set[int],
    rewrite: Rewrite,
    budget_tokens: int,
    count: Callable[[str], int],
) -> tuple[str | None, str | None]:
    """The text with accepted wordings, None if there is none or it fails; and what was refused."""
    made = rewrite_passages(outline, full, plan.weights.protected, rewrite=rewrite, count=count)
    note = "; ".join(dict.fromkeys(made.notes)) or None
    if not made.texts:
        return None, note
    output = apply_rewrite(outline, full, made)
    protected = [outline.pieces[i].text for i in sorted(plan.weights.protected)]
    problems = verify(
        output, outline.source, protected=protected, budget_tokens=budget_tokens, count=count, is_json=False
    )
    return (None, problems[0]) if problems else (output, note)


def _plan(
    source: str,
    kind: ContentType,
    count: Callable[[str], int],
    query: str | None,
    keep: Sequence[re.Pattern[str]],
    surprise: Surprise | None,
    budget_tokens: int,
) -> Plan:
    outline, said = _parse(source, kind)
    pieces = outline.pieces
    weights = weigh(pieces, kind, said, keep=keep)
    tokens = [count(piece.text) for piece in pieces]
    units = find_units(pieces, tokens)
    texts = [_unit_text(outline, unit) for unit in units]
    signals = measure(texts, query)
    found = None
    asked = bool(query and query.strip())
    if surprise is not None and not asked and _needs_model(units, weights, budget_tokens):
        found = surprise(texts)
    scores = score_units(pieces, units, signals, found, kind)
    order = rank(pieces, units, scores, weights, kind, tokens=tokens, has_query=asked)
    return Plan(outline, weights, tuple(order), found is not None)


def _parse(source: str, kind: ContentType) -> tuple[Outline, str]:
    """The pieces of a document, and the text that its claims are looked up in."""
    parsed = parse_json(source)
    if parsed is not None:
        return parsed, "\n".join(piece.text for piece in parsed.pieces)
    return parse_text(source, lines_alone=kind == "tool_result"), source


def _needs_model(units: Sequence[Unit], weights: Weights, budget_tokens: int) -> bool:
    """Whether dropping whole low-priority pieces does not suffice."""
    good = sum(
        size
        for unit in units
        for i, size in zip(unit.pieces, unit.tokens, strict=True)
        if i not in weights.low
    )
    return good > budget_tokens


def _unit_text(outline: Outline, unit: Unit) -> UnitText:
    pieces = outline.pieces
    first = pieces[unit.pieces[0]]
    around = [pieces[i].text for i in first.heads if pieces[i].kind in ("label", "heading", "table_head")]
    return UnitText(
        " ".join(pieces[i].text for i in unit.pieces), first.line, " ".join([*first.path[:-1], *around])
    )


def _dropped(plan: Plan, kept: Set[int]) -> tuple[Dropped, ...]:
    why = {i: item for item in plan.order for i in item.pieces}
    return tuple(
        Dropped(piece.text, why[i].reason, why[i].rung)
        for i, piece in enumerate(plan.outline.pieces)
        if i not in kept
    )
