"""What preferences.md and facts.md said before a turn, for running that turn again."""

import re
from collections.abc import Sequence
from datetime import datetime

from panda.documents.memory_edit import set_entry
from panda.documents.memory_file import parse_memory_file
from panda.memory.assertions import Assertion, load_assertions
from panda.memory.staging import Kind, memory_key
from panda.storage.layout import Layout


def memory_text_as_of(text: str, layout: Layout, user: str, kind: Kind, turn: int) -> str:
    """
    The text of preferences.md or facts.md as it was when a turn began, by the user's log.

    Raises:
        DocumentError: The text is corrupt.
        FileFormatError: The log is.
    """
    path = layout.preferences(user) if kind == "preference" else layout.facts(user)
    log = load_assertions(layout.memory_log(user))
    return memory_file_as_of(text, log, kind=kind, user=user, turn=turn, where=str(path))


def memory_file_as_of(
    text: str, log: Sequence[Assertion], *, kind: Kind, user: str, turn: int, where: str
) -> str:
    """
    The text of a memory file as it was when a turn began.

    Args:
        text: The file as it is.
        log: All assertions of memory.jsonl, in order.
        kind: Which file it is.
        user: Whose memory.
        turn: Number of the turn; what it or a later turn said is taken back.
        where: File, for errors.

    Returns:
        Entries of that turn or later ones with their earlier value, or without them where there was none;
        everything else byte for byte.

    Raises:
        DocumentError: The file is corrupt.
    """
    for entry in parse_memory_file(text, where=where):
        if entry.source_turn is None or entry.source_turn < turn:
            continue
        earlier = [
            one
            for one in log
            if one.kind == kind
            and memory_key(one.entity, one.relation, user) == entry.key
            and one.source_turn is not None
            and one.source_turn < turn
            and one.confidence > 0
        ]
        if not earlier:
            text = _without(text, entry.key)
            continue
        one = earlier[-1]
        text = set_entry(
            text,
            key=entry.key,
            value=list(one.value) if isinstance(one.value, tuple) else one.value,
            confidence=one.confidence,
            source_turn=one.source_turn,
            updated_at=datetime.fromisoformat(one.asserted_at),
            title="",
            where=where,
        )
    return text


def _without(text: str, key: str) -> str:
    """The file without the line of a key in the front matter and in the list."""
    shown = re.escape(key.replace("_", " "))
    text = re.sub(rf'(?m)^"?{re.escape(key)}"?\s*:.*\n', "", text, count=1)
    return re.sub(rf"(?m)^- {shown}: .*\n", "", text, count=1)
