"""Whole turns of a model that writes naturally, behind a server on loopback."""

import json
from itertools import cycle

import pytest

from tests.api import ScriptedPanda
from tests.script import THOUGHT, NaturalWriter, natural_turns

TURNS = natural_turns()
DIALECTS = ("json_schema", "json_object", "prompt")


@pytest.mark.parametrize(("name", "dialect"), [*zip(TURNS, cycle(DIALECTS), strict=False)])
def test_a_natural_turn(name: str, dialect: str, ann: ScriptedPanda) -> None:
    """The turn ends as its model decides, with the model's own words; the store is sound."""
    keys = f"thinking_tokens: 1000, structured: {dialect}"
    ann.write("models.yaml", ann.server.models().replace("structured: json_schema", keys))
    natural = TURNS[name]
    writer = NaturalWriter(natural)
    turn = ann.turn(natural.query, script=writer)
    assert turn.status == natural.status
    words = f"{turn.data['response'] or ''}\n{turn.metadata['question'] or ''}"
    assert [text for text in natural.says if text not in words] == []
    assert {step: writer.used.get(step, 0) for step in natural.asks} == dict(natural.asks)
    assert THOUGHT not in words
    assert ann.problems() == []
    assert (THOUGHT in turn.text("calls.jsonl")) is (natural.style == "thinking")
    log = (ann.store / "logs" / "executions.jsonl").read_text(encoding="utf-8")
    assert "not_measured" in [json.loads(line).get("gate") for line in log.splitlines()]
