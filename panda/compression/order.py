"""
One order in which the pieces of a document are kept, whatever the budget.

Every budget takes from the same order. What is kept at one budget is kept at twice that one; a budget that is
only a little larger may take a large piece instead of several small ones.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from heapq import heapify, heappop, heappush

from panda.compression.documents import ContentType
from panda.compression.pieces import Piece, with_heads
from panda.compression.protection import Weights, object_names, page_confidences
from panda.compression.signals import Signals

_WHOLE_TOKENS = 48
_CLAUSE_TOKENS = 20
_HUGE_TOKENS = 160
_FACT_SHARE = 0.9
_FACT_SHARE_WITH_QUERY = 0.15
_AS_WRITTEN = 0.3
"""What it counts that a known price or date is written in another way, beside 1 for a new one."""
_MARK_TOKENS = 4
_SAYS = 0.25
"""What it counts that a unit is telling as such, beside its fit to the query."""
_PAGE_SHARES = (0.7, 0.2, 0.1)
"""Of a page: zones with fields, running text, URL and times of the page (S3 §22)."""
_SURE = 0.8
_FIRST_REASONS = ("boilerplate", "no words", "navigation", "zone with confidence below 0.5")
_STRUCTURE = ("heading", "label", "fence", "table_head")


Unit = tuple[int, ...]
"""Indexes of pieces that are weighed together, ascending: of a sentence, a row, a value."""


@dataclass(frozen=True)
class Item:
    """The next thing to keep."""

    pieces: tuple[int, ...]  # indexes of pieces
    rung: int  # what drops it: 1 repeats and boilerplate, 2 low priority, 3 too little information
    reason: str  # why it is dropped when it is
    is_fact: bool = False  # whether it is kept for a price, URL or date that nothing before it holds
    tokens: int = 0  # budget tokens of its pieces, heads and marks apart


def find_units(pieces: Sequence[Piece]) -> list[Unit]:
    """The units of a document, in order; structure such as headings is in none."""
    found: dict[int, list[int]] = {}
    for i, piece in enumerate(pieces):
        if piece.kind not in _STRUCTURE:
            found.setdefault(piece.unit, []).append(i)
    return [tuple(members) for members in found.values()]


def rank(
    pieces: Sequence[Piece],
    units: Sequence[Unit],
    scores: Sequence[float],
    weights: Weights,
    kind: ContentType,
    *,
    tokens: Sequence[int],
    has_query: bool,
) -> list[Item]:
    """
    Everything that is not protected, each piece once, best first. Facts that are not yet covered take turns
    with the best units, by tokens: so neither pushes the other out. Of a page each part gets its share; with
    a query, scores count for more than facts.
    """
    sizes = {i: tokens[i] for unit in units for i in unit}
    order = sorted(range(len(units)), key=lambda n: (-scores[n], n))
    worth = {i: scores[n] for n in order for i in units[n]}
    facts = _cover_facts(pieces, tokens, weights, worth)
    stretch = {i: part for unit in units for part in _parts(unit, weights, tokens) for i in part}
    around = [replace(item, pieces=stretch.get(item.pieces[0], item.pieces)) for item in facts]
    facts = around if has_query else [*facts, *around]
    lines = [item for n in order for item in _items(units[n], weights, tokens)]
    good = [item for item in lines if item.rung == 3]
    rest = sorted((item for item in lines if item.rung < 3), key=lambda item: -item.rung)
    share = _FACT_SHARE_WITH_QUERY if has_query else _FACT_SHARE
    if kind == "page_doc":
        parts = [[item for item in good if _page_part(pieces, item) == part] for part in range(3)]
        good = _take_turns(parts, _PAGE_SHARES, sizes)
    merged = _take_turns((facts, good), (share, 1 - share), sizes)
    done = {i for item in merged for i in item.pieces} | weights.protected
    ranked = list(merged)
    for item in rest:
        left = tuple(i for i in item.pieces if i not in done)
        if left:
            ranked.append(Item(left, item.rung, item.reason))
            done.update(left)
    bare = [i for i, piece in enumerate(pieces) if i not in done]
    ranked += [Item((i,), 2, "nothing below it is kept") for i in bare]
    return [replace(item, tokens=sum(sizes.get(i, 0) for i in item.pieces)) for item in ranked]


def _cover_facts(
    pieces: Sequence[Piece], tokens: Sequence[int], weights: Weights, worth: dict[int, float]
) -> list[Item]:
    """
    Pieces that hold every price, URL and date between them: each time the one that adds most for what it
    takes with the heads that do not stand yet. Pieces that are the first to go come last.
    """
    covered = {fact for i in weights.protected for fact in weights.facts.get(i, ())}
    stand = with_heads(pieces, weights.protected)
    below: dict[int, list[int]] = {}
    heads = {i: with_heads(pieces, {i}) - {i} for i in weights.facts}
    for i, above in heads.items():
        for head in above:
            below.setdefault(head, []).append(i)

    def offer(i: int) -> tuple[bool, float, int]:
        new = [
            1.0 if not fact.startswith("as ") else _AS_WRITTEN
            for fact in weights.facts[i]
            if fact not in covered
        ]
        size = tokens[i] + sum(tokens[head] for head in heads[i] - stand)
        return i in weights.low, -sum(new) / (_MARK_TOKENS + size) - 0.05 * worth.get(i, 0.0) * bool(new), i

    waiting = [offer(i) for i in weights.facts if tokens[i] <= _HUGE_TOKENS]
    heapify(waiting)
    items: list[Item] = []
    while waiting:
        best = heappop(waiting)
        i = best[2]
        if i in stand or covered.issuperset(weights.facts[i]):
            continue
        now = offer(i)
        if now > best:
            heappush(waiting, now)
            continue
        covered.update(weights.facts[i])
        items.append(Item((i,), 3, "its facts do not fit", is_fact=True))
        cheaper = [i_below for head in heads[i] - stand for i_below in below[head]]
        stand |= heads[i] | {i}
        for i_below in dict.fromkeys(cheaper):
            if i_below not in stand and tokens[i_below] <= _HUGE_TOKENS:
                heappush(waiting, offer(i_below))
    return items


def _parts(unit: Unit, weights: Weights, tokens: Sequence[int]) -> list[tuple[int, ...]]:
    """The pieces of a unit that do not go first: all at once, or of a long one so many as make a clause."""
    most = _WHOLE_TOKENS if sum(tokens[i] for i in unit) <= _WHOLE_TOKENS else _CLAUSE_TOKENS
    parts: list[tuple[int, ...]] = []
    for i in unit:
        if i in weights.low or i in weights.protected:
            continue
        if parts and sum(tokens[k] for k in parts[-1]) + tokens[i] <= most:
            parts[-1] = (*parts[-1], i)
        else:
            parts.append((i,))
    return parts


def _items(unit: Unit, weights: Weights, tokens: Sequence[int]) -> list[Item]:
    """A unit as one item, or a long one as one item a clause; what goes first apart."""
    items = []
    for part in _parts(unit, weights, tokens):
        if tokens[part[0]] > _HUGE_TOKENS:
            items.append(Item(part, 2, f"one piece of {tokens[part[0]]} tokens that cannot be cut"))
        else:
            items.append(Item(part, 3, "says less than what is kept"))
    for i in unit:
        if i in weights.low:
            reason = weights.low[i]
            rung = 1 if "repeats" in reason or reason in _FIRST_REASONS else 2
            items.append(Item((i,), rung, reason))
    return items


def _page_part(pieces: Sequence[Piece], item: Item) -> int:
    """Of which share a page's item is: 0 fields and facts of its zones, 1 running text, 2 the page itself."""
    piece = pieces[item.pieces[0]]
    if len(piece.path) == 1 and not piece.heads:
        return 2
    beside = [i for i in (item.pieces[0] - 1, item.pieces[0] + 1) if 0 <= i < len(pieces)]
    is_text = any(pieces[i].start == piece.start for i in beside)  # of one long string
    return 1 if is_text and not item.is_fact else 0


