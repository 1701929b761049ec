"""The next tool call, for phase 4."""

from collections.abc import Mapping
from typing import Any

from panda.offline.offline_models import OfflineModels
from panda.offline.planning import may_answer, tool_probabilities
from panda.offline.selecting import best, highest_prior
from panda.steps.request import Request

_LEAST_PAGE = 0.25


def choose_call(request: Request, models: OfflineModels) -> Mapping[str, Any]:
    """Return the next call of a tool, or `done` where what tools gave may answer."""
    return {"calls": [{"tool": _tool(request, models)}]}


def _tool(request: Request, models: OfflineModels) -> str:
    options, text = request.options, request.asked
    is_code = request.variables["mode"] == "code"
    if not is_code and highest_prior(options.get("sites", ())) >= _LEAST_PAGE:
        return "internet.navigate"
    if not is_code and highest_prior(options.get("pages", ())) >= _LEAST_PAGE:
        return "web.fetch"
    results = options.get("results", ())
    if results and may_answer(text, results, models):
        return "done"
    offered = [option.id for option in options["tool"]]
    probabilities = {} if is_code else tool_probabilities(text, offered, models)
    examples = "code_tools" if is_code else "tools"
    return best(probabilities or models.classify_by_examples(examples, text, offered))
