"""A conversation of a Claude export: its last branch, as far as it is text."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from panda.addons.exchange.conversation import (
    Conversation,
    ConversationError,
    ExportRecord,
    ImportedMessage,
    Kind,
    Role,
    branch_to,
    clean_text,
    objects_in,
    read_moment,
    session_of,
)

_SIDES: dict[str, Role] = {"human": "user", "assistant": "assistant"}
_KINDS: dict[object, Kind] = {
    "tool_use": "tool message",
    "tool_result": "tool message",
    "thinking": "thought",
    "redacted_thinking": "thought",
    "image": "picture",
    "document": "file",
}


class _ClaudeMessage(ExportRecord, frozen=True):
    sender: str
    uuid: str | None = None
    text: str | None = None
    content: list[Any] | None = None
    created_at: str | None = None
    parent_message_uuid: str | None = None
    attachments: list[Any] | None = None
    files: list[Any] | None = None


class _ClaudeConversation(ExportRecord, frozen=True):
    chat_messages: list[Any]
    uuid: str
    name: str | None = None
    created_at: str | None = None
    current_leaf_message_uuid: str | None = None


def parse_claude(value: object) -> Conversation:
    """A conversation out of its JSON value. Raises ConversationError: it is none; says where."""
    record = _ClaudeConversation.of(value)
    left: Counter[Kind] = Counter()
    records = [_record(record.chat_messages, at) for at in range(len(record.chat_messages))]
    branch = _select_branch(records, record.current_leaf_message_uuid)
    left["message of another branch"] += len(records) - len(branch)
    messages = [_message(message, left) for message in branch]
    at = read_moment(record.created_at)
    return Conversation(session_of("claude", record.uuid), clean_text(record.name), at, messages, +left)


def _record(values: Sequence[Any], at: int) -> _ClaudeMessage:
    """A message; of one that does not read only what links it: what it says, else what stands around it."""
    try:
        return _ClaudeMessage.of(values[at])
    except ConversationError:
        before = _object_at(values, at - 1)
        own = _object_at(values, at)
        after = _object_at(values, at + 1)
        ids = (own.get("uuid"), after.get("parent_message_uuid"))
        parents = (own.get("parent_message_uuid"), before.get("uuid"))
        uuid, parent = (next((key for key in keys if isinstance(key, str)), None) for keys in (ids, parents))
        return _ClaudeMessage("", uuid, parent_message_uuid=parent)


def _object_at(values: Sequence[Any], at: int) -> Mapping[str, Any]:
    value = values[at] if 0 <= at < len(values) else None
    return value if isinstance(value, dict) else {}


def _select_branch(records: Sequence[_ClaudeMessage], leaf: str | None) -> Sequence[_ClaudeMessage]:
    """The messages of the branch that ends with the current or the last one; all where none has a parent."""
    by_id: dict[str, _ClaudeMessage] = {}
    for record in records:
        if record.uuid is not None and (record.sender or record.uuid not in by_id):
            by_id[record.uuid] = record
    parents = {key: record.parent_message_uuid for key, record in by_id.items()}
    children = Counter(parent for parent in parents.values() if parent in by_id)
    if max(children.values(), default=0) < 2:
        return records
    return [by_id[key] for key in branch_to(leaf if leaf in by_id else next(reversed(by_id)), parents)]


def _message(record: _ClaudeMessage, left: Counter[Kind]) -> ImportedMessage:
    if record.sender not in _SIDES:
        left["damaged message"] += 1
        return ImportedMessage(None, "", None)
    left["file"] += len(record.attachments or ()) + len(record.files or ())
    blocks = objects_in(record.content)
    left["other content"] += len(record.content or ()) - len(blocks)
    texts = [] if record.content else [record.text or ""]
    for block in blocks:
        if (kind := block.get("type")) == "text":
            texts.append(str(block.get("text") or ""))
        else:
            left[_KINDS.get(str(kind), "other content")] += 1
    text = clean_text("\n\n".join(text for text in texts if text.strip()))
    return ImportedMessage(_SIDES[record.sender], text, read_moment(record.created_at))
