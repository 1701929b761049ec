"""
The typed replies of steps: what a phase reads of a reply.

A field without a default is one that the phase cannot do without. A `Literal` has the values that the phase
acts upon.
"""

from collections.abc import Mapping
from typing import Any, Literal

from msgspec import Struct

from panda.session.registry import CurationChange


class ReplyContent(Struct, frozen=True, kw_only=True):
    """What a checked reply says; what a recipe asks for besides is left out."""


class TextReply(ReplyContent, frozen=True, kw_only=True):
    text: str


class QueryAnalysisReply(ReplyContent, frozen=True, kw_only=True):
    query_type: str = "informational"
    intent: str = "query"
    needs_current_prices: bool = False
    needs_live_data: bool = False
    resolved_query: str = ""  # as asked
    reading: Mapping[str, Any] | None = None
    """What the message means, as it was written; None where the recipe does not ask for it."""
    content_reference: str | None = None  # id of a page of the session
    entities: tuple[str, ...] = ()
    reasoning: str | None = None
    user_purpose: str | None = None
    freshness: str | None = None


class ReflectionReply(ReplyContent, frozen=True, kw_only=True):
    decision: Literal["PROCEED", "CLARIFY"]
    reasoning: str | None = None
    question: str | None = None
    curation: tuple[CurationChange, ...] = ()


class RetrievalReply(ReplyContent, frozen=True, kw_only=True):
    relevant: tuple[str, ...]  # node ids
    reasoning: str | None = None


class SynthesisReply(ReplyContent, frozen=True, kw_only=True):
    lines: tuple[str, ...]  # ids


class ContextVerdictReply(ReplyContent, frozen=True, kw_only=True):
    verdict: Literal["pass", "retry", "clarify"]
    guidance: str | None = None
    question: str | None = None


class GoalReply(ReplyContent, frozen=True, kw_only=True):
    goal: str
    id: str | None = None
    priority: int | None = None  # 1 is the most important
    depends_on: tuple[str, ...] = ()  # ids of goals
    success_criteria: str | None = None


class PlanReply(ReplyContent, frozen=True, kw_only=True):
    next_step: Literal["coordinator", "synthesis", "clarify"]
    tools: tuple[str, ...] | None = None  # names; None where the recipe does not ask which
    goal: str | None = None
    goals: tuple[GoalReply, ...] = ()
    reasoning: str | None = None
    approach: str | None = None
    success_criteria: tuple[str, ...] = ()
    constraints: tuple[str, ...] = ()
    tasks: tuple[str, ...] = ()
    question: str | None = None
    question_kind: Literal["question", "proposal"] = "question"


class ToolCallReply(ReplyContent, frozen=True, kw_only=True):
    tool: str
    arguments: Mapping[str, Any] | None = None  # None: the tool suggests them
    goal: str | None = None  # id of the goal that it serves


class CoordinationReply(ReplyContent, frozen=True, kw_only=True):
    calls: tuple[ToolCallReply, ...]
    note: str | None = None
    conclusion: str | None = None
    goals_done: tuple[str, ...] = ()  # ids of goals


class ComputedReply(ReplyContent, frozen=True, kw_only=True):
    value: str
    expression: str
    lines: tuple[str, ...] = ()  # ids


class AnswerItemReply(ReplyContent, frozen=True, kw_only=True):
    text: str
    lines: tuple[str, ...] = ()  # ids
    node_ids: tuple[str, ...] = ()
    computed: tuple[ComputedReply, ...] = ()


class AnswerReply(ReplyContent, frozen=True, kw_only=True):
    items: tuple[AnswerItemReply, ...]
    missing: str | None = None  # what of the query the lines do not say
    text: str | None = None  # the answer as markdown, where the recipe asks for that in the place of items


class ItemVerdictReply(ReplyContent, frozen=True, kw_only=True):
    n: int  # number of the item, from 1
    supported: bool
    why: str | None = None


class GoalVerdictReply(ReplyContent, frozen=True, kw_only=True):
    id: str
    met: bool
    why: str | None = None


class ValidationReply(ReplyContent, frozen=True, kw_only=True):
    verdict: Literal["APPROVE", "REVISE", "RETRY", "FAIL"]
    items: tuple[ItemVerdictReply, ...] = ()
    goals: tuple[GoalVerdictReply, ...] = ()
    reason: str | None = None


class SummaryReply(ReplyContent, frozen=True, kw_only=True):
    summary: str
    topics: tuple[str, ...] = ()
    intent: str | None = None
    reply: str | None = None  # what the user was shown, in short
    history: str | None = None  # of the session
    engagement: str | None = None  # what the session is about


class StrategyReply(ReplyContent, frozen=True, kw_only=True):
    kind: str


class PhrasesReply(ReplyContent, frozen=True, kw_only=True):
    phrases: tuple[str, ...] = ()  # ids
    own_phrase: str | None = None


class ResultsReply(ReplyContent, frozen=True, kw_only=True):
    results: tuple[str, ...] = ()  # ids


class SourcesReply(ReplyContent, frozen=True, kw_only=True):
    sources: tuple[str, ...] = ()  # ids


class PagesReply(ReplyContent, frozen=True, kw_only=True):
    pages: tuple[str, ...] = ()  # ids


class ExtractionReply(ReplyContent, frozen=True, kw_only=True):
    accepted: tuple[str, ...] = ()  # ids of pages
    again: tuple[str, ...] = ()  # ids of pages
    missing: str | None = None


class ZonesReply(ReplyContent, frozen=True, kw_only=True):
    zones: tuple[str, ...] = ()  # ids


class ClaimsReply(ReplyContent, frozen=True, kw_only=True):
    claims: tuple[str, ...] = ()  # ids


class ConflictsReply(ReplyContent, frozen=True, kw_only=True):
    same: tuple[str, ...] = ()  # ids of pairs


class ReportReply(ReplyContent, frozen=True, kw_only=True):
    summary: str


class PageActionReply(ReplyContent, frozen=True, kw_only=True):
    action: str  # id
    lines: tuple[str, ...]  # ids
    text: str | None = None


class StatementReply(ReplyContent, frozen=True, kw_only=True):
    lasts: str


class FactReply(ReplyContent, frozen=True, kw_only=True):
    keep: str  # id of a statement
    key: str | None = None  # None: as the statement has it
    value: str | None = None


class FactsReply(ReplyContent, frozen=True, kw_only=True):
    facts: tuple[FactReply, ...]
