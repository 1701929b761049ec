"""logs/executions.jsonl: a line for each recipe that ran (S3 §27) or document that was brought to size."""

from collections.abc import Iterator, Sequence
from typing import Any

from panda.documents.record_codec import encode
from panda.errors import Problem
from panda.store.files import append_json_lines
from panda.store.interventions import list_interventions
from panda.store.layout import Layout, turn_number
from panda.store.lines import FileLine, LineTail
from panda.store.records import Execution

AWAY = "away"  # outcome of an execution for which no model server answered
COMPRESSED = "compressed"
OVERFLOW = "overflow"
"""Member `event` of lines that are no execution: a document was brought to size; it could not be."""


def append_executions(store: Layout, lines: Sequence[Execution]) -> None:
    """Add lines to the log (raises as append_json_lines)."""
    if lines:
        append_json_lines(store.executions_log, encode(lines))


def recipe_executions(layout: Layout, recipe: str) -> Iterator[Execution]:
    """Those of one recipe, oldest first; damaged lines are left out: `panda validate` tells of them."""
    for part in LineTail(layout.executions_log, Execution).read()[1]:
        if isinstance(part, FileLine) and part.record.key == recipe:
            yield part.record


def find_failures(layout: Layout, recipe: str) -> list[dict[str, Any]]:
    """
    Return where a recipe failed, was corrected or led to an intervention, oldest first.

    Returns:
        kind (failed: no valid reply; corrected: a reply was refused and asked for again; intervention),
        version, time, user, turn, message, and the id of an intervention.
    """
    keys = ("kind", "version", "time", "user", "turn", "message", "intervention")
    rows: list[tuple[Any, ...]] = []
    for line in recipe_executions(layout, recipe):
        if line.has_failed or (line.retries and not line.is_away):
            tries = f"after {(line.retries or 0) + 1} attempts"
            kind, message = ("failed", "no valid reply") if line.has_failed else ("corrected", "valid")
            at = (line.version or None, line.timestamp, line.user_id or None)
            rows.append((kind, *at, turn_number(str(line.turn_id)), f"{message} {tries}", None))
    for halt in list_interventions(layout):
        if not isinstance(halt, Problem) and halt.recipe == recipe:
            at = (halt.recipe_version, halt.created_at, halt.user_id)
            rows.append(("intervention", *at, halt.turn, halt.message, halt.id))
    return sorted((dict(zip(keys, row, strict=True)) for row in rows), key=lambda row: str(row["time"]))
