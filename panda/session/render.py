"""What a session carries as text: the document that a phase reads, and lines for people. Pure."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from msgspec import Struct

from panda.documents.text import one_line
from panda.models.cl100k import count_tokens
from panda.session.registry import is_active
from panda.store.carry import EMPTY, FIELDS, MARK, Carry, TurnSummary, clip
from panda.store.layout import turn_name

CARRY_TOKENS = 600
_STAYS = 7
_MARK_TOKENS = 14
_USER_CHARS, _LINE_CHARS, _ACTIVE, _EXCLUDED, _LOG, _BODY_LINES = 500, 300, 24, 20, 5, 12
Load = Callable[[str], Sequence[str]]
"""Gives the lines of a kept result or content by its path, relative to the user's directory."""


@dataclass(frozen=True)
class _Part:
    field: str
    title: str  # what stands above the lines
    lines: Sequence[str]  # the lines, most important first

    def render(self, lines: Sequence[str]) -> str:
        return "\n".join([f"{self.title}:", *(f"- {line}" for line in lines)])


def render_carry(
    carry: Carry,
    phase: int,
    *,
    load: Load,
    shown: str | None = None,
    budget_tokens: int = CARRY_TOKENS,
) -> str:
    """
    The document `carry` of a phase: the fields that it reads; "" if all are empty. When they do not fit, the
    open question, constraints, exclusions, errors, notes, active entities and the last summary stay, the rest
    goes, last first, and each field that loses something says so. *shown* is kept content to see again.
    """
    parts = [part for part in _parts(carry, phase, load, shown) if part.lines]
    parts = [part for part in parts if phase in FIELDS[part.field].read_by]
    whole = "\n".join(part.render(part.lines) for part in parts)
    if count_tokens(whole) <= budget_tokens:
        return whole
    return _fitted(parts, budget_tokens)


def _fitted(parts: Sequence[_Part], budget_tokens: int) -> str:
    left = budget_tokens - _MARK_TOKENS * len(parts)
    blocks = []
    for at, part in enumerate(parts):
        title = count_tokens(part.title) + 2
        kept: list[str] = []
        left -= title
        for line in part.lines:
            room, size = left - 2, len(line)
            cost = count_tokens(line) + 2
            if cost > left and not kept and at < _STAYS and room > _MARK_TOKENS:
                while size > len(MARK) + 1 and count_tokens(clip(line, size)) > room:
                    size = size * 4 // 5
                line = clip(line, size)
                cost = count_tokens(line) + 2
            if cost > left:
                break
            kept.append(line)
            left -= cost
        if not kept:
            left += title
        blocks.append(part.render(kept) if kept else f"[… {part.field} left out]")
        if kept and len(kept) < len(part.lines):
            blocks.append(f"[… {len(part.lines) - len(kept)} more of {part.field} left out]")
    return "\n".join(blocks)


def _parts(carry: Carry, phase: int, load: Load, shown: str | None) -> Iterator[_Part]:
    newest = carry.turn_summaries[::-1]
    whole = [one for one in newest if one.detail == "full"]
    errors = []
    for one in whole if phase in (1, 2, 3, 5) else ():
        blocked = [f"blocked: {one.blocked_reason}"] if one.blocked_reason else []
        errors += [f"turn {one.turn}: {said}" for said in (*one.errors, *blocked)]
    limits = [f"{c.key}: {c.value} (turn {c.turn}: {c.text})" for c in carry.constraints[::-1] if c.active]
    seen = [note for note in carry.carry_notes[::-1] if phase != 5 or note.kind == "conclusion"]
    notes = [f"turn {note.turn} {note.kind}: {note.text}" for note in seen]
    flow, log = carry.flow, carry.decision_log[: -_LOG - 1 : -1]
    greeted = ", greeted already: do not greet again" if flow.greeted else ""
    tone = f", tone {flow.tone}" if flow.tone else ""
    going = [f"phase {flow.phase}{tone}{greeted}"] if carry.recent_turns else []
    going += [f"the user said: {flow.user_expressed}"] if going and flow.user_expressed else []
    history, about = carry.history_summary, carry.engagement_summary.text
    before = [f"up to turn {history.through_turn}: {one_line(history.text)}"] if history.text else []
    lines: Mapping[int, str] = {one.turn: one.turn_summary for one in carry.turn_summaries}
    before += [f"not in it yet, turn {n}: {lines.get(n, 'see its files')}" for n in history.unmerged]
    yield _Part("pending_clarification", "Question to the user", list(_pending(carry)))
    yield _Part("constraints", "The user's limits", limits)
    yield from _exclusions(carry, phase)
    yield _Part("turn_summaries", "Errors of earlier turns", errors)
    yield _Part("carry_notes", "Notes from earlier steps", notes)
    yield _Part("registry", "Entities that are being talked about", list(_active(carry)))
    yield _Part("turn_summaries", "The last turn", list(_last(whole[:1], phase)))
    yield _Part("flow", "The conversation", going)
    yield _Part("step_cache", "Tool results that are there already", list(_cached(carry, phase, load)))
    yield _Part("recent_turns", "Recent turns", list(_recent(carry)))
    yield _Part("content_archive", "Kept content", list(_archive(carry, phase, load, shown)))
    yield _Part("turn_summaries", "Earlier turns", list(_earlier(newest[1:], phase)))
    yield _Part("history_summary", "Before that", before)
    yield _Part("engagement_summary", "The session is about", [about] if about else [])
    decided = [f"turn {one.turn}: {one.action} {one.ref or 'all'}: {one.reason}" for one in log]
    yield _Part("decision_log", "Decisions on entities", decided)


