"""From one turn to the next: the carry as a pure function of the previous one and the turn's own files."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, cast

from panda.documents.carry import (
    MARK,
    Carry,
    Constraint,
    Curation,
    Engagement,
    Flow,
    FlowPhase,
    History,
    Outcome,
    RecentTurn,
    Registry,
    Routing,
    SummaryKind,
    Tone,
    TurnSummary,
    clip,
    clip_lines,
)
from panda.documents.records import decode, encode
from panda.language.conversation import tone_of, without_greeting
from panda.language.limits import find_counts, find_limits
from panda.language.reading import Limit
from panda.language.words import split_terms
from panda.session.pending import carry_pending, raised_by, take_answer
from panda.session.registry import (
    apply_curation,
    carry_log,
    carry_registry,
    curation_of,
    find_references,
    says,
)
from panda.session.steps import (
    blocked_reason,
    carry_archive,
    carry_cache,
    carry_notes,
    entity_ops,
    errors_of,
    step_records,
    step_type,
)
from panda.session.turn_files import TurnFiles

_MOST, _TEXT_CHARS = 30, 160
_EXPRESSED_CHARS = 160
WHOLE, LINES = 2, 20
_LINE_CHARS, _GOAL_CHARS = 240, 200
RECENT = 3
REPLY_CHARS, HISTORY_CHARS = 400, 1_200
_ASKED_ABOUT = 12
_ASSISTANT_CHARS, _USER_CHARS, _RULE_LINE_CHARS = 12_000, 4_000, 240


def limits_of(query: str, known: Iterable[Constraint] = ()) -> tuple[Limit, ...]:
    """
    The limits that a query sets.

    Args:
        known: What holds so far: "4 not 6" changes the limit that is 6.

    >>> [(one.key, one.value) for one in limits_of("Find 3 recipes under $20 by 2026-05-01")]
    [('budget_max', 'USD 20'), ('date_max', '2026-05-01'), ('count:recipes', 3)]
    >>> limits_of("Is the tent in stock?")
    ()
    """
    holding = {one.key: one.value for one in known if one.active}
    return (*find_limits(query), *find_counts(query, holding))


def kept_limits(limits: Iterable[Limit]) -> list[dict[str, Any]]:
    """Limits whose key and value are sure, as query_analysis.json holds them, each key once."""
    kept = {
        one.key: {"key": one.key, "value": one.value, "text": clip(one.text, _TEXT_CHARS)}
        for one in limits
        if one.key is not None and one.value is not None
    }
    return list(kept.values())


def merge_limits(
    known: tuple[Constraint, ...], said: Iterable[Mapping[str, Any]], *, turn: int, cleared: bool
) -> tuple[Constraint, ...]:
    """
    The constraints with what a turn said; what it says of a key holds instead of what was said before.

    Args:
        said: As kept_limits gives them.
        cleared: Whether the user started over.
    """
    new = [Constraint(key=o["key"], value=o["value"], text=o["text"], turn=turn) for o in said]
    keys = {one.key for one in new}
    kept = [replace(one, active=one.active and not cleared and one.key not in keys) for one in known]
    over = len(kept) + len(new) - _MOST
    for one in [one for one in kept if not one.active][: max(0, over)]:
        kept.remove(one)
    return (*kept, *new)[-_MOST:]


def flow_of(previous: Carry, files: TurnFiles, curation: Curation, *, asks: str | None, reply: str) -> Flow:
    """
    How the conversation goes with a turn.

    Args:
        files: The turn, as far as it has come.
        asks: The kind of question that it ended with; None if it ended otherwise or has not ended.
        reply: What it said so far.
    """
    return Flow(
        phase=_phase(previous, files, curation, asks),
        tone=cast(Tone, tone_of(files.query)),
        user_expressed=_expressed(files) or previous.flow.user_expressed,
        greeted=previous.flow.greeted or without_greeting(reply) != reply.lstrip(),
    )


def _phase(previous: Carry, files: TurnFiles, curation: Curation, asks: str | None) -> FlowPhase:
    answered = (files.analysis or {}).get("pending") or {}
    if asks in ("proposal", "choice"):
        return "confirming"
    if answered.get("status") == "answered" and answered.get("agreed"):
        return "executing"
    if files.reading.recap:
        return "reflecting"
    if any(step_type(call) == "write" and call["status"] == "success" for _, call in files.calls()):
        return "executing"
    if curation.demoted or curation.dropped or (previous.recent_turns and files.reading.limits):
        return "narrowing"
    return "exploring"


def _expressed(files: TurnFiles) -> str | None:
    """What the user told first, be it a feeling or a wish."""
    told = next((one.text for one in files.reading.clauses if one.mood == "tells"), None)
    return clip(told, _EXPRESSED_CHARS) if told else None


@dataclass(frozen=True, kw_only=True)
class SessionTexts:
    """What phase 7 wrote for the session, as summary.json holds it; None where nothing was asked for."""

    assistant_summary: str | None = None  # the reply in short
    assistant_summary_kind: SummaryKind | None = None  # how it came about
    history: str | None = None
    """The history with what fell out of the recent turns; None with a turn to merge means that it failed."""
    history_kind: SummaryKind | None = None  # how it came about
    engagement: str | None = None  # what the session is about
    engagement_kind: SummaryKind | None = None  # how it came about


def summary_of(previous: Carry, files: TurnFiles) -> TurnSummary:
    """
    What a turn did: as its summary.json says it, or made of its other files.

    Args:
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


