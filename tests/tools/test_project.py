"""Files of a project while somebody else does something to them: kills the process, swaps a directory."""

import os
import signal
import sys
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import pytest

from panda.store.layout import Layout
from panda.store.validate import check_store
from panda.tools.project import Project
from tests.code_mode import SOURCE, call, code_script, replies, repository
from tests.code_turns import run_code
from tests.kills import FORKSERVER
from tests.script import Script
from tests.scripted_model import ScriptedModel
from tests.scripted_turns import scripted_app

LINES = 20_000
EDITED = SOURCE.replace("add_up", "total")


def whole(number: int) -> str:
    """A text of some size, of one line over and over."""
    return f"{number:08d}\n" * LINES


def write_on_and_on(root: Path, tell: Connection) -> None:
    """Writes a file again and again, and tells of each time."""
    project = Project(root, query="a.txt")
    for number in range(1, 1_000_000):
        project.write("a.txt", whole(number))
        tell.send(number)


@pytest.mark.parametrize("writes", [1, 3, 6])
def test_killed_while_it_writes(tmp_path: Path, writes: int) -> None:
    """A process that is killed at any moment leaves a file as it was or as it was to become."""
    project = Project(tmp_path, query="a.txt")
    project.write("a.txt", whole(0))
    told, tell = FORKSERVER.Pipe(duplex=False)
    child = FORKSERVER.Process(target=write_on_and_on, args=(tmp_path, tell))
    child.start()
    for _ in range(writes):
        told.recv()
    child.kill()
    child.join(60)
    assert child.exitcode == -signal.SIGKILL
    found = project.read("a.txt")
    assert found == whole(int(found[:8]))
    assert int(found[:8]) >= writes
    assert list(project.files()) == ["a.txt"]


def edit_and_die(root: Path, project: Path, *, after: bool) -> None:
    """A turn whose process is killed before or after the rename of the file that it edits."""
    rename = os.rename

    def killed(source: Any, target: Any, **options: Any) -> None:
        if not str(target).endswith("totals.py") or after:
            rename(source, target, **options)
        if str(target).endswith("totals.py"):
            os.kill(os.getpid(), signal.SIGKILL)

    vars(os)["rename"] = killed
    run_code(root, project, editing())


def editing() -> Script:
    """The replies of a turn that edits a file."""
    edit = call("file.edit", path="totals.py", old="def add_up(", new="def total(")
    return code_script(replies(edit), answer={"items": []})


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
    tmp_path: Path, *, after: bool, meanwhile: str | None, status: str, left: str
) -> None:
    """A turn that is killed as it edits neither edits twice, nor loses the edit, nor somebody else's."""
    project = repository(tmp_path)
    child = FORKSERVER.Process(target=edit_and_die, args=(tmp_path, project), kwargs={"after": after})
    child.start()
    child.join(60)
    assert child.exitcode == -signal.SIGKILL
    assert (project / "totals.py").read_text() == (EDITED if after else SOURCE)
    if meanwhile is not None:
        (project / "totals.py").write_text(meanwhile)
    layout = Layout(tmp_path / "store")
    app = scripted_app(layout, ScriptedModel(editing(), scores=False), project=project)
    turn = app.resume_turn(3)
    app.run_turn(turn)
    assert (project / "totals.py").read_text() == left
    assert [step.status for step in turn.steps()] == [status]
    assert turn.folder.read_metadata().status == "approved"
    assert [one for one in check_store(layout) if "temporary" not in one.message] == []


def test_directory_that_becomes_a_symlink(tmp_path: Path) -> None:
    """A directory that a test replaces by a link to somewhere else is not written through."""
    project = repository(tmp_path)
    (project / "sub").mkdir()
    (project / "sub" / "a.txt").write_text("a\n")
    (tmp_path / "elsewhere").mkdir()
    swap = "import os; os.rename('sub', 'was'); os.symlink('../elsewhere', 'sub')"
    toml = f'[test_commands]\nswap = ["{sys.executable}", "-c", "{swap}"]\n'
    (project / "panda.toml").write_text(toml, encoding="utf-8")
    calls = replies(
        call("file.write", path="sub/a.txt", content="b\n"),
        call("test.run", command="swap"),
        call("file.write", path="sub/a.txt", content="c\n"),
    )
    ran = run_code(tmp_path, project, code_script(calls, answer={"items": []}))
    assert [step.status for step in ran.turn.steps()] == ["success", "success", "error"]
    assert "symlink" in str(ran.turn.steps()[2].error)
    assert list((tmp_path / "elsewhere").iterdir()) == []
    assert (project / "was" / "a.txt").read_text() == "b\n"
