"""The summary by which later turns find a turn."""

from collections.abc import Mapping
from typing import Any

from panda.offline.offline_models import OfflineModels
from panda.offline.selecting import best_ids
from panda.steps.inputs import SummaryInputs
from panda.steps.request import Request


def summarise(request: Request, models: OfflineModels) -> Mapping[str, Any]:
    """Return the line of the turn, and those of its words that are closest to the query."""
    inputs = request.inputs_as(SummaryInputs)
    scores = models.rank(request.asked, inputs.words, prior=0.3)
    return {"summary": inputs.line, "topics": best_ids(scores, limit=5, least_score=0.1, behind=0.5)}
