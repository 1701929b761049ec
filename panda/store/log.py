"""What logs/executions.jsonl adds up to: how often, how valid, how sure, how right, how long (S3 §27)."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from panda.errors import Problem
from panda.store.files import Line, LineTail
from panda.store.interventions import list_interventions
from panda.store.layout import Layout, turn_number

By = Literal["recipe", "layer", "phase", "day"]
BY: tuple[By, ...] = ("recipe", "layer", "phase", "day")
OUTSIDE = "outside a turn"  # group of what ran in no phase
AWAY = "away"  # outcome of an execution for which no model server answered


@dataclass(frozen=True)
class ExecutionStats:
    """What the executions of one group add up to."""

    executions: int  # recipe executions
    valid: float | None  # share of the replies that fit their schema; None if there was none to look at
    retries: int  # attempts beyond the first, all together
    judged: int  # executions with a confidence whose turn has ended
    confidence: float | None  # mean confidence of those; None if there are none
    held: float | None  # share of those whose turn ended approved
    calibration_error: float | None
    """Expected calibration error over ten bins: how far confidence and what came of it lie apart."""
    p50_ms: float | None  # median latency
    p95_ms: float | None  # latency that 95 in 100 executions do not exceed
    tokens: int | None  # prompt and output tokens; None if one execution's are unknown
    tokens_saved: int  # tokens that fitting took from the inputs
    away: int  # executions for which no model server answered


def recipe_lines(layout: Layout, recipe: str) -> Iterator[Mapping[str, Any]]:
    """The records of one recipe, oldest first; damaged lines are left out: `panda validate` tells of them."""
    for part in LineTail(layout.executions_log).read()[1]:
        if isinstance(part, Line) and part.record.get("key") == recipe:
            yield part.record


def find_failures(layout: Layout, recipe: str) -> list[dict[str, Any]]:
    """
    Where a recipe failed, was corrected or led to an intervention, oldest first.

    Returns:
        kind (failed: no valid reply; corrected: a reply was refused and asked for again; intervention),
        version, time, user, turn, message, and the id of an intervention.
    """
    keys = ("kind", "version", "time", "user", "turn", "message", "intervention")
    rows: list[tuple[Any, ...]] = []
    for line in recipe_lines(layout, recipe):
        retries, failed = line.get("retries") or 0, line.get("success") is not True
        if line.get("outcome") != AWAY and (failed or retries):
            message = f"{'no valid reply' if failed else 'valid'} after {retries + 1} attempts"
            at = (line.get("version"), line.get("timestamp"), line.get("user_id"))
            turn = turn_number(str(line.get("turn_id")))
            rows.append(("failed" if failed else "corrected", *at, turn, message, None))
    for halt in list_interventions(layout):
        if not isinstance(halt, Problem) and halt.recipe == recipe:
            at = (halt.recipe_version, halt.created_at, halt.user_id)
            rows.append(("intervention", *at, halt.turn, halt.message, halt.id))
    return sorted((dict(zip(keys, row, strict=True)) for row in rows), key=lambda row: str(row["time"]))
