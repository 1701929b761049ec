"""Stores that writing commands left, forged afterwards: `panda validate` says so."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.api import PRICE_QUESTION, Panda, ScriptedPanda
from tests.effort import tried
from tests.mutations import mutate

ASKED = 3
STATED = 4
TOOLS = {"tools": [], "next_step": "coordinator"}
DONE = {"tool": "done"}


@pytest.fixture(scope="module")
def left(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store after a turn with a tool, one that remembers, and `panda memory set`."""
    tea = "My favorite tea is Assam."
    noted = {"items": [{"text": tea, "node_ids": [f"turn:{STATED}"]}]}
    with ScriptedPanda(tmp_path_factory.mktemp("left") / "project") as ann:
        ann.say(PRICE_QUESTION, planner=TOOLS, coordinator=[{"tool": "memory.query"}, DONE])
        ann.say(tea, planner=TOOLS, coordinator=[{"tool": "memory.create"}, DONE], answer=noted)
        assert ann("memory", "set", "cake", "Sacher", "--kind", "fact").code == 0
        assert ann.problems() == []
        return ann.store


@pytest.fixture
def forged(left: Path, tmp_path: Path) -> Panda:
    """Return a copy of that store, to be forged."""
    return Panda(tmp_path / "forged", left, user="ann")


def content(turn: Path) -> dict[str, object]:
    """Return the content of a turn's files, and what else there is in its directory."""
    return {
        str(path): path.read_bytes() if path.is_file() and not path.is_symlink() else path.is_dir()
        for path in turn.rglob("*")
        if path.name != "index_summary.json"
    }


def test_every_damage_is_found(left: Path, tmp_path: Path) -> None:
    """Whatever is done to the files of a saved turn, validate ends with 3."""
    damaged = 0
    for seed in range(tried(25, 60)):
        panda = Panda(tmp_path / str(seed), left, user="ann")
        turn = panda.turn_file((ASKED, STATED)[seed % 2], "")
        before = content(turn)
        done = mutate(turn, seed)
        if content(turn) != before:
            assert panda("validate", str(panda.store)).code == 3, f"seed {seed}: {done}"
            damaged += 1
        shutil.rmtree(panda.home)
    assert damaged > 10


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
    others = [line for line in lines if part not in line]
    assert len(others) < len(lines)
    path.write_text("".join(others), encoding="utf-8", newline="")


def swap(first: Path, second: Path) -> None:
    """Exchange two files or directories."""
    between = first.with_name("between")
    first.rename(between)
    second.rename(first)
    between.rename(second)


def turn(store: Path, number: int = ASKED) -> Path:
    """A turn's directory."""
    return store / f"users/ann/turns/turn_{number:06d}"


def log(store: Path) -> Path:
    """Return the log of the memory."""
    return store / "users/ann/memory.jsonl"


def session(store: Path) -> Path:
    """Return the file of the session."""
    return store / "users/ann/sessions/talk/session.json"


FORGERIES: dict[str, Callable[[Path], Any]] = {
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
    "plan": lambda s: change_json(turn(s) / "plan.json", tasks=["look it up"]),
    "summary": lambda s: change_json(turn(s) / "summary.json", turn_summary="Told nothing."),
    "more steps": lambda s: shutil.copy(turn(s) / "steps/step_01.json", turn(s) / "steps/step_02.json"),
    "no reflection": lambda s: (turn(s) / "reflection.json").unlink(),
    "turns swapped": lambda s: swap(turn(s, ASKED), turn(s, STATED)),
    "answers swapped": lambda s: swap(turn(s, ASKED) / "response.md", turn(s, STATED) / "response.md"),
    "visit of a cited node": lambda s: change(
        next(turn(s, 1).glob("webpage_cache/*/extracted.json")), "$697", "$597"
    ),
    "value in the log": lambda s: change(log(s), '"Assam"', '"Darjeeling"'),
    "value set by hand": lambda s: change(log(s), '"Sacher"', '"Linzer"'),
    "confidence in the log": lambda s: change(log(s), '"confidence": 0.95', '"confidence": 0.5'),
    "relation in the log": lambda s: change(log(s), '"cake"', '"pie"'),
    "line of the log": lambda s: drop_line(log(s), '"Assam"'),
    "session's head": lambda s: change_json(session(s), head_turn=ASKED),
    "session's carry": lambda s: change(session(s), "697", "597"),
    "turn counter": lambda s: (s / "users/ann/turn_counter").write_text("2\n"),
}


@pytest.mark.parametrize("name", FORGERIES)
def test_forgery_is_found(forged: Panda, name: str) -> None:
    """A change of meaning anywhere in turns, log and session is found, with file and fix or reason."""
    FORGERIES[name](forged.store)
    ended = forged("validate", str(forged.store), "--json")
    assert ended.code == 3
    assert all(problem["path"] and problem["message"] for problem in ended.data["problems"])


def test_seal_that_is_taken_off(forged: Panda) -> None:
    """Who changes a turn on purpose takes its seal off; from then on it counts as it is."""
    change(turn(forged.store) / "calls.jsonl", "697", "597")
    problem = forged("validate", str(forged.store), "--json").data["problems"][0]
    assert "delete `seal`" in problem["fix"]
    change_json(turn(forged.store) / "metadata.json", seal=None)
    assert forged.problems() == []


def test_next_turn_refuses_a_forged_session(left: Path, tmp_path: Path) -> None:
    """No turn goes on with what somebody put into session.json; without the file it is made again."""
    with ScriptedPanda(tmp_path / "forged", left) as ann:
        change(session(ann.store), "697", "597")
        refused = ann.turn("And its weight?", "--session", "talk")
        assert "changed since its last turn" in refused.error["message"]
        session(ann.store).unlink()
        assert ann.turn("And its weight?", "--session", "talk").status == "approved"
        assert ann.problems() == []
