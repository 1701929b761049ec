"""What a session carries as lines, each with where it comes from: for prompts and for people. Pure."""

from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from typing import NamedTuple

from panda.documents.safe_text import one_line
from panda.models.cl100k import count_tokens
from panda.session.registry import is_active
from panda.store.carry import FIELDS, MARK, Carry, Entity, TurnSummary, clip
from panda.store.layout import turn_name

CARRY_TOKENS = 600
_MARK_TOKENS = 14
_STAYING = (
    "pending_clarification",
    "constraints",
    "registry",
    "entity_curation",
    "carry_notes",
    "turn_summaries",
)
_USER_CHARS = 500
_LINE_CHARS = 300
_ACTIVE = 24
_EXCLUDED = 20
_LOG = 5
_BODY_LINES = 12
_ALL_PHASES: tuple[int, ...] = tuple(range(7))
_OFFERED_TO = (0, 1)
"""Phases that have the entities among their options."""
_USUAL_PHASE = "exploring"
Load = Callable[[str], Sequence[str]]
"""Gives the lines of a kept result or content by its path, relative to the user's directory."""


class CarryLine(NamedTuple):
    field: str
    title: str  # what stands above the lines of its kind
    text: str
    origin: int | str | None = None  # the turn that it comes from, or a file relative to the user's directory
    unseen: tuple[int, ...] = ()  # phases that read the field, and not this line


def carry_lines(carry: Carry, load: Load | None = None, shown_path: str | None = None) -> Iterator[CarryLine]:
    """All that the next turn is told, most important first; *shown_path* is kept content to see again."""
    yield from _pending(carry)
    for limit in carry.constraints[::-1]:
        if limit.active:
            text = f"{limit.key}: {limit.value} (turn {limit.turn}: {limit.text})"
            yield CarryLine("constraints", "The user's limits", text, limit.turn)
    yield from _excluded(carry)
    newest = carry.turn_summaries[::-1]
    for summary in newest:
        blocked = [f"blocked: {summary.blocked_reason}"] if summary.blocked_reason else []
        for error in (*summary.errors, *blocked):
            text = f"turn {summary.turn}: {error}"
            yield CarryLine("turn_summaries", "Errors of earlier turns", text, summary.turn, (4, 6))
    for note in carry.carry_notes[::-1]:
        text = f"turn {note.turn} {note.kind}: {note.text}"
        unseen = (5,) if note.kind == "note" else ()
        yield CarryLine("carry_notes", "Notes from earlier steps", text, note.turn, unseen)
    yield from _active(carry)
    recent = frozenset(recent_turn.turn for recent_turn in carry.recent_turns)
    yield from _turns(newest[:1], "The last turn", recent=recent)
    yield from _flow(carry)
    yield from _cached(carry, load)
    yield from _recent(carry)
    yield from _archive(carry, load, shown_path)
    yield from _turns(newest[1:], "Earlier turns", unseen=(4,), recent=recent)
    history = carry.history_summary
    summaries = {summary.turn: summary.turn_summary for summary in carry.turn_summaries}
    if history.text:
        text = f"up to turn {history.through_turn}: {one_line(history.text)}"
        yield CarryLine("history_summary", "Before that", text, history.through_turn)
    for n in history.unmerged:
        text = f"not in it yet, turn {n}: {summaries.get(n, 'see its files')}"
        yield CarryLine("history_summary", "Before that", text, n)
    about = carry.engagement_summary
    if about.text:
        is_told = about.text in {one_line(recent_turn.user) for recent_turn in carry.recent_turns}
        hidden = _ALL_PHASES if is_told else ()
        yield CarryLine("engagement_summary", "The session is about", about.text, about.turn, hidden)
    for step in carry.decision_log[: -_LOG - 1 : -1]:
        text = f"turn {step.turn}: {step.action} {step.ref or 'all'}: {step.reason}"
        yield CarryLine("decision_log", "Decisions on entities", text, step.turn)


def _pending(carry: Carry) -> Iterator[CarryLine]:
    pending = carry.pending_clarification
    if pending is None or pending.status == "dropped":
        return
    head = f"{pending.status}, {pending.type} of turn {pending.asked_turn} (phase {pending.asked_by})"
    answer = [f"the user's answer, do not ask again: {pending.answer}"] if pending.answer else []
    steps = (f"step {number}: {step}" for number, step in enumerate(pending.plan, 1))
    options = (f"option: {option}" for option in pending.options)
    for text in (f"{head}: {pending.message}", *answer, *steps, *options):
        yield CarryLine("pending_clarification", "Question to the user", text, pending.asked_turn)


def _newest(entities: Sequence[Entity], most: int) -> list[Entity]:
    return sorted(entities, key=lambda entity: entity.turns[-1:], reverse=True)[:most]


