"""A conversation of a ChatGPT export: the branch that was shown last, as far as it is text."""

import re
from collections import Counter
from collections.abc import Mapping
from typing import Any, cast

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

_HIDDEN = ("user_editable_context", "model_editable_context")
_MARK = re.compile("\ue200[^\ue200\ue201]*\ue201")
"""How a reply refers to sources and things, in characters that are never shown."""
_MAX_REFERENCE_CHARS = 2_000


class _Author(ExportRecord, frozen=True):
    role: str


class _Content(ExportRecord, frozen=True):
    content_type: str = "text"
    parts: list[Any] | None = None
    text: str | None = None
    language: str | None = None


class _ChatGptMessage(ExportRecord, frozen=True):
    author: _Author
    content: _Content | None = None
    create_time: float | str | None = None
    recipient: str | None = None
    metadata: dict[str, Any] | None = None


class _ChatGptNode(ExportRecord, frozen=True):
    message: Any = None
    parent: str | None = None


class _ChatGptConversation(ExportRecord, frozen=True):
    mapping: dict[str, _ChatGptNode]
    conversation_id: str | None = None
    id: str | None = None
    title: str | None = None
    create_time: float | str | None = None
    update_time: float | str | None = None
    current_node: str | None = None


def parse_chatgpt(value: object) -> Conversation:
    """A conversation out of its JSON value. Raises ConversationError: it is none; says where."""
    record = _ChatGptConversation.of(value)
    nodes = record.mapping
    own_id = record.conversation_id or record.id or next(iter(nodes), None)
    if own_id is None:
        raise ConversationError("it has neither an id nor a message")
    parents = {key: node.parent for key, node in nodes.items()}
    branch = branch_to(record.current_node if record.current_node in nodes else _newest(nodes), parents)
    left: Counter[Kind] = Counter()
    messages = [message for key in branch if (message := _message(nodes[key].message, left))]
    for key in nodes.keys() - set(branch):
        other = _message(nodes[key].message, Counter())
        left["message of another branch"] += bool(other and (other.role is None or other.text.strip()))
    at = read_moment(record.create_time) or read_moment(record.update_time)
    return Conversation(session_of("chatgpt", own_id), clean_text(record.title), at, messages, +left)


def _newest(nodes: dict[str, _ChatGptNode]) -> str | None:
    """The message said last, of those that nothing follows: where no node is named as the current one."""
    parents = {node.parent for node in nodes.values()}

    def said_at(key: str) -> float:
        message = nodes[key].message
        at = read_moment(message.get("create_time")) if isinstance(message, dict) else None
        return at.timestamp() if at is not None else float("-inf")

    return max((key for key in reversed(nodes) if key not in parents), key=said_at, default=None)


def _message(value: object, left: Counter[Kind]) -> ImportedMessage | None:
    """Return a message; None for one that nobody saw. Parts of it that cannot come in are counted."""
    if value is None:
        return None
    try:
        record = _ChatGptMessage.of(value)
    except ConversationError:
        left["damaged message"] += 1
        return ImportedMessage(None, "", None)
    content = record.content or _Content()
    role = record.author.role
    metadata = record.metadata or {}
    kind = content.content_type
    if role == "system" or kind in _HIDDEN or metadata.get("is_visually_hidden_from_conversation") is True:
        return None
    if kind in ("thoughts", "reasoning_recap"):
        left["thought"] += 1
        return None
    text = _text(content, metadata, left)
    if role not in ("user", "assistant") or record.recipient not in (None, "all"):
        left["tool message"] += 1
    elif text is None:
        left["other content"] += 1
    else:
        return ImportedMessage(cast("Role", role), clean_text(text), read_moment(record.create_time))
    return None


def _text(content: _Content, metadata: Mapping[str, Any], left: Counter[Kind]) -> str | None:
    """The text of a message, None for a content that is none; pictures and files are counted."""
    for attachment in objects_in(metadata.get("attachments")):
        type_ = str(attachment.get("mime_type") or attachment.get("mimeType") or "")
        left["file"] += not type_.startswith("image/")
    texts = [part for part in content.parts or () if isinstance(part, str)]
    for part in objects_in(content.parts):
        if (kind := part.get("content_type")) == "audio_transcription":
            texts.append(str(part.get("text") or ""))
        else:
            left["picture" if "image" in str(kind) else "file"] += 1
    if content.content_type == "code" and content.text is not None:
        return f"```{content.language or ''}\n{content.text}\n```" if content.text.strip() else ""
    if content.content_type not in ("text", "multimodal_text"):
        return None
    text = "\n".join(texts)
    if "\ue200" not in text:
        return text
    shown_by_mark: dict[str, str] = {}  # marks give way to the links or names that they stand for
    for reference in objects_in(metadata.get("content_references")):
        mark = reference.get("matched_text")
        alternative = reference.get("alt")
        if (
            isinstance(mark, str)
            and isinstance(alternative, str)
            and len(alternative) <= _MAX_REFERENCE_CHARS
        ):
            shown_by_mark.setdefault(mark, _MARK.sub("", alternative))
    return _MARK.sub(lambda match: shown_by_mark.get(match[0], ""), text)
