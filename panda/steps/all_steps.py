"""Every step of the pipeline that needs a reply, and its contract."""

from collections.abc import Mapping

from panda.documents.context import HEADINGS
from panda.steps.contract import StepContract
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


_ANSWER_PLACES = {
    "items[].lines": "lines",
    "items[].node_ids": "sources",
    "items[].computed[].lines": "lines",
}
_PLAN_TEXTS = (
    "goal",
    "goals",
    "reasoning",
    "approach",
    "success_criteria",
    "constraints",
    "tasks",
    "question",
)
_CONTRACTS = (
    StepContract(name="phase0_describe_image", of_image=True),
    StepContract(
        name="phase0_query_analyzer",
        option_sets=("content_reference", "entities", "kept"),
        places={
            "reading.references[].refs": "entities",
            "reading.exclusions[].ref": "entities",
            "reading.forget": "kept",
            "content_reference": "content_reference",
        },
        variables=("names", "today"),
        documents=(RAW_QUERY, "turn_summaries"),
        lenient=("reading",),
        defaults={
            "query_type": "informational",
            "intent": "query",
            "needs_current_prices": False,
            "needs_live_data": False,
            "resolved_query": "",  # as asked
        },
        optional=("entities", "reasoning", "user_purpose", "freshness"),
    ),
    StepContract(
        name="phase1_reflection",
        option_sets=("entities",),
        places={"curation[].ref": "entities"},
        variables=("quoted", "mode"),
        documents=("turn_summaries", "found"),
        may_ask=True,
        required=("decision",),
        optional=("reasoning", "question", "curation"),
        decides={"decision": ("PROCEED", "CLARIFY")},
    ),
    StepContract(
        name="phase2_1_retrieval",
        option_sets=("relevant",),
        places={"relevant": "relevant"},
        required=("relevant",),
        optional=("reasoning",),
    ),
    StepContract(
        name="phase2_2_synthesis",
        option_sets=("lines", "sources"),
        places={"sections[].items[].node_ids": "sources"},
        documents=HEADINGS,
        optional=("sections",),
    ),
    StepContract(
        name="phase2_5_context_validator",
        option_sets=("evidence",),
        documents=("gathered_context",),
        may_ask=True,
        required=("verdict",),
        optional=("guidance", "question"),
        decides={"verdict": ("pass", "retry", "clarify")},
    ),
    StepContract(
        name="phase3_planner",
        option_sets=("tools", "evidence", "pages", "told", "recalled", "ordered", "fresh"),
        places={"tools": "tools"},
        variables=("tools", "quoted"),
        documents=("turn_summaries", ASSESSMENT),
        may_ask=True,
        required=("next_step",),
        optional=(*_PLAN_TEXTS, "question_kind"),
        decides={
            "next_step": ("coordinator", "synthesis", "clarify"),
            "question_kind": ("question", "proposal"),
        },
    ),
    StepContract(
        name="phase4_coordinator",
        option_sets=("tool", "goal", "results", "pages"),
        places={"goals_done[]": "goal", "calls[].tool": "tool", "calls[].goal": "goal"},
        arguments={"calls[]": "tool"},
        variables=("tools", "today"),
        documents=(PROGRESS,),
        optional=("note", "conclusion"),
    ),
    *(
        StepContract(
            name=f"phase4_{name}",
            option_sets=option_sets,
            places={set_name: set_name for set_name in option_sets},
            variables=variables,
            documents=documents,
            tool="internet.research",
            required=required,
            optional=optional,
        )
        for name, option_sets, variables, documents, required, optional in (
            ("research_strategy", (), (), (), ("kind",), ()),
            ("research_phrases", ("phrases",), (), (), (), ("own_phrase",)),
            ("source_quality", ("results",), (), (), (), ()),
            ("source_choice", ("sources",), (), (), (), ()),
            ("page_relevance", ("pages",), (), (), (), ()),
            ("extraction_check", ("accepted", "again"), (), (), (), ("missing",)),
            ("page_zones", ("zones",), (), (), (), ()),
            ("research_claims", ("claims",), (), (), (), ()),
            ("research_conflicts", ("same",), (), (), (), ()),
            ("research_report", (), ("counted",), ("findings",), ("summary",), ()),
        )
    ),
    StepContract(
        name="phase4_choose_action",
        option_sets=("action", "lines"),
        places={"action": "action", "lines": "lines"},
        variables=("goal",),
        documents=("page", "screen"),
        tool="internet.navigate",
        required=("action", "lines"),
        optional=("text",),
    ),
    StepContract(name="phase4_read_screen", variables=("goal",), tool="internet.navigate", of_image=True),
    StepContract(name="phase4_content_generate", variables=("kind", "brief"), tool="content.generate"),
    StepContract(name="phase4_memory_statement", tool="panda memory reflect", required=("lasts",)),
    StepContract(
        name="memory_reflect",
        option_sets=("keep",),
        places={"facts[].keep": "keep"},
        documents=("turns",),
        tool="panda memory reflect",
    ),
    StepContract(
        name="phase5_synthesizer",
        option_sets=("sources", "lines"),
        places=_ANSWER_PLACES,
        required=("items",),
        may_be_text=True,
    ),
    StepContract(
        name="phase6_validator",
        option_sets=("answer", "goals", "recalled", "ordered"),
        places={"goals[].id": "goals"},
        documents=("items",),
        required=("verdict",),
        optional=("items", "reason"),
        is_dispensable=True,
        decides={"verdict": ("APPROVE", "REVISE", "RETRY", "FAIL")},
    ),
    *(
        StepContract(
            name=f"compress_{kind}",
            variables=("target_tokens",),
            documents=(f"{kind}_to_compress",),
            tool="compression",
        )
        for kind in ("context", "research", "page_doc", "tool_result", "prior_turn", "generic")
    ),
    StepContract(
        name="phase7_summarizer",
        variables=("line",),
        required=("summary",),
        defaults={"topics": ()},
    ),
    StepContract(
        name="phase7_session",
        documents=("earlier_history", "leaving_turns", "engagement", "reply"),
        optional=("history",),
        is_dispensable=True,
    ),
)
STEPS: Mapping[str, StepContract] = {contract.name: contract for contract in _CONTRACTS}
"""Every step that the phases ask for, by name; a test holds it to their code."""
