"""What crashes and others' hands leave behind: reading goes on, with a word about it."""

import json
import shutil
import threading
from pathlib import Path

import pytest

from tests.api import NOW, Panda
from tests.store_files import import_line

EARLIER = "2024-11-30T14:30:00Z"


@pytest.fixture
def panda(tmp_path: Path) -> Panda:
    """A store with the turns 1 to 3 of user demo."""
    panda = Panda(tmp_path / "project", user="demo")
    panda.user_directory.mkdir(parents=True)
    lines = (import_line(turn=number, query=f"Question {number}?") for number in (1, 2, 3))
    panda.write_lines("lines.jsonl", *lines)
    assert panda("import", "lines.jsonl").code == 0
    return panda


def test_name_without_directory(panda: Panda) -> None:
    """A turn's name that is no directory is left out by list, unknown to show, found by validate."""
    (panda.user_directory / "turns/turn_000009").symlink_to("gone")
    assert [row.split("\t")[0] for row in panda("list").rows] == ["1", "2", "3"]
    assert panda("show", "9").code == 2
    assert any("turn_000009: no directory" in problem for problem in panda.problems())


def test_turn_that_vanishes(panda: Panda) -> None:
    """While a turn comes and goes, list shows the others, and show and validate end with a clean code."""
    turn = panda.turn_file(2, "")
    stop = threading.Event()
    copy = shutil.copytree(turn, panda.home / "copy")

    def come_and_go() -> None:
        while not stop.is_set():
            shutil.rmtree(turn)
            shutil.copytree(copy, turn)

    thread = threading.Thread(target=come_and_go)
    thread.start()
    try:
        for _ in range(15):
            listed = panda("list")
            numbers = {row.split("\t")[0] for row in listed.rows}
            assert (listed.code, numbers >= {"1", "3"}) == (0, True)
            assert panda("show", "2").code in (0, 2, 74)
            assert panda("validate", str(panda.store / "users")).code in (0, 3, 74)
    finally:
        stop.set()
        thread.join()


@pytest.mark.parametrize("name", ["turns/turn_000002/calls.jsonl", "memory.jsonl"])
def test_torn_line(panda: Panda, name: str) -> None:
    """A last line that was cut short is found by validate with its number, and stops nothing else."""
    path = panda.user_directory / name
    path.write_text('\n{"entity": ', encoding="utf-8")
    ended = panda("validate", str(panda.store / "users"))
    assert (ended.code, f"{path}:2: not valid JSON" in ended.out) == (3, True)
    for words in (("list",), ("show", "2"), ("memory", "list")):
        assert panda(*words).code == 0
    assert panda("memory", "set", "tea", "Assam").code == 0


def test_clock_that_steps_back(panda: Panda) -> None:
    """Numbers and clock readings go on rising; what is written later wins; files stay valid."""
    for moment, value in ((NOW, "$900"), (EARLIER, "$700")):
        assert panda("memory", "set", "budget", value, PANDA_NOW=moment).code == 0
        panda.turn("hello", PANDA_NOW=moment)
    assert panda("memory", "get", "budget").out == "$700\n"
    log = (panda.user_directory / "memory.jsonl").read_text(encoding="utf-8")
    readings = [json.loads(line)["hlc"].split(".") for line in log.splitlines()]
    clock = [tuple(map(int, reading)) for reading in readings]
    assert clock == sorted(set(clock))
    turns = [(turn["turn"], turn["time"]) for turn in panda.json("list")["turns"][-2:]]
    assert turns == [(4, NOW), (5, EARLIER)]
    assert panda.problems() == []


def test_a_turn_whose_memory_is_damaged(demo: Path, tmp_path: Path) -> None:
    """An error that keeps a turn from being judged is named with file and line."""
    panda = Panda(tmp_path / "project", demo, user="demo")
    log = panda.user_directory / "memory.jsonl"
    number = len(log.read_text(encoding="utf-8").splitlines()) + 1
    with log.open("a", encoding="utf-8") as file:
        file.write('{"id": "torn\n')
    ended = panda("validate", "809")
    assert (ended.code, f"({log}:{number})" in ended.out) == (3, True)
