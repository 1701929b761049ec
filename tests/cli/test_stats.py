"""`panda stats`, run in this process over logs of many lines."""

import json
from pathlib import Path
from typing import Any

import pytest

from panda.cli.main import build_program
from panda.store.files import append_json_line
from panda.store.layout import Layout
from tests.cli.programs import Ended, run_words
from tests.cli.test_log import record
from tests.stores import write_turn


def line(turn: int, confidence: float, **more: Any) -> dict[str, Any]:
    """One execution of the reflection."""
    return {
        **record(turn),
        "key": "pipeline/phase1_reflection",
        "phase": 1,
        "model": "small",
        "schema_valid": True,
        "confidence": confidence,
        "compression_savings": 0,
        **more,
    }


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    """A store with two ended turns and a log of both."""
    found = Layout(tmp_path)
    write_turn(found, 1, user="ann", query="What?", response="That.", status="approved")
    write_turn(found, 2, user="ann", query="What?", response="That.", status="failed")
    tokens = {"prompt": 90, "reused": 0, "output": 10, "total": 100}
    append_json_line(found.executions_log, line(1, 0.9, tokens=tokens, latency_ms=10))
    append_json_line(found.executions_log, line(2, 0.9, tokens=tokens, latency_ms=30, retries=1))
    append_json_line(found.executions_log, line(3, 0.5, tokens=tokens, latency_ms=20, user_id="bob"))
    return found


def stats(layout: Layout, capsys: pytest.CaptureFixture[str], *words: str) -> Ended:
    return run_words(build_program(), ["stats", "--root", str(layout.root), "--user", "ann", *words], capsys)


def group(layout: Layout, capsys: pytest.CaptureFixture[str], name: str, *words: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(stats(layout, capsys, "--json", *words).out)["data"]["groups"][name]
    return found


@pytest.mark.parametrize(
    ("by", "name"),
    [
        ("recipe", "pipeline/phase1_reflection"),
        ("layer", "MIND (small)"),
        ("phase", "1"),
        ("day", "2026-01-05"),
    ],
)
def test_groups(layout: Layout, capsys: pytest.CaptureFixture[str], by: str, name: str) -> None:
    """Executions of the user are added up by what was asked for; another user's do not count."""
    found = group(layout, capsys, name, "--by", by)
    assert (found["executions"], found["valid"], found["retries"], found["tokens"]) == (2, 1.0, 1, 200)
    assert (found["p50_ms"], found["p95_ms"]) == (10.0, 30.0)


def test_confidence_against_verdicts(layout: Layout, capsys: pytest.CaptureFixture[str]) -> None:
    """Of two executions at .90, one turn was approved: the calibration error is .40."""
    found = group(layout, capsys, "pipeline/phase1_reflection")
    assert (found["judged"], found["confidence"], found["held"]) == (2, 0.9, 0.5)
    assert found["calibration_error"] == pytest.approx(0.4)


def test_torn_line(layout: Layout, capsys: pytest.CaptureFixture[str]) -> None:
    """A last line that a crash cut short is a warning; the others count."""
    with layout.executions_log.open("a", encoding="utf-8") as log:
        log.write('{"recipe": "ref')
    ended = stats(layout, capsys)
    assert ended.code == 0
    assert "warning" in ended.err
    assert ended.rows[0].startswith("pipeline/phase1_reflection\t2\t")


def test_unknown_tokens(layout: Layout, capsys: pytest.CaptureFixture[str]) -> None:
    """Tokens that one execution does not know make the sum unknown, not smaller."""
    append_json_line(layout.executions_log, line(1, 0.9, tokens={"total": None}))
    assert group(layout, capsys, "pipeline/phase1_reflection")["tokens"] is None


def test_a_turn_that_no_directory_can_have(layout: Layout, capsys: pytest.CaptureFixture[str]) -> None:
    """Executions of a turn_id with NUL, of one that leads elsewhere and of none count, and are not judged."""
    turn_ids = ("turn_\0", "../turns/turn_000001", None)
    for turn_id in turn_ids:
        append_json_line(layout.executions_log, line(1, 0.9, turn_id=turn_id))
    found = group(layout, capsys, "pipeline/phase1_reflection")
    assert (found["executions"], found["judged"]) == (5, 2)


def test_wrong_types(layout: Layout, capsys: pytest.CaptureFixture[str]) -> None:
    """A line with a value of another type counts nowhere, and is told with its number, also on checking."""
    append_json_line(layout.executions_log, line(1, 0.9, retries="two"))
    ended = stats(layout, capsys, "--json")
    assert "executions.jsonl:4 (retries): retries must be a whole number" in ended.err
    assert json.loads(ended.out)["data"]["groups"]["pipeline/phase1_reflection"]["executions"] == 2
    checked = run_words(build_program(), ["validate", str(layout.executions_log)], capsys)
    assert (checked.code, "executions.jsonl:4" in checked.out) == (3, True)


def test_wrong_words(layout: Layout, capsys: pytest.CaptureFixture[str]) -> None:
    """An unknown group or time is wrong usage; nothing is shown of a time without executions."""
    assert stats(layout, capsys, "--by", "moon").code == 2
    assert stats(layout, capsys, "--since", "yesterday").code == 2
    assert stats(layout, capsys, "--since", "2027-01-01").out == ""
