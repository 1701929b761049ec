"""From one turn to the next: the carry as a pure function of the previous one and the turn's own files."""

from dataclasses import replace

from panda.language.stemming import split_terms
from panda.session.clipping import MARK, clip, clip_lines
from panda.session.entities import apply_curation, carry_log, carry_registry, curation_of, says
from panda.session.flow import flow_of
from panda.session.limits_said import kept_limits, limits_of, merge_limits
from panda.session.questions_open import carry_pending, take_answer
from panda.session.references import find_references
from panda.session.step_records import carry_archive, carry_cache, carry_notes
from panda.session.summaries import SessionTexts, asks_of, carry_summaries, reply_of, summary_of, texts_of
from panda.session.turn_files import TurnFiles
from panda.session.values import (
    Carry,
    Curation,
    Engagement,
    History,
    Outcome,
    RecentTurn,
    Registry,
    Routing,
    SummaryKind,
)

RECENT = 3
REPLY_CHARS, HISTORY_CHARS = 400, 1_200
_ASKED_ABOUT = 12
_ASSISTANT_CHARS, _USER_CHARS, _LINE_CHARS = 12_000, 4_000, 240


def carry_over(previous: Carry, files: TurnFiles) -> Carry:
    """
    What a session carries after a turn.

    Args:
        previous: What the turn found.
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
        previous: What the turn found.
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
        lines.append(clip(f"Turn {number}: {line}", _LINE_CHARS))
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
    return Engagement(text=clip(goal, _LINE_CHARS), kind="fallback", turn=files.turn)
