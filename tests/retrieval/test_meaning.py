"""Search by meaning: what it finds, what it leaves to the words, and how its vectors are mended."""

import os
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.api import Panda
from tests.store_files import dump_database, write_note, write_turn

QUERY = "what does the notebook cost"


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with four turns, a note and the vectors of all of them."""
    panda = Panda(tmp_path_factory.mktemp("filled") / "project", user="ann")
    user = panda.user_directory
    write_turn(user, 1, query="the red tent", response="It has room for three.")
    write_turn(user, 2, query="laptop price", response="697 dollars.")
    write_turn(user, 3, query="bees in spring", response="They fly from March on.")
    write_turn(user, 4, query="ein huhn im stall", response="das huhn ist weiß")
    write_note(user, "garden.md", "# Garden\n\nThe pond is deep. The hose leaks at the tap.\n")
    assert panda("index", "rebuild").code == 0
    return panda.store


@pytest.fixture
def panda(filled: Path, tmp_path: Path) -> Panda:
    """A project with that store."""
    return Panda(tmp_path / "project", filled, user="ann")


def vectors(panda: Panda) -> Path:
    """Return the file of the vectors."""
    (path,) = (panda.store / "indexes").glob("*vector*.db")
    return path


def search(panda: Panda, query: str = QUERY, *words: str) -> dict[str, dict[str, Any]]:
    """Return why each node is found, with its score, best first."""
    results = panda.json("index", "search", "--explain", *words, query)["results"]
    return {result["node_id"]: {**result["why"], "score": result["score"]} for result in results}


def test_a_row_in_other_words_is_found(panda: Panda) -> None:
    """What shares no word with the query is found by its meaning alone."""
    results = search(panda)
    (node_id,) = results
    assert node_id == "turn:2"
    assert results[node_id]["words"] == 0
    assert results[node_id]["meaning"] == results[node_id]["score"] > 0


def test_words_and_meaning_add_up(panda: Panda) -> None:
    """Of rows with the same word of the query the one that also means the rest of it comes first."""
    for number, query in enumerate(("lie in the cellar", "have a price", "hang in the hall"), 5):
        write_turn(
            panda.user_directory, number, query=f"the ropes {query}", response="", session=f"s{number}"
        )
    assert panda("index", "rebuild").code == 0
    assert next(iter(search(panda, "what the ropes cost"))) == "turn:6"


def test_a_node_ranks_by_its_best_line(panda: Panda) -> None:
    """Many lines that mean nothing to the query do not hide the one that does."""
    text = "Nothing of interest was said. " * 8
    write_turn(panda.user_directory, 6, query=text, response=f"{text} Notebook price.")
    assert panda("index", "rebuild").code == 0
    assert search(panda, "laptop costs")["turn:6"]["cosine"] > 0.4


def test_other_languages_are_left_to_the_words(panda: Panda) -> None:
    """A query that is not English is ranked by words, and so is a row that is not."""
    german = search(panda, "ein notebook im stall")
    assert german["turn:4"]["cosine"] is None
    assert german["turn:4"]["meaning"] == 0
    assert search(panda, "笔记本电脑") == {}
    assert search(panda, "the huhn in the stall")["turn:4"]["cosine"] is None


def test_bounds_hold(panda: Panda) -> None:
    """What is near in meaning is found only within the bounds of the search."""
    assert search(panda, QUERY, "--since", "2026-02-01") == {}
    assert search(panda, QUERY, "--session", "other") == {}


def test_changed_rows_are_filled_anew_and_the_former_dropped(panda: Panda) -> None:
    """After a change a full rebuild leaves what a new one would make."""
    write_turn(panda.user_directory, 2, query="laptop prize", response="697 dollars.")
    kept = panda.json("index", "status")["vectors"]["kept"]
    assert panda("index", "rebuild").code == 0
    assert panda.json("index", "status")["vectors"] == {"kept": kept + 2, "rows_missing": 0}
    assert panda("index", "rebuild", "--full").code == 0
    changed = dump_database(vectors(panda))
    vectors(panda).unlink()
    assert panda("index", "rebuild", "--full").code == 0
    assert dump_database(vectors(panda)) == changed


def test_a_turn_that_is_gone_leaves_no_vector(panda: Panda) -> None:
    """A full rebuild drops what no text holds any more."""
    before = panda.json("index", "status")["vectors"]["kept"]
    shutil.rmtree(panda.turn_file(3, ""))
    assert panda("index", "rebuild", "--full").code == 0
    after = panda.json("index", "status")["vectors"]["kept"]
    assert 0 < after < before
    vectors(panda).unlink()
    assert panda("index", "rebuild", "--full").code == 0
    assert panda.json("index", "status")["vectors"]["kept"] == after


def remove_all(path: Path) -> None:
    shutil.rmtree(path.parent)


def truncate(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2)


def overwrite(path: Path) -> None:
    path.write_bytes(b"no database " * 999)


def change_bytes(path: Path) -> None:
    data = bytearray(path.read_bytes())
    for place in range(200, len(data), 7):
        data[place] ^= 0x55
    path.write_bytes(data)


def of_another_version(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA user_version = 99")


@pytest.mark.parametrize(
    "damage", [Path.unlink, remove_all, truncate, overwrite, change_bytes, of_another_version]
)
def test_damage_changes_nothing_and_is_mended(panda: Panda, damage: Callable[[Path], None]) -> None:
    """Whatever befalls the file of the vectors, the same is found, and a rebuild makes it what it was."""
    right = search(panda)
    path = vectors(panda)
    dump = dump_database(path)
    damage(path)
    assert panda("index", "rebuild", "--full").code == 0
    assert search(panda) == right
    assert dump_database(path) == dump


def test_a_file_that_another_process_writes_is_left_alone(panda: Panda) -> None:
    """A search goes by the words meanwhile."""
    with closing(sqlite3.connect(vectors(panda), isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        assert next(iter(search(panda, "the price of the laptop"))) == "turn:2"
    assert list(search(panda)) == ["turn:2"]
