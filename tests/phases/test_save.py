"""Phase 7: what is written when a turn ends."""

from tests.api import NOW, ScriptedPanda
from tests.script import PRICE_NODE, Script, pick


def test_summary_for_the_index(ann: ScriptedPanda) -> None:
    """The summary goes into index_summary.json, and summary.json records how the turn ended."""
    topics = ["gaming hardware", "prices"]
    written = {"summary": "Told the price of the Lenovo LOQ 15.", "topics": topics}
    turn = ann.turn(script=Script(summary=written))
    summary = turn.file("index_summary.json")
    assert (summary["summary"], summary["topics"]) == (written["summary"], topics)
    assert "===== Options:" not in turn.asked("summary")[0].text
    summary = turn.file("summary.json")
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
    assert (turn.metadata["saved_at"], turn.metadata["next"]) == (NOW, None)


def test_summary_that_fails(ann: ScriptedPanda) -> None:
    """A summary that cannot be made is a warning: the turn is saved, and a later one finds what it quoted."""
    turn = ann.turn(script=Script(summary="not JSON"))
    assert (turn.code, turn.status) == (0, "approved")
    assert turn.warnings[0].startswith("no summary for the index yet: ")
    assert turn.file("summary.json")["turn_summary"] is None
    assert not (turn.directory / "index_summary.json").exists()
    assert turn.interventions == []
    assert ann.problems() == []
    candidates = {one["node_id"] for one in ann.turn().file("retrieval_plan.json")["candidates"]}
    assert PRICE_NODE in candidates
    assert "turn:3" not in candidates


def test_metrics(ann: ScriptedPanda) -> None:
    """metrics.json has quality, coverage and missing constraints of what was gathered, and the calls."""
    turn = ann.turn()
    metrics = turn.file("metrics.json")
    assert metrics["context"]["context_quality"] == 0.92
    assert {kind for kind, count in metrics["context"]["coverage"].items() if count} == {"visit"}
    assert metrics["context"]["constraints_missing"] is True
    assert metrics["totals"]["calls"] == len(turn.calls) == len(turn.prompts)
    assert [phase["phase"] for phase in metrics["phases"]] == [0, 1, 2, 3, 5, 6, 7]
    assert metrics["phases"][2]["recipes"] == [
        "pipeline/phase2_1_retrieval",
        "pipeline/phase2_2_synthesis",
        "pipeline/phase2_5_context_validator",
    ]
    script = Script(retrieval={"relevant": pick(PRICE_NODE, "memory:budget")})
    limited = ann.turn("A Lenovo laptop under $800?", script=script).file("metrics.json")["context"]
    assert (limited["constraints"], limited["constraints_missing"]) == (2, False)
