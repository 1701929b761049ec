"""`panda stats`, run in this process over logs of many lines."""

from pathlib import Path
from typing import Any

import pytest

from tests.api import Panda
from tests.cli.test_log import record
from tests.store_files import write_turn

LOG = "store/logs/executions.jsonl"
TOKENS = {"prompt": 90, "reused": 0, "output": 10, "total": 100}


def line(turn: int, **more: Any) -> dict[str, Any]:
    """One execution of the reflection, of confidence .90."""
    return {
        **record(turn),
        "key": "pipeline/phase1_reflection",
        "phase": 1,
        "model": "small",
        "schema_valid": True,
        "confidence": 0.9,
        "compression_savings": 0,
        "tokens": TOKENS,
        **more,
    }


LINES = (line(1, latency_ms=10), line(2, latency_ms=30, retries=1), line(3, confidence=0.5, user_id="bob"))


@pytest.fixture
def panda(tmp_path: Path) -> Panda:
    """A store with two ended turns and a log of both."""
    panda = Panda(tmp_path / "project", user="ann")
    for number, status in ((1, "approved"), (2, "failed")):
        write_turn(panda.user_directory, number, query="What?", response="That.", status=status)
    panda.write_lines(LOG, *LINES)
    return panda


def group(panda: Panda, name: str = "pipeline/phase1_reflection", *words: str) -> dict[str, Any]:
    """One group of executions."""
    value: dict[str, Any] = panda.json("stats", *words)["groups"][name]
    return value


@pytest.mark.parametrize(
    ("by", "name"),
    [
        ("recipe", "pipeline/phase1_reflection"),
        ("layer", "MIND (small)"),
        ("phase", "1"),
        ("day", "2026-01-05"),
    ],
)
def test_groups(panda: Panda, by: str, name: str) -> None:
    """Executions of the user are added up by what was asked for; another user's do not count."""
    counted = group(panda, name, "--by", by)
    keys = ("executions", "valid", "retries", "tokens", "p50_ms", "p95_ms")
    assert [counted[key] for key in keys] == [2, 1.0, 1, 200, 10.0, 30.0]


def test_confidence_against_verdicts(panda: Panda) -> None:
    """Of two executions at .90, one turn was approved: the calibration error is .40."""
    counted = group(panda)
    assert (counted["judged"], counted["confidence"], counted["held"]) == (2, 0.9, 0.5)
    assert counted["calibration_error"] == pytest.approx(0.4)


def test_lines_that_do_not_count(panda: Panda) -> None:
    """A torn line and one of another type are warnings with their number, and found on checking."""
    panda.write_lines(LOG, *LINES, line(1, retries="two"))
    log = panda.home / LOG
    log.write_text(log.read_text() + '{"recipe": "ref')
    ended = panda("stats")
    assert ended.code == 0
    assert "executions.jsonl:4 (retries): retries must be a whole number" in ended.err
    assert "executions.jsonl:5" in ended.err
    assert ended.rows[0].startswith("pipeline/phase1_reflection\t2\t")
    checked = panda("validate", str(log))
    assert (checked.code, "executions.jsonl:4" in checked.out) == (3, True)


def test_unknown_tokens(panda: Panda) -> None:
    """Tokens that one execution does not know make the sum unknown, not smaller."""
    panda.write_lines(LOG, *LINES, line(1, tokens={"total": None}))
    assert group(panda)["tokens"] is None


def test_a_turn_that_no_directory_can_have(panda: Panda) -> None:
    """Executions of a turn_id with NUL, of one that leads elsewhere and of none count, and are not judged."""
    turn_ids = ("turn_\0", "../turns/turn_000001", None)
    panda.write_lines(LOG, *LINES, *(line(1, turn_id=turn_id) for turn_id in turn_ids))
    counted = group(panda)
    assert (counted["executions"], counted["judged"]) == (5, 2)


def test_wrong_words(panda: Panda) -> None:
    """An unknown group or time is wrong usage; nothing is shown of a time without executions."""
    assert panda("stats", "--by", "moon").code == 2
    assert panda("stats", "--since", "yesterday").code == 2
    assert panda("stats", "--since", "2027-01-01").out == ""
