"""From one turn to the next: the carry as a pure function of the previous one and the turn's own files."""

import re
from collections.abc import Iterable, Mapping, Sequence

from msgspec import UNSET
from msgspec.structs import replace

from panda.language.reading import Limit
from panda.language.text import without_greeting
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
from panda.session.turn_files import (
    TurnFiles,
    blocked_reason,
    call_digest,
    entity_ops,
    errors_of,
    outcome_line,
    record_count,
    step_records,
    step_type,
)
from panda.store import records
from panda.store.carry import (
    MARK,
    Archive,
    ArchiveEntry,
    CachedStep,
    Carry,
    Constraint,
    Curation,
    Engagement,
    Flow,
    FlowPhase,
    History,
    Note,
    Pending,
    RecentTurn,
    Routing,
    SummaryKind,
    TurnSummary,
    clip,
)
from panda.store.records import SessionTexts, Step

_MOST, _TEXT_CHARS = 30, 160
_EXPRESSED_CHARS = 160
WHOLE, LINES = 2, 20
_NOTES, _NOTE_TURNS, _ENTRIES = 8, 3, 50
_KEPT_BYTES = 256 * 1024
_KEY = re.compile(r"t\d+_s\d+_(?P<type>\w+)_\d+")
_ASKED_CHARS = 120
_LINE_CHARS, _GOAL_CHARS = 240, 200
RECENT = 3
REPLY_CHARS, HISTORY_CHARS = 400, 1_200
_ASKED_ABOUT = 12
_ASSISTANT_CHARS, _USER_CHARS, _RULE_LINE_CHARS = 12_000, 4_000, 240


def kept_limits(limits: Iterable[Limit]) -> tuple[records.Constraint, ...]:
    kept = {
        one.key: records.Constraint(one.key, one.value, clip(one.text, _TEXT_CHARS))
        for one in limits
        if one.key is not None and one.value is not None
    }
    return tuple(kept.values())


def merge_limits(
    known: tuple[Constraint, ...], said: Iterable[records.Constraint], *, turn: int, cleared: bool
) -> tuple[Constraint, ...]:
    new = [Constraint(key=one.key, value=one.value, text=one.text, turn=turn) for one in said]
    keys = {one.key for one in new}
    kept = [replace(one, active=one.active and not cleared and one.key not in keys) for one in known]
    over = len(kept) + len(new) - _MOST
    for one in [one for one in kept if not one.active][: max(0, over)]:
        kept.remove(one)
    return (*kept, *new)[-_MOST:]


def flow_of(
    previous: Carry, files: TurnFiles, curation: Curation, *, raised: Pending | None, reply: str
) -> Flow:
    """How the conversation goes with a turn; *raised* is the question that it ended with."""
    told = next((one.text for one in files.reading.clauses if one.mood == "tells"), None)
    expressed = clip(told, _EXPRESSED_CHARS) if told else None  # be it a feeling or a wish
    return Flow(
        phase=_phase(previous, files, curation, raised),
        user_expressed=expressed or previous.flow.user_expressed,
        greeted=previous.flow.greeted or without_greeting(reply) != reply.lstrip(),
    )


def _phase(previous: Carry, files: TurnFiles, curation: Curation, raised: Pending | None) -> FlowPhase:
    answer = files.analysis.pending if files.analysis else None
    if raised is not None and raised.type in ("proposal", "choice"):
        return "confirming"
    if answer and answer.status == "answered" and answer.agreed:
        return "executing"
    if files.reading.recap:
        return "reflecting"
    if any(step_type(step) == "write" and step.status == "success" for step in files.steps):
        return "executing"
    if curation.demoted or curation.dropped or (previous.recent_turns and files.reading.limits):
        return "narrowing"
    return "exploring"


