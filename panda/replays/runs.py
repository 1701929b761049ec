"""The directory of a run: what was to be judged, and what each turn came to, one line as it finishes."""

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any

from panda import __version__
from panda.documents.context import render_section
from panda.documents.problems import Verdict
from panda.documents.times import Clock, render_time
from panda.errors import ModelFileError, NotFoundError, PandaError, UsageError
from panda.models.layers import EYES
from panda.recipes.book import RecipeBook
from panda.recipes.calls import text_digest
from panda.recipes.executor import Layers
from panda.recipes.versions import version_in_force
from panda.replays.selection import TurnPlace
from panda.storage.files import append_json_line, read_json, read_json_lines, store_errors, write_json
from panda.storage.formats import check_json
from panda.storage.layout import (
    GATHERED_CONTEXT_JSON,
    METRICS_JSON,
    PLAN_JSON,
    QUERY_ANALYSIS_JSON,
    REFLECTION_JSON,
    RESPONSE_MD,
    RETRIEVAL_PLAN_JSON,
    RUN_JSON,
    RUN_TURNS_JSONL,
    SUMMARY_JSON,
    Layout,
    turn_name,
)
from panda.storage.turns import TurnFolder

_DECIDED: tuple[tuple[str, str, tuple[str, ...]], ...] = (
    ("phase0_query_analyzer", QUERY_ANALYSIS_JSON, ("query_type",)),
    ("phase0_query_analyzer", QUERY_ANALYSIS_JSON, ("intent",)),
    ("phase0_query_analyzer", QUERY_ANALYSIS_JSON, ("reference_resolution", "status")),
    ("phase0_query_analyzer", QUERY_ANALYSIS_JSON, ("content_reference", "node_id")),
    ("phase0_query_analyzer", QUERY_ANALYSIS_JSON, ("data_requirements", "needs_current_prices")),
    ("phase0_query_analyzer", QUERY_ANALYSIS_JSON, ("data_requirements", "needs_live_data")),
    ("phase1_reflection", REFLECTION_JSON, ("decision",)),
    ("phase2_1_retrieval", RETRIEVAL_PLAN_JSON, ("candidates", "chosen")),
    ("phase2_2_synthesis", GATHERED_CONTEXT_JSON, ("sections", "node_ids")),
    ("phase2_5_context_validator", GATHERED_CONTEXT_JSON, ("verdict", "status")),
    ("phase3_planner", PLAN_JSON, ("next_step",)),
    ("phase3_planner", PLAN_JSON, ("tools",)),
    ("phase5_synthesizer", SUMMARY_JSON, ("sources",)),
)
"""Step of the pipeline, file and keys of each decision that is written down."""


@dataclass(frozen=True)
class Decision:
    """One thing that was decided in a turn."""

    phase: int
    """Phase that decided."""
    recipe: str
    """Recipe that was asked, or the step of the pipeline if none was."""
    name: str
    """What was decided."""
    value: object
    """A plain JSON value."""


@dataclass(frozen=True)
class PhaseCost:
    """What one phase of a turn took."""

    phase: int
    """Phase."""
    recipes: tuple[str, ...]
    """Recipes that were asked."""
    calls: int
    """Model calls."""
    tokens: int | None
    """Prompt and output tokens of the model; None if unknown."""
    seconds: float | None
    """Wall time; None if unknown."""


@dataclass(frozen=True)
class Outcome:
    """What one turn came to."""

    turn: int
    """Its number."""
    user: str
    """Whose turn it is."""
    query: str
    """The raw query."""
    status: str
    """As in metadata.json."""
    answered: bool | None
    """As in metadata.json."""
    answer: str | None
    """response.md; None if there is none."""
    decisions: tuple[Decision, ...]
    """What was decided, in the order of the phases."""
    sections: Mapping[int, str] = field(default_factory=dict)
    """Digest of each section of context.md."""
    phases: tuple[PhaseCost, ...] = ()
    """What each phase took."""
    recipes: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """Recipe key to the hashes of what was asked: recipe, prompts, schema, model."""

    def to_json(self) -> dict[str, Any]:
        """As it stands in the file of a run."""
        return asdict(self)

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> "Outcome":
        """The outcome that a checked line of a run holds."""
        return cls(
            **{
                **value,
                "decisions": tuple(Decision(**one) for one in value["decisions"]),
                "sections": {int(number): digest for number, digest in value["sections"].items()},
                "phases": tuple(
                    PhaseCost(**{**one, "recipes": tuple(one["recipes"])}) for one in value["phases"]
                ),
            }
        )


