"""The next step and the tools of a plan, for phase 3."""

from collections.abc import Mapping, Sequence
from typing import Any

from panda.offline.offline_models import OfflineModels
from panda.offline.selecting import best_ids, highest_prior
from panda.steps.inputs import PlanningInputs
from panda.steps.options import Option
from panda.steps.request import Request

_ANSWERS = 0.5
"""Probability of the closest line from which it answers."""
LEAST_NEAR = 0.33
"""Closeness of a line from which it answers, where no encoder reads."""
_TELLS = 0.5
_ORDERS = 0.5
LEAST_PAGE = 0.25
"""How well a page fits by words from which on it is looked at."""
_ENTRIES = ("web.fetch", "internet.navigate")  # tools that begin at an address


def plan(request: Request, models: OfflineModels) -> Mapping[str, Any]:
    """Return whether tools are used before the answer, and which."""
    inputs = request.inputs_as(PlanningInputs)
    if inputs.mode == "code":
        uses_tools = _needs_project_tools(request.asked, inputs, models)
        tools = _project_tools(request.asked, inputs, models)
    else:
        uses_tools = _needs_tools(request.asked, inputs, models)
        tools = _tools(request.asked, inputs, models)
    return {
        "next_step": "coordinator" if uses_tools else "synthesis",
        "question_kind": "question",
        "tools": tools,
    }


def _needs_tools(text: str, inputs: PlanningInputs, models: OfflineModels) -> bool:
    """
    Return whether tools are used: for what is ordered, and for what is asked and no line answers. What a rule
    decides comes first.
    """
    if inputs.is_told or inputs.is_answered():
        return False
    if inputs.wants_new or highest_prior(inputs.pages) >= LEAST_PAGE:
        return True
    if inputs.is_researched and inputs.is_enough():
        return False
    if may_order(text, models):
        return True
    return not may_tell(text, models) and not may_answer(text, inputs.evidence(), models)


def may_order(text: str, models: OfflineModels) -> bool:
    """Return whether a message rather orders something."""
    return models.classify("mood", text).get("orders", 0.0) >= _ORDERS


def may_tell(text: str, models: OfflineModels) -> bool:
    """Return whether a message rather tells something."""
    return models.classify("mood", text).get("tells", 0.0) >= _TELLS


def _needs_project_tools(text: str, inputs: PlanningInputs, models: OfflineModels) -> bool:
    return not inputs.is_told and not may_answer(text, inputs.evidence(), models)


def may_answer(text: str, lines: Sequence[Option], models: OfflineModels) -> bool:
    """Return whether one of some lines answers, by what was fitted to the encoder, or by closeness."""
    probabilities = models.answers(text, lines)
    if probabilities is None:
        return is_near(text, lines, models)
    return max(probabilities.values()) >= _ANSWERS


def is_near(text: str, lines: Sequence[Option], models: OfflineModels) -> bool:
    """Return whether a line is near enough to answer."""
    return max(models.rank(text, lines).values(), default=0.0) >= LEAST_NEAR


def _tools(text: str, inputs: PlanningInputs, models: OfflineModels) -> list[str]:
    entries = [name for name in inputs.tools if name in _ENTRIES]
    if entries and inputs.opens_page:
        return best_ids(models.classify_by_examples("entry", text, entries), limit=1, least_score=0, behind=0)
    probabilities = tool_probabilities(text, inputs.tools, models)
    if probabilities:
        return best_ids(probabilities, limit=2, least_score=0.1, behind=0.3)
    by_examples = models.classify_by_examples("tools", text, inputs.tools) if inputs.tools else {}
    return best_ids(by_examples, limit=3, least_score=0.1, behind=1.0)


def tool_probabilities(text: str, offered: Sequence[str], models: OfflineModels) -> dict[str, float]:
    """Return the probability of each offered tool that the classifier knows."""
    scores = {name: value for name, value in models.classify("tool", text).items() if name in offered}
    total = sum(scores.values())
    return {name: value / total for name, value in scores.items()}


def _project_tools(text: str, inputs: PlanningInputs, models: OfflineModels) -> list[str]:
    by_examples = models.classify_by_examples("code_tools", text, inputs.tools) if inputs.tools else {}
    return best_ids(by_examples, limit=4, least_score=0.1, behind=1.0)
