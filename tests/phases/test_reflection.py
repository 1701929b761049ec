"""Phase 1: go on, or ask back."""

from pathlib import Path

import pytest

from tests.builders import build_store, file_of
from tests.phases.test_query_analyzer import summarise_as_research
from tests.scripted_turns import Preferring, add_research, laptop_store, run_turn


def test_clarify_ends_the_turn(tmp_path: Path) -> None:
    """A query that is surely unclear ends the turn with a question; nothing is gathered."""
    ran = run_turn(laptop_store(tmp_path), "Do the thing.", Preferring("CLARIFY"), writes=False, scores=True)
    assert ran.metadata.status == "clarify"
    assert ran.metadata.question == (
        "What do you mean by “Do the thing.”? Please name the thing that it is about."
    )
    assert ran.metadata.route == (0, 1, 7)
    assert ran.sections() == [0, 1]
    assert file_of(ran.folder, "reflection.json")["decision"] == "CLARIFY"
    assert ran.response == f"{ran.metadata.question}\n"
    assert ran.problems == []


def test_long_query_is_quoted_in_part(tmp_path: Path) -> None:
    """The question quotes no more than the beginning of a long query, on one line."""
    query = "Do the thing.\n" * 30
    ran = run_turn(laptop_store(tmp_path), query, Preferring("CLARIFY"), writes=False, scores=True)
    assert ran.metadata.status == "clarify"
    assert str(ran.metadata.question).startswith("What do you mean by “Do the thing. Do the thing.")
    assert len(str(ran.metadata.question)) < 160


@pytest.mark.asks_for("shop.example")
def test_clear_query_proceeds(tmp_path: Path) -> None:
    """A clear query goes on to be gathered for."""
    ran = run_turn(laptop_store(tmp_path), answer=Preferring("PROCEED"), writes=False, scores=True)
    assert ran.meta(1)["decision"] == "PROCEED"
    assert 2 in ran.metadata.route


def test_a_writer_is_told_what_is_close(tmp_path: Path) -> None:
    """Whoever writes decides beside the lines of the store that are closest, or that there are none."""
    layout = laptop_store(tmp_path)
    asked = run_turn(layout, "How much is the Lenovo LOQ 15?").asked("reflection")[0].text
    assert "The Lenovo LOQ 15 was the best laptop." in asked
    bare = build_store(tmp_path / "bare")
    assert "Nothing was found." in run_turn(bare, "How much is it?").asked("reflection")[0].text


def test_names_nothing_without_an_encoder(tmp_path: Path) -> None:
    """Where no head can tell, only a query without a telling word is asked back, none that names a thing."""
    asked = run_turn(laptop_store(tmp_path), "Which one?", Preferring(), writes=False, scores=True)
    assert asked.metadata.status == "clarify"
    named = run_turn(laptop_store(tmp_path / "b"), "Which tea?", Preferring(), writes=False, scores=True)
    assert named.meta(1)["decision"] == "PROCEED"


def test_resolved_reference_is_clear(tmp_path: Path) -> None:
    """What looks unclear is clear if the session says what it refers to."""
    layout = laptop_store(tmp_path)
    add_research(layout, "visit_loq")
    summarise_as_research(tmp_path)
    model = Preferring("CLARIFY", "Lenovo LOQ 15")
    ran = run_turn(layout, "More of it.", model, writes=False, scores=True)
    assert ran.meta(1)["decision"] == "PROCEED"
    assert "What the query refers to is known from the session." in ran.body(1)
    assert ran.metadata.status != "clarify"
