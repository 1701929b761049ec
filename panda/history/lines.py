"""Saved turns as lines that `panda import` reads."""

import json
from collections.abc import Mapping
from typing import Any

from panda.documents.text import UNSAFE
from panda.documents.times import render_time
from panda.history.past_turn import LeftOut, PastTurn


def import_line(turn: PastTurn, *, numbered: bool = True) -> dict[str, Any] | LeftOut:
    """
    The line of one turn.

    Args:
        numbered: Whether it has its number; without, it gets the next free one where it is imported.
    """
    metadata = turn.metadata
    if not turn.is_saved:
        fix = None if metadata.status == "forgotten" else f"panda turn --resume {metadata.turn} ends it"
        return LeftOut(*turn.key, f"its status is {metadata.status}", fix)
    line: dict[str, Any] = {
        "user": metadata.user_id,
        "session": metadata.session_id,
        "at": render_time(metadata.created_at),
        "query": metadata.query,
        "response": turn.reply,
    }
    if numbered:
        line["turn"] = metadata.turn
    if turn.summary is not None:
        line["summary"] = turn.summary
    if turn.topics:
        line["topics"] = list(turn.topics)
    return line


def render_line(value: Mapping[str, Any]) -> str:
    r"""
    An object as one line of JSON; what may reach no terminal as it is stands there as an escape.

    >>> render_line({"query": "a\x9bb é"})
    '{"query": "a\\u009bb é"}\n'
    """
    text = json.dumps(value, ensure_ascii=False, allow_nan=False)
    return UNSAFE.sub(lambda found: f"\\u{ord(found[0]):04x}", text) + "\n"
