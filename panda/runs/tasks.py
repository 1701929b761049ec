"""A run over saved turns: each is judged or run again, by this process or by several."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from panda.errors import ModelAwayError, Problem, verdict_of
from panda.models.layers import Layers
from panda.runs.ledger import Mode, Result, TurnLine, read_outcome
from panda.runs.pool import Work
from panda.runs.replay import Answers, Simulation, simulate
from panda.runs.select import TurnPlace
from panda.runs.verdict import verify_turn
from panda.settings import Settings
from panda.trust import guard_links, open_layers

_MOST_CHANGED = 8
"""Files named that have changed since a turn."""


@dataclass(frozen=True)
class Task:
    """One turn of a run."""

    place: TurnPlace  # the saved turn
    mode: Mode  # what is done with it
    answers: Answers  # where answers come from, unless it is only verified
    work: Path  # the directory of the run


@dataclass(frozen=True)
class ReplayWorker:
    """Makes a worker ready to do tasks; see Opener."""

    settings: Settings  # in force
    environ: Mapping[str, str]  # for the API keys that models.yaml names

    @contextmanager
    def __call__(self) -> Iterator[Work]:
        """Does tasks with models that are loaded once."""
        with open_layers(self.settings, self.environ) as layers:
            yield lambda task: do_task(self.settings, layers, task)


def do_task(settings: Settings, layers: Layers, task: Task) -> TurnLine:
    """Judge one turn, or run it again; what stops it, such as a damaged file, is a finding of it."""
    place = task.place
    own = settings.on_store(place.layout.root, user=place.user)
    guard_links(own)
    try:
        if task.mode == "verify":
            problems = verify_turn(place)
            findings = [f"{problem.where}: {problem.message}" for problem in problems]
            outcome = None if findings else read_outcome(place.folder())
            return line_of(place, cast("Result", str(verdict_of(problems))), findings, outcome=outcome)
        simulation = simulate(own, place.layout, layers, place.number, answers=task.answers, work=task.work)
        result: Result = "halted" if simulation.halted else "same" if simulation.ok else "differs"
        more = {name: getattr(simulation, name) for name in ("different", "misses", "outcome")}
        return line_of(place, result, _findings(simulation), **more)
    except Problem as exc:
        result = "away" if isinstance(exc, ModelAwayError) else "error"
        return line_of(place, result, [f"{exc.message} ({exc.where})" if exc.where else exc.message])


def line_of(place: TurnPlace, result: Result, findings: Sequence[str], **more: Any) -> TurnLine:
    """What came of a turn."""
    return TurnLine(place.number, place.user, str(place.directory), result, tuple(findings), **more)


def _findings(simulation: Simulation) -> list[str]:
    """Why it could not go on; of a turn that differs, what is not what it was when the turn began."""
    if simulation.halted:
        return [simulation.halted]
    more = len(simulation.changed) - _MOST_CHANGED
    shown = ", ".join(simulation.changed[:_MOST_CHANGED]) + (f" and {more} more" if more > 0 else "")
    return [f"changed since the turn: {shown}"] if simulation.changed and not simulation.ok else []


def plan_tasks(places: Sequence[TurnPlace], mode: Mode, *, live: bool, work: Path) -> list[Task]:
    """What is to be done with each turn; *live* asks the model for what no recording answers."""
    answers: Answers = "live" if mode == "rerun" else "recorded or live" if live else "recorded"
    return [Task(place, mode, answers, work) for place in places]
