"""`panda eval`: numbers of a few cases, and cases that cannot be asked."""

import json
import tomllib
from pathlib import Path

import pytest

from tests.api import ROOT, Panda

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
    {"kind": "evidence", "query": "5 mW", "options": [{"id": "a", "text": "5 MW"}], "label": "unsupported"},
    {"kind": "evidence", "query": "5 W", "options": [{"id": "a", "text": "5 watts"}], "label": "supported"},
)


@pytest.fixture
def panda(tmp_path: Path) -> Panda:
    """A project without a store, and with labelled cases outside of it."""
    return Panda(tmp_path / "project")


def test_numbers(panda: Panda) -> None:
    """Each kind is measured on its test half, wrong answers too, by the fit of the embedded model."""
    panda.write_lines("cases.jsonl", *LINES)
    measured = panda.json("eval", "--cases", "cases.jsonl", "--write", "numbers.json")
    kinds = {kind["kind"]: kind for kind in measured["kinds"]}
    keys = ("cases", "right", "fitted")
    assert {name: tuple(kind[key] for key in keys) for name, kind in kinds.items()} == {
        "intent": (3, 2, True),
        "clear": (1, 1, True),
        "constraint": (1, 1, False),
        "pipeline/phase3_planner_chat tools": (1, 1, True),
        "evidence": (2, 2, False),
    }
    assert kinds["intent"]["accuracy"] == pytest.approx(2 / 3)
    assert kinds["evidence"]["recipe"] == "check_evidence"
    answers = json.loads((panda.home / "numbers.json").read_text())["answers"]
    assert [answer["said"] for answer in answers] == [
        *("greeting", "navigation", "greeting", "unclear", "under 200 euros", "web.fetch"),
        *("unsupported", "supported"),
    ]
    unasked = panda("eval", "pipeline/phase7_summarizer", "--cases", "cases.jsonl", "--json")
    assert unasked.code == 2
    assert "pipeline/phase1_reflection" in unasked.error["fix"]


def test_without_cases(panda: Panda) -> None:
    """Where a project has no labelled cases of its own, those of panda are asked, and nothing is written."""
    (kind,) = panda.json("eval", "research/strategy")["kinds"]
    lines = (ROOT / "tests/evals/research_kind.jsonl").read_text(encoding="utf-8").splitlines()
    assert (kind["kind"], kind["cases"]) == (
        "research/strategy kind",
        sum(json.loads(line)["split"] == "test" for line in lines),
    )
    assert list(panda.home.iterdir()) == []


def test_the_wheel_holds_the_cases() -> None:
    """What is packed as the cases of panda is the folder of the checkout, and no module of the tests."""
    packed = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["hatch"]["build"]
    assert packed["targets"]["wheel"]["force-include"]["tests/evals"] == "panda/_data/tests/evals"
    assert {path.suffix for path in (ROOT / "tests/evals").iterdir()} == {".jsonl", ".md"}
