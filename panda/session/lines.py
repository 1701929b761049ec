"""What a session carries as lines for people, each with the files it comes from. Pure."""

from collections.abc import Callable, Iterator

from panda.documents.text import one_line
from panda.session.carry import FIELDS, Carry, clip
from panda.storage.layout import step_name, turn_name

_LINE_CHARS = 300


def field_rows(carry: Carry, exists: Callable[[str], bool]) -> list[tuple[str, str, str]]:
    """
    Everything that the next turn will know.

    Args:
        exists: Whether there is a file, relative to the user's directory.

    Returns:
        (field, text, files relative to the user's directory), in the order of the table of fields; a field
        that is empty has one row that says so.
    """
    rows: dict[str, list[tuple[str, str, str]]] = {name: [] for name in FIELDS}
    for field, text, origin in _lines(carry):
        source = origin or ""
        if isinstance(origin, int):
            names = (f"turns/{turn_name(origin)}/{name}" for name in (*FIELDS[field].files, "context.md"))
            source = ", ".join(dict.fromkeys(name for name in names if exists(name)))
        rows[field].append((field, clip(text, _LINE_CHARS), str(source)))
    return [row for name in FIELDS for row in rows[name] or [(name, "(nothing)", "")]]


def _lines(carry: Carry) -> Iterator[tuple[str, str, int | str | None]]:
    """Each field's name, a text, and the turn or the file that it comes from."""
    for turn in carry.recent_turns:
        name, at = "recent_turns", turn.turn
        yield name, f"turn {at}, user: {turn.user}", at
        yield name, f"turn {at}, {turn.outcome}, {turn.summary_kind}: {turn.assistant_summary}", at
        if turn.entities_mentioned:
            yield name, f"turn {at} listed: {', '.join(turn.entities_mentioned)}", at
    history, about = carry.history_summary, carry.engagement_summary
    if history.text:
        text = f"{history.kind}, through turn {history.through_turn}: {one_line(history.text)}"
        yield "history_summary", text, history.through_turn
    if history.unmerged:
        text = f"not merged yet: turns {', '.join(map(str, history.unmerged))}"
        yield "history_summary", text, history.unmerged[-1]
    if about.text:
        yield "engagement_summary", f"{about.kind}: {about.text}", about.turn
    for one in carry.turn_summaries:
        name, at = "turn_summaries", one.turn
        yield name, f"turn {at}, {one.outcome}, {one.detail}: {one.turn_summary}", at
        for step in one.steps:
            yield name, f"turn {at} step {step.step}: {step.tool}, {step.outcome}", step.result
        for word, labels in (*one.made.items(), ("error", one.errors)):
            yield from ((name, f"turn {at} {word}: {label}", at) for label in labels)
        if one.blocked_reason:
            yield name, f"turn {at} blocked: {one.blocked_reason}", at
    for cached in carry.step_cache:
        asked = f"{cached.tool}({cached.asked}), {cached.record_count} records"
        yield "step_cache", f"{cached.detail}: {asked}: {cached.outcome}", cached.path
    for note in carry.carry_notes:
        text = f"{note.kind}, until turn {note.expires_after_turn}: {note.text}"
        yield "carry_notes", text, f"turns/{turn_name(note.turn)}/{step_name(note.step)}"
    for kept in carry.content_archive.entries:
        size = f"{kept.chars} characters{', cut' if kept.cut else ''}"
        yield "content_archive", f"{kept.key}: {kept.description} ({size})", kept.path
    if carry.content_archive.evicted:
        yield "content_archive", f"{carry.content_archive.evicted} older entries evicted", None
    curation = carry.entity_curation
    if curation.clear_all:
        yield "entity_curation", f"everything dropped: {curation.reason}", curation.turn
    for word, judged in curation.decided.items():
        yield from (("entity_curation", f"{word} {o.ref}: {o.reason}", curation.turn) for o in judged)
    for decision in carry.decision_log:
        text = f"turn {decision.turn}: {decision.action} {decision.ref or 'all'}: {decision.reason}"
        yield "decision_log", text, decision.turn
    for record in carry.registry.records:
        reason = f", {record.reason}" if record.reason else ""
        text = f"{record.ref} ({record.type}): {record.label}, {record.state}{reason}"
        yield "registry", text, record.turns[-1]
    listing = carry.registry.listing
    for number, item in enumerate(listing.items, 1):
        yield "registry", f"number {number} of the last list: {item.ref}: {item.text}", listing.turn
    if carry.registry.evicted:
        yield "registry", f"{carry.registry.evicted} records evicted", None
    if carry.recent_turns:
        flow = carry.flow
        said = f"; the user said: {flow.user_expressed}" if flow.user_expressed else ""
        greeted = ", greeted" if flow.greeted else ""
        yield "flow", f"{flow.phase}, {flow.tone}{greeted} (by {flow.source}){said}", carry.head
    if (asked_back := carry.pending_clarification) is not None:
        name, id_, at = "pending_clarification", asked_back.id, asked_back.asked_turn
        text = f"{id_}, {asked_back.status}, {asked_back.type} by phase {asked_back.asked_by}"
        yield name, f"{text}: {asked_back.message}", at
        yield from ((name, f"{id_} step: {line}", at) for line in asked_back.plan)
        if asked_back.answer:
            yield name, f"{id_} answer: {asked_back.answer}", carry.head
    for limit in carry.constraints:
        state = "" if limit.active else ", no longer"
        yield "constraints", f"{limit.key}: {limit.value}{state} ({limit.text})", limit.turn
