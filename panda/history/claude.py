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
    records = [_record(found.chat_messages, at) for at in range(len(found.chat_messages))]
    shown = _shown(records, found.current_leaf_message_uuid)
    left["message of another branch"] += len(records) - len(shown)
    messages = [_message(one, left) for one in shown]
    title, at = clean_text(found.name or ""), read_moment(found.created_at)
    return Conversation(session_of("claude", found.uuid), title, at, messages, +left)


def _record(values: Sequence[Any], at: int) -> _Message:
    """A message; of one that does not read only what links it: what it says, else what stands around it."""
    try:
        found: _Message = convert_record(values[at], _Message)
    except ConversationError:
        around = [one if isinstance(one, dict) else {} for one in ({}, *values, {})][at : at + 3]
        links = (around[1].get("uuid"), around[2].get("parent_message_uuid"))
        parents = (around[1].get("parent_message_uuid"), around[0].get("uuid"))
        uuid, parent = (
            next((one for one in some if isinstance(one, str)), None) for some in (links, parents)
        )
        return _Message("", uuid, parent_message_uuid=parent)
    return found


def _shown(records: Sequence[_Message], leaf: str | None) -> Sequence[_Message]:
    """The messages of the branch that ends with the current or the last one; all where none has a parent."""
    known: dict[str, _Message] = {}
    for one in records:
        if one.uuid is not None and (one.sender or one.uuid not in known):
            known[one.uuid] = one
    children = Counter(one.parent_message_uuid for one in known.values() if one.parent_message_uuid in known)
    if max(children.values(), default=0) < 2:
        return records
    end = leaf if leaf in known else next(reversed(known))
    return [known[key] for key in branch_to(end, lambda key: known[key].parent_message_uuid, known)][::-1]


def _message(found: _Message, left: Counter[Kind]) -> Message:
    if found.sender not in _SIDES:
        left["damaged message"] += 1
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
