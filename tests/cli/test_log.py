"""log and config show, run in this process; --follow as a process."""

import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from panda.store.files import append_json_line
from panda.store.layout import Layout
from tests.api import Ended, run_here

PANDA = str(Path(sys.executable).with_name("panda"))


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
def layout(tmp_path: Path) -> Layout:
    """A store whose log has four lines."""
    found = Layout(tmp_path)
    found.of("ann").home.mkdir(parents=True)
    for one in (record(1), record(2), record(2, "planner_chat"), record(2, user="bob")):
        append_json_line(found.executions_log, one)
    return found


def log(layout: Layout, *words: str) -> Ended:
    return run_here(["log", "--root", str(layout.root), "--user", "ann", *words])


def test_row(layout: Layout) -> None:
    """A line is a row: time, session, turn, recipe, layer, tokens in and out, ms, retries, result."""
    row = log(layout).rows[0]
    assert row.split("\t") == [
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
def test_filters(layout: Layout, words: Sequence[str], expected: list[tuple[int, str]]) -> None:
    """The user's newest lines, of a turn or a recipe by its name or its file."""
    lines = log(layout, *words, "--json").value["data"]["lines"]
    assert [(int(line["turn_id"][5:]), line["recipe"]) for line in lines] == expected


def test_damaged_lines(layout: Layout) -> None:
    """Damaged lines, one of wrong types and a torn one are warnings with their numbers; the rest is shown."""
    with layout.executions_log.open("ab") as file:
        file.write(b'\xff\n[1]\n{"user_id": "ann", "tokens": 7, "turn_id": 5}\n{"user_id": ')
    ended = log(layout)
    path = layout.executions_log
    assert [line.split()[1].rstrip(":") for line in ended.err.splitlines()] == [
        f"{path}:{n}" for n in (5, 6, 7, 8)
    ]
    assert len(ended.rows) == 3


def test_what_the_limit_leaves_out_is_told(layout: Layout) -> None:
    """How many earlier lines are not shown is said; where all are, nothing is."""
    assert log(layout, "-n", "1").err == "2 earlier lines are left out: -n 0 shows all\n"
    assert log(layout, "-n", "3").err == ""


def test_no_log(tmp_path: Path) -> None:
    """A store in which no recipe ran shows nothing and ends with 0."""
    (tmp_path / "users" / "ann").mkdir(parents=True)
    ended = log(Layout(tmp_path))
    assert (ended.code, ended.out) == (0, "")


def test_follow_as_json(layout: Layout) -> None:
    """Rows without end cannot be one JSON object: that is wrong usage."""
    ended = log(layout, "--follow", "--json")
    assert (ended.code, ended.value["error"]["type"]) == (2, "UsageError")


def test_follow(layout: Layout) -> None:
    """Lines are printed as they come, through truncation and rotation of the file, until Ctrl-C."""
    words = [PANDA, "log", "--follow", "-n", "1", "--root", str(layout.root), "--user", "ann"]
    environ = {"PATH": os.environ["PATH"], "HOME": "/nowhere"}
    with subprocess.Popen(
        words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environ
    ) as process:
        assert process.stdout is not None

        def next_turn() -> str:
            assert process.stdout is not None
            return process.stdout.readline().split("\t")[2]

        assert next_turn() == "turn"  # the heads
        turns = [next_turn()]
        append_json_line(layout.executions_log, record(11))
        turns.append(next_turn())
        with layout.executions_log.open("a", encoding="utf-8") as file:
            file.write('{"torn": ')
        append_json_line(layout.executions_log, record(12))  # removes the torn line
        turns.append(next_turn())
        os.truncate(layout.executions_log, 0)
        append_json_line(layout.executions_log, record(13))
        turns.append(next_turn())
        layout.executions_log.rename(layout.executions_log.with_suffix(".1"))
        append_json_line(layout.executions_log, record(14))
        turns.append(next_turn())
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate()
    assert (turns, process.returncode) == (["2", "11", "12", "13", "14"], 130)
    assert errors == "error: interrupted\n"


def test_config(tmp_path: Path) -> None:
    """Every setting is shown with its value and the flag, variable or default it came from."""
    environ = {"PANDA_NOW": "2026-01-05T00:00:00Z"}
    words = ["config", "show", "--root", str(tmp_path), "--wait", "3", "--json"]
    shown = run_here(words, environ).value["data"]["settings"]
    assert shown["root"] == {"value": str(tmp_path), "origin": "--root"}
    assert shown["now"] == {"value": "2026-01-05T00:00:00Z", "origin": "PANDA_NOW"}
    assert shown["wait_seconds"] == {"value": 3.0, "origin": "--wait"}
    assert shown["seed"] == {"value": None, "origin": "default"}
    assert len(shown["recipe_dirs"]["value"]) >= 1


def test_config_of_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A setting of panda.toml names that file; so do the directories that follow from where it is."""
    (tmp_path / "panda.toml").write_text('user = "ann"\n', encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    lines = run_here(["config", "show"]).rows
    rows = {line.split("\t")[0]: line.split("\t")[1:] for line in lines}
    assert rows["user"] == ["ann", str(tmp_path / "panda.toml")]
    assert rows["project_dir"] == [str(tmp_path), str(tmp_path / "panda.toml")]
