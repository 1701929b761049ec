"""Candidates for the context gatherer."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from panda.index.index import Index
from panda.retrieval.candidates import Retriever
from panda.store.layout import Layout
from tests.stores import NOW, write_research, write_turn, write_visit


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    return Layout(tmp_path)


@pytest.fixture
def retriever(layout: Layout) -> Iterator[Retriever]:
    index = Index(layout)
    yield Retriever(index, "ann")
    index.close()


def test_kinds_are_merged_by_score(layout: Layout, retriever: Retriever) -> None:
    """Turns, research, visits and all memory keys come as one ranked list with what they say."""
    write_turn(
        layout,
        811,
        query="Which laptop has an RTX 4050?",
        response="The LOQ 15.",
        summary="Compared RTX 4050 laptops under $1000",
    )
    write_turn(layout, 805, query="Tell me of troll farms", response="They exist.", session="s2")
    write_visit(layout, 811, "visit_a", {"title": "Lenovo LOQ 15", "specs": {"gpu": "RTX 4050"}}, quality=0.9)
    write_research(layout, 811, {"topic": "commerce.laptop", "summary": "12 laptops", "claims": []})
    layout.of("ann").preferences.write_text("---\nbudget: $500-800\n---\n", encoding="utf-8")
    found = retriever.find("laptop with RTX 4050", before_turn=None)
    assert {one.node_id for one in found} == {
        "turn:811",
        "visit:visit_a",
        "research:commerce.laptop",
        "memory:budget",
    }
    assert found[-1].node_id == "memory:budget"
    assert found[-1].score == 0
    texts = {one.node_id: one.text for one in found}
    assert texts["turn:811"] == "Which laptop has an RTX 4050? The LOQ 15."
    assert texts["memory:budget"] == "budget: $500-800"
    assert [one.score for one in found] == sorted((one.score for one in found), reverse=True)


def test_limit_and_must_include(layout: Layout, retriever: Retriever) -> None:
    """No more than the limit come, and what must be included comes even without a shared word."""
    for number in range(1, 41):
        write_turn(layout, number, query=f"apple {number}", response="x", session=f"s{number}")
    write_turn(layout, 50, query="pear", response="y", session="other")
    found = retriever.find("apple", limit=10, must_include=["turn:50", "turn:999"], before_turn=None)
    assert len(found) == 10
    assert "turn:50" in {one.node_id for one in found}


def test_turns_push_out_no_page(layout: Layout, retriever: Retriever) -> None:
    """However often a question was asked, the page that answers it stays a candidate."""
    write_visit(layout, 1, "visit_a", {"title": "Ferry to Porto", "specs": {"pier": "7"}}, quality=0.9)
    for number in range(2, 52):
        write_turn(layout, number, query="Which pier has the ferry to Porto?", response="The ferry: pier 7.")
    found = [one.node_id for one in retriever.find("Which pier has the ferry to Porto?", before_turn=None)]
    assert (len(found), "visit:visit_a" in found) == (30, True)


def test_later_turns_are_no_candidates(layout: Layout, retriever: Retriever) -> None:
    """Only turns before the given number are offered."""
    for number in (1, 2, 3):
        write_turn(layout, number, query="apple", response="x")
    assert {one.node_id for one in retriever.find("apple", before_turn=3)} == {"turn:1", "turn:2"}


def test_many_keys_leave_room_for_turns(layout: Layout, retriever: Retriever) -> None:
    """Keys without a shared word take a third of the places while turns want them."""
    for number in range(1, 21):
        write_turn(layout, number, query="apple", response="x")
    keys = "".join(f"key_{n}: value\n" for n in range(40))
    layout.of("ann").preferences.write_text(f"---\n{keys}---\n", encoding="utf-8")
    found = [one.node_id for one in retriever.find("apple", limit=30, before_turn=None)]
    assert len(found) == 30
    assert sum(node_id.startswith("turn:") for node_id in found) == 20


def test_named_date_lifts_a_turn(layout: Layout, retriever: Retriever) -> None:
    """Of equal turns the one on the named day comes first."""
    for number in (1, 2, 3):
        at = datetime(2026, 1, 1, tzinfo=UTC) + timedelta(days=number)
        write_turn(layout, number, query="we met", response="yes", at=at, session=f"s{number}")
    assert retriever.find("who met on 3 January 2026", before_turn=None)[0].node_id == "turn:2"


def test_newest_research_of_a_topic(layout: Layout, retriever: Retriever) -> None:
    """Two research files of one topic are one candidate."""
    for number, year in ((1, 2025), (2, 2024)):
        write_research(
            layout,
            number,
            {"topic": "pets", "summary": f"hamster {year}", "created_at": f"{year}-01-01T00:00:00Z"},
        )
    found = retriever.find("hamster", before_turn=None)
    assert [(one.node_id, one.text) for one in found] == [("research:pets", "hamster 2025:")]


def test_unreadable_files_are_told(layout: Layout, retriever: Retriever) -> None:
    """Problems of the index are kept for the caller."""
    paths = write_turn(layout, 1, query="apple", response="x", at=NOW)
    (paths / "context.md").write_text("no front matter", encoding="utf-8")
    assert retriever.find("apple", before_turn=None) == []
    assert "context.md" in retriever.problems[0].path
