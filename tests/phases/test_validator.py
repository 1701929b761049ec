"""Phase 6: what may be shown, and what is sent back."""

import shutil
from typing import Any

import pytest

from tests.api import ScriptedPanda
from tests.script import PRICE, PRICE_NODE, Asked, Script, pick, step_of

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
        ("The Lenovo LOQ 15 costs $697, last seen 4 March 2025.", PRICE_NODE),
        ("The Lenovo LOQ 15 has 32 GB and costs $697.", PRICE_NODE),
        ("The Lenovo LOQ 15 costs $697, see https://shop.example/other.", PRICE_NODE),
        ("It is reviewed at https://shop.example/reviews.", "turn:1"),
        ("The Lenovo LOQ 15 costs $697.", "turn:1"),
    ],
    ids=["price", "date", "quantity", "url", "url-longer", "other-node"],
)
def test_unsupported_answer_is_not_approved(ann: ScriptedPanda, text: str, node_id: str) -> None:
    """A price, date, quantity, URL or name that the cited node lacks is never shown; no vote changes that."""
    turn = ann.turn(script=Script(**BOTH, answer=[item(text, node_id), item(RIGHT)]))
    refused = turn.attempt(1).meta(6)
    assert (refused["verdict"], refused["rejected"]) == ("REVISE", [text])
    assert refused["issues"]
    assert len(turn.asked("validator")) == 1
    assert turn.response.startswith(f"{RIGHT} [1]")
    assert turn.status == "approved"
    assert ann.problems() == []


def test_a_question_is_left_to_the_verdict(ann: ScriptedPanda) -> None:
    """An item that asks is for the model to judge: it may be the answer's last sentence."""
    turn = ann.turn(script=Script(answer=[item("Shall I look for others?"), item(RIGHT)]))
    assert (turn.attempts, turn.status) == (0, "approved")


def test_answer_without_a_source(ann: ScriptedPanda) -> None:
    """A model that cites nothing halts the turn; where nothing was gathered it is not asked."""
    answer = {"items": [{"text": "Paris."}]}
    turn = ann.turn(script=Script(answer=answer))
    assert (turn.code, turn.status) == (20, "halted")
    assert "cites no node" in turn.error["message"]
    assert not (turn.directory / "response.md").exists()
    turn = ann.turn(
        "What is the capital of France?", script=Script(retrieval={"relevant": []}, answer=answer)
    )
    assert (turn.asked("answer"), turn.metadata["answered"]) == ([], False)
    assert ann.problems() == []


def test_what_is_supported_outlives_a_judge_who_wants_better(ann: ScriptedPanda) -> None:
    """After two revisions what is supported is the answer, with a warning; all attempts are kept."""
    texts = ["It costs $697.", "The price is $697.00 there.", "You pay $697 for the Lenovo."]
    script = Script(
        answer=[item(text) for text in texts], validator={"verdict": "REVISE", "reason": "Too curt."}
    )
    turn = ann.turn(script=script)
    assert (turn.code, turn.status) == (0, "approved")
    assert turn.metadata["route"] == [0, 1, 2, 3, 5, 6, 5, 6, 5, 6, 7]
    assert turn.warnings == [
        "a better answer was asked for and not found, what is supported stays: Too curt."
    ]
    assert turn.meta(6)["verdict"] == "APPROVE"
    assert [turn.attempt(n).meta(5)["items"][0]["text"] for n in (1, 2)] == texts[:2]
    assert turn.body(5).startswith(texts[2])
    assert turn.sections == [0, 1, 2, 3, 5, 6]
    assert ann.problems() == []


def test_reason_reaches_the_next_attempt(ann: ScriptedPanda) -> None:
    """Phase 5 is told why its answer was sent back."""
    script = Script(
        answer=[item("It costs $697."), item(RIGHT)],
        validator=[{"verdict": "REVISE", "reason": "Name the laptop."}, {"verdict": "APPROVE"}],
    )
    turn = ann.turn(script=script)
    assert ["Name the laptop." in asked.text for asked in turn.asked("answer")] == [False, True]
    assert turn.status == "approved"


def test_rejected_evidence_is_not_offered_again(ann: ScriptedPanda) -> None:
    """A quotation that was rejected is named as refused to the next attempt, and to the one after."""
    best = "The Lenovo LOQ 15 was the best laptop."
    script = Script(
        **BOTH,
        answer=[item(PRICE), item(best, "turn:1"), item(RIGHT)],
        validator=[{"verdict": "REVISE"}, {"verdict": "REVISE"}, {"verdict": "APPROVE"}],
    )
    turn = ann.turn(script=script)
    guidance = [asked.text.partition("===== Guidance =====\n")[2] for asked in turn.asked("answer")]
    assert [f"- {PRICE}" in text for text in guidance] == [False, True, True]
    assert [f"- {best}" in text for text in guidance] == [False, False, True]
    assert turn.status == "approved"


def test_rejected_answer_cannot_come_back(ann: ScriptedPanda) -> None:
    """A model that gives a rejected answer again and again fails: the wrong price is never shown."""
    turn = ann.turn(script=Script(answer=item("It costs $1.")))
    assert "$1" not in turn.response
    assert (turn.status, turn.metadata["answered"]) == ("failed", False)
    assert ann.problems() == []


