"""Code mode: what a model may do to a project, and what it may not."""

import re
from pathlib import Path
from typing import Any

import pytest

from tests.api import VAGUE_QUESTION, Turn
from tests.code_mode import SOURCE, CodeProject, call, code_script, git, replies
from tests.code_mode import project as project
from tests.script import Script

PASSED = "unit passed: 1 check passed"
RUN = call("test.run", command="unit")


def work(project: CodeProject, *calls: Any) -> Turn:
    """A turn of a model that makes these calls and answers nothing of its own."""
    return project.work(code_script(replies(*calls), answer={"items": []}))


def test_rename_and_run_the_tests(project: CodeProject) -> None:
    """A function is renamed everywhere, the tests are run, §4 has the diff and the answer the result."""
    turn = project.work(code_script())
    assert (project.home / "totals.py").read_text() == SOURCE.replace("add_up", "total")
    assert "total" in (project.home / "check_totals.py").read_text()
    assert git(project.home, "status", "--porcelain").split() == ["M", "check_totals.py", "M", "totals.py"]
    assert "-def add_up(values):" in turn.body(4)
    assert "+def total(values):" in turn.body(4)
    step = turn.steps[4]
    assert (step["tool"], step["data"]["passed"], step["data"]["exit_code"]) == ("test.run", True, 0)
    assert turn.response.startswith("unit passed: 1 check passed [1]")
    assert "No file was changed." not in turn.response
    assert "+def total(values):" in turn.response
    assert turn.status == "approved"
    assert project.problems() == []


def test_dry_run_shows_the_diff(project: CodeProject) -> None:
    """In a dry run nothing is written and no test is run; later calls see the changed text all the same."""
    edit = call("file.edit", path="totals.py", old="add_up", new="total")
    script = code_script(
        replies(edit, call("file.read", path="totals.py"), RUN),
        answer={"items": [{"text": "totals.py would change", "node_ids": ["step:1"]}]},
    )
    turn = project.work(script, "Rename add_up to total.", "--dry-run")
    assert git(project.home, "status", "--porcelain") == ""
    assert "def total(values)" in turn.steps[1]["data"]["content"]
    assert turn.steps[2]["status"] == "blocked"
    assert "dry run" in turn.steps[2]["error"]
    assert "Would change:" in turn.response
    assert "+def total(values):" in turn.response
    assert turn.metadata["dry_run"] is True


OUTSIDE = [
    "../outside.txt",
    "link.txt",
    "out/outside.txt",
    "out/new.txt",
    "sub/../../outside.txt",
    "/etc/hosts",
    "~/x.txt",
    ".git/hooks/pre-commit",
    ".GIT/config",
    "panda.toml",
    "./panda.toml",
    "recipes/pipeline/x.yaml",
    ".",
    "a\x00b",
]


def test_nothing_outside_is_written(tmp_path: Path, project: CodeProject) -> None:
    """Paths that lead outside, pass a symlink, or belong to git or panda are refused; the turn goes on."""
    store = str(project.store)
    paths = [path for path in tmp_path.rglob("*") if path.is_file() and not str(path).startswith(store)]
    before = {path: path.read_bytes() for path in paths}
    for first in range(0, len(OUTSIDE), 2):  # three calls that fail in a row end the tool loop
        paths_to_write = OUTSIDE[first : first + 2]
        calls = [call("file.write", content="changed\n", path=path) for path in paths_to_write]
        turn = work(project, calls)
        assert [(step["status"], step["data"]) for step in turn.steps] == [("error", None)] * 2, (
            paths_to_write
        )
    assert {path: path.read_bytes() for path in paths} == before
    assert not (tmp_path / "new.txt").exists()


@pytest.mark.parametrize("path", ["../outside.txt", "link.txt", "/etc/hosts", "out/outside.txt"])
def test_nothing_outside_is_read(project: CodeProject, path: str) -> None:
    """What lies outside the project is not read either, and listed under no name."""
    turn = work(
        project, [call("file.read", path=path), call("file.list"), call("file.search", text="outside")]
    )
    read, listed, searched = turn.steps
    assert read["status"] == "error"
    assert set(listed["data"]["files"]) - {"models.yaml"} == {"check_totals.py", "panda.toml", "totals.py"}
    assert searched["data"]["matches"] == []


@pytest.mark.parametrize("old", ["values", "nowhere"])
def test_edit_matches_once(project: CodeProject, old: str) -> None:
    """A text that stands in the file twice or never is not replaced."""
    turn = work(project, call("file.edit", path="totals.py", old=old, new="x"))
    assert f"the old text stands {SOURCE.count(old)} times" in turn.steps[0]["error"]
    assert (project.home / "totals.py").read_text() == SOURCE


