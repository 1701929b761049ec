"""Turns of real processes that are killed, interrupted and raced."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from contextlib import closing
from pathlib import Path

import pytest

from tests.api import LAPTOPS, ModelServer, Panda

LOSES_INTERRUPT = """
import os, signal, sys

class Finalized:
    def __del__(self):
        os.kill(os.getpid(), signal.SIGINT)

is_sent = False

def send_once(event, arguments):
    global is_sent
    if event == "open" and not is_sent and str(arguments[0]).endswith("query_analysis.json"):
        is_sent = True
        Finalized()

sys.addaudithook(send_once)
import runpy
runpy.run_module("panda", run_name="__main__")
"""
"""Sends itself SIGINT once phase 0 is done, where Python drops exceptions."""
STOPS_AS_A_PHASE_ENDS = """
import os, runpy, signal, sys

writes_left = WRITES

def send_signal(event, arguments):
    global writes_left
    if event == "os.rename" and str(arguments[1]).endswith("metadata.json"):
        writes_left -= 1
        if writes_left == 0:
            os.kill(os.getpid(), signal.SIGINT)

sys.addaudithook(send_signal)
runpy.run_module("panda", run_name="__main__")
"""
"""Sends itself SIGINT at one of the writes of metadata.json, which is brought to its end before."""
COMMAND = [sys.executable, "-c", "from panda.cli.main import main; main()"]


@pytest.fixture
def store(indexed: Path, tmp_path: Path) -> Path:
    """A demo store of its own."""
    return Path(shutil.copytree(indexed, tmp_path / "panda-system-docs"))


def start(store: Path, *arguments: str) -> subprocess.Popen[str]:
    command = [*COMMAND, "turn", *arguments, "--root", str(store), "--user", "demo", "--json"]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def turn_file(store: Path, number: int, name: str) -> Path:
    return store / "users" / "demo" / "turns" / f"turn_{number:06d}" / name


def check_valid(store: Path) -> None:
    done = subprocess.run([*COMMAND, "validate", str(store)], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


pytestmark = pytest.mark.asks_for("www.amazon.com", "www.bestbuy.com")


def wait_for(path: Path) -> None:
    deadline = time.monotonic() + 60
    while not path.exists() and time.monotonic() < deadline:
        time.sleep(0.02)
    assert path.exists()


def start_and_stop(store: Path, query: str) -> subprocess.Popen[str]:
    """A turn that holds its session until it is told to go on."""
    process = start(store, query, "--session", "one")
    wait_for(turn_file(store, 813, "metadata.json"))
    process.send_signal(signal.SIGSTOP)
    return process


def test_killed_turn_resumes(store: Path) -> None:
    """A turn killed again and again ends with every recorded call made once, and its files valid."""
    process = start(store, "How much is the ASUS TUF A15?")
    calls = turn_file(store, 813, "calls.jsonl")
    for names in ("query_analysis.json", "retrieval_plan.json", "plan.json"):
        wait_for(turn_file(store, 813, names))
        process.send_signal(signal.SIGKILL)
        process.communicate()
        before = calls.read_bytes()
        process = start(store, "--resume", "813")
    out, err = process.communicate(timeout=120)
    assert process.returncode == 0, err
    assert json.loads(out)["data"]["status"] == "approved"
    assert calls.read_bytes().startswith(before[: before.rfind(b"\n") + 1])
    call_counts = Counter(_call(json.loads(line)) for line in calls.read_text(encoding="utf-8").splitlines())
    assert max(call_counts.values()) == 1
    check_valid(store)


def _call(record: dict[str, object]) -> str:
    return json.dumps([record[key] for key in ("kind", "execution", "phase", "recipe", "attempt", "round")])


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_signals_interrupt(store: Path, number: signal.Signals, code: int) -> None:
    """Ctrl-C and TERM mark the turn interrupted, exit 130 and 143, and leave it to be resumed."""
    process = start(store, "How much is the ASUS TUF A15?")
    wait_for(turn_file(store, 813, "query_analysis.json"))
    process.send_signal(number)
    process.communicate(timeout=60)
    assert process.returncode == code
    metadata = json.loads(turn_file(store, 813, "metadata.json").read_text(encoding="utf-8"))
    assert metadata["status"] == "interrupted"
    check_valid(store)


def test_a_signal_whose_exception_python_drops_interrupts(tmp_path: Path) -> None:
    """Ctrl-C counts at the next phase where its exception was raised in a finalizer, which cannot raise."""
    panda = Panda(tmp_path, LAPTOPS, user="ann")
    with closing(ModelServer()) as server:
        panda.write("models.yaml", server.models())
        panda.program = (sys.executable, "-c", LOSES_INTERRUPT)
        ended = panda.process("turn", "How much is the Lenovo LOQ 15?", "--json")
    assert "KeyboardInterrupt" in ended.err
    assert ended.code == 130
    assert json.loads(panda.turn_file(3, "metadata.json").read_bytes())["status"] == "interrupted"
    assert panda.problems() == []


@pytest.mark.parametrize(
    ("writes", "status", "route"),
    [(2, "interrupted", [0]), (8, "approved", [0, 1, 2, 3, 5, 6, 7])],
    ids=["phase 0", "phase 7"],
)
def test_a_signal_as_a_phase_ends_undoes_nothing(
    tmp_path: Path, writes: int, status: str, route: list[int]
) -> None:
    """A phase that is written down as done counts as done, though Ctrl-C came while that was written."""
    panda = Panda(tmp_path, LAPTOPS, user="ann")
    with closing(ModelServer()) as server:
        panda.write("models.yaml", server.models())
        panda.program = (sys.executable, "-c", STOPS_AS_A_PHASE_ENDS.replace("WRITES", str(writes)))
        assert panda.process("turn", "How much is the Lenovo LOQ 15?", "--json").code == 130
    metadata = json.loads(panda.turn_file(3, "metadata.json").read_bytes())
    assert (metadata["status"], metadata["route"]) == (status, route)
    assert metadata["next"] == (None if status == "approved" else {"phase": 1, "round": 0, "attempt": 0})
    assert panda.problems() == []


def test_turns_of_one_session_follow_each_other(store: Path) -> None:
    """Two turns started at once in one session get two numbers; the second says whom it waits for."""
    first = start_and_stop(store, "hello")
    second = start(store, "hello there", "--session", "one")
    assert second.stderr is not None
    waiting = second.stderr.readline()
    first.send_signal(signal.SIGCONT)
    second.communicate(timeout=120)
    first.communicate(timeout=120)
    assert (first.returncode, second.returncode) == (0, 0)
    assert f"waiting for panda turn (pid {first.pid})" in waiting
    assert turn_file(store, 814, "response.md").exists()
    assert not turn_file(store, 815, "").exists()
    check_valid(store)


def test_no_wait_says_who_holds(store: Path) -> None:
    """With --wait 0 a held session is exit 75, naming the holder; no number is claimed."""
    first = start_and_stop(store, "hello")
    second = start(store, "hello there", "--session", "one", "--wait", "0")
    out, _ = second.communicate(timeout=60)
    first.send_signal(signal.SIGCONT)
    first.communicate(timeout=120)
    assert second.returncode == 75
    assert str(first.pid) in json.loads(out)["error"]["message"]
    assert not turn_file(store, 814, "").exists()


def test_resume_refuses(store: Path) -> None:
    """A turn that has ended, or does not exist, cannot be resumed: exit 2 with the reason."""
    environ = {**os.environ, "PANDA_USER": "demo", "PANDA_ROOT": str(store)}
    for number in ("811", "999"):
        command = [*COMMAND, "turn", "--resume", number, "--json"]
        done = subprocess.run(command, capture_output=True, text=True, env=environ)
        assert done.returncode == 2
        assert number in json.loads(done.stdout)["error"]["message"]
