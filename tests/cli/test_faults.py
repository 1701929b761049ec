"""What crashes and others' hands leave behind: reading goes on, with a word about it."""

import shutil
import signal
import subprocess
import sys
import threading
from datetime import timedelta
from pathlib import Path

import pytest

from panda.documents.times import render_time
from panda.memory.log import MemoryLog
from panda.memory.memory import apply_staged, stage_value
from panda.store.fact import parse_hlc
from panda.store.files import held_lock
from panda.store.layout import Layout, UserStore
from panda.store.records import Staged
from panda.store.turns import claim_turn
from tests.api import Ended, run_here
from tests.builders import NOW, build_store

HOLDER = """
import sys, time
from pathlib import Path
from panda.store.files import held_lock
with held_lock(Path(sys.argv[1]), holder="panda turn 7 (dead)", wait_seconds=0):
    print("held", flush=True)
    time.sleep(600)
"""


def panda(layout: Layout, *words: str) -> Ended:
    return run_here([*words, "--root", str(layout.root), "--user", "demo"])


def test_name_without_directory(tmp_path: Path) -> None:
    """A turn's name that is no directory is left out by list, unknown to show, found by validate."""
    layout = build_store(tmp_path)
    (layout.of("demo").turns / "turn_000009").symlink_to("gone")
    assert [line.split("\t")[0] for line in panda(layout, "list").rows] == ["1", "2", "3"]
    assert panda(layout, "show", "9").code == 2
    ended = panda(layout, "validate", str(layout.users))
    assert (ended.code, "turn_000009: no directory" in ended.out) == (3, True)


def test_turn_that_vanishes(tmp_path: Path) -> None:
    """While a turn comes and goes, list shows the others, and show and validate end with a clean code."""
    layout = build_store(tmp_path / "store")
    turn, stop = layout.of("demo").turn(2).directory, threading.Event()
    shutil.copytree(turn, tmp_path / "kept")

    def come_and_go() -> None:
        while not stop.is_set():
            shutil.rmtree(turn)
            shutil.copytree(tmp_path / "kept", turn)

    thread = threading.Thread(target=come_and_go)
    thread.start()
    try:
        for _ in range(15):
            listed = panda(layout, "list")
            numbers = {line.split("\t")[0] for line in listed.rows}
            assert (listed.code, numbers >= {"1", "3"}) == (0, True)
            assert panda(layout, "show", "2").code in (0, 2, 74)
            assert panda(layout, "validate", str(layout.users)).code in (0, 3, 74)
    finally:
        stop.set()
        thread.join()


@pytest.mark.parametrize("name", ["turns/turn_000002/calls.jsonl", "memory.jsonl"])
def test_torn_line(tmp_path: Path, name: str) -> None:
    """A last line that was cut short is found by validate with its number, and stops nothing else."""
    layout = build_store(tmp_path)
    path = layout.of("demo").home / name
    path.write_text('\n{"entity": ', encoding="utf-8")
    ended = panda(layout, "validate", str(layout.users))
    assert (ended.code, f"{path}:2: not valid JSON" in ended.out) == (3, True)
    assert panda(layout, "list").code == panda(layout, "show", "2").code == 0
    if name == "memory.jsonl":
        log = MemoryLog(layout.of("demo"))
        log.refresh()
        assert list(log.assertions) == []
    else:
        store = UserStore(layout.root, "demo", lambda: NOW)
        assert store.open(2).load_calls() == []


def test_clock_that_steps_back(tmp_path: Path) -> None:
    """Numbers and clock readings go on rising; what is written later wins; files stay valid."""
    layout = build_store(tmp_path)
    earlier = NOW - timedelta(days=400)
    for moment in (NOW, earlier):
        claim_turn(UserStore(layout.root, "demo", lambda moment=moment: moment), "default", "chat", "q")  # type: ignore[misc]

    def say(value: str, turn: int) -> Staged:
        return stage_value(
            user="demo", kind="preference", relation="budget", value=value, text="t", source_turn=turn
        )

    apply_staged(UserStore(layout.root, "demo", lambda: NOW, 1), [say("$900", 4)])
    apply_staged(UserStore(layout.root, "demo", lambda: earlier, 1), [say("$700", 5)])
    log = MemoryLog(layout.of("demo"))
    log.refresh()
    readings = [parse_hlc(one.hlc) for one in log.assertions]
    assert readings == sorted(set(readings))
    assert "$700" in layout.of("demo").preferences.read_text(encoding="utf-8")
    lines = [line.split("\t") for line in panda(layout, "list").rows]
    assert [(line[0], line[1]) for line in lines[-2:]] == [
        ("4", render_time(NOW)),
        ("5", render_time(earlier)),
    ]
    assert panda(layout, "validate", str(layout.users)).out == ""


def test_dead_holder(tmp_path: Path) -> None:
    """A lock whose holder was killed is free at once, whatever its file still says."""
    path = tmp_path / "lock"
    with subprocess.Popen([sys.executable, "-c", HOLDER, str(path)], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"held\n"
        process.send_signal(signal.SIGKILL)
        process.wait()
    assert path.read_text(encoding="utf-8") == "panda turn 7 (dead)"
    with held_lock(path, holder="panda turn 8", wait_seconds=0):
        assert path.read_text(encoding="utf-8") == "panda turn 8"


def test_a_turn_whose_memory_is_damaged(demo: Path, tmp_path: Path) -> None:
    """What keeps a turn from being judged is named with file and line."""
    layout = Layout(shutil.copytree(demo, tmp_path / "store"))
    log = layout.of("demo").memory_log
    number = len(log.read_text(encoding="utf-8").splitlines()) + 1
    with log.open("a", encoding="utf-8") as file:
        file.write('{"id": "torn\n')
    ended = panda(layout, "validate", "809")
    assert (ended.code, f"({log}:{number})" in ended.out) == (3, True)