def test_chat_mode_writes_nothing(project: CodeProject) -> None:
    """In chat mode the tools of the project are not on offer, and a reply that names one is refused."""
    write = {"calls": [call("file.write", path="new.txt", content="x")]}
    done = {"calls": [{"tool": "done"}]}
    turn = project.turn(
        script=Script(planner={"tools": [], "next_step": "coordinator"}, coordinator=[write, done])
    )
    assert "file.write" not in turn.asked("coordinator")[0].text
    assert len(turn.asked("coordinator")) == 2
    assert turn.steps == []
    assert git(project.home, "status", "--porcelain") == ""


def test_edit_keeps_the_rest_of_a_file(project: CodeProject) -> None:
    """An edit keeps line breaks of Windows, a missing last line break, and the permissions."""
    path = project.home / "run.sh"
    path.write_bytes(b"#!/bin/sh\r\necho one\r\necho two")
    path.chmod(0o750)
    work(project, call("file.edit", path="run.sh", old="one", new="1"))
    assert path.read_bytes() == b"#!/bin/sh\r\necho 1\r\necho two"
    assert path.stat().st_mode & 0o777 == 0o750


def test_failing_tests_are_told(project: CodeProject) -> None:
    """Tests that fail are a result: the answer may say so."""
    edit = call("file.edit", path="totals.py", old="sum(values)", new="0")
    answer = {"items": [{"text": "unit failed with exit code 1: wrong", "node_ids": ["step:2"]}]}
    turn = project.work(code_script(replies(edit, RUN), answer=answer))
    assert turn.steps[1]["data"]["passed"] is False
    assert turn.response.startswith("unit failed with exit code 1: wrong [1]")


def test_calls_may_be_repeated_after_a_change(project: CodeProject) -> None:
    """A call is identical only as long as no file has changed: tests are run again after an edit."""
    edit = call("file.edit", path="totals.py", old="sum(values)", new="sum(list(values))")
    turn = work(project, RUN, RUN, edit, RUN)
    assert [step["tool"] for step in turn.steps] == ["test.run", "file.edit", "test.run"]
    assert re.search(r"There are: [^.]*\bunit\b", turn.asked("coordinator")[0].text)


def test_hanging_command_is_stopped(project: CodeProject) -> None:
    """A command that hangs is killed at its limit with its children; three times, and the answer says so."""
    script = "sleep 600 & echo $! >> pids; wait"
    commands = "".join(f'{name} = ["sh", "-c", "{script}"]\n' for name in "abc")
    project.write("panda.toml", f"test_seconds = 0.3\n[test_commands]\n{commands}")
    turn = work(project, *(call("test.run", command=name) for name in "abc"))
    assert all("stopped at its limit of 0.3 s" in step["error"] for step in turn.steps)
    for pid in (project.home / "pids").read_text().split():
        assert not Path(f"/proc/{pid}").exists() or "Z" in Path(f"/proc/{pid}/stat").read_text()
    assert "Not finished, blocked: 3 calls in a row failed" in turn.response
    assert "**Ended:** blocked" in turn.body(4)


def test_nothing_changed_is_said(project: CodeProject) -> None:
    """Where a change was asked for and none was made, the answer says so, however much was found."""
    answer = {"items": [{"text": PASSED, "node_ids": ["step:1"]}]}
    turn = project.work(code_script(replies(RUN), answer=answer))
    assert turn.response.startswith("No file was changed.\n\n")
    assert turn.status == "approved"
    assert project.problems() == []


def test_a_writing_model_may_ask_back(project: CodeProject) -> None:
    """In code mode too a model that is asked decides, and hears the mode; a clear order is not asked of."""
    asking = {"decision": "CLARIFY", "question": "Which one?"}
    turn = project.work(code_script(reflection=asking), VAGUE_QUESTION)
    assert (turn.meta(1)["decision"], turn.metadata["question"]) == ("CLARIFY", "Which one?")
    assert "The mode is code" in turn.asked("reflection")[0].text
    assert project.work(code_script(reflection=asking), "Run the tests.").asked("reflection") == []


def test_dry_run_shows_the_diff_of_a_refused_answer(project: CodeProject) -> None:
    """With exit code 22 the diff of what would change goes to stderr."""
    answer = {"items": [{"text": "totals.py", "node_ids": ["step:2"]}]}
    script = code_script(answer=answer, validator={"verdict": "FAIL", "reason": "no"})
    turn = project.work(script, "Rename the function add_up to total.", "--dry-run")
    assert turn.code == 22
    assert "-def add_up(values):\n+def total(values):\n" in turn.err


def test_a_tool_that_failed_is_told(project: CodeProject) -> None:
    """Whatever an answer says of tests that did not run, the reply tells that, and why."""
    answer = {"items": [{"text": "The tests pass.", "node_ids": ["memory:budget"]}]}
    turn = project.work(code_script(replies(call("test.run", name="unit")), answer=answer), "Run the tests.")
    assert [step["status"] for step in turn.steps] == ["error"]
    assert "test.run failed: " in turn.response
