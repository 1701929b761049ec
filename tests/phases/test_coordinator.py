"""Phase 4: the tool loop."""

from tests.api import ScriptedPanda
from tests.script import PRICE_NODE, Script

USE_TOOLS = {"tools": [], "next_step": "coordinator"}
REMEMBER = {"tools": ["memory.create"], "next_step": "coordinator"}
TEA = "My favorite tea is Assam."


def test_results_reach_the_next_choice(ann: ScriptedPanda) -> None:
    """
    What memory.query finds is kept whole, §4 shows it with its node, and the next choice is made beside it.
    """
    script = Script(planner=USE_TOOLS, coordinator=[{"tool": "memory.query"}, {"tool": "done"}])
    turn = ann.turn(script=script)
    (step,) = turn.steps
    assert (step["tool"], step["status"]) == ("memory.query", "success")
    assert PRICE_NODE in {claim["node_id"] for claim in step["claims"]}
    assert "Lenovo LOQ 15: price $697.00" in turn.body(4)
    assert PRICE_NODE in turn.meta(4)["node_ids"]
    assert "price $697.00" in turn.text("toolresults.md")
    results = [asked.text.partition("toolresults.md")[2] for asked in turn.asked("coordinator")]
    assert ["price $697.00" in text for text in results] == [False, True]
    assert turn.metadata["route"] == [0, 1, 2, 3, 4, 5, 6, 7]
    assert turn.status == "approved"
    assert ann.problems() == []


def test_doc_search(ann: ScriptedPanda) -> None:
    """doc.search finds what earlier turns said, and an answer may cite it."""
    script = Script(
        retrieval={"relevant": []},
        synthesis={"lines": []},
        planner=USE_TOOLS,
        coordinator=[{"tool": "doc.search"}, {"tool": "done"}],
        answer={"items": [{"text": "The Lenovo LOQ 15 was the best laptop.", "node_ids": ["turn:1"]}]},
    )
    turn = ann.turn("Which laptop was the best?", script=script)
    assert turn.steps[0]["tool"] == "doc.search"
    assert turn.response.startswith("The Lenovo LOQ 15 was the best laptop. [1]")
    assert turn.status == "approved"
    assert ann.problems() == []


def test_a_call_is_made_once(ann: ScriptedPanda) -> None:
    """A call that was made is not made again, and the model is told so."""
    coordinator = [{"tool": "memory.query"}, {"tool": "memory.query"}, {"tool": "done"}]
    turn = ann.turn(script=Script(planner=USE_TOOLS, coordinator=coordinator))
    assert len(turn.steps) == 1
    assert "memory.query was called like that in step 1" in turn.asked("coordinator")[2].text


def test_done_at_once(ann: ScriptedPanda) -> None:
    """A coordinator that needs no tool says so in §4."""
    turn = ann.turn(script=Script(planner=USE_TOOLS))
    assert turn.body(4).startswith("No tool was called.")
    assert turn.steps == []
    assert ann.problems() == []


def test_statement_is_remembered(ann: ScriptedPanda) -> None:
    """What the user states is staged, and written to memory once the turn is approved."""
    script = Script(
        retrieval={"relevant": []},
        planner=REMEMBER,
        coordinator=[{"tool": "memory.create"}, {"tool": "done"}],
        answer={"items": [{"text": TEA, "node_ids": ["turn:3"]}]},
    )
    turn = ann.turn(TEA, script=script)
    staged = turn.file("staged_memory.json")
    assert staged["applied"] is True
    assert [value["relation"] for value in staged["staged"]] == ["said_t3_1", "favorite_tea"]
    preferences = (ann.user_directory / "preferences.md").read_text(encoding="utf-8")
    assert "favorite_tea" in preferences
    assert "budget: {value:" in preferences
    assert "Assam" in (ann.user_directory / "memory.jsonl").read_text(encoding="utf-8")
    assert turn.status == "approved"
    assert ann.problems() == []


def test_statement_of_a_failed_turn(ann: ScriptedPanda) -> None:
    """In a turn that fails, what a tool staged is never written to memory; what was told is kept."""
    staged = {"kind": "preference", "relation": "wants", "value": "the Lenovo", "text": "the Lenovo"}
    script = Script(
        planner=REMEMBER,
        coordinator=[{"calls": [{"tool": "memory.create", "arguments": staged}]}, {"tool": "done"}],
        validator={"verdict": "FAIL"},
    )
    turn = ann.turn(f"{TEA} What does the Lenovo cost?", script=script)
    assert turn.status == "failed"
    assert turn.file("staged_memory.json")["applied"] is False
    log = (ann.user_directory / "memory.jsonl").read_text(encoding="utf-8")
    assert "Assam" in log
    assert "wants" not in log
    assert turn.response.startswith("Noted: My favorite tea is Assam.")
    assert ann.problems() == []


def test_tool_that_finds_nothing(ann: ScriptedPanda) -> None:
    """A tool without a finding is a step all the same, and phase 5 goes on without evidence."""
    script = Script(
        retrieval={"relevant": []},
        planner=USE_TOOLS,
        coordinator=[{"tool": "doc.search"}, {"tool": "done"}],
        answer={"items": []},
    )
    turn = ann.turn("Who was Napoleon?", script=script)
    assert turn.body(4).startswith("- nothing found")
    assert turn.response.startswith("Nothing that is saved answers this.")
    assert (turn.status, turn.metadata["answered"]) == ("approved", False)
    assert ann.problems() == []
