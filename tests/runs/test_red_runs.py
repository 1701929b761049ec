"""Runs that say nothing of some turn are red: failed, killed or empty; in `panda diff` and in JUnit XML."""

import json
import signal
import time
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tests.api import Panda
from tests.record_replays import FIRST_TURN

COUNT = 3
ALL = f"{FIRST_TURN}-{FIRST_TURN + COUNT - 1}"


@pytest.fixture
def panda(recorded: Path, tmp_path: Path) -> Panda:
    """A project with the demo store and the recorded turns in it."""
    return Panda(tmp_path / "project", recorded, user="demo")


def judge(panda: Panda, *words: str) -> tuple[int, list[str], int, int]:
    """Return exit code, regressions, tests and errors of `panda diff saved last --junit`."""
    words = ("--junit", "junit.xml", "--json", *words)
    ended = panda("diff", "saved", "last", *words)
    suite = ElementTree.parse(panda.home / "junit.xml").getroot()
    counts = [int(suite.get(name, 0)) for name in ("tests", "errors")]
    return ended.code, ended.data["regressions"], counts[0], counts[1]


def test_a_run_of_which_all_failed_is_red(panda: Panda) -> None:
    """Every turn that could not be run again is an error of the run, and nothing allows them all."""
    for number in range(FIRST_TURN, FIRST_TURN + COUNT):
        panda.turn_file(number, "calls.jsonl").unlink()
    assert panda("replay", ALL).code == 3
    code, regressions, tests, errors = judge(panda)
    assert (code, tests, errors) == (3, COUNT + 1, COUNT + 1)
    assert any("could not be compared: 813, 814" in text for text in regressions)
    code, regressions, _, errors = judge(panda, "--allow-missing")
    assert (code, regressions, errors) == (3, ["no turn was compared"], 1)


def test_a_run_with_one_error_is_red_unless_allowed(panda: Panda) -> None:
    """One turn of two that could not be run again is red; with --allow-missing the other one counts."""
    panda.turn_file(FIRST_TURN, "calls.jsonl").unlink()
    assert panda("replay", f"{FIRST_TURN}-{FIRST_TURN + 1}").code == 3
    code, _, tests, errors = judge(panda)
    assert (code, tests, errors) == (3, 3, 1)
    assert judge(panda, "--allow-missing")[0] == 0


def test_a_killed_run_is_red_and_says_so(panda: Panda) -> None:
    """A run that SIGKILL ended is not finished: the turns that it did not reach are no equal ones."""
    with panda.running("replay", ALL) as process:
        deadline = time.monotonic() + 120
        runs = panda.store / "runs"
        while not any(path.read_bytes().endswith(b"\n") for path in runs.glob("*/turns.jsonl")):
            assert time.monotonic() < deadline
            assert process.poll() is None
            time.sleep(0.002)
        process.send_signal(signal.SIGKILL)
        process.wait()
    code, regressions, tests, errors = judge(panda)
    assert (code, tests) == (3, COUNT + 1)
    assert errors >= 2
    assert any("is not finished" in text for text in regressions)
    assert any("could not be compared" in text for text in regressions)
    assert judge(panda, "--allow-missing")[0] == 0


@pytest.mark.parametrize(
    "changes", [{"turns": [], "results": {}}, {"finished_at": None, "results": None}], ids=["empty", "killed"]
)
def test_an_empty_run_is_red(panda: Panda, changes: dict[str, object]) -> None:
    """A run without a line, of no turn at all or killed before the first, compares nothing and is red."""
    assert panda("replay", str(FIRST_TURN)).code == 0
    (directory,) = (panda.store / "runs").iterdir()
    (directory / "turns.jsonl").unlink()
    plan = json.loads((directory / "run.json").read_bytes())
    (directory / "run.json").write_text(json.dumps(plan | changes), encoding="utf-8")
    for words in ((), ("--allow-missing",)):
        code, regressions, tests, errors = judge(panda, *words)
        assert code == 3
        assert "no turn was compared" in regressions
        assert (tests > 0, errors > 0) == (True, True)


def test_versions_that_can_run_nothing_are_not_equal(panda: Panda) -> None:
    """Two versions of a recipe of which neither could run the turn are not equal; both runs are finished."""
    name = "pipeline/phase1_reflection"
    panda.turn_file(FIRST_TURN, "metadata.json").write_text("{")
    words = ("recipe", "compare", name, name, "--on", str(FIRST_TURN), "--json")
    ended = panda(*words)
    assert (ended.code, ended.data["verdict"]) == (3, "not judged")
    plans = [json.loads(path.read_bytes()) for path in (panda.store / "runs").glob("*/run.json")]
    assert len(plans) == 2
    assert all(plan["finished_at"] and plan["results"] == {"error": 1} for plan in plans)
