"""`panda batch`: many queries, each run once."""

import json
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, nullcontext, suppress
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from panda.cli.command import (
    SEED_DEFAULT,
    Invocation,
    NewUser,
    OutputTable,
    Result,
    argument,
    excludes,
    flag,
    option,
    report_file,
    requires,
)
from panda.cli.completion import complete_runs
from panda.cli.output_text import clipped, read_lines
from panda.documents.record_codec import encode
from panda.documents.safe_text import count_noun
from panda.errors import CheckError, Problem, TryAgainError, UsageError
from panda.store.files import open_output, read_text, store_errors
from panda.trust import load_models

if TYPE_CHECKING:
    from panda.runs.batches import Batch
    from panda.runs.cluster import Cluster
    from panda.runs.ledger import RunFolder, TurnLine
    from panda.runs.pool import Workers
    from panda.runs.queries import Query

_NAMED = 20


@excludes("resume", ["live", "save", "new_user"], fix="leave it out: a run has its own")
@excludes("dry_run", ["resume", "out", "junit", "html", "retry_failed"])
@requires("address", "engine", "dask")
@requires("live", "save", True)
@excludes("address", ["live", "jobs"], fix="leave it out: the cluster has its own workers and its own copies")
def batch(
    invocation: Invocation,
    queries: Annotated[
        str | None, argument("JSON lines with id, query and more; - reads standard input.", "QUERIES.jsonl|-")
    ] = None,
    jobs: Annotated[
        int | None,
        option(
            "Worker processes.", "N", show_default="1, or as many as the model servers take at once", min=1
        ),
    ] = None,
    out: Annotated[
        str | None,
        option(
            "Write what came of each item, a JSON line as it ends; - writes to stdout.",
            "FILE|-",
            show_default="none",
        ),
    ] = None,
    resume: Annotated[
        str | None,
        option("Go on with a batch; last is the newest.", "RUN", complete=complete_runs, show_default="none"),
    ] = None,
    retry_failed: Annotated[bool, flag("Run again what failed, too.", "--retry-failed")] = False,
    max_failures: Annotated[
        int | None, option("Begin no further item after so many failures.", "N", show_default="any", min=1)
    ] = None,
    limit: Annotated[
        int | None, option("Run at most so many now; --resume goes on.", "N", show_default="all", min=1)
    ] = None,
    save: Annotated[bool, flag("Take the turns into the store, with what they tell.", "--save")] = False,
    live: Annotated[
        bool, flag("Let items see what is in the store by then, not as the batch began.", "--live")
    ] = False,
    dry_run: Annotated[
        bool, flag("Only check the lines, and estimate tokens and time from the log.", "--dry-run")
    ] = False,
    junit: Annotated[Path | None, report_file("Write JUnit XML for a CI server.")] = None,
    html: Annotated[Path | None, report_file("Write one self-contained page.")] = None,
    engine: Annotated[
        str, option("local: processes of this machine; dask: a cluster.", "local|dask")
    ] = "local",
    address: Annotated[
        str | None, option("Scheduler, as tcp://10.0.0.5:8786.", "URL", show_default="none")
    ] = None,
    seed: Annotated[
        int | None, option(f"Seed of every model call.  {SEED_DEFAULT}", "N", show_default=False)
    ] = None,
    new_user: NewUser = False,
) -> Result:
    """
    Run many queries, each exactly once; exit 3 if any fails, 75 if all fail for want of a model server. A
    failure is told once: --resume ends with 0 where nothing fails anew.

    A line is {"id", "query", "user"?, "session"?, "mode"?, "expect"?}; expect is {"contains"?,
    "not_contains"?, "cites"?, "exit_code"?, "answered"?, "outcome"?}, an outcome such as "unsure", or a list.
    Lines of one session run in order, sessions side by side. An item sees the store as it was when the batch
    began, and the turns of its own session. Turns, and what they tell, stay in the run; --save takes them
    into the store, in the order of the lines. Whatever is killed: --resume goes on where it stopped.

    Example: panda batch queries.jsonl --jobs 2 --save --junit report.xml
    """
    from panda.runs.cluster import connect_cluster

    _check_usage(queries, resume, out, as_json=invocation.as_json, retry_failed=retry_failed)
    _check_files(queries, out, junit, html)
    new_queries = None if queries is None else _read(queries, invocation)
    if dry_run:
        return _estimated(invocation, len((new_queries or [])[:limit]), jobs)
    cluster = connect_cluster(engine, address)  # before anything is made for it
    modes = {"live": live, "save": save, "retry_failed": retry_failed}
    run, lines = _opened_run(invocation, new_queries, resume, **modes)
    limits = {"most": limit, "max_failures": max_failures}
    batch_run = _executed(invocation, run, lines, (cluster, jobs), limits, out=out, retry_failed=retry_failed)
    _write_reports(batch_run, run, junit, html)
    failed = [line for line in batch_run.failed if line.item not in batch_run.reported]
    if earlier := len(batch_run.failed) - len(failed):
        noun = "item" if earlier == 1 else "items"
        again = f"panda batch --resume {run.id} --retry-failed runs them again"
        invocation.reporter.step(f"{earlier} {noun} failed earlier: {again}")
    shows_rows = out != "-" and not (invocation.reporter.quiet and not failed)
    return replace(_result(batch_run, run, failed, shows_rows=shows_rows), after_output=batch_run.report)


