"""Files of a project while somebody kills the process, blocks its files or swaps a directory."""

import signal
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.api import PROGRAM
from tests.script import Script, step_of
from tests.tools.tool_project import SOURCE, ToolProject

EDITED = SOURCE.replace("add_up", "total")
EDIT = {"tool": "file.edit", "arguments": {"path": "totals.py", "old": "def add_up(", "new": "def total("}}
DONE = {"tool": "done"}
KILLED = """
import os, signal
rename = os.rename
def killed(source, target, **options):
    is_edit = str(target).endswith("totals.py")
    if is_edit and not AFTER:
        os.kill(os.getpid(), signal.SIGKILL)
    rename(source, target, **options)
    if is_edit:
        os.kill(os.getpid(), signal.SIGKILL)
os.rename = killed
"""


def coding(*calls: dict[str, Any]) -> Script:
    """A model that makes these calls, one a round."""
    return Script(
        retrieval={"relevant": []},
        synthesis={"lines": []},
        planner={"tools": [], "next_step": "coordinator"},
        coordinator=[*({"calls": [call]} for call in calls), DONE],
        answer={"items": []},
    )


@pytest.mark.parametrize(
    ("after", "meanwhile", "status", "left"),
    [
        (False, None, "success", EDITED),
        (True, None, "success", EDITED),
        (False, "# mine\n", "error", "# mine\n"),
    ],
    ids=["before the rename", "after the rename", "edited by somebody else"],
)
def test_turn_killed_at_its_edit(
    repository: ToolProject, *, after: bool, meanwhile: str | None, status: str, left: str
) -> None:
    """A turn that is killed as it edits neither edits twice, nor loses the edit, nor somebody else's."""
    place = repository.home / "totals.py"
    repository.server.script = coding(EDIT)
    repository.program = (*PROGRAM[:2], KILLED.replace("AFTER", str(after)) + PROGRAM[2])
    query = "Rename add_up in totals.py to total."
    assert repository.process("turn", "--mode", "code", "--", query).code == -signal.SIGKILL
    assert place.read_text() == (EDITED if after else SOURCE)
    assert repository.use("file.list")["data"]["files"] == ["check_totals.py", "totals.py"]
    if meanwhile is not None:
        place.write_text(meanwhile)
    turn = repository.resume(3, script=coding(EDIT))
    assert place.read_text() == left
    assert [step["status"] for step in turn.steps] == [status]
    assert turn.status == "approved"
    assert [problem for problem in repository.problems() if "temporary" not in problem] == []


def test_a_change_that_cannot_be_announced_is_not_made(repository: ToolProject) -> None:
    """If the step cannot be written before it, the file stays as it was."""
    script = coding(EDIT)

    def block_steps(asked: Any) -> Any:
        if step_of(asked) == "coordinator":
            steps = repository.turn_file(3, "steps")
            steps.rmdir() if steps.is_dir() else steps.unlink(missing_ok=True)
            steps.write_text("no directory")
        return script(asked)

    repository.turn("Rename add_up in totals.py to total.", "--mode", "code", script=block_steps)
    assert (repository.home / "totals.py").read_text() == SOURCE


def test_directory_that_becomes_a_symlink(repository: ToolProject, tmp_path: Path) -> None:
    """A directory that a test replaces by a link to somewhere else is not written through."""
    repository.write("sub/a.txt", "a\n")
    (tmp_path / "elsewhere").mkdir()
    swap = "import os; os.rename('sub', 'was'); os.symlink('../elsewhere', 'sub')"
    repository.write("panda.toml", f'[test_commands]\nswap = ["{sys.executable}", "-c", "{swap}"]\n')
    writes = [{"tool": "file.write", "arguments": {"path": "sub/a.txt", "content": text}} for text in "bc"]
    swapped = {"tool": "test.run", "arguments": {"command": "swap"}}
    script = coding(writes[0], swapped, writes[1])
    turn = repository.turn("Change sub/a.txt and run swap.", "--mode", "code", "--trust", script=script)
    assert [step["status"] for step in turn.steps] == ["success", "success", "error"]
    assert "symlink" in turn.steps[2]["error"]
    assert list((tmp_path / "elsewhere").iterdir()) == []
    assert (repository.home / "was" / "a.txt").read_text() == "b"
