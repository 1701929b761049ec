"""Loaded documents as a model that writes reads them, each kind under a heading of its own (S1 §13.1)."""

from collections.abc import Mapping, Sequence
from datetime import datetime

from panda.documents.source_headings import CACHED, FOREVER, HEADINGS, SESSION_MEMORY, STORED, TURNS
from panda.memory.gathered import freshness
from panda.memory.loading import LoadedDocument

_CUT = "[…]"


def group_documents(
    documents: Sequence[LoadedDocument], now: datetime, session_turns: Sequence[int]
) -> Mapping[str, str]:
    """
    The documents by heading; headings without documents are left out.

    Args:
        documents: Loaded and fitted.
        now: From when ages count.
        session_turns: Turns of the running session: what they said is session memory.
    """
    groups: dict[str, list[str]] = {}
    for document in documents:
        if document.items:
            groups.setdefault(_group(document, session_turns), []).append(_text(document, now))
    return {name: "\n\n".join(groups[name]) for name in HEADINGS if name in groups}


def _group(document: LoadedDocument, session_turns: Sequence[int]) -> str:
    node = document.node
    if node.source_type == "preference":
        return SESSION_MEMORY if node.source_turn in session_turns else STORED
    if node.source_type == "fact":
        return FOREVER
    return TURNS if node.source_type == "turn_summary" else CACHED


def _text(document: LoadedDocument, now: datetime) -> str:
    node = document.node
    age = freshness(node, now)
    head = f"[{node.id}] {node.title}, confidence {node.confidence:.2f}{f', {age}' if age else ''}"
    lines = [f"- {item.text}" for item in document.items]
    return "\n".join([head, *lines, *([_CUT] if document.is_cut else [])])