def _take_turns(
    lists: Sequence[Sequence[Item]], shares: Sequence[float], sizes: dict[int, int]
) -> list[Item]:
    """The lists merged so that each gets its share of the tokens until it is used up; nothing twice."""
    merged: list[Item] = []
    done: set[int] = set()
    taken = [0.0] * len(lists)
    at = [0] * len(lists)
    while waiting := [n for n, items in enumerate(lists) if at[n] < len(items)]:
        turn = min(waiting, key=lambda n: (taken[n] / shares[n], n))
        item = lists[turn][at[turn]]
        at[turn] += 1
        left = tuple(i for i in item.pieces if i not in done)
        if left:
            merged.append(replace(item, pieces=left))
            done.update(left)
            taken[turn] += sum(sizes.get(i, 0) + 2 for i in left)
    return merged


def score_units(
    pieces: Sequence[Piece],
    units: Sequence[Unit],
    signals: Signals,
    surprise: Sequence[float] | None,
    kind: ContentType,
) -> list[float]:
    """What each unit is worth: its fit to the query, how much it says, what a model did not expect."""
    newest = max((piece.section or 0 for piece in pieces), default=0)
    sure = page_confidences(pieces) if kind == "page_doc" else {}
    scores = []
    for n, unit in enumerate(units):
        piece = pieces[unit[0]]
        says = signals.specific[n] + signals.marks[n]
        if surprise is not None:
            says += surprise[n]
        if sure.get(unit[0], 0.0) >= _SURE:
            says += 1
        scores.append(signals.query[n] + _SAYS * says + _bonus(pieces, piece, n, len(units), kind, newest))
    return scores


def _bonus(
    pieces: Sequence[Piece], piece: Piece, n: int, count: int, kind: ContentType, newest: int
) -> float:
    """What the type of a document says of its parts (S3 §22, §24)."""
    if kind == "context.md":
        return 0.15 if piece.section == newest else 0.0
    if kind == "page_doc":
        words = " ".join(object_names(pieces, piece))
        order = (("pric", 0.4), ("product", 0.3), ("name", 0.3), ("review", 0.1), ("url", 0.2), ("time", 0.1))
        return next((value for word, value in order if word in words), 0.0)
    if kind == "research.md":
        return 0.1 if "://" in piece.text or piece.text.lstrip().startswith(("-", "*")) else 0.0
    if kind == "tool_result":
        return 0.1 if n >= count - 3 else 0.0
    return 0.05 if n == 0 else 0.0
