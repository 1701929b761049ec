"""Whole turns of a model that writes, behind a server on loopback: what its nodes hold passes at once."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.loopback import Server
from tests.script import PRICE_NODE, Script, pick
from tests.scripted_turns import Ran, laptop_store, run_turn
from tests.served_turns import Served

BUDGET = "memory:budget"
FAITHFUL = {
    "text": "At **$697** the Lenovo LOQ 15 is $103 below the top of your budget ($800 − $697).",
    "node_ids": [PRICE_NODE, BUDGET],
    "computed": [{"value": "$103", "expression": "$800 − $697"}],
}
TOLD_OF_BOTH = {
    "text": "Of the two limits, $500 and $800, it stays within both.",
    "node_ids": [BUDGET],
    "computed": [{"value": "two", "expression": "count($500, $800)"}],
}
WRONG = {
    "text": "It is $113 below the top of your budget ($800 − $697).",
    "node_ids": [PRICE_NODE, BUDGET],
    "computed": [{"value": "$113", "expression": "$800 − $697"}],
}


@pytest.fixture
def server() -> Iterator[Server]:
    """A model server on loopback."""
    running = Server()
    yield running
    running.close()


def say(server: Server, tmp_path: Path, *answers: list[dict[str, Any]]) -> tuple[Ran, int]:
    """One turn whose model writes these answers one after the other, and how often it was asked for one."""
    chosen = {"relevant": pick(PRICE_NODE, BUDGET)}
    script = Script(
        answer=[{"items": items} for items in answers],
        retrieval=chosen,
        synthesis={"lines": pick("price $697.00", "budget")},
    )
    model = Served(server, script)
    ran = run_turn(laptop_store(tmp_path), model=model)
    model.close()
    assert ran.error is None, ran.error
    return ran, sum(asked.params is not None and "Guidance" in asked.text for asked in model.asked)


def test_a_faithful_answer_passes_at_once(server: Server, tmp_path: Path) -> None:
    """Prices, a difference with its operands and a counted pronoun are held by what is cited."""
    ran, repaired = say(server, tmp_path, [FAITHFUL, TOLD_OF_BOTH])
    assert ran.metadata.status == "approved", ran.body(6)
    assert repaired == 0
    assert [item["text"] for item in ran.meta(5)["items"]] == [FAITHFUL["text"], TOLD_OF_BOTH["text"]]


def test_an_unfaithful_item_is_repaired_by_itself(server: Server, tmp_path: Path) -> None:
    """Wrong arithmetic is written anew alone; what stands stays as it was."""
    ran, repaired = say(server, tmp_path, [TOLD_OF_BOTH, WRONG], [FAITHFUL])
    assert ran.metadata.status == "approved", ran.body(6)
    assert repaired == 1
    assert [item["text"] for item in ran.meta(5)["items"]] == [TOLD_OF_BOTH["text"], FAITHFUL["text"]]
