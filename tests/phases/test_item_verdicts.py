"""A model that writes judges each item of its answer beside the lines that it cites."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.loopback import Server
from tests.script import PRICE_NODE, Asked, Script, pick, step_of
from tests.scripted_turns import Ran, laptop_store, run_turn
from tests.served_turns import Served

BUDGET = "memory:budget"
RIGHT: dict[str, Any] = {"text": "The Lenovo LOQ 15 costs $697.", "node_ids": [PRICE_NODE]}
FIXED: dict[str, Any] = {"text": "Its price is $697.00.", "node_ids": [PRICE_NODE]}
NEGATED: dict[str, Any] = {"text": "The Lenovo LOQ 15 does not cost $697.", "node_ids": [PRICE_NODE]}
TURNED: dict[str, Any] = {"text": "The budget is at least $800.", "node_ids": [BUDGET]}
SWAPPED: dict[str, Any] = {"text": "The Lenovo LOQ 15 costs $800.", "node_ids": [PRICE_NODE, BUDGET]}
UNFAITHFUL = {item["text"] for item in (NEGATED, TURNED, SWAPPED)}
WHY = "its source says another thing"


@pytest.fixture
def server() -> Iterator[Server]:
    """A model server on loopback."""
    running = Server()
    yield running
    running.close()


def writer(*answers: list[dict[str, Any]], agrees: bool = False) -> Any:
    """A script that writes these answers, and a judge that is always right, or that always agrees."""
    script = Script(
        answer=[{"items": items} for items in answers],
        retrieval={"relevant": pick(PRICE_NODE, BUDGET)},
        synthesis={"lines": pick("price $697.00", "budget")},
    )

    def reply(asked: Asked) -> str | Exception:
        if step_of(asked) != "validator":
            return script(asked)
        shown = asked.text.partition("===== items =====\n")[2].partition("\n\n")[0]
        numbered = re.findall(r"(?m)^(\d+)\. (.*)$", shown)
        verdicts = [
            {"n": int(n), "supported": agrees or text not in UNFAITHFUL, "why": WHY} for n, text in numbered
        ]
        return json.dumps({"items": verdicts, "reason": "As judged.", "verdict": "APPROVE"})

    return reply


def say(server: Server, tmp_path: Path, *answers: list[dict[str, Any]], agrees: bool = False) -> Ran:
    """One turn of a served model."""
    model = Served(server, writer(*answers, agrees=agrees))
    ran = run_turn(laptop_store(tmp_path), model=model)
    model.close()
    assert ran.error is None, ran.error
    assert ran.problems == []
    return ran


def texts(ran: Ran) -> list[str]:
    """The items of the answer."""
    return [item["text"] for item in ran.meta(5)["items"]]


@pytest.mark.parametrize("wrong", [NEGATED, TURNED, SWAPPED], ids=["negation", "direction", "subject"])
def test_an_unfaithful_item_is_repaired(server: Server, tmp_path: Path, wrong: dict[str, Any]) -> None:
    """What its lines deny, turn round or say of another thing is written anew alone, told why."""
    ran = say(server, tmp_path, [RIGHT, wrong], [FIXED])
    assert ran.metadata.status == "approved", ran.body(6)
    assert texts(ran) == [RIGHT["text"], FIXED["text"]]
    guidance = ran.asked("answer")[1].text.partition("===== Guidance =====")[2]
    refused, _, stands = guidance.partition("These stand and are not given again:")
    assert wrong["text"] in refused
    assert WHY in refused
    assert RIGHT["text"] in stands


def test_what_is_denied_again_is_left_out(server: Server, tmp_path: Path) -> None:
    """After its repair an item that is still not supported goes, and the answer says that something did."""
    ran = say(server, tmp_path, [RIGHT, NEGATED], [TURNED])
    assert ran.metadata.status == "approved", ran.body(6)
    assert texts(ran) == [RIGHT["text"]]
    assert TURNED["text"] not in ran.response
    assert "left out" in ran.response
    assert len(ran.asked("answer")) == 2


def test_nothing_is_left(server: Server, tmp_path: Path) -> None:
    """The turn fails if no item is supported, as often as it may be written anew."""
    ran = say(server, tmp_path, [NEGATED], [TURNED], [SWAPPED])
    assert ran.metadata.status == "failed"
    assert not any(text in ran.response for text in UNFAITHFUL)


def test_faithful_items_pass_at_once(server: Server, tmp_path: Path) -> None:
    """Each is shown beside the lines of its nodes; §6 holds the verdicts."""
    ran = say(server, tmp_path, [RIGHT, FIXED])
    assert ran.folder.superseded() == []
    assert ran.meta(6)["items"] == {"1": True, "2": True}
    assert "2 of 2" in ran.body(6)
    (judged,) = ran.asked("validator")
    shown = judged.text.partition("===== items =====\n")[2].partition("\n\n")[0]
    assert shown.startswith(f"1. {RIGHT['text']}\n   [{PRICE_NODE}]")
    assert "price $697.00" in shown


@pytest.mark.parametrize(
    "text",
    [
        "It costs $597.",
        "It costs €697.",
        "It was seen on 4 March 2025.",
        "The Dell LOQ 15 costs $697.",
        "It has 32 GB and costs $697.",
    ],
)
def test_a_judge_that_agrees_lets_no_wrong_value_through(server: Server, tmp_path: Path, text: str) -> None:
    """A number, date, name or unit that stands in no cited node is refused before the judge is asked."""
    ran = say(server, tmp_path, [{"text": text, "node_ids": [PRICE_NODE]}], [RIGHT], agrees=True)
    assert texts(ran) == [RIGHT["text"]]
    assert len(ran.asked("validator")) == 1
