"""The way of a turn through its phases: what is logged, superseded, put back, and taken up again."""

import json
from typing import Any

import pytest

from tests.api import ScriptedPanda
from tests.script import PRICE_NODE, Asked, Script, step_of

PHASES = (
    "query analyzer (REFLEX: scripted)",
    "reflection",
    "context gatherer (MIND: scripted)",
    "planner (MIND: scripted)",
    "coordinator (MIND: scripted)",
    "synthesizer (VOICE: scripted)",
    "validator (MIND: scripted)",
    "save (MIND: scripted)",
)
WITH_TOOLS = {"tools": [], "next_step": "coordinator"}
WITHOUT_TOOLS = {"tools": [], "next_step": "synthesis"}


def item(text: str) -> dict[str, Any]:
    """Return an answer of one item that cites the page of the laptop."""
    return {"items": [{"text": text, "node_ids": [PRICE_NODE]}]}


RIGHT = item("The Lenovo LOQ 15 costs $697.")
WRONG = item("It costs $1.")
BETTER = {"verdict": "REVISE", "reason": "Better."}
ANEW = {"verdict": "RETRY", "reason": "Look further."}
APPROVE = {"verdict": "APPROVE"}


def test_phases_run_in_order(ann: ScriptedPanda) -> None:
    """Every phase runs once, in order, and is told of; after the last the turn is saved."""
    turn = ann.turn(script=Script(planner=WITH_TOOLS, coordinator={"tool": "done"}))
    told = [line for line in turn.err.splitlines() if line.startswith("phase ")]
    assert told == [f"phase {number}: {name}" for number, name in enumerate(PHASES)]
    assert turn.metadata["route"] == list(range(8))
    assert (turn.status, turn.metadata["next"]) == ("approved", None)
    assert turn.metadata["saved_at"] == ann.environ["PANDA_NOW"]
    assert turn.sections == list(range(7))


def test_phases_of_a_run_are_not_told(ann: ScriptedPanda) -> None:
    """Of a turn that is run again in a run, no phase is told."""
    ann.turn()
    replayed = ann("replay", "3")
    assert replayed.code == 0
    assert "phase " not in replayed.err


def test_every_attempt_is_kept(ann: ScriptedPanda) -> None:
    """Attempts are numbered as they were superseded; each has the sections from the phase gone back to on."""
    texts = ["It costs $697.", "The price is $697.00.", "You pay $697 there.", "LOQ 15 for $697, a laptop."]
    script = Script(answer=[item(text) for text in texts], validator=[BETTER, ANEW, BETTER, APPROVE])
    turn = ann.turn(script=script)
    assert turn.metadata["route"] == [0, 1, 2, 3, 5, 6, 5, 6, 3, 5, 6, 5, 6, 7]
    attempts = [turn.attempt(number) for number in range(1, turn.attempts + 1)]
    assert [attempt.sections for attempt in attempts] == [[5, 6], [3, 5, 6], [5, 6]]
    assert [attempt.meta(5)["items"][0]["text"] for attempt in attempts] == texts[:3]
    assert turn.meta(5)["items"][0]["text"] == texts[3]
    assert turn.status == "approved"


@pytest.mark.parametrize(
    "replies",
    [
        {"answer": [RIGHT, "nonsense"], "validator": [BETTER, APPROVE]},
        {"planner": [WITHOUT_TOOLS, "nonsense"], "validator": [ANEW, APPROVE]},
        {
            "planner": WITH_TOOLS,
            "coordinator": [{"tool": "done"}, "nonsense"],
            "validator": [ANEW, APPROVE],
        },
        {"answer": [RIGHT, "nonsense"], "validator": [ANEW, APPROVE]},
        {"answer": [RIGHT, WRONG, "nonsense"], "validator": [BETTER, APPROVE]},
    ],
    ids=["revise, answer", "retry, plan", "retry, tools", "retry, answer", "wrong in between"],
)
def test_what_passed_outlives_a_retry_that_halts(ann: ScriptedPanda, replies: dict[str, Any]) -> None:
    """An answer that passed its checks comes back when one that is to be better halts; it is judged again."""
    turn = ann.turn(script=Script(**replies))
    assert turn.status == "approved"
    assert turn.meta(5)["items"][0]["text"] == "The Lenovo LOQ 15 costs $697."
    assert "The Lenovo LOQ 15 costs $697." in turn.response
    assert len(turn.asked("validator")) == 2
    assert "the answer before is kept" in turn.warnings[-1]
    assert ann.problems() == []


def test_what_failed_its_checks_does_not_come_back(ann: ScriptedPanda) -> None:
    """A retry that halts after a check failed halts the turn; the wrong answer is not given."""
    turn = ann.turn(script=Script(answer=[WRONG, "nonsense"]))
    assert turn.status == "halted"
    assert turn.data["response"] is None


def test_halted_turn_goes_on(ann: ScriptedPanda) -> None:
    """With another prompt a turn is taken up where it halted; what was done before is not asked again."""
    halted = ann.turn(script=Script(planner="nonsense"))
    assert (halted.status, halted.metadata["route"]) == ("halted", [0, 1, 2])
    assert (halted.metadata["saved_at"], (halted.directory / "metrics.json").exists()) == (None, True)
    ann.write("prompts/pipeline/phase3_planner.md", "Plan as a pirate would.\n\n# Task\nPlan.\n")
    turn = ann.resume(3)
    assert (turn.status, turn.metadata["route"]) == ("approved", [0, 1, 2, 3, 5, 6, 7])
    assert step_of(turn.prompts[0]) == "planner"


def test_disk_that_fails_interrupts(ann: ScriptedPanda) -> None:
    """A file that cannot be written is no halt: the turn is interrupted, and can be resumed."""
    plan = ann.turn_file(3, "plan.json")
    script = Script()

    def block_plan(asked: Asked) -> object:
        if step_of(asked) == "planner":
            plan.mkdir()
        return script(asked)

    turn = ann.turn(script=block_plan)
    assert (turn.code, turn.interventions) == (74, [])
    assert turn.error["where"] == str(plan)
    metadata = json.loads(ann.turn_file(3, "metadata.json").read_bytes())
    assert (metadata["status"], metadata["next"]["phase"]) == ("interrupted", 3)
    plan.rmdir()
    assert ann.resume(3).status == "approved"
