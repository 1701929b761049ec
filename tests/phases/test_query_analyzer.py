"""Phase 0: the analysis of a query."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.api import LAPTOPS, Panda, ScriptedPanda, Turn
from tests.script import APPROVED, Script
from tests.store_files import write_json, write_research, write_visit

IN_SESSION = ("--session", "default")


def add_research(panda: Panda, *visits: str) -> None:
    """Give turn 1 research that links these visits, as its summary for the index tells."""
    write_research(panda.user_directory, 1, webpage_cache=list(visits))
    path = panda.turn_file(1, "index_summary.json")
    summary = json.loads(path.read_text(encoding="utf-8"))
    write_json(path, {**summary, "has_research": True, "research_topic": "commerce.laptop"})


def analysis(turn: Turn) -> dict[str, Any]:
    """query_analysis.json."""
    value: dict[str, Any] = turn.file("query_analysis.json")
    return value


def test_query_is_kept_as_it_is(ann: ScriptedPanda) -> None:
    """§0 holds the query letter by letter, and its analysis in _meta."""
    query = "  How much\r\nis it, *really*?\n\n"
    turn = ann.turn(query)
    document = (turn.directory / "context.md").read_bytes().decode()
    assert f"\n{query}" in document
    assert turn.meta(0)["query_type"] == "informational"
    assert analysis(turn)["original_query"] == query
    assert ann.problems() == []


def test_reading_is_kept(ann: ScriptedPanda) -> None:
    """What the query means is written once for later phases; what is empty is left out."""
    reading = analysis(ann.turn("Which laptops did I save last week?"))["reading"]
    assert (reading["mood"], reading["all"]) == ("asks", True)
    assert [period["words"] for period in reading["periods"]] == ["last week"]
    assert "statements" not in reading
    assert ann.problems() == []


def test_no_reference(ann: ScriptedPanda) -> None:
    """
    A query that names its thing needs no reference resolved. The analyser sees what the session's last turns
    were about, and nothing of other sessions.
    """
    turn = ann.turn("How much is the Lenovo LOQ 15?", *IN_SESSION)
    assert analysis(turn)["reference_resolution"]["status"] == "not_needed"
    assert analysis(turn)["entities"] == ["Lenovo", "LOQ"]
    (asked,) = turn.asked("analyzer")
    assert "user: Find me a laptop for games." in asked.text
    assert "tea" not in asked.text


def test_reference_is_resolved(ann: ScriptedPanda) -> None:
    """A word such as "it" is resolved to a page that the session's turns have visited."""
    fields = {"title": "ASUS TUF A15", "price": "$749"}
    write_visit(ann.user_directory, 1, "visit_tuf", fields, quality=0.9)
    add_research(ann, "visit_loq", "visit_tuf")
    analyzer = {
        **APPROVED["analyzer"],
        "content_reference": "visit:visit_loq",
        "resolved_query": "How heavy is the Lenovo LOQ 15?",
    }
    script = Script(analyzer=analyzer, retrieval={"relevant": []})
    turn = ann.turn("How heavy is it?", *IN_SESSION, script=script)
    assert analysis(turn)["resolved_query"] == "How heavy is the Lenovo LOQ 15?"
    assert analysis(turn)["reference_resolution"] == {
        "status": "resolved",
        "original_references": ["it"],
        "resolved_to": "Lenovo LOQ 15",
    }
    assert turn.file("retrieval_plan.json")["webpage_cache_needed"] == ["visit_loq"]
    assert ann.problems() == []


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("Which is the best laptop that money can buy?", []),
        ("Which tea did the shop that Tom told me of sell?", []),
        ("How heavy is that thing?", ["that thing"]),
        ("What about that kettle?", []),
        ("Compare that laptop with others.", ["that laptop"]),
        ("Compare that Laptop with others.", ["that Laptop"]),
        ("That laptop: how heavy is it?", ["That laptop"]),
    ],
)
def test_relative_clauses_refer_to_nothing_earlier(ann: ScriptedPanda, query: str, words: list[str]) -> None:
    """ "that" behind a thing only tells which one is meant, unless the next word was said lately."""
    turn = ann.turn(query, *IN_SESSION, script=Script(answer={"items": []}))
    assert analysis(turn)["reference_resolution"]["original_references"] == words


def test_a_word_is_known_whatever_its_capitals(ann: ScriptedPanda) -> None:
    """What was said with a capital is what a query points at in small letters."""
    ann.say("Kettles from Alessi whistle.", answer={"items": []})
    turn = ann.say("Do you think that kettle is loud?", answer={"items": []})
    assert analysis(turn)["reference_resolution"]["original_references"] == ["that kettle"]


def test_reference_without_a_language_model(tmp_path: Path) -> None:
    """The models that come with panda resolve a reference too, and keep the query's own words."""
    panda = Panda(tmp_path / "project", LAPTOPS, user="ann")
    add_research(panda, "visit_loq")
    turn = panda.turn("How heavy is it?", *IN_SESSION)
    assert analysis(turn)["content_reference"]["node_id"] == "visit:visit_loq"
    assert analysis(turn)["resolved_query"] == "How heavy is it?"
    assert turn.response.startswith("Lenovo LOQ 15: weight 2.4 kg [1]")


def test_reference_to_nothing(ann: ScriptedPanda) -> None:
    """A reference in a session that has visited nothing stays unresolved, and the turn goes on."""
    turn = ann.turn("How heavy is it?", script=Script(answer={"items": []}))
    resolution = {"status": "failed", "original_references": ["it"], "resolved_to": None}
    assert analysis(turn)["reference_resolution"] == resolution
    assert turn.status == "approved"


def test_reference_that_was_not_offered(ann: ScriptedPanda) -> None:
    """A model cannot refer to a page that was not offered: the reply is asked for again."""
    add_research(ann, "visit_loq")
    invented = {**APPROVED["analyzer"], "content_reference": "visit:made_up"}
    right = {**APPROVED["analyzer"], "content_reference": "visit:visit_loq"}
    turn = ann.turn("How heavy is it?", *IN_SESSION, script=Script(analyzer=[invented, right]))
    first, second = turn.asked("analyzer")
    assert "refused" not in first.text
    assert "made_up" in second.text.partition("Your last reply was refused")[2]
    assert analysis(turn)["content_reference"]["title"] == "Lenovo LOQ 15"
