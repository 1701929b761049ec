"""The answer where no language model words it, for phase 5."""

from collections.abc import Mapping
from typing import Any

from panda.offline.offline_models import OfflineModels
from panda.steps.inputs import AnswerInputs, quoted_items
from panda.steps.request import Request


def quote_answer(request: Request, models: OfflineModels) -> Mapping[str, Any]:
    """Return the lines that answer, word for word; no item where none surely does."""
    inputs = request.inputs_as(AnswerInputs)
    items = quoted_items(inputs.quoted())
    return {"items": [{"text": text, "node_ids": [*node_ids]} for text, node_ids in items]}
