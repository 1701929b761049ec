"""What phase 2.5 says of §2 where no language model reads it."""

from collections.abc import Mapping
from typing import Any

from panda.offline.offline_models import OfflineModels
from panda.steps.inputs import NO_ANSWER_GATHERED, ContextInputs
from panda.steps.request import Request


def validate_context(request: Request, models: OfflineModels) -> Mapping[str, Any]:
    """Return pass, as all candidates were compared, and what is missing where none surely answers."""
    if request.inputs_as(ContextInputs).is_answered():
        return {"verdict": "pass"}
    return {"verdict": "pass", "guidance": NO_ANSWER_GATHERED}
