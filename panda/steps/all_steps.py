"""Every step of the pipeline that needs a reply, and its contract."""

from collections.abc import Mapping
from typing import Any

from panda.documents.context import HEADINGS
from panda.extensible_table import ExtensibleTable
from panda.steps.reply_contents import (
    AnswerReply,
    ClaimsReply,
    ConflictsReply,
    ContextVerdictReply,
    CoordinationReply,
    ExtractionReply,
    FactsReply,
    PageActionReply,
    PagesReply,
    PhrasesReply,
    PlanReply,
    QueryAnalysisReply,
    ReflectionReply,
    ReportReply,
    ResultsReply,
    RetrievalReply,
    SourcesReply,
    StatementReply,
    StrategyReply,
    SummaryReply,
    SynthesisReply,
    TextReply,
    ValidationReply,
    ZonesReply,
)
from panda.steps.step_contract import StepContract
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

TOOL_RESULTS = "tool_results"
"""What the tools of a turn gave besides claims, which are lines of the evidence."""

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


_RESEARCH = "internet.research"
_NAVIGATE = "internet.navigate"
_REFLECT = "panda memory reflect"


def _answer_from_text(text: str | None) -> AnswerReply:
    return AnswerReply(items=(), text=text)


IMAGE_DESCRIPTION = StepContract(name="phase0_describe_image", reply=TextReply, of_image=True)
QUERY_ANALYSIS = StepContract(
    name="phase0_query_analyzer",
    reply=QueryAnalysisReply,
    option_sets=("content_reference", "entities", "kept"),
    places={
        "reading.references[].refs": "entities",
        "reading.exclusions[].ref": "entities",
        "reading.forget": "kept",
        "content_reference": "content_reference",
    },
    only_with={
        "reading.agreement": "open_question",
        "reading.clears": CARRY,
        "reading.forgets": "kept",
        "reading.recap": CARRY,
    },
    variables=("names", "today", "open_question"),
    documents=(RAW_QUERY, "turn_summaries"),
    lenient=("reading",),
)
REFLECTION = StepContract(
    name="phase1_reflection",
    reply=ReflectionReply,
    option_sets=("entities",),
    places={"curation[].ref": "entities"},
    variables=("quoted", "mode"),
    documents=("turn_summaries", "found"),
    may_ask=True,
)
RETRIEVAL = StepContract(
    name="phase2_1_retrieval",
    reply=RetrievalReply,
    option_sets=("relevant",),
    places={"relevant": "relevant"},
    lenient=("relevant",),
)
SYNTHESIS = StepContract(
    name="phase2_2_synthesis",
    reply=SynthesisReply,
    option_sets=("lines",),
    places={"lines": "lines"},
    documents=HEADINGS,
    lenient=("lines",),
)
CONTEXT_VALIDATION = StepContract(
    name="phase2_5_context_validator",
    reply=ContextVerdictReply,
    option_sets=("evidence",),
    documents=("gathered_context",),
    may_ask=True,
)
PLANNING = StepContract(
    name="phase3_planner",
    reply=PlanReply,
    option_sets=("tools", "evidence", "pages", "recalled", "ordered", "fresh"),
    places={"tools": "tools"},
    variables=("tools", "quoted"),
    documents=("turn_summaries", ASSESSMENT),
    may_ask=True,
)
COORDINATION = StepContract(
    name="phase4_coordinator",
    reply=CoordinationReply,
    option_sets=("tool", "goal", "results", "pages"),
    places={"goals_done[]": "goal", "calls[].tool": "tool", "calls[].goal": "goal"},
    arguments={"calls[]": "tool"},
    variables=("tools", "today"),
    documents=(PROGRESS,),
)
RESEARCH_STRATEGY = StepContract(name="phase4_research_strategy", reply=StrategyReply, tool=_RESEARCH)
RESEARCH_PHRASES = StepContract(
    name="phase4_research_phrases",
    reply=PhrasesReply,
    option_sets=("phrases",),
    places={"phrases": "phrases"},
    tool=_RESEARCH,
)
SOURCE_QUALITY = StepContract(
    name="phase4_source_quality",
    reply=ResultsReply,
    option_sets=("results",),
    places={"results": "results"},
    tool=_RESEARCH,
)
SOURCE_CHOICE = StepContract(
    name="phase4_source_choice",
    reply=SourcesReply,
    option_sets=("sources",),
    places={"sources": "sources"},
    tool=_RESEARCH,
)
PAGE_RELEVANCE = StepContract(
    name="phase4_page_relevance",
    reply=PagesReply,
    option_sets=("pages",),
    places={"pages": "pages"},
    tool=_RESEARCH,
)
EXTRACTION_CHECK = StepContract(
    name="phase4_extraction_check",
    reply=ExtractionReply,
    option_sets=("accepted", "again"),
    places={"accepted": "accepted", "again": "again"},
    tool=_RESEARCH,
)
PAGE_ZONES = StepContract(
    name="phase4_page_zones",
    reply=ZonesReply,
    option_sets=("zones",),
    places={"zones": "zones"},
    tool=_RESEARCH,
)
RESEARCH_CLAIMS = StepContract(
    name="phase4_research_claims",
    reply=ClaimsReply,
    option_sets=("claims",),
    places={"claims": "claims"},
    tool=_RESEARCH,
)
RESEARCH_CONFLICTS = StepContract(
    name="phase4_research_conflicts",
    reply=ConflictsReply,
    option_sets=("same",),
    places={"same": "same"},
    tool=_RESEARCH,
)
RESEARCH_REPORT = StepContract(
    name="phase4_research_report",
    reply=ReportReply,
    variables=("counted",),
    documents=("findings",),
    tool=_RESEARCH,
)
PAGE_ACTION = StepContract(
    name="phase4_choose_action",
    reply=PageActionReply,
    option_sets=("action", "lines"),
    places={"action": "action", "lines": "lines"},
    variables=("goal",),
    documents=("page", "screen"),
    tool=_NAVIGATE,
)
SCREEN_READING = StepContract(
    name="phase4_read_screen", reply=TextReply, variables=("goal",), tool=_NAVIGATE, of_image=True
)
CONTENT = StepContract(
    name="phase4_content_generate", reply=TextReply, variables=("kind", "brief"), tool="content.generate"
)
STATEMENT = StepContract(name="phase4_memory_statement", reply=StatementReply, tool=_REFLECT)
MEMORY_REFLECTION = StepContract(
    name="memory_reflect",
    reply=FactsReply,
    option_sets=("keep",),
    places={"facts[].keep": "keep"},
    documents=("turns",),
    tool=_REFLECT,
)
ANSWER = StepContract(
    name="phase5_synthesizer",
    reply=AnswerReply,
    option_sets=("sources", "lines"),
    places={
        "items[].lines": "lines",
        "items[].node_ids": "sources",
        "items[].computed[].lines": "lines",
    },
    variables=("today",),
    documents=(TOOL_RESULTS,),
    from_text=_answer_from_text,
)
VALIDATION = StepContract(
    name="phase6_validator",
    reply=ValidationReply,
    option_sets=("answer", "goals", "recalled", "ordered"),
    places={"goals[].id": "goals"},
    variables=("today",),
    documents=("items", "beside_items", "other_lines", "tool_calls"),
    is_dispensable=True,
)
SUMMARY = StepContract(
    name="phase7_summarizer",
    reply=SummaryReply,
    only_with={
        "intent": "imported",
        "reply": "reply",
        "history": "leaving_turns",
        "engagement": "leaving_turns",
    },
    variables=("line", "outcome", "imported"),
    documents=("earlier_history", "leaving_turns", "engagement", "reply"),
)
_COMPRESSION = tuple(
    StepContract(
        name=f"compress_{kind}",
        reply=TextReply,
        variables=("target_tokens",),
        documents=(f"{kind}_to_compress",),
        tool="compression",
    )
    for kind in ("context", "research", "page_doc", "tool_result", "prior_turn", "generic")
)
_ALL: tuple[StepContract[Any], ...] = (
    IMAGE_DESCRIPTION,
    QUERY_ANALYSIS,
    REFLECTION,
    RETRIEVAL,
    SYNTHESIS,
    CONTEXT_VALIDATION,
    PLANNING,
    COORDINATION,
    RESEARCH_STRATEGY,
    RESEARCH_PHRASES,
    SOURCE_QUALITY,
    SOURCE_CHOICE,
    PAGE_RELEVANCE,
    EXTRACTION_CHECK,
    PAGE_ZONES,
    RESEARCH_CLAIMS,
    RESEARCH_CONFLICTS,
    RESEARCH_REPORT,
    PAGE_ACTION,
    SCREEN_READING,
    CONTENT,
    STATEMENT,
    MEMORY_REFLECTION,
    ANSWER,
    VALIDATION,
    *_COMPRESSION,
    SUMMARY,
)
STEPS: Mapping[str, StepContract[Any]] = ExtensibleTable(_ALL, lambda addon: addon.steps)
"""
Every step by name: those that the phases ask for, which a test holds to their code, and those that tools of
add-ons ask for.
"""
