"""Whole turns of a model that writes naturally, behind a server on loopback."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from panda.store.validate import check_store
from tests.loopback import Server
from tests.script import THOUGHT, NaturalTurn, NaturalWriter, natural_turns
from tests.scripted_turns import Ran, laptop_store, run_turn
from tests.served_turns import Served

TURNS = natural_turns()


@pytest.fixture
def server() -> Iterator[Server]:
    """A model server on loopback."""
    running = Server()
    yield running
    running.close()


def say(server: Server, tmp_path: Path, turn: NaturalTurn, **keys: Any) -> tuple[Ran, NaturalWriter]:
    """One turn to its end, and the writer that was asked."""
    writer = NaturalWriter(turn)
    model = Served(server, writer, **{"thinking_tokens": 1000, **keys})
    ran = run_turn(laptop_store(tmp_path), turn.query, model=model)
    model.close()
    return ran, writer


@pytest.mark.parametrize("dialect", ["json_schema", "json_object", "prompt"])
@pytest.mark.parametrize("name", TURNS)
def test_a_natural_turn(name: str, dialect: str, server: Server, tmp_path: Path) -> None:
    """The turn ends as its model decides, with the model's own words; the store is sound."""
    turn = TURNS[name]
    ran, writer = say(server, tmp_path, turn, structured=dialect)
    assert ran.error is None, ran.error
    assert (ran.metadata.status, ran.metadata.reason) == (turn.status, ran.metadata.reason)
    told = f"{ran.response if ran.folder.has('response.md') else ''}\n{ran.metadata.question or ''}"
    assert [text for text in turn.says if text not in told] == []
    assert {step: writer.used.get(step, 0) for step in turn.asks} == dict(turn.asks)
    assert THOUGHT not in told
    assert check_store(ran.layout) == []
    kept = (ran.folder.paths / "calls.jsonl").read_text(encoding="utf-8")
    assert (THOUGHT in kept) is (turn.style == "thinking")
    gates = [json.loads(line).get("gate") for line in ran.layout.executions_log.read_text().splitlines()]
    assert "not_measured" in gates