def test_retry_plans_anew_once(ann: ScriptedPanda) -> None:
    """RETRY goes back to phase 3 with its reason, once; the sections from §3 on are superseded."""
    script = Script(
        planner=[{"next_step": "synthesis", "tools": []}, {"next_step": "coordinator", "tools": []}],
        coordinator=[{"tool": "memory.query"}, {"tool": "done"}],
        answer=[item("It costs $697."), item(RIGHT)],
        validator=[{"verdict": "RETRY", "reason": "Look into memory."}, {"verdict": "APPROVE"}],
    )
    turn = ann.turn(script=script)
    assert turn.metadata["route"] == [0, 1, 2, 3, 5, 6, 3, 4, 5, 6, 7]
    plan = turn.file("plan.json")
    assert (plan["round"], plan["reason"]) == (1, "Look into memory.")
    assert "Look into memory." in turn.asked("planner")[1].text
    assert (turn.attempts, turn.attempt(1).sections) == (1, [3, 5, 6])
    assert turn.sections == [0, 1, 2, 3, 4, 5, 6]
    assert turn.status == "approved"
    assert ann.problems() == []


def test_second_retry_fails(ann: ScriptedPanda) -> None:
    """A second RETRY fails the turn."""
    texts = ["It costs $697.", "The price is $697.00 there."]
    script = Script(answer=[item(text) for text in texts], validator={"verdict": "RETRY", "reason": "No."})
    turn = ann.turn(script=script)
    assert turn.status == "failed"
    assert turn.metadata["route"] == [0, 1, 2, 3, 5, 6, 3, 5, 6, 7]
    assert ann.problems() == []


def test_failed_turn_is_no_evidence(ann: ScriptedPanda) -> None:
    """FAIL ends the turn at once, with its reason; its answer is not offered to later turns."""
    verdict = {"verdict": "FAIL", "reason": "It does not answer."}
    turn = ann.turn(script=Script(answer=item("It costs $697."), validator=verdict))
    assert (turn.code, turn.status) == (22, "failed")
    assert (turn.metadata["reason"], turn.metadata["answered"]) == ("It does not answer.", False)
    assert turn.metadata["route"] == [0, 1, 2, 3, 5, 6, 7]
    later = ann.turn(script=Script(retrieval={"relevant": pick("turn:3", PRICE_NODE)}))
    assert "It costs $697." not in later.asked("synthesis")[0].text
    assert ann.problems() == []


def test_verdict_of_every_goal(ann: ScriptedPanda) -> None:
    """§6 says of each goal of the plan whether the answer meets it, as the model judges."""
    goals = [{"id": "G1", "goal": "the price"}, {"id": "G2", "goal": "the colour"}]
    script = Script(
        planner={"next_step": "synthesis", "tools": [], "goals": goals},
        validator={
            "verdict": "APPROVE",
            "goals": [{"id": "G1", "met": True}, {"id": "G2", "met": False, "why": "no source"}],
        },
    )
    turn = ann.turn(script=script)
    assert turn.meta(6)["goals"] == {"G1": "met", "G2": "unmet"}
    assert "- G2: unmet (no source)" in turn.body(6)
    assert ann.problems() == []


def test_best_attempt_is_named_and_not_shown(ann: ScriptedPanda) -> None:
    """A turn that fails names the attempt with the fewest faults; none is given as an answer."""
    two = {"items": [*item("It costs $1.")["items"], *item("It weighs 9 kg.")["items"]]}
    turn = ann.turn(script=Script(answer=[two, item("It costs $2."), two]))
    assert turn.status == "failed"
    assert turn.meta(6)["best_attempt"] == "attempts/2/context.md"
    assert "$2" not in turn.response
    assert ann.problems() == []


def working(tool: str, **replies: Any) -> Script:
    """A model that calls one tool and then answers."""
    route = {"tools": [tool], "next_step": "coordinator"}
    return Script(**{"planner": route, "coordinator": [{"tool": tool}, {"tool": "done"}], **replies})


def test_reading_is_not_saving(ann: ScriptedPanda) -> None:
    """An answer that tells of something saved is sent back where the tools only read."""
    answer = [item("I have saved the price, $697."), item(RIGHT)]
    turn = ann.turn(script=working("memory.query", answer=answer))
    assert "tells of something that no tool has done" in turn.attempt(1).section(6)
    assert turn.response.startswith(RIGHT)


def test_what_was_saved_may_be_told(ann: ScriptedPanda) -> None:
    """An answer that tells of what a tool saved is approved, and cites the turn in which the user said it."""
    saved = item("I've saved that your favorite tea is Assam.", "turn:3")
    script = working("memory.create", retrieval={"relevant": []}, answer=saved)
    turn = ann.turn("My favorite tea is Assam.", script=script)
    assert (turn.status, turn.attempts) == ("approved", 0)


def test_what_a_tool_told_of_another_source(ann: ScriptedPanda) -> None:
    """A value that a tool found in one source is no support for an item that cites another."""
    script = working(
        "memory.query",
        retrieval={"relevant": pick(PRICE_NODE, "memory:budget")},
        synthesis={"lines": pick("budget")},
        answer=[item(RIGHT, "memory:budget"), item(RIGHT)],
    )
    refused = ann.turn(script=script).attempt(1).meta(6)
    assert refused["rejected"] == [RIGHT]
    assert "is not in memory:budget" in str(refused["issues"])


@pytest.mark.parametrize(("tool", "status"), [(None, "failed"), ("memory.query", "approved")])
def test_a_source_that_is_gone(ann: ScriptedPanda, tool: str | None, status: str) -> None:
    """Of a source that is deleted meanwhile only what a tool of the turn told of it supports an item."""
    script = working(tool, answer=item(RIGHT)) if tool else Script(answer=item(RIGHT))

    def delete_the_page(asked: Asked) -> Any:
        if step_of(asked) == "answer":
            cached = ann.user_directory / "turns" / "turn_000001" / "webpage_cache"
            shutil.rmtree(cached, ignore_errors=True)
        return script(asked)

    turn = ann.turn(script=delete_the_page)
    assert turn.status == status
    if status == "failed":
        assert "cites nothing that exists" in turn.attempt(1).section(6)
