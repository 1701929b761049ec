"""What a phase is, and what it can end with."""

from dataclasses import dataclass
from typing import Literal, Protocol

from panda.documents.context import Phase, Section
from panda.phases.running_turn import Turn
from panda.store.outcome import TurnOutcome
from panda.store.records import FileRecord


@dataclass(frozen=True)
class PhaseResult:
    section: Section | None = None  # section to commit to context.md
    files: tuple[FileRecord, ...] = ()  # to write into the turn's directory
    to: Phase | None = None  # phase to go on with; None is the next one
    outcome: TurnOutcome | None = None  # set by the phase that knows what the query came to
    put_back: tuple[Phase, ...] = ()  # later phases whose sections of an earlier attempt stand again


@dataclass(frozen=True)
class Retry:
    """An earlier phase has to run again; its section and all later ones are superseded."""

    to: Phase
    reason: str  # why, for that phase's prompt
    section: Section | None = None  # section of the phase that asks, kept among the superseded ones


@dataclass(frozen=True)
class Stop:
    """The turn ends here; the save follows."""

    status: Literal["clarify", "failed"]  # how it ends
    section: Section | None = None  # section to commit
    files: tuple[FileRecord, ...] = ()  # to write
    question: str | None = None  # question to the user, for clarify
    reason: str | None = None  # why it failed


PhaseOutcome = PhaseResult | Retry | Stop


class PipelinePhase(Protocol):
    """One numbered phase. It sees earlier phases only through the turn's documents."""

    @property
    def number(self) -> Phase: ...

    @property
    def layer(self) -> str: ...

    def run(self, turn: Turn) -> PhaseOutcome:
        """Do the phase's work. Raises HaltError: The turn cannot go on; an intervention is written."""
        ...
