"""Which statements of the user are kept as facts."""

from collections.abc import Mapping
from typing import Any

from panda.offline.offline_models import OfflineModels
from panda.offline.selecting import best
from panda.steps.inputs import FactsInputs
from panda.steps.request import Request

_SURELY_PASSING = 0.62


def judge_statement(request: Request, models: OfflineModels) -> Mapping[str, Any]:
    """Return whether a statement is meant to last."""
    by_classifier = models.classify("lasting", request.asked)
    if by_classifier:
        return {"lasts": best(by_classifier)}
    by_examples = models.classify_by_examples("lasting", request.asked)
    return {"lasts": "passing" if by_examples["passing"] >= _SURELY_PASSING else "lasting"}


def choose_facts(request: Request, models: OfflineModels) -> Mapping[str, Any]:
    """Return the statements that are kept, each in the user's own words."""
    inputs = request.inputs_as(FactsInputs)
    keep = [option.id for option in request.options_of("keep") if inputs.lasts(option.id)]
    return {"facts": [{"keep": id_} for id_ in keep]}
