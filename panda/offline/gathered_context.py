"""Whether the gathered context suffices, for phase 2.5 where another layer drafted it."""

from collections.abc import Mapping
from typing import Any

from panda.offline.offline_models import OfflineModels
from panda.offline.planning import may_answer
from panda.steps.request import Request


def judge_context(request: Request, models: OfflineModels) -> Mapping[str, Any]:
    """Return `pass` where a line of the evidence may answer, else `retry`."""
    evidence = request.options.get("evidence", ())
    return {"verdict": "pass" if may_answer(request.asked, evidence, models) else "retry"}
