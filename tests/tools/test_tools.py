"""The tools, run on a small store."""

from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from panda.index.index import Index
from panda.memory.reader import NodeReader
from panda.retrieval.candidates import Retriever
from panda.store.layout import Layout, UserStore
from panda.store.records import check_json
from panda.tools.contract import ToolContext
from panda.tools.table import TOOLS, run_tool
from tests.stores import NOW, write_turn, write_visit

Context = Callable[[str], ToolContext]


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    return Layout(tmp_path)


@pytest.fixture
def context(layout: Layout) -> Iterator[Context]:
    index = Index(layout)

    def make(query: str) -> ToolContext:
        reader = NodeReader(UserStore(layout.root, "ann", lambda: NOW))
        store = UserStore(layout.root, "ann", lambda: NOW)
        return ToolContext(store, 900, query, reader, Retriever(index, "ann"))

    yield make
    index.close()


def test_memory_query_finds_visits_and_preferences(layout: Layout, context: Context) -> None:
    """Matches carry node, file and confidence; expired lines and turns are left out."""
    write_turn(layout, 811, query="hamster cages?", response="Yes.")
    write_visit(
        layout,
        811,
        "visit_a",
        {"title": "Hamster cage XL", "price": "$40.00", "specs": {"bars": "steel"}},
        quality=0.9,
        at=NOW - timedelta(days=40),
    )
    layout.of("ann").preferences.write_text(
        "---\nfavorite_hamster: Syrian\nbudget: $9\n---\n", encoding="utf-8"
    )
    result = run_tool("memory.query", {"query": "which hamster do I like?"}, context("x"))
    assert result.status == "success"
    assert {match["node_id"] for match in result.data["matches"]} == {
        "memory:favorite_hamster",
        "visit:visit_a",
    }
    texts = [claim.text for claim in result.claims]
    assert "favorite_hamster: Syrian" in texts
    assert "Hamster cage XL: bars steel" in texts
    assert not any("$40.00" in text for text in texts)
    assert all(claim.source for claim in result.claims)
    assert {(entity.ref, entity.op) for entity in result.entities} == {
        ("memory:favorite_hamster", "read"),
        ("visit:visit_a", "read"),
    }


def test_doc_search_gives_lines(layout: Layout, context: Context) -> None:
    """Passages name the file and the line on which they begin."""
    write_turn(
        layout,
        811,
        query="Tell me of hamsters.",
        response="They sleep by day.\n\nSyrian hamsters live alone.",
    )
    path = layout.of("ann").knowledge / "pets.md"
    path.parent.mkdir(parents=True)
    path.write_text("# Pets\n\nCats purr.\n\nA hamster needs a wheel.\n", encoding="utf-8")
    result = run_tool("doc.search", {"query": "syrian hamsters"}, context("x"))
    found = {passage["text"]: passage for passage in result.data["passages"]}
    first = result.data["passages"][0]
    lines = (layout.of("ann").home / first["provenance"]).read_text(encoding="utf-8").split("\n")
    assert lines[first["line"] - 1] == "Syrian hamsters live alone."
    assert (found["A hamster needs a wheel."]["line"], found["A hamster needs a wheel."]["node_id"]) == (
        5,
        "knowledge:pets.md",
    )
    assert "Cats purr." not in found


def test_doc_search_gives_no_questions_and_no_quotations(layout: Layout, context: Context) -> None:
    """An earlier question is no hit, and what an earlier answer quoted is found where it stands."""
    path = layout.of("ann").knowledge / "pets.md"
    path.parent.mkdir(parents=True)
    path.write_text("A hamster needs a wheel.\n", encoding="utf-8")
    asked = "What does a hamster need?"
    items = [("A hamster needs a wheel.", "knowledge:pets.md")]
    write_turn(layout, 1, query=asked, response="A hamster needs a wheel. [1]", items=items)
    result = run_tool("doc.search", {"query": asked}, context("x"))
    assert [one["node_id"] for one in result.data["passages"]] == ["knowledge:pets.md"]


def test_corrupt_node_is_named(layout: Layout, context: Context) -> None:
    """A file that cannot be read is told in the result, the rest is searched."""
    write_turn(layout, 1, query="hamster", response="x")
    broken = write_turn(layout, 2, query="hamster", response="x")
    (broken / "metadata.json").write_text("[", encoding="utf-8")
    result = run_tool("doc.search", {"query": "hamster"}, context("x"))
    assert [passage["node_id"] for passage in result.data["passages"]] == ["turn:1"]
    assert "turn_000002/metadata.json" in result.data["faults"][0]


def test_memory_create_stages_and_writes_nothing(layout: Layout, context: Context) -> None:
    """The result holds the staged value as its file will; no memory file appears."""
    query = "Remember that my budget is $900"
    arguments = {"kind": "preference", "relation": "budget", "value": "$900", "text": "my budget is $900"}
    result = run_tool("memory.create", arguments, context(query))
    assert result.status == "success"
    value = {"staged": [result.data["staged"]], "applied": False}
    check_json("staged_memory.json", value, "staged_memory.json")
    assert result.data["staged"]["source_turn"] == 900
    assert not layout.of("ann").home.exists()


@pytest.mark.parametrize(
    ("value", "text"),
    [("$900", "my budget is $900 or so"), ("$700", "my budget is $900"), (" ", "my budget is $900")],
)
def test_memory_create_keeps_to_the_query(context: Context, value: str, text: str) -> None:
    """What does not stand in the query is not remembered."""
    arguments = {"kind": "preference", "relation": "budget", "value": value, "text": text}
    result = run_tool("memory.create", arguments, context("my budget is $900"))
    assert (result.status, result.data) == ("error", None)


@pytest.mark.parametrize(
    ("name", "arguments", "fault"),
    [
        ("web.fly", {}, "web.fly"),
        ("memory.query", {}, "query"),
        ("memory.query", {"query": "x", "limit": 3}, "limit"),
        ("memory.query", {"query": "  "}, "query"),
        ("memory.create", {"kind": "wish", "relation": "a", "value": "b", "text": "c"}, "kind"),
        ("doc.search", {"query": 5}, "query"),
    ],
)
def test_wrong_calls_are_named(context: Context, name: str, arguments: dict[str, object], fault: str) -> None:
    """An unknown tool or a wrong argument gives an error that names it."""
    result = run_tool(name, arguments, context("x"))
    assert result.status == "error"
    assert fault in str(result.error)


def test_table_names_its_tools() -> None:
    """Each tool stands in the table under its own name."""
    assert {name: tool.name for name, tool in TOOLS.items()} == {name: name for name in TOOLS}
