"""log and config show, run in this process; --follow as a process."""

import json
import os
import signal
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.api import NOW, Panda


def record(turn: int, recipe: str = "reflection", user: str = "ann") -> dict[str, Any]:
    """A line of the log, as far as the command looks at it."""
    return {
        "timestamp": "2026-01-05T14:30:00Z",
        "recipe": recipe,
        "model_layer": "MIND",
        "user_id": user,
        "session_id": "s",
        "turn_id": f"turn_{turn:06d}",
        "tokens": {"prompt": 100, "reused": 0, "output": None, "total": None},
        "latency_ms": 85,
        "success": True,
        "retries": 0,
    }


@pytest.fixture
def panda(tmp_path: Path) -> Panda:
    """A store whose log has four lines, three of them ann's."""
    panda = Panda(tmp_path / "project", user="ann")
    panda.user_directory.mkdir(parents=True)
    lines = (record(1), record(2), record(2, "planner_chat"), record(2, user="bob"))
    panda.write_lines("store/logs/executions.jsonl", *lines)
    return panda


def log_file(panda: Panda) -> Path:
    """Return the log of executions."""
    return panda.store / "logs/executions.jsonl"


def test_row(panda: Panda) -> None:
    """A line is a row: time, session, turn, recipe, layer, tokens in and out, ms, retries, result."""
    assert panda("log").rows[0].split("\t") == [
        *("2026-01-05T14:30:00Z", "s", "1", "reflection", "MIND"),
        *("100", "", "", "85", "0", "done"),
    ]


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ([], [(1, "reflection"), (2, "reflection"), (2, "planner_chat")]),
        (["-n", "1"], [(2, "planner_chat")]),
        (["-n", "0", "--turn", "2"], [(2, "reflection"), (2, "planner_chat")]),
        (["--recipe", "reflection", "--turn", "1"], [(1, "reflection")]),
        (["--recipe", "pipeline/phase3_planner_chat"], [(2, "planner_chat")]),
        (["--turn", "9"], []),
    ],
)
def test_filters(panda: Panda, words: Sequence[str], expected: list[tuple[int, str]]) -> None:
    """The user's newest lines, of a turn or a recipe by its name or its file."""
    lines = panda.json("log", *words)["lines"]
    assert [(int(line["turn_id"][5:]), line["recipe"]) for line in lines] == expected


def test_damaged_lines(panda: Panda) -> None:
    """Damaged lines, one of wrong types and a torn one are warnings with their numbers; the rest is shown."""
    with log_file(panda).open("ab") as file:
        file.write(b'\xff\n[1]\n{"user_id": "ann", "tokens": 7, "turn_id": 5}\n{"user_id": ')
    ended = panda("log")
    assert [line.split()[1].rstrip(":") for line in ended.err.splitlines()] == [
        f"{log_file(panda)}:{number}" for number in (5, 6, 7, 8)
    ]
    assert len(ended.rows) == 3


def test_what_the_limit_leaves_out_is_told(panda: Panda) -> None:
    """
    The number of earlier lines that are not shown is told; if all are shown, or there are none, nothing is.
    """
    assert panda("log", "-n", "1").err == "2 earlier lines are left out: -n 0 shows all\n"
    assert panda("log", "-n", "3").err == ""
    log_file(panda).unlink()
    ended = panda("log")
    assert (ended.code, ended.out) == (0, "")


def test_follow_as_json(panda: Panda) -> None:
    """Rows without end cannot be one JSON object: that is wrong usage."""
    ended = panda("log", "--follow", "--json")
    assert (ended.code, ended.error["type"]) == (2, "UsageError")


def append(path: Path, text: str) -> None:
    """Add a text to a file, which may have been moved away."""
    with path.open("a", encoding="utf-8") as file:
        file.write(text)


def test_follow(panda: Panda) -> None:
    """Lines are printed as they come, through truncation and rotation of the file, until Ctrl-C."""
    path = log_file(panda)
    with panda.start("log", "--follow", "-n", "1") as process:

        def next_turn() -> str:
            assert process.stdout is not None
            return process.stdout.readline().split("\t")[2]

        assert next_turn() == "turn"  # the heads
        turns = [next_turn()]
        append(path, json.dumps(record(11)) + "\n")
        turns.append(next_turn())
        append(path, json.dumps(record(12))[:40])
        append(path, json.dumps(record(12))[40:] + "\n")
        turns.append(next_turn())
        os.truncate(path, 0)
        append(path, json.dumps(record(13)) + "\n")
        turns.append(next_turn())
        path.rename(path.with_suffix(".1"))
        append(path, json.dumps(record(14)) + "\n")
        turns.append(next_turn())
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate()
    assert (turns, process.returncode) == (["2", "11", "12", "13", "14"], 130)
    assert errors == "error: interrupted\n"


def test_config(panda: Panda) -> None:
    """Every setting is shown with its value and the flag, variable, file or default it came from."""
    path = str(panda.write("panda.toml", "web_timeout_seconds = 7\n"))
    settings = panda.json("config", "show", "--wait", "3")["settings"]
    for name, value, origin in (
        ("root", str(panda.store), "PANDA_ROOT"),
        ("now", NOW, "PANDA_NOW"),
        ("wait_seconds", 3.0, "--wait"),
        ("seed", None, "default"),
        ("web_timeout_seconds", 7, path),
        ("project_dir", str(panda.home), path),
    ):
        assert settings[name] == {"value": value, "origin": origin}
    assert len(settings["recipe_dirs"]["value"]) >= 1
    rows = {row.split("\t")[0]: row.split("\t")[1:] for row in panda("config", "show").rows}
    assert rows["project_dir"] == [str(panda.home), path]
