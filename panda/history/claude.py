"""A conversation of a Claude export: its last branch, as far as it is text."""

from collections import Counter
from collections.abc import Sequence
from typing import Any, Literal

from panda.history.conversation import (
    Conversation,
    ConversationError,
    ExportRecord,
    Kind,
    Message,
    branch_to,
    clean_text,
    convert_record,
    read_moment,
    session_of,
)

_SIDES: dict[str, Literal["user", "assistant"]] = {"human": "user", "assistant": "assistant"}
_KINDS: dict[str, Kind] = {
    "tool_use": "tool message",
    "tool_result": "tool message",
    "thinking": "thought",
    "redacted_thinking": "thought",
    "image": "picture",
    "document": "file",
}


class _Message(ExportRecord, frozen=True):
    sender: str
    uuid: str | None = None
    text: str | None = None
    content: list[Any] | None = None
    created_at: str | None = None
    parent_message_uuid: str | None = None
    attachments: list[Any] | None = None
    files: list[Any] | None = None


class _Conversation(ExportRecord, frozen=True):
    chat_messages: list[Any]
    uuid: str
    name: str | None = None
    created_at: str | None = None
    current_leaf_message_uuid: str | None = None


def parse_claude(value: object) -> Conversation:
    """A conversation out of its JSON value. Raises ConversationError: it is none; says where."""
    found: _Conversation = convert_record(value, _Conversation)
    left: Counter[Kind] = Counter()
    records = [_record(one, left) for one in found.chat_messages]
    shown = _shown(records, found.current_leaf_message_uuid)
    left["message of another branch"] += len(records) - len(shown)
    messages = [_message(one, left) for one in shown]
    title, at = clean_text(found.name or ""), read_moment(found.created_at)
    return Conversation(session_of("claude", found.uuid), title, at, messages, +left)


def _record(value: object, left: Counter[Kind]) -> _Message | None:
    try:
        found: _Message = convert_record(value, _Message)
    except ConversationError:
        left["damaged message"] += 1
        return None
    return found


def _shown(records: Sequence[_Message | None], leaf: str | None) -> Sequence[_Message | None]:
    """The messages of the branch that ends with the current or the last one; all where none has a parent."""
    known = {one.uuid: one for one in records if one is not None and one.uuid is not None}
    children = Counter(one.parent_message_uuid for one in known.values() if one.parent_message_uuid in known)
    if max(children.values(), default=0) < 2 or None in records:
        return records
    end = leaf if leaf in known else next(reversed(known))
    return [known[key] for key in branch_to(end, lambda key: known[key].parent_message_uuid, known)][::-1]


def _message(found: _Message | None, left: Counter[Kind]) -> Message:
    if found is None or found.sender not in _SIDES:
        left["damaged message"] += found is not None
        return Message(None, "", None)
    left["file"] += len(found.attachments or ()) + len(found.files or ())
    texts = []
    for block in found.content or ():
        kind = block.get("type") if isinstance(block, dict) else None
        if kind == "text":
            texts.append(str(block.get("text") or ""))
        else:
            left[_KINDS.get(str(kind), "other content")] += 1
    text = "\n\n".join(one for one in texts if one.strip()) or (found.text or "" if not found.content else "")
    return Message(_SIDES[found.sender], clean_text(text), read_moment(found.created_at))