def _opened_run(
    invocation: Invocation,
    new_queries: "list[Query] | None",
    resume: str | None,
    *,
    live: bool,
    save: bool,
    retry_failed: bool,
) -> "tuple[RunFolder, list[Query]]":
    """A new run of queries, or one that is gone on with, and its queries."""
    from panda.runs.batches import begin_batch, resume_batch
    from panda.runs.ledger import open_run

    layout = invocation.store_for_writing()
    settings = invocation.settings
    if resume is None:
        queries = new_queries or []
        for query in queries:
            invocation.make_user(layout.of(query.user or settings.user))
        return begin_batch(settings, invocation.environ, queries, live=live, save=save), queries
    run = open_run(layout, resume, of_batch=True)
    return run, resume_batch(settings, invocation.environ, run, new_queries, retry_failed=retry_failed)


def _executed(
    invocation: Invocation,
    run: "RunFolder",
    queries: "list[Query]",
    workers: "tuple[Cluster | None, int | None]",
    limits: dict[str, int | None],
    *,
    out: str | None,
    retry_failed: bool,
) -> "Batch":
    """A batch whose items have been run, as far as the limits let it."""
    from panda.cli.index import fill_imported
    from panda.runs.batches import Batch

    plan = run.plan()
    reporter = invocation.reporter
    invocation.store(any_user=True)
    with run.hold(), _lines_to(out, invocation) as write:
        batch_run = Batch(invocation.settings, run, queries, is_remote=workers[0] is not None)
        if plan.saves:
            fill_imported(invocation, batch_run.users)
        try:
            for line in batch_run.prepare(retry_failed=retry_failed):
                write(line)
            ended = batch_run.execute(_workers(invocation, batch_run, *workers), **limits)
            with closing(ended), reporter.progress("batch", len(batch_run.left[: limits["most"]])) as advance:
                for line in ended:
                    write(line)
                    advance()
        except BaseException:
            reporter.step(f"panda batch --resume {run.id} goes on with what is left")
            raise
        if plan.saves:
            fill_imported(invocation, batch_run.users)
    return batch_run


def _workers(
    invocation: Invocation, batch_run: "Batch", cluster: "Cluster | None", jobs: int | None
) -> "Workers":
    """Those of the cluster, or processes: as many as the models serve at once, if it is not said how many."""
    from panda.runs.item import BatchWorker
    from panda.runs.pool import Processes

    settings = invocation.settings
    if cluster is None:
        worker = BatchWorker(settings, invocation.environ, batch_run.start)
        return Processes(worker, jobs or load_models(settings).width or 1)
    if batch_run.start is None:
        raise UsageError("a live batch runs on this machine alone", where="--engine", fix="leave it out")
    return cluster.begin(settings, batch_run.start, batch_run.ran_on)


def _check_usage(
    queries: str | None, resume: str | None, out: str | None, *, as_json: bool, retry_failed: bool
) -> None:
    if queries is None and resume is None:
        fix = "as in panda batch queries.jsonl"
        raise UsageError("give QUERIES or --resume RUN", where="QUERIES.jsonl|-", fix=fix)
    if retry_failed and resume is None:
        fix = "give --resume RUN, whose items are meant"
        raise UsageError("--retry-failed goes with --resume", where="--retry-failed", fix=fix)
    if out == "-" and as_json:
        raise UsageError("--out - and --json both write to stdout", where="--out", fix="give --out a file")
    if out not in (None, "-") and not Path(str(out)).parent.is_dir():
        fix = f"make it first: mkdir -p {Path(str(out)).parent}"
        raise UsageError(f"there is no directory {Path(str(out)).parent}", where="--out", fix=fix)
    if out not in (None, "-"):
        with open_output(str(out), "a"):
            pass  # whether it can be written shows before any work


