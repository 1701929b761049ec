"""What one turn of a session leaves to the next, as values, and the table of its fields (S4). Pure."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from panda.documents.sentences import shorten

MARK = " […]"


def clip(text: str, chars: int) -> str:
    """
    The text as one line, cut after a word where it is longer, with a mark.

    Args:
        text: Any text.
        chars: Most characters of the result, mark included.

    >>> clip("one two three", 100), clip("one two three four", 14)
    ('one two three', 'one two […]')
    """
    return shorten(text, chars, MARK)


def clip_lines(text: str, chars: int, *, rest: str) -> str:
    """
    The beginning of a text with its lines, and where the rest is.

    >>> clip_lines("ab\\ncdef", 40, rest="response.md"), len(clip_lines("x" * 99, 40, rest="response.md"))
    ('ab\\ncdef', 40)
    """
    mark = f"\n[… cut, whole in {rest}]"
    return text if len(text) <= chars else text[: max(0, chars - len(mark))] + mark


_DRAFT_KEY = re.compile(r"t\d+_s\d+_\w+_\d+")

SummaryKind = Literal["verbatim", "clipped", "model", "fallback"]
"""How a summary came about: the text itself, its beginning, written by a model, or what stands in for it."""
Outcome = Literal["approved", "clarify", "failed", "imported"]
FlowPhase = Literal["exploring", "narrowing", "confirming", "executing", "reflecting"]
StepType = Literal["read", "write", "generate", "analyze"]


@dataclass(frozen=True, kw_only=True)
class Routing:
    """How phase 0 and 3 took a turn."""

    intent: str | None = None
    """Intent."""
    query_type: str | None = None
    """Query type."""
    next_step: str | None = None
    """What the plan decided."""


@dataclass(frozen=True, kw_only=True)
class RecentTurn:
    """One of the last turns, nearly whole."""

    turn: int
    """Turn number."""
    user: str
    """The raw query."""
    assistant: str
    """The reply, clipped only where it is extremely long."""
    assistant_summary: str
    """What prompts show of the reply."""
    summary_kind: SummaryKind
    """How assistant_summary came about."""
    timestamp: str
    """When the turn was claimed."""
    routing: Routing = field(default_factory=Routing)
    """How it was taken."""
    entities_mentioned: tuple[str, ...] = ()
    """Refs that the reply lists or names, in its order."""
    asked_about: tuple[str, ...] = ()
    """Refs that the query means or names."""
    outcome: Outcome = "approved"
    """How it ended."""


@dataclass(frozen=True, kw_only=True)
class History:
    """What happened before the recent turns."""

    text: str = ""
    """Prose, at most 1,200 characters."""
    kind: SummaryKind = "verbatim"
    """How it came about."""
    through_turn: int | None = None
    """The newest turn that it covers."""
    unmerged: tuple[int, ...] = ()
    """Older turns that it does not cover yet, because compressing them failed."""


@dataclass(frozen=True, kw_only=True)
class Engagement:
    """What the session is about."""

    text: str = ""
    """One sentence."""
    kind: SummaryKind = "verbatim"
    """How it came about."""
    turn: int | None = None
    """The turn that it was made in."""


@dataclass(frozen=True, kw_only=True)
class StepRecord:
    """One tool step of a turn, in short."""

    step: int
    """Number of the step, from 1."""
    tool: str
    """The tool."""
    step_type: StepType
    """What kind of work it was."""
    subdomain: str
    """What it worked on, as "memory"."""
    outcome: str
    """One line: what it gave, or why it failed."""
    record_count: int
    """How many records or statements it gave."""
    entities: tuple[str, ...] = ()
    """Labels of what it was about."""
    note: str | None = None
    """What it left for later steps and turns."""
    conclusion: str | None = None
    """What an analysis concluded."""
    result: str = ""
    """File of the full result, relative to the user's directory."""


