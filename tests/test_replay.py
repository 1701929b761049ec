"""Recordings hold right answers, and a wrong one never takes the place of a right one."""

import shutil
from pathlib import Path

import pytest

from tests.api import tree
from tests.record_replays import (
    EXPECTED,
    MEMORY,
    QUESTIONS,
    REPLAYS,
    differences,
    load_expected,
    replace_replays,
    turn_name,
)

ENDED = [{name: ended[name] for name in ("exit_code", "asks_for")} for ended in load_expected()]


@pytest.fixture
def user(recorded: Path, tmp_path: Path) -> Path:
    """The user of the demo store with the recorded turns in it."""
    return Path(shutil.copytree(recorded, tmp_path / "store")) / "users" / "demo"


@pytest.mark.parametrize("place", range(len(QUESTIONS)))
def test_recorded_answers_are_right(place: int) -> None:
    """Every recorded answer holds what expected.jsonl says, whatever the code made of it: mend the code."""
    assert differences(load_expected()[place], REPLAYS / turn_name(place)) == []


@pytest.mark.parametrize(
    ("name", "old", "new", "difference"),
    [
        ("response.md", "Lenovo LOQ 15", "ASUS TUF", "turn 813, 'Which laptop was the top pick"),
        ("response.md", "Sources:", "Or the ASUS.\n\nSources:", "the answer holds 'ASUS'"),
        ("metadata.json", '"approved"', '"failed"', "the status is failed, not approved"),
        ("context.md", "answered: true", "answered: false", "`answered` is not True"),
    ],
)
def test_a_wrong_answer_replaces_nothing(
    user: Path, tmp_path: Path, name: str, old: str, new: str, difference: str
) -> None:
    """A recording with one wrong answer is refused, with what differs, and no file of the old one changes."""
    replays = tmp_path / "replays"
    shutil.copytree(REPLAYS, replays)
    path = user / turn_name(0) / name
    path.write_text(path.read_text(encoding="utf-8").replace(old, new), encoding="utf-8")
    wrong = replace_replays(user, replays, ENDED)
    assert any(difference in line for line in wrong)
    assert all("turn 813, " in line for line in wrong)
    assert tree(replays) == tree(REPLAYS)


def test_a_wrong_ending_replaces_nothing(user: Path) -> None:
    """Another exit code than expected, or a request to a host that is not expected, is refused too."""
    ended = [{**ENDED[0], "exit_code": 22}, {**ENDED[1], "asks_for": ["shop.example"]}, *ENDED[2:]]
    wrong = replace_replays(user, REPLAYS, ended)
    assert [line.rpartition(": ")[2] for line in wrong] == [
        "exit_code is 22, not 0",
        "asks_for is ['shop.example'], not []",
    ]


def test_right_answers_replace_the_recording(user: Path, tmp_path: Path) -> None:
    """A recording with right answers takes the place of what stood there; what is expected stays."""
    replays = tmp_path / "replays"
    (replays / "turns" / "turn_000001").mkdir(parents=True)
    shutil.copy(REPLAYS / EXPECTED, replays)
    assert replace_replays(user, replays, ENDED) == []
    names = [turn_name(place).removeprefix("turns/") for place in range(len(QUESTIONS))]
    assert sorted(path.name for path in (replays / "turns").iterdir()) == names
    assert sorted(path.name for path in replays.iterdir()) == sorted([EXPECTED, "turns", *MEMORY])
