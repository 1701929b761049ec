"""Replies without a language model: one function a step, on the encoder that is kept."""

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import msgspec

from panda.offline import (
    clarity,
    context_verdict,
    coordination,
    facts,
    gathering,
    page_actions,
    planning,
    query_analysis,
    quoting,
    researching,
    summary,
)
from panda.offline.encoded_texts import weights_digest
from panda.offline.offline_models import OfflineModels
from panda.offline.support import SUPPORTED
from panda.steps.request import Request

_Decide = Callable[[Request, OfflineModels], Mapping[str, Any]]
DECISIONS: Mapping[str, tuple[_Decide, int]] = {
    "phase0_query_analyzer": (query_analysis.analyse_query, 8),
    "phase1_reflection": (clarity.reflect, 2),
    "phase2_1_retrieval": (gathering.choose_sources, 1),
    "phase2_2_synthesis": (gathering.quote_lines, 2),
    "phase2_5_context_validator": (context_verdict.validate_context, 4),
    "phase3_planner": (planning.plan, 4),
    "phase4_coordinator": (coordination.choose_call, 3),
    "phase4_research_strategy": (researching.choose_strategy, 2),
    "phase4_research_phrases": (researching.choose_phrases, 1),
    "phase4_source_quality": (researching.judge_sources, 1),
    "phase4_source_choice": (researching.choose_sources, 1),
    "phase4_page_relevance": (researching.choose_pages, 1),
    "phase4_extraction_check": (researching.check_extraction, 1),
    "phase4_page_zones": (researching.choose_zones, 1),
    "phase4_research_claims": (researching.choose_claims, 1),
    "phase4_research_conflicts": (researching.find_conflicts, 1),
    "phase4_research_report": (researching.report, 1),
    "phase4_choose_action": (page_actions.choose_action, 2),
    "phase4_memory_statement": (facts.judge_statement, 2),
    "phase5_synthesizer": (quoting.quote_answer, 8),
    "memory_reflect": (facts.choose_facts, 1),
    "phase7_summarizer": (summary.summarise, 1),
}
"""What decides each step, and the version of its behaviour: raised by hand when what it decides changes."""
assert frozenset(DECISIONS) == SUPPORTED, "panda/offline/support.py names each step of DECISIONS"


@dataclass(frozen=True, kw_only=True)
class OfflineReply:
    """What the program replies itself, and what it was made from."""

    values: Mapping[str, Any]  # properties that the contract of the step knows
    behaviour: int  # version of what the step decides
    inputs: str  # hex sha256 of the request
    weights: str  # hex sha256 of all classifiers


def reply_offline(step: str, request: Request, models: OfflineModels) -> OfflineReply:
    """Return the reply to a step of SUPPORTED. It reads no prompt and touches no store."""
    decide, behaviour = DECISIONS[step]
    return OfflineReply(
        values=decide(request, models),
        behaviour=behaviour,
        inputs=_digest(request),
        weights=weights_digest(),
    )


def _digest(request: Request) -> str:
    """Return a hex sha256 of what a decision is made from; what is made when it is asked for is no part."""
    encoder = msgspec.json.Encoder(enc_hook=lambda function: None, order="deterministic")
    seen = replace(request, variables={}) if request.inputs is not None else request  # these are for prompts
    return hashlib.sha256(encoder.encode(seen)).hexdigest()
