"""Turns that an earlier version decided by rules of its own, which are gone."""

import json
from pathlib import Path

import pytest

from tests.api import LAPTOPS, Panda, ScriptedPanda, Turn
from tests.script import Script

CHOSEN = {
    "kind": "choose",
    "phase": 0,
    "recipe": "pipeline/phase0_query_analyzer",
    "attempt": 1,
    "hashes": {"model": None},
    "usage": {"prompt": 0, "reused": 0, "output": 0},
    "seconds": 0.1,
    "property": "intent",
    "prefix": {"sha256": "0" * 64, "content": "?"},
    "options": [
        {"context": "", "continuation": text, "logprob": -1.0, "tokens": 1} for text in ("query", "recall")
    ],
}
"""A line of calls.jsonl as decision lists left it: two options, of which the likelier one was taken."""


def decide_by_rules(turn: Turn) -> None:
    """Make the record of a turn that of one which decision lists decided."""
    path = turn.directory / "calls.jsonl"
    lines = path.read_text(encoding="utf-8").splitlines()
    lines.append(json.dumps({**CHOSEN, "n": len(lines) + 1}))
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


@pytest.fixture
def panda(tmp_path: Path) -> Panda:
    """Ann's laptops, with the layers as installed."""
    return Panda(tmp_path / "project", LAPTOPS, user="ann")


@pytest.mark.asks_for("shop.example")
def test_a_replay_that_differs_is_not_judged(panda: Panda) -> None:
    """The replay of such a turn that comes out otherwise says why, and ends with 0."""
    turn = panda.turn("How much is the Lenovo LOQ 15?")
    decide_by_rules(turn)
    context = turn.directory / "context.md"
    text = context.read_text(encoding="utf-8")
    context.write_text(
        text.replace("**Decision:** PROCEED\n", "**Decision:** PROCEED\n\nAs listed.\n"), "utf-8"
    )
    ended = panda("replay", str(turn.number), "--json")
    assert (ended.code, ended.data["results"]) == (0, {"not judged": 1})
    (line,) = ended.data["turns"]
    assert line["findings"][0] == "an earlier version decided it, by rules that are gone"
    assert "context.md" in line["different"]


@pytest.mark.asks_for("shop.example")
def test_a_replay_that_comes_out_the_same_is_sound(panda: Panda) -> None:
    """A turn that such rules decided is sound where nothing differs."""
    turn = panda.turn("How much is the Lenovo LOQ 15?")
    decide_by_rules(turn)
    ended = panda("replay", str(turn.number), "--json")
    assert (ended.code, ended.data["results"]) == (0, {"same": 1})


def test_such_a_turn_is_not_resumed(ann: ScriptedPanda) -> None:
    """Resuming it is refused with the reason: what it decided cannot be gone on with."""
    turn = ann.turn(script=Script(synthesis="no JSON"))
    assert turn.code == 20
    decide_by_rules(turn)
    ended = ann("turn", "--resume", str(turn.number), "--json")
    assert ended.code == 2
    assert (
        ended.error["message"] == "turn 3 was begun by an earlier version, whose rules of decision are gone"
    )
    assert ended.error["fix"] == "ask it as a new turn"
