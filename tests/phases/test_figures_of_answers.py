"""Figures of a written answer that no line has, and code that is cited, in turns of a scripted model."""

import re
from typing import Any

import pytest

from tests.api import ScriptedPanda, Turn
from tests.script import PRICE_NODE, Script, pick

BUDGET = "memory:budget"
BOTH = "The Lenovo LOQ 15 costs $697 and the budget is $800"


def write(ann: ScriptedPanda, text: str, *figures: tuple[str, str]) -> Turn:
    """Return a turn that answers with one item over the price and the budget."""
    item: dict[str, Any] = {"text": text, "node_ids": [PRICE_NODE, BUDGET]}
    if figures:
        item["computed"] = [{"value": value, "expression": expression} for value, expression in figures]
    script = Script(
        answer={"items": [item]},
        retrieval={"relevant": pick(PRICE_NODE, BUDGET)},
        synthesis={"lines": pick("price $697.00", "budget")},
    )
    turn = ann.turn(script=script)
    assert ann.problems() == []
    return turn


@pytest.mark.parametrize(
    ("text", "figures"),
    [
        (f"{BOTH}: $103 less.", ()),
        (f"{BOTH}: $103 less.", (("$103", "$800 − $697"),)),
        (f"{BOTH}: $103 less.", (("$103", "$800 − $690"),)),
        (
            f"{BOTH}: together $1,497, $748.50 on average.",
            (("$1,497", "697 + 800"), ("$748.50", "$1,497 / 2")),
        ),
    ],
    ids=["not computed", "computed", "computed wrongly", "a result of a result"],
)
def test_a_figure_that_two_operands_give_is_approved(
    ann: ScriptedPanda, text: str, figures: tuple[tuple[str, str], ...]
) -> None:
    """A model computes it, or code does from what the item names."""
    turn = write(ann, text, *figures)
    assert turn.status == "approved", turn.body(6)


@pytest.mark.parametrize(
    ("figures", "expression"),
    [
        ((), r"- \$103 = \$800 - \$697"),
        ((("$103", "$800 − $697"),), r"- \$103 = \$800 − \$697"),
        ((("$103", "$800 − $690"),), r"- \$103 = \$800 - \$697"),
    ],
    ids=["not computed", "computed", "computed wrongly"],
)
def test_a_reader_sees_how_a_figure_comes_about(
    ann: ScriptedPanda, figures: tuple[tuple[str, str], ...], expression: str
) -> None:
    """Below the sources stands the expression that holds, of the model or of code, and no other."""
    turn = write(ann, f"{BOTH}: $103 less.", *figures)
    assert re.search(expression, turn.response), turn.response
    assert "$690" not in turn.response
    assert [figure["value"] for figure in turn.meta(5)["items"][0]["computed"]] == ["$103"]


@pytest.mark.parametrize(
    ("text", "figures", "cause"),
    [
        (f"{BOTH}: $104 less.", (), r"\$104 in .* is not in"),
        (f"{BOTH}: $104 less.", (("$104", "$800 − $697"),), r"\$800 − \$697 is not \$104: it gives 103 USD"),
        (f"{BOTH}: $104 less.", (("$104", "$800 − $696"),), r"\$696 in \$800 − \$696 is not in the lines"),
    ],
    ids=["not computed", "another value", "an operand that no line has"],
)
def test_another_figure_is_refused_with_its_cause(
    ann: ScriptedPanda, text: str, figures: tuple[tuple[str, str], ...], cause: str
) -> None:
    """The turn fails, and what its verdict says names the figure or the operand."""
    turn = write(ann, text, *figures)
    assert turn.status == "failed"
    assert re.search(cause, turn.body(6)), turn.body(6)


@pytest.mark.parametrize("indent", ["", "   ", "      "])
def test_the_mark_of_code_stands_below_its_fence(ann: ScriptedPanda, indent: str) -> None:
    """An indented block stays a block, and its text stays as it is."""
    code = "\n".join(f"{indent}{line}" for line in ("```", "print('budget')", "```"))
    turn = write(ann, f"The budget, in code:\n{code}")
    assert turn.status == "approved", turn.body(6)
    assert re.search(rf"\n{re.escape(code)}\n\n\(\[1\] \[2\]\)\n", turn.response), turn.response