def carry_over(previous: Carry, files: TurnFiles) -> Carry:
    """
    What a session carries after a turn.

    Args:
        files: The turn, with its summary.json; an imported turn has a query and a reply alone.
    """
    curation = curation_of(files)
    reply = reply_of(files)
    nothing_new = (files.summary or {}).get("answered") is False or files.reading.recap
    told = "" if nothing_new else reply
    registry, mentioned = carry_registry(previous, files, curation, told)
    summary = summary_of(previous, files)
    texts = texts_of(files)
    recent = _recent_turn(files, texts, reply, mentioned, summary.outcome)
    recent = replace(recent, asked_about=_asked_about(previous, files, registry))
    said = (files.analysis or {}).get("constraints")
    imported = files.analysis is None
    limits = kept_limits(limits_of(files.query, previous.constraints)) if imported else said or ()
    return Carry(
        recent_turns=(*previous.recent_turns, recent)[-RECENT:],
        history_summary=_history(previous, texts),
        engagement_summary=_engagement(previous, files, texts),
        turn_summaries=carry_summaries(previous, summary),
        step_cache=carry_cache(previous, files),
        carry_notes=carry_notes(previous, files),
        content_archive=carry_archive(previous, files),
        entity_curation=replace(curation, turn=files.turn)
        if curation != Curation()
        else previous.entity_curation,
        decision_log=carry_log(previous, curation, files.turn),
        registry=registry,
        flow=flow_of(previous, files, curation, asks=asks_of(files), reply=reply),
        pending_clarification=carry_pending(previous, files),
        constraints=merge_limits(previous.constraints, limits, turn=files.turn, cleared=curation.clear_all),
    )


def carry_within(previous: Carry, files: TurnFiles) -> Carry:
    """
    What the later phases of a running turn see: what it found, with what its phases 0 and 1 decided.

    Args:
        files: The turn, as far as it has come.
    """
    curation = curation_of(files)
    limits = (files.analysis or {}).get("constraints") or ()
    running = files.analysis is not None
    return replace(
        previous,
        entity_curation=replace(curation, turn=files.turn) if curation != Curation() else Curation(),
        registry=apply_curation(previous.registry, curation, files.turn),
        flow=flow_of(previous, files, curation, asks=None, reply="") if running else previous.flow,
        pending_clarification=take_answer(previous, files),
        constraints=merge_limits(previous.constraints, limits, turn=files.turn, cleared=curation.clear_all),
    )


