"""`panda index rebuild`, `search` and `status`, and the encoder that they use."""

import os
import time
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Annotated

from panda.actions.search import Hit, opened_meaning, search
from panda.cli.command import Invocation, OutputTable, Result, argument, excludes, flag, option, requires
from panda.cli.output_text import grouped_text, one_line, problem_text
from panda.documents.safe_text import count_noun
from panda.documents.times import render_time
from panda.errors import CheckError, Problem, UsageError
from panda.index.full_text import Index, size_of
from panda.index.sources import turn_of
from panda.index.tables import SyncReport
from panda.index.vectors import VectorStore
from panda.retrieval.meaning import IMPORT_TEXTS, Meaning, say_missing
from panda.retrieval.ranking import POOL
from panda.store.files import begin_writing, held_lock, read_json, write_json
from panda.store.layout import users_of

if TYPE_CHECKING:
    from panda.phases.save import SummaryReport


def hit_rows(hits: Sequence[Hit], *, why: bool) -> list[tuple[object, ...]]:
    """The cells of each hit: score, node, day, header, and why if asked for."""
    rows: list[tuple[object, ...]] = []
    for hit in hits:
        entry = hit.ranked.entry
        day = entry.at.date().isoformat() if entry.at else None
        header = one_line(entry.header)
        if (state := hit.research) is not None:
            quality = "quality unknown" if state.quality is None else f"quality {state.quality:.2f}"
            marks = [quality]
            if state.is_low:
                marks.append("low")
            if state.is_expired:
                marks.append("expired")
            header += f" ({', '.join(marks)})"
        row = (f"{hit.ranked.score:.2f}", entry.node_id, day, header)
        rows.append((*row, _why_text(hit)) if why else row)
    return rows


def _why_text(hit: Hit) -> str:
    columns = "; ".join(f"{column}: {' '.join(words)}" for column, words in hit.columns.items())
    bonuses = ", ".join(
        f"{name} +{bonus:.2f}" if name == "period" else f"{name} ×{bonus:.2f}"
        for name, bonus in hit.ranked.bonuses.items()
    )
    around = "" if columns or hit.ranked.bm25 <= 0 else "neighbouring turns"
    ranked = hit.ranked
    cosine = "" if ranked.cosine is None else f" (cosine {ranked.cosine:.2f})"
    shares = f"words {ranked.words:.2f} + meaning {ranked.score - ranked.words:.2f}{cosine}"
    return one_line(f"{columns or around} | bm25 {ranked.bm25:.2f} | {bonuses or 'no bonus'} | {shares}")


def _meaning(invocation: Invocation, index: Index) -> AbstractContextManager[Meaning | None]:
    """As opened_meaning."""
    settings = invocation.settings
    layout = invocation.store(any_user=True)
    return opened_meaning(settings, layout, index, invocation.environ, invocation.layers)


def fill_imported(invocation: Invocation, users: Sequence[str]) -> None:
    """Fill in the first vectors of users who have new turns, and tell how many are missing."""
    index = Index(invocation.store(any_user=True))
    with _meaning(invocation, index) as meaning:
        missing = [meaning.fill(user, most=IMPORT_TEXTS) for user in users] if meaning is not None else []
    index.close()
    if any(missing):
        invocation.reporter.warn(say_missing(sum(missing)))


def fill_vectors(invocation: Invocation, index: Index, users: Sequence[str], *, full: bool) -> None:
    """
    Fill in all vectors that are missing, with a bar; what was kept stays when that is interrupted. With
    *full* these are all users, and other vectors are dropped.
    """
    started = time.monotonic()
    with _meaning(invocation, index) as meaning:
        if meaning is None:
            return
        missing = sum(meaning.count_missing(user) for user in users)
        for user in users:
            meaning.fill(user)
        if full:
            meaning.drop_others(users)
    if missing:
        invocation.reporter.step(
            f"vectors of {count_noun(missing, 'source')}, {time.monotonic() - started:.1f} s"
        )


