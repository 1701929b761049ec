"""Models without log-probabilities: their own decision stands, and what asks back asks."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.api import LAPTOPS, ROOT, Panda, ScriptedPanda
from tests.script import Script

CLARIFY = {"decision": "CLARIFY", "question": "Which thing do you mean?"}
GATE = "quality_gates:\n  confidence_threshold: 0.99\n  below_threshold: clarify\n"


def write_gate(panda: Panda, name: str) -> Path:
    """Let a recipe of the project ask back below a threshold that nothing reaches."""
    text = (ROOT / "recipes" / "pipeline" / f"{name}.yaml").read_text(encoding="utf-8")
    return panda.write(f"recipes/pipeline/{name}.yaml", text.partition("quality_gates:")[0] + GATE)


def test_clarify_stays_clarify(ann: ScriptedPanda) -> None:
    """A model that asks back asks back; the gate it could not be measured against is logged."""
    turn = ann.turn("Do the thing.", script=Script(reflection=CLARIFY))
    assert (turn.code, turn.metadata["question"]) == (21, "Which thing do you mean?")
    log = (ann.store / "logs" / "executions.jsonl").read_text(encoding="utf-8")
    gates = {entry["recipe"]: entry["gate"] for entry in map(json.loads, log.splitlines()) if "gate" in entry}
    assert gates["reflection"] == "not_measured"
    assert ann.problems() == []


@pytest.mark.parametrize(
    ("query", "is_asked"),
    [("How much is it?", True), ("I live in Bern.", False), ("How much is the Lenovo LOQ 15?", False)],
)
def test_a_model_is_asked_where_the_answer_is_not_known(
    ann: ScriptedPanda, query: str, *, is_asked: bool
) -> None:
    """Its word then stands; a telling, and a query that something is near to, are not asked about."""
    turn = ann.turn(query, script=Script(reflection=CLARIFY))
    assert (turn.status == "clarify") is is_asked
    assert bool(turn.asked("reflection")) is is_asked


def test_nothing_is_asked_twice(ann: ScriptedPanda) -> None:
    """Right after a question the query is taken as it stands."""
    script = Script(reflection=CLARIFY, answer={"items": []})
    assert ann.turn("Do the thing.", "--session", "talk", script=script).status == "clarify"
    assert ann.turn("The thing!", "--session", "talk", script=script).status == "approved"


@pytest.mark.parametrize(
    ("step", "reply"),
    [
        ("reflection", {"decision": "CLARIFY", "question": ""}),
        ("context", {"verdict": "clarify"}),
        ("context", {"verdict": "clarify", "question": " "}),
        ("planner", {"tools": [], "next_step": "clarify"}),
    ],
)
def test_a_missing_question_is_a_template(ann: ScriptedPanda, step: str, reply: dict[str, Any]) -> None:
    """A clarify without a question asks one that quotes the query."""
    turn = ann.turn("Do the thing.", script=Script(**{step: reply}))
    assert (turn.code, turn.status) == (21, "clarify")
    assert "“Do the thing.”" in turn.metadata["question"]


@pytest.mark.parametrize("name", ["phase0_query_analyzer", "phase5_synthesizer_chat", "phase6_validator"])
def test_only_phases_that_ask_may_clarify(tmp_path: Path, name: str) -> None:
    """`below_threshold: clarify` in a recipe whose phase cannot ask back is an error of the check."""
    panda = Panda(tmp_path, LAPTOPS, user="ann")
    path = write_gate(panda, name)
    problems = panda("validate", str(path), "--json").data["problems"]
    (problem,) = [problem for problem in problems if "below_threshold" in str(problem["key"])]
    assert "cannot ask the user back" in problem["message"]
    assert "phase3_planner" in problem["fix"]


def test_a_gate_on_an_offline_reply_is_not_applied(tmp_path: Path) -> None:
    """A reply of the program has no confidence: whatever the threshold, it stands, and the log says so."""
    panda = Panda(tmp_path, LAPTOPS, user="ann")
    write_gate(panda, "phase1_reflection")
    assert panda.turn("Who was Napoleon?").meta(1)["decision"] == "PROCEED"
    lines = panda.json("log", "-n", "0")["lines"]
    (line,) = [line for line in lines if line["recipe"] == "reflection"]
    assert (line["gate"], line["confidence"]) == ("not_measured", None)
