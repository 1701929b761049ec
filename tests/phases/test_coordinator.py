"""Phase 4: the tool loop."""

from dataclasses import replace
from pathlib import Path
from typing import cast

import pytest

from panda.store.records import Claim
from panda.tools.contract import Tool, ToolResult
from panda.tools.table import TOOLS
from tests.builders import file_of
from tests.script import PRICE_NODE, Script, pick
from tests.scripted_turns import USER, Preferring, laptop_store, run_turn

USE_TOOLS = {"tools": [], "next_step": "coordinator"}
TEA = "My favorite tea is Assam."


def remembering(query: str = TEA, **replies: object) -> Script:
    """A model that uses memory.create and answers with the user's own words."""
    return Script(
        retrieval={"relevant": []},
        planner={"tools": ["memory.create"], "next_step": "coordinator"},
        coordinator=[{"tool": "memory.create"}, {"tool": "done"}],
        **{"answer": {"items": [{"text": query, "node_ids": ["turn:3"]}]}, **replies},
    )


def test_memory_query(tmp_path: Path) -> None:
    """memory.query finds visits and preferences; its result is kept whole and §4 shows it with its node."""
    script = Script(planner=USE_TOOLS, coordinator=[{"tool": "memory.query"}, {"tool": "done"}])
    ran = run_turn(laptop_store(tmp_path), answer=script)
    step = file_of(ran.folder, "steps/step_01.json")
    assert (step["tool"], step["status"]) == ("memory.query", "success")
    assert PRICE_NODE in {claim["node_id"] for claim in step["claims"]}
    assert "Lenovo LOQ 15: price $697.00" in ran.body(4)
    assert PRICE_NODE in ran.meta(4)["node_ids"]
    assert "price $697.00" in ran.folder.read_text("toolresults.md")
    assert ran.metadata.route == (0, 1, 2, 3, 4, 5, 6, 7)
    assert ran.metadata.status == "approved"
    assert ran.problems == []


def test_doc_search(tmp_path: Path) -> None:
    """doc.search finds what earlier turns said, and an answer may cite it."""
    answer = {"items": [{"text": "The Lenovo LOQ 15 was the best laptop.", "node_ids": ["turn:1"]}]}
    script = Script(
        retrieval={"relevant": []},
        synthesis={"lines": []},
        planner=USE_TOOLS,
        coordinator=[{"tool": "doc.search"}, {"tool": "done"}],
        answer=answer,
    )
    ran = run_turn(laptop_store(tmp_path), "Which laptop was the best?", script)
    assert file_of(ran.folder, "steps/step_01.json")["tool"] == "doc.search"
    assert ran.response.startswith("The Lenovo LOQ 15 was the best laptop. [1]")
    assert ran.metadata.status == "approved"
    assert ran.problems == []


def test_a_call_is_made_once(tmp_path: Path) -> None:
    """A call that was made is not made again, and the model is told so."""
    script = Script(
        planner=USE_TOOLS,
        coordinator=[{"tool": "memory.query"}, {"tool": "memory.query"}, {"tool": "done"}],
    )
    ran = run_turn(laptop_store(tmp_path), answer=script)
    assert len(ran.turn.steps()) == 1
    assert "memory.query was called like that in step 1" in ran.asked("coordinator")[2].text


def test_done_at_once(tmp_path: Path) -> None:
    """A coordinator that needs no tool says so in §4."""
    ran = run_turn(laptop_store(tmp_path), answer=Script(planner=USE_TOOLS))
    assert ran.body(4).startswith("No tool was called.")
    assert ran.turn.steps() == []
    assert ran.problems == []


def test_results_reach_the_next_choice(tmp_path: Path) -> None:
    """What a tool gave is in front of the model that chooses the next one."""
    script = Script(planner=USE_TOOLS, coordinator=[{"tool": "memory.query"}, {"tool": "done"}])
    ran = run_turn(laptop_store(tmp_path), answer=script)
    first, second = ran.asked("coordinator")
    assert "price $697.00" not in first.text.partition("toolresults.md")[2]
    assert "price $697.00" in second.text.partition("toolresults.md")[2]


