"""Saved turns as queries to ask again: one line each for `panda batch`, with what an answer must hold to."""

import hashlib
from typing import Any

from panda.documents.memory_file import is_statement
from panda.history.past_turn import LeftOut, PastTurn

_AGAIN = "-again"
_MOST_ID_CHARS = 64
_STABLE = ("knowledge", "memory", "fact")
"""Kinds of nodes that a later answer to the same query finds under the same id, statements apart: of those,
turns, visits and research there are newer ones by then."""
_EXIT_CODES = {"approved": 0, "clarify": 21}
_FORGOTTEN = "forgotten"


def query_line(turn: PastTurn) -> dict[str, Any] | LeftOut:
    """
    The line of one turn.

    Only what a changed answer would still satisfy if it is right is expected: of an approved turn that it
    ends well, answers if it answered, and cites the note, fact or preference that was its only source; of a
    question to the user that it asks again. Nothing is expected of others.
    """
    metadata = turn.metadata
    if metadata.status == _FORGOTTEN:
        return LeftOut(*turn.key, "it was forgotten")
    if metadata.image is not None:
        return LeftOut(*turn.key, "it is about an image", "ask it by hand: panda turn --image FILE")
    line: dict[str, Any] = {
        "id": f"{metadata.user_id}-{metadata.turn}",
        "query": metadata.query,
        "user": metadata.user_id,
        "session": session_again(metadata.session_id),
        "mode": metadata.mode,
    }
    if metadata.status in _EXIT_CODES:
        line["expect"] = _expectations(turn)
    return line


def _expectations(turn: PastTurn) -> dict[str, Any]:
    expected: dict[str, Any] = {"exit_code": _EXIT_CODES[turn.metadata.status]}
    if turn.metadata.status == "approved" and turn.metadata.answered:
        expected["answered"] = True
        if len(turn.cited) == 1 and all(map(_is_stable, turn.cited)):
            expected["cites"] = list(turn.cited)
    return expected


def _is_stable(node_id: str) -> bool:
    """
    >>> _is_stable("knowledge:tea.md"), _is_stable("fact:said_t814_1"), _is_stable("turn:814")
    (True, False, False)
    """
    kind, _, name = node_id.partition(":")
    return kind in _STABLE and not is_statement(name)


def session_again(session: str) -> str:
    """
    The session in which a conversation is held once more: one of its own, so that it begins anew.

    >>> session_again("laptops"), len(session_again("x" * 64))
    ('laptops-again', 64)
    """
    room = _MOST_ID_CHARS - len(_AGAIN)
    if len(session) > room:
        digest = hashlib.sha256(session.encode()).hexdigest()[:8]
        session = f"{session[: room - len(digest) - 1]}-{digest}"
    return session + _AGAIN