@excludes("full", ["user"], fix="leave it out: --full is for all users")
@requires("limit", "summaries", True)
@requires("max_seconds", "summaries", True)
def rebuild(
    invocation: Invocation,
    full: Annotated[bool, flag("Start from nothing; for all users.", "--full")] = False,
    summaries: Annotated[bool, flag("First write missing summaries.", "--summaries")] = False,
    limit: Annotated[int | None, option("Most summaries.", "N", show_default="all", min=1)] = None,
    max_seconds: Annotated[
        float | None, option("Begin no summary after so long.", "S", show_default="any", min=0)
    ] = None,
) -> Result:
    """
    Bring the index in line with the files.

    Reads what was added or changed and drops what is gone, of all users or of the one given with --user. A
    file that cannot be parsed is reported, the rest is indexed, and the command ends with 3. What of a note's
    front matter is read as text, and which files in knowledge/ are no notes, is told by kind.

    Then the vectors that are missing are computed, the newest first; --full also drops those of texts that
    are nowhere any more. Interrupted, it goes on where it stopped.

    With --summaries, saved turns that lack one get a summary first, with the recipe of phase 7. An
    interrupted run goes on where it stopped.

    Example: panda index rebuild --summaries --limit 10
    """
    settings = invocation.settings
    user = settings.user if settings.origin("user") != "default" else None
    written = _summarise(invocation, user, limit, max_seconds) if summaries else None
    index = _index(invocation)
    reports = _rebuilt(invocation, index, user, full=full)
    problems = [problem for report in reports.values() for problem in report.problems]
    fill_vectors(invocation, index, list(reports), full=full)
    data = {"full": full, **_rebuilt_data(reports, written)}
    if written is not None:
        problems += written.problems
    if not problems:
        return Result(data)
    error = CheckError(f"files that cannot be indexed: {len(problems)}", fix="mend or remove them")
    return Result(data, "".join(problem_text(problem) for problem in problems), error=error)


def search_nodes(
    invocation: Invocation,
    query: Annotated[str, argument("What to look for.", "QUERY")],
    k: Annotated[int, option("Most results.", "K", "-k", min=1, max=POOL)] = 30,
    session: Annotated[str | None, option("Only turns of this session.", "ID", show_default="all")] = None,
    since: Annotated[str | None, option("Only from this time on.", "DATE", show_default="all")] = None,
    explain: Annotated[bool, flag("Say why each was found.", "--explain")] = False,
) -> Result:
    """
    Show what the index finds for a query, best first.

    Example: panda index search "gaming laptop" --explain --user demo
    """
    if not query.strip():
        fix = 'give words, as in panda index search "gaming laptop"'
        raise UsageError("the query is empty", where="QUERY", fix=fix)
    settings = invocation.settings
    index = _index(invocation)
    with _meaning(invocation, index) as meaning:
        data, hits = search(
            settings, index, meaning, query=query, limit=k, session=session, since=since, why=explain
        )
    if not hits:
        invocation.reporter.step(f"nothing of user {settings.user} is found")
    columns = ["score", "node", "date", "what"]
    if explain:
        columns.append("why")
    return Result(data, OutputTable(columns, hit_rows(hits, why=explain)))


