"""The steps of the pipeline that ask a recipe, and what each gives to it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from panda.documents.context import HEADINGS
from panda.store import layout

BASE_VARIABLES = ("query", "mode", "session_id")
"""Variables that every call has."""

CARRY = "carry"
"""What the turn knows of its session; every step may read it."""

IMAGE = "image"
"""What EYES says of the image that the user gave; every step may read it."""

RAW_QUERY = "raw_query"
"""The query word for word; never cut."""

PROGRESS = "progress"
"""How far the goals of the plan have come; never cut."""

ASSESSMENT = "context_assessment"
"""What phase 2 says of §2: its quality, what is missing and what is stale (S1 §5.3); never cut."""

TICKET = "ticket.md"
"""The planner's task plan as markdown, without its `_meta`; made of §3 and no file of the turn."""

TURN_DOCUMENTS = (
    CARRY,
    IMAGE,
    TICKET,
    layout.CONTEXT_MD,
    layout.QUERY_ANALYSIS_JSON,
    layout.REFLECTION_JSON,
    layout.RETRIEVAL_PLAN_JSON,
    layout.GATHERED_CONTEXT_JSON,
    layout.PLAN_JSON,
    layout.TOOLRESULTS_MD,
    layout.RESEARCH_JSON,
    layout.RESEARCH_MD,
    layout.RESPONSE_MD,
)
"""What input_docs may name at every step: files of the turn, and what is made of them."""


@dataclass(frozen=True)
class StepInputs:
    """What a phase gives to the recipe of one step, besides the turn's files."""

    options: tuple[str, ...] = ()  # names of the options of its choices
    variables: tuple[str, ...] = ()  # names of its variables, besides BASE_VARIABLES
    documents: tuple[str, ...] = ()  # documents that are no files of the turn
    tool: str | None = None  # tool, command or else that asks it, and only while it runs; None for a phase
    of_image: bool = False  # whether it is asked of an image alone
    may_ask: bool = False  # whether its phase may ask the user back
    reads: tuple[str, ...] = ()
    """Properties of the reply that its phase cannot do without."""
    defaults: Mapping[str, Any] = field(default_factory=dict)
    """What its phase reads of the reply besides, with what counts where the recipe's schema has it not."""
    may_be_text: bool = False  # whether the reply may be markdown or text instead of those
    decides: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Choices that say how the turn goes on, with the values that its phase acts upon."""


STEPS: Mapping[str, StepInputs] = {
    "phase0_describe_image": StepInputs(of_image=True),
    "phase0_query_analyzer": StepInputs(
        ("content_reference", "entities", "kept", "orders", "asks", "tells"),
        ("names", "today"),
        (RAW_QUERY, "turn_summaries"),
        defaults={
            "query_type": "informational",
            "intent": "query",
            "needs_current_prices": False,
            "needs_live_data": False,
            "resolved_query": "",  # as asked
        },
    ),
    "phase1_reflection": StepInputs(
        ("entities",),
        ("quoted", "mode"),
        ("turn_summaries", "found"),
        may_ask=True,
        reads=("decision",),
        decides={"decision": ("PROCEED", "CLARIFY")},
    ),
    "phase2_1_retrieval": StepInputs(("relevant",), reads=("relevant",)),
    "phase2_2_synthesis": StepInputs(("lines", "sources"), (), HEADINGS),
    "phase2_5_context_validator": StepInputs(
        ("evidence",),
        (),
        ("gathered_context",),
        may_ask=True,
        reads=("verdict",),
        decides={"verdict": ("pass", "retry", "clarify")},
    ),
    "phase3_planner": StepInputs(
        ("tools", "evidence", "pages", "entries", "told", "recalled", "ordered", "fresh"),
        ("tools", "quoted"),
        ("turn_summaries", ASSESSMENT),
        may_ask=True,
        reads=("next_step",),
        decides={
            "next_step": ("coordinator", "synthesis", "clarify"),
            "question_kind": ("question", "proposal"),
        },
    ),
    "phase4_coordinator": StepInputs(
        ("tool", "goal", "results", "pages", "sites"), ("tools", "today"), (PROGRESS,)
    ),
    **{
        f"phase4_{step}": StepInputs(options, variables, documents, "internet.research")
        for step, options, variables, documents in (
            ("research_strategy", (), (), ()),
            ("research_phrases", ("phrases",), (), ()),
            ("source_quality", ("results",), (), ()),
            ("source_choice", ("sources",), (), ()),
            ("page_relevance", ("pages",), (), ()),
            ("extraction_check", ("accepted", "again"), (), ()),
            ("page_zones", ("zones",), (), ()),
            ("research_claims", ("claims",), (), ()),
            ("research_conflicts", ("same",), (), ()),
            ("research_report", (), ("counted",), ("findings",)),
        )
    },
    "phase4_choose_action": StepInputs(
        ("action", "lines"), ("goal",), ("page", "screen"), "internet.navigate", reads=("action", "lines")
    ),
    "phase4_read_screen": StepInputs((), ("goal",), (), "internet.navigate", of_image=True),
    "phase4_content_generate": StepInputs((), ("kind", "brief"), (), "content.generate"),
    "phase4_memory_statement": StepInputs(tool="panda memory reflect"),
    "memory_reflect": StepInputs(("keep",), (), ("turns",), "panda memory reflect"),
    "phase5_synthesizer": StepInputs(
        ("answer", "named", "sources", "lines"), reads=("items",), may_be_text=True
    ),
    "phase6_validator": StepInputs(
        ("answer", "goals", "recalled", "ordered"),
        documents=("items",),
        reads=("verdict",),
        decides={"verdict": ("APPROVE", "REVISE", "RETRY", "FAIL")},
    ),
    **{
        f"compress_{kind}": StepInputs((), ("target_tokens",), (f"{kind}_to_compress",), "compression")
        for kind in ("context", "research", "page_doc", "tool_result", "prior_turn", "generic")
    },
    "phase7_summarizer": StepInputs(("words",), ("line",)),
    "phase7_session": StepInputs(
        documents=("earlier_history", "leaving_turns", "engagement", "reply"),
    ),
}
"""Every step that the phases ask for; a test holds it to their code."""
