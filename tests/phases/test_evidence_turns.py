"""Whole turns whose answers say what the nodes do not hold, and whose answers do."""

import re
from pathlib import Path

import pytest

from tests.script import PRICE_NODE, Script, pick
from tests.scripted_turns import laptop_store, run_turn

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
    ("Overall, the Lenovo LOQ 15 won; see https://shop.example/review.", [TURN]),
]


def end_of(tmp_path: Path, text: str, node_ids: list[str]) -> tuple[str, list[str]]:
    """Status of a turn whose model answers so whatever happens, and what its store's check finds."""
    computed = [{"value": value, "expression": "$800 − $697"} for value in re.findall(r"\$10\d\b", text)]
    answer = {"items": [{"text": text, "node_ids": node_ids, "computed": computed}]}
    chosen = {"relevant": pick(PRICE_NODE, BUDGET, TURN)}
    script = Script(answer=answer, retrieval=chosen, synthesis={"lines": pick("")})
    ran = run_turn(laptop_store(tmp_path), "How much is the Lenovo LOQ 15?", script)
    assert ran.error is None
    return ran.metadata.status, [problem.message for problem in ran.problems]


@pytest.mark.parametrize(("text", "node_ids"), FALSE)
def test_a_false_answer_is_not_approved(tmp_path: Path, text: str, node_ids: list[str]) -> None:
    """An answer with a value or name that its nodes do not hold is refused as often as it comes."""
    assert end_of(tmp_path, text, node_ids) == ("failed", [])


@pytest.mark.parametrize(("text", "node_ids"), TRUE)
def test_a_true_answer_is_approved(tmp_path: Path, text: str, node_ids: list[str]) -> None:
    """An answer that words otherwise what its nodes hold, or computes with it, is approved at once."""
    assert end_of(tmp_path, text, node_ids) == ("approved", [])


def test_the_sources_show_what_was_computed(tmp_path: Path) -> None:
    """A number that no node holds stands in the list of sources with its operands."""
    text = "At $697 it is $103 below the top of your budget of $800."
    computed = [{"value": "$103", "expression": "$800 − $697"}]
    answer = {"items": [{"text": text, "node_ids": [PRICE_NODE, BUDGET], "computed": computed}]}
    chosen, lines = {"relevant": pick(PRICE_NODE, BUDGET)}, {"lines": pick("price $697.00", "budget")}
    ran = run_turn(laptop_store(tmp_path), answer=Script(answer=answer, retrieval=chosen, synthesis=lines))
    assert "\n- $103 = $800 − $697" in ran.response
