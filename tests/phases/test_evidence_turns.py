"""Whole turns whose answers say what the nodes do not hold, and whose answers do."""

import re
from typing import Any

import pytest

from tests.api import ScriptedPanda, Turn
from tests.script import PRICE_NODE, Script, pick

BUDGET = "memory:budget"
TURN = "turn:1"

FALSE = [
    ("The Lenovo LOQ 15 costs $679.", [PRICE_NODE]),
    ("The Lenovo LOQ 15 costs €697.", [PRICE_NODE]),
    ("The HP Victus 15 costs $697.", [PRICE_NODE]),
    ("Dell's Lenovo LOQ 15 costs $697.", [PRICE_NODE]),
    ("It weighs 2.4 g.", [PRICE_NODE]),
    ("It weighs 2.5 kg.", [PRICE_NODE]),
    ("It has an RTX 4060.", [PRICE_NODE]),
    ("At $697 it is $104 below the top of your budget of $800.", [PRICE_NODE, BUDGET]),
    ("It costs $697 at cheap-laptops.store.", [PRICE_NODE]),
    ("It costs $697 since October.", [PRICE_NODE]),
    ("It costs $697 and 3 reviewers like it.", [PRICE_NODE]),
    ("Владимир recommends the Lenovo LOQ 15 for $697.", [PRICE_NODE]),
]
TRUE = [
    ("Yes, the Lenovo LOQ 15 costs 697 USD.", [PRICE_NODE]),
    ("Currently the Lenovo LOQ 15 is $697.00 and weighs 2.4 kilograms.", [PRICE_NODE]),
    ("According to the page it has an RTX™ 4050 for US$697.", [PRICE_NODE]),
    ("At $697 it is $103 below the top of your budget of $800.", [PRICE_NODE, BUDGET]),
    ("Both limits fit: it costs $697, and your budget is $500 to $800.", [PRICE_NODE, BUDGET]),
    ("The price is 697 $.", [PRICE_NODE]),
    ("LOQ 15: 697", [PRICE_NODE]),
    ("Overall, the Lenovo LOQ 15 won; see https://shop.example/review.", [TURN]),
]
FAITHFUL = {
    "text": "At **$697** the Lenovo LOQ 15 is $103 below the top of your budget ($800 − $697).",
    "node_ids": [PRICE_NODE, BUDGET],
    "computed": [{"value": "$103", "expression": "$800 − $697"}],
}
COUNTED = {
    "text": "Of the two limits, $500 and $800, it stays within both.",
    "node_ids": [BUDGET],
    "computed": [{"value": "two", "expression": "count($500, $800)"}],
}
WRONG = {
    "text": "It is $113 below the top of your budget ($800 − $697).",
    "node_ids": [PRICE_NODE, BUDGET],
    "computed": [{"value": "$113", "expression": "$800 − $697"}],
}


def answer(ann: ScriptedPanda, *answers: list[dict[str, Any]]) -> Turn:
    """One turn whose model writes these answers one after the other."""
    script = Script(
        answer=[{"items": items} for items in answers],
        retrieval={"relevant": pick(PRICE_NODE, BUDGET, TURN)},
        synthesis={"lines": pick("")},
    )
    turn = ann.turn(script=script)
    assert turn.code in (0, 22), turn.out
    assert ann.problems() == []
    return turn


@pytest.mark.parametrize(
    ("text", "node_ids", "status"),
    [(*case, "failed") for case in FALSE] + [(*case, "approved") for case in TRUE],
)
def test_a_false_answer_is_not_approved(
    ann: ScriptedPanda, text: str, node_ids: list[str], status: str
) -> None:
    """
    An answer with a value or name that its nodes do not hold is refused as often as it comes; one that words
    otherwise what they hold, or computes with it, is approved at once.
    """
    computed = [{"value": value, "expression": "$800 − $697"} for value in re.findall(r"\$10\d\b", text)]
    turn = answer(ann, [{"text": text, "node_ids": node_ids, "computed": computed}])
    assert (turn.status, turn.attempts > 0) == (status, status == "failed")


def test_a_faithful_answer_passes_at_once(ann: ScriptedPanda) -> None:
    """A difference stands among the sources with its operands; a counted pronoun is held by what is cited."""
    turn = answer(ann, [FAITHFUL, COUNTED])
    assert (turn.status, len(turn.asked("answer"))) == ("approved", 1)
    assert [item["text"] for item in turn.meta(5)["items"]] == [FAITHFUL["text"], COUNTED["text"]]
    assert "\n- $103 = $800 − $697" in turn.response


def test_wrong_arithmetic_is_repaired_by_itself(ann: ScriptedPanda) -> None:
    """It is written anew alone; what stands stays as it was."""
    turn = answer(ann, [COUNTED, WRONG], [FAITHFUL])
    assert (turn.status, len(turn.asked("answer"))) == ("approved", 2)
    assert [item["text"] for item in turn.meta(5)["items"]] == [COUNTED["text"], FAITHFUL["text"]]
