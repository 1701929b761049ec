"""What a session carries as lines for people, each with the files it comes from. Pure."""

from collections.abc import Callable, Iterator, Mapping

from panda.documents.sentences import one_line
from panda.session.carry import FIELDS, Carry, clip
from panda.storage.layout import step_name, turn_name

_LINE_CHARS = 300
_Line = tuple[str, int | str | None]
"""A text, and the turn or the file that it comes from."""


def field_rows(carry: Carry, exists: Callable[[str], bool]) -> list[tuple[str, str, str]]:
    """
    Everything that the next turn will know.

    Args:
        exists: Whether there is a file, relative to the user's directory.

    Returns:
        (field, text, files relative to the user's directory), in the order of the table of fields; a field
        that is empty has one row that says so.
    """
    rows = []
    for name, lines in _LINES.items():
        found = [
            (name, clip(text, _LINE_CHARS), _source(name, origin, exists)) for text, origin in lines(carry)
        ]
        rows += found or [(name, "(nothing)", "")]
    return rows


def _source(field: str, origin: int | str | None, exists: Callable[[str], bool]) -> str:
    if isinstance(origin, int):
        names = (f"turns/{turn_name(origin)}/{name}" for name in (*FIELDS[field].files, "context.md"))
        return ", ".join(dict.fromkeys(name for name in names if exists(name)))
    return origin or ""


def _recent(carry: Carry) -> Iterator[_Line]:
    for one in carry.recent_turns:
        yield f"turn {one.turn}, user: {one.user}", one.turn
        yield f"turn {one.turn}, {one.outcome}, {one.summary_kind}: {one.assistant_summary}", one.turn
        if one.entities_mentioned:
            yield f"turn {one.turn} listed: {', '.join(one.entities_mentioned)}", one.turn


def _history(carry: Carry) -> Iterator[_Line]:
    history = carry.history_summary
    if history.text:
        text = one_line(history.text)
        yield f"{history.kind}, through turn {history.through_turn}: {text}", history.through_turn
    if history.unmerged:
        yield f"not merged yet: turns {', '.join(map(str, history.unmerged))}", history.unmerged[-1]


def _about(carry: Carry) -> Iterator[_Line]:
    about = carry.engagement_summary
    if about.text:
        yield f"{about.kind}: {about.text}", about.turn


def _summaries(carry: Carry) -> Iterator[_Line]:
    for one in carry.turn_summaries:
        yield f"turn {one.turn}, {one.outcome}, {one.detail}: {one.turn_summary}", one.turn
        for step in one.steps:
            yield f"turn {one.turn} step {step.step}: {step.tool}, {step.outcome}", step.result
        for word, found in (
            ("created", one.entities_created),
            ("updated", one.entities_updated),
            ("deleted", one.entities_deleted),
            ("generated", one.artifacts_generated),
            ("saved", one.artifacts_saved),
            ("error", one.errors),
        ):
            yield from ((f"turn {one.turn} {word}: {label}", one.turn) for label in found)
        if one.blocked_reason:
            yield f"turn {one.turn} blocked: {one.blocked_reason}", one.turn


def _cache(carry: Carry) -> Iterator[_Line]:
    for one in carry.step_cache:
        yield f"{one.detail}: {one.tool}({one.asked}), {one.record_count} records: {one.outcome}", one.path


def _notes(carry: Carry) -> Iterator[_Line]:
    for one in carry.carry_notes:
        text = f"{one.kind}, until turn {one.expires_after_turn}: {one.text}"
        yield text, f"turns/{turn_name(one.turn)}/{step_name(one.step)}"


def _archive(carry: Carry) -> Iterator[_Line]:
    for one in carry.content_archive.entries:
        cut = ", cut" if one.cut else ""
        yield f"{one.key}: {one.description} ({one.chars} characters{cut})", one.path
    if carry.content_archive.evicted:
        yield f"{carry.content_archive.evicted} older entries evicted", None


def _curation(carry: Carry) -> Iterator[_Line]:
    curation = carry.entity_curation
    if curation.clear_all:
        yield f"everything dropped: {curation.reason}", curation.turn
    for word, found in (
        ("retained", curation.retained),
        ("demoted", curation.demoted),
        ("dropped", curation.dropped),
    ):
        yield from ((f"{word} {one.ref}: {one.reason}", curation.turn) for one in found)


def _log(carry: Carry) -> Iterator[_Line]:
    for one in carry.decision_log:
        yield f"turn {one.turn}: {one.action} {one.ref or 'all'}: {one.reason}", one.turn


def _registry(carry: Carry) -> Iterator[_Line]:
    for one in carry.registry.records:
        reason = f", {one.reason}" if one.reason else ""
        yield f"{one.ref} ({one.type}): {one.label}, {one.state}{reason}", one.turns[-1]
    listing = carry.registry.listing
    for at, item in enumerate(listing.items, 1):
        yield f"number {at} of the last list: {item.ref}: {item.text}", listing.turn
    if carry.registry.evicted:
        yield f"{carry.registry.evicted} records evicted", None


def _flow(carry: Carry) -> Iterator[_Line]:
    if carry.recent_turns:
        said = f"; the user said: {carry.flow.user_expressed}" if carry.flow.user_expressed else ""
        greeted = ", greeted" if carry.flow.greeted else ""
        yield f"{carry.flow.phase}, {carry.flow.tone}{greeted} (by {carry.flow.source}){said}", carry.head


def _pending(carry: Carry) -> Iterator[_Line]:
    one = carry.pending_clarification
    if one is not None:
        yield f"{one.id}, {one.status}, {one.type} by phase {one.asked_by}: {one.message}", one.asked_turn
        yield from ((f"{one.id} step: {step}", one.asked_turn) for step in one.plan)
        if one.answer:
            yield f"{one.id} answer: {one.answer}", carry.head


def _limits(carry: Carry) -> Iterator[_Line]:
    for one in carry.constraints:
        state = "" if one.active else ", no longer"
        yield f"{one.key}: {one.value}{state} ({one.text})", one.turn


_LINES: Mapping[str, Callable[[Carry], Iterator[_Line]]] = {
    "recent_turns": _recent,
    "history_summary": _history,
    "engagement_summary": _about,
    "turn_summaries": _summaries,
    "step_cache": _cache,
    "carry_notes": _notes,
    "content_archive": _archive,
    "entity_curation": _curation,
    "decision_log": _log,
    "registry": _registry,
    "flow": _flow,
    "pending_clarification": _pending,
    "constraints": _limits,
}