def test_statement_is_remembered(tmp_path: Path) -> None:
    """What the user states is staged, and written to memory once the turn is approved."""
    ran = run_turn(laptop_store(tmp_path), TEA, remembering())
    staged = file_of(ran.folder, "staged_memory.json")
    assert staged["applied"] is True
    assert [value["relation"] for value in staged["staged"]] == ["said_t3_1", "favorite_tea"]
    preferences = ran.layout.of(USER).preferences.read_text()
    assert "favorite_tea" in preferences
    assert "budget: {value:" in preferences
    assert len(ran.layout.of(USER).memory_log.read_text().splitlines()) >= 1
    assert ran.metadata.status == "approved"
    assert ran.problems == []


def test_statement_of_a_failed_turn(tmp_path: Path) -> None:
    """In a turn that fails, what a tool staged is never written to memory; what was told is kept."""
    layout = laptop_store(tmp_path)
    staged = {"kind": "preference", "relation": "wants", "value": "the Lenovo", "text": "the Lenovo"}
    ran = run_turn(
        layout,
        f"{TEA} What does the Lenovo cost?",
        Script(
            planner={"tools": ["memory.create"], "next_step": "coordinator"},
            coordinator=[{"calls": [{"tool": "memory.create", "arguments": staged}]}, {"tool": "done"}],
            validator={"verdict": "FAIL"},
        ),
    )
    assert ran.metadata.status == "failed"
    assert file_of(ran.folder, "staged_memory.json")["applied"] is False
    log = layout.of(USER).memory_log.read_text(encoding="utf-8")
    assert "Assam" in log
    assert "wants" not in log
    assert ran.response.startswith("Noted: My favorite tea is Assam.")
    assert ran.problems == []


def test_nothing_to_remember(tmp_path: Path) -> None:
    """A model that only chooses is not offered memory.create for a query that states nothing."""
    preferring = Preferring("memory.create", "memory.query")
    ran = run_turn(laptop_store(tmp_path), "Who was Napoleon?", preferring, writes=False, scores=True)
    tools = {step.tool for step in ran.turn.steps()}
    assert tools
    assert "memory.create" not in tools


def test_tool_that_finds_nothing(tmp_path: Path) -> None:
    """A tool without a finding is a step all the same, and phase 5 goes on without evidence."""
    script = Script(
        retrieval={"relevant": []},
        planner=USE_TOOLS,
        coordinator=[{"tool": "doc.search"}, {"tool": "done"}],
        answer={"items": []},
    )
    ran = run_turn(laptop_store(tmp_path), "Who was Napoleon?", script)
    assert ran.body(4).startswith("- nothing found")
    assert ran.response.startswith("Nothing that is saved answers this.")
    assert (ran.metadata.status, ran.metadata.answered) == ("approved", False)
    assert ran.problems == []


def test_s3_14_a_claim_without_source_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Phase 4: what a tool claims without saying where from stops that call, and reaches no answer."""
    bare = ToolResult("success", claims=(Claim("The Lenovo LOQ 15 costs $12.", 0.9, ""),))
    tool = cast(dict[str, Tool], TOOLS)
    monkeypatch.setitem(tool, "doc.search", replace(TOOLS["doc.search"], run=lambda given, context: bare))
    script = Script(
        planner={"tools": pick("doc.search"), "next_step": "coordinator"},
        coordinator=[{"tool": "doc.search"}, {"tool": "done"}],
    )
    ran = run_turn(laptop_store(tmp_path), "How much is the Lenovo LOQ 15?", script)
    step = file_of(ran.folder, "steps/step_01.json")
    assert (step["status"], step["claims"]) == ("blocked", [])
    assert "without a source" in step["error"]
    assert "$12" not in ran.response
