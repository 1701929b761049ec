"""Stores that writing commands left, forged afterwards: `panda validate` says so."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from panda.errors import FileFormatError
from panda.memory.fact import typed_value
from panda.memory.memory import Memory
from panda.store.fact import Assertion
from panda.store.layout import INDEX_SUMMARY_JSON, Layout, UserStore
from tests.api import Ended, run_here
from tests.builders import still_clock
from tests.mutations import mutate
from tests.scripted_turns import USER, run_turn
from tests.session.conversations import CALL, DONE, SESSION, TOOLS, Talk

ASKED, STATED = 3, 4
Validate = Callable[[Path], Ended]


@pytest.fixture(scope="module")
def left(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store after a turn with a tool, one that remembers, and `panda memory set`."""
    talk = Talk(tmp_path_factory.mktemp("left") / "store")
    talk.say("How much is the Lenovo LOQ 15?", planner=TOOLS, coordinator=[CALL, DONE])
    tea = "My favorite tea is Assam."
    answer = {"items": [{"text": tea, "node_ids": [f"turn:{STATED}"]}]}
    talk.say(tea, planner=TOOLS, coordinator=[{"tool": "memory.create"}, DONE], answer=answer)
    memory = Memory(UserStore(talk.layout.root, USER, still_clock, 5))
    with memory.held():
        memory.assert_all(
            [
                Assertion(
                    "",
                    f"user:{USER}",
                    "cake",
                    typed_value("Sacher"),
                    f"user:{USER}",
                    0.95,
                    "local",
                    kind="fact",
                )
            ]
        )
    return talk.layout.root


@pytest.fixture
def store(left: Path, tmp_path: Path) -> Layout:
    """That store, to be forged."""
    return Layout(shutil.copytree(left, tmp_path / "store"))


@pytest.fixture
def validate() -> Validate:
    """Run `panda validate` on a store."""

    def run(root: Path) -> Ended:
        words = ["validate", str(root), "--root", str(root), "--user", USER, "--json"]
        return run_here(words, {"PANDA_NOW": "2026-01-04T14:30:00Z"})

    return run


def test_left_as_it_was_is_sound(left: Path, validate: Validate) -> None:
    """What the commands left has no problems."""
    assert (validate(left).code, validate(left).value["data"]["problems"]) == (0, [])


def files(turn: Path) -> dict[str, object]:
    """What stands in a turn: the content of its files, and what else there is."""
    found = {
        path: path.read_bytes() if path.is_file() and not path.is_symlink() else path.is_dir()
        for path in turn.rglob("*")
    }
    return {str(path): said for path, said in found.items() if path.name != INDEX_SUMMARY_JSON}


@pytest.mark.parametrize("first", range(0, 60, 20))
def test_every_damage_is_found(left: Path, tmp_path: Path, validate: Validate, first: int) -> None:
    """Whatever is done to the files of a saved turn, validate ends with 3."""
    found = 0
    for seed in range(first, first + 20):
        root = shutil.copytree(left, tmp_path / str(seed))
        turn = Layout(root).of(USER).turn((ASKED, STATED)[seed % 2]).directory
        before = files(turn)
        done = mutate(turn, seed)
        if files(turn) != before:
            assert validate(root).code == 3, f"seed {seed}: {done}"
            found += 1
        shutil.rmtree(root)
    assert found > 10


def change(path: Path, old: str, new: str) -> None:
    """Replace the first occurrence of a text in a file that has it."""
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new, 1), encoding="utf-8", newline="")


def change_json(path: Path, **values: Any) -> None:
    """Set values of a JSON object."""
    path.write_text(json.dumps({**json.loads(path.read_bytes()), **values}), encoding="utf-8")


def drop_line(path: Path, part: str) -> None:
    """Remove the lines that hold a text."""
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    kept = [line for line in lines if part not in line]
    assert len(kept) < len(lines)
    path.write_text("".join(kept), encoding="utf-8", newline="")


def swap(one: Path, other: Path) -> None:
    """Exchange two files or directories."""
    between = one.with_name("between")
    one.rename(between)
    other.rename(one)
    between.rename(other)


