"""Saved turns run again into a directory of their own, each that is not as it should be told of."""

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, closing

from panda.engines.contract import Chain, Engine, Inline, run_chains
from panda.engines.processes import Processes
from panda.errors import UsageError, Verdict
from panda.replays.runs import Mode, PlannedTurn, RunFolder, TurnLine, fingerprint_now
from panda.replays.selection import TurnPlace
from panda.replays.tasks import ReplayWorker, line_of, plan_tasks
from panda.settings import Settings
from panda.store.layout import Layout
from panda.trust import guard_links

Progress = Callable[[str, int], AbstractContextManager[Callable[[], None]]]
"""Shows how far something is: its name and size; gives what to call after each part."""


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
        engine: Engine = Processes(opener, min(workers, len(tasks))) if several else Inline(opener)
        started = time.monotonic()
        with closing(engine), progress("replaying", len(tasks)) as advance:
            for ended in run_chains(engine, (Chain(iter([task]), 1) for task in tasks)):
                fault = [ended.fault] if ended.fault else []
                line = ended.value or line_of(ended.task.place, "error", fault)
                run.add(line)
                _tell_line(line, tell)
                advance()
        run.finish(settings.clock)
        seconds = time.monotonic() - started
        each = f", {seconds / len(tasks):.2f} s a turn" if tasks else ""
        tell(f"{len(tasks)} {'turn' if len(tasks) == 1 else 'turns'} in {seconds:.1f} s{each}")
        return sorted(run.lines(), key=lambda line: (line.user, line.turn))


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
