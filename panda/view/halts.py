"""What halted a turn, and what a person can do about it."""

from collections.abc import Iterator
from dataclasses import dataclass

from panda.errors import Problem
from panda.store.interventions import load_intervention
from panda.store.layout import UserStore
from panda.store.records import Intervention

_TEXT_CHARS = 6_000


@dataclass(frozen=True)
class Halt:
    """One intervention; what its file does not say is empty."""

    id: str
    is_open: bool = True
    at: str = ""  # when it was written
    user: str = ""  # whose turn
    turn: int | None = None  # the turn that halted
    phase: int | None = None
    recipe: str = ""
    type: str = ""  # as "invalid_reply"
    severity: str = ""
    message: str = ""
    where: str = ""
    expected: str = ""
    received: str = ""  # as far as it is shown
    fix: str = ""  # what to do
    go_on: str = ""  # the command that takes the turn up again
    resolution: str = ""  # how it was settled
    problem: str | None = None  # what is wrong with its file


def read_halts(store: UserStore, turn: int) -> Iterator[Halt]:
    """The interventions of a turn, oldest first; a damaged one says so."""
    for path in sorted(store.interventions.glob(f"*-{store.user}-{turn}-*.json")):
        try:
            found = load_intervention(store, path.stem)
        except Problem as exc:
            yield Halt(path.stem, problem=exc.message)
            continue
        yield halt_of(found)


def halt_of(found: Intervention) -> Halt:
    """An intervention as pages show it."""
    return Halt(
        id=found.id,
        is_open=found.is_open,
        at=found.created_at,
        user=found.user_id or "",
        turn=found.turn,
        phase=found.phase,
        recipe=found.recipe or "",
        type=found.type,
        severity=found.severity,
        message=found.message,
        where=found.where or "",
        expected=found.expected or "",
        received=(found.received or "")[:_TEXT_CHARS],
        fix=found.what_to_do or "",
        go_on=found.go_on or "",
        resolution=found.resolution or "",
    )
