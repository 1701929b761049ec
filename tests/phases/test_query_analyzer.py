"""Phase 0: the analysis of a query."""

import json
from pathlib import Path

import msgspec
import pytest

from panda.language.reading import Reading
from tests.builders import NOW, file_of
from tests.script import APPROVED, Script, pick
from tests.scripted_turns import USER, Preferring, add_research, laptop_store, run_turn
from tests.stores import write_visit


def summarise_as_research(root: Path) -> None:
    """Let the index summary of turn 1 name its research."""
    path = root / f"users/{USER}/turns/turn_000001/index_summary.json"
    value = json.loads(path.read_text())
    path.write_text(json.dumps({**value, "has_research": True, "research_topic": "commerce.laptop"}))


def test_query_is_kept_as_it_is(tmp_path: Path) -> None:
    """§0 holds the query letter by letter, and its analysis in _meta."""
    ran = run_turn(laptop_store(tmp_path), "  How much\r\nis it, *really*?\n\n")
    assert ran.body(0) == "  How much\r\nis it, *really*?\n\n"
    assert ran.meta(0)["query_type"] == "informational"
    assert file_of(ran.folder, "query_analysis.json")["original_query"] == ran.body(0)
    assert ran.problems == []


def test_reading_is_kept(tmp_path: Path) -> None:
    """What the query means is written once and read by later phases; what is empty is left out."""
    ran = run_turn(laptop_store(tmp_path), "Which laptops did I save last week?")
    reading = file_of(ran.folder, "query_analysis.json")["reading"]
    assert (reading["mood"], reading["all"]) == ("asks", True)
    assert [one["words"] for one in reading["periods"]] == ["last week"]
    assert "statements" not in reading
    assert ran.turn.reading == msgspec.convert(reading, Reading)
    assert ran.problems == []


def test_no_reference(tmp_path: Path) -> None:
    """A query that names its thing needs no reference resolved."""
    ran = run_turn(laptop_store(tmp_path))
    analysis = file_of(ran.folder, "query_analysis.json")
    assert analysis["reference_resolution"]["status"] == "not_needed"
    assert analysis["entities"] == ["Lenovo", "LOQ"]


def test_reference_is_resolved(tmp_path: Path) -> None:
    """A word such as "it" is resolved to a page that the session's turns have visited."""
    layout = laptop_store(tmp_path)
    write_visit(layout, 1, "visit_tuf", {"title": "ASUS TUF A15", "price": "$749"}, quality=0.9, user=USER)
    add_research(layout, "visit_loq", "visit_tuf")
    summarise_as_research(tmp_path)
    analyzer = {
        **APPROVED["analyzer"],
        "content_reference": "visit:visit_loq",
        "resolved_query": "How heavy is the Lenovo LOQ 15?",
    }
    ran = run_turn(layout, "How heavy is it?", Script(analyzer=analyzer, retrieval={"relevant": []}))
    analysis = file_of(ran.folder, "query_analysis.json")
    assert analysis["resolved_query"] == "How heavy is the Lenovo LOQ 15?"
    assert analysis["reference_resolution"] == {
        "status": "resolved",
        "original_references": ["it"],
        "resolved_to": "Lenovo LOQ 15",
    }
    assert file_of(ran.folder, "retrieval_plan.json")["webpage_cache_needed"] == ["visit_loq"]
    assert ran.problems == []


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
def test_relative_clauses_refer_to_nothing_earlier(tmp_path: Path, query: str, words: list[str]) -> None:
    """ "that" behind a thing only tells which one is meant, unless the next word was said lately."""
    ran = run_turn(laptop_store(tmp_path), query, Script(answer={"items": []}))
    resolution = file_of(ran.folder, "query_analysis.json")["reference_resolution"]
    assert resolution["original_references"] == words


def test_a_word_is_known_whatever_its_capitals(tmp_path: Path) -> None:
    """What was said with a capital is what a query points at in small letters."""
    layout = laptop_store(tmp_path)
    run_turn(layout, "Kettles from Alessi whistle.", Preferring("PROCEED"), writes=False, scores=True)
    ran = run_turn(layout, "Do you think that kettle is loud?", Script(answer={"items": []}))
    resolution = file_of(ran.folder, "query_analysis.json")["reference_resolution"]
    assert resolution["original_references"] == ["that kettle"]


def test_reference_by_score(tmp_path: Path) -> None:
    """A model that only scores resolves a reference too, and keeps the query's own words."""
    layout = laptop_store(tmp_path)
    add_research(layout, "visit_loq")
    summarise_as_research(tmp_path)
    model = Preferring("PROCEED", "Lenovo LOQ 15", "query", "informational", "question")
    ran = run_turn(layout, "How heavy is it?", model, writes=False, scores=True)
    analysis = file_of(ran.folder, "query_analysis.json")
    assert analysis["content_reference"]["node_id"] == "visit:visit_loq"
    assert analysis["resolved_query"] == "How heavy is it?"


def test_reference_to_nothing(tmp_path: Path) -> None:
    """A reference in a session that has visited nothing stays unresolved, and the turn goes on."""
    script = Script(answer={"items": []})
    ran = run_turn(laptop_store(tmp_path), "How heavy is it?", script, session="other")
    resolution = file_of(ran.folder, "query_analysis.json")["reference_resolution"]
    assert resolution == {"status": "failed", "original_references": ["it"], "resolved_to": None}
    assert ran.metadata.status == "approved"


def test_reference_that_was_not_offered(tmp_path: Path) -> None:
    """A model cannot refer to a page that was not offered: the reply is asked for again."""
    layout = laptop_store(tmp_path)
    add_research(layout, "visit_loq")
    summarise_as_research(tmp_path)
    invented = {**APPROVED["analyzer"], "content_reference": "visit:made_up"}
    right = {**APPROVED["analyzer"], "content_reference": "visit:visit_loq"}
    ran = run_turn(layout, "How heavy is it?", Script(analyzer=[invented, right]))
    first, second = ran.asked("analyzer")
    assert "refused" not in first.text
    assert "made_up" in second.text.partition("Your last reply was refused")[2]
    assert file_of(ran.folder, "query_analysis.json")["content_reference"]["title"] == "Lenovo LOQ 15"


def test_earlier_turns_of_the_session(tmp_path: Path) -> None:
    """The analyser sees what the session's last turns were about, and nothing of other sessions."""
    ran = run_turn(laptop_store(tmp_path), answer=Script(retrieval={"relevant": pick("nothing")}))
    (asked,) = ran.asked("analyzer")
    assert "Turn 1: Compared laptops for games" in asked.text
    assert "tea" not in asked.text
    assert ran.folder.read_context().front.created_at == NOW
