"""Exports of ChatGPT and Claude as these programs write them, in small, and the turns that come of them."""

import json
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.api import Panda

START = 1_700_000_000.25
"""When the first message of a conversation was said, in seconds since 1970: 2023-11-14T22:13:20Z."""


def said(role: str, *parts: Any, **more: Any) -> dict[str, Any]:
    """A message of ChatGPT; *more* replaces keys, content_type and metadata among them."""
    content = {"content_type": more.pop("content_type", "text"), "parts": list(parts)}
    return {
        "author": {"role": role, "name": None, "metadata": {}},
        "create_time": None,
        "update_time": None,
        "content": content,
        "status": "finished_successfully",
        "end_turn": True,
        "weight": 1.0,
        "metadata": more.pop("metadata", {}),
        "recipient": more.pop("recipient", "all"),
        "channel": None,
        **more,
    }


def chatgpt(*messages: dict[str, Any] | None, number: int = 1, **more: Any) -> dict[str, Any]:
    """A conversation of ChatGPT: a root without a message, then one message after the other."""
    nodes: dict[str, Any] = {"client-created-root": {"message": None, "parent": None}}
    last = "client-created-root"
    for at, message in enumerate(messages, 1):
        key = f"node-{at}"
        if message is not None and message.get("create_time") is None and "untimed" not in message:
            message = {**message, "create_time": START + 60 * at + 86_400 * number}
        nodes[key] = {"id": key, "message": message, "parent": last, "children": []}
        nodes[last]["children"] = [key]
        last = key
    own_id = f"{number:08x}-0000-4000-8000-000000000000"
    return {
        "title": f"Talk {number}",
        "create_time": START + 86_400 * number,
        "update_time": START + 86_400 * number + 99,
        "mapping": nodes,
        "moderation_results": [],
        "current_node": last,
        "plugin_ids": None,
        "conversation_id": own_id,
        "id": own_id,
        **more,
    }


def claude(*messages: tuple[str, Any], number: int = 1, **more: Any) -> dict[str, Any]:
    """A conversation of Claude: sender and text, or content blocks, of each message."""
    chat = []
    for at, (sender, content) in enumerate(messages):
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
        chat.append(
            {
                "uuid": f"message-{number}-{at}",
                "text": content if isinstance(content, str) else "",
                "content": blocks,
                "sender": sender,
                "created_at": f"2024-05-{number:02d}T12:{at:02d}:00.123456Z",
                "updated_at": f"2024-05-{number:02d}T12:{at:02d}:00.123456Z",
                "attachments": [],
                "files": [],
            }
        )
    return {
        "uuid": f"{number:08x}-1111-4000-8000-000000000000",
        "name": "",
        "created_at": f"2024-05-{number:02d}T11:59:59.000001Z",
        "updated_at": f"2024-05-{number:02d}T13:00:00.000001Z",
        "account": {"uuid": "a"},
        "chat_messages": chat,
        **more,
    }


def write_export(path: Path, *conversations: Any) -> Path:
    """conversations.json, or the .zip around it if the path is one."""
    text = json.dumps(list(conversations))
    if path.suffix != ".zip":
        path.write_text(text, encoding="utf-8")
        return path
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("user.json", "{}")
        archive.writestr("conversations.json", text)
        archive.writestr("chat.html", "<html></html>")
    return path


@dataclass(frozen=True)
class SavedTurn:
    """A turn that came in."""

    number: int
    session: str
    at: str
    query: str
    response: str


def saved_turns(panda: Panda, user: str = "ann") -> list[SavedTurn]:
    """Return the turns of a user in order of their numbers."""
    turns = []
    for directory in sorted(panda.store.glob(f"users/{user}/turns/turn_*")):
        metadata = json.loads((directory / "metadata.json").read_text(encoding="utf-8"))
        response = (directory / "response.md").read_text(encoding="utf-8")
        turn = SavedTurn(
            number=metadata["turn"],
            session=metadata["session_id"],
            at=metadata["created_at"],
            query=metadata["query"],
            response=response,
        )
        turns.append(turn)
    return turns


def exchanges(panda: Panda) -> list[tuple[str, str]]:
    """Return query and reply of ann's turns."""
    return [(turn.query, turn.response) for turn in saved_turns(panda)]
