"""Saved turns run again into a directory of their own, each that is not as it should be told of."""

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager

from panda.documents.problems import Verdict
from panda.recipes.book import RecipeBook
from panda.replays.runs import Mode, RunFolder, TurnLine, fingerprint
from panda.replays.selection import TurnPlace
from panda.replays.tasks import plan_tasks, run_tasks
from panda.settings import Settings
from panda.storage.layout import Layout
from panda.trust import open_layers

Progress = Callable[[str, int], AbstractContextManager[Callable[[], None]]]
"""Shows how far something is: its name and size; gives what to call after each part."""


def run_turns(
    settings: Settings,
    environ: Mapping[str, str],
    places: Sequence[TurnPlace],
    store: Layout,
    tell: Callable[[str], None],
    progress: Progress,
    *,
    mode: Mode,
    workers: int,
    live: bool = False,
    selection: Sequence[str] = (),
) -> tuple[RunFolder, list[TurnLine]]:
    """
    Run saved turns into a new run directory.

    Args:
        store: Where the run is kept.
        live: Whether simulate asks the model for what no recording answers.
        selection: The words that named the turns, to be noted.

    Returns:
        The run, and its lines by user and number.
    """
    book = RecipeBook(settings.recipe_dirs, settings.prompt_dirs)
    with open_layers(settings, environ) as layers:
        ran_on = fingerprint(book, layers)
    options = {"live": live, "workers": workers, "selection": list(selection)}
    run = RunFolder.create(store, settings.clock, mode, places, fingerprint=ran_on, options=options)
    tasks = plan_tasks(places, mode, live=live, keep=run.kept_turn)
    lines: list[TurnLine] = []
    started = time.monotonic()
    with progress("replaying", len(tasks)) as advance:
        for line in run_tasks(settings, environ, tasks, workers=workers):
            run.add(line)
            lines.append(line)
            _tell_line(line, tell)
            advance()
    run.finish(settings.clock)
    seconds = time.monotonic() - started
    each = f", {seconds / len(lines):.2f} s a turn" if lines else ""
    tell(f"{len(lines)} turns in {seconds:.1f} s{each}")
    return run, sorted(lines, key=lambda line: (line.user, line.turn))


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
