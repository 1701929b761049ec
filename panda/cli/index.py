"""`panda index rebuild`, `panda index search` and `panda index status`."""

import json
from datetime import datetime
from pathlib import Path
from typing import Annotated

import typer

from panda.cli.contract import Invocation, Result, Table
from panda.cli.index_texts import (
    hit_rows,
    hit_value,
    problem_lines,
    report_value,
    stale_warnings,
    status_rows,
    status_value,
)
from panda.documents.times import parse_time
from panda.errors import CheckError, UsageError
from panda.retrieval.ranking import POOL, Bounds
from panda.retrieval.searching import answer_questions, read_questions, search_index
from panda.storage.index import Index
from panda.storage.index_rebuild import index_status, rebuild_index
from panda.storage.index_scan import count_turns


def rebuild(
    invocation: Invocation,
    full: Annotated[bool, typer.Option("--full", help="Start from nothing; for all users.")] = False,
) -> Result:
    """
    Bring the index in line with the files.

    Reads what was added or changed and drops what is gone, of all users or of the one given with --user. A
    file that cannot be parsed is reported, the rest is indexed, and the command ends with 3.
    """
    settings, layout = invocation.settings, invocation.store()
    user = settings.user if settings.origin("user") != "default" else None
    with invocation.reporter.progress("indexing", count_turns(layout)) as advance:
        report = rebuild_index(
            _index(invocation), layout, settings.clock, user=user, full=full, watch=advance
        )
    done = f"{report.updated} indexed, {report.removed} gone, {len(report.problems)} unreadable"
    invocation.reporter.step(f"{done}, {report.seconds:.1f} s")
    data = {"full": full, "users": {name: report_value(one) for name, one in report.users.items()}}
    if not report.problems:
        return Result(data)
    error = CheckError(f"files that cannot be indexed: {len(report.problems)}", fix="mend or remove them")
    return Result(data, problem_lines(report.problems), error=error)


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
    """
    if batch is not None:
        only = query is None and session is None and since is None and not explain
        return _search_batch(invocation, batch, k, only=only)
    if query is None:
        raise UsageError("QUERY is missing", where="QUERY", fix="give a query, or a file with --batch")
    settings, bounds = invocation.settings, Bounds(session=session, since=_instant(since))
    invocation.store()
    hits, report = search_index(
        _index(invocation), settings.user, query, now=settings.clock(), limit=k, bounds=bounds
    )
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
    """Say how the index stands to the files of a user."""
    found = index_status(_index(invocation), invocation.store(), invocation.settings.user)
    data = {"user": invocation.settings.user, **status_value(found)}
    return Result(data, Table(("what", "value"), status_rows(found)))


def _search_batch(invocation: Invocation, file: Path, limit: int, *, only: bool) -> Result:
    if not only:
        message = "--batch goes with -k alone"
        raise UsageError(message, where="--batch", fix="leave out QUERY, --session, --since and --explain")
    invocation.store()
    answers, reports = answer_questions(_index(invocation), read_questions(file), limit=limit)
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