@dataclass(frozen=True, kw_only=True)
class TurnSummary:
    """What a turn did. A reduced one keeps its line alone."""

    turn: int
    """Turn number."""
    detail: Literal["full", "line"] = "full"
    """Whether it is reduced."""
    outcome: Outcome = "approved"
    """How it ended."""
    decision: str | None = None
    """What the plan decided."""
    goal: str | None = None
    """What the plan wanted."""
    steps: tuple[StepRecord, ...] = ()
    """The tool steps."""
    steps_completed: int = 0
    """Steps that succeeded."""
    steps_total: int = 0
    """Steps that were tried."""
    entities_created: tuple[str, ...] = ()
    """What came into being."""
    entities_updated: tuple[str, ...] = ()
    """What was changed."""
    entities_deleted: tuple[str, ...] = ()
    """What is gone."""
    artifacts_generated: tuple[str, ...] = ()
    """Keys of generated content."""
    artifacts_saved: tuple[str, ...] = ()
    """Files that were written."""
    entity_curation: str | None = None
    """The curation in one line."""
    analysis_conclusions: tuple[str, ...] = ()
    """Conclusions of its steps."""
    errors: tuple[str, ...] = ()
    """What went wrong."""
    blocked_reason: str | None = None
    """Why it could not be done."""
    flow: FlowPhase | None = None
    """Phase of the conversation."""
    turn_summary: str = ""
    """One or two sentences."""
    summary_kind: SummaryKind = "verbatim"
    """How turn_summary came about."""


@dataclass(frozen=True, kw_only=True)
class CachedStep:
    """A reference to a tool result that need not be asked for again."""

    turn: int
    """Turn that made it."""
    step: int
    """Its step."""
    tool: str
    """The tool."""
    call: str
    """Digest of tool and arguments."""
    asked: str
    """The arguments in short."""
    outcome: str
    """One line."""
    record_count: int
    """How many records or statements it holds."""
    detail: Literal["full", "summary"]
    """How much of it prompts show."""
    path: str
    """File of the full result, relative to the user's directory."""


@dataclass(frozen=True, kw_only=True)
class Note:
    """Something that a step left for later turns."""

    kind: Literal["note", "conclusion"]
    """What it is."""
    text: str
    """What it says."""
    turn: int
    """Turn that left it."""
    step: int
    """Its step."""
    expires_after_turn: int
    """The last turn that sees it, if the session goes on without gaps; gaps move it."""


@dataclass(frozen=True, kw_only=True)
class ArchiveEntry:
    """Generated or analysed content that is kept verbatim in a file."""

    key: str
    """t{turn}_s{step}_{type}_{n}."""
    turn: int
    """Turn that made it."""
    step: int
    """Its step."""
    type: str
    """What it is."""
    description: str
    """What it is about."""
    path: str
    """File, relative to the user's directory."""
    chars: int
    """Its length."""
    cut: bool = False
    """Whether the file holds less than was made."""

    @property
    def is_draft(self) -> bool:
        """Whether it was written for a reader, and is not the result of a tool."""
        return _DRAFT_KEY.fullmatch(self.key) is not None


@dataclass(frozen=True, kw_only=True)
class Archive:
    """The index of kept content."""

    entries: tuple[ArchiveEntry, ...] = ()
    """Oldest first."""
    evicted: int = 0
    """How many older ones are no longer listed."""


State = Literal["active", "demoted", "dropped"]
Tone = Literal["neutral", "polite", "enthusiastic", "frustrated", "hurried"]
PendingType = Literal["question", "proposal", "choice"]
PendingStatus = Literal["open", "answered", "dropped"]


@dataclass(frozen=True, kw_only=True)
class Judged:
    """A decision on one entity."""

    ref: str
    """The entity."""
    reason: str
    """Why."""


