"""Whole turns with a served model, whatever the dialect of its server: the same answer, and no halt."""

import json
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from tests.api import ScriptedPanda
from tests.loopback import reply

Answer = Callable[[dict[str, Any]], Any]
Wrap = Callable[[dict[str, Any], Answer], Any]
"""Gives the answer to a request, from what a plain server would answer."""
THOUGHT = "The user wants {a price}."


def _text(answered: tuple[int, bytes]) -> str:
    return str(json.loads(answered[1])["choices"][0]["message"]["content"])


def _kind(body: dict[str, Any]) -> str:
    return str(body.get("response_format", {}).get("type", "prompt"))


def _thinks_first(body: dict[str, Any], plain: Answer) -> Any:
    """A model that needs more room to think than it is given, and then writes nothing."""
    if body["max_tokens"] < 4096:
        return reply(None, finish_reason="length", reasoning_content=THOUGHT)
    return reply(_text(plain(body)), reasoning_content=THOUGHT)


def _stumbling() -> Wrap:
    """Each call fails three times before it is answered."""
    number = count()
    failures = [(429, b"slow"), (503, b"loading"), None]

    def wrap(body: dict[str, Any], plain: Answer) -> Any:
        at = next(number) % 4
        return failures[at] if at < 3 else plain(body)

    return wrap


DIALECTS: dict[str, Wrap] = {
    "plain": lambda body, plain: plain(body),
    "400 on json_schema": lambda body, plain: (400, b"no") if _kind(body) == "json_schema" else plain(body),
    "500 on json_schema": lambda body, plain: (500, b"no") if _kind(body) == "json_schema" else plain(body),
    "no response_format": lambda body, plain: (422, b"no") if _kind(body) != "prompt" else plain(body),
    "fenced": lambda body, plain: reply(f"```json\n{_text(plain(body))}\n```"),
    "<think>": lambda body, plain: reply(f"<think>\n{THOUGHT}\n</think>\n\n{_text(plain(body))}"),
    "reasoning_content": lambda body, plain: reply(_text(plain(body)), reasoning_content=THOUGHT),
    "null content": _thinks_first,
    "429, 503, lost": _stumbling(),
}


@pytest.mark.usefixtures("pauses")
@pytest.mark.parametrize("name", DIALECTS)
def test_a_turn_in_each_dialect(name: str, ann: ScriptedPanda, tmp_path: Path) -> None:
    """The answer is that of a plain server; thoughts are in calls.jsonl, and nowhere else of the turn."""
    ann.environ["XDG_CACHE_HOME"] = str(tmp_path / "cache")
    models = ann.server.models().replace("structured: json_schema", "thinking_tokens: 1000")
    ann.write("models.yaml", models)
    plain = ann.server.answer
    ann.server.answer = lambda body: DIALECTS[name](body, plain)
    turn = ann.turn()
    assert turn.status == "approved"
    assert "Lenovo LOQ 15" in turn.response
    holders = {
        path.name for path in turn.directory.rglob("*") if path.is_file() and THOUGHT in path.read_text()
    }
    assert holders == ({"calls.jsonl"} if name in ("<think>", "reasoning_content", "null content") else set())
    assert ann.problems() == []
