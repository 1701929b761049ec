"""How the kinds that no choice of a recipe answers alone are judged: one line a kind."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from panda.choosing.decision import clause_options
from panda.documents.evidence import check_evidence
from panda.evals.cases import Case
from panda.language.exclusions import find_exclusions
from panda.language.items import Item, find_mentions
from panda.language.limits import find_limits
from panda.language.periods import find_periods
from panda.language.sentences import is_question
from panda.recipes.calls import NoTurn
from panda.recipes.messages import Request

if TYPE_CHECKING:
    from panda.recipes.executor import RecipeExecutor

Judge = Callable[[Case, "RecipeExecutor"], str | tuple[str, ...]]
"""Maps a case to the answer, in the terms of its label."""


def _mood(case: Case, executor: "RecipeExecutor") -> str:
    """By clause, as phase 0 does."""
    recipe = executor.book.recipe_for("phase0_query_analyzer", "chat").key
    parts = clause_options(case.query)
    request = Request(case.query, (), {"orders": parts, "asks": parts})
    taken = (executor.decide(recipe, name, request, NoTurn()) for name in ("orders", "asks"))
    return next((choice.name for choice in taken if choice.value), "tells")


def _exclusion(case: Case, executor: "RecipeExecutor") -> tuple[str, ...]:
    items = _items(case)
    found = find_exclusions(case.query, items, find_mentions(case.query, items))
    return tuple(f"{one.action} {one.ref}" for one in found)


def _reference(case: Case, executor: "RecipeExecutor") -> tuple[str, ...]:
    refs = (ref for one in find_mentions(case.query, _items(case)) for ref in one.refs)
    return tuple(dict.fromkeys(refs))


def _items(case: Case) -> list[Item]:
    return [Item(ref, "", text) for ref, text in case.options]


def _period(case: Case, executor: "RecipeExecutor") -> tuple[str, ...]:
    assert case.now is not None
    periods = find_periods(case.query, case.now)
    return tuple(str(day) for one in periods for day in (one.start, one.end))


def _evidence(case: Case, executor: "RecipeExecutor") -> str:
    """Whether the options, as sources, hold what the query, as an answer, claims."""
    sources = [text for _, text in case.options]
    return "unsupported" if check_evidence(case.query, sources, worded=True) else "supported"


JUDGES: Mapping[str, Judge] = {
    "mood": _mood,
    "quotable": lambda case, _: "question" if is_question(case.query) else "statement",
    "exclusion": _exclusion,
    "reference": _reference,
    "period": _period,
    "constraint": lambda case, _: tuple(one.text for one in find_limits(case.query)),
    "evidence": _evidence,
}
"""By kind."""


def same_phrases(query: str, label: tuple[str, ...], said: tuple[str, ...]) -> bool:
    """
    Whether each labelled phrase overlaps one that was found, and none of these is left over.

    >>> same_phrases("a tent under 3 kg, no pegs", ("under 3 kg", "no pegs"), ("3 kg", "no pegs"))
    True
    >>> same_phrases("a tent under 3 kg", (), ("under 3 kg",))
    False
    """
    wanted, found = ([_span(query, one) for one in phrases] for phrases in (label, said))
    return all(_meets(one, found) for one in wanted) and all(_meets(one, wanted) for one in found)


def _span(query: str, phrase: str) -> range:
    plain, words = " ".join(query.lower().split()), " ".join(phrase.lower().split()).strip(" .,")
    at = plain.find(words)
    return range(at, at + len(words)) if at >= 0 else range(0)


def _meets(one: range, others: list[range]) -> bool:
    return any(max(one.start, other.start) < min(one.stop, other.stop) for other in others)
