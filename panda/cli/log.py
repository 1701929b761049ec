"""`panda log` and `panda stats`."""

from collections import Counter, deque
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from datetime import datetime
from itertools import chain
from typing import Annotated

from msgspec import UNSET

from panda.cli.command import Invocation, OutputTable, Result, Stream, flag, option
from panda.cli.completion import complete_recipes, complete_turns
from panda.documents.record_codec import encode
from panda.documents.safe_text import count_noun
from panda.documents.times import read_instant, time_text
from panda.errors import Problem, UsageError
from panda.index.executions import BY, ContextStats, Executions
from panda.store.layout import turn_name
from panda.store.lines import LineTail, Parts
from panda.store.outcome import TurnOutcome
from panda.store.records import Execution, TokenCounts
from panda.store.turns import find_turn, newest_rows

_COLUMNS = (
    "time",
    "session",
    "turn",
    "recipe",
    "layer",
    "prompt",
    "input",
    "output",
    "ms",
    "retries",
    "result",
)
_EXTRA = ("retries", "layer", "prompt", "session", "input", "output")
_STATS_COLUMNS = (
    *("group", "executions", "valid", "retries", "judged", "confidence", "held", "calibration error"),
    *("p50 ms", "p95 ms", "tokens", "tokens cached", "tokens saved", "away"),
)
_STATS_EXTRA = (
    "away",
    "calibration error",
    "held",
    "judged",
    "tokens saved",
    "tokens cached",
    "retries",
    "p50 ms",
    "confidence",
)
_COMPRESSION = ("content type", "calls", "tokens saved", "ratio", "overflow warnings", "seconds")
_CONTEXT = ("source", "turns", "share of turns", "nodes")
_OUTCOMES = ("outcome", "turns", "share of turns")
_KINDS = (*BY, "compression", "context", "outcome")


def log(
    invocation: Invocation,
    follow: Annotated[bool, flag("Go on until Ctrl-C.", "--follow", "-f")] = False,
    lines: Annotated[int, option("The newest so many; 0 for all.", "N", "--lines", "-n", min=0)] = 20,
    recipe: Annotated[
        str | None,
        option("Only this recipe, by name or file.", "NAME", complete=complete_recipes, show_default="all"),
    ] = None,
    turn: Annotated[
        str | None,
        option("Only this turn; last is the newest.", "TURN", complete=complete_turns, show_default="all"),
    ] = None,
) -> Result:
    """
    Show the recipes that ran for a user, newest last: when, how long, how many tokens.

    Example: panda log --turn 813 --user demo
    """
    tail = LineTail(invocation.store(any_user=True).executions_log, Execution)
    fields: dict[str, object] = {"user_id": invocation.settings.user}
    if recipe is not None:
        fields["recipe"] = invocation.book().load_recipe(recipe).name if "/" in recipe else recipe
    if turn is not None:
        fields["turn_id"] = turn_name(_number_of(invocation, turn))
    newest: deque[Execution] = deque(maxlen=lines or None)
    count = 0
    for line in _wanted(invocation, tail.read(torn=not follow)[1], fields):
        newest.append(line)
        count += 1
    if follow:
        rows = chain(newest, _wanted(invocation, tail.follow(), fields))
        return Result(None, Stream(chain([_COLUMNS], map(_row, rows))))
    if count > len(newest):
        invocation.reporter.step(f"{count - len(newest)} earlier lines are left out: -n 0 shows all")
    if not newest:
        parts = [f"recipe {recipe}" if recipe else "", f"turn {turn}" if turn else ""]
        _tell_empty(invocation, " and ".join(filter(None, parts)))
    return Result({"lines": encode(list(newest))}, OutputTable(_COLUMNS, [*map(_row, newest)], _EXTRA))


def _number_of(invocation: Invocation, word: str) -> int:
    """Return the number that a word means; of a turn that is gone the log may still tell."""
    if word.isascii() and word.isdigit():
        return int(word)
    return find_turn(invocation.store(), word, where="--turn").number


def _tell_empty(invocation: Invocation, wanted: str = "") -> None:
    invocation.store()  # the user must be there
    of_them = f" of {wanted}" if wanted else ""
    invocation.reporter.step(f"no executions{of_them} of user {invocation.settings.user} in the log")


def _wanted(
    invocation: Invocation, parts: Parts[Execution], fields: Mapping[str, object]
) -> Iterator[Execution]:
    """The executions that have these fields; a damaged line becomes a warning."""
    for part in parts:
        if isinstance(part, Problem):
            invocation.reporter.warn(f"{part.where}: {part.message}")
        elif part.record.event is UNSET and all(getattr(part.record, key) == fields[key] for key in fields):
            yield part.record