def _pending(carry: Carry) -> Iterator[str]:
    pending = carry.pending_clarification
    if pending is None or pending.status == "dropped":
        return
    head = f"{pending.status}, {pending.type} of turn {pending.asked_turn} (phase {pending.asked_by})"
    yield f"{head}: {pending.message}"
    if pending.answer:
        yield f"the user's answer, do not ask again: {pending.answer}"
    yield from (f"step {number}: {step}" for number, step in enumerate(pending.plan, 1))
    yield from (f"option: {option}" for option in pending.options)


def _exclusions(carry: Carry, phase: int) -> Iterator[_Part]:
    records = [one for one in carry.registry.records if one.state != "active"]
    newest = sorted(records, key=lambda one: one.turns[-1:], reverse=True)[:_EXCLUDED]
    lines = [f"{one.ref} ({one.label}): {one.state}, {one.reason}" for one in newest]
    yield _Part("registry", "Excluded, not to be used", lines)
    curation = carry.entity_curation
    if phase in (3, 4):
        cleared = f"everything before: {curation.reason or 'the user starts over'}"
        lines = [cleared] if curation.clear_all else []
        lines += [f"{one.ref}: {one.reason}" for one in (*curation.demoted, *curation.dropped)]
        lines += [f"{one.ref} is kept: {one.reason}" for one in curation.retained]
        yield _Part("entity_curation", f"Excluded in turn {curation.turn}", lines)


def _active(carry: Carry) -> Iterator[str]:
    found = [one for one in carry.registry.records if is_active(one, carry)]
    for one in sorted(found, key=lambda one: one.turns[-1:], reverse=True)[:_ACTIVE]:
        yield f"{one.ref} ({one.type}): {one.label}"
    listing = carry.registry.listing
    if listing.items and all(one.turn != listing.turn for one in carry.recent_turns):
        labels = {one.ref: one.label for one in carry.registry.records}
        names = [labels[ref] for ref in listing.refs[:_ACTIVE] if ref in labels]
        yield f"the last list, of turn {listing.turn}, in its order: {'; '.join(names)}"


def _last(whole: Sequence[TurnSummary], phase: int) -> Iterator[str]:
    for one in whole:
        head = f"turn {one.turn}, {one.outcome}"
        if phase == 4:
            yield from (f"{head}, step {s.step} {s.tool} ({s.step_type}): {s.outcome}" for s in one.steps)
        else:
            yield f"{head}: {one.turn_summary}" if phase != 5 else head
            yield from _details(one, phase) if phase != 6 else ()


def _details(one: TurnSummary, phase: int) -> Iterator[str]:
    if one.steps_total:
        yield f"steps: {one.steps_completed} of {one.steps_total} done"
    yield from (f"{word}: {', '.join(found)}" for word, found in one.made.items() if found)
    if phase == 5:
        return
    if one.goal:
        yield f"goal ({one.decision}): {one.goal}"
    for step in one.steps:
        yield f"step {step.step} {step.tool} ({step.step_type}), {step.record_count} records: {step.outcome}"
    yield from (f"concluded: {said}" for said in one.analysis_conclusions)
    if one.entity_curation:
        yield f"entities: {one.entity_curation}"


