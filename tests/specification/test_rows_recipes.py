"""Rows of the specification about recipes, the log and the index: each test runs the tool."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from tests.api import ROOT, Panda


@pytest.fixture
def laptops(tmp_path: Path, demo: Path) -> Panda:
    """The demo store: turn 811 is about laptops, with research on them."""
    return Panda(tmp_path / "project", demo, user="demo")


def test_s1_3_3_index_entries_have_intent_and_research(laptops: Panda) -> None:
    """The entry of a turn says its intent and research as columns, in a store of an older version too."""
    assert laptops("index", "search", "laptop").code == 0
    with closing(sqlite3.connect(laptops.store / "indexes" / "turn_index.db")) as index:
        index.execute("PRAGMA user_version = 11")
        index.execute("ALTER TABLE documents DROP COLUMN intent")
        index.commit()
    results = laptops.json("index", "search", "laptop")["results"]
    turns = {row["turn"]: (row["intent"], row["has_research"], row["research_topic"]) for row in results}
    assert turns[811] == ("commerce", True, "commerce.laptop")
    assert turns[807] == ("preference", False, None)
    with closing(sqlite3.connect(laptops.store / "indexes" / "turn_index.db")) as index:
        columns = "SELECT intent, has_research, research_topic FROM documents WHERE node_id = 'turn:811'"
        assert index.execute(columns).fetchall() == [("commerce", 1, "commerce.laptop")]


def test_s1_3_one_derived_database_whose_tables_are_documented(laptops: Panda) -> None:
    """docs/index.md names every table of the database that stands for both of S1's indexes."""
    assert laptops("index", "rebuild").code == 0
    with closing(sqlite3.connect(laptops.store / "indexes" / "turn_index.db")) as index:
        tables = {name for (name,) in index.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    text = (ROOT / "docs" / "index.md").read_text(encoding="utf-8")
    assert "research_index.db" in text
    assert not [name for name in tables if f"| `{name}` |" not in text]


def test_s1_9_corrupt_research_halts_with_its_file(laptops: Panda) -> None:
    """Research that does not read is named with file, line and fault, and not as missing."""
    laptops.turn_file(811, "research.json").write_text('{"topic": ', encoding="utf-8")
    ended = laptops.turn("which laptops did you find?")
    assert ended.code == 20, ended.out
    assert ended.error["where"].endswith("turn_000811/research.json:1")
    assert "not valid JSON" in ended.error["message"]


def test_s3_5_1_every_prompt_has_purpose_and_risk(laptops: Panda) -> None:
    """Every recipe in force has both, and a registry with gaps is refused with file, key and fix."""
    recipes = laptops.json("recipe", "list")["recipes"]
    assert [row["recipe"] for row in recipes if not (row["purpose"] and row["risk"])] == []
    text = (ROOT / "recipes" / "registry.yaml").read_text(encoding="utf-8")
    entry = "  purpose: a shorter wording of a passage from any other text\n  risk: medium\n"
    assert entry in text
    path = laptops.write("recipes/registry.yaml", text.replace(entry, "  purpose: words\n"))
    (fault,) = laptops("validate", "recipes", "--json").data["problems"]
    assert (fault["path"], fault["key"]) == (str(path), "compress_generic.risk")
    path.write_text(text, encoding="utf-8")
    own = laptops.write("recipes/pipeline/own.yaml", (ROOT / "recipes/eyes/describe_image.yaml").read_text())
    problems = laptops("validate", "recipes", "--json").data["problems"]
    told = [row for row in problems if row["path"] == str(own) and "no purpose" in row["message"]]
    assert [str(path) in row["fix"] for row in told] == [True]


@pytest.mark.asks_for("www.bestbuy.com")
def test_s3_5_3_routed_by_phase_and_intent(laptops: Panda) -> None:
    """A query that wants to go to a page is planned by the planner of that intent, another is not."""
    assert laptops.turn("open the page of the Lenovo LOQ 15").code == 0
    assert laptops.turn("How much is the Lenovo LOQ 15?").code == 0
    assert recipes_of(laptops, "3") == ["planner_navigation", "planner_chat"]
    text = (ROOT / "recipes" / "registry.yaml").read_text(encoding="utf-8")
    laptops.write("recipes/registry.yaml", text.replace("    navigation: ", "    navigaton: "))
    (fault,) = laptops("validate", "recipes", "--json").data["problems"]
    assert fault["key"] == "phase3_planner.recipes.navigaton"
    assert "navigation" in fault["fix"]


def recipes_of(panda: Panda, phase: str) -> list[str]:
    """Names of the recipes that ran in a phase, in the order of the log."""
    lines = panda.json("log", "-n", "0")["lines"]
    return [line["recipe"] for line in lines if str(line["phase"]) == phase]