def read_outcome(folder: TurnFolder) -> Outcome:
    """
    What a turn on disk came to.

    Args:
        folder: Its directory; files that a turn of its kind lacks are left out.
    """
    metadata, calls = folder.read_metadata(), folder.calls()
    asked: dict[str, dict[str, str]] = {}
    for call in calls:
        asked[call["recipe"]] = dict(call["hashes"])
    try:
        sections = folder.read_context().sections
    except PandaError:
        if metadata.status != "halted":
            raise
        sections = ()
    return Outcome(
        turn=folder.number,
        user=metadata.user_id,
        query=metadata.query,
        status=metadata.status,
        answered=metadata.answered,
        answer=folder.read_text(RESPONSE_MD) if folder.has(RESPONSE_MD) else None,
        decisions=(*_decisions(folder, list(asked)), *_endings(folder, list(asked), metadata.status)),
        sections={section.number: text_digest(render_section(section)) for section in sections},
        phases=tuple(_costs(folder)),
        recipes=asked,
    )


def _decisions(folder: TurnFolder, asked: Sequence[str]) -> list[Decision]:
    found = []
    for step, name, keys in _DECIDED:
        if not folder.has(name):
            continue
        value: Any = folder.read_json(name)
        if keys == ("candidates", "chosen"):
            value = sorted(one["node_id"] for one in value["candidates"] if one["chosen"])
        elif keys == ("sections", "node_ids"):
            value = sorted({node_id for section in value["sections"] for node_id in section["node_ids"]})
        else:
            for key in keys:
                value = value.get(key) if isinstance(value, Mapping) else None
        found.append(Decision(int(step[5]), recipe_of(step, asked), ".".join(keys), value))
    return found


def _endings(folder: TurnFolder, asked: Sequence[str], status: str) -> list[Decision]:
    """What phases 4 and 6 decided: the tools that ran, and how the turn ended."""
    found, recipe = [], recipe_of("phase4_coordinator", asked)
    for step in folder.steps():
        call = {"tool": step["tool"], "arguments": step["arguments"], "status": step["status"]}
        found.append(Decision(4, recipe, f"step {step['step']}", call))
    return [*found, Decision(6, recipe_of("phase6_validator", asked), "status", status)]


def recipe_of(step: str, asked: Sequence[str]) -> str:
    """
    The recipe that served a step of the pipeline.

    >>> recipe_of("phase3_planner", ["pipeline/phase1_reflection", "pipeline/phase3_planner_chat"])
    'pipeline/phase3_planner_chat'
    """
    return next((key for key in asked if PurePosixPath(key).name.startswith(step)), step)


def _costs(folder: TurnFolder) -> list[PhaseCost]:
    if not folder.has(METRICS_JSON):
        return []
    return [
        PhaseCost(
            one["phase"],
            tuple(one["recipes"]),
            one["calls"],
            _sum(one["prompt_tokens"], one["output_tokens"]),
            one["seconds"],
        )
        for one in folder.read_json(METRICS_JSON)["phases"]
    ]


def _sum(one: int | None, two: int | None) -> int | None:
    return None if one is None or two is None else one + two


RUN_SCHEMA = "panda.run/1"


@dataclass(frozen=True)
class TurnLine:
    """What came of one turn of a run."""

    turn: int
    """Its number."""
    user: str
    """Whose turn it is."""
    directory: str
    """The saved turn."""
    result: str
    """same, differs, halted, sound, unsound, not judged or error."""
    findings: tuple[str, ...] = ()
    """What is wrong, a line each."""
    different: Mapping[str, str] = field(default_factory=dict)
    """Documents that differ from the saved ones, with the difference."""
    misses: tuple[Mapping[str, str], ...] = ()
    """Calls that no recording answers."""
    outcome: Outcome | None = None
    """What the turn came to; None if that does not read."""

    @property
    def verdict(self) -> Verdict:
        """What the run says of the turn."""
        if self.result in ("not judged", "error"):
            return Verdict.NOT_JUDGED
        return Verdict.SOUND if self.result in ("same", "sound") else Verdict.UNSOUND

    @property
    def unfinished(self) -> str | None:
        """Why the turn has not come to an end that could be compared; None if it has."""
        if self.result == "halted" or self.outcome is None:
            return f"{self.result}: {self.findings[0]}" if self.findings else self.result
        return None

    def to_json(self) -> dict[str, Any]:
        """As it stands in turns.jsonl."""
        return asdict(self)

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> "TurnLine":
        """The line that a checked value holds."""
        outcome = Outcome.from_json(value["outcome"]) if value["outcome"] else None
        return cls(
            **{
                **value,
                "findings": tuple(value["findings"]),
                "misses": tuple(value["misses"]),
                "outcome": outcome,
            }
        )


