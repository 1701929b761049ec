"""The files of a run: what was to be judged, and what each turn came to, one line as it finishes."""

import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from pathlib import Path, PurePosixPath
from typing import Any, Literal

from msgspec import UNSET, UnsetType, structs

from panda import __version__
from panda.documents.context import render_section
from panda.documents.record_codec import Id, Name, Whole, encode
from panda.documents.times import Clock, render_time
from panda.errors import ModelFileError, NotFoundError, Problem, UsageError, Verdict
from panda.models.layers import EYES
from panda.models.model_contract import Encoder, Model
from panda.recipes.book import RecipeBook
from panda.recipes.calls import Miss, text_digest
from panda.recipes.versions import version_in_force
from panda.runs.select import TurnPlace
from panda.settings import Settings
from panda.store.files import append_json_line, check_store, held_lock, store_errors, watch_also
from panda.store.layout import RESPONSE_MD, RUN_JSON, RUN_TURNS_JSONL, Layout, turn_name
from panda.store.lines import load_lines
from panda.store.node_id import NodeKind
from panda.store.outcome import TurnOutcome, outcome_of
from panda.store.records import (
    FileRecord,
    GatheredContext,
    Metadata,
    Metrics,
    Number,
    PhaseMetrics,
    Plan,
    QueryAnalysis,
    ReflectionRecord,
    RetrievalPlan,
    Summary,
    load,
    save,
)
from panda.store.turns import TurnFolder
from panda.trust import open_layers

TurnKey = tuple[str, int | str]
"""User and number of a turn; of an item of a batch its id, since it has another number in another run."""
Mode = Literal["verify", "simulate", "rerun", "batch"]
"""What is done with each turn; verify: runs of former versions."""
Result = Literal[
    "same", "differs", "halted", "sound", "unsound", "not judged", "error", "away", "passed", "failed"
]
"""What came of a turn; away: it failed for want of a model server."""
_WAIT_SECONDS = 1.0
_NAMED = 5
OUTCOME = "outcome"
"""Name of the decision what an approved turn came to."""

_DECIDED: tuple[tuple[str, type[FileRecord], tuple[str, ...]], ...] = (
    (
        "phase0_query_analyzer",
        QueryAnalysis,
        (
            "query_type",
            "intent",
            "reference_resolution.status",
            "content_reference.node_id",
            "data_requirements.needs_current_prices",
            "data_requirements.needs_live_data",
        ),
    ),
    ("phase1_reflection", ReflectionRecord, ("decision",)),
    ("phase2_1_retrieval", RetrievalPlan, ("candidates.chosen",)),
    ("phase2_2_synthesis", GatheredContext, ("sections.node_ids",)),
    ("phase2_5_context_validator", GatheredContext, ("verdict.status",)),
    ("phase3_planner", Plan, ("next_step", "tools")),
    ("phase5_synthesizer", Summary, ("sources",)),
)
"""Step of the pipeline, record, and the fields of each decision that is written down."""


def in_order(keys: Iterable[TurnKey]) -> list[TurnKey]:
    """Keys by user, then by number; items after turns, by their ids."""
    return sorted(keys, key=lambda key: (key[0], isinstance(key[1], str), key[1]))


class Decision(Whole, frozen=True):
    """One thing that was decided in a turn."""

    phase: int  # phase that decided
    recipe: str  # recipe that was asked, or the step of the pipeline if none was
    name: str  # what was decided
    value: Any  # a plain JSON value


class PhaseCost(Whole, frozen=True):
    """What one phase of a turn took."""

    phase: int  # phase
    recipes: tuple[str, ...]  # recipes that were asked
    calls: int  # model calls
    tokens: int | None  # prompt and output tokens of the model; None if unknown
    seconds: float | None  # wall time; None if unknown


class Outcome(Whole, frozen=True):
    """What one turn came to, for comparing runs."""

    turn: Number  # its number
    user: Id  # whose turn it is
    query: str  # the raw query
    status: str  # as in metadata.json
    answered: bool | None  # as in metadata.json
    answer: str | None  # response.md; None if there is none
    decisions: tuple[Decision, ...]  # what was decided, in the order of the phases
    sections: Mapping[int, str] = {}  # digest of each section of context.md
    phases: tuple[PhaseCost, ...] = ()  # what each phase took
    recipes: Mapping[str, Mapping[str, str | None]] = {}
    """Recipe key to the hashes of what was asked: recipe, prompts, schema, model."""
    item: str | None = None  # the item of a batch that it is of
    outcome: TurnOutcome | None = None  # None in lines of earlier versions, and of what has not ended

    @property
    def key(self) -> TurnKey:
        return self.user, self.turn if self.item is None else self.item

    @property
    def compared(self) -> str | None:
        """The answer without the number of its own turn, which an item of a batch has anew in each run."""
        own = f"{NodeKind.TURN.id(self.turn)}, turns/{turn_name(self.turn)}/"
        return self.answer if self.item is None or self.answer is None else self.answer.replace(own, "")


