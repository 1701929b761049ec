"""A small git repository and turns of code mode on it."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.api import ScriptedPanda, Turn
from tests.script import Script

SOURCE = "def add_up(values):\n    return sum(values)\n"
TEST = (
    "from totals import add_up\n\n"
    "if add_up([1, 2]) != 3:\n    raise SystemExit('wrong')\nprint('1 check passed')\n"
)
QUERY = "Rename the function add_up to total and run the tests."
PANDA_TOML = '[test_commands]\nunit = ["{python}", "-B", "check_totals.py"]\nhang = "sleep 600"\n'


def repository(root: Path) -> Path:
    """A repository with a module, a check of it and a panda.toml that names the check `unit`."""
    project = root / "project"
    project.mkdir()
    (project / "totals.py").write_text(SOURCE, encoding="utf-8")
    (project / "check_totals.py").write_text(TEST, encoding="utf-8")
    (project / "panda.toml").write_text(PANDA_TOML.replace("{python}", sys.executable), encoding="utf-8")
    (root / "outside.txt").write_text("outside\n", encoding="utf-8")
    (project / "link.txt").symlink_to(root / "outside.txt")
    (project / "out").symlink_to(root, target_is_directory=True)
    git(project, "init", "-q")
    git(project, "add", ".")
    git(project, "-c", "user.name=a", "-c", "user.email=a@b.c", "commit", "-qm", "first")
    return project


def git(project: Path, *words: str) -> str:
    """What git says."""
    done = subprocess.run(["git", *words], cwd=project, check=True, capture_output=True, text=True)
    return done.stdout


def call(tool: str, **arguments: Any) -> dict[str, Any]:
    """One call of a coordinator's reply."""
    return {"tool": tool, "arguments": arguments}


def replies(*rounds: list[dict[str, Any]] | dict[str, Any]) -> list[dict[str, Any]]:
    """A coordinator's replies, and at the end `done`."""
    lists = [one if isinstance(one, list) else [one] for one in rounds]
    return [*({"calls": given} for given in lists), {"calls": [{"tool": "done"}]}]


RENAME = replies(
    call("file.search", text="add_up"),
    [
        call("file.edit", path="totals.py", old="def add_up(", new="def total("),
        call("file.edit", path="check_totals.py", old="import add_up", new="import total"),
        call("file.edit", path="check_totals.py", old="if add_up(", new="if total("),
    ],
    call("test.run", command="unit"),
    call("git.diff"),
)


def code_script(*rounds: Any, **more: Any) -> Script:
    """A model that works with these replies of the coordinator."""
    given = {
        "retrieval": {"relevant": []},
        "synthesis": {"lines": []},
        "planner": {"tools": [], "next_step": "coordinator"},
        "coordinator": list(rounds[0]) if rounds else RENAME,
        "answer": {"items": [{"text": "unit passed: 1 check passed", "node_ids": ["step:5"]}]},
    }
    return Script(**{**given, **more})


class CodeProject(ScriptedPanda):
    """
    The repository, worked on by a scripted language model; the store lies beside it.

    Args:
        root: Directory of the repository `project`, of `store` and of `outside.txt`.
    """

    def __init__(self, root: Path) -> None:
        super().__init__(repository(root))
        self.project = self.home
        self.store = self.store.rename(root / "store")
        self.environ["PANDA_ROOT"] = str(self.store)
        (self.project / ".git" / "info" / "exclude").write_text("models.yaml\n", encoding="utf-8")

    def work(self, script: Script, query: str = QUERY, *words: str) -> Turn:
        """One turn in code mode."""
        return self.turn(query, "--mode", "code", *words, script=script)


@pytest.fixture
def project(tmp_path: Path) -> Iterator[CodeProject]:
    """The repository, worked on by a scripted language model."""
    with CodeProject(tmp_path) as panda:
        yield panda
