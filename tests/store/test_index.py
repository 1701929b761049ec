"""The index against the files that it is derived from, as searches see it."""

import shutil
from pathlib import Path

import pytest

from tests.api import Panda
from tests.store_files import write_note, write_research, write_turn, write_visit


@pytest.fixture
def panda(tmp_path: Path) -> Panda:
    """A project whose store has a user without turns."""
    panda = Panda(tmp_path / "project", user="ann")
    panda.user_directory.mkdir(parents=True)
    return panda


def search(panda: Panda, query: str) -> list[str]:
    """Return the ids of what a search finds, best first."""
    ended = panda("index", "search", "--json", "--", query)
    assert ended.code == 0, ended.err
    return [result["node_id"] for result in ended.data["results"]]


def test_added_changed_and_removed_turns(panda: Panda) -> None:
    """Each search sees the turn directories as they are."""
    path = write_turn(panda.user_directory, 1, query="hamsters", response="are small")
    write_turn(panda.user_directory, 2, query="laptops", response="are flat")
    assert search(panda, "hamster") == ["turn:1", "turn:2"]  # turn 2 through its neighbour
    write_turn(panda.user_directory, 1, query="guinea pigs", response="are bigger")
    assert search(panda, "hamster") == []
    shutil.rmtree(path)
    assert search(panda, "guinea") == []
    assert search(panda, "laptop") == ["turn:2"]


def test_every_kind_of_source_is_found(panda: Panda) -> None:
    """Memory keys, research, visits and notes are searchable beside turns."""
    user = panda.user_directory
    write_visit(user, 1, "visit_a", {"title": "LOQ 15", "specs": {"gpu": "RTX 4050"}}, quality=0.9)
    write_research(user, 1, topic="pets.hamster", summary="cages", claims=[{"claim": "wheels matter"}])
    (user / "preferences.md").write_text("---\nfavorite_rodent: Syrian\n---\n", encoding="utf-8")
    (user / "facts.md").write_text("---\nowns_macbook_pro: true\n---\n", encoding="utf-8")
    write_note(user, "Research/troll_farms.md", "# Olgino\nInfluence.")
    assert search(panda, "4050") == ["visit:visit_a"]
    assert search(panda, "wheel") == ["research:pets.hamster"]
    assert search(panda, "syrian") == ["memory:favorite_rodent"]
    assert search(panda, "macbook") == ["fact:owns_macbook_pro"]
    assert search(panda, "influence") == ["knowledge:Research/troll_farms.md"]


def test_unsaved_turns_are_not_indexed(panda: Panda) -> None:
    """Running and halted turns give no rows and no problem."""
    running = write_turn(panda.user_directory, 1, query="apple", response="", status="running")
    (running / "context.md").unlink()
    write_turn(panda.user_directory, 2, query="apple", response="", status="halted")
    panda.turn_file(3, "").mkdir()
    assert panda("index", "rebuild").code == 0
    assert search(panda, "apple") == []


@pytest.mark.parametrize("word", ['"', "a AND", "NEAR(", "col:x", "*", "-", "\x00", "'; DROP TABLE"])
def test_no_word_is_a_syntax_error(panda: Panda, word: str) -> None:
    """Whatever stands in a query is searched for as text."""
    write_turn(panda.user_directory, 1, query="apple", response="x")
    assert isinstance(search(panda, word), list)
    assert search(panda, "apple") == ["turn:1"]


def test_a_store_that_is_marked_read_only_stays_clean(panda: Panda) -> None:
    """All is found, and no index is written."""
    write_turn(panda.user_directory, 1, query="apple", response="x")
    panda.write("store/.read-only", "")
    assert search(panda, "apple") == ["turn:1"]
    assert not (panda.store / "indexes").exists()


def test_nothing_unchanged_is_taken_in_again(panda: Panda) -> None:
    """A rebuild of unchanged turns updates nothing."""
    for number in range(1, 11):
        write_turn(panda.user_directory, number, query=f"apple {number}", response="pear")
    assert panda("index", "rebuild").err.startswith("10 indexed, 0 gone")
    assert panda("index", "rebuild").err.startswith("0 indexed, 0 gone")
