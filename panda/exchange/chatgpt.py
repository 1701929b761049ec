"""A conversation of a ChatGPT export: the branch that was shown last, as far as it is text."""

import re
from collections import Counter
from collections.abc import Mapping
from typing import Any, cast

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
    objects_in,
    read_moment,
    session_of,
)

_TEXTS = ("text", "multimodal_text")
_THOUGHTS = ("thoughts", "reasoning_recap")
_HIDDEN = ("user_editable_context", "model_editable_context")
_MARK = re.compile("\ue200[^\ue200\ue201]*\ue201")
"""How a reply refers to sources and things, in characters that are never shown."""


class _Author(ExportRecord, frozen=True):
    role: str


class _Content(ExportRecord, frozen=True):
    content_type: str = "text"
    parts: list[Any] | None = None
    text: str | None = None
    language: str | None = None


class _Message(ExportRecord, frozen=True):
    author: _Author
    content: _Content | None = None
    create_time: float | str | None = None
    recipient: str | None = None
    metadata: dict[str, Any] | None = None


class _Node(ExportRecord, frozen=True):
    message: Any = None
    parent: str | None = None


class _Conversation(ExportRecord, frozen=True):
    mapping: dict[str, Any]
    conversation_id: str | None = None
    id: str | None = None
    title: str | None = None
    create_time: float | str | None = None
    update_time: float | str | None = None
    current_node: str | None = None


def parse_chatgpt(value: object) -> Conversation:
    """A conversation out of its JSON value. Raises ConversationError: it is none; says where."""
    record = convert_record(value, _Conversation)
    nodes = {key: convert_record(node, _Node) for key, node in record.mapping.items()}
    leaf = record.current_node if record.current_node in nodes else _newest(nodes)
    shown = branch_to(leaf, {key: node.parent for key, node in nodes.items()})
    left: Counter[Kind] = Counter()
    heard = [_message(nodes[key].message, left) for key in shown]
    for key in nodes.keys() - set(shown):
        other = _message(nodes[key].message, Counter())
        if other is not None and (other.role is None or other.text.strip()):
            left["message of another branch"] += 1
    own_id = record.conversation_id or record.id or next(iter(nodes), None)
    if own_id is None:
        raise ConversationError("it has neither an id nor a message")
    at = read_moment(record.create_time) or read_moment(record.update_time)
    messages = [message for message in heard if message is not None]
    return Conversation(session_of("chatgpt", own_id), clean_text(record.title), at, messages, +left)


def _newest(nodes: dict[str, _Node]) -> str | None:
    """The message said last, of those that nothing follows: where no node is named as the current one."""
    parents = {node.parent for node in nodes.values()}

    def said_at(key: str) -> float:
        message = nodes[key].message
        at = read_moment(message.get("create_time")) if isinstance(message, dict) else None
        return at.timestamp() if at is not None else float("-inf")

    return max((key for key in reversed(nodes) if key not in parents), key=said_at, default=None)


def _message(value: object, left: Counter[Kind]) -> Message | None:
    """What was said; None for what nobody saw. What of it cannot come in is counted."""
    if value is None:
        return None
    try:
        record = convert_record(value, _Message)
    except ConversationError:
        left["damaged message"] += 1
        return Message(None, "", None)
    content, role, metadata = record.content or _Content(), record.author.role, record.metadata or {}
    is_hidden = metadata.get("is_visually_hidden_from_conversation") is True
    if role == "system" or content.content_type in _HIDDEN or is_hidden:
        return None
    if content.content_type in _THOUGHTS:
        left["thought"] += 1
        return None
    text = _text(content, metadata, left)
    if role not in ("user", "assistant") or record.recipient not in (None, "all"):
        left["tool message"] += 1
        return None
    if text is None:
        left["other content"] += 1
        return None
    return Message(cast("Role", role), clean_text(text), read_moment(record.create_time))


def _text(content: _Content, metadata: Mapping[str, Any], left: Counter[Kind]) -> str | None:
    """The text of a message, None for a content that is none; pictures and files are counted."""
    for attachment in objects_in(metadata.get("attachments")):
        type_ = str(attachment.get("mime_type") or attachment.get("mimeType") or "")
        left["file"] += not type_.startswith("image/")
    texts = []
    for part in content.parts or ():
        if isinstance(part, str):
            texts.append(part)
        elif isinstance(part, dict) and part.get("content_type") == "audio_transcription":
            texts.append(str(part.get("text") or ""))
        elif isinstance(part, dict):
            left["picture" if "image" in str(part.get("content_type")) else "file"] += 1
    if content.content_type == "code" and content.text is not None:
        return f"```{content.language or ''}\n{content.text}\n```" if content.text.strip() else ""
    if content.content_type not in _TEXTS:
        return None
    text = "\n".join(texts)
    if "\ue200" in text:  # marks give way to the links or names that they stand for
        for reference in objects_in(metadata.get("content_references")):
            mark, shown = reference.get("matched_text"), reference.get("alt")
            if isinstance(mark, str) and "\ue200" in mark:
                text = text.replace(mark, shown if isinstance(shown, str) else "")
    return _MARK.sub("", text)
