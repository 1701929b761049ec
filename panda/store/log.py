"""What logs/executions.jsonl adds up to: how often, how valid, how sure, how right, how long (S3 §27)."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from panda.store.files import Line, LineTail
from panda.store.interventions import Intervention, list_interventions
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


@dataclass
class VersionTally:
    """What the log holds of one version."""

    executions: int = 0  # how often it ran
    failures: int = 0  # how often it gave no valid reply
    last_run: str | None = None  # when it ran last


def recipe_lines(layout: Layout, recipe: str) -> Iterator[Mapping[str, Any]]:
    """The records of one recipe, oldest first; damaged lines are left out: `panda validate` tells of them."""
    for part in LineTail(layout.executions_log).read()[1]:
        if isinstance(part, Line) and part.record.get("key") == recipe:
            yield part.record


def tally_versions(lines: Iterable[Mapping[str, Any]]) -> Mapping[str, VersionTally]:
    """
    How often each version of a recipe ran and failed.

    Args:
        lines: As recipe_lines gives them.

    Returns:
        Digest to its tally; one that never ran has an empty one.
    """
    found: dict[str, VersionTally] = defaultdict(VersionTally)
    for record in lines:
        tally = found[str(record.get("version"))]
        tally.executions += 1
        tally.failures += record.get("success") is not True and record.get("outcome") != AWAY
        tally.last_run = str(record.get("timestamp"))
    return found


def models_of(lines: Iterable[Mapping[str, Any]]) -> list[dict[str, object]]:
    """
    The models that a recipe ran on, oldest first: a new entry whenever layer, model or its file changed.

    Args:
        lines: As recipe_lines gives them.
    """
    found: list[dict[str, object]] = []
    for record in lines:
        now = {key: record.get(key) for key in ("model_layer", "model", "model_digest")}
        if not found or now != {key: found[-1][key] for key in now}:
            found.append({**now, "since": record.get("timestamp")})
    return found


def find_failures(layout: Layout, recipe: str) -> list[dict[str, Any]]:
    """
    Where a recipe failed, was corrected or led to an intervention, oldest first.

    Returns:
        kind (failed: no valid reply; corrected: a reply was refused and asked for again; intervention),
        version, time, user, turn, message, and the id of an intervention.
    """
    found: list[dict[str, Any]] = []
    for record in recipe_lines(layout, recipe):
        retries, failed = record.get("retries") or 0, record.get("success") is not True
        if record.get("outcome") != AWAY and (failed or retries):
            message = "no valid reply" if failed else "valid"
            found.append(
                {
                    "kind": "failed" if failed else "corrected",
                    "version": record.get("version"),
                    "time": record.get("timestamp"),
                    "user": record.get("user_id"),
                    "turn": turn_number(str(record.get("turn_id"))),
                    "message": f"{message} after {retries + 1} attempts",
                    "intervention": None,
                }
            )
    for one in list_interventions(layout):
        if isinstance(one, Intervention) and one.value["recipe"] == recipe:
            found.append(
                {
                    "kind": "intervention",
                    "version": one.value.get("recipe_version"),
                    "time": one.value["created_at"],
                    "user": one.user,
                    "turn": one.turn,
                    "message": one.value["message"],
                    "intervention": one.id,
                }
            )
    return sorted(found, key=lambda failure: str(failure["time"]))
