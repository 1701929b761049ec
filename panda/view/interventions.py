"""The page of interventions: what halted and waits for somebody, its fix and the command that goes on."""

from dataclasses import dataclass

from panda.errors import Problem
from panda.store.interventions import list_interventions
from panda.store.records import Intervention
from panda.view.shelf import Query, Shelf

_MOST = 100


@dataclass(frozen=True)
class InterventionsPage:
    """What the page shows."""

    open: tuple[Intervention, ...]  # newest first
    open_left: int
    settled: tuple[Intervention, ...]  # newest first
    settled_left: int
    damaged: tuple[Problem, ...]  # what is wrong with other files
    problem: str | None  # why they cannot be listed


def load_interventions(shelf: Shelf, query: Query) -> InterventionsPage:
    """The page of all interventions of a store."""
    found, problem = list[Intervention | Problem](), None
    try:
        found = list_interventions(shelf.store)
    except (Problem, OSError) as exc:
        problem = str(exc)
    sound = [one for one in reversed(found) if not isinstance(one, Problem)]
    waiting = tuple(one for one in sound if one.is_open)
    settled = tuple(one for one in sound if not one.is_open)
    damaged = tuple(one for one in found if isinstance(one, Problem))
    return InterventionsPage(
        waiting[:_MOST],
        len(waiting[_MOST:]),
        settled[:_MOST],
        len(settled[_MOST:]),
        damaged[:_MOST],
        problem,
    )
