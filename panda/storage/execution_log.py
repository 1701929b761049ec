"""What logs/executions.jsonl adds up to: how often, how valid, how sure, how right, how long (S3 §27)."""

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from panda.storage.interventions import Intervention, list_interventions
from panda.storage.jsonl import Line, LineTail
from panda.storage.layout import Layout, turn_number

By = Literal["recipe", "layer", "phase", "day"]
BY: tuple[By, ...] = ("recipe", "layer", "phase", "day")
OUTSIDE = "outside a turn"  # group of what ran in no phase
AWAY = "away"  # outcome of an execution for which no model server answered
_BINS = 10


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
class _Sums:
    """One group while it is added up."""

    executions: int = 0
    away: int = 0
    valid: list[bool] = field(default_factory=list)
    retries: int = 0
    tokens: int | None = 0
    saved: int = 0
    latencies: list[float] = field(default_factory=list)
    judged: list[tuple[float, bool]] = field(default_factory=list)


def sum_executions(
    records: Iterable[Mapping[str, Any]], *, by: By, verdict: Callable[[str, str], bool | None]
) -> dict[str, ExecutionStats]:
    """
    What the executions of a log add up to.

    Args:
        records: Lines of the log; those that are no execution count nothing.
        by: What makes a group.
        verdict: User and turn directory name to whether the turn ended approved; None: it has not ended, or
            is not there.

    Returns:
        Group to its sums, sorted by group.
    """
    groups: dict[str, _Sums] = {}
    for record in records:
        if "event" in record or "success" not in record:
            continue
        _add(groups.setdefault(_group(record, by), _Sums()), record, verdict)
    return {name: _finished(groups[name]) for name in sorted(groups)}


def _group(record: Mapping[str, Any], by: By) -> str:
    match by:
        case "recipe":
            return str(record.get("key") or record.get("recipe"))
        case "layer":
            return f"{record.get('model_layer')} ({record.get('model') or record.get('method') or 'unknown'})"
        case "phase":
            phase = record.get("phase")
            return OUTSIDE if phase is None else str(phase)
        case "day":
            return str(record.get("timestamp"))[:10]


def _add(sums: _Sums, record: Mapping[str, Any], verdict: Callable[[str, str], bool | None]) -> None:
    sums.executions += 1
    sums.away += record.get("outcome") == AWAY
    if record.get("schema_valid") is not None:
        sums.valid.append(record["schema_valid"] is True)
    sums.retries += _number(record.get("retries")) or 0
    sums.saved += _number(record.get("compression_savings")) or 0
    tokens = record.get("tokens")
    total = _number(tokens.get("total")) if isinstance(tokens, Mapping) else None
    sums.tokens = None if total is None or sums.tokens is None else sums.tokens + total
    latency, confidence = record.get("latency_ms"), record.get("confidence")
    if isinstance(latency, int | float):
        sums.latencies.append(float(latency))
    if isinstance(confidence, int | float):
        held = verdict(str(record.get("user_id")), str(record.get("turn_id")))
        if held is not None:
            sums.judged.append((float(confidence), held))


def _number(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _finished(sums: _Sums) -> ExecutionStats:
    judged = sums.judged
    return ExecutionStats(
        executions=sums.executions,
        valid=_mean([float(valid) for valid in sums.valid]),
        retries=sums.retries,
        judged=len(judged),
        confidence=_mean([confidence for confidence, _ in judged]),
        held=_mean([float(held) for _, held in judged]),
        calibration_error=calibration_error(judged),
        p50_ms=percentile(sums.latencies, 50),
        p95_ms=percentile(sums.latencies, 95),
        tokens=sums.tokens,
        tokens_saved=sums.saved,
        away=sums.away,
    )


def _mean(values: Sequence[float]) -> float | None:
    return round(math.fsum(values) / len(values), 4) if values else None


def percentile(values: Sequence[float], share: int) -> float | None:
    """
    The smallest value that *share* in 100 do not exceed (nearest rank); None of nothing.

    >>> percentile([30, 10, 20, 40], 50), percentile([30, 10, 20, 40], 95), percentile([], 50)
    (20, 40, None)
    """
    if not values:
        return None
    return sorted(values)[max(0, math.ceil(share * len(values) / 100) - 1)]


def calibration_error(judged: Sequence[tuple[float, bool]]) -> float | None:
    """
    Expected calibration error: by bins of confidence, how far it lies from the share that held.

    Args:
        judged: Confidence, 0 to 1, and whether it held.

    >>> calibration_error([(0.8, True), (0.8, True), (0.8, True), (0.8, True), (0.8, False)])
    0.0
    >>> calibration_error([(0.99, False), (0.99, True)])
    0.49
    """
    if not judged:
        return None
    bins: dict[int, list[tuple[float, bool]]] = {}
    for confidence, held in judged:
        bins.setdefault(min(int(confidence * _BINS), _BINS - 1), []).append((confidence, held))
    apart = [abs(math.fsum(c for c, _ in one) - sum(h for _, h in one)) for one in bins.values()]
    return round(math.fsum(apart) / len(judged), 4)


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
