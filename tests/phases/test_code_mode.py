"""Code mode: what a model may do to a project, and what it may not."""

import re
from pathlib import Path
from typing import Any

import pytest

from panda.actions.turn import run_turn
from panda.cli.turn import turn_result
from tests.code_mode import QUERY, SOURCE, call, code_script, git, replies, repository, run_code
from tests.script import Script
from tests.scripted_model import ScriptedModel
from tests.scripted_turns import laptop_store, scripted_app


def test_rename_and_run_the_tests(tmp_path: Path) -> None:
    """A function is renamed everywhere, the tests are run, §4 has the diff and the answer the result."""
    project = repository(tmp_path)
    ran = run_code(tmp_path, project, code_script())
    assert (project / "totals.py").read_text() == SOURCE.replace("add_up", "total")
    assert "total" in (project / "check_totals.py").read_text()
    assert git(project, "status", "--porcelain").split() == ["M", "check_totals.py", "M", "totals.py"]
    assert "-def add_up(values):" in ran.body(4)
    assert "+def total(values):" in ran.body(4)
    step = ran.turn.steps()[4]
    assert (step.tool, step.data["passed"], step.data["exit_code"]) == ("test.run", True, 0)
    assert ran.response.startswith("unit passed: 1 check passed [1]")
    assert "No file was changed." not in ran.response
    assert "+def total(values):" in ran.response
    assert ran.metadata.status == "approved"
    assert ran.problems == []


def test_dry_run_shows_the_diff(tmp_path: Path) -> None:
    """In a dry run nothing is written and no test is run; later calls see the changed text all the same."""
    project = repository(tmp_path)
    script = code_script(
        replies(
            call("file.edit", path="totals.py", old="add_up", new="total"),
            call("file.read", path="totals.py"),
            call("test.run", command="unit"),
        ),
        answer={"items": [{"text": "totals.py would change", "node_ids": ["step:1"]}]},
    )
    ran = run_code(tmp_path, project, script, dry_run=True)
    assert git(project, "status", "--porcelain") == ""
    steps = ran.turn.steps()
    assert "def total(values)" in steps[1].data["content"]
    assert (steps[2].status, "dry run" in str(steps[2].error)) == ("blocked", True)
    assert "Would change:" in ran.response
    assert "+def total(values):" in ran.response
    assert ran.metadata.dry_run is True


@pytest.mark.parametrize(
    "arguments",
    [
        {"path": "../outside.txt"},
        {"path": "link.txt"},
        {"path": "out/outside.txt"},
        {"path": "out/new.txt"},
        {"path": "sub/../../outside.txt"},
        {"path": "/etc/hosts"},
        {"path": "~/x.txt"},
        {"path": ".git/hooks/pre-commit"},
        {"path": ".GIT/config"},
        {"path": "panda.toml"},
        {"path": "./panda.toml"},
        {"path": "recipes/pipeline/x.yaml"},
        {"path": "."},
        {"path": "a\x00b"},
    ],
    ids=lambda arguments: arguments["path"].replace("\x00", "nul"),
)
def test_nothing_outside_is_written(tmp_path: Path, arguments: dict[str, Any]) -> None:
    """Paths that lead outside, pass a symlink, or belong to git or panda are refused; the turn goes on."""
    project = repository(tmp_path)
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    write = call("file.write", content="changed\n", **arguments)
    ran = run_code(tmp_path, project, code_script(replies(write), answer={"items": []}))
    (step,) = ran.turn.steps()
    assert (step.status, step.data) == ("error", None)
    after = {path: path.read_bytes() for path in before}
    assert after == before
    assert not (tmp_path / "new.txt").exists()


@pytest.mark.parametrize("path", ["../outside.txt", "link.txt", "/etc/hosts", "out/outside.txt"])
def test_nothing_outside_is_read(tmp_path: Path, path: str) -> None:
    """What lies outside the project is not read either, and listed under no name."""
    project = repository(tmp_path)
    script = code_script(
        replies([call("file.read", path=path), call("file.list"), call("file.search", text="outside")]),
        answer={"items": []},
    )
    ran = run_code(tmp_path, project, script)
    read, listed, found = ran.turn.steps()
    assert read.status == "error"
    assert listed.data["files"] == ["check_totals.py", "panda.toml", "totals.py"]
    assert found.data["matches"] == []


@pytest.mark.parametrize("old", ["values", "nowhere"])
def test_edit_matches_once(tmp_path: Path, old: str) -> None:
    """A text that stands in the file twice or never is not replaced."""
    project = repository(tmp_path)
    edit = call("file.edit", path="totals.py", old=old, new="x")
    ran = run_code(tmp_path, project, code_script(replies(edit), answer={"items": []}))
    assert f"the old text stands {SOURCE.count(old)} times" in str(ran.turn.steps()[0].error)
    assert (project / "totals.py").read_text() == SOURCE


def test_chat_mode_writes_nothing(tmp_path: Path) -> None:
    """In chat mode the tools of the project are not on offer, and a reply that names one is refused."""
    project = repository(tmp_path)
    write = {"calls": [call("file.write", path="new.txt", content="x")]}
    done = {"calls": [{"tool": "done"}]}
    script = Script(planner={"tools": [], "next_step": "coordinator"}, coordinator=[write, done])
    ran = run_code(tmp_path, project, script, "How much is the Lenovo LOQ 15?", mode="chat")
    assert "file.write" not in ran.asked("coordinator")[0].text
    assert len(ran.asked("coordinator")) == 2
    assert ran.turn.steps() == []
    assert git(project, "status", "--porcelain") == ""