def _recent_turn(
    files: TurnFiles, texts: SessionTexts | None, reply: str, mentioned: tuple[str, ...], outcome: Outcome
) -> RecentTurn:
    short, kind = short_reply(reply)
    if texts is not None and texts.assistant_summary and texts.assistant_summary_kind:
        short, kind = texts.assistant_summary, texts.assistant_summary_kind
    analysis, plan = files.analysis or {}, files.plan or {}
    routing = Routing(
        intent=analysis.get("intent"), query_type=analysis.get("query_type"), next_step=plan.get("next_step")
    )
    return RecentTurn(
        turn=files.turn,
        user=clip_lines(files.query, _USER_CHARS, rest=f"{files.directory}/context.md"),
        assistant=clip_lines(reply, _ASSISTANT_CHARS, rest=f"{files.directory}/response.md"),
        assistant_summary=short,
        summary_kind=kind,
        timestamp=files.at,
        routing=routing,
        entities_mentioned=mentioned,
        outcome=outcome,
    )


def _asked_about(previous: Carry, files: TurnFiles, registry: Registry) -> tuple[str, ...]:
    """What a query means or names; of an imported turn as far as rules can tell."""
    meant = (files.analysis or {}).get("references")
    if files.analysis is None:
        meant = [ref for one in find_references(files.query, previous) for ref in one.refs]
    asked = split_terms(files.query)
    named = [one.ref for one in registry.records if says(asked, one.label)]
    return tuple(dict.fromkeys((*(meant or ()), *named)))[:_ASKED_ABOUT]


def short_reply(reply: str) -> tuple[str, SummaryKind]:
    """
    A reply as prompts show it if no model summarises it.

    >>> short_reply("It costs $697."), short_reply("word " * 200)[1], short_reply("")
    (('It costs $697.', 'verbatim'), 'clipped', ('No answer was approved.', 'fallback'))
    """
    if not reply:
        return "No answer was approved.", "fallback"
    return (reply, "verbatim") if len(reply) <= REPLY_CHARS else (clip(reply, REPLY_CHARS), "clipped")


def to_merge(previous: Carry) -> tuple[int, ...]:
    """
    The turns that the history has to take in when the next turn ends: those that failed before, and the one
    that falls out of the recent ones.
    """
    leaving = previous.recent_turns[:1] if len(previous.recent_turns) >= RECENT else ()
    return (*previous.history_summary.unmerged, *(one.turn for one in leaving))


def merge_by_rule(previous: Carry) -> tuple[str, SummaryKind]:
    """The history with the lines of the turns that it has to take in; the oldest lines go first."""
    lines = [line for line in previous.history_summary.text.split("\n") if line]
    cut = MARK.strip() in lines
    lines = [line for line in lines if line != MARK.strip()]
    for number in to_merge(previous):
        line = next((one.turn_summary for one in previous.turn_summaries if one.turn == number), "")
        lines.append(clip(f"Turn {number}: {line}", _RULE_LINE_CHARS))
    while sum(len(line) + 1 for line in lines) > HISTORY_CHARS - 8:
        del lines[0]
        cut = True
    return "\n".join([MARK.strip(), *lines] if cut else lines), "fallback"


def _history(previous: Carry, texts: SessionTexts | None) -> History:
    waiting = to_merge(previous)
    if not waiting:
        return previous.history_summary
    if texts is not None and texts.history is None:
        return replace(previous.history_summary, unmerged=waiting)
    text, kind = merge_by_rule(previous)
    if texts is not None and texts.history is not None:
        text, kind = texts.history, texts.history_kind or kind
    return History(text=text, kind=kind, through_turn=max(waiting))


def _engagement(previous: Carry, files: TurnFiles, texts: SessionTexts | None) -> Engagement:
    if texts is not None and texts.engagement:
        kind = texts.engagement_kind or "fallback"
        return Engagement(text=texts.engagement, kind=kind, turn=files.turn)
    if previous.engagement_summary.text:
        return previous.engagement_summary
    goal = (files.plan or {}).get("goal") or files.query
    return Engagement(text=clip(goal, _RULE_LINE_CHARS), kind="fallback", turn=files.turn)
