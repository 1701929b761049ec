"""`panda eval` as a real process: numbers of a few cases, and cases that cannot be asked."""

import json
import os
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

from panda.evals.cases import load_cases
from panda.store.layout import asset
from tests.api import ROOT

PANDA = str(Path(sys.executable).with_name("panda"))
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


def measure(tmp_path: Path, *words: str) -> dict[str, Any]:
    """The JSON of one run over LINES."""
    cases = tmp_path / "cases.jsonl"
    cases.write_text("".join(json.dumps(line) + "\n" for line in LINES), encoding="utf-8")
    command = [PANDA, "eval", *words, "--cases", str(cases), "--json"]
    done = subprocess.run(command, capture_output=True, env={**os.environ}, check=False)
    value = json.loads(done.stdout)
    assert isinstance(value, dict)
    return value


def test_numbers(tmp_path: Path) -> None:
    """Each kind is measured on its test half, wrong answers too, by the fit of the embedded model."""
    written = tmp_path / "numbers.json"
    kinds = {one["kind"]: one for one in measure(tmp_path, "--write", str(written))["data"]["kinds"]}
    assert set(kinds) == {"intent", "clear", "constraint", "pipeline/phase3_planner_chat tools", "evidence"}
    keys = ("cases", "right", "fitted")
    assert {name: tuple(one[key] for key in keys) for name, one in kinds.items()} == {
        "intent": (3, 2, True),
        "clear": (1, 1, True),
        "constraint": (1, 1, False),
        "pipeline/phase3_planner_chat tools": (1, 1, True),
        "evidence": (2, 2, False),
    }
    assert kinds["intent"]["accuracy"] == pytest.approx(2 / 3)
    answers = json.loads(written.read_text())["answers"]
    assert [(one["kind"], one["said"]) for one in answers] == [
        ("intent", "greeting"),
        ("intent", "navigation"),
        ("intent", "greeting"),
        ("clear", "unclear"),
        ("constraint", "under 200 euros"),
        ("pipeline/phase3_planner_chat tools", "web.fetch"),
        ("evidence", "unsupported"),
        ("evidence", "supported"),
    ]
    assert kinds["evidence"]["recipe"] == "check_evidence"


def test_recipe_that_no_case_asks(tmp_path: Path) -> None:
    """A recipe without a kind of case is wrong usage, and those that have one are named."""
    value = measure(tmp_path, "pipeline/phase7_summarizer")
    assert value["exit_code"] == 2
    assert "pipeline/phase1_reflection" in value["error"]["fix"]


def test_without_cases(tmp_path: Path) -> None:
    """Where a project has no labelled cases of its own, those of panda are asked."""
    words = [PANDA, "eval", "pipeline/phase1_reflection", "--json"]
    done = subprocess.run(words, capture_output=True, env={**os.environ}, check=False, cwd=tmp_path)
    (kind,) = json.loads(done.stdout)["data"]["kinds"]
    assert (done.returncode, kind["kind"]) == (0, "clear")
    cases = load_cases(asset("tests/evals") / "clear.jsonl")
    assert kind["cases"] == sum(case.split == "test" for case in cases)
    assert list(tmp_path.iterdir()) == []


def test_the_wheel_holds_the_cases() -> None:
    """What is packed as the cases of panda is the folder of the checkout, and no module of the tests."""
    packed = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["hatch"]["build"]
    assert packed["targets"]["wheel"]["force-include"]["tests/evals"] == "panda/_data/tests/evals"
    assert {path.suffix for path in asset("tests/evals").iterdir()} == {".jsonl", ".md"}
