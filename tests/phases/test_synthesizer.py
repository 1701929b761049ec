"""Phase 5: the answer and its sources."""

from pathlib import Path
from typing import Any

import pytest

from panda.errors import HaltError
from tests.builders import build_store, import_line
from tests.script import APPROVED, PRICE, PRICE_NODE, Script, offered, pick
from tests.scripted_turns import USER, Preferring, laptop_store, run_turn
from tests.stores import write_visit


def items(*pairs: tuple[str, str]) -> dict[str, Any]:
    """A reply with items of (text, node id)."""
    return {"items": [{"text": text, "node_ids": [node_id]} for text, node_id in pairs]}


def test_answer_with_sources(tmp_path: Path) -> None:
    """Each item carries the number of its source, and the sources stand below with their places."""
    both = {"retrieval": {"relevant": pick("turn:1", PRICE_NODE)}, "synthesis": {"lines": pick("Lenovo")}}
    answer = items(("It costs $697.00.", PRICE_NODE), ("It was the best laptop.", "turn:1"))
    ran = run_turn(laptop_store(tmp_path), answer=Script(**both, answer=answer))
    assert ran.response == (
        "It costs $697.00. [1]\n\nIt was the best laptop. [2]\n\nSources:\n"
        "- [1] visit:visit_loq, turns/turn_000001/webpage_cache/page-visit_loq/extracted.json\n"
        "- [2] turn:1, turns/turn_000001/context.md\n"
    )
    assert ran.body(5) + "\n" == ran.response
    assert ran.metadata.answered is True
    assert ran.problems == []


@pytest.mark.asks_for("shop.example")
def test_model_that_only_scores_quotes(tmp_path: Path) -> None:
    """A model that does not write answers with evidence word by word."""
    model = Preferring("PROCEED", "commerce", "question", "Lenovo LOQ 15: price")
    query = "What is the price of the Lenovo LOQ 15?"
    ran = run_turn(laptop_store(tmp_path), query, answer=model, writes=False, scores=True)
    assert ran.response.splitlines()[0] == f"{PRICE} [1]"
    assert ran.metadata.status == "approved"
    assert ran.problems == []


def test_nothing_answers(tmp_path: Path) -> None:
    """Without evidence the answer says that nothing was found and what was searched."""
    ran = run_turn(laptop_store(tmp_path), answer=Script(answer={"items": []}))
    assert ran.response == f"Nothing that is saved answers this. Searched: {PRICE_NODE}.\n"
    assert (ran.metadata.status, ran.metadata.answered) == ("approved", False)
    assert ran.meta(6)["verdict"] == "APPROVE"
    assert ran.problems == []


def test_greeting(tmp_path: Path) -> None:
    """A greeting is greeted, whatever was gathered."""
    greeting = {**APPROVED["analyzer"], "intent": "greeting"}
    ran = run_turn(laptop_store(tmp_path), "Hello there!", Script(analyzer=greeting, answer={"items": []}))
    assert ran.response.startswith("Hello.")
    assert ran.meta(5)["node_ids"] == []
    assert ran.metadata.status == "approved"


def test_source_that_was_not_offered(tmp_path: Path) -> None:
    """An answer that cites what was not offered is refused; insisting on it halts the turn."""
    ran = run_turn(laptop_store(tmp_path), answer=Script(answer=items(("It costs $697.", "visit:made_up"))))
    assert isinstance(ran.error, HaltError)
    assert ran.metadata.status == "halted"
    assert 5 not in ran.sections()
    assert ran.interventions()[0]["type"] == "invalid_reply"
    assert ran.problems == []


def test_the_same_said_twice(tmp_path: Path) -> None:
    """An item that says nearly what an earlier one says is left out."""
    answer = items(
        ("The Lenovo LOQ 15 costs $697.00", PRICE_NODE), ("the lenovo LOQ 15 costs $697.00", PRICE_NODE)
    )
    ran = run_turn(laptop_store(tmp_path), answer=Script(answer=answer))
    assert [item["text"] for item in ran.meta(5)["items"]] == ["The Lenovo LOQ 15 costs $697.00"]


def test_lines_of_an_item_stay(tmp_path: Path) -> None:
    """An item is markdown, but line breaks in what a model writes cannot open a fence that nothing closes."""
    answer = items(("It costs\n```\n$697.00", PRICE_NODE))
    ran = run_turn(laptop_store(tmp_path), answer=Script(answer=answer))
    assert ran.response.split("\n\n")[0] == "It costs\n\\```\n$697.00 [1]"
    assert ran.sections() == [0, 1, 2, 3, 5, 6]
    assert ran.problems == []


def test_price_that_a_turn_told(tmp_path: Path) -> None:
    """Where a current price is asked for, what a turn told is offered only if a visit still confirms it."""
    said = [("1", "The Lenovo LOQ 15 costs $750.00."), ("2", "The Lenovo LOQ 15 price is $697.00.")]
    lines = [
        import_line(user=USER, turn=int(n), session="s", query="Lenovo?", response=text) for n, text in said
    ]
    layout = build_store(tmp_path, *lines)
    write_visit(
        layout, 1, "visit_loq", {"title": "Lenovo LOQ 15", "price": "$697.00"}, quality=0.9, user=USER
    )
    script = Script(
        retrieval={"relevant": pick("turn:1", "turn:2", PRICE_NODE)},
        synthesis={"lines": pick("$750", "$697")},
    )
    ran = run_turn(layout, answer=script)
    assert "$750.00" in ran.body(2)
    assert set(offered(ran.asked("answer")[0], "sources")) == {"turn:2", PRICE_NODE}


def test_amount_that_is_no_price(tmp_path: Path) -> None:
    """A budget that a turn told stays on offer beside current prices: it is the price of nothing."""
    budget = "My budget for it is $500-800."
    layout = build_store(
        tmp_path, import_line(user=USER, turn=1, session="s", query=budget, response="Noted.")
    )
    write_visit(
        layout, 1, "visit_loq", {"title": "Lenovo LOQ 15", "price": "$697.00"}, quality=0.9, user=USER
    )
    script = Script(
        retrieval={"relevant": pick("turn:1", PRICE_NODE)},
        synthesis={"lines": pick("$500", "$697")},
    )
    (asked,) = run_turn(layout, answer=script).asked("answer")
    assert budget in asked.text
    assert "turn:1" in offered(asked, "sources")


def test_quotation_cites_its_own_node(tmp_path: Path) -> None:
    """A line that a model quotes word by word cites the node it stands in, whatever the model cites."""
    both = {"retrieval": {"relevant": pick("turn:1", PRICE_NODE)}, "synthesis": {"lines": pick("Lenovo")}}
    ran = run_turn(laptop_store(tmp_path), answer=Script(**both, answer=items((PRICE, "turn:1"))))
    assert ran.meta(5)["node_ids"] == [PRICE_NODE]
    assert ran.metadata.status == "approved"
