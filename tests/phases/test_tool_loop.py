"""Phase 4: its limits, its goals, and what is left when it is stopped."""

from typing import Any

import pytest

from tests.api import PRICE_QUESTION, ScriptedPanda, tree
from tests.script import Script, step_of

STATES = ("open", "open, something was found", "done")
ROUTE = {"tools": [], "next_step": "coordinator"}


def call(tool: str, goal: str | None = None, **arguments: Any) -> dict[str, Any]:
    """One call of a coordinator's reply."""
    return {"tool": tool, "arguments": arguments} | ({"goal": goal} if goal else {})


def calls(*called: dict[str, Any], **more: Any) -> dict[str, Any]:
    """A coordinator's reply."""
    return {"calls": list(called), **more}


def searches(first: int, number: int) -> list[dict[str, Any]]:
    """Calls that all differ."""
    return [call("memory.query", query=f"Lenovo {n}") for n in range(first, first + number)]


@pytest.mark.parametrize(
    ("replies", "ending", "reason", "steps", "rounds"),
    [
        ([calls(*searches(n, 1)) for n in range(12)], "limited", "10 rounds", 10, 10),
        ([calls(*searches(4 * n, 4)) for n in range(6)], "limited", "20 tool calls", 20, 6),
        (
            [calls(call("memory.query", query=n)) for n in range(3)],
            "blocked",
            "3 calls in a row failed",
            3,
            3,
        ),
        (
            [calls(called) for n in range(4) for called in (call("doc.search", query=n), *searches(n, 1))],
            "blocked",
            "doc.search failed 3 times",
            5,
            5,
        ),
    ],
    ids=["rounds", "calls", "failures in a row", "failures of one tool"],
)
def test_the_loop_has_limits(
    ann: ScriptedPanda, replies: list[dict[str, Any]], ending: str, reason: str, steps: int, rounds: int
) -> None:
    """Ten rounds, twenty calls, three failures in a row or of one tool end it; §4 and the plan say so."""
    turn = ann.turn(script=Script(planner=ROUTE, coordinator=replies))
    progress = turn.file("plan.json")["progress"]
    assert (progress["ending"], progress["rounds"], progress["calls"]) == (ending, rounds, steps)
    assert reason in progress["reason"]
    assert f"**Ended:** {ending} (" in turn.body(4)
    assert (len(turn.steps), len(turn.asked("coordinator"))) == (steps, rounds)
    is_hopeless = all(step["status"] == "error" for step in turn.steps)
    assert [goal["status"] for goal in progress["goals"]] == ["blocked" if is_hopeless else "done"]
    assert turn.status == "approved"
    assert ann.problems() == []


def test_every_call_is_kept_whole(ann: ScriptedPanda) -> None:
    """A step file has the call, its round and goal, and everything that the tool gave."""
    replies = [calls(call("memory.query", "G2", query="Lenovo"), note="look again", conclusion="it is cheap")]
    goals = [{"id": "G1", "goal": "a"}, {"id": "G2", "goal": "b", "priority": 1}]
    script = Script(planner={**ROUTE, "goals": goals}, coordinator=[*replies, {"tool": "done"}])
    turn = ann.turn(script=script)
    (step,) = turn.steps
    assert (step["goal"], step["round"], step["plan"], step["kind"]) == ("G2", 1, 0, "read")
    assert (step["note"], step["conclusion"]) == ("look again", "it is cheap")
    assert step["entities"]
    assert all(entity["ref"] and entity["label"] for entity in step["entities"])
    assert all(claim["source"] for claim in step["claims"])
    progress = turn.file("plan.json")["progress"]
    assert [(goal["id"], goal["status"]) for goal in progress["goals"]] == [("G1", "open"), ("G2", "done")]


def test_a_conclusion_beside_done_is_kept(ann: ScriptedPanda) -> None:
    """The last step and §4 have what the reply that ends the phase says of the results."""
    replies = [calls(*searches(0, 1)), calls({"tool": "done"}, conclusion="both shops are cheap")]
    turn = ann.turn(script=Script(planner=ROUTE, coordinator=replies))
    assert [step["conclusion"] for step in turn.steps] == ["both shops are cheap"]
    assert "- conclusion: both shops are cheap" in turn.body(4)


