"""Conversations of scripted turns: every turn opens the store anew, as a process of its own would."""

import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from panda.documents.records import encode
from panda.session.file import load_session, verify_session
from panda.store.carry import Carry
from panda.store.layout import Layout
from tests.builders import file_of
from tests.script import PRICE_NODE, Script
from tests.scripted_model import Asked
from tests.scripted_turns import USER, laptop_store, run_turn

SESSION = "talk"
TOOLS = {"tools": [], "next_step": "coordinator"}
CALL = {"tool": "memory.query"}
DONE = {"tool": "done"}


class Talk:
    """
    A conversation.

    Args:
        root: Where the store is made.
    """

    def __init__(self, root: Path) -> None:
        self.layout: Layout = laptop_store(root)

    def say(self, query: str, script: Callable[[Asked], Any] | None = None, **replies: Any) -> Any:
        """One turn; afterwards the session says what its turns say, and the store is valid."""
        ran = run_turn(self.layout, query, script or Script(**replies), session=SESSION)
        assert ran.error is None, ran.error
        assert verify_session(self.layout.of(USER), SESSION) == []
        assert ran.problems == []
        return ran

    @property
    def carry(self) -> Carry:
        """What the next turn will know."""
        session = load_session(self.layout.of(USER), SESSION)
        assert session is not None
        return session.carry

    @property
    def head(self) -> int:
        """The newest turn."""
        session = load_session(self.layout.of(USER), SESSION)
        return session.head_turn if session else 0


def carried(ran: Any, step: str, number: int = -1) -> str:
    """The document `carry` that a step of a turn was shown; "" if there was none."""
    text: str = ran.asked(step)[number].text
    return text.partition("===== carry =====\n")[2].partition("\n\n=====")[0].partition("\n\nUser query:")[0]


def summary(ran: Any) -> dict[str, Any]:
    """summary.json of a turn."""
    found: dict[str, Any] = file_of(ran.folder, "summary.json")
    return found


def listing(*labels: str) -> dict[str, Any]:
    """An answer that lists things, each citing the visit."""
    return {"items": [{"text": label, "node_ids": [PRICE_NODE]} for label in labels]}


def step_value(number: int, **changes: Any) -> dict[str, Any]:
    """A steps/step_NN.json."""
    return {
        "step": number,
        "plan": 0,
        "round": 1,
        "goal": None,
        "tool": "memory.query",
        "kind": "read",
        "arguments": {"query": "laptops"},
        "note": None,
        "conclusion": None,
        "status": "success",
        "data": None,
        "error": None,
        "claims": [],
        "entities": [],
        "artifacts": [],
        "text": "",
        "seconds": None,
        **changes,
    }


def markers(value: Any) -> list[str]:
    """Every marker in a value, as in "MKflow1x"."""
    return re.findall(r"MK[a-z]+\d+x", json.dumps(encode(value) if not isinstance(value, Mapping) else value))