def _excluded(carry: Carry) -> Iterator[CarryLine]:
    excluded = [entity for entity in carry.registry.records if entity.state != "active"]
    for entity in _newest(excluded, _EXCLUDED):
        text = f"{entity.ref} ({entity.label}): {entity.state}, {entity.reason}"
        yield CarryLine("registry", "Excluded, not to be used", text, entity.turns[-1])
    curation = carry.entity_curation
    cleared = f"everything before: {curation.reason or 'the user starts over'}"
    lines = [cleared] if curation.clear_all else []
    lines += [f"{judged.ref}: {judged.reason}" for judged in (*curation.demoted, *curation.dropped)]
    lines += [f"{judged.ref} is kept: {judged.reason}" for judged in curation.retained]
    for text in lines:
        yield CarryLine("entity_curation", f"Excluded in turn {curation.turn}", text, curation.turn)


def _active(carry: Carry) -> Iterator[CarryLine]:
    """Yield what is being talked about; phases 0 and 1 have it among their options."""
    title = "Entities that are being talked about"
    active = [entity for entity in carry.registry.records if is_active(entity, carry)]
    for entity in _newest(active, _ACTIVE):
        text = f"{entity.ref} ({entity.type}): {entity.label}"
        yield CarryLine("registry", title, text, entity.turns[-1], _OFFERED_TO)
    listing = carry.registry.listing
    labels = {entity.ref: entity.label for entity in carry.registry.records}
    if listing.items:  # a recent turn shows it, too
        is_recent = any(recent_turn.turn == listing.turn for recent_turn in carry.recent_turns)
        unseen = _ALL_PHASES if is_recent else ()
        names = [labels[ref] for ref in listing.refs[:_ACTIVE] if ref in labels]
        text = f"the last list, of turn {listing.turn}, in its order: {'; '.join(names)}"
        yield CarryLine("registry", title, text, listing.turn, (*unseen, *_OFFERED_TO))


def _turns(
    summaries: Sequence[TurnSummary],
    title: str,
    *,
    unseen: tuple[int, ...] = (),
    recent: frozenset[int],
) -> Iterator[CarryLine]:
    """
    Yield what turns did: to phase 4 only the steps of the last one, to phase 5 what came of it, not in words.
    Whoever reads what was said in *recent* turns is not told it a second time.
    """
    for summary in summaries:
        head = f"turn {summary.turn}"
        steps = f"{summary.steps_completed} of {summary.steps_total} done"
        entity_lists = [f"{word}: {', '.join(names)}" for word, names in summary.made.items() if names]
        did = []
        if summary.goal and summary.detail == "full":
            did.append(f"goal ({summary.decision}): {summary.goal}")
        did += [f"concluded: {text}" for text in summary.analysis_conclusions]
        if summary.entity_curation:
            did.append(f"entities: {summary.entity_curation}")
        worked = [
            f"step {step.step} {step.tool} ({step.step_type}), {step.record_count} records: {step.outcome}"
            for step in summary.steps
        ]
        text = f"{head}, {summary.outcome}: {summary.turn_summary}"
        hidden = FIELDS["recent_turns"].read_by if summary.turn in recent else (4, 5)
        yield CarryLine("turn_summaries", title, text, summary.turn, hidden)
        for texts, hidden in (
            ([f"steps: {steps}"] if summary.steps_total else [], (4, 6)),
            (entity_lists, (4, 6)),
            (worked, (5, 6)),
            (did, (4, 5, 6)),
        ):
            for text in texts:
                yield CarryLine("turn_summaries", title, f"{head} {text}", summary.turn, (*hidden, *unseen))


def _flow(carry: Carry) -> Iterator[CarryLine]:
    flow = carry.flow
    head = carry.head
    if head is not None:
        tone = f", tone {flow.tone}" if flow.tone else ""
        greeted = ", greeted already: do not greet again" if flow.greeted else ""
        unseen = () if tone or greeted or flow.phase != _USUAL_PHASE else _ALL_PHASES
        yield CarryLine("flow", "The conversation", f"phase {flow.phase}{tone}{greeted}", head, unseen)
        if flow.user_expressed:
            yield CarryLine("flow", "The conversation", f"the user said: {flow.user_expressed}", head)


def _cached(carry: Carry, load: Load | None) -> Iterator[CarryLine]:
    title = "Tool results that are there already"
    for cached in carry.step_cache[::-1]:
        head = f"turn {cached.turn} step {cached.step} {cached.tool}({cached.asked}), {cached.detail}"
        text = f"{head}, {cached.record_count} records: {cached.outcome}"
        yield CarryLine("step_cache", title, text, cached.path)
        lines = load(cached.path) if load and cached.detail == "full" else ()
        more = [f"[… {len(lines) - _BODY_LINES} more in {cached.path}]"] if len(lines) > _BODY_LINES else []
        for text in (*(clip(line, _LINE_CHARS) for line in lines[:_BODY_LINES]), *more):
            yield CarryLine("step_cache", title, text, cached.path, (3,))


