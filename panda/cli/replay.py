"""`panda replay`: saved turns run again with their recorded answers."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from panda.cli.completion import complete_turns
from panda.cli.contract import Invocation, Result, Table
from panda.errors import CheckError, UsageError

if TYPE_CHECKING:  # imported when turns are replayed: help must not wait for the phases
    from panda.replay import Simulation


def replay(
    invocation: Invocation,
    turns: Annotated[
        list[str],
        typer.Argument(
            help="Numbers, or ranges such as 813-820.", metavar="TURN…", autocompletion=complete_turns
        ),
    ],
    mode: Annotated[
        str, typer.Option(help="simulate: the recorded answers, no model call.", metavar="MODE")
    ] = "simulate",
) -> Result:
    """
    Run saved turns again with their recorded answers and compare every document; exit 3 if anything differs.

    Example: panda replay 813-820 --mode simulate
    """
    from panda.models.layers import Layers
    from panda.models.models_file import load_models_file
    from panda.replay import simulate

    if mode != "simulate":
        raise UsageError(f"there is no mode {mode!r}", where="--mode", fix="use --mode simulate")
    numbers, settings = parse_numbers(turns), invocation.settings
    models, found = load_models_file(settings.models_file), []
    with (
        Layers(models, cache_dir=settings.cache_dir, environ=invocation.environ) as layers,
        invocation.reporter.progress("replaying", len(numbers)) as advance,
    ):
        for number in numbers:
            found.append(simulate(settings, invocation.store(), layers, number))
            advance()
    return _result(invocation, mode, found)


def _result(invocation: Invocation, mode: str, found: "Sequence[Simulation]") -> Result:
    from panda.replay import simulation_data

    failed = [one for one in found if not one.ok]
    for one in failed:
        invocation.reporter.step(f"turn {one.turn}: {one.halted or 'differs'}")
        for miss in one.misses:
            invocation.reporter.step(f"miss in {miss.recipe} ({miss.kind}):\n{miss.difference}")
        for name, difference in one.different.items():
            invocation.reporter.step(f"{name}:\n{difference}")
    outcomes = {True: "same", False: "differs"}
    rows = [(one.turn, outcomes[one.ok], len(one.same), len(one.different), len(one.misses)) for one in found]
    data = {"mode": mode, "turns": [simulation_data(one) for one in found]}
    table = Table(("turn", "outcome", "same", "different", "misses"), rows)
    error = CheckError(
        f"{len(failed)} of {len(found)} turns do not come out as they were saved",
        where=", ".join(f"turn {one.turn}" for one in failed),
        fix="look at the differences above; record the turns anew if the change is meant",
    )
    return Result(data, table, error=error if failed else None)


def parse_numbers(words: list[str]) -> list[int]:
    """
    Turn numbers from numbers and ranges, each once, in the order given.

    Raises:
        UsageError: A word is neither.

    >>> parse_numbers(["811", "813-815", "811"])
    [811, 813, 814, 815]
    """
    numbers: list[int] = []
    for word in words:
        first, dash, last = word.partition("-")
        if not (first.isascii() and first.isdigit()) or (dash and not (last.isascii() and last.isdigit())):
            raise UsageError(
                f"{word!r} is neither a turn number nor a range", where="TURN…", fix="write 813 or 813-820"
            )
        numbers += range(int(first), int(last if dash else first) + 1)
    return list(dict.fromkeys(numbers))
