"""What each turn did, in short: the record of its summary.json, and what later turns keep of it. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from panda.session.clipping import clip
from panda.session.decoding import decode, encode
from panda.session.entities import curation_of
from panda.session.flow import flow_of
from panda.session.questions_open import raised_by
from panda.session.step_records import blocked_reason, entity_ops, errors_of, step_records, step_type
from panda.session.turn_files import TurnFiles
from panda.session.values import Carry, Curation, Outcome, SummaryKind, TurnSummary

WHOLE, LINES = 2, 20
_LINE_CHARS, _GOAL_CHARS = 240, 200


@dataclass(frozen=True, kw_only=True)
class SessionTexts:
    """What phase 7 wrote for the session, as summary.json holds it; None where nothing was asked for."""

    assistant_summary: str | None = None
    """The reply in short."""
    assistant_summary_kind: SummaryKind | None = None
    """How it came about."""
    history: str | None = None
    """The history with what fell out of the recent turns; None with a turn to merge means that it failed."""
    history_kind: SummaryKind | None = None
    """How it came about."""
    engagement: str | None = None
    """What the session is about."""
    engagement_kind: SummaryKind | None = None
    """How it came about."""


def summary_of(previous: Carry, files: TurnFiles) -> TurnSummary:
    """
    What a turn did: as its summary.json says it, or made of its other files.

    Args:
        previous: What the turn found.
        files: The turn. A summary.json of an older form gives outcome and text alone.
    """
    written: Mapping[str, Any] = files.summary or {}
    names = TurnSummary.__dataclass_fields__
    if "steps" in written:
        kept = {name: value for name, value in written.items() if name in names and value is not None}
        found = decode(TurnSummary, kept, where=f"{files.directory}/summary.json")
        said = found.turn_summary or clip(line_of(files), _LINE_CHARS)
        return replace(found, turn_summary=said)
    outcome: Outcome = written.get("outcome", "imported")
    calls = [call for _, call in files.calls()]
    plan = files.plan or {}
    records = step_records(files)
    curation = curation_of(files)
    line = written.get("turn_summary") or line_of(files)
    return TurnSummary(
        turn=files.turn,
        outcome=outcome,
        decision=plan.get("next_step"),
        goal=clip(plan["goal"], _GOAL_CHARS) if plan.get("goal") else None,
        steps=records,
        steps_completed=sum(call["status"] == "success" for call in calls),
        steps_total=len(calls),
        entities_created=_labels(files, "create"),
        entities_updated=_labels(files, "update"),
        entities_deleted=_labels(files, "delete"),
        artifacts_generated=_artifacts(files, saved=False),
        artifacts_saved=_artifacts(files, saved=True),
        entity_curation=_curation_line(curation),
        analysis_conclusions=tuple(record.conclusion for record in records if record.conclusion),
        errors=errors_of(files),
        blocked_reason=blocked_reason(files),
        flow=flow_of(previous, files, curation, asks=asks_of(files), reply="").phase,
        turn_summary=clip(line, 2 * _LINE_CHARS),
        summary_kind=written.get("summary_kind") or "fallback",
    )


def summary_json(summary: TurnSummary, texts: SessionTexts) -> dict[str, Any]:
    """The part of summary.json that the session reads."""
    values = {name: value for name, value in encode(summary).items() if name not in ("detail",)}
    return {**values, "session": encode(texts)}


def reply_of(files: TurnFiles) -> str:
    """What the user read: the answer, or the question back."""
    raised = raised_by(files)
    return raised.message if raised is not None else files.reply


def line_of(files: TurnFiles) -> str:
    """One line on a turn without a summary."""
    reply = reply_of(files)
    return clip(f"{files.query} {reply}" if reply else f"No answer to: {files.query}", _LINE_CHARS)


def asks_of(files: TurnFiles) -> str | None:
    raised = raised_by(files)
    return raised.type if raised is not None else None


def texts_of(files: TurnFiles) -> SessionTexts | None:
    raw = (files.summary or {}).get("session")
    return decode(SessionTexts, raw, where=f"{files.directory}/summary.json", key="session") if raw else None


def carry_summaries(previous: Carry, summary: TurnSummary) -> tuple[TurnSummary, ...]:
    """Two whole summaries, and one line each of the twenty before."""
    older = [
        one if one.detail == "line" else TurnSummary(
            turn=one.turn, detail="line", outcome=one.outcome, goal=one.goal,
            turn_summary=clip(one.turn_summary, _LINE_CHARS), summary_kind=one.summary_kind,
        )
        for one in previous.turn_summaries[: -(WHOLE - 1)]
    ]  # fmt: skip
    return (*older[-LINES:], *previous.turn_summaries[-(WHOLE - 1) :], summary)


def _labels(files: TurnFiles, op: str) -> tuple[str, ...]:
    found = [label for _, call in files.calls() for label, done in entity_ops(call) if done == op]
    return tuple(clip(label, _LINE_CHARS) for label in dict.fromkeys(found))[:20]


def _artifacts(files: TurnFiles, *, saved: bool) -> tuple[str, ...]:
    found = [
        name
        for _, call in files.calls()
        if call["status"] == "success" and not call.get("reused") and (step_type(call) == "write") == saved
        for name in call.get("artifacts", ())
    ]
    return tuple(
        dict.fromkeys(name if saved else name.rpartition("/")[2].partition(".")[0] for name in found)
    )[:20]


def _curation_line(curation: Curation) -> str | None:
    parts = ["everything dropped"] if curation.clear_all else []
    for word, found in (
        ("kept", curation.retained),
        ("demoted", curation.demoted),
        ("dropped", curation.dropped),
    ):
        parts += [f"{word} {', '.join(one.ref for one in found)}"] if found else []
    return clip("; ".join(parts), _LINE_CHARS) if parts else None
