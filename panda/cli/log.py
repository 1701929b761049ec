"""`panda log` and `panda stats`."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any

from panda.cli.command import Invocation, Result, Stream, Table, flag, option
from panda.cli.completion import complete_recipes, complete_turns
from panda.compression.documents import sum_compressions
from panda.documents.times import read_instant, time_text
from panda.errors import Problem, UsageError
from panda.store.files import Line, LineTail
from panda.store.layout import Layout, turn_name
from panda.store.log import BY, ExecutionStats
from panda.view.execution_columns import ExecutionLog, group_columns

_Record = Mapping[str, Any]
_COLUMNS = ("time", "session", "turn", "recipe", "layer", "prompt", "output", "ms", "retries", "result")
_STATS_COLUMNS = (
    *("group", "executions", "valid", "retries", "judged", "confidence", "held", "calibration error"),
    *("p50 ms", "p95 ms", "tokens", "tokens saved", "away"),
)
_COMPRESSION = ("content type", "calls", "tokens saved", "ratio", "overflow warnings", "seconds")
_KINDS = (*BY, "compression")


def log(
    invocation: Invocation,
    follow: Annotated[bool, flag("Go on until Ctrl-C.", "--follow", "-f")] = False,
    lines: Annotated[int, option("The newest so many; 0 for all.", "N", "--lines", "-n", min=0)] = 20,
    recipe: Annotated[
        str | None,
        option("Only this recipe, by name or file.", "NAME", complete=complete_recipes, show_default="all"),
    ] = None,
    turn: Annotated[
        int | None, option("Only this turn.", "N", complete=complete_turns, show_default="all", min=1)
    ] = None,
) -> Result:
    """
    Show the recipes that ran for a user, newest last: when, how long, how many tokens.

    Example: panda log --turn 813 --user demo
    """
    layout, wanted = invocation.store(any_user=True), _wanted(invocation, recipe, turn)
    path = layout.executions_log
    if follow:
        return Result(None, Stream(_followed(invocation, path, wanted, lines)))
    found, earlier = _newest(_records(invocation, LineTail(path).read()[1], wanted), lines)
    if earlier:
        invocation.reporter.step(f"{earlier} earlier lines are left out: -n 0 shows all")
    if not found:
        _tell_empty(invocation)
    return Result({"lines": list(found)}, Table(_COLUMNS, [_row(record) for record in found]))


def _tell_empty(invocation: Invocation) -> None:
    """Say that the log has nothing of the user, who must be there."""
    invocation.store()
    invocation.reporter.step(f"no executions of user {invocation.settings.user} in the log")


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
    yield _COLUMNS
    log = LineTail(path)
    for record in _newest(_records(invocation, log.read(torn=False)[1], wanted), lines)[0]:
        yield _row(record)
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
        record.get("outcome") or ("done" if record.get("success") is True else "failed"),
    )


def stats(
    invocation: Invocation,
    by: Annotated[str, option("recipe, layer, phase, day or compression.", "WHAT")] = "recipe",
    since: Annotated[
        str | None, option("Only what ran from this day or time on.", "TIME", show_default="all")
    ] = None,
) -> Result:
    """
    Add up what the log says of a user: executions, validity, confidence against verdicts, latency, tokens.

    Held is the share of judged executions whose turn ended approved; the calibration error is how far their
    confidence lies from that. `--by compression` adds up compressions by content type.

    Example: panda stats --by phase --user demo
    """
    if by not in _KINDS:
        raise UsageError(f"there is no {by!r} to add up by", where="--by", fix=f"use {', '.join(_KINDS)}")
    layout, group = invocation.store(any_user=True), by if by in BY else "recipe"
    start = time_text(read_instant(since or None, "--since")) or ""
    compressions = list(_compressions(invocation, layout, start))
    found = _groups(invocation, layout, start, group)
    if not found and not compressions:
        _tell_empty(invocation)
    total, by_type = _compression_data(compressions)
    groups = {name: vars(one) for name, one in found.items()}
    data = {"by": group, "groups": groups, "compression": {"total": total, "by_content_type": by_type}}
    columns, shown = (
        (_COMPRESSION, {**by_type, "all": total}) if by == "compression" else (_STATS_COLUMNS, groups)
    )
    return Result(data, Table(columns, [(name, *one.values()) for name, one in shown.items()]))


def _groups(invocation: Invocation, layout: Layout, start: str, by: str) -> dict[str, ExecutionStats]:
    """What the user's executions add up to, by group."""
    state = ExecutionLog(layout, since=start).read(invocation.settings.user)
    if state.turns_left:
        invocation.reporter.step(f"how the oldest {state.turns_left} turns ended was not looked up")
    return dict(group_columns(state.columns, state.held, by))


def _compressions(invocation: Invocation, layout: Layout, start: str) -> Iterator[_Record]:
    """The lines of the user's compressions; damaged lines of the log become warnings."""
    user = invocation.settings.user

    def is_wanted(record: _Record) -> bool:
        is_own = record.get("user_id") == user and "event" in record
        return is_own and str(record.get("timestamp")) >= start

    yield from _records(invocation, LineTail(layout.executions_log).read()[1], is_wanted)


def _compression_data(lines: Iterable[_Record]) -> tuple[_Record, dict[str, _Record]]:
    """Metrics of all compressions, and by content type."""
    names = ("calls", "tokens_saved", "ratio", "overflow_warnings", "seconds")
    sums = {
        kind: {name: getattr(one, name) for name in names} for kind, one in sum_compressions(lines).items()
    }
    return sums[None], {kind: sums[kind] for kind in sorted(kind for kind in sums if kind is not None)}
