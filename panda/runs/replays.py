"""
Saved turns run again: with their recorded answers (simulate), or with the models of today (rerun).

The turn reads what was there when it began and writes into the directory of the run; the clock stands where
it stood. What then differs from the saved turn comes from changed code, prompts, recipes or models.
"""

import difflib
import logging
import shutil
import time
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Literal

from panda.app import App
from panda.documents.progress import progress
from panda.documents.safe_text import count_noun, one_line, unescape_path
from panda.errors import HaltError, ModelAwayError, Problem, UsageError, Verdict
from panda.memory.budget import FORGOTTEN
from panda.memory.markdown_files import Bound
from panda.models.model_contract import Layers
from panda.recipes.calls import LiveOnMiss, Recordings, Replay
from panda.runs.ledger import (
    Mode,
    Options,
    PlannedTurn,
    Result,
    RunFolder,
    TurnLine,
    fingerprint_now,
    read_outcome,
)
from panda.runs.pool import Chain, Processes, Work, attempt, run_chains
from panda.runs.select import TurnPlace
from panda.settings import Settings
from panda.store.files import check_links, parse_json, read_text, remove_tree, render_json
from panda.store.layout import (
    CALLS_JSONL,
    EVIDENCE_JSON,
    IMAGE_JSON,
    METADATA_JSON,
    METRICS_JSON,
    RETRIEVAL_PLAN_JSON,
    SNAPSHOT_JSON,
    Apart,
    Layout,
    turn_name,
)
from panda.store.outcome import outcome_of
from panda.store.records import GatheredContext, Image, Step, parse
from panda.store.turn_documents import load_documents
from panda.store.turns import IMAGES, Reserved, TurnFolder, load_picture
from panda.trust import guard_links, open_layers

_log = logging.getLogger(__name__)
_MOST_CHANGED = 8  # files named that have changed since a turn
_SHOWN_LINES = 30
_NAMED_DOCUMENTS = 5
_ROUNDING = 0.005
"""By how much cosines, and scores as shares of the highest, differ from one processor to another."""
_MEASURED = frozenset({CALLS_JSONL, EVIDENCE_JSON, METADATA_JSON, METRICS_JSON, SNAPSHOT_JSON})
_Ended = Generator[tuple[TurnPlace, TurnLine | None, str | None]]
Answers = Literal["recorded", "recorded or live", "live"]
"""Where the answers of a turn that runs again come from."""


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
    for place in places:
        guard_links(settings.on_store(place.layout.root))
    turns = [
        PlannedTurn(
            place.number, place.user, None if place.layout.root == store.root else str(place.layout.root)
        )
        for place in places
    ]
    ran_on = fingerprint_now(settings, environ)
    options = Options(live, tuple(selection))
    return RunFolder.create(store, settings.clock, mode, turns, fingerprint=ran_on, options=options)


def resume_run(settings: Settings, environ: Mapping[str, str], run: RunFolder) -> RunFolder:
    """A run of saved turns that was interrupted; UsageError where it can't be gone on with."""
    plan = run.plan()
    if plan.mode == "batch":
        raise UsageError(f"run {run.id} is a batch", where="--resume", fix=f"panda batch --resume {run.id}")
    if plan.finished_at is not None or plan.mode == "verify":
        raise UsageError(f"run {run.id} has ended", where="--resume", fix="begin a new run")
    run.check_same(fingerprint_now(settings, environ))
    return run


def run_turns(
    settings: Settings, environ: Mapping[str, str], run: RunFolder, *, workers: int
) -> list[TurnLine]:
    """Run the turns of a run that have not been run yet; gives the lines of all, by user and number."""
    with run.hold():
        plan = run.plan()
        done = {line.key for line in run.lines()}
        places = [place for key, place in run.places().items() if key not in done]
        answers: Answers = "recorded or live" if plan.options.live else "recorded"
        replayer = Replayer(settings, environ, "live" if plan.mode == "rerun" else answers, run.directory)
        several = workers > 1 and len(places) > 1
        ended = _run_side_by_side(replayer, places, workers) if several else _run_here(replayer, places)
        started = time.monotonic()
        with closing(ended), progress("replaying", len(places)) as advance:
            for place, value, fault in ended:
                line = value or _line(place, "error", fault)
                run.add(line)
                _tell(line)
                advance()
        run.finish(settings.clock)
        seconds = time.monotonic() - started
        noun = "turn" if len(places) == 1 else "turns"
        each = f", {seconds / len(places):.2f} s a turn" if places else ""
        _log.info(f"{len(places)} {noun} in {seconds:.1f} s{each}")
        return sorted(run.lines(), key=lambda line: (line.user, line.turn))