def test_results_alone_fulfil_no_goal_for_the_model(ann: ScriptedPanda) -> None:
    """A goal for which a call found something is open to the model until it says that it is fulfilled."""
    replies = [calls(*searches(0, 1)), calls(*searches(1, 1), goals_done=["G1"]), {"tool": "done"}]
    turn = ann.turn(script=Script(planner=ROUTE, coordinator=replies))
    texts = [asked.text for asked in turn.asked("coordinator")]
    states = [state for text in texts for state in STATES if f"G1: {state}\n" in text]
    assert states == ["open", "open, something was found", "done"]


def test_goals_follow_their_dependencies(ann: ScriptedPanda) -> None:
    """A call without a goal serves the first goal that nothing is in the way of."""
    goals = [
        {"id": "A", "goal": "last", "priority": 1, "depends_on": ["B"]},
        {"id": "B", "goal": "first", "priority": 2},
    ]
    replies = [calls(*searches(0, 1)), calls(*searches(1, 1)), {"tool": "done"}]
    turn = ann.turn(script=Script(planner={**ROUTE, "goals": goals}, coordinator=replies))
    assert [step["goal"] for step in turn.steps] == ["B", "A"]
    assert "A (priority 1, after B): last" in turn.body(3)


def test_section_grows_with_every_call(ann: ScriptedPanda) -> None:
    """§4 is on disk after every call, so that a killed turn shows what was done."""
    counts: list[int] = []
    replies = [calls(*searches(0, 1)), calls(*searches(1, 1)), {"tool": "done"}]
    script = Script(planner=ROUTE, coordinator=replies)

    def answer(asked: Any) -> Any:
        path = ann.turn_file(3, "context.md")
        text = path.read_text(encoding="utf-8") if path.exists() else ""
        if "## 3." in text and "## 5." not in text:
            counts.append(text.count('memory.query"'))
        return script(asked)

    ann.turn(script=answer)
    assert counts[:3] == [0, 1, 2]


@pytest.mark.usefixtures("pauses")
def test_stopped_loop_makes_no_call_twice(ann: ScriptedPanda) -> None:
    """A loop that is taken up again takes the answers and results that are there and goes on behind them."""
    script = Script(planner=ROUTE, coordinator=[calls(*searches(0, 1)), calls(*searches(1, 1))])
    directory = ann.turn_file(3, "steps")

    def hang_up_after_two(asked: Any) -> Any:
        if step_of(asked) == "coordinator" and len(tree(directory)) == 2:
            raise ConnectionResetError
        return script(asked)

    assert ann.turn(script=hang_up_after_two).code == 75
    steps = tree(directory)
    resumed = ann.resume(3, script=Script(planner=ROUTE, coordinator=[{"tool": "done"}]))
    assert tree(directory) == steps
    assert len(resumed.asked("coordinator")) == 1
    assert resumed.status == "approved"


def test_retry_sees_what_failed(ann: ScriptedPanda) -> None:
    """The planner of a second round is told the reason, the calls that failed and the refused answer."""
    script = Script(
        planner=ROUTE,
        coordinator=[
            calls(call("memory.query", query=7)),
            {"tool": "done"},
            {"tool": "doc.search"},
            {"tool": "done"},
        ],
        validator=[{"verdict": "RETRY", "reason": "Look into the notes."}, {"verdict": "APPROVE"}],
    )
    turn = ann.turn(PRICE_QUESTION, script=script)
    first, second = (asked.text for asked in turn.asked("planner"))
    assert "Failed: " not in first
    for part in ("Look into the notes.", "Failed: memory.query", "Refused answer: The Lenovo LOQ 15 costs"):
        assert part in second
    assert len(turn.file("plan.json")["failed"]) == 2
    assert [step["plan"] for step in turn.steps] == [0, 1]
