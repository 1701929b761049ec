"""Phase 5: the answer and its sources."""

from pathlib import Path
from typing import Any

import pytest

from tests.api import LAPTOPS, Panda, ScriptedPanda
from tests.script import APPROVED, PRICE, PRICE_NODE, Script, offered, pick
from tests.store_files import write_turn

BOTH = {"retrieval": {"relevant": pick("turn:1", PRICE_NODE)}, "synthesis": {"lines": pick("Lenovo")}}


def items(*pairs: tuple[str, str]) -> dict[str, Any]:
    """A reply with items of (text, node id)."""
    return {"items": [{"text": text, "node_ids": [node_id]} for text, node_id in pairs]}


def test_answer_with_sources(ann: ScriptedPanda) -> None:
    """Each item carries the number of its source, and the sources stand below with their places."""
    answer = items(("It costs $697.00.", PRICE_NODE), ("It was the best laptop.", "turn:1"))
    turn = ann.turn(script=Script(**BOTH, answer=answer))
    assert turn.response == (
        "It costs $697.00. [1]\n\nIt was the best laptop. [2]\n\nSources:\n"
        "- [1] visit:visit_loq, turns/turn_000001/webpage_cache/page-visit_loq/extracted.json\n"
        "- [2] turn:1, turns/turn_000001/context.md"
    )
    assert turn.body(5) == turn.response
    assert turn.metadata["answered"] is True
    assert ann.problems() == []


@pytest.mark.asks_for("shop.example")
def test_without_a_language_model_evidence_is_quoted(tmp_path: Path) -> None:
    """The models that come with panda answer with evidence word by word."""
    panda = Panda(tmp_path / "project", LAPTOPS, user="ann")
    turn = panda.turn("What is the price of the Lenovo LOQ 15?")
    assert turn.response.splitlines()[0] == f"{PRICE} [1]"
    assert turn.status == "approved"
    assert panda.problems() == []


def test_nothing_answers(ann: ScriptedPanda) -> None:
    """A model that gives no item hides nothing: what is near is shown as that, what it misses is named."""
    turn = ann.turn(script=Script(answer={"items": [], "missing": "the price today"}))
    assert turn.response.startswith("Nothing surely answers this.")
    assert "Not in the saved passages: the price today." in turn.response
    assert [passage["node_id"] for passage in turn.data["closest"]] == [PRICE_NODE]
    assert (turn.status, turn.metadata["outcome"]) == ("approved", "unsure")
    turn = ann.turn(script=Script(answer={"items": [], "missing": "that it costs $599"}))
    assert "$599" not in turn.response
    assert turn.meta(6)["verdict"] == "APPROVE"
    assert ann.problems() == []


def test_greeting(ann: ScriptedPanda) -> None:
    """A greeting is greeted, whatever was gathered."""
    greeting = {**APPROVED["analyzer"], "intent": "greeting"}
    turn = ann.turn("Hello there!", script=Script(analyzer=greeting, answer={"items": []}))
    assert turn.response.startswith("Hello.")
    assert turn.meta(5)["node_ids"] == []
    assert turn.status == "approved"


def test_source_that_was_not_offered(ann: ScriptedPanda) -> None:
    """An answer that cites what was not offered is refused; insisting on it halts the turn."""
    turn = ann.turn(script=Script(answer=items(("It costs $697.", "visit:made_up"))))
    assert (turn.code, turn.status) == (20, "halted")
    assert 5 not in turn.sections
    assert turn.interventions[0]["type"] == "invalid_reply"
    assert ann.problems() == []


