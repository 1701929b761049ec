"""`panda eval`: numbers of a few cases, and cases that cannot be asked."""

import json
import tomllib
from pathlib import Path

import pytest

from tests.api import ROOT, Panda, ScriptedPanda

LINES = (
    {"kind": "intent", "split": "test", "query": "Good morning!", "label": "greeting"},
    {"kind": "intent", "split": "test", "query": "Open the list of hotels.", "label": "navigation"},
    {"kind": "intent", "split": "test", "query": "Good evening!", "label": "navigation"},
    {"kind": "intent", "split": "fit", "query": "Hi", "label": "navigation"},
    {"kind": "clear", "split": "test", "query": "What about the other?", "label": "unclear"},
    {"kind": "constraint", "split": "test", "query": "a tent under 200 euros", "label": ["under 200 euros"]},
    {
        "recipe": "pipeline/phase3_planner_chat",
        "choice": "tools",
        "query": "Has the page of the pool changed?",
        "label": "web.fetch",
    },
    {"step": "phase1_reflection", "choice": "decision", "query": "And the other?", "label": "CLARIFY"},
    {"kind": "evidence", "query": "5 mW", "options": [{"id": "a", "text": "5 MW"}], "label": "unsupported"},
    {"kind": "evidence", "query": "5 W", "options": [{"id": "a", "text": "5 watts"}], "label": "supported"},
)


@pytest.fixture
def panda(tmp_path: Path) -> Panda:
    """A project without a store, and with labelled cases outside of it."""
    return Panda(tmp_path / "project")


def test_numbers(panda: Panda) -> None:
    """Each kind is measured on its test half, with what serves it; a case may name a recipe or a step."""
    panda.write_lines("cases.jsonl", *LINES)
    measured = panda.json("eval", "--cases", "cases.jsonl", "--write", "numbers.json")
    kinds = {kind["kind"]: kind for kind in measured["kinds"]}
    keys = ("cases", "right", "served_by")
    assert {name: tuple(kind[key] for key in keys) for name, kind in kinds.items()} == {
        "intent": (3, 2, "encoder minilm-l6"),
        "clear": (1, 1, "encoder minilm-l6"),
        "constraint": (1, 1, "code"),
        "pipeline/phase3_planner_chat tools": (1, 1, "encoder minilm-l6"),
        "phase1_reflection decision": (1, 1, "encoder minilm-l6"),
        "evidence": (2, 2, "code"),
    }
    assert kinds["intent"]["accuracy"] == pytest.approx(2 / 3)
    assert kinds["evidence"]["recipe"] == "check_evidence"
    assert kinds["phase1_reflection decision"]["recipe"] == "pipeline/phase1_reflection"
    answers = json.loads((panda.home / "numbers.json").read_text())["answers"]
    assert [answer["said"] for answer in answers] == [
        *("greeting", "navigation", "greeting", "unclear", "under 200 euros", "web.fetch"),
        *("CLARIFY", "unsupported", "supported"),
    ]
    unasked = panda("eval", "pipeline/phase7_summarizer", "--cases", "cases.jsonl", "--json")
    assert unasked.code == 2
    assert "pipeline/phase1_reflection" in unasked.error["fix"]


def test_wrong_answers_are_listed_and_a_bar_ends_with_3(panda: Panda) -> None:
    """With --wrong the cases that are answered wrongly stand in place of the numbers; --min is a bar."""
    panda.write_lines("cases.jsonl", *LINES[:4])
    listed = panda("eval", "--cases", "cases.jsonl", "--wrong")
    assert listed.code == 0
    (row,) = listed.rows
    assert row == "intent\tGood evening!\tnavigation\tgreeting"
    measure = ("eval", "--cases", "cases.jsonl", "--min")
    assert panda(*measure, "0.6").code == 0
    below = panda(*measure, "0.7", "--json")
    assert below.code == 3
    assert below.error["message"] == "intent is right in 2 of 3 cases, less than 0.7"
    assert [case["query"] for case in below.data["wrong"]] == ["Good evening!"]
    assert panda(*measure, "70").code == 2


def test_a_model_is_measured_as_well(ann: ScriptedPanda) -> None:
    """Cases are asked of whatever serves the recipe, also of a language model, which is named."""
    ann.write_lines("cases.jsonl", *LINES[:1], LINES[7])
    measured = ann.json("eval", "--cases", "cases.jsonl")
    kinds = {kind["kind"]: (kind["right"], kind["served_by"]) for kind in measured["kinds"]}
    assert kinds == {"intent": (0, "REFLEX: scripted"), "phase1_reflection decision": (0, "REFLEX: scripted")}


def test_without_cases(panda: Panda) -> None:
    """In a project without labelled cases of its own, those of panda are asked, and nothing is written."""
    (kind,) = panda.json("eval", "research/strategy")["kinds"]
    lines = (ROOT / "tests/evals/research_kind.jsonl").read_text(encoding="utf-8").splitlines()
    assert (kind["kind"], kind["cases"]) == (
        "research/strategy kind",
        sum(json.loads(line)["split"] == "test" for line in lines),
    )
    assert list(panda.home.iterdir()) == []


def test_the_wheel_holds_the_cases() -> None:
    """The wheel holds the folder of cases of the checkout, and no module of the tests."""
    packed = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["hatch"]["build"]
    assert packed["targets"]["wheel"]["force-include"]["tests/evals"] == "panda/_data/tests/evals"
    assert {path.suffix for path in (ROOT / "tests/evals").iterdir()} == {".jsonl", ".md"}
