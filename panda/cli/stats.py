"""`panda stats`."""

from collections.abc import Callable, Iterator, Mapping
from functools import cache
from itertools import chain
from typing import Annotated, Any

import typer

from panda.cli.contract import Invocation, Result, Table
from panda.cli.option_rules import requires
from panda.compression.events import CompressionMetrics, sum_compressions
from panda.documents.problems import Problem
from panda.documents.times import parse_time, render_time
from panda.errors import PandaError, UsageError
from panda.storage.execution_log import LogReader
from panda.storage.execution_stats import BY, ExecutionStats, sum_executions
from panda.storage.layout import METADATA_JSON, Layout
from panda.storage.records import load_object

_COLUMNS = (
    *("group", "executions", "valid", "retries", "judged", "confidence", "held", "calibration error"),
    *("p50 ms", "p95 ms", "tokens", "tokens saved"),
)
_COMPRESSION = ("content type", "calls", "tokens saved", "ratio", "overflow warnings", "seconds")
_KINDS = (*BY, "compression")
_BAR_CHARS = 40


@requires("plot", "by", *BY)
def stats(
    invocation: Invocation,
    by: Annotated[
        str, typer.Option(help="recipe, layer, phase, day or compression.", metavar="WHAT")
    ] = "recipe",
    since: Annotated[
        str | None, typer.Option(help="Only what ran from this day or time on.", metavar="TIME")
    ] = None,
    plot: Annotated[bool, typer.Option("--plot", help="Draw latency and tokens as bars.")] = False,
) -> Result:
    """
    Add up what the log says of a user: executions, validity, confidence against verdicts, latency, tokens.

    Held is the share of judged executions whose turn ended approved; the calibration error is how far their
    confidence lies from that. `--by compression` adds up compressions by content type.

    Example: panda stats --by phase --plot
    """
    _check_kind(by)
    compressions: list[Mapping[str, Any]] = []
    layout = invocation.store(new_user=True)
    records = _kept(_records(invocation, layout, _start(since)), compressions)
    group = by if by in BY else "recipe"
    found = sum_executions(records, by=group, verdict=_verdict(layout))
    if not found and not compressions:
        invocation.check_user(layout)
    metrics = sum_compressions(compressions)
    data = {
        "by": group,
        "groups": {name: vars(one) for name, one in found.items()},
        "compression": _compression_data(metrics),
    }
    if by == "compression":
        return Result(data, Table(_COMPRESSION, _compression_rows(metrics)))
    if plot:
        return Result(data, _plot(found))
    return Result(data, Table(_COLUMNS, [(name, *vars(one).values()) for name, one in found.items()]))


def _check_kind(by: str) -> None:
    if by not in _KINDS:
        raise UsageError(f"there is no {by!r} to add up by", where="--by", fix=f"use {', '.join(_KINDS)}")


def _records(invocation: Invocation, layout: Layout, since: str) -> Iterator[Mapping[str, Any]]:
    """The lines of the user; a damaged one becomes a warning."""
    with LogReader(layout.executions_log) as reader:
        for part in chain(reader.read_new(), reader.read_torn()):
            if isinstance(part, Problem):
                invocation.reporter.warn(f"{part.where}: {part.message}")
            elif (
                part.record.get("user_id") == invocation.settings.user
                and str(part.record.get("timestamp")) >= since
            ):
                yield part.record


def _start(since: str | None) -> str:
    """The first timestamp that counts; "" for all."""
    try:
        return render_time(parse_time(since)) if since else ""
    except ValueError as exc:
        raise UsageError(
            f"{since!r} is no time", where="--since", fix="write 2026-01-04 or 2026-01-04T14:30:00Z"
        ) from exc


def _kept(
    records: Iterator[Mapping[str, Any]], compressions: list[Mapping[str, Any]]
) -> Iterator[Mapping[str, Any]]:
    """The records as they come; those of compressions are put aside too."""
    for record in records:
        if "event" in record:
            compressions.append(record)
        yield record


def _verdict(layout: Layout) -> Callable[[str, str], bool | None]:
    """Whether a turn ended approved; each is looked at once."""

    @cache
    def verdict(user: str, turn: str) -> bool | None:
        try:
            status = load_object(layout.turns(user) / turn / METADATA_JSON).get("status")
        except PandaError:
            return None
        return status == "approved" if status in ("approved", "failed", "clarify", "halted") else None

    return verdict


def _plot(found: Mapping[str, ExecutionStats]) -> Table:
    """Latency and tokens as bars, each measure on a scale of its own."""
    rows: list[tuple[object, ...]] = []
    for what in ("p50_ms", "p95_ms", "tokens"):
        values = {name: getattr(one, what) for name, one in found.items()}
        most = max((value for value in values.values() if value is not None), default=0) or 1
        for name, value in values.items():
            bar = "" if value is None else "█" * max(1, round(_BAR_CHARS * value / most))
            rows.append((what.replace("_", " "), name, value, bar))
    return Table(("measure", "group", "value", ""), rows)


def _compression_data(found: Mapping[str | None, CompressionMetrics]) -> dict[str, object]:
    kinds = sorted(kind for kind in found if kind is not None)
    by_type = {kind: _compression(found[kind]) for kind in kinds}
    return {"total": _compression(found[None]), "by_content_type": by_type}


def _compression_rows(found: Mapping[str | None, CompressionMetrics]) -> list[tuple[object, ...]]:
    kinds = sorted(kind for kind in found if kind is not None)
    rows: list[tuple[object, ...]] = [(kind, *_compression(found[kind]).values()) for kind in kinds]
    return [*rows, ("all", *_compression(found[None]).values())]


def _compression(metrics: CompressionMetrics) -> dict[str, object]:
    return {
        "calls": metrics.calls,
        "tokens_saved": metrics.tokens_saved,
        "ratio": metrics.ratio,
        "overflow_warnings": metrics.overflow_warnings,
        "seconds": metrics.seconds,
    }