def _run_here(replayer: "Replayer", places: Sequence[TurnPlace]) -> _Ended:
    if places:
        with replayer() as work:
            for place in places:
                yield place, *attempt(work, place)


def _run_side_by_side(replayer: "Replayer", places: Sequence[TurnPlace], width: int) -> _Ended:
    with closing(Processes(replayer, min(width, len(places)))) as workers:
        yield from run_chains(workers, (Chain(iter([place]), 1) for place in places))


def _line(place: TurnPlace, result: Result, finding: str | None) -> TurnLine:
    findings = () if finding is None else (finding,)
    return TurnLine(place.number, place.user, str(place.directory), result, findings)


def _tell(line: TurnLine) -> None:
    """Tell what came of a turn that did not come out as it was saved: one line, then what -v asks for."""
    if line.verdict is Verdict.SOUND:
        return
    parts = [str(line.result), *map(one_line, line.findings)]
    if line.different:
        names = list(line.different)
        more = f" and {len(names) - _NAMED_DOCUMENTS} more" if len(names) > _NAMED_DOCUMENTS else ""
        parts.append(f"other than saved: {', '.join(names[:_NAMED_DOCUMENTS])}{more}")
    if line.misses:
        noun = "call" if len(line.misses) == 1 else "calls"
        parts.append(f"{len(line.misses)} {noun} without a recording")
    _log.info(f"turn {line.turn}: {'; '.join(parts)}")
    for miss in line.misses:
        _log.debug(f"turn {line.turn}, miss in {miss.recipe} ({miss.kind}, {miss.cause}):\n{miss.difference}")
    for name, difference in line.different.items():
        _log.debug(f"turn {line.turn}, {name}:\n{difference}")


@dataclass(frozen=True)
class Replayer:
    """Makes a worker ready to run saved turns again, with models that are loaded once; see Opener."""

    settings: Settings  # in force
    environ: Mapping[str, str]  # for the API keys that models.yaml names
    answers: Answers
    work: Path  # the directory of the run

    @contextmanager
    def __call__(self) -> Iterator[Work]:
        with open_layers(self.settings, self.environ) as layers:
            yield partial(self._run, layers)

    def _run(self, layers: Layers, place: TurnPlace) -> TurnLine:
        """Run one turn; what stops it, such as a damaged file, is a finding of it."""
        own = self.settings.on_store(place.layout.root, user=place.user)
        guard_links(own)
        try:
            return simulate(own, place.layout, layers, place.number, answers=self.answers, work=self.work)
        except Problem as exc:
            finding = f"{exc.message} ({exc.where})" if exc.where else exc.message
            return _line(place, "away" if isinstance(exc, ModelAwayError) else "error", finding)