class TurnLine(Whole, frozen=True):
    """What came of one turn of a run, a line of its turns.jsonl."""

    turn: Number  # its number
    user: Id  # whose turn it is
    directory: str  # where the saved turn was, to be shown: its place follows from the plan
    result: Result  # what came of it
    findings: tuple[str, ...] = ()  # what is wrong, a line each
    different: Mapping[str, str] = {}  # documents that differ from the saved ones, with the difference
    misses: tuple[Miss, ...] = ()  # calls that no recording answers
    outcome: Outcome | None = None  # what the turn came to; None if that does not read
    item: str | None = None  # the item of a batch that it is of
    exit_code: int | None = None  # of an item: as of `panda turn`
    seconds: float | None = None  # of an item: wall clock of the turn
    is_saved: bool = False  # of an item: whether it has a saved turn

    @property
    def key(self) -> TurnKey:
        return self.user, self.turn if self.item is None else self.item

    @property
    def verdict(self) -> Verdict:
        """Return the verdict on the turn."""
        if self.result in ("not judged", "error", "away"):
            return Verdict.NOT_JUDGED
        return Verdict.SOUND if self.result in ("same", "sound", "passed") else Verdict.UNSOUND

    @property
    def turn_outcome(self) -> TurnOutcome | None:
        """Return what its turn came to, as far as that was written down."""
        return self.outcome.outcome if self.outcome else None

    def without_texts(self) -> "TurnLine":
        """Return the line with the outcome of its turn alone: a run can have very many lines."""
        if self.outcome is None:
            return self
        bare = structs.replace(
            self.outcome, query="", answer=None, decisions=(), sections={}, phases=(), recipes={}
        )
        return structs.replace(self, outcome=bare)

    @property
    def unfinished(self) -> str | None:
        """Why the turn has not come to an end that could be compared; None if it has."""
        if self.result == "halted" or self.outcome is None:
            return f"{self.result}: {self.findings[0]}" if self.findings else self.result
        return None


class PlannedTurn(Whole, frozen=True):
    """A turn that a run is to judge."""

    turn: Number  # its number
    user: Id  # whose turn it is
    root: str | None = None  # the store that it is in; None if that is the store of the run
    item: str | None = None  # the item of a batch that has this number
    session: Id | None = None  # of an item: the session that it joins
    digest: str | None = None  # of an item: digest of its line

    @property
    def key(self) -> TurnKey:
        return self.user, self.turn if self.item is None else self.item


class Fingerprint(Whole, frozen=True):
    """What a run depends on."""

    panda: str  # the version of the code
    recipes: Mapping[str, str | None]  # each recipe with the version in force; None: forgotten
    models: Mapping[str, Mapping[str, str] | None]
    """By layer the name and digest of its model, of an offline one those of the encoder; null without one."""

    def changed_since(self, then: "Fingerprint") -> list[str]:
        """Recipes and layers that are not what they were, by name."""
        pairs: tuple[tuple[Mapping[str, object], Mapping[str, object]], ...]
        pairs = (self.recipes, then.recipes), (self.models, then.models)
        return [name for now, old in pairs for name in sorted({*now, *old}) if now.get(name) != old.get(name)]


class Options(Whole, frozen=True, forbid_unknown_fields=False):
    """What the command of a run was given."""

    live: bool = False  # of a replay: models answer what was not recorded; of a batch: it runs in the store
    selection: tuple[str, ...] | UnsetType = UNSET  # of a replay
    save: bool | UnsetType = UNSET  # of a batch
    seed: int | UnsetType | None = UNSET  # of a batch


class RunPlan(FileRecord, frozen=True):
    """What a run was to do, and what came of it."""

    FILE = RUN_JSON

    schema: Literal["panda.run/1"]  # version of the format
    id: Name  # its id
    mode: Mode  # what is done with each turn
    started_at: str  # when it began
    finished_at: str | None  # when it ended; None if it was killed, or still runs
    turns: tuple[PlannedTurn, ...]  # the turns
    fingerprint: Fingerprint  # what it depends on
    options: Options
    results: Mapping[str, int] | None  # how many turns came to each result; None as long as it runs
    reported: tuple[str, ...] = ()  # of a batch: items whose failure a command has told, and ended with

    @property
    def saves(self) -> bool:
        """Of a batch: whether its turns become turns of the store, as those of former versions always did."""
        return self.options.save is not False


