"""What turns of the session `talk` are shown of the turns before, and what its file holds."""

import json
from typing import Any

from tests.api import ScriptedPanda, Turn
from tests.store_files import write_json

TOOLS = {"tools": [], "next_step": "coordinator"}
CALL = {"tool": "memory.query"}
DONE = {"tool": "done"}


def carried(turn: Turn, step: str, number: int = -1) -> str:
    """Return the document `carry` that a step of a turn was shown; "" if there was none."""
    text = turn.asked(step)[number].text
    return text.partition("===== carry =====\n")[2].partition("\n\n=====")[0].partition("\n\nUser query:")[0]


def summary(turn: Turn) -> dict[str, Any]:
    """Return summary.json of a turn."""
    value: dict[str, Any] = turn.file("summary.json")
    return value


def load_session(panda: ScriptedPanda) -> dict[str, Any]:
    """Return the value of session.json."""
    path = panda.user_directory / "sessions" / "talk" / "session.json"
    value: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return value


def write_session(panda: ScriptedPanda, session: dict[str, Any]) -> None:
    """Write session.json as a version without seals did."""
    path = panda.user_directory / "sessions" / "talk" / "session.json"
    write_json(path, {key: value for key, value in session.items() if key != "seal"})


def load_carry(panda: ScriptedPanda) -> dict[str, Any]:
    """Return what the next turn will know."""
    carry: dict[str, Any] = load_session(panda)["carry"]
    return carry