def _row(line: Execution) -> tuple[object, ...]:
    tokens = line.tokens or TokenCounts()
    turn = (line.turn_id or "").removeprefix("turn_").lstrip("0")
    result = "done" if line.success else "failed"
    return (
        *(line.timestamp, line.session_id or None, turn, line.recipe or None, line.model_layer or None),
        *(
            tokens.prompt,
            tokens.input,
            tokens.output,
            *(None if part is UNSET else part for part in (line.latency_ms, line.retries)),
        ),
        line.outcome or result,
    )


def stats(
    invocation: Invocation,
    by: Annotated[
        str,
        option(
            "recipe, layer, model, phase, day, compression, context or outcome.",
            "WHAT",
            complete=lambda: list(_KINDS),
        ),
    ] = "recipe",
    since: Annotated[
        str | None, option("Only what ran from this day or time on.", "TIME", show_default="all")
    ] = None,
) -> Result:
    """
    Add up what the log says of a user: executions, validity, confidence against verdicts, latency, tokens.

    Held is the share of judged executions whose turn ended approved; the calibration error is how far their
    confidence lies from that. `--by compression` adds up compressions by content type, `--by context` what
    phase 2 of the turns measured: quality, sources used, turns without a constraint, `--by outcome` what the
    turns came to, as their files say it: answered, unsure, nothing and so on.

    Example: panda stats --by outcome --user demo
    """
    if by not in _KINDS:
        raise UsageError(f"there is no {by!r} to add up by", where="--by", fix=f"use {', '.join(_KINDS)}")
    first = read_instant(since or None, "--since")
    if by == "outcome":
        return _count_outcomes(invocation, first)
    layout = invocation.store(any_user=True)
    group = by if by in BY else "recipe"
    start = time_text(first) or ""
    executions = Executions(layout)
    where = {"user_id = ?": invocation.settings.user, "timestamp >= ?": start}
    left = executions.read(invocation.settings.user, torn=True)
    for damaged in executions.damaged:
        invocation.reporter.warn(f"{damaged.where}: {damaged.message}")
    if left:
        invocation.reporter.step(f"how the oldest {left} turns ended was not looked up")
    groups = {name: vars(sums) for name, sums in executions.sums(where, group).items()}
    by_type = executions.compressions(where)
    is_wanted = invocation.as_json or by == "context"  # it reads a file of each turn
    context = executions.contexts(invocation.settings.user, where) if is_wanted else None
    executions.close()
    total = by_type.pop("")
    if not groups and not any(total.values()):
        _tell_empty(invocation)
    data = {"by": group, "groups": groups, "compression": {"total": total, "by_content_type": by_type}}
    data |= {"context": asdict(context)} if context else {}
    if context and by == "context":
        quality = "unknown" if context.context_quality is None else f"{context.context_quality:.2f}"
        invocation.reporter.step(
            f"context quality {quality} on average of {count_noun(context.turns, 'turn')}"
        )
        return Result(data, OutputTable(_CONTEXT, _context_rows(context)))
    columns, sums_by_name = (
        (_COMPRESSION, {**by_type, "all": total}) if by == "compression" else (_STATS_COLUMNS, groups)
    )
    rows = [(name, *sums.values()) for name, sums in sums_by_name.items()]
    return Result(data, OutputTable(columns, rows, _STATS_EXTRA))


def _count_outcomes(invocation: Invocation, first: datetime | None) -> Result:
    """Return how many turns of the user came to what, most first; told apart are those without an outcome."""
    counts = Counter[TurnOutcome]()
    others = Counter[str]()
    for row in newest_rows(invocation.store()):
        if first is not None and row.at is not None and row.at < first:
            continue
        if row.outcome is None:
            others[row.status] += 1
        else:
            counts[row.outcome] += 1
    total = counts.total()
    groups = {
        outcome: {"turns": count, "share": round(count / total, 4)} for outcome, count in counts.most_common()
    }
    if others:
        statuses = ", ".join(f"{count:,} {status}" for status, count in others.most_common())
        invocation.reporter.step(f"without an outcome: {statuses}")
    data = {"by": "outcome", "turns": total, "outcomes": groups, "without_outcome": dict(others)}
    rows = [(outcome, group["turns"], group["share"]) for outcome, group in groups.items()]
    return Result(data, OutputTable(_OUTCOMES, rows))


def _context_rows(context: ContextStats) -> list[tuple[object, ...]]:
    turns = context.turns
    missing = context.constraints_missing
    counts = [(kind, used["turns"], used["nodes"]) for kind, used in context.coverage.items()]
    counts += [("constraints", turns - missing, context.constraints), ("no constraint", missing, 0)]
    return [(name, some, round(some / turns, 4) if turns else None, nodes) for name, some, nodes in counts]
