"""A refused item of a written answer is repaired by itself, and a model judges each beside what it cites."""

import json
import re
from typing import Any

import pytest

from tests.api import ScriptedPanda, Turn
from tests.script import PRICE_NODE, Asked, Script, pick, step_of

BUDGET = "memory:budget"
RIGHT: dict[str, Any] = {"text": "The Lenovo LOQ 15 costs $697.", "node_ids": [PRICE_NODE]}
WRONG: dict[str, Any] = {"text": "It costs $777 elsewhere.", "node_ids": [PRICE_NODE]}
STILL_WRONG: dict[str, Any] = {**WRONG, "text": "It costs $778 elsewhere."}
FIXED: dict[str, Any] = {"text": "Its price is $697.00.", "node_ids": [PRICE_NODE]}
LAST: dict[str, Any] = {"text": "Its name is Lenovo LOQ 15.", "node_ids": [PRICE_NODE]}
NEGATED: dict[str, Any] = {"text": "The Lenovo LOQ 15 does not cost $697.", "node_ids": [PRICE_NODE]}
TURNED: dict[str, Any] = {"text": "The budget is at least $800.", "node_ids": [BUDGET]}
SWAPPED: dict[str, Any] = {"text": "The Lenovo LOQ 15 costs $800.", "node_ids": [PRICE_NODE, BUDGET]}
UNFAITHFUL = {item["text"] for item in (NEGATED, TURNED, SWAPPED)}
WHY = "its source says another thing"
STAND = "These items stand. Do not give them again:"


def say(ann: ScriptedPanda, *answers: list[dict[str, Any]], agrees: bool = False) -> Turn:
    """One turn that writes these answers, with a judge that is always right, or that always agrees."""
    script = Script(
        answer=[{"items": items} for items in answers],
        retrieval={"relevant": pick(PRICE_NODE, BUDGET)},
        synthesis={"lines": pick("price $697.00", "budget")},
    )

    def reply(asked: Asked) -> str | Exception:
        if step_of(asked) != "validator":
            return script(asked)
        shown = asked.text.partition("===== items =====\n")[2].partition("\n\n")[0]
        verdicts = [
            {"n": int(n), "supported": agrees or text not in UNFAITHFUL, "why": WHY}
            for n, text in re.findall(r"(?m)^(\d+)\. (.*)$", shown)
        ]
        return json.dumps({"items": verdicts, "reason": "As judged.", "verdict": "APPROVE"})

    turn = ann.turn(script=reply)
    assert turn.code in (0, 22), turn.out
    assert ann.problems() == []
    return turn


def texts(turn: Turn) -> list[str]:
    """The items of the answer."""
    return [item["text"] for item in turn.meta(5)["items"]]


def test_only_the_refused_item_is_asked_for(ann: ScriptedPanda) -> None:
    """The model gets the item, its nodes and what is wrong; what it writes takes its place."""
    turn = say(ann, [RIGHT, WRONG, LAST], [FIXED])
    assert turn.status == "approved", turn.body(6)
    assert texts(turn) == [RIGHT["text"], FIXED["text"], LAST["text"]]
    first, second = turn.asked("answer")
    assert "Guidance" not in first.text
    refused, _, stands = second.text.partition("===== Guidance =====")[2].partition(STAND)
    assert f"- {WRONG['text']} (cites {PRICE_NODE})" in refused
    assert "$777 in" in refused
    assert (RIGHT["text"] in stands, WRONG["text"] in stands) == (True, False)
    offered = turn.file("evidence.json")["offered"][:3]
    assert [line["text"] for line in offered] == texts(turn)
    assert all(line["rests_on"] for line in offered), "what stands is held against the lines that it cites"


@pytest.mark.parametrize(
    ("answers", "items"),
    [
        ([[WRONG, RIGHT], [RIGHT, FIXED]], [FIXED, RIGHT]),
        ([[RIGHT, WRONG], []], [RIGHT]),
        ([[RIGHT, WRONG], [STILL_WRONG], [LAST]], [RIGHT, LAST]),
        ([[WRONG], [RIGHT]], [RIGHT]),
    ],
    ids=["what is repeated counts once", "left out", "a second repair", "nothing stands"],
)
def test_what_comes_of_a_repair(ann: ScriptedPanda, answers: Any, items: list[dict[str, Any]]) -> None:
    """What stands stays once, with or without a repair; where nothing does, the answer is made anew."""
    turn = say(ann, *answers)
    assert turn.status == "approved", turn.body(6)
    assert texts(turn) == [item["text"] for item in items]
    assert (STAND in turn.asked("answer")[-1].text) is (RIGHT in answers[0])


@pytest.mark.parametrize(
    ("wrong", "why"),
    [(NEGATED, WHY), (TURNED, WHY), (SWAPPED, "$800 stands beside 'budget', not beside 'Lenovo'")],
    ids=["negation", "direction", "subject"],
)
def test_an_unfaithful_item_is_repaired(ann: ScriptedPanda, wrong: dict[str, Any], why: str) -> None:
    """What its lines deny, turn round or say of another thing is written anew alone, told why."""
    turn = say(ann, [RIGHT, wrong], [FIXED])
    assert turn.status == "approved", turn.body(6)
    assert texts(turn) == [RIGHT["text"], FIXED["text"]]
    guidance = turn.asked("answer")[1].text.partition("===== Guidance =====")[2]
    refused, _, stands = guidance.partition(STAND)
    assert wrong["text"] in refused
    assert why in refused
    assert RIGHT["text"] in stands


def test_what_is_denied_again_is_left_out(ann: ScriptedPanda) -> None:
    """When its repairs are spent, an item that is not supported goes; what is left out is named below."""
    turn = say(ann, [RIGHT, NEGATED], [TURNED])
    assert turn.status == "approved", turn.body(6)
    assert texts(turn) == [RIGHT["text"]]
    answer, _, left_out = turn.response.partition("Left out, as the cited sources do not say it:")
    assert TURNED["text"] not in answer
    assert left_out.strip().startswith(f"- {TURNED['text']}")
    assert len(turn.asked("answer")) == 3


def test_nothing_is_left(ann: ScriptedPanda) -> None:
    """The turn fails if no item is supported, as often as it may be written anew."""
    turn = say(ann, [NEGATED], [TURNED], [SWAPPED])
    assert turn.status == "failed"
    assert not any(text in turn.response for text in UNFAITHFUL)


def test_faithful_items_pass_at_once(ann: ScriptedPanda) -> None:
    """Each is shown beside the lines of its nodes; §6 holds the verdicts."""
    turn = say(ann, [RIGHT, FIXED])
    assert turn.attempts == 0
    assert turn.meta(6)["items"] == {"1": True, "2": True}
    assert "2 of 2" in turn.body(6)
    (judged,) = turn.asked("validator")
    shown = judged.text.partition("===== items =====\n")[2].partition("\n\n")[0]
    assert shown.startswith(f"1. {RIGHT['text']}\n   [{PRICE_NODE}]")
    assert "price $697.00" in shown


def test_a_judge_that_agrees_lets_no_wrong_value_through(ann: ScriptedPanda) -> None:
    """A value that stands in no cited node is refused before the judge is asked."""
    turn = say(ann, [{"text": "It costs $597.", "node_ids": [PRICE_NODE]}], [RIGHT], agrees=True)
    assert texts(turn) == [RIGHT["text"]]
    assert len(turn.asked("validator")) == 1
