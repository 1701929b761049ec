"""Phase 7: what is written when a turn ends."""

from pathlib import Path

import pytest

from panda.errors import ModelTimeoutError
from tests.builders import NOW, file_of
from tests.script import PRICE_NODE, Script
from tests.scripted_turns import laptop_store, run_turn


def test_summary_for_the_index(tmp_path: Path) -> None:
    """The summary goes into index_summary.json, and summary.json records how the turn ended."""
    ran = run_turn(laptop_store(tmp_path))
    assert file_of(ran.folder, "index_summary.json")["summary"] == "Told the price of the Lenovo LOQ 15."
    summary = file_of(ran.folder, "summary.json")
    assert {name: value for name, value in summary.items() if value} == {
        "turn": 3,
        "outcome": "approved",
        "decision": "synthesis",
        "turn_summary": "Told the price of the Lenovo LOQ 15.",
        "summary_kind": "model",
        "answered": True,
        "sources": [PRICE_NODE],
        "flow": "exploring",
        "session": dict.fromkeys(summary["session"]),
    }
    assert ran.metadata.saved_at == NOW
    assert ran.metadata.next is None


@pytest.mark.parametrize("fault", ["not JSON", ModelTimeoutError("too slow")], ids=["invalid", "timeout"])
def test_summary_that_fails(tmp_path: Path, fault: object) -> None:
    """A summary that cannot be made is a warning: the turn is saved, and a later one finds what it quoted."""
    layout = laptop_store(tmp_path)
    ran = run_turn(layout, answer=Script(summary=fault))
    assert ran.error is None
    assert ran.metadata.status == "approved"
    assert ran.turn.warnings[0].startswith("no summary for the index yet: ")
    assert file_of(ran.folder, "summary.json")["turn_summary"] is None
    assert not (ran.folder.paths / "index_summary.json").exists()
    assert ran.interventions() == []
    assert ran.problems == []
    later = run_turn(layout)
    candidates = {one["node_id"] for one in file_of(later.folder, "retrieval_plan.json")["candidates"]}
    assert PRICE_NODE in candidates
    assert "turn:3" not in candidates


def test_metrics(tmp_path: Path) -> None:
    """metrics.json adds up calls and tokens by phase, as calls.jsonl holds them."""
    ran = run_turn(laptop_store(tmp_path))
    metrics = file_of(ran.folder, "metrics.json")
    calls = ran.folder.load_calls()
    assert metrics["totals"]["calls"] == len(calls) == len(ran.model.asked)
    assert metrics["totals"]["prompt_tokens"] == sum(call.usage.prompt or 0 for call in calls)
    assert [phase["phase"] for phase in metrics["phases"]] == [0, 1, 2, 3, 5, 6, 7]
    assert metrics["phases"][2]["recipes"] == [
        "pipeline/phase2_1_retrieval",
        "pipeline/phase2_2_synthesis",
        "pipeline/phase2_5_context_validator",
    ]


def test_turn_without_an_answer(tmp_path: Path) -> None:
    """A turn that ended with a question is summarised, too, and keeps the question as its response."""
    script = Script(planner={"tools": [], "next_step": "clarify", "question": "New or used?"})
    ran = run_turn(laptop_store(tmp_path), answer=script)
    assert file_of(ran.folder, "summary.json")["outcome"] == "clarify"
    assert file_of(ran.folder, "index_summary.json")["intent"] == "commerce"
    assert ran.response == "New or used?\n"
