"""Phase 6: what may be shown, and what is sent back."""

from pathlib import Path
from typing import Any, Literal

import pytest
from msgspec.structs import replace

from panda.errors import MemoryNodeError
from panda.memory.gathered import answer_items
from panda.memory.node import Node
from panda.phases.cited import Cited, step_texts
from panda.phases.validator import check_items
from panda.store.records import GatheredItem
from tests.builders import file_of
from tests.phases.test_planner import failed_step
from tests.script import PRICE, PRICE_NODE, Script, pick
from tests.scripted_turns import laptop_store, run_turn

BOTH = {
    "retrieval": {"relevant": pick("turn:1", PRICE_NODE)},
    "synthesis": {"lines": pick("Lenovo", "https")},
}
RIGHT = "The Lenovo LOQ 15 costs $697."


def item(text: str, node_id: str = PRICE_NODE) -> dict[str, Any]:
    """A reply with one item."""
    return {"items": [{"text": text, "node_ids": [node_id]}]}


@pytest.mark.parametrize(
    ("text", "node_id"),
    [
        ("The Lenovo LOQ 15 costs $597.", PRICE_NODE),
        ("The Lenovo LOQ 15 costs €697.", PRICE_NODE),
        ("The Lenovo LOQ 15 costs $697, last seen 4 March 2025.", PRICE_NODE),
        ("The Lenovo LOQ 15 has 32 GB and costs $697.", PRICE_NODE),
        ("The Lenovo LOQ 15 costs $697, see https://shop.example/other.", PRICE_NODE),
        ("It is reviewed at https://shop.example/reviews.", "turn:1"),
        ("The Dell LOQ 15 costs $697.", PRICE_NODE),
        ("The Lenovo LOQ 15 costs $697.", "turn:1"),
    ],
    ids=["price", "currency", "date", "quantity", "url", "url-longer", "name", "other-node"],
)
def test_unsupported_answer_is_not_approved(tmp_path: Path, text: str, node_id: str) -> None:
    """A price, date, quantity, URL or name that the cited node lacks is never shown; no vote changes that."""
    ran = run_turn(laptop_store(tmp_path), answer=Script(**BOTH, answer=[item(text, node_id), item(RIGHT)]))
    (superseded,) = ran.folder.superseded()
    refused = superseded.section(6)
    assert refused is not None
    assert refused.meta["verdict"] == "REVISE"
    assert refused.meta["rejected"] == [text]
    assert refused.meta["issues"]
    assert len(ran.asked("validator")) == 1
    assert ran.response.startswith(f"{RIGHT} [1]")
    assert ran.metadata.status == "approved"
    assert ran.problems == []


@pytest.mark.parametrize("text", ["It costs $697.00.", "The price is 697 $.", "LOQ 15: 697"])
def test_supported_answer_is_approved(tmp_path: Path, text: str) -> None:
    """The same value may be written in another way."""
    ran = run_turn(laptop_store(tmp_path), answer=Script(answer=item(text)))
    assert ran.meta(6)["verdict"] == "APPROVE"
    assert ran.folder.superseded() == []


def test_a_question_is_left_to_the_verdict(tmp_path: Path) -> None:
    """An item that asks is for the model to judge: it may be the answer's last sentence."""
    script = Script(answer=[item("Shall I look for others?"), item(RIGHT)])
    ran = run_turn(laptop_store(tmp_path), answer=script)
    assert ran.folder.superseded() == []
    assert ran.metadata.status == "approved"


def test_answer_without_a_source(tmp_path: Path) -> None:
    """If nothing was gathered, a model that answers all the same, citing nothing, halts the turn."""
    script = Script(retrieval={"relevant": []}, answer={"items": [{"text": "Paris.", "node_ids": []}]})
    ran = run_turn(laptop_store(tmp_path), "What is the capital of France?", script)
    assert ran.metadata.status == "halted"
    assert "cites no node" in str(ran.error)
    assert not (ran.folder.paths / "response.md").exists()
    assert ran.problems == []


def test_revise_twice_then_fail(tmp_path: Path) -> None:
    """After two revisions the turn fails: no answer is shown, all attempts are kept."""
    texts = ["It costs $697.", "The price is $697.00 there.", "You pay $697 for the Lenovo."]
    script = Script(
        answer=[item(text) for text in texts], validator={"verdict": "REVISE", "reason": "Too curt."}
    )
    ran = run_turn(laptop_store(tmp_path), answer=script)
    assert ran.metadata.status == "failed"
    assert ran.metadata.route == (0, 1, 2, 3, 5, 6, 5, 6, 5, 6, 7)
    assert ran.metadata.reason == "Too curt."
    assert ran.meta(6)["verdict"] == "FAIL"
    attempts = [answer_items(document.section(5)) for document in ran.folder.superseded()]
    assert [items[0].text for items in attempts] == texts[:2]
    assert ran.body(5).startswith(texts[2])
    assert ran.sections() == [0, 1, 2, 3, 5, 6]
    assert ran.problems == []


def test_reason_reaches_the_next_attempt(tmp_path: Path) -> None:
    """Phase 5 is told why its answer was sent back."""
    script = Script(
        answer=[item("It costs $697."), item(RIGHT)],
        validator=[{"verdict": "REVISE", "reason": "Name the laptop."}, {"verdict": "APPROVE"}],
    )
    ran = run_turn(laptop_store(tmp_path), answer=script)
    first, second = ran.asked("answer")
    assert "Name the laptop." not in first.text
    assert "Name the laptop." in second.text
    assert ran.metadata.status == "approved"


def test_rejected_evidence_is_not_offered_again(tmp_path: Path) -> None:
    """A quotation that was rejected is named as refused to the next attempt, and to the one after."""
    script = Script(
        **BOTH,
        answer=[item(PRICE), item("The Lenovo LOQ 15 was the best laptop.", "turn:1"), item(RIGHT)],
        validator=[{"verdict": "REVISE"}, {"verdict": "REVISE"}, {"verdict": "APPROVE"}],
    )
    ran = run_turn(laptop_store(tmp_path), answer=script)
    told = [asked.text.partition("===== Guidance =====\n")[2] for asked in ran.asked("answer")]
    assert [f"- {PRICE}" in text for text in told] == [False, True, True]
    assert ["- The Lenovo LOQ 15 was the best laptop." in text for text in told] == [False, False, True]
    assert ran.metadata.status == "approved"


def test_rejected_answer_cannot_come_back(tmp_path: Path) -> None:
    """A model that gives a rejected answer again and again fails: the wrong price is never shown."""
    ran = run_turn(laptop_store(tmp_path), answer=Script(answer=item("It costs $1.")))
    assert "$1" not in ran.response
    assert ran.metadata.status == "failed"
    assert ran.metadata.answered is False
    assert ran.problems == []


def test_retry_plans_anew_once(tmp_path: Path) -> None:
    """RETRY goes back to phase 3 with its reason, once; the sections from §3 on are superseded."""
    script = Script(
        planner=[{"next_step": "synthesis", "tools": []}, {"next_step": "coordinator", "tools": []}],
        coordinator=[{"tool": "memory.query"}, {"tool": "done"}],
        answer=[item("It costs $697."), item(RIGHT)],
        validator=[{"verdict": "RETRY", "reason": "Look into memory."}, {"verdict": "APPROVE"}],
    )
    ran = run_turn(laptop_store(tmp_path), answer=script)
    assert ran.metadata.route == (0, 1, 2, 3, 5, 6, 3, 4, 5, 6, 7)
    plan = file_of(ran.folder, "plan.json")
    assert (plan["round"], plan["reason"]) == (1, "Look into memory.")
    assert "Look into memory." in ran.asked("planner")[1].text
    (superseded,) = ran.folder.superseded()
    assert [section.number for section in superseded.sections] == [3, 5, 6]
    assert ran.sections() == [0, 1, 2, 3, 4, 5, 6]
    assert ran.metadata.status == "approved"
    assert ran.problems == []


def test_second_retry_fails(tmp_path: Path) -> None:
    """A second RETRY fails the turn."""
    texts = ["It costs $697.", "The price is $697.00 there."]
    script = Script(answer=[item(text) for text in texts], validator={"verdict": "RETRY", "reason": "No."})
    ran = run_turn(laptop_store(tmp_path), answer=script)
    assert ran.metadata.status == "failed"
    assert ran.metadata.route == (0, 1, 2, 3, 5, 6, 3, 5, 6, 7)
    assert ran.problems == []


def test_fail(tmp_path: Path) -> None:
    """FAIL ends the turn at once, with its reason."""
    script = Script(validator={"verdict": "FAIL", "reason": "It does not answer."})
    ran = run_turn(laptop_store(tmp_path), answer=script)
    assert (ran.metadata.status, ran.metadata.reason) == ("failed", "It does not answer.")
    assert ran.metadata.route == (0, 1, 2, 3, 5, 6, 7)
    assert ran.metadata.answered is False
    assert ran.problems == []


def test_failed_turn_is_no_evidence(tmp_path: Path) -> None:
    """What a failed turn would have answered is not offered to later turns."""
    layout = laptop_store(tmp_path)
    run_turn(layout, answer=Script(answer=item("It costs $697."), validator={"verdict": "FAIL"}))
    later = run_turn(layout, answer=Script(retrieval={"relevant": pick("turn:3", PRICE_NODE)}))
    assert "It costs $697." not in later.asked("synthesis")[0].text


