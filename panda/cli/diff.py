"""`panda diff`: two runs, or a run and the saved turns, compared."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from panda.cli.completion import complete_runs
from panda.cli.contract import Invocation, Result, Table
from panda.cli.plain_text import clipped
from panda.documents.problems import Verdict
from panda.errors import CheckError

if TYPE_CHECKING:  # imported when runs are compared: help must not wait for them
    from panda.replays.comparing import RunDiff

_RUN = {"metavar": "RUN", "autocompletion": complete_runs}


def diff(
    invocation: Invocation,
    before: Annotated[
        str, typer.Argument(help="A run's id or directory, last, or saved for the turns as saved.", **_RUN)
    ],
    after: Annotated[str, typer.Argument(help="Another one.", **_RUN)],
    max_flips: Annotated[int, typer.Option(help="Decisions that may flip.", min=0, metavar="N")] = 0,
    max_answers: Annotated[int, typer.Option(help="Answers that may change.", min=0, metavar="N")] = 0,
    max_tokens: Annotated[
        float | None, typer.Option(help="Most growth of tokens.", metavar="PERCENT", show_default=False)
    ] = None,
    max_seconds: Annotated[
        float | None, typer.Option(help="Most growth of seconds.", metavar="PERCENT", show_default=False)
    ] = None,
    allow_missing: Annotated[
        bool, typer.Option("--allow-missing", help="Let turns pass that only one run holds or has ended.")
    ] = False,
    junit: Annotated[
        Path | None, typer.Option(help="Write JUnit XML here; makes missing folders.", metavar="FILE")
    ] = None,
    html: Annotated[
        Path | None, typer.Option(help="Write one self-contained page; the same.", metavar="FILE")
    ] = None,
) -> Result:
    """
    Compare two runs: decisions flipped, answers changed, tokens and seconds; exit 3 past what is allowed.

    A turn that is missing on one side, failed or was not finished is not equal: it ends with 3 as well, and
    so does a run that was killed or compares nothing.

    Example: panda diff saved last --html report.html
    """
    from panda.replays.comparing import Thresholds, compare_runs, find_regressions
    from panda.replays.sides import load_sides

    one, two = load_sides(invocation.store(), before, after)
    found = compare_runs(one, two)
    allowed = Thresholds(max_flips, max_answers, max_tokens, max_seconds, missing=allow_missing)
    regressions = find_regressions(found, allowed)
    if junit is not None:
        from panda.replays.junit import write_junit

        write_junit(junit, found, one, two, allowed)
    if html is not None:
        from panda.replays.page import write_page

        write_page(html, found, one, two, regressions)
    return result_of(found, regressions, f"{one.name} → {two.name}", [one.name, two.name])


def result_of(found: "RunDiff", regressions: list[str], where: str, runs: list[str]) -> Result:
    """
    What a comparison ends with.

    Args:
        found: The differences.
        regressions: What is more than was allowed, a sentence each.
        where: The two sides, for the error.
        runs: Their names.
    """
    rows: list[tuple[object, ...]] = [
        (flip.turn, flip.recipe, flip.name, _short(flip.before), _short(flip.after))
        for flip in found.flips
        if flip.first  # the others of a turn follow from it; --json and --html have all
    ]
    rows += [
        (change.turn, change.recipe, "answer", _short(change.before), _short(change.after))
        for change in found.answers
    ]
    rows += [
        (one.turn, "", Verdict.NOT_JUDGED, "", _short(f"{one.side}: {one.reason}"))
        for one in found.not_judged
    ]
    data = {"runs": runs, "verdict": found.verdict, **found.to_json(), "regressions": regressions}
    table = Table(("turn", "recipe", "what", "before", "after"), rows)
    error = CheckError("; ".join(regressions), where=where, fix="see the rows above, or --html FILE")
    return Result(data, table, error=error if regressions else None)


def _short(value: object) -> str:
    return clipped(str("" if value is None else value), 60)