def simulate(
    settings: Settings,
    layout: Layout,
    layers: Layers,
    number: int,
    *,
    answers: Answers = "recorded",
    work: Path,
) -> TurnLine:
    """
    Run a saved turn again.

    Args:
        layers: With recorded answers, for their tokenizers and what they can do alone.
        answers: recorded: no model is asked, a call that was not made before is a miss and takes the most
            similar answer; recorded or live: a miss is asked of the model; live: everything is.
        work: The directory of the run, where all goes that the turn writes.

    Raises:
        UsageError: It is not saved, or has no recorded calls that are to answer.
    """
    saved = settings.on_store(layout.root).store.open(number)
    metadata = saved.read_metadata()
    if metadata.next is not None:
        command = f"panda turn --resume {number} --user {settings.user}"
        message = f"turn {number} ({metadata.status}) has not come to its end: {command} takes it there"
        raise UsageError(message, where=str(saved.paths.directory))
    if answers != "live" and not saved.has(CALLS_JSONL):
        is_imported = metadata.status == "imported"
        raise UsageError(
            f"turn {number} ({metadata.status}) has no recorded calls ({CALLS_JSONL})",
            where=str(saved.paths.directory),
            fix="give --mode rerun" if is_imported else "replay turns that `panda turn` has run to their end",
        )
    if FORGOTTEN in metadata.query:
        message = f"what was asked in turn {number} was forgotten at {metadata.forgotten_at}"
        raise UsageError(message, where=str(saved.paths.directory), fix="ask it anew: panda turn QUERY")
    kind = Replay if answers == "recorded" else LiveOnMiss
    recordings = Recordings([]) if answers == "live" else kind(saved.load_calls(), saved.load_steps())
    directory = work / "turns" / settings.user / turn_name(number)
    remove_tree(directory)
    then = settings.on_store(
        layout.root,
        session=metadata.session_id,
        seed=metadata.seed,
        now=metadata.created_at,
        models_by_layer=metadata.models or {},
    )
    guard_links(then)
    app = App(then, replace(then.store, apart=Apart(work, {number: directory})), layers)
    try:
        if app.meaning is not None:
            app.meaning.fill(settings.user)
        halted = _run(app, saved, recordings)
        again = app.store.open(number)
        different = _differences(saved, again)
        outcome = read_outcome(again)
        changed = _changed(app, saved, again, metadata.created_at)
    finally:
        app.index.close()
    misses = tuple(recordings.misses) if isinstance(recordings, LiveOnMiss) else ()
    came_to = metadata.outcome if metadata.status == "approved" else outcome_of(metadata)
    ends_otherwise = not halted and came_to not in (None, outcome.outcome)
    differs = bool(different or misses or ends_otherwise)
    result: Result = "same"
    if halted:
        result = "halted"
    elif differs:
        result = "differs"
    findings = [halted] if halted else []
    if result == "differs" and answers == "recorded" and saved.is_of_lists():
        result = "not judged"
        findings.append("an earlier version decided it, by rules that are gone")
    if ends_otherwise:
        findings.append(f"its outcome is {outcome.outcome}, and was {came_to}")
    if changed and result != "same":
        more = f" and {len(changed) - _MOST_CHANGED} more" if len(changed) > _MOST_CHANGED else ""
        findings.append(f"changed since the turn: {', '.join(changed[:_MOST_CHANGED])}{more}")
    where = str(layout.of(settings.user).turn(number).directory)
    return TurnLine(
        number,
        settings.user,
        directory=where,
        result=result,
        findings=tuple(findings),
        different=different,
        misses=misses,
        outcome=outcome,
    )


