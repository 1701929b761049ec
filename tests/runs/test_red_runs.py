"""Runs that say nothing of some turn are red: failed, killed or empty; in `panda diff` and in JUnit XML."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from tests.record_replays import FIRST_TURN, QUESTIONS

PANDA = str(Path(sys.executable).with_name("panda"))
ALL = f"{FIRST_TURN}-{FIRST_TURN + len(QUESTIONS) - 1}"


@pytest.fixture
def store(recorded: Path, tmp_path: Path) -> Path:
    """The demo store with the recorded turns in it."""
    return shutil.copytree(recorded, tmp_path / "store")


def turn_file(store: Path, number: int, name: str) -> Path:
    """Return a file of one of demo's turns."""
    return store / "users" / "demo" / "turns" / f"turn_{number:06d}" / name


def words_of(store: Path, *words: str) -> list[str]:
    return [PANDA, *words, "--root", str(store), "--user", "demo", "--json"]


def environ_of(store: Path) -> dict[str, str]:
    return {"PATH": os.environ["PATH"], "HOME": str(store.parent)}


def panda(store: Path, *words: str) -> tuple[int, dict[str, Any]]:
    """Exit code and JSON object of a command, run as a process."""
    done = subprocess.run(
        words_of(store, *words),
        capture_output=True,
        env=environ_of(store),
        check=False,
        cwd=store.parent,
    )
    return done.returncode, json.loads(done.stdout)


def judge(store: Path, *words: str) -> tuple[int, list[str], int, int]:
    """Exit code, regressions, tests and errors of `panda diff saved last --junit`."""
    path = store.parent / "junit.xml"
    code, value = panda(store, "diff", "saved", "last", "--junit", str(path), *words)
    suite = ElementTree.parse(path).getroot()
    return code, value["data"]["regressions"], int(suite.get("tests", 0)), int(suite.get("errors", 0))


def test_a_run_of_which_all_failed_is_red(store: Path) -> None:
    """Every turn that could not be run again is an error of the run, and nothing allows them all."""
    for number in range(FIRST_TURN, FIRST_TURN + len(QUESTIONS)):
        turn_file(store, number, "calls.jsonl").unlink()
    assert panda(store, "replay", ALL)[0] == 3
    code, regressions, tests, errors = judge(store)
    assert code == 3
    assert any("could not be compared: 813, 814" in one for one in regressions)
    assert tests > len(QUESTIONS)
    assert errors == len(QUESTIONS) + 1
    code, regressions, _, errors = judge(store, "--allow-missing")
    assert (code, regressions, errors) == (3, ["no turn was compared"], 1)


def test_a_run_with_one_error_is_red_unless_allowed(store: Path) -> None:
    """One turn of two that could not be run again is red; with --allow-missing the other one counts."""
    turn_file(store, FIRST_TURN, "calls.jsonl").unlink()
    assert panda(store, "replay", f"{FIRST_TURN}-{FIRST_TURN + 1}")[0] == 3
    assert judge(store)[0] == 3
    assert judge(store)[2:] == (3, 1)
    assert judge(store, "--allow-missing")[0] == 0


def test_a_killed_run_is_red_and_says_so(store: Path) -> None:
    """A run that SIGKILL ended is not finished: the turns that it did not reach are no equal ones."""
    with subprocess.Popen(
        words_of(store, "replay", ALL),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env=environ_of(store),
    ) as process:
        deadline = time.monotonic() + 120
        while not list((store / "runs").glob("*/turns.jsonl")):
            assert time.monotonic() < deadline
            assert process.poll() is None
            time.sleep(0.002)
        process.send_signal(signal.SIGKILL)
    code, regressions, tests, errors = judge(store)
    assert code == 3
    assert any("is not finished" in one for one in regressions)
    assert any("could not be compared" in one for one in regressions)
    assert tests == len(QUESTIONS) + 1
    assert errors >= 2
    assert judge(store, "--allow-missing")[0] == 0


@pytest.mark.parametrize("finished", [True, False])
def test_an_empty_run_is_red(store: Path, finished: bool) -> None:
    """A run without a line, of no turn at all or killed before the first, compares nothing and is red."""
    panda(store, "replay", str(FIRST_TURN))
    (directory,) = (store / "runs").iterdir()
    (directory / "turns.jsonl").unlink()
    plan = json.loads((directory / "run.json").read_text(encoding="utf-8"))
    if finished:
        plan |= {"turns": [], "results": {}}
    else:
        plan |= {"finished_at": None, "results": None}
    (directory / "run.json").write_text(json.dumps(plan), encoding="utf-8")
    for words in ((), ("--allow-missing",)):
        code, regressions, tests, errors = judge(store, *words)
        assert code == 3
        assert "no turn was compared" in regressions
        assert (tests > 0, errors > 0) == (True, True)


def test_versions_that_can_run_nothing_are_not_equal(store: Path) -> None:
    """Two versions of a recipe of which neither could run the turn are not equal; both runs are finished."""
    name = "pipeline/phase1_reflection"
    turn_file(store, FIRST_TURN, "metadata.json").write_text("{")
    code, value = panda(store, "recipe", "compare", name, name, "--on", str(FIRST_TURN))
    assert code == 3
    assert value["data"]["verdict"] == "not judged"
    plans = [json.loads(path.read_text(encoding="utf-8")) for path in (store / "runs").glob("*/run.json")]
    assert len(plans) == 2
    assert all(plan["finished_at"] and plan["results"] == {"error": 1} for plan in plans)