def _earlier(summaries: Sequence[TurnSummary], phase: int) -> Iterator[str]:
    for one in summaries if phase != 4 else ():
        if phase == 5:
            yield f"turn {one.turn}: {one.outcome}"
        else:
            yield f"turn {one.turn}, {one.outcome}: {one.turn_summary}"
            if one.detail == "full" and phase != 6:
                yield from _details(one, phase)


def _cached(carry: Carry, phase: int, load: Load) -> Iterator[str]:
    for one in carry.step_cache[::-1]:
        head = f"turn {one.turn} step {one.step} {one.tool}({one.asked}), {one.detail}"
        if phase == 3 or one.detail == "summary":
            yield f"{head}, {one.record_count} records: {one.outcome}"
            continue
        yield f"{head}, {one.record_count} records"
        lines = load(one.path)
        yield from (clip(line, _LINE_CHARS) for line in lines[:_BODY_LINES])
        if len(lines) > _BODY_LINES:
            yield f"[… {len(lines) - _BODY_LINES} more in {one.path}]"


def _recent(carry: Carry) -> Iterator[str]:
    for one in carry.recent_turns[::-1]:
        how = ", ".join(filter(None, (one.outcome, one.routing.intent, one.routing.next_step)))
        yield f"turn {one.turn} ({one.timestamp}, {how}), user: {clip(one.user, _USER_CHARS)}"
        made = "" if one.summary_kind in ("verbatim", "clipped") else f" ({one.summary_kind})"
        yield f"turn {one.turn}, assistant{made}: {one_line(one.assistant_summary)}"
        if one.entities_mentioned:
            yield f"turn {one.turn}, listed in this order: {', '.join(one.entities_mentioned[:_ACTIVE])}"


def _archive(carry: Carry, phase: int, load: Load, shown: str | None) -> Iterator[str]:
    for one in carry.content_archive.entries[::-1]:
        head = f"{one.key}: {one.description} ({one.chars} characters" + (", cut)" if one.cut else ")")
        asked = shown == one.path
        if phase == 3 or phase == 4 or asked:
            yield head
        if asked and phase != 3:
            yield from load(one.path)
    if carry.content_archive.evicted and phase in (3, 4):
        yield f"[… {carry.content_archive.evicted} older entries are no longer listed]"


def field_rows(carry: Carry, exists: Callable[[str], bool]) -> list[tuple[str, str, str]]:
    """
    Everything that the next turn will know: field, text, files relative to the user's directory, in the order
    of the table of fields; an empty field has one row that says so.
    """
    rows: list[tuple[str, str, str]] = []
    for name, field in FIELDS.items():
        value = getattr(carry, name)
        if value == getattr(EMPTY, name):
            rows.append((name, "(nothing)", ""))
            continue
        for text, origin in _records(value, carry.head):
            files = [origin] if isinstance(origin, str) else []
            if isinstance(origin, int):
                places = (f"turns/{turn_name(origin)}/{file}" for file in (*field.files, "context.md"))
                files = [place for place in dict.fromkeys(places) if exists(place)]
            rows.append((name, text, ", ".join(files)))
    return rows


def _records(value: Any, origin: int | str | None, label: str = "") -> Iterator[tuple[str, int | str | None]]:
    if isinstance(value, tuple):
        for number, part in enumerate(value, 1):
            yield from _records(part, origin, label and f"{label} {number}")
        return
    said, held = [label] if label else [], []
    for name in value.__struct_fields__:
        part = getattr(value, name)
        if isinstance(part[0] if isinstance(part, tuple) and part else part, Struct):
            is_empty = isinstance(part, Struct) and part == type(part)()
            held += [] if is_empty else [(name, part)]
        elif part is True:
            said.append(name.replace("_", " "))
        elif part:
            text = ", ".join(map(str, part)) if isinstance(part, tuple) else str(part)
            said.append(f"{name.replace('_', ' ')}: {clip(text, _LINE_CHARS)}")
    for name in ("through_turn", "asked_turn", "turn", "result", "path"):
        origin = getattr(value, name, None) or origin
    if turns := getattr(value, "turns", ()):
        origin = turns[-1]
    if len(said) > bool(label):
        yield "; ".join(said), origin
    for name, part in held:
        yield from _records(part, origin, name.replace("_", " "))