def test_the_same_said_twice(ann: ScriptedPanda) -> None:
    """An item that says nearly what an earlier one says is left out; one with another price is not."""
    texts = (
        "The Lenovo LOQ 15 costs $697.00",
        "the lenovo LOQ 15 costs $697.00",
        "The Lenovo LOQ 15 costs $750",
    )
    write_turn(ann.user_directory, 3, query="Lenovo?", response="The Lenovo LOQ 15 costs $750.")
    nodes = (PRICE_NODE, PRICE_NODE, "turn:3")
    script = Script(
        retrieval={"relevant": pick(PRICE_NODE, "turn:3")},
        synthesis={"lines": pick("Lenovo")},
        analyzer={**APPROVED["analyzer"], "needs_current_prices": False},
        answer=items(*zip(texts, nodes, strict=True)),
    )
    turn = ann.turn(script=script)
    assert [item["text"] for item in turn.meta(5)["items"]] == [texts[0], texts[2]]


def test_lines_of_an_item_stay(ann: ScriptedPanda) -> None:
    """An item is markdown, but line breaks in what a model writes cannot open a fence that nothing closes."""
    turn = ann.turn(script=Script(answer=items(("It costs\n```\n$697.00", PRICE_NODE))))
    assert turn.response.split("\n\n")[0] == "It costs\n\\```\n$697.00 [1]"
    assert turn.sections == [0, 1, 2, 3, 5, 6]
    assert ann.problems() == []


TABLE = "\n".join(
    [
        "| Laptop | Price |",
        "| --- | --- |",
        *(f"| Lenovo LOQ 15 in a box of kind {letter} | $697 |" for letter in "abcdefghijklmnopqrstuvwxyz"),
    ]
)


def test_a_long_table_stays(ann: ScriptedPanda) -> None:
    """A table of over 1,000 characters keeps its lines."""
    assert len(TABLE) > 1000
    assert TABLE in ann.turn(script=Script(answer=items((TABLE, PRICE_NODE)))).response


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("It costs:\n\n```sh\n# $697.00\n```", "It costs:\n\n```sh\n# $697.00\n```\n\n([1])"),
        ("It costs $697.00\n# Lenovo LOQ 15", "It costs $697.00\n\\# Lenovo LOQ 15 [1]"),
        ("It costs:\n   ```\n   $697.00\n   ```", "It costs:\n   ```\n   $697.00\n   ```\n\n([1])"),
        ("It costs:\n\n    $697.00", "It costs:\n\n    $697.00\n\n([1])"),
        ("It costs:\n   ```\n   $697.00", "It costs:\n   \\```\n   $697.00 [1]"),
    ],
)
def test_fences_and_marks_of_a_writer(ann: ScriptedPanda, text: str, shown: str) -> None:
    """Fences that close stay, and the mark stands below; a heading becomes text."""
    turn = ann.turn(script=Script(answer=items((text, PRICE_NODE))))
    assert turn.response.partition("\n\nSources:")[0] == shown


@pytest.mark.parametrize(
    ("response", "is_offered"),
    [
        ("The Lenovo LOQ 15 costs $750.00.", False),
        ("The Lenovo LOQ 15 price is $697.00.", True),
        ("The budget for it is $500-800.", True),
    ],
    ids=["outdated", "confirmed", "price of nothing"],
)
def test_price_that_a_turn_told(ann: ScriptedPanda, response: str, *, is_offered: bool) -> None:
    """Where a current price is asked for, what a turn told is offered only if a visit still confirms it."""
    write_turn(ann.user_directory, 3, query="Lenovo?", response=response)
    script = Script(
        retrieval={"relevant": pick("turn:3", PRICE_NODE)}, synthesis={"lines": pick("$750", "$697", "$500")}
    )
    turn = ann.turn(script=script)
    assert response in turn.body(2)
    lines = offered(turn.asked("answer")[0], "lines").values()
    assert any(line.startswith("[turn:3") for line in lines) is is_offered


def test_quotation_cites_its_own_node(ann: ScriptedPanda) -> None:
    """A line that a model quotes word by word cites the node it stands in, whatever the model cites."""
    turn = ann.turn(script=Script(**BOTH, answer=items((PRICE, "turn:1"))))
    assert turn.meta(5)["node_ids"] == [PRICE_NODE]
    assert turn.status == "approved"
