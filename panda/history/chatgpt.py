"""A conversation of a ChatGPT export: the branch that was shown last, as far as it is text."""

import re
from collections import Counter
from collections.abc import Mapping
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
    found: _Conversation = convert_record(value, _Conversation)
    nodes: dict[str, _Node] = {key: convert_record(node, _Node) for key, node in found.mapping.items()}
    leaf = found.current_node if found.current_node in nodes else _newest(nodes)
    branch = list(branch_to(leaf, lambda key: nodes[key].parent, nodes))[::-1]
    left: Counter[Kind] = Counter()
    messages = [
        message
        for key in branch
        if (message := _message(nodes[key].message, left, is_shown=True)) is not None
    ]
    shown = set(branch)
    for key, node in nodes.items():
        if key not in shown and _message(node.message, Counter(), is_shown=False) is not None:
            left["message of another branch"] += 1
    own_id = found.conversation_id or found.id or next(iter(nodes), None)
    if own_id is None:
        raise ConversationError("it has neither an id nor a message")
    at = read_moment(found.create_time) or read_moment(found.update_time)
    return Conversation(session_of("chatgpt", own_id), clean_text(found.title or ""), at, messages, left)


def _newest(nodes: Mapping[str, _Node]) -> str | None:
    """The message said last, of those that nothing follows: where no node is named as the current one."""
    parents = {node.parent for node in nodes.values()}
    leaves = [key for key in nodes if key not in parents]

    def said_at(key: str) -> float:
        message = nodes[key].message
        at = read_moment(message.get("create_time")) if isinstance(message, dict) else None
        return at.timestamp() if at is not None else float("-inf")

    return max(reversed(leaves), key=said_at, default=None)


def _message(value: object, left: Counter[Kind], *, is_shown: bool) -> Message | None:
    """What was said; None for what nobody saw. What of it cannot come in is counted."""
    if value is None:
        return None
    try:
        found: _Message = convert_record(value, _Message)
    except ConversationError:
        left["damaged message"] += 1
        return Message(None, "", None)
    content, role, metadata = found.content or _Content(), found.author.role, found.metadata or {}
    if role == "system" or content.content_type in _HIDDEN:
        return None
    if metadata.get("is_visually_hidden_from_conversation") is True:
        return None
    if content.content_type in _THOUGHTS:
        left["thought"] += 1
        return None
    text = _text(content, metadata, left)
    if role not in ("user", "assistant") or found.recipient not in (None, "all"):
        left["tool message"] += 1
        return None
    if text is None:
        left["other content"] += 1
        return None
    side: Literal["user", "assistant"] = "user" if role == "user" else "assistant"
    return Message(side, text, read_moment(found.create_time)) if text.strip() or is_shown else None


def _text(content: _Content, metadata: Mapping[str, Any], left: Counter[Kind]) -> str | None:
    """The text of a message, None for a content that is none; pictures and files are counted."""
    for one in _dicts(metadata.get("attachments")):
        if not str(one.get("mime_type") or one.get("mimeType") or "").startswith("image/"):
            left["file"] += 1
    texts = []
    for part in content.parts or ():
        if isinstance(part, str):
            texts.append(part)
        elif isinstance(part, dict) and part.get("content_type") == "audio_transcription":
            texts.append(str(part.get("text") or ""))
        elif isinstance(part, dict):
            is_picture = "image" in str(part.get("content_type"))
            left["picture" if is_picture else "file"] += 1
    if content.content_type == "code" and content.text is not None:
        return clean_text(f"```{content.language or ''}\n{content.text}\n```") if content.text.strip() else ""
    if content.content_type not in _TEXTS:
        return None
    return clean_text(_without_marks("\n".join(texts), metadata))


def _without_marks(text: str, metadata: Mapping[str, Any]) -> str:
    """A reply as it was shown: its marks give way to the links or names that they stand for."""
    if "\ue200" not in text:
        return text
    for one in _dicts(metadata.get("content_references")):
        mark, shown = one.get("matched_text"), one.get("alt")
        if isinstance(mark, str) and "\ue200" in mark:
            text = text.replace(mark, shown if isinstance(shown, str) else "")
    return _MARK.sub("", text)


def _dicts(value: object) -> list[dict[str, Any]]:
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []
