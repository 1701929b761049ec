"""A batch: every item exactly once, whatever is killed; each sees the store as it was at the start."""

import json
from pathlib import Path

import pytest

from tests.api import PRICE_QUESTION, ScriptedPanda
from tests.batches.commands import (
    MEMORY,
    MoodyScript,
    begin_batch,
    check_sound,
    item,
    items,
    read_file,
    remembered_turns,
    results_of,
    resume_batch,
    saved_items,
    seen_turns,
)


@pytest.fixture
def moody(ann: ScriptedPanda, tmp_path: Path) -> ScriptedPanda:
    """Ann's laptops with a model that is slow, halts or kills where a query says so."""
    ann.server.script = MoodyScript(ann, tmp_path)
    return ann


def test_every_item_once(ann: ScriptedPanda) -> None:
    """Items become turns of the store with the numbers that they were planned with, in the order given."""
    words = ("--save", "--jobs", "2", "--out", "out.jsonl")
    data = begin_batch(ann, items(5), *words)
    assert results_of(data) == {f"q{number}": "passed" for number in range(5)}
    assert data["left"] == 0
    assert saved_items(ann) == [(f"q{number}", 3 + number) for number in range(5)]
    written = [json.loads(line) for line in (ann.home / "out.jsonl").read_text().splitlines()]
    assert sorted(line["id"] for line in written) == [f"q{number}" for number in range(5)]
    assert all("697" in line["response"] for line in written)
    ledger = Path(data["directory"]) / "turns.jsonl"
    lines = {line["item"]: line for line in map(json.loads, ledger.read_text().splitlines())}
    assert {(line["turn"], line["result"], line["exit_code"]) for line in lines.values()} == {
        (3 + number, "passed", 0) for number in range(5)
    }
    check_sound(ann)


def test_an_item_sees_its_own_session_and_the_start(ann: ScriptedPanda) -> None:
    """What another session of the batch told is not seen; what its own did is; the store keeps all."""
    lines = [
        item("a1", MEMORY, session="a"),
        item("a2", session="a"),
        item("b1", session="b"),
        item("c1", MEMORY, session="c"),
    ]
    begin_batch(ann, lines, "--save", "--jobs", "2")
    assert seen_turns(ann) == {"a1": [[1, 2]], "a2": [[1, 3]], "b1": [[1, 2]], "c1": [[1, 2]]}
    assert {3, 6} <= set(remembered_turns(ann))
    check_sound(ann)


def test_a_session_that_others_go_on_with(ann: ScriptedPanda) -> None:
    """Turns that another command adds to a session of a batch meanwhile are in it beside its own."""
    begin_batch(ann, items(3, session="default"), "--save", "--limit", "1")
    ann.turn(PRICE_QUESTION, "--session", "default")
    resume_batch(ann)
    turns = ann.json("session", "show", "default")["turns"]
    assert [turn["turn"] for turn in turns] == [1, 3, 4, 5, 6]
    check_sound(ann)


def test_what_is_tried_again_sees_what_came_before_it(ann: ScriptedPanda) -> None:
    """Not what came after it in its session, though that is saved by now."""
    lines = items(3, session="s")
    lines[1]["expect"] = {"contains": "no such words"}
    begin_batch(ann, lines, "--save")
    resume_batch(ann, "--retry-failed")
    assert saved_items(ann) == [("q0", 3), ("q1", 4), ("q2", 5), ("q1", 6)]
    assert read_file(ann, 6, "snapshot.json")["turns"] == [[1, 3]]
    check_sound(ann)


def test_a_live_item_goes_on_in_another_worker(moody: ScriptedPanda) -> None:
    """A worker that is killed in a live batch leaves a turn in the store: the next try takes it up."""
    data = begin_batch(moody, [item("q0", f"{PRICE_QUESTION} kill:mark please")], "--save", "--live")
    assert data["items"][0]["findings"] == []
    assert saved_items(moody) == [("q0", 3)]
    check_sound(moody)


def test_forgotten_words_do_not_stop_a_run(ann: ScriptedPanda) -> None:
    """The queries kept with a run may have lost what was told in an item that has ended."""
    data = begin_batch(ann, items(2), "--save", "--limit", "1")
    queries = Path(data["directory"]) / "queries.jsonl"
    queries.write_text(queries.read_text().replace(PRICE_QUESTION, "[forgotten]", 1))
    assert data["left"] == 1
    assert len(resume_batch(ann)["items"]) == 2


def test_live_items_see_what_is_there(ann: ScriptedPanda) -> None:
    """A live batch runs in the store: later items see the turns of other sessions."""
    begin_batch(ann, items(3), *("--save", "--live", "--jobs", "1"))
    assert read_file(ann, 5, "snapshot.json")["turns"] == [[1, 4]]
    check_sound(ann)


def test_a_killed_worker_costs_one_try(moody: ScriptedPanda) -> None:
    """An item whose worker is killed is run again; one that kills every worker fails, and no other does."""
    lines = [
        item("first"),
        item("once", f"{PRICE_QUESTION} kill:mark please"),
        item("always", f"{PRICE_QUESTION} die at once"),
        item("last"),
    ]
    data = begin_batch(moody, lines, "--save", "--jobs", "1")
    assert results_of(data) == {"first": "passed", "once": "passed", "always": "failed", "last": "passed"}
    (failed,) = [line for line in data["items"] if line["result"] == "failed"]
    assert "has died" in failed["findings"][0]
    check_sound(moody)


def test_changed_queries_are_refused(ann: ScriptedPanda) -> None:
    """A run goes on with the queries that it was begun with, and with no others."""
    lines = items(3)
    ann.write_lines("same.jsonl", *lines)
    ann.write_lines("changed.jsonl", *lines[:2], item("q2", "What is tea?"))
    assert begin_batch(ann, lines, "--save", "--limit", "1")["left"] == 2
    refused = ann("batch", "changed.jsonl", "--resume", "last", "--json")
    assert refused.code == 2
    assert "other queries: q2" in refused.error["message"]
    assert len(ann.json("batch", "same.jsonl", "--resume", "last")["items"]) == 3
    assert len(saved_items(ann)) == 3


def test_failures_end_it_and_are_tried_again(ann: ScriptedPanda) -> None:
    """After so many failures no item begins; --retry-failed runs those that failed with new numbers."""
    lines = [item("bad", expect={"contains": "no such words"}), *items(3)]
    words = ("--save", "--jobs", "1", "--max-failures", "1")
    data = begin_batch(ann, lines, *words)
    assert results_of(data) == {"bad": "failed"}
    assert data["items"][0]["findings"] == ["the answer does not hold 'no such words'"]
    data = resume_batch(ann, "--retry-failed")
    assert {line["item"]: line["turn"] for line in data["items"]} == {"bad": 7, "q0": 4, "q1": 5, "q2": 6}
    check_sound(ann)


def test_a_retry_that_is_limited_keeps_the_others(moody: ScriptedPanda, tmp_path: Path) -> None:
    """What failed and waits for its next try stays failed, and is no part of what the next retry begins."""
    names = ["mark0", "mark1", "mark2"]
    lines = [item(name, f"{PRICE_QUESTION} halt-without:{name} please") for name in names]
    assert set(results_of(begin_batch(moody, lines, "--save")).values()) == {"failed"}
    for name in names:
        (tmp_path / name).touch()
    data = resume_batch(moody, "--retry-failed", "--limit", "1")
    assert results_of(data) == {"mark0": "passed", "mark1": "failed", "mark2": "failed"}
    data = resume_batch(moody, "--retry-failed")
    assert results_of(data) == dict.fromkeys(names, "passed")
    assert [name for name, _ in saved_items(moody)] == names
    check_sound(moody)


def test_the_newest_run_is_the_one_that_began_last(ann: ScriptedPanda) -> None:
    """last goes by when runs began: a batch that is finished later than the next one began is older."""
    first = begin_batch(ann, items(2), "--save", "--limit", "1")["run"]
    for _ in range(10):  # runs of one second, whose numbers go beyond one digit
        assert ann("replay", "3").code == 0
    newest = begin_batch(ann, items(1), "--save")["run"]
    resume_batch(ann, run=first)
    assert resume_batch(ann)["run"] == newest


def test_a_halted_item_is_adopted_and_tried_again(moody: ScriptedPanda, tmp_path: Path) -> None:
    """Its turn is there, with an open intervention; when it is tried again, that goes, and another comes."""
    lines = [item("halts", f"{PRICE_QUESTION} halt-without:mark please"), *items(2)]
    data = begin_batch(moody, lines, "--save")
    assert [(line["item"], line["exit_code"]) for line in data["items"] if line["exit_code"]] == [
        ("halts", 20)
    ]
    assert read_file(moody, 3, "metadata.json")["status"] == "halted"
    (intervention,) = moody.json("intervention", "list")["interventions"]
    assert intervention["turn"] == 3
    (tmp_path / "mark").touch()
    data = resume_batch(moody, "--retry-failed")
    assert results_of(data) == {"halts": "passed", "q0": "passed", "q1": "passed"}
    assert saved_items(moody) == [("q0", 4), ("q1", 5), ("halts", 6)]
    assert moody.json("intervention", "list")["interventions"] == []
    check_sound(moody)


def test_two_batches_compare(ann: ScriptedPanda) -> None:
    """Batches of the same items are compared item by item; one that is not finished is red."""
    one, two = (begin_batch(ann, items(2), "--save")["run"] for _ in range(2))
    assert ann("diff", one, two).code == 0
    begin_batch(ann, items(2), "--save", "--limit", "1")
    diff = ann("diff", one, "last", "--json")
    assert diff.code == 3
    assert any("is not finished" in sentence for sentence in diff.data["regressions"])
