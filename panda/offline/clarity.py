"""Whether a query is clear enough to go on, for phase 1."""

from collections.abc import Mapping
from typing import Any

from panda.messages.wording import content_stems
from panda.offline.offline_models import OfflineModels
from panda.steps.inputs import ReflectionInputs
from panda.steps.request import Request

_SURELY_UNCLEAR = 0.75


def reflect(request: Request, models: OfflineModels) -> Mapping[str, Any]:
    """
    Return CLARIFY with a question where the query is surely unclear, else PROCEED.

    In a session that has turns, what a query leaves out may be what they were about: it is looked for.
    """
    inputs = request.inputs_as(ReflectionInputs)
    if inputs.history:
        return {"decision": "PROCEED", "question": ""}
    probabilities = models.classify("clear", request.asked)
    unclear = probabilities.get("unclear", 0.0 if content_stems(request.query) else 1.0)
    if unclear >= _SURELY_UNCLEAR:
        question = f"What do you mean by “{inputs.quoted}”? Please name the thing that it is about."
        return {"decision": "CLARIFY", "question": question}
    if unclear > 1 / 2:
        reasoning = "The query may be unclear, but not surely enough to ask back; it is taken as it stands."
        return {"decision": "PROCEED", "question": "", "reasoning": reasoning}
    return {"decision": "PROCEED", "question": ""}