@dataclass(frozen=True, kw_only=True)
class Curation:
    """What phase 1 decided on the entities of the session."""

    turn: int | None = None
    """The turn that decided it."""
    retained: tuple[Judged, ...] = ()
    """Kept, or brought back."""
    demoted: tuple[Judged, ...] = ()
    """Not to be used, but still known."""
    dropped: tuple[Judged, ...] = ()
    """Gone for good."""
    clear_all: bool = False
    """Whether everything was dropped."""
    reason: str | None = None
    """Why everything was."""


@dataclass(frozen=True, kw_only=True)
class Decision:
    """One line of the decision log."""

    turn: int
    """Turn."""
    action: Literal["retain", "demote", "drop", "clear_all"]
    """What was done."""
    ref: str | None
    """To which entity; None for all."""
    reason: str
    """Why."""


@dataclass(frozen=True, kw_only=True)
class Entity:
    """Something that the session talks about."""

    ref: str
    """Short name in this session, as "item_2"."""
    type: str
    """What it is."""
    label: str
    """How people call it."""
    target: str | None
    """Node that holds it, if one does."""
    state: State
    """Whether it counts."""
    turns: tuple[int, ...]
    """The last turns that touched it."""
    source: str | None
    """Step or reply that it comes from, as "t3_s1" or "t3"."""
    reason: str | None = None
    """Why it has its state."""
    retained: bool = False
    """Whether it stays active however long ago it was touched."""


@dataclass(frozen=True, kw_only=True)
class Listed:
    """One item of a list."""

    ref: str
    """Its entity."""
    text: str
    """What the reply said of it, clipped."""


@dataclass(frozen=True, kw_only=True)
class Listing:
    """The list that "the second one" counts: the last that a reply showed."""

    turn: int | None = None
    """Turn that showed it; None if there is none."""
    about: str = ""
    """What the user had asked, and how the reply began, clipped."""
    items: tuple[Listed, ...] = ()
    """In its order."""
    is_list: bool = True
    """Whether it stood there as a list; else several things were named one after the other."""

    @property
    def refs(self) -> tuple[str, ...]:
        """Its entities, in order."""
        return tuple(one.ref for one in self.items)


@dataclass(frozen=True, kw_only=True)
class Registry:
    """The entities of a session."""

    records: tuple[Entity, ...] = ()
    """Oldest first."""
    evicted: int = 0
    """How many were forgotten for want of room."""
    listing: Listing = field(default_factory=Listing)
    """What ordinals count."""


@dataclass(frozen=True, kw_only=True)
class Flow:
    """How the conversation goes."""

    phase: FlowPhase = "exploring"
    """Where it stands."""
    tone: Tone = "neutral"
    """How the user speaks."""
    user_expressed: str | None = None
    """What the user said of feelings or wishes, verbatim."""
    source: Literal["rule", "model"] = "rule"
    """Who says so."""
    greeted: bool = False
    """Whether a reply has greeted."""


@dataclass(frozen=True, kw_only=True)
class Pending:
    """A question to the user."""

    id: str
    """q{turn}."""
    asked_turn: int
    """Turn that asked."""
    asked_by: Literal[1, 2, 3]
    """Phase that asked."""
    type: PendingType
    """What kind of question."""
    message: str
    """Verbatim, up to 2,000 characters."""
    questions: tuple[str, ...] = ()
    """The single questions in it."""
    options: tuple[str, ...] = ()
    """What can be chosen."""
    plan: tuple[str, ...] = ()
    """What would be done, step by step."""
    status: PendingStatus = "open"
    """What became of it."""
    answer: str | None = None
    """What the user answered."""
    other_turns: int = 0
    """Turns on other matters since."""


@dataclass(frozen=True, kw_only=True)
class Constraint:
    """A limit that the user set, as data."""

    key: str
    """What it limits, as "budget_max" or "count:recipe"."""
    value: str | int | float
    """The limit."""
    text: str
    """The words."""
    turn: int
    """Turn that said it."""
    active: bool = True
    """Whether it still holds."""


