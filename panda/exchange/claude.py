"""A conversation of a Claude export: its last branch, as far as it is text."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

from panda.exchange.conversation import (
    Conversation,
    ConversationError,
    ExportRecord,
    Kind,
    Message,
    Role,
    branch_to,
    clean_text,
    convert_record,
    read_moment,
    session_of,
)

_SIDES: dict[str, Role] = {"human": "user", "assistant": "assistant"}
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
    record = convert_record(value, _Conversation)
    left: Counter[Kind] = Counter()
    said = [_record(record.chat_messages, at) for at in range(len(record.chat_messages))]
    shown = _shown(said, record.current_leaf_message_uuid)
    left["message of another branch"] += len(said) - len(shown)
    messages = [_message(message, left) for message in shown]
    at = read_moment(record.created_at)
    return Conversation(session_of("claude", record.uuid), clean_text(record.name), at, messages, +left)


def _record(values: Sequence[Any], at: int) -> _Message:
    """A message; of one that does not read only what links it: what it says, else what stands around it."""
    try:
        return convert_record(values[at], _Message)
    except ConversationError:
        around = [value if isinstance(value, dict) else {} for value in ({}, *values, {})[at : at + 3]]
        before, own, after = around
        links = (own.get("uuid"), after.get("parent_message_uuid"))
        parents = (own.get("parent_message_uuid"), before.get("uuid"))
        uuid, parent = (next(filter(_is_text, ids), None) for ids in (links, parents))
        return _Message("", uuid, parent_message_uuid=parent)


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def _shown(records: Sequence[_Message], leaf: str | None) -> Sequence[_Message]:
    """The messages of the branch that ends with the current or the last one; all where none has a parent."""
    known: dict[str, _Message] = {}
    for record in records:
        if record.uuid is not None and (record.sender or record.uuid not in known):
            known[record.uuid] = record
    parents = {key: record.parent_message_uuid for key, record in known.items()}
    children = Counter(parent for parent in parents.values() if parent in known)
    if max(children.values(), default=0) < 2:
        return records
    return [known[key] for key in branch_to(leaf if leaf in known else next(reversed(known)), parents)]


def _message(record: _Message, left: Counter[Kind]) -> Message:
    if record.sender not in _SIDES:
        left["damaged message"] += 1
        return Message(None, "", None)
    left["file"] += len(record.attachments or ()) + len(record.files or ())
    texts = [] if record.content else [record.text or ""]
    for block in record.content or ():
        kind = block.get("type") if isinstance(block, dict) else None
        if kind == "text":
            texts.append(str(block.get("text") or ""))
        else:
            left[_KINDS.get(str(kind), "other content")] += 1
    text = clean_text("\n\n".join(text for text in texts if text.strip()))
    return Message(_SIDES[record.sender], text, read_moment(record.created_at))