def status(invocation: Invocation) -> Result:
    """
    Say how the index stands to the files of a user.

    Example: panda index status --user demo
    """
    user = invocation.settings.user
    layout = invocation.store()
    index = _index(invocation)
    difference = index.behind(user)
    rows = dict(difference.rows)
    with _meaning(invocation, index) as meaning:
        missing = None if meaning is None else meaning.count_missing(user)
    vector_count = VectorStore(layout).count()
    try:
        rebuilt_at = str(read_json(layout.last_rebuild)["at"])
    except (Problem, KeyError, TypeError):  # never, or made by another hand
        rebuilt_at = None
    size_bytes = size_of(layout.turn_index) + size_of(layout.vectors)
    unreadable = len(difference.retried)
    sources = difference.sources
    turns = sum(turn_of(source) > 0 for source in sources)
    data = {
        "user": user,
        "rows": rows,
        "research": rows.get("research_cache", 0),
        "size_bytes": size_bytes,
        "turns_behind": turns,
        "files_behind": len(sources),
        "unreadable": unreadable,
        "vectors": None if missing is None else {"kept": vector_count, "rows_missing": missing},
        "fresh": not sources,
        "rebuilt_at": rebuilt_at,
    }
    lack = f"; {count_noun(missing, 'row')} without one: panda index rebuild" if missing else ""
    files = count_noun(len(sources) - turns, "file")
    behind = f"behind by {count_noun(turns, 'turn')} and {files}"
    cells: list[tuple[str, object]] = [
        *((f"rows: {name}", count) for name, count in rows.items()),
        ("research files", data["research"]),
        ("size", f"{size_bytes / 1e6:.1f} MB"),
    ]
    if missing is not None:
        cells.append(("vectors", f"{vector_count:,}{lack}"))
    cells.append(("state", behind if sources else "fresh"))
    if unreadable:
        cells.append(("unreadable files", unreadable))
    cells.append(("last rebuild", rebuilt_at or "never"))
    return Result(data, OutputTable(("what", "value"), cells))


def _rebuilt_data(reports: Mapping[str, SyncReport], written: "SummaryReport | None") -> dict[str, object]:
    problem_keys = ("where", "message", "fix")
    users = {
        name: {
            "updated": report.updated,
            "removed": report.removed,
            "problems": [{key: getattr(problem, key) for key in problem_keys} for problem in report.problems],
            "as_text": [{key: getattr(fault, key) for key in problem_keys} for fault in report.faults],
        }
        for name, report in reports.items()
    }
    if written is None:
        return {"users": users, "summaries": None}
    counts = {"written": written.written, "failed": len(written.problems), "left": written.left}
    return {"users": users, "summaries": counts}


def _summarise(
    invocation: Invocation, user: str | None, limit: int | None, max_seconds: float | None
) -> "SummaryReport":
    from panda.phases.save import write_summaries

    layout = invocation.store_for_writing()
    reporter = invocation.reporter
    app = invocation.open_app(layout)
    users = [user] if user is not None else users_of(layout)
    stores = [layout.of(name) for name in users]

    with held_lock(
        layout.summaries_lock,
        holder=f"panda index rebuild --summaries (process {os.getpid()})",
        wait_seconds=invocation.settings.wait_seconds,
    ):
        report = write_summaries(app.executor, stores, limit=limit, max_seconds=max_seconds)
    done = f"summaries: {report.written} written, {len(report.problems)} failed, {report.left} left"
    reporter.step(f"{done}, {report.seconds:.1f} s")
    return report


def _rebuilt(invocation: Invocation, index: Index, user: str | None, *, full: bool) -> dict[str, SyncReport]:
    """Bring the index in line, with a bar; before that, what killed commands left in the store goes."""
    layout = invocation.store()
    if not layout.read_only_mark.exists():
        begin_writing(layout.root, invocation.settings.project_dir)
    started = time.monotonic()
    reports = index.rebuild(None if user is None else [user], full=full)
    if not layout.read_only_mark.exists():
        seconds = round(time.monotonic() - started, 3)
        at = render_time(invocation.settings.clock())
        write_json(layout.last_rebuild, {"at": at, "full": full, "seconds": seconds})
    done = reports.values()
    invocation.reporter.step(
        f"{sum(report.updated for report in done)} indexed, {sum(report.removed for report in done)} gone, "
        f"{sum(len(report.problems) for report in done)} unreadable, {time.monotonic() - started:.1f} s"
    )
    for line in grouped_text(fault for report in done for fault in report.faults).splitlines():
        invocation.reporter.step(line)
    return reports


def _index(invocation: Invocation) -> Index:
    return Index(invocation.store(), wait_seconds=invocation.settings.wait_seconds)
