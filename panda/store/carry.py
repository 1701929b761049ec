"""What one turn of a session leaves to the next, as values, and the table of its fields (S4). Pure."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import msgspec

from panda.documents.record_codec import Place, Whole
from panda.documents.safe_text import shorten

MARK = " […]"
_DRAFT_KEY = re.compile(r"t\d+_s\d+_\w+_\d+")
SummaryKind = Literal["verbatim", "clipped", "model", "fallback"]
"""How a summary came about: the text itself, its beginning, written by a model, or what stands in for it."""
SavedEnding = Literal["approved", "clarify", "failed", "imported"]
FlowPhase = Literal["exploring", "narrowing", "confirming", "executing", "reflecting"]
StepType = Literal["read", "write", "generate", "analyze"]
State = Literal["active", "demoted", "dropped"]
Tone = Literal["neutral", "polite", "enthusiastic", "frustrated", "hurried"]
PendingType = Literal["question", "proposal", "choice"]
PendingStatus = Literal["open", "answered", "dropped"]
_ANALYSIS = "query_analysis.json"
_REFLECTION = "reflection.json"
_PLAN = "plan.json"
_CONTEXT = "context.md"
_SUMMARY = "summary.json"
_STEPS = "steps/"
_ACTIVE = "500 records; active: touched in this turn or the two before, or retained"
_RECENT = "3; a reply over 400 characters is summarised"
_HISTORY = "1,200 characters; the unmerged"


def clip(text: str, chars: int) -> str:
    """
    The text as one line, cut after a word where it is longer, with a mark that counts too.

    >>> clip("one two three", 100), clip("one two three four", 14)
    ('one two three', 'one two […]')
    """
    return shorten(text, chars, MARK)


class Routing(Whole, frozen=True, kw_only=True):
    intent: str | None = None
    query_type: str | None = None
    next_step: str | None = None  # what the plan decided


class RecentTurn(Whole, frozen=True, kw_only=True):
    turn: int
    user: str
    assistant: str  # the reply, clipped only where it is extremely long
    assistant_summary: str  # what prompts show of the reply
    summary_kind: SummaryKind  # how assistant_summary came about
    timestamp: str  # when the turn was claimed
    routing: Routing = msgspec.field(default_factory=Routing)  # how it was taken
    entities_mentioned: tuple[str, ...] = ()  # refs that the reply lists or names, in its order
    asked_about: tuple[str, ...] = ()  # refs that the query means or names
    outcome: SavedEnding = "approved"  # how it ended


class History(Whole, frozen=True, kw_only=True):
    text: str = ""  # prose, at most 1,200 characters
    kind: SummaryKind = "verbatim"  # how it came about
    through_turn: int | None = None  # the newest turn that it covers
    unmerged: tuple[int, ...] = ()  # older turns that it does not cover yet, because compressing them failed


class Engagement(Whole, frozen=True, kw_only=True):
    text: str = ""  # one sentence
    kind: SummaryKind = "verbatim"  # how it came about
    turn: int | None = None  # the turn that it was made in


class StepRecord(Whole, frozen=True, kw_only=True):
    step: int  # number of the step, from 1
    tool: str
    step_type: StepType  # what kind of work it was
    subdomain: str  # what it worked on, as "memory"
    outcome: str  # one line: what it gave, or why it failed
    record_count: int  # how many records or statements it gave
    entities: tuple[str, ...] = ()  # labels of what it was about
    note: str | None = None  # what it left for later steps and turns
    conclusion: str | None = None  # what an analysis concluded
    result: str = ""  # file of the full result, relative to the user's directory


class TurnSummary(Whole, frozen=True, kw_only=True):
    turn: int
    detail: Literal["full", "line"] = "full"  # whether it is reduced
    outcome: SavedEnding = "approved"  # how it ended
    decision: str | None = None  # what the plan decided
    goal: str | None = None  # what the plan wanted
    steps: tuple[StepRecord, ...] = ()
    steps_completed: int = 0  # steps that succeeded
    steps_total: int = 0  # steps that were tried
    entities_created: tuple[str, ...] = ()  # what came into being
    entities_updated: tuple[str, ...] = ()  # what was changed
    entities_deleted: tuple[str, ...] = ()  # what is gone
    artifacts_generated: tuple[str, ...] = ()  # keys of generated content
    artifacts_saved: tuple[str, ...] = ()  # files that were written
    entity_curation: str | None = None  # the curation in one line
    analysis_conclusions: tuple[str, ...] = ()  # conclusions of its steps
    errors: tuple[str, ...] = ()
    blocked_reason: str | None = None  # why it could not be done
    flow: FlowPhase | None = None  # phase of the conversation
    turn_summary: str = ""  # one or two sentences
    summary_kind: SummaryKind = "verbatim"  # how turn_summary came about

    @property
    def made(self) -> dict[str, tuple[str, ...]]:
        return {
            "created": self.entities_created,
            "updated": self.entities_updated,
            "deleted": self.entities_deleted,
            "generated": self.artifacts_generated,
            "saved": self.artifacts_saved,
        }


class CachedStep(Whole, frozen=True, kw_only=True):
    turn: int  # turn that made it
    step: int
    tool: str
    call: str  # digest of tool and arguments
    asked: str  # the arguments in short
    outcome: str
    record_count: int  # how many records or statements it holds
    detail: Literal["full", "summary"]  # how much of it prompts show
    path: Place  # file of the full result, relative to the user's directory


class Note(Whole, frozen=True, kw_only=True):
    kind: Literal["note", "conclusion"]  # what it is
    text: str  # what it says
    turn: int  # turn that left it
    step: int
    expires_after_turn: int  # the last turn that sees it, if the session goes on without gaps; gaps move it


class ArchiveEntry(Whole, frozen=True, kw_only=True):
    key: str  # t{turn}_s{step}_{type}_{n}
    turn: int  # turn that made it
    step: int
    type: str  # what it is
    description: str  # what it is about
    path: Place  # file, relative to the user's directory
    chars: int  # its length
    cut: bool = False  # whether the file holds less than was made

    @property
    def is_draft(self) -> bool:
        return _DRAFT_KEY.fullmatch(self.key) is not None


class Archive(Whole, frozen=True, kw_only=True):
    entries: tuple[ArchiveEntry, ...] = ()  # oldest first
    evicted: int = 0  # how many older ones are no longer listed


class Judged(Whole, frozen=True, kw_only=True):
    ref: str  # the entity
    reason: str


class Curation(Whole, frozen=True, kw_only=True):
    turn: int | None = None  # the turn that decided it
    retained: tuple[Judged, ...] = ()  # kept, or brought back
    demoted: tuple[Judged, ...] = ()  # not to be used, but still known
    dropped: tuple[Judged, ...] = ()  # gone for good
    clear_all: bool = False  # whether everything was dropped
    reason: str | None = None  # why everything was

    @property
    def decided(self) -> dict[str, tuple[Judged, ...]]:
        return {"retained": self.retained, "demoted": self.demoted, "dropped": self.dropped}


class EntityDecision(Whole, frozen=True, kw_only=True):
    turn: int
    action: Literal["retain", "demote", "drop", "clear_all"]  # what was done
    ref: str | None  # to which entity; None for all
    reason: str


class Entity(Whole, frozen=True, kw_only=True):
    ref: str  # short name in this session, as "item_2"
    type: str  # what it is
    label: str  # how people call it
    target: str | None  # node that holds it, if one does
    state: State  # whether it counts
    turns: tuple[int, ...]  # the last turns that touched it
    source: str | None  # step or reply that it comes from, as "t3_s1" or "t3"
    reason: str | None = None  # why it has its state
    retained: bool = False  # whether it stays active however long ago it was touched


class ListedEntity(Whole, frozen=True, kw_only=True):
    ref: str  # its entity
    text: str  # what the reply said of it, clipped


class Listing(Whole, frozen=True, kw_only=True):
    turn: int | None = None  # turn that showed it; None if there is none
    about: str = ""  # what the user had asked, and how the reply began, clipped
    items: tuple[ListedEntity, ...] = ()  # in its order
    is_list: bool = True
    """Whether it stood there as a list; else several things were named one after the other."""

    @property
    def refs(self) -> tuple[str, ...]:
        return tuple(entry.ref for entry in self.items)


class Registry(Whole, frozen=True, kw_only=True):
    records: tuple[Entity, ...] = ()  # oldest first
    evicted: int = 0  # how many were forgotten for want of room
    listing: Listing = msgspec.field(default_factory=Listing)  # what ordinals count


class Flow(Whole, frozen=True, kw_only=True):
    phase: FlowPhase = "exploring"  # where it stands
    tone: Tone | None = None  # how the user speaks; null where no model told
    user_expressed: str | None = None  # what the user said of feelings or wishes, verbatim
    source: Literal["rule", "model"] = "rule"
    greeted: bool = False  # whether a reply has greeted


class Pending(Whole, frozen=True, kw_only=True):
    id: str  # q{turn}
    asked_turn: int  # turn that asked
    asked_by: Literal[1, 2, 3]  # phase that asked
    type: PendingType  # what kind of question
    message: str  # verbatim, up to 2,000 characters
    questions: tuple[str, ...] = ()  # the single questions in it
    options: tuple[str, ...] = ()  # what can be chosen
    plan: tuple[str, ...] = ()  # what would be done, step by step
    status: PendingStatus = "open"  # what became of it
    answer: str | None = None  # what the user answered
    other_turns: int = 0  # turns on other matters since


class CarriedConstraint(Whole, frozen=True, kw_only=True):
    key: str  # what it limits, as "budget_max" or "count:recipe"
    value: str | int | float
    text: str
    turn: int  # turn that said it
    active: bool = True  # whether it still holds


class Carry(Whole, frozen=True, kw_only=True):
    recent_turns: tuple[RecentTurn, ...] = ()
    history_summary: History = msgspec.field(default_factory=History)
    engagement_summary: Engagement = msgspec.field(default_factory=Engagement)
    turn_summaries: tuple[TurnSummary, ...] = ()
    step_cache: tuple[CachedStep, ...] = ()
    carry_notes: tuple[Note, ...] = ()
    content_archive: Archive = msgspec.field(default_factory=Archive)
    entity_curation: Curation = msgspec.field(default_factory=Curation)
    decision_log: tuple[EntityDecision, ...] = ()
    registry: Registry = msgspec.field(default_factory=Registry)
    flow: Flow = msgspec.field(default_factory=Flow)
    pending_clarification: Pending | None = None
    constraints: tuple[CarriedConstraint, ...] = ()

    @property
    def head(self) -> int | None:
        """The newest turn; None before the first."""
        return self.recent_turns[-1].turn if self.recent_turns else None


EMPTY = Carry()
"""What the first turn of a session finds."""


@dataclass(frozen=True)
class Field:
    """One field of the carry; phase 7 writes all of them."""

    what: str  # what it holds, for people
    read_by: tuple[int, ...]  # phases in whose prompts it stands, where it is not empty
    limit: str  # how much of it is kept
    files: tuple[str, ...]  # files of a turn that it comes from


FIELDS: Mapping[str, Field] = {
    "recent_turns": Field("the last turns, nearly whole", (0, 1, 2, 3, 4, 5), _RECENT, (_CONTEXT, _SUMMARY)),
    "history_summary": Field(
        "what happened before the recent turns", (0, 1, 2, 3, 5), f"{_HISTORY} wait by number", (_SUMMARY,)
    ),
    "engagement_summary": Field(
        "what the session is about", (0, 1, 2, 3, 5), "one sentence", (_SUMMARY, _PLAN)
    ),
    "turn_summaries": Field(
        "what each turn did", (1, 2, 3, 4, 5, 6), "2 whole, 20 more as one line", (_SUMMARY,)
    ),
    "step_cache": Field(
        "tool results that need not be asked for again", (3, 4, 6), "2 executed turns", (_STEPS,)
    ),
    "carry_notes": Field(
        "notes and conclusions that steps left for later", (3, 4, 5), "8, for three turns", (_STEPS,)
    ),
    "content_archive": Field(
        "generated or analysed content, kept verbatim", (3, 4, 5, 6), "50 entries of 256 KiB", (_STEPS,)
    ),
    "entity_curation": Field("what the last curation decided", (3, 4), "the last one", (_REFLECTION,)),
    "decision_log": Field("decisions on entities", (1, 3), "20; the last 5 shown", (_REFLECTION,)),
    "registry": Field(
        "the entities of the session", (0, 1, 2, 3, 4, 5, 6), _ACTIVE, (_STEPS, _CONTEXT, _REFLECTION)
    ),
    "flow": Field("how the conversation goes", (0, 1, 3, 5), "one", (_ANALYSIS, _CONTEXT)),
    "pending_clarification": Field(
        *("the question that is open", (0, 1, 3, 5), "one; two turns on other matters drop it"),
        (_ANALYSIS, _REFLECTION, _PLAN),
    ),
    "constraints": Field("limits that the user set", (3, 4, 6), "30", (_ANALYSIS,)),
}
"""Every field of the carry; a test holds it to the values and to the prompts."""
