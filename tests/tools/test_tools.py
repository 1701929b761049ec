"""The tools of plans on a small store, by hand."""

from datetime import timedelta

import pytest

from tests.store_files import NOW, write_note, write_turn, write_visit
from tests.tools.tool_project import ToolProject


def test_memory_query_finds_visits_and_preferences(code: ToolProject) -> None:
    """Matches carry node, file and confidence; expired lines and turns are left out."""
    user = code.user_directory
    write_turn(user, 811, query="hamster cages?", response="Yes.")
    fields = {"title": "Hamster cage XL", "price": "$40.00", "specs": {"bars": "steel"}}
    write_visit(user, 811, "visit_a", fields, quality=0.9, at=NOW - timedelta(days=40))
    (user / "preferences.md").write_text("---\nfavorite_hamster: Syrian\nbudget: $9\n---\n")
    result = code.use("memory.query", query="which hamster do I like?")
    nodes = {"memory:favorite_hamster", "visit:visit_a"}
    assert {match["node_id"] for match in result["data"]["matches"]} == nodes
    texts = [claim["text"] for claim in result["claims"]]
    assert "favorite_hamster: Syrian" in texts
    assert "Hamster cage XL: bars steel" in texts
    assert not any("$40.00" in text for text in texts)
    assert all(claim["source"] for claim in result["claims"])
    assert {(entity["ref"], entity["op"]) for entity in result["entities"]} == {
        (node, "read") for node in nodes
    }


def test_doc_search_gives_lines(code: ToolProject) -> None:
    """Passages name the file and the line on which they begin."""
    user = code.user_directory
    response = "They sleep by day.\n\nSyrian hamsters live alone."
    write_turn(user, 811, query="Tell me of hamsters.", response=response)
    write_note(user, "pets.md", "# Pets\n\nCats purr.\n\nA hamster needs a wheel.\n")
    passages = code.use("doc.search", query="syrian hamsters")["data"]["passages"]
    lines = (user / passages[0]["provenance"]).read_text(encoding="utf-8").split("\n")
    assert lines[passages[0]["line"] - 1] == "Syrian hamsters live alone."
    places = {passage["text"]: (passage["line"], passage["node_id"]) for passage in passages}
    assert places["A hamster needs a wheel."] == (5, "knowledge:pets.md")
    assert "Cats purr." not in places


def test_doc_search_gives_no_questions_and_no_quotations(code: ToolProject) -> None:
    """An earlier question is no hit, and what an earlier answer quoted is found where it stands."""
    wheel = "A hamster needs a wheel."
    asked = "What does a hamster need?"
    write_note(code.user_directory, "pets.md", f"{wheel}\n")
    items = [(wheel, "knowledge:pets.md")]
    write_turn(code.user_directory, 4, query=asked, response=f"{wheel} [1]", items=items)
    passages = code.use("doc.search", query=asked)["data"]["passages"]
    assert [passage["node_id"] for passage in passages] == ["knowledge:pets.md"]


def test_corrupt_node_is_named(code: ToolProject) -> None:
    """A file that cannot be read is told in the result, the rest is searched."""
    for number in (4, 5):
        write_turn(code.user_directory, number, query="hamster", response="x")
    code.turn_file(5, "metadata.json").write_text("[", encoding="utf-8")
    data = code.use("doc.search", query="hamster")["data"]
    assert [passage["node_id"] for passage in data["passages"]] == ["turn:4"]
    assert "turn_000005/metadata.json" in data["faults"][0]


def test_memory_create_stages_and_writes_nothing(code: ToolProject) -> None:
    """The result holds the staged value as its file will; no memory file changes."""
    before = (code.user_directory / "preferences.md").read_bytes()
    arguments = {"kind": "preference", "relation": "budget", "value": "$900", "text": "my budget is $900"}
    staged = code.use("memory.create", "--query", "Remember that my budget is $900", **arguments)["data"][
        "staged"
    ]
    assert (staged["relation"], staged["value"]["v"], staged["source_turn"]) == ("budget", "$900", 3)
    assert (code.user_directory / "preferences.md").read_bytes() == before
    assert not (code.user_directory / "memory.jsonl").exists()


@pytest.mark.parametrize(
    ("value", "text"),
    [("$900", "my budget is $900 or so"), ("$700", "my budget is $900"), (" ", "my budget is $900")],
)
def test_memory_create_keeps_to_the_query(code: ToolProject, value: str, text: str) -> None:
    """A text or value that does not stand in the query is not remembered."""
    arguments = {"kind": "preference", "relation": "budget", "value": value, "text": text}
    result = code.use("memory.create", "--query", "my budget is $900", **arguments)
    assert (result["status"], result["data"]) == ("error", None)


@pytest.mark.parametrize(
    ("name", "arguments", "fault"),
    [
        ("web.fly", "{}", "web.fly"),
        ("memory.query", "{}", "query"),
        ("memory.query", '{"query": "x", "limit": 3}', "limit"),
        ("memory.query", '{"query": "  "}', "query"),
        ("memory.create", '{"kind": "wish", "relation": "a", "value": "b", "text": "c"}', "kind"),
        ("doc.search", '{"query": 5}', "query"),
    ],
)
def test_wrong_calls_are_named(code: ToolProject, name: str, arguments: str, fault: str) -> None:
    """An unknown tool or a wrong argument gives an error that names it."""
    ended = code("tool", "run", name, "--args", arguments, "--json")
    assert ended.code in (2, 3)
    assert fault in str(ended.error)
