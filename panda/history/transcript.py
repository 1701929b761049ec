"""Saved turns as a transcript in Markdown, one session after the other."""

import re
from collections.abc import Sequence

from panda.documents.text import visible
from panda.documents.times import render_time
from panda.history.past_turn import PastTurn

_BACKTICKS = re.compile(r"`{3,}")
_NO_REPLY = "*No answer was given.*"


def render_transcript(turns: Sequence[PastTurn]) -> str:
    """
    A transcript: a heading for each session, below it its turns in order of their numbers.

    What was said stands in fences that are longer than any row of backticks in it, so that nothing of it is
    read as Markdown; control characters are written out. Empty for no turns.
    """
    sessions: dict[tuple[str, str], list[PastTurn]] = {}
    for turn in turns:
        sessions.setdefault((turn.metadata.user_id, turn.metadata.session_id), []).append(turn)
    return "\n".join(
        part
        for (user, session), held in sessions.items()
        for part in (f"# Session {session} of {user}\n", *map(_render_turn, held))
    )


def _render_turn(turn: PastTurn) -> str:
    metadata = turn.metadata
    head = f"## Turn {metadata.turn}, {render_time(metadata.created_at)}, {metadata.status}"
    reply = f"Answer:\n\n{_fenced(turn.reply)}" if turn.reply.strip() else _NO_REPLY
    return f"{head}\n\nQuery:\n\n{_fenced(metadata.query)}\n\n{reply}\n"


def _fenced(text: str) -> str:
    r"""
    A text as a block that nothing in it can end.

    >>> print(_fenced("a\n```\n# b\n"))
    ````text
    a
    ```
    # b
    ````
    """
    longest = max(map(len, _BACKTICKS.findall(text)), default=2)
    fence = "`" * (longest + 1)
    return f"{fence}text\n{visible(text).removesuffix(chr(10))}\n{fence}"
