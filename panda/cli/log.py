"""`panda log`."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import chain
from pathlib import Path
from typing import Annotated, Any

import typer

from panda.cli.completion import complete_recipes, complete_turns
from panda.cli.contract import Invocation, Result, Stream, Table
from panda.documents.problems import Problem
from panda.recipes.book import RecipeBook
from panda.storage.execution_log import LogLine, LogReader, follow_log
from panda.storage.layout import turn_name

_Record = Mapping[str, Any]
_COLUMNS = ("time", "session", "turn", "recipe", "layer", "prompt", "output", "ms", "retries", "result")


def log(
    invocation: Invocation,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on until Ctrl-C.")] = False,
    lines: Annotated[
        int, typer.Option("--lines", "-n", help="The newest so many; 0 for all.", min=0, metavar="N")
    ] = 20,
    recipe: Annotated[
        str | None,
        typer.Option(
            help="Only this recipe, by name or file.", metavar="NAME", autocompletion=complete_recipes
        ),
    ] = None,
    turn: Annotated[
        int | None,
        typer.Option(help="Only this turn.", min=1, metavar="N", autocompletion=complete_turns),
    ] = None,
) -> Result:
    """
    Show the recipes that ran for a user, newest last: when, how long, how many tokens.

    Example: panda log --turn 813 --user demo
    """
    layout, wanted = invocation.store(new_user=True), _wanted(invocation, recipe, turn)
    path = layout.executions_log
    if follow:
        return Result(None, Stream(_followed(invocation, path, wanted, lines)))
    with LogReader(path) as reader:
        parts = chain(reader.read_new(), reader.read_torn())
        found, earlier = _newest(_records(invocation, parts, wanted), lines)
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
    with LogReader(path) as reader:
        for record in deque(_records(invocation, reader.read_new(), wanted), maxlen=lines or None):
            yield _row(record)
        for record in _records(invocation, follow_log(reader), wanted):
            yield _row(record)


def _wanted(invocation: Invocation, recipe: str | None, turn: int | None) -> Callable[[_Record], bool]:
    """Whether a record is of the user, and of the recipe and the turn asked for."""
    settings = invocation.settings
    fields: dict[str, object] = {"user_id": settings.user}
    if recipe is not None:
        book = RecipeBook(settings.recipe_dirs, settings.prompt_dirs)
        fields["recipe"] = book.load_recipe(recipe).name if "/" in recipe else recipe
    if turn is not None:
        fields["turn_id"] = turn_name(turn)

    def is_wanted(record: _Record) -> bool:
        return "event" not in record and all(record.get(key) == value for key, value in fields.items())

    return is_wanted


def _records(
    invocation: Invocation, parts: Iterable[LogLine | Problem], wanted: Callable[[_Record], bool]
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
