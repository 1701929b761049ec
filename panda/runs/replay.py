"""
Saved turns run again: with their recorded answers (simulate), or with the models of today (rerun).

The turn reads what was there when it began and writes into a directory of its own; the clock stands where it
stood. What then differs from the saved turn comes from changed code, prompts, recipes or models.
"""

import difflib
import shutil
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from panda.app import App
from panda.errors import HaltError, UsageError
from panda.memory.budget import FORGOTTEN
from panda.memory.past import Bound
from panda.models.contract import Layers
from panda.recipes.calls import LiveOnMiss, Miss, Recordings, Replay
from panda.runs.ledger import Outcome, read_outcome
from panda.settings import Settings
from panda.store.files import (
    check_links,
    parse_json,
    read_text,
    remove_tree,
    render_json,
)
from panda.store.layout import (
    CALLS_JSONL,
    IMAGE_JSON,
    METADATA_JSON,
    METRICS_JSON,
    SNAPSHOT_JSON,
    Apart,
    Layout,
    turn_name,
)
from panda.store.records import Image, Snapshot, Step
from panda.store.turns import IMAGES, Reserved, TurnFolder, load_picture
from panda.trust import guard_links

_SHOWN_LINES = 30
_MEASURED = frozenset({CALLS_JSONL, METADATA_JSON, METRICS_JSON, SNAPSHOT_JSON})

Answers = Literal["recorded", "recorded or live", "live"]
"""Where the answers of a turn that runs again come from."""


@dataclass(frozen=True)
class Simulation:
    """What came of one turn that was run again."""

    turn: int  # its number
    same: tuple[str, ...]  # documents that are byte for byte the same (steps: but for their seconds)
    different: dict[str, str]  # documents that differ, with the difference
    misses: tuple[Miss, ...]  # calls that no recording answers
    halted: str | None  # why it could not go on, if so
    outcome: Outcome  # what the turn came to this time
    changed: tuple[str, ...] = ()
    """Memory files and notes that are not what they were when the turn began, for all that is known."""

    @property
    def ok(self) -> bool:
        """Whether nothing was found."""
        return not self.different and not self.misses and self.halted is None


def simulate(
    settings: Settings,
    layout: Layout,
    layers: Layers,
    number: int,
    *,
    answers: Answers = "recorded",
    work: Path,
) -> Simulation:
    """
    Run a saved turn again.

    Args:
        settings: Settings in force; user, recipes and prompts are taken from them.
        layout: The store; nothing is written to it.
        layers: Models by layer; with recorded answers, for their tokenizers and what they can do alone.
        answers: recorded: no model is asked, a call that was not made before is a miss and takes the most
            similar answer; recorded or live: a miss is asked of the model; live: everything is.
        work: The directory of the run, where all goes that the turn writes.

    Raises:
        UsageError: It is not saved, or has no recorded calls that are to answer.
    """
    saved = settings.on_store(layout.root).store.open(number)
    metadata = saved.read_metadata()
    if metadata.next is not None or (answers != "live" and not saved.has(CALLS_JSONL)):
        is_imported = metadata.status == "imported"
        raise UsageError(
            f"turn {number} ({metadata.status}) has no recorded run",
            where=str(saved.paths.directory),
            fix="give --mode rerun" if is_imported else "replay turns that `panda turn` has run to their end",
        )
    if FORGOTTEN in metadata.query:
        message = f"what was asked in turn {number} was forgotten at {metadata.forgotten_at}"
        raise UsageError(message, where=str(saved.paths.directory), fix="ask it anew: panda turn QUERY")
    recordings = _recordings(saved, answers)
    before = saved.snapshot()
    directory = work / "turns" / settings.user / turn_name(number)
    remove_tree(directory)
    then = settings.on_store(
        layout.root, session=metadata.session_id, seed=metadata.seed, now=metadata.created_at
    )
    guard_links(then)
    app = App(then, replace(then.store, apart=Apart(work, {number: directory})), layers)
    try:
        if app.meaning is not None:
            app.meaning.fill(settings.user)
        halted = _run(app, saved, recordings, Bound(number, metadata.created_at, before, is_apart=True))
        again = app.store.open(number)
        same, different = _compare(saved, again)
        outcome = read_outcome(again)
        changed = _changed(app, before, again)
    finally:
        app.index.close()
    misses = tuple(recordings.misses) if isinstance(recordings, LiveOnMiss) else ()
    return Simulation(number, same, different, misses, halted, outcome, changed)