def summary_of(previous: Carry, files: TurnFiles) -> TurnSummary:
    """What a turn did: as its summary.json says it, or made of its other files."""
    written, reply, plan = files.summary, reply_of(files), files.plan
    line = clip(f"{files.query} {reply}" if reply else f"No answer to: {files.query}", _LINE_CHARS)
    if written is not None and written.steps is not UNSET:
        kept = {name: getattr(written, name, None) for name in TurnSummary.__struct_fields__}
        found = TurnSummary(**{name: value for name, value in kept.items() if value is not None})
        return replace(found, turn_summary=found.turn_summary or line)
    made = [pair for step in files.steps for pair in entity_ops(step)]

    def labels(wanted: str) -> tuple[str, ...]:
        named = dict.fromkeys(label for label, op in made if op == wanted)
        return tuple(clip(label, _LINE_CHARS) for label in named)[:20]

    steps, curation = step_records(files), curation_of(files)
    return TurnSummary(
        turn=files.turn,
        outcome=written.outcome if written else "imported",
        decision=plan.next_step if plan else None,
        goal=clip(plan.goal, _GOAL_CHARS) if plan and plan.goal else None,
        steps=steps,
        steps_completed=sum(step.status == "success" for step in files.steps),
        steps_total=len(files.steps),
        entities_created=labels("create"),
        entities_updated=labels("update"),
        entities_deleted=labels("delete"),
        artifacts_generated=_artifacts(files, saved=False),
        artifacts_saved=_artifacts(files, saved=True),
        entity_curation=_curation_line(curation),
        analysis_conclusions=tuple(step.conclusion for step in steps if step.conclusion),
        errors=errors_of(files),
        blocked_reason=blocked_reason(files),
        flow=flow_of(previous, files, curation, raised=raised_by(files), reply="").phase,
        turn_summary=clip((written and written.turn_summary) or line, 2 * _LINE_CHARS),
        summary_kind=(written and written.summary_kind) or "fallback",
    )


def reply_of(files: TurnFiles) -> str:
    raised = raised_by(files)
    return raised.message if raised is not None else files.reply


def carry_summaries(previous: Carry, summary: TurnSummary) -> tuple[TurnSummary, ...]:
    older = [
        one
        if one.detail == "line"
        else TurnSummary(
            turn=one.turn,
            detail="line",
            outcome=one.outcome,
            goal=one.goal,
            turn_summary=clip(one.turn_summary, _LINE_CHARS),
            summary_kind=one.summary_kind,
        )
        for one in previous.turn_summaries[: -(WHOLE - 1)]
    ]
    return (*older[-LINES:], *previous.turn_summaries[-(WHOLE - 1) :], summary)


def _artifacts(files: TurnFiles, *, saved: bool) -> tuple[str, ...]:
    found = [
        name
        for step in files.steps
        if step.status == "success" and not step.reused and (step_type(step) == "write") == saved
        for name in step.artifacts
    ]
    named = (name if saved else name.rpartition("/")[2].partition(".")[0] for name in found)
    return tuple(dict.fromkeys(named))[:20]


def _curation_line(curation: Curation) -> str | None:
    parts = ["everything dropped"] if curation.clear_all else []
    for word, found in curation.decided.items():
        done = "kept" if word == "retained" else word
        parts += [f"{done} {', '.join(one.ref for one in found)}"] if found else []
    return clip("; ".join(parts), _LINE_CHARS) if parts else None


def carry_over(previous: Carry, files: TurnFiles) -> Carry:
    """What a session carries after a turn; an imported turn has a query and a reply alone."""
    curation, reply, raised = curation_of(files), reply_of(files), raised_by(files)
    summary, analysis = summary_of(previous, files), files.analysis
    texts = (files.summary and files.summary.session) or None
    nothing_new = (files.summary and not files.summary.answered) or files.reading.recap
    registry, mentioned = carry_registry(previous, files, curation, "" if nothing_new else reply)
    if analysis is None:
        limits: tuple[records.Constraint, ...] = ()  # an imported turn limits nothing
        meant: Sequence[str] = [ref for one in find_references(files.query, previous) for ref in one.refs]
    else:
        limits, meant = analysis.constraints, analysis.references
    asked = split_terms(files.query)
    named = [one.ref for one in registry.records if says(asked, one.label)]
    short, kind = short_reply(reply)
    if texts is not None and texts.assistant_summary and texts.assistant_summary_kind:
        short, kind = texts.assistant_summary, texts.assistant_summary_kind
    recent = RecentTurn(
        turn=files.turn,
        user=_clip_lines(files.query, _USER_CHARS, rest=f"{files.directory}/context.md"),
        assistant=_clip_lines(reply, _ASSISTANT_CHARS, rest=f"{files.directory}/response.md"),
        assistant_summary=short,
        summary_kind=kind,
        timestamp=files.at,
        routing=Routing(
            intent=analysis.intent if analysis else None,
            query_type=analysis.query_type if analysis else None,
            next_step=files.plan.next_step if files.plan else None,
        ),
        entities_mentioned=mentioned,
        asked_about=tuple(dict.fromkeys((*meant, *named)))[:_ASKED_ABOUT],
        outcome=summary.outcome,
    )
    decided = replace(curation, turn=files.turn) if curation != Curation() else previous.entity_curation
    return Carry(
        recent_turns=(*previous.recent_turns, recent)[-RECENT:],
        history_summary=_history(previous, texts),
        engagement_summary=_engagement(previous, files, texts),
        turn_summaries=carry_summaries(previous, summary),
        step_cache=carry_cache(previous, files),
        carry_notes=carry_notes(previous, files),
        content_archive=carry_archive(previous, files),
        entity_curation=decided,
        decision_log=carry_log(previous, curation, files.turn),
        registry=registry,
        flow=flow_of(previous, files, curation, raised=raised, reply=reply),
        pending_clarification=carry_pending(previous, files),
        constraints=merge_limits(previous.constraints, limits, turn=files.turn, cleared=curation.clear_all),
    )


