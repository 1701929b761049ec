"""Which recipes can be served without a language model."""

from collections.abc import Sequence
from typing import Any

from panda.steps.step_contract import StepContract

SUPPORTED = frozenset(
    {
        "phase0_query_analyzer",
        "phase1_reflection",
        "phase2_1_retrieval",
        "phase2_2_synthesis",
        "phase2_5_context_validator",
        "phase3_planner",
        "phase4_coordinator",
        "phase4_research_strategy",
        "phase4_research_phrases",
        "phase4_source_quality",
        "phase4_source_choice",
        "phase4_page_relevance",
        "phase4_extraction_check",
        "phase4_page_zones",
        "phase4_research_claims",
        "phase4_research_conflicts",
        "phase4_research_report",
        "phase4_choose_action",
        "phase4_memory_statement",
        "phase5_synthesizer",
        "memory_reflect",
        "phase7_summarizer",
    }
)
"""Steps that have a function in decisions.py."""


def why_not_offline(needs: Sequence[str], contract: StepContract[Any]) -> str | None:
    """
    Return why a recipe cannot be served without a language model, in words; None if it can.

    Args:
        needs: The properties that its replies have to hold.
        contract: That of the step which it serves.
    """
    if contract.name not in SUPPORTED:
        return "it is worded by a language model alone"
    unknown = [name for name in needs if name not in contract.properties]
    if unknown:
        return f"it requires {unknown[0]!r}, which no reply without a language model has"
    return None
