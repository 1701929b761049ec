"""What phase 2.5 says of §2 where no language model reads it."""

from collections.abc import Mapping
from typing import Any

from panda.offline.offline_models import OfflineModels
from panda.steps.request import Request


def validate_context(request: Request, models: OfflineModels) -> Mapping[str, Any]:
    """Return pass: all candidates were compared, and whether the closest answer is told by the outcome."""
    return {"verdict": "pass"}
