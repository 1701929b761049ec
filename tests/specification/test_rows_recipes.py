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
