"""`panda gather`: phase 2 by itself."""

from pathlib import Path

import pytest

from tests.api import LAPTOPS, PRICE_QUESTION, Panda, ScriptedPanda, tree
from tests.script import PRICE_NODE, Script


@pytest.mark.parametrize("until", ["plan", "draft"])
def test_looking_commits_nothing(ann: ScriptedPanda, until: str) -> None:
    """--plan and --draft leave the turn before phase 2, and a later run commits what was drafted."""
    look = ann.json("gather", "--query", PRICE_QUESTION, f"--{until}")
    assert look["plan"]["webpage_cache_needed"] == ["visit_loq"]
    newest = ann.json("list")["turns"][-1]
    assert (newest["turn"], newest["status"]) == (3, "interrupted")
    context = ann.turn_file(3, "context.md").read_text(encoding="utf-8")
    assert ("\n## 1. " in context, "\n## 2. " in context) == (True, False)
    assert not ann.turn_file(3, "gathered_context.json").exists()
    done = ann.json("gather", "3")
    assert look["section"] == (done["section"] if until == "draft" else None)
    assert done["status"] == "gathered"


def test_gathered_turn_goes_on(ann: ScriptedPanda) -> None:
    """A gathered turn has §2 and its figures, is valid, is not gathered twice, and can be resumed."""
    assert ann("gather", "--query", PRICE_QUESTION).code == 0
    gathered = ann.json("show", "3", "--file", "gathered_context.json")["text"]
    assert PRICE_NODE in gathered
    resumed = ann.resume(3)
    metrics = resumed.file("metrics.json")["context"]
    assert (metrics["coverage"]["visit"], metrics["constraints_missing"]) == (1, True)
    assert resumed.status == "approved"
    assert ann.problems() == []


def test_planned_document_that_is_gone(ann: ScriptedPanda) -> None:
    """
    A document that a plan names and somebody removed since halts the turn; context.md stays byte for byte.
    """
    ann.server.script = Script(retrieval={"relevant": ["turn:2"]})
    assert ann("gather", "--query", "What do I drink?", "--plan").code == 0
    before = ann.turn_file(3, "context.md").read_bytes()
    ann.turn_file(2, "").rename(ann.home / "away")
    halted = ann("gather", "3", "--json")
    assert halted.code == 20
    assert ann.turn_file(3, "context.md").read_bytes() == before
    (intervention,) = ann.json("intervention", "list")["interventions"]
    assert (intervention["turn"], intervention["phase"], intervention["type"]) == (3, 2, "memory_error")
    assert "turn_000002" in intervention["where"]
    assert "retrieval_plan.json" in intervention["what_to_do"]


def test_without_a_language_model(tmp_path: Path) -> None:
    """The default gathers a query, prints §2, validates it by number, and refuses to gather it again."""
    panda = Panda(tmp_path, LAPTOPS, user="ann")
    data = panda.json("gather", "--query", "what were the specs on that Lenovo?")
    assert (data["status"], data["verdict"]) == ("gathered", "pass")
    assert "Lenovo LOQ 15: gpu RTX 4050 [1]" in data["section"]
    visits = next(section for section in data["sections"] if section["title"] == "Visit Data")
    assert visits["node_ids"] == [PRICE_NODE]
    assert visits["provenance"] == ["turns/turn_000001/webpage_cache/page-visit_loq/extracted.json"]
    assert data["seconds"] > 0
    before = tree(panda.store / "users")
    assert panda("validate", "3").code == 0
    again = panda("gather", "3")
    assert (again.code, "§2 of turn 3 is committed" in again.err) == (2, True)
    assert tree(panda.store / "users") == before
