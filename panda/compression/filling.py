"""As much of a document's order as fits a budget, by real token counts."""

from collections import Counter
from collections.abc import Callable, Sequence, Set
from dataclasses import dataclass

from panda.compression.facts import Weights
from panda.compression.json_pieces import JsonOutline
from panda.compression.pieces import Outline
from panda.compression.ranking import Item
from panda.compression.verification import verify
from panda.errors import LimitError

_ROUGH_BUDGET = 2_000
"""Above this, one item that does not fit leaves too little room to be worth a search for others."""
_MOST_SKIPS = 12
_TINY = 24
_FULL = 0.93


@dataclass(frozen=True)
class Plan:
    """What is known of a document whatever the budget."""

    outline: Outline
    """Its pieces."""
    weights: Weights
    """What is protected."""
    order: tuple[Item, ...]
    """What is kept next."""
    by_model: bool
    """Whether the model had a say in the order."""


def fill(plan: Plan, source: str, *, budget_tokens: int, count: Callable[[str], int]) -> tuple[str, set[int]]:
    """
    The document with as much of the order as fits, verified; and the pieces kept, heads left out.

    Args:
        plan: The pieces and their order.
        source: The document.
        budget_tokens: Most budget tokens of the result.
        count: Maps a text to budget tokens.

    Raises:
        LimitError: What is protected alone is over the budget.
    """
    outline = plan.outline
    protected = [outline.pieces[i].text for i in sorted(plan.weights.protected)]
    least = count(outline.render(plan.weights.protected))
    if least > budget_tokens:
        raise _over(least, budget_tokens, plan)
    order = list(plan.order)
    step = 1
    while True:
        kept = _take(plan, order, budget_tokens, max(least, 1), count)
        output = outline.render(kept)
        problems = verify(
            output,
            source,
            protected=protected,
            budget_tokens=budget_tokens,
            count=count,
            is_json=isinstance(outline, JsonOutline),
        )
        if not problems:
            return output, kept
        there = [n for n, item in enumerate(order) if kept.issuperset(item.pieces)]
        if not there:
            raise LimitError(
                f"what was kept is not true to the source: {problems[0]}", fix="raise the budget"
            )
        for n in reversed(there[-step:]):
            del order[n]
        step *= 2  # a document that fails again and again is not worth a check an item


def _take(
    plan: Plan, order: Sequence[Item], budget_tokens: int, least: int, count: Callable[[str], int]
) -> set[int]:
    """
    What is kept at half the budget, then the longest beginning of the order that fits, then what fits behind
    an item that does not: only facts if that one holds facts. So what is kept at a budget is kept at twice
    that one.
    """
    half = budget_tokens // 2
    start = _take(plan, order, half, least, count) if half >= least else set(plan.weights.protected)

    def fits(kept: Set[int]) -> bool:
        return count(plan.outline.render(kept)) <= budget_tokens

    kept, items = start, list(order)
    for _ in range(_MOST_SKIPS):
        low, high = 0, _furthest(items, 2 * budget_tokens)
        while low < high:
            middle = (low + high + 1) // 2
            if fits(_with(kept, items[:middle])):
                low = middle
            else:
                high = middle - 1
        kept = _with(kept, items[:low])
        missed, items = items[low : low + 1], items[low + 1 :]
        if (
            missed
            and missed[0].is_fact
            and (len(kept) > len(plan.weights.protected) or budget_tokens < _TINY)
        ):
            items = [item for item in items if item.is_fact]  # others would take its room at the next budget
        if not items or budget_tokens > _ROUGH_BUDGET:
            break
        if count(plan.outline.render(kept)) > _FULL * budget_tokens:
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


def _over(least: int, budget_tokens: int, plan: Plan) -> LimitError:
    reasons = Counter(plan.weights.reasons.values())
    what = ", ".join(f"{number} × {reason}" for reason, number in reasons.most_common()) or "the marks alone"
    return LimitError(
        f"what must be kept needs {least} tokens, {least - budget_tokens} more than the budget of "
        f"{budget_tokens} tokens ({what})",
        where=f"budget {budget_tokens}",
        fix=f"give a budget of at least {least} tokens",
    )
