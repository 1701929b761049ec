"""From one turn to the next: the carry as a pure function of the previous one and the turn's own files."""

import re
from collections.abc import Iterable, Mapping, Sequence

from msgspec import UNSET
from msgspec.structs import replace

from panda.language.words import split_terms
from panda.messages.reading import Limit
from panda.messages.wording import without_greeting
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
    CarriedConstraint,
    Carry,
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

RECENT = 3
WHOLE = 2
LINES = 20  # turns nearly whole, summaries whole and as one line
_LIMITS = 30
_NOTES = 8
_NOTE_TURNS = 3
_ENTRIES = 50
_ASKED_ABOUT = 12
_NAMES = 20
_KEPT_BYTES = 256 * 1024
REPLY_CHARS = 400
HISTORY_CHARS = 1_200
_SAID_CHARS = 160
_ASKED_CHARS = 120
_GOAL_CHARS = 200
_LINE_CHARS = 240
_ASSISTANT_CHARS = 12_000
_USER_CHARS = 4_000
_KEY = re.compile(r"t\d+_s\d+_(?P<type>\w+)_\d+")


def carry_over(previous: Carry, files: TurnFiles) -> Carry:
    """Return what a session carries after a turn; an imported turn has a query and a reply alone."""
    curation = curation_of(files)
    reply = reply_of(files)
    analysis = files.analysis
    summary = summary_of(previous, files)
    nothing_new = (files.summary and not files.summary.answered) or files.reading.recap
    registry, mentioned = carry_registry(previous, files, curation, "" if nothing_new else reply)
    texts = (files.summary and files.summary.session) or SessionTexts()
    if analysis is None:
        meant: Sequence[str] = [
            ref for mention in find_references(files.query, previous) for ref in mention.refs
        ]
    else:
        meant = analysis.references
    asked = split_terms(files.query)
    named = [entity.ref for entity in registry.records if says(asked, entity.label)]
    short = texts.assistant_summary
    kind = texts.assistant_summary_kind
    if not (short and kind):
        short, kind = _short_reply(reply)
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
    return Carry(
        recent_turns=(*previous.recent_turns, recent)[-RECENT:],
        history_summary=_history(previous, files),
        engagement_summary=_engagement(previous, files, texts),
        turn_summaries=_summaries(previous, summary),
        step_cache=_cache(previous, files),
        carry_notes=_notes(previous, files),
        content_archive=_archive(previous, files),
        entity_curation=_decided(curation, files, previous.entity_curation),
        decision_log=carry_log(previous, curation, files.turn),
        registry=registry,
        flow=_flow(previous, files, curation, raised=raised_by(files), reply=reply),
        pending_clarification=carry_pending(previous, files),
        constraints=_limits(previous, files, curation),
    )


def carry_within(previous: Carry, files: TurnFiles) -> Carry:
    """
    Return what the later phases of a running turn see: what it found, with what its phases 0 and 1 decided.
    """
    curation = curation_of(files)
    running = files.analysis is not None
    return replace(
        previous,
        entity_curation=_decided(curation, files, Curation()),
        registry=apply_curation(previous.registry, curation, files.turn),
        flow=_flow(previous, files, curation, raised=None, reply="") if running else previous.flow,
        pending_clarification=take_answer(previous, files),
        constraints=_limits(previous, files, curation),
    )


def _decided(curation: Curation, files: TurnFiles, otherwise: Curation) -> Curation:
    return replace(curation, turn=files.turn) if curation != Curation() else otherwise


def kept_limits(limits: Iterable[Limit]) -> tuple[records.Constraint, ...]:
    constraints = {
        limit.key: records.Constraint(limit.key, limit.value, clip(limit.text, _SAID_CHARS))
        for limit in limits
        if limit.key is not None and limit.value is not None
    }
    return tuple(constraints.values())


def _limits(previous: Carry, files: TurnFiles, curation: Curation) -> tuple[CarriedConstraint, ...]:
    """The limits, those that hold no longer too as long as there is room; an imported turn limits nothing."""
    constraints = files.analysis.constraints if files.analysis else ()
    new = [
        CarriedConstraint(key=constraint.key, value=constraint.value, text=constraint.text, turn=files.turn)
        for constraint in constraints
    ]
    over = {new_constraint.key for new_constraint in new}
    older = [
        replace(
            constraint, active=constraint.active and not curation.clear_all and constraint.key not in over
        )
        for constraint in previous.constraints
    ]
    inactive = [constraint for constraint in older if not constraint.active]
    for constraint in inactive[: max(0, len(older) + len(new) - _LIMITS)]:
        older.remove(constraint)
    return (*older, *new)[-_LIMITS:]


