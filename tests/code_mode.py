"""A small git repository and turns of code mode on it."""

import subprocess
import sys
from pathlib import Path
from typing import Any

from panda.errors import Problem
from tests.script import Script
from tests.scripted_model import ScriptedModel
from tests.scripted_turns import Ran, laptop_store, scripted_app

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


def run_code(
    root: Path, project: Path, script: Any, query: str = QUERY, *, dry_run: bool = False, mode: str = "code"
) -> Ran:
    """A turn of user ann in the project."""
    model = ScriptedModel(script, scores=False)
    layout = laptop_store(root / "store")
    app = scripted_app(layout, model, project=project)
    turn = app.start_turn(query, mode, dry_run=dry_run)
    try:
        app.run_turn(turn)
    except Problem as exc:
        return Ran(app, turn, exc, model)
    return Ran(app, turn, None, model)