def _run(app: App, saved: TurnFolder, recordings: Recordings) -> str | None:
    """Why it halted, if so; what its tools change in the project stays in memory."""
    metadata = saved.read_metadata()
    described = isinstance(recordings, LiveOnMiss) and saved.has(IMAGE_JSON)
    turn = app.start_turn(
        metadata.query,
        metadata.mode,
        recordings=recordings,
        dry_run=metadata.mode == "code" and not isinstance(recordings, Replay),
        picture=load_picture(saved.paths / metadata.image) if metadata.image else None,
        image=saved.load(Image) if described else None,
        documents=load_documents(saved.paths),
        made_for=Reserved(saved.number),
        bound=Bound(saved.number, metadata.created_at, saved.snapshot(), is_apart=True),
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
        source = saved.paths / name
        target = again.paths / name
        for path in (source, *source.rglob("*")):
            check_links(path)
        target.parent.mkdir(parents=True, exist_ok=True)
        if source.is_dir():
            shutil.copytree(source, target, dirs_exist_ok=True, copy_function=shutil.copyfile)
        elif source.is_file():
            shutil.copyfile(source, target)


def _changed(app: App, saved: TurnFolder, again: TurnFolder, began: datetime) -> list[str]:
    """
    Return what differs between the snapshots of the saved turn and of its replay. They hold one digest for
    several notes: of these only such are named as were written since.
    """
    before = saved.snapshot()
    now = again.snapshot()
    if before is None or now is None:
        return []
    notes = app.index.read(app.settings.user, lambda view: view.note_digests())
    paths = ((name, app.store.knowledge / unescape_path(name)) for name in notes)
    written = (name for name, path in paths if path.exists() and path.stat().st_mtime >= began.timestamp())
    return before.changed_since(now, written)


def _differences(saved: TurnFolder, again: TurnFolder) -> dict[str, str]:
    """
    The documents that are not byte for byte the same, as a difference: of steps but for their seconds, of the
    retrieval plan but for the last digits of scores, in which processors differ, and of what earlier versions
    called otherwise.
    """
    before = _documents(saved.paths.directory)
    after = _documents(again.paths.directory)
    differences = {}
    for name in sorted(before.keys() | after.keys()):
        old = before.get(name)
        new = after.get(name)
        say_the_same = _SAY_THE_SAME.get(name)
        if old != new and not (say_the_same and old and new and say_the_same(old, new)):
            texts = (old or "").splitlines(), (new or "").splitlines()
            lines = list(difflib.unified_diff(*texts, "saved", "now", lineterm="", n=1))
            more = (
                [f"[…] {count_noun(len(lines) - _SHOWN_LINES, 'more line')}"]
                if len(lines) > _SHOWN_LINES
                else []
            )
            differences[name] = "\n".join(lines[:_SHOWN_LINES] + more)
    return differences


def _rank_alike(before: str, after: str) -> bool:
    """
    Return whether two retrieval plans differ in nothing but the last digits of what an encoder computed.
    """
    plans = [parse_json(text, where=RETRIEVAL_PLAN_JSON) for text in (before, after)]
    scores: list[list[float]] = []
    for plan in plans:
        candidates = plan.get("candidates") or ()
        rows = [candidate for candidate in candidates if isinstance(candidate.get("index"), int | float)]
        highest = max((row["index"] for row in rows), default=0.0) or 1.0
        numbers = [row["index"] / highest for row in rows]
        numbers += [row["score"] for row in candidates if isinstance(row.get("score"), int | float)]
        scores.append(numbers)
        for row in candidates:
            row |= {key: type(row.get(key)).__name__ for key in ("index", "score")}
            row["by"] = _NAMED_OTHERWISE.get(row.get("by"), row.get("by"))
        for turn in plan.get("turn_relevance", {}).values():
            turn["reason"] = str(turn.get("reason")).replace("; model and index", "; closeness and index")
    alike = len(scores[0]) == len(scores[1]) and plans[0] == plans[1]
    return alike and all(abs(first - second) <= _ROUNDING for first, second in zip(*scores, strict=True))


def _judged_alike(before: str, after: str) -> bool:
    """
    Return whether two files of gathered context differ in nothing but how a second `retry` was recorded.
    """
    return parse(GatheredContext, before, where="saved") == parse(GatheredContext, after, where="now")


_NAMED_OTHERWISE = {"model": "closeness"}
_SAY_THE_SAME: Mapping[str, Callable[[str, str], bool]] = {
    RETRIEVAL_PLAN_JSON: _rank_alike,
    GatheredContext.FILE: _judged_alike,
}
"""Documents that may differ in their bytes and say the same."""


def _documents(directory: Path) -> dict[str, str]:
    """
    Return the text of each file of a turn that its query, memory and answers decide, by name; no times and
    measurements.
    """
    documents = {}
    for path in (path for path in directory.rglob("*") if path.is_file()):
        name = path.relative_to(directory).as_posix()
        if name in _MEASURED or name.startswith(("webpage_cache/", "research.", f"{IMAGES}/")):
            continue
        documents[name] = text = read_text(path)
        value = parse_json(text, where=str(path)) if path.parent.name == "steps" else None
        if isinstance(value, dict):
            documents[name] = render_json({key: part for key, part in value.items() if key != "seconds"})
    return documents
