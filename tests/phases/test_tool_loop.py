"""Phase 4: its limits, its goals, and what is left when it is stopped."""

from pathlib import Path
from typing import Any

from panda.errors import StoreError
from tests.builders import file_of
from tests.script import Script
from tests.scripted_model import ScriptedModel
from tests.scripted_turns import laptop_store, run_turn, scripted_app

ROUTE = {"tools": [], "next_step": "coordinator"}


def call(tool: str, goal: str | None = None, **arguments: Any) -> dict[str, Any]:
    """One call of a coordinator's reply."""
    return {"tool": tool, "arguments": arguments} | ({"goal": goal} if goal else {})


def calls(*given: dict[str, Any], **more: Any) -> dict[str, Any]:
    """A coordinator's reply."""
    return {"calls": list(given), **more}


def searches(first: int, number: int) -> list[dict[str, Any]]:
    """Calls that all differ."""
    return [call("memory.query", query=f"Lenovo {n}") for n in range(first, first + number)]


def test_most_rounds(tmp_path: Path) -> None:
    """After ten rounds the loop ends as limited, and says so in §4 and in the plan."""
    replies = [calls(*searches(n, 1)) for n in range(12)]
    ran = run_turn(laptop_store(tmp_path), answer=Script(planner=ROUTE, coordinator=replies))
    assert len(ran.asked("coordinator")) == len(ran.turn.steps()) == 10
    assert "**Ended:** limited (10 rounds)" in ran.body(4)
    progress = file_of(ran.folder, "plan.json")["progress"]
    assert (progress["ending"], progress["rounds"], progress["calls"]) == ("limited", 10, 10)
    assert ran.metadata.status == "approved"
    assert ran.problems == []


def test_most_calls(tmp_path: Path) -> None:
    """No more than twenty calls are made, however many a round asks for."""
    replies = [calls(*searches(4 * n, 4)) for n in range(6)]
    ran = run_turn(laptop_store(tmp_path), answer=Script(planner=ROUTE, coordinator=replies, rewording=""))
    assert len(ran.turn.steps()) == 20
    assert "**Ended:** limited (20 tool calls)" in ran.body(4)
    assert [step.round for step in ran.turn.steps()][-1] == 6 - 1


def test_three_failures_in_a_row(tmp_path: Path) -> None:
    """Three failing calls in a row end the loop as blocked; the answer says what could not be done."""
    wrong = [calls(call("memory.query", query=n)) for n in range(3)]
    script = Script(planner=ROUTE, coordinator=wrong, answer={"items": []})
    ran = run_turn(laptop_store(tmp_path), answer=script)
    progress = file_of(ran.folder, "plan.json")["progress"]
    assert progress["ending"] == "blocked"
    assert "3 calls in a row failed" in progress["reason"]
    assert [goal["status"] for goal in progress["goals"]] == ["blocked"]
    assert "**Ended:** blocked" in ran.body(4)
    assert len(ran.asked("coordinator")) == 3


def test_one_tool_that_fails_three_times(tmp_path: Path) -> None:
    """A tool that failed three times blocks the loop, also if other calls went well in between."""
    replies = []
    for n in range(4):
        replies += [calls(call("doc.search", query=n)), calls(*searches(n, 1))]
    ran = run_turn(laptop_store(tmp_path), answer=Script(planner=ROUTE, coordinator=replies))
    assert "doc.search failed 3 times" in file_of(ran.folder, "plan.json")["progress"]["reason"]
    assert len(ran.turn.steps()) == 5


def test_every_call_is_kept_whole(tmp_path: Path) -> None:
    """A step file has the call, its round and goal, and everything that the tool gave."""
    replies = [calls(call("memory.query", "G2", query="Lenovo"), note="look again", conclusion="it is cheap")]
    goals = [{"id": "G1", "goal": "a"}, {"id": "G2", "goal": "b", "priority": 1}]
    script = Script(planner={**ROUTE, "goals": goals}, coordinator=[*replies, {"tool": "done"}])
    ran = run_turn(laptop_store(tmp_path), answer=script)
    (step,) = ran.turn.steps()
    assert (step.goal, step.round, step.plan, step.kind) == ("G2", 1, 0, "read")
    assert (step.note, step.conclusion) == ("look again", "it is cheap")
    assert all(entity.ref and entity.label for entity in step.entities)
    assert all(claim.source for claim in step.claims)
    progress = file_of(ran.folder, "plan.json")["progress"]
    assert [(goal["id"], goal["status"]) for goal in progress["goals"]] == [("G1", "open"), ("G2", "done")]


def test_goals_follow_their_dependencies(tmp_path: Path) -> None:
    """A call without a goal serves the first goal that nothing is in the way of."""
    goals = [
        {"id": "A", "goal": "last", "priority": 1, "depends_on": ["B"]},
        {"id": "B", "goal": "first", "priority": 2},
    ]
    replies = [calls(*searches(0, 1)), calls(*searches(1, 1)), {"tool": "done"}]
    script = Script(planner={**ROUTE, "goals": goals}, coordinator=replies)
    ran = run_turn(laptop_store(tmp_path), answer=script)
    assert [step.goal for step in ran.turn.steps()] == ["B", "A"]
    assert "A (priority 1, after B): last" in ran.body(3)


def test_section_grows_with_every_call(tmp_path: Path) -> None:
    """§4 is on disk after every call, so that a killed turn shows what was done."""
    seen: list[str] = []
    layout = laptop_store(tmp_path)
    script = Script(
        planner=ROUTE, coordinator=[calls(*searches(0, 1)), calls(*searches(1, 1)), {"tool": "done"}]
    )

    def answer(asked: Any) -> Any:
        path = layout.of("ann").turn(3) / "context.md"
        seen.append(path.read_text(encoding="utf-8") if path.exists() else "")
        return script(asked)

    run_turn(layout, answer=answer)
    assert [text.count('memory.query"') for text in seen if "## 3." in text and "## 5." not in text][:3] == [
        0,
        1,
        2,
    ]


def test_stopped_loop_makes_no_call_twice(tmp_path: Path) -> None:
    """A loop that is taken up again takes the answers and results that are there and goes on behind them."""
    replies = [calls(*searches(0, 1)), calls(*searches(1, 1)), StoreError("disk full")]
    ran = run_turn(laptop_store(tmp_path), answer=Script(planner=ROUTE, coordinator=replies))
    assert ran.metadata.status == "interrupted"
    steps = [ran.folder.read_text(f"steps/step_{n:02d}.json") for n in (1, 2)]
    model = ScriptedModel(Script(planner=ROUTE, coordinator=[{"tool": "done"}]), scores=False)
    app = scripted_app(ran.layout, model)
    turn = app.resume_turn(3)
    app.run_turn(turn)
    assert [turn.folder.read_text(f"steps/step_{n:02d}.json") for n in (1, 2)] == steps
    assert len(turn.steps()) == 2
    assert sum("calls" in getattr(asked.params, "schema", {})["properties"] for asked in model.asked) == 1
    assert turn.folder.read_metadata().status == "approved"


def test_retry_sees_what_failed(tmp_path: Path) -> None:
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
    ran = run_turn(laptop_store(tmp_path), answer=script)
    first, second = ran.asked("planner")
    assert "Failed: " not in first.text
    for told in (
        "Look into the notes.",
        "Failed: memory.query",
        "Refused answer: The Lenovo LOQ 15 costs $697.",
    ):
        assert told in second.text
    assert len(file_of(ran.folder, "plan.json")["failed"]) == 2
    assert [step.plan for step in ran.turn.steps()] == [0, 1]
