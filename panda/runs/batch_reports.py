"""What came of a batch, as one HTML page that needs nothing else, and as JUnit XML for a CI server."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from panda.errors import Verdict
from panda.runs.ledger import PlannedTurn, RunFolder, TurnLine
from panda.runs.reports import Case, render_page, write_suite
from panda.store.files import write_atomic

_LEFT = "the run ended before it"


def write_junit(path: Path, run: str, lines: Sequence[TurnLine], left: Sequence[PlannedTurn]) -> None:
    """
    Write a batch as JUnit XML.

    An item that is not as it was to be is a failure; one for which there was no model server is an error. One
    that was not run is an error where others failed, and skipped where --limit left it for another day.
    """
    cases = [
        Case(
            line.user,
            str(line.item),
            line.seconds or 0,
            {"error" if line.result == "away" else "failure": line.findings},
        )
        for line in lines
    ]
    kind = "error" if any(line.findings for line in lines) else "skipped"
    cases += [Case(one.user, str(one.item), 0, {kind: [_LEFT]}) for one in left]
    write_suite(path, f"panda batch {run}", cases)


def write_page(
    path: Path,
    run: RunFolder,
    lines: Sequence[TurnLine],
    left: Sequence[PlannedTurn],
    queries: Mapping[str, str],
) -> None:
    """Write a batch as an HTML page, what failed first."""
    turns = {line.turn for line in lines}  # others have been tried again
    answers = {line.key: line.outcome.answer for line in run.lines() if line.outcome and line.turn in turns}
    page = render_page(
        "batch.html.j2",
        run=run.id,
        answers=answers,
        lines=sorted(lines, key=lambda line: line.verdict is Verdict.SOUND),
        left=left,
        queries=queries,
        failed=sum(line.verdict is not Verdict.SOUND for line in lines),
    )
    write_atomic(path, page)