def _check_files(queries: str | None, *written: object) -> None:
    for path in (Path(str(name)) for name in written if name not in (None, "-")):
        if queries is not None and queries != "-" and path.resolve() == Path(queries).resolve():
            raise UsageError(f"{path} is the file of the queries", where=str(path), fix="write another one")


def _read(queries: str, invocation: Invocation) -> "list[Query]":
    from panda.runs.queries import read_queries

    store = invocation.store()

    def check_user(user: str, where: str) -> None:
        invocation.check_user(store.of(user), where)

    if queries == "-":
        return read_queries(read_lines(invocation.stdin), name="stdin", check_user=check_user)
    text = read_text(queries, pipe=True).removeprefix("\ufeff")  # as some editors begin a file
    return read_queries(text.split("\n"), name=queries, check_user=check_user)


@contextmanager
def _lines_to(out: str | None, invocation: Invocation) -> Iterator[Callable[[dict[str, Any]], None]]:
    """
    Yield a function that writes the line of each item as it ends; it does nothing if *out* is None, and a
    reader that has gone is no error.
    """
    if out is None:
        yield lambda line: None
        return
    with nullcontext(invocation.stdout) if out == "-" else open_output(out, "w") as file:

        def write(line: dict[str, Any]) -> None:
            with store_errors(str(out), "write"), suppress(BrokenPipeError):
                file.write(json.dumps(line, ensure_ascii=False, separators=(",", ":")) + "\n")
                file.flush()

        yield write


def _estimated(invocation: Invocation, items: int, jobs: int | None) -> Result:
    from panda.runs.batches import estimate

    cost = estimate(invocation.store(any_user=True), items)
    seconds = None if cost.seconds is None else cost.seconds / (jobs or 1)
    rows = [(cost.items, cost.tokens, seconds, cost.turns)]
    return Result(
        {**asdict(cost), "jobs": jobs or 1, "wall_seconds": seconds},
        OutputTable(("items", "tokens", "seconds", "estimated from turns"), rows),
    )


def _write_reports(batch_run: "Batch", run: "RunFolder", junit: Path | None, html: Path | None) -> None:
    from panda.runs.reports import write_batch_junit, write_batch_page

    ended_items = {line.item for line in batch_run.lines}
    left = [planned for planned in batch_run.left if planned.item not in ended_items]
    if junit is not None:
        write_batch_junit(junit, run.id, batch_run.lines, left)
    if html is not None:
        write_batch_page(html, run, batch_run.lines, left, batch_run.texts)


def _result(batch_run: "Batch", run: "RunFolder", failed: "list[TurnLine]", *, shows_rows: bool) -> Result:
    names = ("item", "result", "exit_code", "turn", "user", "seconds", "findings")
    items = [
        {**{name: getattr(line, name) for name in names}, "outcome": line.turn_outcome}
        for line in batch_run.lines
    ]
    data = {
        "run": run.id,
        "directory": str(run.directory),
        "results": dict(Counter(str(line.result) for line in batch_run.lines)),
        "left": len(batch_run.left),
        "failed_earlier": len(batch_run.failed) - len(failed),
        "items": items,
    }
    rows = [
        (
            line.item,
            line.result,
            line.turn_outcome,
            line.exit_code,
            line.turn,
            line.seconds,
            clipped("; ".join(line.findings), 60),
        )
        for line in batch_run.lines
    ]
    table = OutputTable(("item", "result", "outcome", "exit", "turn", "seconds", "findings"), rows)
    return Result(encode(data), table if shows_rows else "", error=_error(batch_run, run, failed))


def _error(batch_run: "Batch", run: "RunFolder", failed: "list[TurnLine]") -> Problem | None:
    """
    Why the batch is not as it was to be; one that --limit ended early is.

    Args:
        failed: The items whose failure no earlier command has reported.
    """
    if not failed:
        return None
    is_away = all(line.result == "away" for line in batch_run.lines)
    left = f"; {len(batch_run.left)} left" if batch_run.left else ""
    return (TryAgainError if is_away else CheckError)(
        f"{len(failed)} of {count_noun(len(batch_run.lines), 'item')} failed{left}",
        where=", ".join(str(line.item) for line in failed[:_NAMED]) + (", …" if len(failed) > _NAMED else ""),
        fix=f"panda batch --resume {run.id} --retry-failed runs them again",
    )
