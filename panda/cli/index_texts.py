"""What the index commands print: lines, cells and JSON values."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from panda.cli.plain_text import one_line
from panda.documents.problems import Problem
from panda.documents.times import render_time
from panda.retrieval.research import ResearchState
from panda.retrieval.searching import Hit
from panda.storage.index import SyncReport
from panda.storage.index_rebuild import IndexStatus, RebuildReport

if TYPE_CHECKING:
    from panda.phases.summarizing import SummaryReport


def problem_lines(problems: Iterable[Problem]) -> str:
    """A line for each file, and its fix below it."""
    return "".join(
        f"{one_line(one.where)}: {one_line(one.message)}\n"
        + (f"  fix: {one_line(one.fix)}\n" if one.fix else "")
        for one in problems
    )


def stale_warnings(report: SyncReport) -> list[str]:
    """What a command that read the index has to say about its age and about files that it lacks."""
    warnings = [f"not in the index: {one.told}" for one in report.problems]
    if report.behind:
        changes = "change" if report.behind == 1 else "changes"
        warnings.append(f"the index is {report.behind} {changes} behind: another process is writing it")
    return warnings


def hit_rows(hits: Sequence[Hit], *, why: bool) -> list[tuple[object, ...]]:
    """The cells of each hit: score, node, day, header, and why if asked for."""
    rows: list[tuple[object, ...]] = []
    for hit in hits:
        entry = hit.ranked.entry
        day = entry.at.date().isoformat() if entry.at else None
        header = one_line(entry.header) + (f" ({_state_text(hit.research)})" if hit.research else "")
        row = (f"{hit.ranked.score:.2f}", entry.node_id, day, header)
        rows.append((*row, _why_text(hit)) if why else row)
    return rows


def hit_value(hit: Hit, *, why: bool) -> dict[str, object]:
    """A hit as a JSON value."""
    entry, ranked = hit.ranked.entry, hit.ranked
    value: dict[str, object] = {
        "node_id": entry.node_id,
        "source_type": entry.source_type,
        "turn": entry.number,
        "session": entry.session,
        "at": _time(entry.at),
        "score": round(ranked.score, 4),
        "header": entry.header,
    }
    if hit.research:
        state = hit.research
        value["research"] = {
            "quality": None if state.quality is None else round(state.quality, 2),
            "expires_at": _time(state.entry.expires_at),
            "expired": state.is_expired,
            "low": state.is_low,
        }
    if why:
        bonuses = {name: round(bonus, 3) for name, bonus in ranked.bonuses.items()}
        value["why"] = {
            "words": round(ranked.words, 4),
            "meaning": round(ranked.score - ranked.words, 4),
            "cosine": None if ranked.cosine is None else round(ranked.cosine, 4),
            "bm25": round(ranked.bm25, 4),
            "columns": dict(hit.columns),
            "bonuses": bonuses,
        }
    return value


def status_value(status: IndexStatus, missing: int | None) -> dict[str, object]:
    """The status as a JSON value; *missing* rows lack vectors, None without an encoder."""
    return {
        "rows": dict(status.rows),
        "research": status.research,
        "size_bytes": status.size_bytes,
        "vectors": None if missing is None else {"kept": status.vectors, "rows_missing": missing},
        "fresh": not status.files_behind,
        "turns_behind": status.turns_behind,
        "files_behind": status.files_behind,
        "unreadable": status.unreadable,
        "rebuilt_at": _time(status.rebuilt_at),
    }


def status_rows(status: IndexStatus, missing: int | None) -> list[tuple[str, object]]:
    """The same as name and value."""
    behind = f"{status.turns_behind} turns behind ({status.files_behind} files)"
    return [
        *((f"rows: {name}", count) for name, count in status.rows.items()),
        ("research files", status.research),
        ("size", f"{status.size_bytes / 1e6:.1f} MB"),
        *([] if missing is None else [("vectors", _vectors_text(status.vectors, missing))]),
        ("state", behind if status.files_behind else "fresh"),
        *([("unreadable files", status.unreadable)] if status.unreadable else []),
        ("last rebuild", _time(status.rebuilt_at) or "never"),
    ]


def _vectors_text(kept: int, missing: int) -> str:
    return f"{kept:,}" + (f"; {missing:,} rows lack some: panda index rebuild" if missing else "")


def rebuild_line(report: RebuildReport) -> str:
    """What a rebuild did, as one line."""
    done = f"{report.updated} indexed, {report.removed} gone, {len(report.problems)} unreadable"
    return f"{done}, {report.seconds:.1f} s"


def rebuild_value(
    report: RebuildReport, *, full: bool, summaries: "SummaryReport | None"
) -> dict[str, object]:
    """The same as a JSON value, with what the summariser did before."""
    users = {name: _report_value(one) for name, one in report.users.items()}
    if summaries is None:
        return {"full": full, "users": users, "summaries": None}
    done = {"written": summaries.written, "failed": len(summaries.problems), "left": summaries.left}
    return {"full": full, "users": users, "summaries": done}


def _report_value(report: SyncReport) -> dict[str, Any]:
    problems = [{"where": one.where, "message": one.message, "fix": one.fix} for one in report.problems]
    return {"updated": report.updated, "removed": report.removed, "problems": problems}


def summary_line(report: "SummaryReport") -> str:
    """What a run of the summariser did, as one line."""
    done = f"summaries: {report.written} written, {len(report.problems)} failed, {report.left} left"
    return f"{done}, {report.seconds:.1f} s"


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


def _state_text(state: ResearchState) -> str:
    quality = "quality unknown" if state.quality is None else f"quality {state.quality:.2f}"
    return ", ".join(
        [quality, *(["low"] if state.is_low else []), *(["expired"] if state.is_expired else [])]
    )


def _time(moment: datetime | None) -> str | None:
    return render_time(moment) if moment else None