def carry_within(previous: Carry, files: TurnFiles) -> Carry:
    """What the later phases of a running turn see: what it found, with what its phases 0 and 1 decided."""
    curation = curation_of(files)
    limits = files.analysis.constraints if files.analysis else ()
    running = files.analysis is not None
    return replace(
        previous,
        entity_curation=replace(curation, turn=files.turn) if curation != Curation() else Curation(),
        registry=apply_curation(previous.registry, curation, files.turn),
        flow=flow_of(previous, files, curation, raised=None, reply="") if running else previous.flow,
        pending_clarification=take_answer(previous, files),
        constraints=merge_limits(previous.constraints, limits, turn=files.turn, cleared=curation.clear_all),
    )


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
    """The turns for the history to take in next: those that failed, and the one that is recent no more."""
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


def _clip_lines(text: str, chars: int, *, rest: str) -> str:
    mark = f"\n[… cut, whole in {rest}]"
    return text if len(text) <= chars else text[: max(0, chars - len(mark))] + mark


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
    goal = (files.plan and files.plan.goal) or files.query
    return Engagement(text=clip(goal, _RULE_LINE_CHARS), kind="fallback", turn=files.turn)


def carry_cache(previous: Carry, files: TurnFiles) -> tuple[CachedStep, ...]:
    if not files.steps:
        return previous.step_cache
    newest = max((cached.turn for cached in previous.step_cache), default=None)
    kept = [replace(cached, detail="summary") for cached in previous.step_cache if cached.turn == newest]
    return (*kept, *(_cached(files, step) for step in files.steps))


def _cached(files: TurnFiles, step: Step) -> CachedStep:
    asked = ", ".join(f"{name}={value}" for name, value in step.arguments.items())
    return CachedStep(
        turn=files.turn,
        step=step.step,
        tool=step.tool,
        call=call_digest(step.tool, step.arguments),
        asked=clip(asked, _ASKED_CHARS),
        outcome=outcome_line(step),
        record_count=record_count(step),
        detail="full",
        path=f"{files.directory}/{step.file_name}",
    )


def carry_notes(previous: Carry, files: TurnFiles) -> tuple[Note, ...]:
    """Notes and conclusions that three further turns see; a gap in the numbers of the session moves them."""
    gap = max(0, files.turn - previous.head - 1) if previous.head else 0
    kept = [replace(n, expires_after_turn=n.expires_after_turn + gap) for n in previous.carry_notes]
    kept = [note for note in kept if note.expires_after_turn > files.turn]
    last = files.turn + _NOTE_TURNS
    for step in step_records(files):
        about = Note(kind="note", text="", turn=files.turn, step=step.step, expires_after_turn=last)
        kept += [replace(about, text=step.note)] if step.note else []
        kept += [replace(about, kind="conclusion", text=step.conclusion)] if step.conclusion else []
    return tuple(list(dict.fromkeys(kept))[-_NOTES:])


def carry_archive(previous: Carry, files: TurnFiles) -> Archive:
    found = [
        _entry(files, step, name)
        for step in files.steps
        if step.status == "success" and not step.reused
        for name in step.artifacts
        if name in files.artifacts
    ]
    entries = [*previous.content_archive.entries, *found]
    over = max(0, len(entries) - _ENTRIES)
    return Archive(entries=tuple(entries[over:]), evicted=previous.content_archive.evicted + over)


def _entry(files: TurnFiles, step: Step, name: str) -> ArchiveEntry:
    key = name.rpartition("/")[2].partition(".")[0]
    match = _KEY.fullmatch(key)
    texts = [value for value in step.arguments.values() if isinstance(value, str)]
    chars = files.artifacts[name]
    return ArchiveEntry(
        key=key,
        turn=files.turn,
        step=step.step,
        type=match["type"] if match else step_type(step),
        description=clip(max(texts, key=len, default=step.tool), _ASKED_CHARS),
        path=f"{files.directory}/{name}",
        chars=chars,
        cut=bool(isinstance(step.data, Mapping) and step.data.get("cut")) or chars > _KEPT_BYTES,
    )
