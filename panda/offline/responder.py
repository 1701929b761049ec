"""The responder without a language model: one function a step, on the encoder that is kept."""

import hashlib
import time
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from panda.models.contract import Encoder
from panda.offline import (
    coordination,
    facts,
    gathering,
    navigation,
    planning,
    query_analysis,
    reflection,
    research,
    summary,
    validation,
)
from panda.offline.heads import weights_digest
from panda.offline.models import OfflineModels
from panda.offline.support import SUPPORTED, why_not_offline
from panda.recipes.recipe import Recipe
from panda.recipes.responder import Call, RawReply
from panda.steps.contract import StepContract
from panda.steps.request import Request

_Decide = Callable[[Request, OfflineModels], Mapping[str, Any]]
DECISIONS: Mapping[str, tuple[_Decide, int]] = {
    "phase0_query_analyzer": (query_analysis.analyse_query, 1),
    "phase1_reflection": (reflection.reflect, 1),
    "phase2_1_retrieval": (gathering.choose_sources, 1),
    "phase2_2_synthesis": (gathering.quote_lines, 1),
    "phase2_5_context_validator": (validation.validate_context, 1),
    "phase3_planner": (planning.plan, 1),
    "phase4_coordinator": (coordination.choose_call, 1),
    "phase4_research_strategy": (research.choose_strategy, 1),
    "phase4_research_phrases": (research.choose_phrases, 1),
    "phase4_source_quality": (research.judge_sources, 1),
    "phase4_source_choice": (research.choose_sources, 1),
    "phase4_page_relevance": (research.choose_pages, 1),
    "phase4_extraction_check": (research.check_extraction, 1),
    "phase4_page_zones": (research.choose_zones, 1),
    "phase4_research_claims": (research.choose_claims, 1),
    "phase4_research_conflicts": (research.find_conflicts, 1),
    "phase4_research_report": (research.report, 1),
    "phase4_choose_action": (navigation.choose_action, 1),
    "phase4_memory_statement": (facts.judge_statement, 1),
    "memory_reflect": (facts.choose_facts, 1),
    "phase7_summarizer": (summary.summarise, 1),
}
"""What decides each step, and the version of its behaviour: raised by hand when what it decides changes."""
assert frozenset(DECISIONS) == SUPPORTED


class OfflineResponder:
    """Replies by an encoder, by words alone without one. It reads no prompt and touches no store."""

    is_offline = True

    def __init__(self, encoder: Encoder | None) -> None:
        self._models = OfflineModels(encoder)

    def unsupported(self, recipe: Recipe, contract: StepContract) -> str | None:
        """Return why it cannot reply to a recipe of this step, in words; None if it can."""
        return why_not_offline(recipe, contract)

    def reply(self, call: Call) -> RawReply:
        """Reply to a call with what of the decision the recipe asks for."""
        decide, behaviour = DECISIONS[call.contract.name]
        started = time.monotonic()
        decision = decide(call.request, self._models)
        properties = call.recipe.output_schema.get("properties", {})
        values = {name: value for name, value in decision.items() if name in properties}
        call.writer.write_offline(
            values,
            inputs=_digest(call.request),
            weights=weights_digest(),
            behaviour=behaviour,
            seconds=time.monotonic() - started,
            attempt=call.attempt,
        )
        return RawReply(values=values, signals=decision.get("signals", {}))


def _digest(request: Request) -> str:
    """Return a hex sha256 of what a decision is made from."""
    encoder = msgspec.json.Encoder(enc_hook=lambda function: None, order="deterministic")
    return hashlib.sha256(encoder.encode(request)).hexdigest()
