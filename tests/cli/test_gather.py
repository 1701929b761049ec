"""`panda gather`: phase 2 by itself, from the command line's functions and from a real process."""

import json
import subprocess
from pathlib import Path

import pytest

from panda.actions.turn import Until, check_gatherable, gather
from panda.errors import HaltError, UsageError
from tests.builders import file_of
from tests.cli.test_resume import COMMAND
from tests.script import PRICE_NODE, Script
from tests.scripted_model import ScriptedModel
from tests.scripted_turns import USER, laptop_store, scripted_app


def run(store: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """The real program with the embedded model."""
    command = [*COMMAND, *words, "--root", str(store), "--user", USER]
    return subprocess.run(command, capture_output=True, text=True, timeout=300)


def tree(path: Path) -> dict[str, bytes]:
    return {str(one): one.read_bytes() for one in path.rglob("*") if one.is_file()}


@pytest.mark.parametrize("until", ["plan", "draft"])
def test_looking_commits_nothing(tmp_path: Path, until: Until) -> None:
    """--plan and --draft leave the turn before phase 2, and a later run commits what was drafted."""
    layout = laptop_store(tmp_path)
    app = scripted_app(layout, ScriptedModel(Script(), scores=False))
    turn = app.start_turn("How much is the Lenovo LOQ 15?", "chat")
    look = gather(app, turn, until)
    assert look.plan is not None
    assert look.plan["webpage_cache_needed"] == ["visit_loq"]
    metadata = turn.folder.read_metadata()
    assert (metadata.status, metadata.route) == ("interrupted", (0, 1))
    assert [section.number for section in turn.folder.read_context().sections] == [0, 1]
    assert not turn.folder.has("gathered_context.json")
    check_gatherable(app, turn.turn)
    again = app.resume_turn(turn.turn)
    done = gather(app, again, "commit")
    assert done.section is not None
    assert look.section == (done.section if until == "draft" else None)
    assert again.folder.read_metadata().status == "gathered"


def test_gathered_turn_goes_on(tmp_path: Path) -> None:
    """A gathered turn has §2 and its figures, is valid, is not gathered twice, and can be resumed."""
    layout = laptop_store(tmp_path)
    app = scripted_app(layout, ScriptedModel(Script(), scores=False))
    turn = app.start_turn("How much is the Lenovo LOQ 15?", "chat")
    look = gather(app, turn, "commit")
    assert look.gathered is not None
    assert [one["node_id"] for one in look.gathered["documents"]] == [PRICE_NODE]
    metrics = file_of(turn.folder, "metrics.json")
    assert metrics["context"]["coverage"]["visit"] == 1
    assert metrics["context"]["constraints_missing"] is True
    with pytest.raises(UsageError, match="committed"):
        check_gatherable(app, turn.turn)
    resumed = app.resume_turn(turn.turn)
    app.run_turn(resumed)
    assert resumed.folder.read_metadata().status == "approved"


def test_planned_document_that_is_gone(tmp_path: Path) -> None:
    """What a plan names and somebody removed since halts the turn; context.md stays byte for byte."""
    layout = laptop_store(tmp_path)
    script = Script(retrieval={"relevant": ["turn:2"]})
    app = scripted_app(layout, ScriptedModel(script, scores=False))
    turn = app.start_turn("What do I drink?", "chat")
    gather(app, turn, "plan")
    before = (turn.folder.paths / "context.md").read_bytes()
    layout.of(USER).turn(2).directory.rename(tmp_path / "away")
    with pytest.raises(HaltError):
        gather(app, app.resume_turn(turn.turn), "commit")
    assert (turn.folder.paths / "context.md").read_bytes() == before
    (path,) = layout.interventions.glob("*.json")
    value = json.loads(path.read_text(encoding="utf-8"))
    assert (value["turn"], value["phase"], value["type"]) == (3, 2, "memory_error")
    assert "turn_000002" in value["where"]
    assert "retrieval_plan.json" in value["what_to_do"]


def test_from_the_shell(tmp_path: Path) -> None:
    """The program gathers a query, prints §2, validates it by number, and refuses to gather it again."""
    layout = laptop_store(tmp_path / "store")
    done = run(layout.root, "gather", "--query", "what were the specs on that Lenovo?", "--json")
    assert done.returncode == 0, done.stderr
    data = json.loads(done.stdout)["data"]
    assert (data["status"], data["verdict"]) == ("gathered", "pass")
    assert "Lenovo LOQ 15: gpu RTX 4050 [1]" in data["section"]
    visits = next(one for one in data["sections"] if one["title"] == "Visit Data")
    assert visits["node_ids"] == [PRICE_NODE]
    assert visits["provenance"] == ["turns/turn_000001/webpage_cache/page-visit_loq/extracted.json"]
    assert data["seconds"] > 0
    before = tree(layout.root)
    assert run(layout.root, "validate", "3").returncode == 0
    again = run(layout.root, "gather", "3")
    assert again.returncode == 2
    assert "§2 of turn 3 is committed" in again.stderr
    assert tree(layout.root) == before
