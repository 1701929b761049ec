"""Lines of logs/executions.jsonl (S3 §27), and where a recipe failed."""

from collections.abc import Iterator, Mapping
from typing import Any

from panda.errors import Problem
from panda.store.files import Line, LineTail
from panda.store.interventions import list_interventions
from panda.store.layout import Layout, turn_number

OUTSIDE = "outside a turn"  # group of what ran in no phase
AWAY = "away"  # outcome of an execution for which no model server answered
COMPRESSED, OVERFLOW = "compressed", "overflow"
"""Member `event` of lines that are no execution: a document was brought to size; it could not be."""


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
