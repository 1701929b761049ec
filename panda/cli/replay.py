"""`panda replay` and `panda diff`: saved turns run again, and compared."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

from panda.cli.command import (
    Invocation,
    OutputTable,
    Result,
    argument,
    excludes,
    flag,
    option,
    report_file,
    requires,
)
from panda.cli.completion import complete_runs, complete_sessions, complete_turns
from panda.cli.output_text import clipped
from panda.documents.record_codec import encode
from panda.documents.safe_text import count_noun
from panda.documents.times import read_instant
from panda.errors import CheckError, TryAgainError, UsageError, Verdict

if TYPE_CHECKING:
    from panda.runs.compare import RunDiff
    from panda.runs.ledger import Mode, RunFolder, TurnLine

_MODES = ("simulate", "rerun")
_MISSES = ("report", "run")


@requires("on_miss", "mode", "simulate")
@excludes(
    "resume",
    ["selection", "mode", "session", "since", "status", "on_miss"],
    fix="leave it out: a run has its own",
)
def replay(
    invocation: Invocation,
    selection: Annotated[
        list[str] | None,
        argument(
            "Turns: 813, 813-820, 805,811, last, or directories of them.",
            "SELECTION…",
            complete=complete_turns,
        ),
    ] = None,
    mode: Annotated[
        str,
        option("simulate: run with the recorded answers; rerun: run live.", "MODE"),
    ] = "simulate",
    session: Annotated[
        str | None,
        option("Only turns of this session.", "ID", complete=complete_sessions, show_default="all"),
    ] = None,
    since: Annotated[str | None, option("Only turns from this time on.", "TIME", show_default="all")] = None,
    status: Annotated[str | None, option("Only turns of this status.", "STATUS", show_default="all")] = None,
    on_miss: Annotated[
        str, option("simulate: report a call without a recording, or run it live.", "report|run")
    ] = "report",
    workers: Annotated[int, option("Processes that run turns; each loads its own models.", "N", min=1)] = 1,
    resume: Annotated[
        str | None,
        option(
            "Go on with a run that was interrupted; last is the newest.",
            "RUN",
            complete=complete_runs,
            show_default="none",
        ),
    ] = None,
) -> Result:
    """
    Run saved turns again, and compare every document; exit 3 if anything is found.

    What came of it is kept in a new directory under runs/; the saved turns are never touched.

    Example: panda replay 813-820 --workers 2 --user demo
    """
    from panda.runs.ledger import open_run
    from panda.runs.replays import begin_run, resume_run, run_turns
    from panda.runs.select import TurnFilter, select_turns

    if mode == "verify":
        fix = f"panda validate {' '.join(selection or ('SELECTION',))} judges what was saved"
        raise UsageError("replay runs turns again, and judges none", where="--mode", fix=fix)
    _check_word(mode, _MODES, "--mode")
    _check_word(on_miss, _MISSES, "--on-miss")
    settings = invocation.settings
    environ = invocation.environ
    wanted = TurnFilter(session=session, since=read_instant(since or None, "--since"), status=status)
    store = invocation.store_for_writing()
    if resume is not None:
        run = resume_run(settings, environ, open_run(store, resume, of_batch=False))
    else:
        words = selection or []
        places = select_turns(words, wanted, layout=invocation.store, user=settings.user)
        run = begin_run(
            settings,
            environ,
            places,
            store,
            mode=cast("Mode", mode),
            live=on_miss == "run",
            selection=words,
        )
    return _result(run, run_turns(settings, environ, run, workers=workers))


def _check_word(word: str, allowed: Sequence[str], flag: str) -> None:
    if word not in allowed:
        choices = ", ".join(allowed)
        raise UsageError(f"there is no {word!r} for {flag}", where=flag, fix=f"use one of: {choices}")


def _result(run: "RunFolder", lines: "list[TurnLine]") -> Result:
    failed = [line for line in lines if line.verdict is not Verdict.SOUND and line.result != "not judged"]
    rows = [
        (
            line.turn,
            line.result,
            line.turn_outcome,
            len(line.findings),
            len(line.different),
            len(line.misses),
        )
        for line in lines
    ]
    turns = [{**encode(line), "verdict": line.verdict, "outcome": line.turn_outcome} for line in lines]
    results = dict(Counter(line.result for line in lines))
    data = {
        "run": run.id,
        "directory": str(run.directory),
        "mode": run.plan().mode,
        "results": results,
        "turns": turns,
    }
    table = OutputTable(("turn", "result", "outcome", "findings", "different", "misses"), rows)
    unjudged = sum(line.verdict is Verdict.NOT_JUDGED for line in failed)
    other = len(failed) - unjudged
    parts = []
    turn_count = count_noun(len(lines), "turn")
    if other == 1:
        parts.append(f"1 of {turn_count} does not come out as it was saved")
    elif other:
        parts.append(f"{other} of {turn_count} do not come out as they were saved")
    if unjudged:
        parts.append(f"{unjudged} of {turn_count} could not be judged")
    is_away = all(line.result == "away" for line in lines)
    fix = "see above what is told of each turn"
    if any(line.different for line in failed):
        fix = f"panda view {run.id} shows each difference; panda diff saved {run.id} compares decisions"
    error = (TryAgainError if is_away else CheckError)(
        "; ".join(parts),
        where=", ".join(f"turn {line.turn}" for line in failed[:20]) + (", …" if len(failed) > 20 else ""),
        fix=fix,
    )
    return Result(data, table, error=error if failed else None)


def diff(
    invocation: Invocation,
    before: Annotated[
        str,
        argument(
            "A run's id or directory, last, or saved for the turns as saved.", "RUN", complete=complete_runs
        ),
    ],
    after: Annotated[str, argument("Another one.", "RUN", complete=complete_runs)],
    max_flips: Annotated[int, option("Decisions that may flip.", "N", min=0)] = 0,
    max_answers: Annotated[int, option("Answers that may change.", "N", min=0)] = 0,
    max_tokens: Annotated[
        float | None, option("Most growth of tokens.", "PERCENT", show_default="any")
    ] = None,
    max_seconds: Annotated[
        float | None, option("Most growth of seconds.", "PERCENT", show_default="any")
    ] = None,
    allow_missing: Annotated[
        bool, flag("Let turns pass that only one run holds or has ended.", "--allow-missing")
    ] = False,
    junit: Annotated[Path | None, report_file("Write JUnit XML here.")] = None,
    html: Annotated[Path | None, report_file("Write one self-contained page here.")] = None,
) -> Result:
    """
    Compare two runs: decisions flipped, answers changed, tokens and seconds; exit 3 past what is allowed.

    A turn that is missing on one side, failed or was not finished is not equal: it ends with 3 as well, and
    so does a run that was killed or compares nothing.

    Example: panda diff saved last --html report.html --user demo
    """
    from panda.runs.compare import Thresholds, compare_runs, find_regressions, load_sides

    first_side, second_side = load_sides(invocation.store(), before, after)
    run_diff = compare_runs(first_side, second_side)
    allowed = Thresholds(max_flips, max_answers, max_tokens, max_seconds, missing=allow_missing)
    regressions = find_regressions(run_diff, allowed)
    if junit is not None:
        from panda.runs.reports import write_diff_junit

        write_diff_junit(junit, run_diff, first_side, second_side, allowed)
    if html is not None:
        from panda.runs.reports import write_diff_page

        write_diff_page(html, run_diff, first_side, second_side, regressions)
    invocation.reporter.step(
        f"turns compared: {run_diff.turns}, decisions flipped: {len(run_diff.flips)}, "
        f"answers changed: {len(run_diff.answers)}, not compared: {len(run_diff.not_judged)}"
    )
    return result_of(
        run_diff, regressions, f"{first_side.name} → {second_side.name}", [first_side.name, second_side.name]
    )


def result_of(run_diff: "RunDiff", regressions: list[str], where: str, runs: list[str]) -> Result:
    """
    Return the result of a comparison; the regressions are what is more than was allowed, a sentence each.
    """
    rows: list[tuple[object, ...]] = [
        (flip.turn, flip.recipe, flip.name, _short(flip.before), _short(flip.after))
        for flip in run_diff.flips
        if flip.first  # the others of a turn follow from it; --json and --html have all
    ]
    rows += [
        (change.turn, change.recipe, "answer", _short(change.before), _short(change.after))
        for change in run_diff.answers
    ]
    rows += [
        (unjudged.turn, "", Verdict.NOT_JUDGED, "", _short(f"{unjudged.side}: {unjudged.reason}"))
        for unjudged in run_diff.not_judged
    ]
    data = {"runs": runs, "verdict": run_diff.verdict, **encode(run_diff), "regressions": regressions}
    table = OutputTable(("turn", "recipe", "what", "before", "after"), rows)
    error = CheckError("; ".join(regressions), where=where, fix="see the rows above, or --html FILE")
    return Result(data, table, error=error if regressions else None)


def _short(value: object) -> str:
    return clipped(str("" if value is None else value), 60)
