"""Turns of code mode on a small git repository, by the program's own classes."""

from pathlib import Path
from typing import Any

from panda.errors import Problem
from tests.code_mode import QUERY
from tests.scripted_model import ScriptedModel
from tests.scripted_turns import Ran, laptop_store, scripted_app


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