def read_outcome(folder: TurnFolder) -> Outcome:
    """Return what a turn on disk came to; files that a turn of its kind lacks are left out."""
    metadata = folder.read_metadata()
    recipes = {call.recipe: call.hashes for call in folder.load_calls()}
    try:
        sections = folder.read_context().sections
    except Problem:
        if metadata.status != "halted":
            raise
        sections = ()
    metrics = folder.find(Metrics)
    phases = metrics.phases if metrics else ()
    return Outcome(
        turn=folder.number,
        user=metadata.user_id,
        item=metadata.item,
        query=metadata.query,
        status=metadata.status,
        outcome=outcome_of(metadata),
        answered=metadata.answered,
        answer=folder.read_text(RESPONSE_MD) if folder.has(RESPONSE_MD) else None,
        decisions=tuple(_decisions(folder, list(recipes), metadata)),
        sections={section.number: text_digest(render_section(section)) for section in sections},
        phases=tuple(
            PhaseCost(phase.phase, phase.recipes, phase.calls, _tokens(phase), phase.seconds)
            for phase in phases
        ),
        recipes=recipes,
    )


def _tokens(phase: PhaseMetrics) -> int | None:
    prompt = phase.prompt_tokens
    output = phase.output_tokens
    return None if prompt is None or output is None else prompt + output


def _decisions(folder: TurnFolder, asked: Sequence[str], metadata: Metadata) -> Iterator[Decision]:
    for step, kind, names in _DECIDED:
        if (record := folder.find(kind)) is not None:
            for name in names:
                yield Decision(int(step[5]), _recipe_of(step, asked), name, _value(record, name))
    for call in folder.load_steps():
        value = {"tool": call.tool, "arguments": call.arguments, "status": call.status}
        yield Decision(4, _recipe_of("phase4_coordinator", asked), f"step {call.step}", value)
    if metadata.outcome is not None:
        yield Decision(5, _recipe_of("phase5_synthesizer", asked), OUTCOME, metadata.outcome)
    yield Decision(6, _recipe_of("phase6_validator", asked), "status", metadata.status)


def _value(record: Any, name: str) -> Any:
    if name == "candidates.chosen":
        return sorted(candidate.node_id for candidate in record.candidates if candidate.chosen)
    if name == "sections.node_ids":
        return sorted({node_id for section in record.sections for node_id in section.node_ids})
    for field in name.split("."):
        record = getattr(record, field, None)
    return None if record is UNSET else encode(record)


def _recipe_of(step: str, asked: Sequence[str]) -> str:
    """The recipe that served a step of the pipeline; the step itself if none was asked."""
    return next((key for key in asked if PurePosixPath(key).name.startswith(step)), step)


def fingerprint_now(settings: Settings, environ: Mapping[str, str]) -> Fingerprint:
    """
    Return the recipes and models that a run begun now depends on; each model is loaded as far as its digest
    needs.
    """
    book = RecipeBook(settings.recipe_dirs, settings.prompt_dirs)
    recipes = {}
    used = set()
    for key in book.recipe_keys():
        recipes[key] = version_in_force(book, key).version
        used.add(book.load_recipe(key).model_layer)
    models: dict[str, Mapping[str, str] | None] = {}
    with open_layers(settings, environ) as layers:
        for layer in sorted(used):
            try:
                by: Model | Encoder | None = (
                    layers.encoder() if layers.is_offline(layer) else layers.model(layer)
                )
                models[layer] = {"name": by.info.name, "digest": by.info.digest} if by else None
            except ModelFileError:
                if layer != EYES:  # the only layer that may be unset
                    raise
    return Fingerprint(__version__, recipes, models)


