"""`panda memory conflicts`, `panda memory resolve` and `panda memory lint`."""

from collections import Counter
from collections.abc import Sequence
from functools import partial
from typing import Annotated

import typer

from panda.cli.contract import Invocation, Result, Table
from panda.cli.memory import memory_of, read_memory
from panda.cli.memory_statements import read_value
from panda.cli.memory_texts import (
    CONFLICT_COLUMNS,
    LINT_COLUMNS,
    assertion_data,
    conflict_data,
    conflict_row,
    finding_row,
)
from panda.cli.option_rules import excludes
from panda.errors import CheckError, UsageError
from panda.memory.conflicts import Contradiction, find_contradictions, resolve
from panda.memory.lint import lint_memory
from panda.memory.values import FactValue


def conflicts(invocation: Invocation) -> Result:
    """
    List the contradictions that stand: what holds, and what speaks against it.

    Example: panda memory conflicts
    """
    settings = invocation.settings
    found = find_contradictions(read_memory(invocation).log, settings.clock())
    if not found:
        invocation.reporter.step("no contradictions")
    data = {"user": settings.user, "conflicts": [conflict_data(one, settings.user) for one in found]}
    return Result(data, Table(CONFLICT_COLUMNS, [conflict_row(one, settings.user) for one in found]))


@excludes("winner", "value", "type_")
def resolve_conflict(
    invocation: Invocation,
    conflict: Annotated[
        str,
        typer.Argument(
            help="Id of a contradiction or its beginning, or a key: all of that key.", metavar="CONFLICT"
        ),
    ],
    winner: Annotated[
        str | None, typer.Option(help="Id of the fact that is right, or its beginning.", metavar="ID")
    ] = None,
    value: Annotated[
        list[str] | None, typer.Option(help="What is right instead; several make a list.", metavar="V")
    ] = None,
    type_: Annotated[
        str | None,
        typer.Option("--type", help="Type of the value; that of the winner if left out.", metavar="TYPE"),
    ] = None,
) -> Result:
    """
    Settle a contradiction. Both facts stay in the history.

    Example: panda memory resolve conflict-0123456789ab --winner fact-89abcdef01234567
    """
    settings = invocation.settings
    if winner is None and not value:
        raise UsageError("give --winner or --value, one of the two", where="--winner", fix="see --help")
    chosen = partial(_value, value, type_) if value else None
    resolution, records = resolve(
        memory_of(invocation), conflict, settings.clock(), winner=winner, value=chosen
    )
    invocation.reporter.step(f"settled: {len(records)}")
    data = {
        "user": settings.user,
        "resolution": assertion_data(resolution, settings.user),
        "conflicts": [one.to_json() for one in records],
    }
    return Result(data)


def _value(words: Sequence[str], type_: str | None, one: Contradiction) -> FactValue:
    """The value that is right; of the winner's type unless a type is given, or it cannot be."""
    return read_value(words, type_ or (one.winner.fact.value.type if len(words) == 1 else None))


def lint(
    invocation: Invocation,
    within: Annotated[
        float, typer.Option(help="What expires within so many days is soon expiring.", min=0, metavar="DAYS")
    ] = 7,
) -> Result:
    """
    Check the memory: contradictions, what has expired or soon will, what a retraction left alone, references
    to nothing. Ends with 3 if it finds something.

    Example: panda memory lint --within 30
    """
    settings = invocation.settings
    state = read_memory(invocation)
    findings = lint_memory(state.log, settings.user, settings.clock(), within_days=within)
    data = {"user": settings.user, "findings": [vars(one) for one in findings]}
    if not findings:
        return Result(data)
    counts = ", ".join(f"{count} {rule}" for rule, count in Counter(one.rule for one in findings).items())
    error = CheckError(f"findings in the memory of {settings.user}: {counts}")
    return Result(data, Table(LINT_COLUMNS, [finding_row(one) for one in findings]), error=error)