def _changed(app: App, before: Snapshot | None, again: TurnFolder) -> tuple[str, ...]:
    """What the snapshots of the saved turn and of the one that was run tell apart."""
    now = again.snapshot()
    if before is None or now is None:
        return ()
    notes = app.index.read(app.settings.user, lambda view: view.note_digests())
    return tuple(before.changed_since(now, notes))


def _recordings(saved: TurnFolder, answers: Answers) -> Recordings:
    if answers == "live":
        return Recordings([])
    kind = Replay if answers == "recorded" else LiveOnMiss
    return kind(saved.load_calls(), saved.load_steps())


def _run(app: App, saved: TurnFolder, recordings: Recordings, bound: Bound) -> str | None:
    """Run the turn; what its tools change in the project stays in memory."""
    metadata = saved.read_metadata()
    dry = metadata.mode == "code" and not isinstance(recordings, Replay)
    described = isinstance(recordings, LiveOnMiss) and saved.has(IMAGE_JSON)
    turn = app.start_turn(
        metadata.query,
        metadata.mode,
        recordings=recordings,
        dry_run=dry,
        picture=load_picture(saved.paths / metadata.image) if metadata.image else None,
        image=saved.load(Image) if described else None,
        made_for=Reserved(saved.number),
        bound=bound,
    )
    if isinstance(recordings, LiveOnMiss):
        recordings.restore = lambda step: _restore(step, saved, turn.folder)
    try:
        app.pipeline.run(turn)
    except HaltError as exc:
        return exc.message
    return None


def _restore(step: Step, saved: TurnFolder, again: TurnFolder) -> None:
    """Bring back the files that a recorded step made in its turn's directory."""
    for name in step.artifacts:
        source, target = saved.paths / name, again.paths / name
        for path in (source, *source.rglob("*")):
            check_links(path)
        target.parent.mkdir(parents=True, exist_ok=True)
        if source.is_dir():
            shutil.copytree(source, target, dirs_exist_ok=True)
        elif source.is_file():
            shutil.copyfile(source, target)


def _compare(saved: TurnFolder, again: TurnFolder) -> tuple[tuple[str, ...], dict[str, str]]:
    """The documents that are the same, and those that differ, with the difference."""
    before, after = _documents(saved.paths.directory), _documents(again.paths.directory)
    names = sorted(before.keys() | after.keys())
    same = tuple(name for name in names if before.get(name) == after.get(name))
    return same, {
        name: _difference(before.get(name, ""), after.get(name, "")) for name in names if name not in same
    }


def _documents(directory: Path) -> dict[str, str]:
    """What a turn's query, memory and answers decide of its files, by name; no times and measurements."""
    found = {}
    for path in (path for path in directory.rglob("*") if path.is_file()):
        name = path.relative_to(directory).as_posix()
        if name in _MEASURED or name.startswith(("webpage_cache/", "research.", f"{IMAGES}/")):
            continue
        found[name] = text = read_text(path)
        value = parse_json(text, where=str(path)) if path.parent.name == "steps" else None
        if isinstance(value, dict):
            found[name] = render_json({key: part for key, part in value.items() if key != "seconds"})
    return found


def _difference(before: str, after: str) -> str:
    lines = list(
        difflib.unified_diff(before.splitlines(), after.splitlines(), "saved", "now", lineterm="", n=1)
    )
    more = [f"[…] {len(lines) - _SHOWN_LINES} more lines"] if len(lines) > _SHOWN_LINES else []
    return "\n".join(lines[:_SHOWN_LINES] + more)
