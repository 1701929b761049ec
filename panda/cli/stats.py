"""`panda stats`."""

from collections.abc import Iterable, Mapping
from typing import Any

from panda.cli.contract import Invocation, Result, Table
from panda.compression.events import CompressionMetrics, sum_compressions
from panda.documents.problems import Problem
from panda.storage.execution_log import LogReader

_COLUMNS = ("part", "of", "calls", "tokens saved", "ratio", "overflow warnings", "seconds")


def stats(invocation: Invocation) -> Result:
    """
    Add up what the log says of a user: compressions by content type.

    Example: panda stats --json
    """
    lines = _lines(invocation)
    found = sum_compressions(lines)
    kinds = sorted(kind for kind in found if kind is not None)
    data = {
        "compression": {
            "total": _compression(found[None]),
            "by_content_type": {kind: _compression(found[kind]) for kind in kinds},
        }
    }
    rows = [("compression", kind, *_compression(found[kind]).values()) for kind in kinds]
    rows.append(("compression", "all", *_compression(found[None]).values()))
    return Result(data, Table(_COLUMNS, rows))


def _lines(invocation: Invocation) -> list[Mapping[str, Any]]:
    """The lines of the user; a damaged one becomes a warning."""
    with LogReader(invocation.store().executions_log) as reader:
        parts = [*reader.read_new(), *reader.read_torn()]
    for part in parts:
        if isinstance(part, Problem):
            invocation.reporter.warn(f"{part.where}: {part.message}")
    records: Iterable[Mapping[str, Any]] = (part.record for part in parts if not isinstance(part, Problem))
    return [record for record in records if record.get("user_id") == invocation.settings.user]


def _compression(metrics: CompressionMetrics) -> dict[str, object]:
    return {
        "calls": metrics.calls,
        "tokens_saved": metrics.tokens_saved,
        "ratio": metrics.ratio,
        "overflow_warnings": metrics.overflow_warnings,
        "seconds": metrics.seconds,
    }
