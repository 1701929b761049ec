"""`panda index rebuild`, `panda index search` and `panda index status`."""

import json
import os
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from panda.cli.contract import Invocation, Result, Table
from panda.cli.index_texts import (
    hit_rows,
    hit_value,
    problem_lines,
    rebuild_line,
    rebuild_value,
    stale_warnings,
    status_rows,
    status_value,
    summary_line,
)
from panda.cli.meaning import fill_vectors, opened_meaning
from panda.cli.option_rules import excludes, requires
from panda.cli.plain_text import clipped
from panda.documents.times import parse_time
from panda.errors import CheckError, UsageError
from panda.retrieval.ranking import POOL, Bounds
from panda.retrieval.searching import answer_questions, read_questions, search_index
from panda.storage.index import Index
from panda.storage.index_rebuild import index_status, rebuild_index
from panda.storage.index_scan import count_turns, users_of
from panda.storage.locks import held_lock
from panda.storage.turns import TurnStore

if TYPE_CHECKING:
    from panda.phases.summarizing import SummaryReport

_SUMMARY_CHARS = 100


@excludes("full", "user", fix="leave it out: --full is for all users")
@requires("limit", "summaries", True)
@requires("max_seconds", "summaries", True)
def rebuild(
    invocation: Invocation,
    full: Annotated[bool, typer.Option("--full", help="Start from nothing; for all users.")] = False,
    summaries: Annotated[bool, typer.Option("--summaries", help="First write missing summaries.")] = False,
    limit: Annotated[int | None, typer.Option(help="Most summaries.", min=1, metavar="N")] = None,
    max_seconds: Annotated[
        float | None, typer.Option(help="Begin no summary after so long.", min=0, metavar="S")
    ] = None,
) -> Result:
    """
    Bring the index in line with the files.

    Reads what was added or changed and drops what is gone, of all users or of the one given with --user. A
    file that cannot be parsed is reported, the rest is indexed, and the command ends with 3.

    Then the vectors that are missing are computed, the newest first; --full also drops those of texts that
    are nowhere any more. Interrupted, it goes on where it stopped.

    With --summaries, saved turns that lack one get a summary first, with the recipe of phase 7. An
    interrupted run goes on where it stopped.

    Example: panda index rebuild --summaries --limit 10
    """
    settings, layout = invocation.settings, invocation.store()
    user = settings.user if settings.origin("user") != "default" else None
    written = _summarise(invocation, user, limit, max_seconds) if summaries else None
    index = _index(invocation)
    with invocation.reporter.progress("indexing", count_turns(layout)) as advance:
        report = rebuild_index(index, layout, settings.clock, user=user, full=full, watch=advance)
    invocation.reporter.step(rebuild_line(report))
    fill_vectors(invocation, index, list(report.users), full=full)
    data = rebuild_value(report, full=full, summaries=written)
    problems = [*report.problems, *(written.problems if written else ())]
    if not problems:
        return Result(data)
    error = CheckError(f"files that cannot be indexed: {len(problems)}", fix="mend or remove them")
    return Result(data, problem_lines(problems), error=error)


@excludes("batch", "query", "session", "since", "explain", "user", fix="--batch goes with -k alone")
def search(
    invocation: Invocation,
    query: Annotated[str | None, typer.Argument(help="What to look for.", metavar="QUERY")] = None,
    k: Annotated[int, typer.Option("-k", help="Most results.", min=1, max=POOL, metavar="K")] = 30,
    session: Annotated[str | None, typer.Option(help="Only turns of this session.", metavar="ID")] = None,
    since: Annotated[str | None, typer.Option(help="Only from this time on.", metavar="DATE")] = None,
    explain: Annotated[bool, typer.Option("--explain", help="Say why each was found.")] = False,
    batch: Annotated[
        Path | None,
        typer.Option(help='JSON lines {"user", "question", "at"?} instead of QUERY.', metavar="FILE.jsonl"),
    ] = None,
) -> Result:
    """
    Show what the index finds for a query, best first.

    With --batch, each line of the file is answered with a line of JSON: the turns of that user. Without "at",
    "last week" counts from the newest turn of the user.

    Example: panda index search "gaming laptop" --explain --user demo
    """
    if batch is not None:
        return _search_batch(invocation, batch, k)
    if query is None:
        raise UsageError("QUERY is missing", where="QUERY", fix="give a query, or a file with --batch")
    settings, bounds = invocation.settings, Bounds(session=session, since=_instant(since))
    invocation.store()
    index, user, now = _index(invocation), settings.user, settings.clock()
    with opened_meaning(invocation, index) as meaning:
        hits, report = search_index(index, user, query, now=now, limit=k, bounds=bounds, meaning=meaning)
    for text in stale_warnings(report):
        invocation.reporter.warn(text)
    data = {
        "query": query,
        "user": settings.user,
        "results": [hit_value(hit, why=explain) for hit in hits],
        "behind": report.behind,
    }
    columns = ("score", "node", "date", "what", *(["why"] if explain else []))
    return Result(data, Table(columns, hit_rows(hits, why=explain)))


def status(invocation: Invocation) -> Result:
    """
    Say how the index stands to the files of a user.

    Example: panda index status --user demo
    """
    user, index = invocation.settings.user, _index(invocation)
    found = index_status(index, invocation.store(), user)
    with opened_meaning(invocation, index) as meaning:
        missing = None if meaning is None else meaning.count_missing(user)
    data = {"user": user, **status_value(found, missing)}
    return Result(data, Table(("what", "value"), status_rows(found, missing)))


def _summarise(
    invocation: Invocation, user: str | None, limit: int | None, max_seconds: float | None
) -> "SummaryReport":
    from panda.app import build  # with all it imports: only if it is wanted
    from panda.phases.summarizing import write_summaries

    layout, reporter = invocation.store_for_writing(), invocation.reporter
    app = build(invocation.settings, layout, invocation.environ)
    users = [user] if user is not None else users_of(layout)
    stores = [TurnStore(layout, one, invocation.settings.clock) for one in users]

    def watch(user: str, left: int, number: int, text: str) -> None:
        reporter.step(f"{user}, turn {number}: {clipped(text, _SUMMARY_CHARS)} ({left} left)")

    with held_lock(
        layout.summaries_lock,
        holder=f"panda index rebuild --summaries (process {os.getpid()})",
        wait_seconds=invocation.settings.wait_seconds,
        on_wait=lambda holder: reporter.step(f"waiting for {holder}"),
    ):
        report = write_summaries(app.executor, stores, limit=limit, max_seconds=max_seconds, watch=watch)
    reporter.step(summary_line(report))
    return report


def _search_batch(invocation: Invocation, file: Path, limit: int) -> Result:
    invocation.store()
    index, questions = _index(invocation), read_questions(file)
    with opened_meaning(invocation, index) as meaning:
        answers, reports = answer_questions(index, questions, limit=limit, meaning=meaning)
    for report in reports.values():
        for text in stale_warnings(report):
            invocation.reporter.warn(text)
    lines = "".join(json.dumps(answer, ensure_ascii=False) + "\n" for answer in answers)
    return Result({"answers": answers, "behind": sum(one.behind for one in reports.values())}, lines)


def _index(invocation: Invocation) -> Index:
    return Index(
        invocation.store(),
        wait_seconds=invocation.settings.wait_seconds,
        on_wait=lambda holder: invocation.reporter.step(f"waiting for {holder}"),
    )


def _instant(since: str | None) -> datetime | None:
    try:
        return parse_time(since) if since is not None else None
    except ValueError as exc:
        raise UsageError(f"{since!r} is no date", where="--since", fix="give one as 2026-01-04") from exc
