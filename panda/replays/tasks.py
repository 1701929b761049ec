"""A run over saved turns: each is judged or run again, by this process or by several."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any, cast

from panda.documents.problems import verdict_of
from panda.errors import PandaError
from panda.models.layers import Layers
from panda.replays.runs import Mode, Result, TurnLine, read_outcome
from panda.replays.selection import TurnPlace
from panda.replays.simulation import Answers, Simulation, simulate
from panda.replays.verification import verify_turn
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
    keep: Path  # where the directory of the turn that was run goes, if it is worth keeping


def run_tasks(
    settings: Settings, environ: Mapping[str, str], tasks: Sequence[Task], *, workers: int
) -> Iterator[TurnLine]:
    """Do the tasks, by so many processes; 1 does all in this one. Lines come as turns finish."""
    if workers <= 1 or len(tasks) <= 1:
        with open_layers(settings, environ) as layers:
            for task in tasks:
                yield do_task(settings, layers, task)
        return
    with ProcessPoolExecutor(
        workers, mp_context=get_context("spawn"), initializer=_prepare, initargs=(settings, dict(environ))
    ) as pool:
        waiting = {pool.submit(_do_here, task): task for task in tasks}
        try:
            for done in as_completed(waiting):
                try:
                    yield done.result()
                except BrokenProcessPool:
                    yield _line(waiting[done].place, "error", ["the process that was to run it has died"])
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


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
            return _line(place, cast("Result", str(verdict_of(problems))), findings, outcome=outcome)
        simulation = simulate(own, place.layout, layers, place.number, answers=task.answers, keep=task.keep)
        result: Result = "halted" if simulation.halted else "same" if simulation.ok else "differs"
        more = {name: getattr(simulation, name) for name in ("different", "misses", "outcome")}
        return _line(place, result, _findings(simulation), **more)
    except PandaError as exc:
        return _line(place, "error", [f"{exc.message} ({exc.where})" if exc.where else exc.message])


def _line(place: TurnPlace, result: Result, findings: Sequence[str], **more: Any) -> TurnLine:
    return TurnLine(place.number, place.user, str(place.directory), result, tuple(findings), **more)


def _findings(simulation: Simulation) -> list[str]:
    """Why it could not go on; of a turn that differs, what is not what it was when the turn began."""
    if simulation.halted:
        return [simulation.halted]
    more = len(simulation.changed) - _MOST_CHANGED
    shown = ", ".join(simulation.changed[:_MOST_CHANGED]) + (f" and {more} more" if more > 0 else "")
    return [f"changed since the turn: {shown}"] if simulation.changed and not simulation.ok else []


def plan_tasks(
    places: Sequence[TurnPlace], mode: Mode, *, live: bool, keep: Callable[[str, int], Path]
) -> list[Task]:
    """What is to be done with each turn; *live* asks the model for what no recording answers."""
    answers: Answers = "live" if mode == "rerun" else "recorded or live" if live else "recorded"
    return [Task(place, mode, answers, keep(place.user, place.number)) for place in places]


_here: list[tuple[Settings, Layers]] = []
"""The settings and models of a worker process; empty in the process that the user started."""


def _prepare(settings: Settings, environ: Mapping[str, str]) -> None:
    _here.append((settings, open_layers(settings, environ)))


def _do_here(task: Task) -> TurnLine:
    settings, layers = _here[0]
    return do_task(settings, layers, task)