def test_verdict_of_every_goal(tmp_path: Path) -> None:
    """§6 says of each goal of the plan whether the answer meets it, as the model judges."""
    goals = [{"id": "G1", "goal": "the price"}, {"id": "G2", "goal": "the colour"}]
    script = Script(
        planner={"next_step": "synthesis", "tools": [], "goals": goals},
        validator={
            "verdict": "APPROVE",
            "goals": [{"id": "G1", "met": True}, {"id": "G2", "met": False, "why": "no source"}],
        },
    )
    ran = run_turn(laptop_store(tmp_path), answer=script)
    assert ran.meta(6)["goals"] == {"G1": "met", "G2": "unmet"}
    assert "- G2: unmet (no source)" in ran.body(6)
    assert ran.problems == []


def test_best_attempt_is_named_and_not_shown(tmp_path: Path) -> None:
    """A turn that fails names the attempt with the fewest faults; none is given as an answer."""
    two = {"items": [*item("It costs $1.")["items"], *item("It weighs 9 kg.")["items"]]}
    script = Script(answer=[two, item("It costs $2."), two])
    ran = run_turn(laptop_store(tmp_path), answer=script)
    assert ran.metadata.status == "failed"
    assert ran.meta(6)["best_attempt"] == "attempts/2/context.md"
    assert "$2" not in ran.response
    assert ran.problems == []


def working(tool: str, **replies: Any) -> Script:
    """A model that calls one tool and then answers."""
    route = {"tools": [tool], "next_step": "coordinator"}
    return Script(**{"planner": route, "coordinator": [{"tool": tool}, {"tool": "done"}], **replies})


def test_reading_is_not_saving(tmp_path: Path) -> None:
    """An answer that tells of something saved is sent back where the tools only read."""
    answer = [item("I have saved the price, $697."), item(RIGHT)]
    ran = run_turn(laptop_store(tmp_path), answer=working("memory.query", answer=answer))
    assert "tells of something that no tool has done" in str(ran.folder.superseded()[0])
    assert ran.response.startswith(RIGHT)


def test_what_was_saved_may_be_told(tmp_path: Path) -> None:
    """An answer that tells of what a tool saved is approved, and cites the turn in which the user said it."""
    said = item("I've saved that your favorite tea is Assam.", "turn:3")
    script = working("memory.create", retrieval={"relevant": []}, answer=said)
    ran = run_turn(laptop_store(tmp_path), "My favorite tea is Assam.", script)
    assert (ran.error, ran.metadata.status) == (None, "approved")
    assert ran.folder.superseded() == []


def test_what_a_tool_told_of_another_source(tmp_path: Path) -> None:
    """A value that a tool found in one source is no support for an item that cites another."""
    script = working(
        "memory.query",
        retrieval={"relevant": pick(PRICE_NODE, "memory:budget")},
        synthesis={"lines": pick("budget")},
        answer=[item(RIGHT, "memory:budget"), item(RIGHT)],
    )
    ran = run_turn(laptop_store(tmp_path), answer=script)
    (superseded,) = ran.folder.superseded()
    refused = superseded.section(6)
    assert refused is not None
    assert refused.meta["rejected"] == [RIGHT]
    assert "is not in memory:budget" in str(refused.meta["issues"])


@pytest.mark.parametrize(("status", "told"), [("success", "It costs $697.\n697"), ("error", "")])
def test_a_step_that_failed_tells_nothing(status: Literal["success", "error"], told: str) -> None:
    """What a call gave supports an item that cites its step, unless the call failed."""
    step = replace(failed_step("G1"), status=status, text="It costs $697.", data={"price": 697})
    assert step_texts([step], "step:1") == told


class Emptied:
    """A store whose nodes are all gone."""

    def load(self, node_id: str) -> Node:
        """Finds nothing."""
        raise MemoryNodeError(f"{node_id}: gone")


def test_a_source_that_is_gone(tmp_path: Path) -> None:
    """Of a source that was deleted since only what a tool of the turn told of it supports an item."""
    items = [GatheredItem(RIGHT, (PRICE_NODE,))]
    bare = run_turn(laptop_store(tmp_path / "a"))
    issues, rejected = check_items(Cited(Emptied(), bare.turn), bare.turn, items)
    assert ("cites nothing that exists" in "".join(issues), rejected) == (True, [RIGHT])
    looked_up = run_turn(laptop_store(tmp_path / "b"), answer=working("memory.query"))
    cited = Cited(Emptied(), looked_up.turn)
    for source in (PRICE_NODE, "step:1"):
        assert check_items(cited, looked_up.turn, [GatheredItem(RIGHT, (source,))]) == ([], [])
