"""The next tool call, for phase 4."""

from collections.abc import Mapping
from typing import Any

from panda.offline.offline_models import OfflineModels
from panda.offline.planning import LEAST_PAGE, may_answer, tool_probabilities
from panda.offline.selecting import best, highest_prior
from panda.steps.inputs import CoordinationInputs
from panda.steps.request import Request

DONE = "done"
_IF_PLANNED = ("internet.navigate",)


def choose_call(request: Request, models: OfflineModels) -> Mapping[str, Any]:
    """Return the next call of a tool, or `done` where none is left, or what tools gave may answer."""
    inputs = request.inputs_as(CoordinationInputs)
    return {"calls": [{"tool": _tool(request.asked, inputs, models)}]}


def _tool(text: str, inputs: CoordinationInputs, models: OfflineModels) -> str:
    usable = [name for name in inputs.waiting if name in inputs.planned or name not in _IF_PLANNED]
    if not usable:
        return DONE
    is_code = inputs.mode == "code"
    first = next(iter(inputs.planned), None)
    if not is_code and highest_prior(inputs.pages) >= LEAST_PAGE:
        if first == "internet.navigate" and first in usable:
            return first
        if "web.fetch" in usable:
            return "web.fetch"
    owes_first_call = first in usable and first not in inputs.tried
    if not owes_first_call:
        results = inputs.results()
        if results and may_answer(text, results, models):
            return DONE
    probabilities = {} if is_code else tool_probabilities(text, usable, models)
    examples = "code_tools" if is_code else "tools"
    scores = probabilities or models.classify_by_examples(examples, text, usable)
    return best(scores) if scores else usable[0]
