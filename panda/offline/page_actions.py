"""What is taken from a page of a site, and what is opened next."""

from collections.abc import Mapping, Sequence
from typing import Any

from panda.offline.offline_models import OfflineModels
from panda.offline.selecting import best, best_ids, priors
from panda.steps.options import Option
from panda.steps.request import Request

STOP = "stop"
_SURELY_ANSWERS = 0.5
_VERY_NEAR = 0.6
_SURELY_LEADS_ON = 0.7
_BY_WORDS = 0.8


def choose_action(request: Request, models: OfflineModels) -> Mapping[str, Any]:
    """Return the lines of a page that bear on the goal, and what is opened next, or stop."""
    lines = request.options_of("lines")
    near = models.rank(request.asked, lines, prior=0.2)
    action = _action(request.asked, lines, request.options_of("action"), models)
    return {"lines": best_ids(near, limit=4, least_score=0.2, behind=0.25), "action": action}


def _action(
    text: str, line_options: Sequence[Option], actions: Sequence[Option], models: OfflineModels
) -> str:
    # one line alone leads no other, by which an answer is told
    answers = models.answers(text, line_options) if len(line_options) > 1 else None
    if answers is not None and max(answers.values()) >= _SURELY_ANSWERS:
        return STOP
    if answers is None and max(models.rank(text, line_options).values(), default=0.0) >= _VERY_NEAR:
        return STOP
    if not actions:
        return STOP
    for scores, least in (
        (models.rank(text, actions, prior=0.5), _SURELY_LEADS_ON),
        (priors(actions), _BY_WORDS),
        (models.rank(text, actions), 0.0),
    ):
        if scores[best(scores)] >= least:
            return best(scores)
    return STOP
