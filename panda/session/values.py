"""What one turn of a session leaves to the next, as values; session.json holds them as they are."""

from dataclasses import dataclass, field
from typing import Literal

from panda.session.turn_values import (
    Archive,
    ArchiveEntry,
    CachedStep,
    Engagement,
    FlowPhase,
    History,
    Note,
    Outcome,
    RecentTurn,
    Routing,
    StepRecord,
    StepType,
    SummaryKind,
    TurnSummary,
)

__all__ = [
    "EMPTY",
    "Archive",
    "ArchiveEntry",
    "CachedStep",
    "Carry",
    "Constraint",
    "Curation",
    "Decision",
    "Engagement",
    "Entity",
    "Flow",
    "FlowPhase",
    "History",
    "Judged",
    "Listed",
    "Listing",
    "Note",
    "Outcome",
    "Pending",
    "PendingStatus",
    "PendingType",
    "RecentTurn",
    "Registry",
    "Routing",
    "State",
    "StepRecord",
    "StepType",
    "SummaryKind",
    "Tone",
    "TurnSummary",
]

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
