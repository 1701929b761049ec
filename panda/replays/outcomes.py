"""What a turn came to, in one value: decisions, answer, sections, tokens and seconds, for comparing runs."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import PurePosixPath
from typing import Any

from panda.documents.context import render_section
from panda.errors import PandaError
from panda.recipes.calls import text_digest
from panda.storage.layout import (
    GATHERED_CONTEXT_JSON,
    METRICS_JSON,
    PLAN_JSON,
    QUERY_ANALYSIS_JSON,
    REFLECTION_JSON,
    RESPONSE_MD,
    RETRIEVAL_PLAN_JSON,
    SUMMARY_JSON,
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

    Raises:
        FileFormatError: A file is damaged.
        DocumentError: context.md is damaged.
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
