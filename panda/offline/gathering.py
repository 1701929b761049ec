"""What of the saved sources belongs into §2, for phases 2.1 and 2.2."""

from collections.abc import Mapping
from typing import Any

from panda.offline.offline_models import OfflineModels
from panda.retrieval.selection import near_the_first
from panda.steps.inputs import RetrievalInputs, SynthesisInputs
from panda.steps.request import Request


def choose_sources(request: Request, models: OfflineModels) -> Mapping[str, Any]:
    """Return the nodes of the closest passages of all candidates, closest first."""
    inputs = request.inputs_as(RetrievalInputs)
    near = near_the_first(inputs.ranked())
    return {"relevant": list(dict.fromkeys(ranked.passage.node_id for ranked in near))}


def quote_lines(request: Request, models: OfflineModels) -> Mapping[str, Any]:
    """Return the lines of the closest passages, word for word."""
    inputs = request.inputs_as(SynthesisInputs)
    lines = inputs.document_lines() or [line for near in inputs.passages() for line in near.passage.lines]
    ids = [inputs.ids[line.id] for line in lines if line.id in inputs.ids]
    return {"lines": list(dict.fromkeys(ids))}