def turn(store: Layout, number: int = ASKED) -> Path:
    """A turn's directory."""
    return store.of(USER).turn(number).directory


FORGERIES: dict[str, Callable[[Layout], Any]] = {
    "price of §2": lambda s: change(turn(s) / "context.md", "$697", "$597"),
    "price of the answer": lambda s: change(turn(s) / "response.md", "$697", "$597"),
    "verdict of §6": lambda s: change(turn(s) / "context.md", "verdict: APPROVE", "verdict: FAIL"),
    "node of §5": lambda s: change(turn(s) / "context.md", "items: [", "items:  ["),
    "query": lambda s: change_json(turn(s) / "metadata.json", query="How much is the HP Victus?"),
    "status": lambda s: change_json(turn(s) / "metadata.json", status="failed"),
    "answered": lambda s: change_json(turn(s) / "metadata.json", answered=False),
    "time": lambda s: change_json(turn(s) / "metadata.json", created_at="2026-01-03T14:30:00Z"),
    "seal": lambda s: change_json(turn(s) / "metadata.json", seal={}),
    "tool's result": lambda s: change(turn(s) / "steps" / "step_01.json", "697", "597"),
    "call": lambda s: change(turn(s) / "calls.jsonl", "697", "597"),
    "plan": lambda s: change_json(turn(s) / "plan.json", approach="another"),
    "summary": lambda s: change_json(turn(s) / "summary.json", turn_summary="Told nothing."),
    "more steps": lambda s: shutil.copy(turn(s) / "steps/step_01.json", turn(s) / "steps/step_02.json"),
    "no reflection": lambda s: (turn(s) / "reflection.json").unlink(),
    "turns swapped": lambda s: swap(turn(s, ASKED), turn(s, STATED)),
    "answers swapped": lambda s: swap(turn(s, ASKED) / "response.md", turn(s, STATED) / "response.md"),
    "visit of a cited node": lambda s: change(
        next(turn(s, 1).glob("webpage_cache/*/extracted.json")), "$697", "$597"
    ),
    "value in the log": lambda s: change(s.of(USER).memory_log, '"Assam"', '"Darjeeling"'),
    "value set by hand": lambda s: change(s.of(USER).memory_log, '"Sacher"', '"Linzer"'),
    "confidence in the log": lambda s: change(
        s.of(USER).memory_log, '"confidence": 0.95', '"confidence": 0.5'
    ),
    "relation in the log": lambda s: change(s.of(USER).memory_log, '"cake"', '"pie"'),
    "line of the log": lambda s: drop_line(s.of(USER).memory_log, '"Assam"'),
    "session's head": lambda s: change_json(s.of(USER).session(SESSION), head_turn=ASKED),
    "session's carry": lambda s: change(s.of(USER).session(SESSION), "697", "597"),
    "turn counter": lambda s: s.of(USER).turn_counter.write_text("2\n"),
}


@pytest.mark.parametrize("name", FORGERIES)
def test_forgery_is_found(store: Layout, validate: Validate, name: str) -> None:
    """A change of meaning anywhere in turns, log and session is found, with file and fix or reason."""
    FORGERIES[name](store)
    ended = validate(store.root)
    assert ended.code == 3
    assert all(problem["path"] and problem["message"] for problem in ended.value["data"]["problems"])


def test_seal_that_is_taken_off(store: Layout, validate: Validate) -> None:
    """Who changes a turn on purpose takes its seal off; from then on it counts as it is."""
    change(turn(store) / "calls.jsonl", "697", "597")
    problem = validate(store.root).value["data"]["problems"][0]
    assert "delete `seal`" in problem["fix"]
    change_json(turn(store) / "metadata.json", seal=None)
    assert validate(store.root).code == 0


def test_next_turn_refuses_a_forged_session(store: Layout) -> None:
    """No turn goes on with what somebody put into session.json; without the file it is made again."""
    change(store.of(USER).session(SESSION), "697", "597")
    with pytest.raises(FileFormatError, match="changed since its last turn"):
        run_turn(store, "And its weight?", session=SESSION)
    store.of(USER).session(SESSION).unlink()
    ran = run_turn(store, "And its weight?", session=SESSION)
    assert (ran.metadata.status, ran.problems) == ("approved", [])