def fingerprint(book: RecipeBook, layers: Layers) -> dict[str, object]:
    """
    What a run depends on: the version of the code, each recipe with its prompts, each layer's model.

    Args:
        layers: Models by layer; each is loaded as far as its digest needs.
    """
    recipes, used = {}, set()
    for key in book.recipe_keys():
        recipes[key] = version_in_force(book, key).digest
        used.add(book.load_recipe(key).model_layer)
    models = {}
    for layer in sorted(used):
        with suppress(*([ModelFileError] if layer == EYES else [])):  # the only layer that may be unset
            info = layers.model(layer).info
            models[layer] = {"name": info.name, "digest": info.digest}
    return {"panda": __version__, "recipes": recipes, "models": models}


class RunFolder:
    """The files of one run."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    @property
    def id(self) -> str:
        """The run's id."""
        return self.directory.name

    @classmethod
    def create(
        cls,
        layout: Layout,
        clock: Clock,
        mode: str,
        places: Sequence[TurnPlace],
        *,
        fingerprint: Mapping[str, object],
        options: Mapping[str, object],
    ) -> "RunFolder":
        """
        Make the directory of a new run, and write down what it will do.

        Raises:
            UsageError: Two of the turns are of one user name and number, in two stores.
        """
        named = Counter((place.user, place.number) for place in places)
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
            directory, number = layout.runs / name, 1
            while True:
                try:
                    directory.mkdir()
                    break
                except FileExistsError:
                    number += 1
                    directory = layout.runs / f"{name}-{number}"
        plan = {
            "schema": RUN_SCHEMA,
            "id": directory.name,
            "mode": mode,
            "started_at": render_time(started),
            "finished_at": None,
            "turns": [{"turn": place.number, "user": place.user} for place in places],
            "fingerprint": dict(fingerprint),
            "options": dict(options),
            "results": None,
        }
        folder = cls(directory)
        folder._write(plan)
        return folder

    def kept_turn(self, user: str, number: int) -> Path:
        """Where the directory of a turn that was run goes."""
        return self.directory / "turns" / user / turn_name(number)

    def add(self, line: TurnLine) -> None:
        """Add the line of a turn that has finished."""
        value = json.loads(json.dumps(line.to_json()))
        check_json(RUN_TURNS_JSONL, value, str(self.directory / RUN_TURNS_JSONL))
        append_json_line(self.directory / RUN_TURNS_JSONL, value)

    def finish(self, clock: Clock) -> None:
        """Write down what came of the run."""
        results = dict(Counter(line.result for line in self.lines()))
        self._write({**self.plan(), "finished_at": render_time(clock()), "results": results})

    def plan(self) -> dict[str, Any]:
        """What the run was to do, and what came of it."""
        path = self.directory / RUN_JSON
        value = read_json(path)
        check_json(RUN_JSON, value, str(path))
        assert isinstance(value, dict)
        return value

    def lines(self) -> Iterator[TurnLine]:
        """The turns that have finished, by number; a last line that a crash cut short is left out."""
        path = self.directory / RUN_TURNS_JSONL
        for number, value in enumerate(read_json_lines(path) if path.exists() else [], 1):
            check_json(RUN_TURNS_JSONL, value, f"{path}:{number}")
            yield TurnLine.from_json(value)

    def _write(self, value: Mapping[str, object]) -> None:
        check_json(RUN_JSON, value, str(self.directory / RUN_JSON))
        write_json(self.directory / RUN_JSON, value)


def open_run(layout: Layout, name: str) -> RunFolder:
    """A run by its id or its directory; "last" is the newest."""
    files = sorted(layout.runs.glob(f"*/{RUN_JSON}"), key=lambda path: path.stat().st_mtime_ns)
    runs = [path.parent for path in files]
    directory = runs[-1] if name == "last" and runs else layout.runs / name
    for path in (directory, Path(name)):
        if (path / RUN_JSON).is_file():
            return RunFolder(path)
    known = (
        f"the newest are {', '.join(path.name for path in runs[-3:])}" if runs else "run panda replay first"
    )
    raise NotFoundError(f"there is no run {name!r}", where=str(layout.runs), fix=known)
