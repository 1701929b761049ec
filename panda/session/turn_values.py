"""What turns leave behind in a session, as values: their texts, records, results and content."""

import re
from dataclasses import dataclass, field
from typing import Literal

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
