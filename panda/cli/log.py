"""`panda log` and `panda stats`."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Annotated, Any

from panda.cli.command import Invocation, Result, Stream, Table, flag, option, requires
from panda.cli.completion import complete_recipes, complete_turns
from panda.compression.events import CompressionMetrics, sum_compressions
from panda.documents.problems import Problem
from panda.documents.times import read_instant, time_text
from panda.errors import PandaError, UsageError
from panda.storage.execution_log import BY, ExecutionStats, sum_executions
from panda.storage.jsonl import Line, LineTail
from panda.storage.layout import METADATA_JSON, Layout, turn_name
from panda.storage.records import load_object

_Record = Mapping[str, Any]
_COLUMNS = ("time", "session", "turn", "recipe", "layer", "prompt", "output", "ms", "retries", "result")
_STATS_COLUMNS = (
    *("group", "executions", "valid", "retries", "judged", "confidence", "held", "calibration error"),
    *("p50 ms", "p95 ms", "tokens", "tokens saved"),
)
_COMPRESSION = ("content type", "calls", "tokens saved", "ratio", "overflow warnings", "seconds")
_KINDS = (*BY, "compression")
_BAR_CHARS = 40


def log(
    invocation: Invocation,
    follow: Annotated[bool, flag("Go on until Ctrl-C.", "--follow", "-f")] = False,
    lines: Annotated[int, option("The newest so many; 0 for all.", "N", "--lines", "-n", min=0)] = 20,
    recipe: Annotated[
        str | None, option("Only this recipe, by name or file.", "NAME", complete=complete_recipes)
    ] = None,
    turn: Annotated[int | None, option("Only this turn.", "N", complete=complete_turns, min=1)] = None,
) -> Result:
    """
    Show the recipes that ran for a user, newest last: when, how long, how many tokens.

    Example: panda log --turn 813 --user demo
    """
    layout, wanted = invocation.store(new_user=True), _wanted(invocation, recipe, turn)
    path = layout.executions_log
    if follow:
        return Result(None, Stream(_followed(invocation, path, wanted, lines)))
    found, earlier = _newest(_records(invocation, LineTail(path).read()[1], wanted), lines)
    if earlier:
        invocation.reporter.step(f"{earlier} earlier lines are left out: -n 0 shows all")
    if not found:
        invocation.check_user(layout)
        invocation.reporter.step(f"no executions of user {invocation.settings.user} in the log")
    return Result({"lines": list(found)}, Table(_COLUMNS, [_row(record) for record in found]))


def _newest(records: Iterable[_Record], most: int) -> tuple[deque[_Record], int]:
    """The newest records, all if *most* is 0, and how many are left out."""
    found: deque[_Record] = deque(maxlen=most or None)
    count = 0
    for count, record in enumerate(records, 1):  # noqa: B007 - the last one counts
        found.append(record)
    return found, count - len(found)


def _followed(
    invocation: Invocation, path: Path, wanted: Callable[[_Record], bool], lines: int
) -> Iterator[tuple[object, ...]]:
    """The newest rows, then those that come."""
    log = LineTail(path)
    yield from map(_row, deque(_records(invocation, log.read(torn=False)[1], wanted), maxlen=lines or None))
    yield from map(_row, _records(invocation, log.follow(), wanted))


def _wanted(invocation: Invocation, recipe: str | None, turn: int | None) -> Callable[[_Record], bool]:
    """Whether a record is of the user, and of the recipe and the turn asked for."""
    fields: dict[str, object] = {"user_id": invocation.settings.user}
    if recipe is not None:
        fields["recipe"] = invocation.book().load_recipe(recipe).name if "/" in recipe else recipe
    if turn is not None:
        fields["turn_id"] = turn_name(turn)

    def is_wanted(record: _Record) -> bool:
        return "event" not in record and all(record.get(key) == value for key, value in fields.items())

    return is_wanted


def _records(
    invocation: Invocation, parts: Iterable[Line | Problem], wanted: Callable[[_Record], bool]
) -> Iterator[_Record]:
    """The records that are wanted; a damaged line becomes a warning."""
    for part in parts:
        if isinstance(part, Problem):
            invocation.reporter.warn(f"{part.where}: {part.message}")
        elif wanted(part.record):
            yield part.record


def _row(record: _Record) -> tuple[object, ...]:
    tokens = record.get("tokens")
    tokens = tokens if isinstance(tokens, Mapping) else {}
    return (
        record.get("timestamp"),
        record.get("session_id"),
        str(record.get("turn_id") or "").removeprefix("turn_").lstrip("0"),
        record.get("recipe"),
        record.get("model_layer"),
        tokens.get("prompt"),
        tokens.get("output"),
        record.get("latency_ms"),
        record.get("retries"),
        "done" if record.get("success") is True else "failed",
    )


@requires("plot", "by", *BY)
def stats(
    invocation: Invocation,
    by: Annotated[str, option("recipe, layer, phase, day or compression.", "WHAT")] = "recipe",
    since: Annotated[str | None, option("Only what ran from this day or time on.", "TIME")] = None,
    plot: Annotated[bool, flag("Draw latency and tokens as bars.", "--plot")] = False,
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
    records = _put_aside(
        _lines_since(invocation, layout, time_text(read_instant(since or None, "--since")) or ""),
        compressions,
    )
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
    return Result(data, Table(_STATS_COLUMNS, [(name, *vars(one).values()) for name, one in found.items()]))


def _check_kind(by: str) -> None:
    if by not in _KINDS:
        raise UsageError(f"there is no {by!r} to add up by", where="--by", fix=f"use {', '.join(_KINDS)}")


def _lines_since(invocation: Invocation, layout: Layout, since: str) -> Iterator[Mapping[str, Any]]:
    """The lines of the user; a damaged one becomes a warning."""

    def is_wanted(record: _Record) -> bool:
        is_own = record.get("user_id") == invocation.settings.user
        return is_own and str(record.get("timestamp")) >= since

    return _records(invocation, LineTail(layout.executions_log).read()[1], is_wanted)


def _put_aside(
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