def _recent(carry: Carry) -> Iterator[CarryLine]:
    for recent in carry.recent_turns[::-1]:
        day = recent.timestamp.partition("T")[0]
        kind = "" if recent.summary_kind in ("verbatim", "clipped") else f" ({recent.summary_kind})"
        lines = [
            f"turn {recent.turn} ({day}, {recent.outcome}), user: {clip(recent.user, _USER_CHARS)}",
            f"turn {recent.turn}, assistant{kind}: {one_line(recent.assistant_summary)}",
        ]
        if len(recent.entities_mentioned) > 1:
            listed = ", ".join(recent.entities_mentioned[:_ACTIVE])
            lines.append(f"turn {recent.turn}, listed in this order: {listed}")
        yield from (CarryLine("recent_turns", "Recent turns", text, recent.turn) for text in lines)


def _archive(carry: Carry, load: Load | None, shown_path: str | None) -> Iterator[CarryLine]:
    field = "content_archive"
    title = "Kept content"
    unasked = (5, 6)
    for entry in carry.content_archive.entries[::-1]:
        size = f"{entry.chars} characters{', cut' if entry.cut else ''}"
        is_shown = shown_path == entry.path
        text = f"{entry.key}: {entry.description} ({size})"
        yield CarryLine(field, title, text, entry.path, () if is_shown else unasked)
        if load and is_shown:
            for line in load(entry.path):
                yield CarryLine(field, title, line, entry.path, (3,))
    if gone := carry.content_archive.evicted:
        yield CarryLine(field, title, f"[… {gone} older entries are no longer listed]", None, unasked)


def render_carry(
    carry: Carry,
    phase: int,
    *,
    load: Load,
    shown_path: str | None = None,
    budget_tokens: int = CARRY_TOKENS,
) -> str:
    """
    The document `carry` of a phase: the lines that it reads; "" if there are none. When they do not fit, the
    open question, constraints, exclusions, errors, notes, active entities and the last summary stay, the rest
    goes, last first, and each field that loses something says so.
    """
    lines = carry_lines(carry, load, shown_path)
    read = (line for line in lines if phase in FIELDS[line.field].read_by and phase not in line.unseen)
    parts = [(key, [line.text for line in part]) for key, part in groupby(read, lambda line: line[:2])]
    whole = "\n".join(_block(title, texts) for (_, title), texts in parts)
    if count_tokens(whole) <= budget_tokens:
        return whole
    left = budget_tokens - _MARK_TOKENS * len(parts)
    blocks = []
    stays = True
    for (field, title), texts in parts:
        stays = stays and field in _STAYING
        fitting, room = _fitting(texts, left - count_tokens(title) - 2, clipped=stays)
        left = room if fitting else left
        blocks.append(_block(title, fitting) if fitting else f"[… {field} left out]")
        if fitting and len(fitting) < len(texts):
            blocks.append(f"[… {len(texts) - len(fitting)} more of {field} left out]")
    return "\n".join(blocks)


def _block(title: str, texts: Sequence[str]) -> str:
    return "\n".join([f"{title}:", *(f"- {text}" for text in texts)])


def _fitting(texts: Sequence[str], left: int, *, clipped: bool) -> tuple[list[str], int]:
    """The first texts that fit into the tokens *left*, and what is left then; the first may be *clipped*."""
    fitting: list[str] = []
    for text in texts:
        room = left - 2
        size = len(text)
        if count_tokens(text) > room and clipped and not fitting and room > _MARK_TOKENS:
            while size > len(MARK) + 1 and count_tokens(clip(text, size)) > room:
                size = size * 4 // 5
            text = clip(text, size)
        if count_tokens(text) > room:
            break
        fitting.append(text)
        left = room - count_tokens(text)
    return fitting, left


def field_rows(carry: Carry, exists: Callable[[str], bool]) -> list[tuple[str, str, str]]:
    """The lines for people by field: field, text, files; an empty field has one row that says so."""
    lines = list(carry_lines(carry))
    rows = list[tuple[str, str, str]]()
    for name, field in FIELDS.items():
        own = [line for line in lines if line.field == name]
        for line in own:
            files = [line.origin] if isinstance(line.origin, str) else []
            if isinstance(line.origin, int):
                places = (f"turns/{turn_name(line.origin)}/{file}" for file in (*field.files, "context.md"))
                files = [place for place in dict.fromkeys(places) if exists(place)]
            rows.append((name, clip(line.text, _LINE_CHARS), ", ".join(files)))
        if not own:
            rows.append((name, "(nothing)", ""))
    return rows
