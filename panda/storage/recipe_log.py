"""What logs/executions.jsonl and the interventions say of one recipe, by version."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain
from typing import Any

from panda.storage.execution_log import LogLine, LogReader
from panda.storage.interventions import Intervention, list_interventions
from panda.storage.layout import Layout
from panda.storage.names import turn_number


@dataclass
class VersionTally:
    """What the log holds of one version."""

    executions: int = 0
    """How often it ran."""
    failures: int = 0
    """How often it gave no valid reply."""
    last_run: str | None = None
    """When it ran last."""


def recipe_lines(layout: Layout, recipe: str) -> Iterator[Mapping[str, Any]]:
    """The records of one recipe, oldest first; damaged lines are left out: `panda validate` tells of them."""
    with LogReader(layout.executions_log) as reader:
        for part in chain(reader.read_new(), reader.read_torn()):
            if isinstance(part, LogLine) and part.record.get("key") == recipe:
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
        tally.failures += record.get("success") is not True
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

    Args:
        layout: The store.
        recipe: Recipe name.

    Returns:
        kind (failed: no valid reply; corrected: a reply was refused and asked for again; intervention),
        version, time, user, turn, message, and the id of an intervention.

    Raises:
        StoreError: interventions/ cannot be read.
    """
    found: list[dict[str, Any]] = []
    for record in recipe_lines(layout, recipe):
        retries, failed = record.get("retries") or 0, record.get("success") is not True
        if failed or retries:
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