def test_edit_keeps_the_rest_of_a_file(tmp_path: Path) -> None:
    """An edit keeps line breaks of Windows, a missing last line break, and the permissions."""
    project = repository(tmp_path)
    path = project / "run.sh"
    path.write_bytes(b"#!/bin/sh\r\necho one\r\necho two")
    path.chmod(0o750)
    edit = call("file.edit", path="run.sh", old="one", new="1")
    run_code(tmp_path, project, code_script(replies(edit), answer={"items": []}))
    assert path.read_bytes() == b"#!/bin/sh\r\necho 1\r\necho two"
    assert path.stat().st_mode & 0o777 == 0o750


def test_failing_tests_are_told(tmp_path: Path) -> None:
    """Tests that fail are a result: the answer may say so, and must not say that they passed."""
    project = repository(tmp_path)
    script = code_script(
        replies(
            call("file.edit", path="totals.py", old="sum(values)", new="0"), call("test.run", command="unit")
        ),
        answer={"items": [{"text": "unit failed with exit code 1: wrong", "node_ids": ["step:2"]}]},
    )
    ran = run_code(tmp_path, project, script)
    assert ran.turn.steps()[1].data["passed"] is False
    assert ran.response.startswith("unit failed with exit code 1: wrong [1]")


def test_calls_may_be_repeated_after_a_change(tmp_path: Path) -> None:
    """A call is identical only as long as no file has changed: tests are run again after an edit."""
    project = repository(tmp_path)
    run = call("test.run", command="unit")
    edit = call("file.edit", path="totals.py", old="sum(values)", new="sum(list(values))")
    ran = run_code(tmp_path, project, code_script(replies(run, run, edit, run), answer={"items": []}))
    assert [step.tool for step in ran.turn.steps()] == ["test.run", "file.edit", "test.run"]
    assert re.search(r"There are: [^.]*\bunit\b", ran.asked("coordinator")[0].text)
    assert "The mode is code" in ran.asked("reflection")[0].text


def test_hanging_command_is_stopped(tmp_path: Path) -> None:
    """A command that hangs is killed at its limit with its children; three times, and the answer says so."""
    project = repository(tmp_path)
    script = "sleep 600 & echo $! >> pids; wait"
    toml = f'test_seconds = 0.3\n[test_commands]\na = ["sh", "-c", "{script}"]\n'
    names = ("a", "b", "c")
    toml += "".join(f'{name} = ["sh", "-c", "{script}"]\n' for name in names[1:])
    (project / "panda.toml").write_text(toml, encoding="utf-8")
    calls = replies(*(call("test.run", command=name) for name in names))
    ran = run_code(tmp_path, project, code_script(calls, answer={"items": []}))
    assert all("stopped at its limit of 0.3 s" in str(step.error) for step in ran.turn.steps())
    for pid in (project / "pids").read_text().split():
        assert not Path(f"/proc/{pid}").exists() or "Z" in Path(f"/proc/{pid}/stat").read_text()
    assert "Not finished, blocked: 3 calls in a row failed" in ran.response
    assert "**Ended:** blocked" in ran.body(4)


def test_nothing_changed_is_said(tmp_path: Path) -> None:
    """Where a change was asked for and none was made, the answer says so, however much was found."""
    project = repository(tmp_path)
    answer = {"items": [{"text": "unit passed: 1 check passed", "node_ids": ["step:1"]}]}
    ran = run_code(tmp_path, project, code_script(replies(call("test.run", command="unit")), answer=answer))
    assert ran.response.startswith("No file was changed.\n\n")
    assert ran.metadata.status == "approved"
    assert ran.problems == []


def test_a_writing_model_may_ask_back(tmp_path: Path) -> None:
    """In code mode too the CLARIFY of a model that writes stands, also for a command that names something."""
    asking = {"decision": "CLARIFY", "question": "Which tests?"}
    project = repository(tmp_path)
    ran = run_code(tmp_path, project, code_script(reflection=asking), "Run the tests.")
    assert (ran.meta(1)["decision"], ran.metadata.question) == ("CLARIFY", "Which tests?")


def test_dry_run_shows_the_diff_of_a_refused_answer(tmp_path: Path) -> None:
    """With exit code 22 the diff of what would change goes to stderr."""
    project = repository(tmp_path)
    answer = {"items": [{"text": "totals.py", "node_ids": ["step:2"]}]}
    script = code_script(answer=answer, validator={"verdict": "FAIL", "reason": "no"})
    model = ScriptedModel(script, scores=False)
    app = scripted_app(laptop_store(tmp_path / "store"), model, project=project)
    told: list[str] = []
    ended = turn_result(run_turn(app, app.start_turn(QUERY, "code", dry_run=True)), told.append)
    assert ended.code == 22
    assert "-def add_up(values):\n+def total(values):\n" in "\n".join(told)


def test_a_tool_that_failed_is_told(tmp_path: Path) -> None:
    """Whatever an answer says of tests that did not run, the reply tells that, and why."""
    calls = replies(call("test.run", name="unit"))
    answer = {"items": [{"text": "The tests pass.", "node_ids": ["memory:budget"]}]}
    project = repository(tmp_path)
    ran = run_code(tmp_path, project, code_script(calls, answer=answer), "Run the tests.")
    assert [step.status for step in ran.turn.steps()] == ["error"]
    assert "test.run failed: " in ran.response
