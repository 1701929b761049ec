"""A refused item of a written answer is repaired by itself."""

from pathlib import Path
from typing import Any

from panda.store.records import Evidence
from tests.script import PRICE_NODE, Script
from tests.scripted_turns import Ran, laptop_store, run_turn

RIGHT: dict[str, Any] = {"text": "The Lenovo LOQ 15 costs $697.", "node_ids": [PRICE_NODE]}
WRONG: dict[str, Any] = {"text": "It costs $777 elsewhere.", "node_ids": [PRICE_NODE]}
FIXED: dict[str, Any] = {"text": "Its price is $697.00.", "node_ids": [PRICE_NODE]}
LAST: dict[str, Any] = {"text": "Its name is Lenovo LOQ 15.", "node_ids": [PRICE_NODE]}


def say(tmp_path: Path, *answers: list[dict[str, Any]]) -> Ran:
    """One turn whose model writes these answers one after the other."""
    return run_turn(laptop_store(tmp_path), answer=Script(answer=[{"items": items} for items in answers]))


def texts(ran: Ran) -> list[str]:
    """The items of the answer."""
    return [item["text"] for item in ran.meta(5)["items"]]


def test_only_the_refused_item_is_asked_for(tmp_path: Path) -> None:
    """The model gets the item, its nodes and what is wrong; what it writes takes its place."""
    ran = say(tmp_path, [RIGHT, WRONG, LAST], [FIXED])
    assert ran.metadata.status == "approved", ran.body(6)
    assert texts(ran) == [RIGHT["text"], FIXED["text"], LAST["text"]]
    first, second = ran.asked("answer")
    assert "Guidance" not in first.text
    guidance = second.text.partition("===== Guidance =====")[2]
    wrong, _, stands = guidance.partition("These stand and are not given again:")
    assert f"- {WRONG['text']} (cites {PRICE_NODE})" in wrong
    assert "$777 in" in wrong
    assert RIGHT["text"] in stands
    assert WRONG["text"] not in stands
    assert ran.problems == []
    answer = ran.folder.load(Evidence).offered[:3]
    assert [line.text for line in answer] == texts(ran)
    assert all(line.rests_on for line in answer), "what stands is held against the lines that it cites"


def test_what_is_repeated_counts_once(tmp_path: Path) -> None:
    """A model that gives the whole answer again has its items that stand once."""
    ran = say(tmp_path, [WRONG, RIGHT], [RIGHT, FIXED])
    assert texts(ran) == [FIXED["text"], RIGHT["text"]]


def test_a_refused_item_may_be_left_out(tmp_path: Path) -> None:
    """Nothing in its place leaves what stands."""
    assert texts(say(tmp_path, [RIGHT, WRONG], [])) == [RIGHT["text"]]


def test_the_second_time_the_whole_answer_is_made_anew(tmp_path: Path) -> None:
    """An item that stays wrong makes the whole answer anew."""
    still = {**WRONG, "text": "It costs $778 elsewhere."}
    ran = say(tmp_path, [RIGHT, WRONG], [still], [LAST])
    assert ran.metadata.status == "approved", ran.body(6)
    assert texts(ran) == [LAST["text"]]
    assert "These stand" not in ran.asked("answer")[2].text


def test_nothing_stands_of_an_answer_that_is_wrong_as_a_whole(tmp_path: Path) -> None:
    """Where all items are refused the answer is made anew as before."""
    ran = say(tmp_path, [WRONG], [RIGHT])
    assert texts(ran) == [RIGHT["text"]]
    assert "These stand" not in ran.asked("answer")[1].text