def _flow(
    previous: Carry, files: TurnFiles, curation: Curation, *, raised: Pending | None, reply: str
) -> Flow:
    """Return how the conversation goes with a turn; *raised* is the question that it ended with."""
    expressed_text = next((clause.text for clause in files.reading.clauses if clause.mood == "tells"), None)
    expressed = clip(expressed_text, _SAID_CHARS) if expressed_text else None  # be it a feeling or a wish
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
    """Return the summary of a turn, from its summary.json or else made from its other files."""
    written = files.summary
    reply = reply_of(files)
    plan = files.plan
    line = clip(f"{files.query} {reply}" if reply else f"No answer to: {files.query}", _LINE_CHARS)
    if written is not None and written.steps is not UNSET:
        written_fields = {name: getattr(written, name, None) for name in TurnSummary.__struct_fields__}
        summary = TurnSummary(**{name: value for name, value in written_fields.items() if value is not None})
        return replace(summary, turn_summary=summary.turn_summary or line)
    entity_changes = [pair for step in files.steps for pair in entity_ops(step)]

    def labels(wanted: str) -> tuple[str, ...]:
        matching = (clip(label, _LINE_CHARS) for label, op in entity_changes if op == wanted)
        return tuple(dict.fromkeys(matching))[:_NAMES]

    steps = step_records(files)
    curation = curation_of(files)
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
        errors=tuple(clip(f"{step.tool}: {step.error}", 320) for step in files.steps if step.error),
        blocked_reason=blocked_reason(files),
        flow=_phase(previous, files, curation, raised_by(files)),
        turn_summary=clip((written and written.turn_summary) or line, 2 * _LINE_CHARS),
        summary_kind=(written and written.summary_kind) or "fallback",
    )


def reply_of(files: TurnFiles) -> str:
    raised = raised_by(files)
    return raised.message if raised is not None else files.reply


def _summaries(previous: Carry, summary: TurnSummary) -> tuple[TurnSummary, ...]:
    older = [
        TurnSummary(
            turn=earlier.turn,
            detail="line",
            outcome=earlier.outcome,
            goal=earlier.goal,
            turn_summary=clip(earlier.turn_summary, _LINE_CHARS),
            summary_kind=earlier.summary_kind,
        )
        for earlier in previous.turn_summaries[: -(WHOLE - 1)]
    ]
    return (*older[-LINES:], *previous.turn_summaries[-(WHOLE - 1) :], summary)


def _artifacts(files: TurnFiles, *, saved: bool) -> tuple[str, ...]:
    """Files that were written, or keys of what was made."""
    steps = [step for step in files.steps if (step_type(step) == "write") == saved]
    names = [name for step in steps if _is_new(step) for name in step.artifacts]
    return tuple(dict.fromkeys(names if saved else map(_key_of, names)))[:_NAMES]


def _is_new(step: Step) -> bool:
    return step.status == "success" and not step.reused


def _key_of(name: str) -> str:
    return name.rpartition("/")[2].partition(".")[0]


def _curation_line(curation: Curation) -> str | None:
    parts = ["everything dropped"] if curation.clear_all else []
    for word, decisions in curation.decided.items():
        done = "kept" if word == "retained" else word
        if decisions:
            parts.append(f"{done} {', '.join(decision.ref for decision in decisions)}")
    return clip("; ".join(parts), _LINE_CHARS) if parts else None


def _short_reply(reply: str) -> tuple[str, SummaryKind]:
    """A reply as prompts show it if no model summarises it."""
    if not reply:
        return "No answer was approved.", "fallback"
    return (reply, "verbatim") if len(reply) <= REPLY_CHARS else (clip(reply, REPLY_CHARS), "clipped")


def _clip_lines(text: str, chars: int, *, rest: str) -> str:
    mark = f"\n[… cut, whole in {rest}]"
    return text if len(text) <= chars else text[: max(0, chars - len(mark))] + mark


def to_merge(previous: Carry) -> tuple[int, ...]:
    """The turns for the history to take in next: those that failed, and the one that is recent no more."""
    leaving = previous.recent_turns[:1] if len(previous.recent_turns) >= RECENT else ()
    return (*previous.history_summary.unmerged, *(recent_turn.turn for recent_turn in leaving))