@dataclass(frozen=True, kw_only=True)
class Carry:
    """Everything that a session carries from turn to turn."""

    recent_turns: tuple[RecentTurn, ...] = ()
    history_summary: History = field(default_factory=History)
    engagement_summary: Engagement = field(default_factory=Engagement)
    turn_summaries: tuple[TurnSummary, ...] = ()
    step_cache: tuple[CachedStep, ...] = ()
    carry_notes: tuple[Note, ...] = ()
    content_archive: Archive = field(default_factory=Archive)
    entity_curation: Curation = field(default_factory=Curation)
    decision_log: tuple[Decision, ...] = ()
    registry: Registry = field(default_factory=Registry)
    flow: Flow = field(default_factory=Flow)
    pending_clarification: Pending | None = None
    constraints: tuple[Constraint, ...] = ()

    @property
    def head(self) -> int | None:
        """The newest turn; None before the first."""
        return self.recent_turns[-1].turn if self.recent_turns else None


EMPTY = Carry()
"""What the first turn of a session finds."""


@dataclass(frozen=True)
class Field:
    """One field of the carry."""

    what: str
    """What it holds, for people."""
    written_by: tuple[int, ...]
    """Phases that decide it; phase 7 puts all of them into session.json."""
    read_by: tuple[int, ...]
    """Phases in whose prompts it stands, where it is not empty."""
    limit: str
    """How much of it is kept."""
    files: tuple[str, ...]
    """Files of a turn that it comes from."""


FIELDS: Mapping[str, Field] = {
    "recent_turns": Field(
        "the last turns, nearly whole",
        (7,),
        (0, 1, 2, 3, 4, 5),
        "3; a reply over 400 characters is summarised",
        ("context.md", "summary.json"),
    ),
    "history_summary": Field(
        "what happened before the recent turns",
        (7,),
        (0, 1, 2, 3, 5),
        "1,200 characters; what could not be merged waits by number",
        ("summary.json",),
    ),
    "engagement_summary": Field(
        "what the session is about", (7,), (0, 1, 2, 3, 5), "one sentence", ("summary.json", "plan.json")
    ),
    "turn_summaries": Field(
        "what each turn did", (7,), (1, 2, 3, 4, 5, 6), "2 whole, 20 more as one line", ("summary.json",)
    ),
    "step_cache": Field(
        "tool results that need not be asked for again", (4, 7), (3, 4, 6), "2 executed turns", ("steps/",)
    ),
    "carry_notes": Field(
        "notes and conclusions that steps left for later",
        (4, 7),
        (3, 4, 5),
        "8, for three turns",
        ("steps/",),
    ),
    "content_archive": Field(
        "generated or analysed content, kept verbatim",
        (4, 7),
        (3, 4, 5, 6),
        "50 entries of 256 KiB",
        ("steps/",),
    ),
    "entity_curation": Field(
        "what the last curation decided", (1,), (3, 4), "the last one", ("reflection.json",)
    ),
    "decision_log": Field(
        "decisions on entities", (1, 7), (1, 3), "20; the last 5 shown", ("reflection.json",)
    ),
    "registry": Field(
        "the entities of the session",
        (1, 4, 7),
        (0, 1, 2, 3, 4, 5, 6),
        "500 records; active: touched in this turn or the two before, or retained",
        ("steps/", "context.md", "reflection.json"),
    ),
    "flow": Field(
        "how the conversation goes", (5, 7), (0, 1, 3, 5), "one", ("query_analysis.json", "context.md")
    ),
    "pending_clarification": Field(
        "the question that is open",
        (0, 1, 2, 3, 7),
        (0, 1, 3, 5),
        "one; two turns on other matters drop it",
        ("query_analysis.json", "reflection.json", "plan.json"),
    ),
    "constraints": Field("limits that the user set", (0, 7), (3, 4, 6), "30", ("query_analysis.json",)),
}
"""Every field of the carry; a test holds it to the values and to the prompts."""
