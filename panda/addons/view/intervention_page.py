"""The page of interventions: what halted and waits for somebody, its fix and the command that goes on."""

from types import SimpleNamespace

from panda.addons.view.shelf import PageQuery, Shelf
from panda.errors import Problem
from panda.store.interventions import list_interventions
from panda.store.records import Intervention


def load_interventions(shelf: Shelf, query: PageQuery) -> SimpleNamespace:
    """All interventions of a store, the newest first."""
    halts = list[Intervention | Problem]()
    problem = None
    try:
        halts = list_interventions(shelf.store)
    except (Problem, OSError) as exc:
        problem = str(exc)
    sound = [halt for halt in reversed(halts) if isinstance(halt, Intervention)]
    return SimpleNamespace(
        open=[halt for halt in sound if halt.is_open],
        settled=[halt for halt in sound if not halt.is_open],
        damaged=[halt for halt in halts if isinstance(halt, Problem)],
        problem=problem,
    )