def merge_by_rule(previous: Carry) -> str:
    """The history with the lines of the turns that it has to take in; the oldest lines go first."""
    mark = MARK.strip()
    summaries = {summary.turn: summary.turn_summary for summary in previous.turn_summaries}
    before = [line for line in previous.history_summary.text.split("\n") if line]
    lines = [line for line in before if line != mark]
    lines += [clip(f"Turn {n}: {summaries.get(n, '')}", _LINE_CHARS) for n in to_merge(previous)]
    count = len(lines)
    while sum(len(line) + 1 for line in lines) > HISTORY_CHARS - 8:
        del lines[0]
    return "\n".join([mark, *lines] if len(lines) < count or mark in before else lines)


def _history(previous: Carry, files: TurnFiles) -> History:
    waiting = to_merge(previous)
    texts = files.summary.session if files.summary else UNSET
    if not waiting:
        return previous.history_summary
    if texts is UNSET:
        return History(text=merge_by_rule(previous), kind="fallback", through_turn=max(waiting))
    if texts.history is None:
        return replace(previous.history_summary, unmerged=waiting)
    return History(text=texts.history, kind=texts.history_kind or "fallback", through_turn=max(waiting))


def _engagement(previous: Carry, files: TurnFiles, texts: SessionTexts) -> Engagement:
    if not texts.engagement and previous.engagement_summary.text:
        return previous.engagement_summary
    goal = texts.engagement or clip((files.plan and files.plan.goal) or files.query, _LINE_CHARS)
    kind = (texts.engagement and texts.engagement_kind) or "fallback"
    return Engagement(text=goal, kind=kind, turn=files.turn)


def _cache(previous: Carry, files: TurnFiles) -> tuple[CachedStep, ...]:
    if not files.steps:
        return previous.step_cache
    newest = max((cached.turn for cached in previous.step_cache), default=None)
    older = [replace(cached, detail="summary") for cached in previous.step_cache if cached.turn == newest]
    newer = [
        CachedStep(
            turn=files.turn,
            step=step.step,
            tool=step.tool,
            call=call_digest(step.tool, step.arguments),
            asked=clip(", ".join(f"{name}={value}" for name, value in step.arguments.items()), _ASKED_CHARS),
            outcome=outcome_line(step),
            record_count=record_count(step),
            detail="full",
            path=f"{files.directory}/{step.file_name}",
        )
        for step in files.steps
    ]
    return (*older, *newer)


def _notes(previous: Carry, files: TurnFiles) -> tuple[Note, ...]:
    """Notes and conclusions that three further turns see; a gap in the numbers of the session moves them."""
    gap = max(0, files.turn - previous.head - 1) if previous.head else 0
    notes = [replace(n, expires_after_turn=n.expires_after_turn + gap) for n in previous.carry_notes]
    notes = [note for note in notes if note.expires_after_turn > files.turn]
    last = files.turn + _NOTE_TURNS
    for step in step_records(files):
        about = Note(kind="note", text="", turn=files.turn, step=step.step, expires_after_turn=last)
        if step.note:
            notes.append(replace(about, text=step.note))
        if step.conclusion:
            notes.append(replace(about, kind="conclusion", text=step.conclusion))
    return tuple(list(dict.fromkeys(notes))[-_NOTES:])


def _archive(previous: Carry, files: TurnFiles) -> Archive:
    added = [
        _entry(files, step, name)
        for step in files.steps
        for name in step.artifacts
        if _is_new(step) and name in files.artifacts
    ]
    entries = [*previous.content_archive.entries, *added]
    over = max(0, len(entries) - _ENTRIES)
    return Archive(entries=tuple(entries[over:]), evicted=previous.content_archive.evicted + over)


def _entry(files: TurnFiles, step: Step, name: str) -> ArchiveEntry:
    match = _KEY.fullmatch(_key_of(name))
    chars = files.artifacts[name]
    texts = [value for value in step.arguments.values() if isinstance(value, str)]
    return ArchiveEntry(
        key=_key_of(name),
        turn=files.turn,
        step=step.step,
        type=match["type"] if match else step_type(step),
        description=clip(max(texts, key=len, default=step.tool), _ASKED_CHARS),
        path=f"{files.directory}/{name}",
        chars=chars,
        cut=bool(isinstance(step.data, Mapping) and step.data.get("cut")) or chars > _KEPT_BYTES,
    )
