"""intervention list, show and resolve, run in this process."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.api import NOW, Panda
from tests.store_files import write_json

HALTS: tuple[dict[str, Any], ...] = (
    {"turn": 12, "type": "memory_error", "severity": "critical", "message": "turn:5: gone"},
    {"turn": 13, "type": "reply_error", "expected": "an object", "raw_output": "{\n  half"},
    {"turn": None, "type": "recipe_error", "where": "r.yaml:3"},
    {"turn": 2, "type": "memory_error", "user_id": "bob"},
)
IDS = [f"2026010{day}t100000z-halt" for day in range(1, 5)]


@pytest.fixture
def panda(tmp_path: Path) -> Panda:
    """A store with three interventions of the user ann and one of bob."""
    panda = Panda(tmp_path / "project", user="ann")
    panda.user_directory.mkdir(parents=True)
    (panda.store / "interventions").mkdir()
    nothing = ("where", "expected", "received", "raw_output", "what_to_do", "resolved_at", "resolution")
    for day, (name, halt) in enumerate(zip(IDS, HALTS, strict=True), 1):
        usual = {
            "schema": "panda.intervention/1",
            "id": name,
            "created_at": f"2026-01-0{day}T10:00:00Z",
            "user_id": "ann",
            "phase": 2,
            "recipe": "pipeline/x",
            "severity": "high",
            "message": "it halted",
            "details": {},
            "status": "open",
        }
        write_json(file_of(panda, name), {**dict.fromkeys(nothing), **usual, **halt})
    return panda


def file_of(panda: Panda, name: str) -> Path:
    """The file of an intervention."""
    return panda.store / "interventions" / f"{name}.json"


def test_list(panda: Panda) -> None:
    """The open interventions of the user are listed, newest last, a line each; of nobody it is said."""
    rows = [row.split("\t") for row in panda("intervention", "list").rows]
    assert [row[0] for row in rows] == IDS[:3]
    assert rows[0][1:] == [
        "2026-01-01T10:00:00Z",
        *("12", "2", "pipeline/x", "memory_error", "critical", "turn:5: gone"),
    ]
    nobody = panda("intervention", "list", PANDA_USER="")
    assert (nobody.code, nobody.out, nobody.err) == (0, "", "no open interventions of user default\n")


def test_resolve(panda: Panda) -> None:
    """A resolved one has a note and a time, is listed only with --all, and validates; twice ends with 2."""
    ended = panda("intervention", "resolve", "20260101", "--note", "restored the turn")
    assert ended.code == 0
    assert "panda turn --resume 12 --user ann" in ended.err
    before = file_of(panda, IDS[0]).read_bytes()
    value = json.loads(before)
    assert (value["status"], value["resolution"]) == ("resolved", "restored the turn")
    assert value["resolved_at"] == NOW
    assert len(panda("intervention", "list").rows) == 2
    assert panda("intervention", "list", "--all").rows[0].endswith("\tresolved")
    again = panda("intervention", "resolve", IDS[0], "--note", "second")
    assert (again.code, f"was resolved at {NOW}: restored the turn" in again.err) == (2, True)
    assert file_of(panda, IDS[0]).read_bytes() == before
    assert panda.problems() == []


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["resolve", "", "--note", "x"], "no intervention ''"),
        (["resolve", "20260101", "--note", " "], "empty"),
        (["show", "202601"], "error: 4 interventions begin with '202601': "),
    ],
)
def test_what_names_no_intervention(panda: Panda, words: list[str], message: str) -> None:
    """An empty id or note, and a beginning that several ids have, is refused."""
    ended = panda("intervention", *words)
    assert (ended.code, message in ended.err) == (2, True)


def test_show(panda: Panda) -> None:
    """All that is known is shown; a text of several lines is indented; it says how to go on, if one can."""
    ended = panda("intervention", "show", "20260102")
    assert "\nexpected: an object\n" in ended.out
    assert "\nraw_output:\n  {\n    half\n" in ended.out
    assert ended.err == "to go on: panda turn --resume 13 --user ann\n"
    without_turn = panda("intervention", "show", IDS[2], "--json")
    assert (without_turn.data["go_on"], without_turn.err) == (None, "")


def test_damaged_file(panda: Panda) -> None:
    """A damaged file is a warning of the list, and an error of show."""
    path = file_of(panda, IDS[1])
    path.write_text("{", encoding="utf-8")
    ended = panda("intervention", "list")
    assert ended.err.startswith(f"warning: {path}:1: not valid JSON")
    assert len(ended.rows) == 2
    assert panda("intervention", "show", IDS[1]).code == 2
