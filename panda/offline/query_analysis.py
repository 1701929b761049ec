"""What the heads say of a message, for phase 0."""

from collections.abc import Mapping
from typing import Any

from panda.language.statements import clause_texts
from panda.offline.offline_models import OfflineModels
from panda.offline.selecting import best
from panda.steps.request import Request

MAX_CLAUSES = 24
_REFERENCE_PRIOR = 0.5
_SURELY_FORGETS = 0.7


def analyse_query(request: Request, models: OfflineModels) -> Mapping[str, Any]:
    """Return type, intent and needs of the query, what it may refer to, and what the heads say of it."""
    text = request.asked

    def label(head: str) -> str:
        return best(models.classify(head, text) or models.classify_by_examples(head, text))

    reply: dict[str, Any] = {
        "query_type": label("query_type"),
        "intent": label("intent"),
        "needs_current_prices": label("current_prices") == "True",
        "needs_live_data": label("live_data") == "True",
        "resolved_query": "",
        "signals": read_signals(request, models),
    }
    references = request.options_of("content_reference")
    scores = models.rank(text, references, prior=_REFERENCE_PRIOR) if references else {}
    if scores and scores[best(scores)] >= 0:
        reply["content_reference"] = best(scores)
    return reply


def read_signals(request: Request, models: OfflineModels) -> dict[str, Any]:
    """Return what each head that reads a message says of it; empty where there are none."""
    text = request.asked
    moods = models.classify("mood", text)
    if not moods:
        return {}
    forgets = models.classify("forget", text)
    return {
        "mood": moods,
        "clauses": {
            clause: models.classify_message("mood", clause)
            for clause in clause_texts(request.query)[:MAX_CLAUSES]
        },
        "agreement": best(models.classify("agreement", text)),
        "is_recap": best(models.classify("recap", text)) == "recap",
        "is_talk": best(models.classify("talk", text)) == "talk",
        "forgets": forgets["forget"] if forgets["forget"] >= _SURELY_FORGETS else 0.0,
    }
