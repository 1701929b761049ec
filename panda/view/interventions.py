"""The page of interventions: what halted and waits for somebody, its fix and the command that goes on."""

from dataclasses import dataclass
from pathlib import Path

from panda.errors import Problem
from panda.store.interventions import list_interventions
from panda.store.records import Intervention
from panda.view.halts import Halt, halt_of
from panda.view.shelf import Query, Shelf

_MOST = 100


@dataclass(frozen=True)
class InterventionsPage:
    """What the page shows."""

    open: tuple[Halt, ...]  # newest first
    open_left: int
    settled: tuple[Halt, ...]  # newest first
    settled_left: int
    damaged: tuple[tuple[str, str], ...]  # name of each damaged file, and what is wrong with it
    problem: str | None  # why they cannot be listed


def load_interventions(shelf: Shelf, query: Query) -> InterventionsPage:
    """The page of all interventions of a store."""
    found, problem = list[Intervention | Problem](), None
    try:
        found = list_interventions(shelf.store)
    except (Problem, OSError) as exc:
        problem = str(exc)
    sound = [halt_of(one) for one in reversed(found) if not isinstance(one, Problem)]
    waiting = [one for one in sound if one.is_open]
    settled = [one for one in sound if not one.is_open]
    damaged = [(Path(one.path).name, one.message) for one in found if isinstance(one, Problem)]
    return InterventionsPage(
        tuple(waiting[:_MOST]),
        max(0, len(waiting) - _MOST),
        tuple(settled[:_MOST]),
        max(0, len(settled) - _MOST),
        tuple(damaged[:_MOST]),
        problem,
    )
