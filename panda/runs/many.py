"""Saved turns run again into a directory of their own, each that is not as it should be told of."""

import time
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import AbstractContextManager, closing

from panda.errors import UsageError, Verdict
from panda.runs.ledger import Mode, PlannedTurn, RunFolder, TurnLine, fingerprint_now
from panda.runs.pool import Chain, Opener, Processes, attempt, run_chains
from panda.runs.select import TurnPlace
from panda.runs.tasks import ReplayWorker, Task, line_of, plan_tasks
from panda.settings import Settings
from panda.store.layout import Layout
from panda.trust import guard_links

Progress = Callable[[str, int], AbstractContextManager[Callable[[], None]]]
"""Shows how far something is: its name and size; gives what to call after each part."""


_Ended = Generator[tuple[Task, TurnLine | None, str | None]]
"""Tasks as they end, with what came of each, or why nothing did."""


def begin_run(
    settings: Settings,
    environ: Mapping[str, str],
    places: Sequence[TurnPlace],
    store: Layout,
    *,
    mode: Mode,
    live: bool = False,
    selection: Sequence[str] = (),
) -> RunFolder:
    """The directory of a new run over saved turns, none of which has been run yet; *selection* is noted."""
    for one in places:
        guard_links(settings.on_store(one.layout.root))
    turns = [
        PlannedTurn(one.number, one.user, None if one.layout.root == store.root else str(one.layout.root))
        for one in places
    ]
    options = {"live": live, "selection": list(selection)}
    ran_on = fingerprint_now(settings, environ)
    return RunFolder.create(store, settings.clock, mode, turns, fingerprint=ran_on, options=options)


def resume_run(settings: Settings, environ: Mapping[str, str], run: RunFolder) -> RunFolder:
    """A run of saved turns that was interrupted; UsageError where it can't be gone on with."""
    plan = run.plan()
    if plan.mode == "batch":
        raise UsageError(f"run {run.id} is a batch", where="--resume", fix=f"panda batch --resume {run.id}")
    if plan.finished_at is not None:
        raise UsageError(f"run {run.id} has ended", where="--resume", fix="begin a new run")
    run.check_same(fingerprint_now(settings, environ))
    return run


def run_turns(
    settings: Settings,
    environ: Mapping[str, str],
    run: RunFolder,
    tell: Callable[[str], None],
    progress: Progress,
    *,
    workers: int,
) -> list[TurnLine]:
    """Run the turns of a run that have not been run yet; gives the lines of all, by user and number."""
    with run.hold():
        plan = run.plan()
        done = {line.key for line in run.lines()}
        places = [place for key, place in run.places().items() if key not in done]
        tasks = plan_tasks(places, plan.mode, live=bool(plan.options["live"]), work=run.directory)
        opener = ReplayWorker(settings, environ)
        several = workers > 1 and len(tasks) > 1
        ended = _run_here(opener, tasks) if not several else _run_side_by_side(opener, tasks, workers)
        started = time.monotonic()
        with closing(ended), progress("replaying", len(tasks)) as advance:
            for task, value, fault in ended:
                line = value or line_of(task.place, "error", [fault] if fault else [])
                run.add(line)
                _tell_line(line, tell)
                advance()
        run.finish(settings.clock)
        seconds = time.monotonic() - started
        each = f", {seconds / len(tasks):.2f} s a turn" if tasks else ""
        tell(f"{len(tasks)} {'turn' if len(tasks) == 1 else 'turns'} in {seconds:.1f} s{each}")
        return sorted(run.lines(), key=lambda line: (line.user, line.turn))


def _run_here(opener: Opener, tasks: Sequence[Task]) -> _Ended:
    if tasks:
        with opener() as work:
            for task in tasks:
                yield task, *attempt(work, task)


def _run_side_by_side(opener: Opener, tasks: Sequence[Task], width: int) -> _Ended:
    with closing(Processes(opener, min(width, len(tasks)))) as workers:
        yield from run_chains(workers, (Chain(iter([task]), 1) for task in tasks))


def _tell_line(line: TurnLine, tell: Callable[[str], None]) -> None:
    if line.verdict is Verdict.SOUND:
        return
    tell(f"turn {line.turn}: {line.result}")
    for finding in line.findings:
        tell(finding)
    for miss in line.misses:
        tell(f"miss in {miss.recipe} ({miss.kind}):\n{miss.difference}")
    for name, difference in line.different.items():
        tell(f"{name}:\n{difference}")