class RunFolder:
    """The files of one run, in `runs/{id}` of a store."""

    def __init__(self, directory: Path, store: Layout | None = None) -> None:
        self.directory = directory
        self.store = store or Layout(directory.parent.parent)
        self._plan = directory / RUN_JSON
        self._turns = directory / RUN_TURNS_JSONL

    @property
    def id(self) -> str:
        return self.directory.name

    @classmethod
    def create(
        cls,
        layout: Layout,
        clock: Clock,
        mode: Mode,
        turns: Sequence[PlannedTurn],
        *,
        fingerprint: Fingerprint,
        options: Options,
    ) -> "RunFolder":
        """Make the directory of a new run, which holds each turn of a user once, and write down its plan."""
        named = Counter(turn.key for turn in turns)
        if twice := [f"turn {number} of {user}" for (user, number), count in named.items() if count > 1]:
            raise UsageError(
                f"two stores have {twice[0]}, and a run holds each turn of a user once",
                where="SELECTION…",
                fix="replay one store after the other",
            )
        started = clock()
        name = f"{started:%Y%m%dT%H%M%SZ}-{mode}"
        with store_errors(layout.runs, "create"):
            layout.runs.mkdir(parents=True, exist_ok=True)
            number = len(list(layout.runs.glob(f"{started:%Y%m%dT%H%M%SZ}-*")))  # of that second, of any kind
            while True:
                number += 1
                directory = layout.runs / (name if number == 1 else f"{name}-{number}")
                with suppress(FileExistsError):
                    directory.mkdir()
                    break
        folder = cls(directory)
        began = render_time(started)
        plan = RunPlan(
            "panda.run/1",
            directory.name,
            mode=mode,
            started_at=began,
            finished_at=None,
            turns=tuple(turns),
            fingerprint=fingerprint,
            options=options,
            results=None,
        )
        folder.write_plan(plan)
        return folder

    def hold(self) -> AbstractContextManager[None]:
        """The lock under which the turns of the run are run. LockHeldError: another process runs them."""
        holder = f"panda (pid {os.getpid()})"
        return held_lock(self.directory / "lock", holder=holder, wait_seconds=_WAIT_SECONDS)

    def check_same(self, now: Fingerprint) -> None:
        """Raises UsageError if what the run depends on has changed, so that going on would mix two runs."""
        changed = now.changed_since(self.plan().fingerprint)
        if changed:
            named = ", ".join(changed[:_NAMED]) + (", …" if len(changed) > _NAMED else "")
            raise UsageError(
                f"run {self.id} was begun with other recipes or models: {named}",
                where=str(self._plan),
                fix="put them back, or begin a new run",
            )

    def write_plan(self, plan: RunPlan) -> None:
        save(plan, self._plan)

    def kept_turn(self, user: str, number: int) -> Path:
        """Return the directory for a turn that was run."""
        return self.directory / "turns" / user / turn_name(number)

    def places(self) -> dict[TurnKey, TurnPlace]:
        """Each turn that it was to judge, where it is. UntrustedError: in a store that is not trusted."""
        places = {}
        for n, planned in enumerate(self.plan().turns):
            if planned.root is not None:
                check_store(planned.root, named_in=self._plan, key=f"turns[{n}].root")
            store = self.store if planned.root is None else Layout(Path(planned.root))
            places[planned.key] = TurnPlace(store, planned.user, planned.turn)
        return places

    def add(self, line: TurnLine) -> None:
        append_json_line(self._turns, encode(line))

    def finish(self, clock: Clock) -> None:
        """Write down what came of the run."""
        plan = self.plan()
        numbers = {planned.key: planned.turn for planned in plan.turns}
        ended = {line.key: line.result for line in self.lines() if numbers.get(line.key) == line.turn}
        results = Counter[str](ended.values())
        self.write_plan(structs.replace(plan, finished_at=render_time(clock()), results=results))

    def plan(self) -> RunPlan:
        return load(RunPlan, self._plan)

    def lines(self) -> list[TurnLine]:
        """The turns that have finished, as they did; a last line that a crash cut short is left out."""
        return load_lines(TurnLine, self._turns)


def _age(run: Path) -> tuple[str, int, str]:
    """The order of runs by their ids: by the second in which they began, then by their number in it."""
    began, _, kind = run.name.partition("-")
    number = kind.rpartition("-")[2]
    is_id = began.endswith("Z") and began[:1].isdigit()
    return began if is_id else "", int(number) if number.isdecimal() else 1, run.name


def open_run(layout: Layout, name: str, *, of_batch: bool | None = None) -> RunFolder:
    """
    A run by its id or its directory; "last" is the newest. NotFoundError if there is none.

    Args:
        of_batch: Whether "last" is the newest batch, or the newest that is none; None: of all.
    """
    runs = sorted((path.parent for path in layout.runs.glob(f"*/{RUN_JSON}")), key=_age)
    if of_batch is not None:
        runs = [path for path in runs if ("-batch" in path.name) is of_batch]
    directory = runs[-1] if name == "last" and runs else layout.runs / name
    for path in (Path(os.path.normpath(Path(place).absolute())) for place in (directory, name)):
        if (path / RUN_JSON).is_file():
            store = Layout(path.parent.parent)
            is_there = store.runs == path.parent and store.users.is_dir()
            if is_there:
                watch_also(store.root, like=layout.root)
            return RunFolder(path, store if is_there else layout)
    first = "panda batch QUERIES.jsonl" if of_batch else "panda replay 813"
    fix = f"the newest are {', '.join(path.name for path in runs[-3:])}" if runs else f"begin one: {first}"
    raise NotFoundError(f"there is no run {name!r}", where=str(layout.runs), fix=fix)
