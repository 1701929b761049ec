"""Marks such as [2] that a note has of its own are no marks of an answer that quotes it."""

import re
from pathlib import Path

import pytest

from tests.api import Panda, on_terminal

TOWER = "The tower is 330 m tall.[1][2] It was built in 1889 [1] by Eiffel [2, 3]."
ESCAPED = r"The tower is 330 m tall.\[1\]\[2\] It was built in 1889 \[1\] by Eiffel \[2, 3\]."


@pytest.fixture
def panda(tmp_path: Path) -> Panda:
    """A project with a note that has marks of its own."""
    project = Panda(tmp_path / "home")
    assert project("init").code == 0
    project.write("store/users/default/knowledge/tower.md", f"# Tower\n\n{TOWER}\n")
    return project


def test_the_only_mark_of_an_answer_is_its_own(panda: Panda) -> None:
    """A mark in a quote is escaped; the source keeps the line as it stands in the note."""
    ended = panda.turn("How tall is the tower?")
    answer = ended.data["response"].partition("\n\nSources:")[0]
    assert answer == f"{ESCAPED} [1]"
    assert re.findall(r"\[[\d, ]+\]", answer) == ["[1]"]
    assert [source["quote"] for source in ended.data["sources"]] == [TOWER]
    assert panda("validate", "1", "--strict").code == 0


def test_a_terminal_tells_quoted_marks_from_the_own_one(panda: Panda) -> None:
    """The answer is rendered, and the marks of the note stay escaped in it."""
    panda.turn("How tall is the tower?")
    terminal_text = " ".join(on_terminal(panda, "show", "1").split())
    assert f"{ESCAPED} [1]" in terminal_text


def test_a_page_links_the_own_mark_alone(panda: Panda, tmp_path: Path) -> None:
    """On the page of a turn the marks of a note are text, and that of the answer leads to the evidence."""
    panda.turn("How tall is the tower?")
    panda("view", "1", "--out", str(tmp_path / "pages"))
    page = (tmp_path / "pages" / "turns" / "default" / "1.html").read_text(encoding="utf-8")
    answer = page.partition('class="prose"')[2].partition("</div>")[0]
    assert f"{TOWER} <a " in answer
    assert answer.count("<a ") == 1


def test_a_turn_that_is_named_shows_the_same_quote(panda: Panda) -> None:
    """The quote is escaped once, however often it is told again."""
    panda.turn("How tall is the tower?")
    ended = panda.turn("What did turn 1 say?", "--session", "t000001")
    assert f"{ESCAPED} [1]" in ended.data["response"]


def test_marks_in_cells_and_code(panda: Panda) -> None:
    """A cell of a table is escaped like a sentence; what stands in backticks is not."""
    table = "# Shelf\n\n| Book | Place |\n|---|---|\n| Emma [2] | top |\n| Ulysses | bottom |\n"
    panda.write("store/users/default/knowledge/shelf.md", table)
    panda.write("store/users/default/knowledge/code.md", "The third lamp is `lamps[2]` in the program.\n")
    assert r"Emma \[2\]" in panda.turn("List all the books on the shelf.").data["response"]
    assert "`lamps[2]`" in panda.turn("What is the third lamp in the program?").data["response"]
