"""The index against the files that it is derived from."""

import shutil
import threading
from pathlib import Path

import pytest

from panda.index.index import Index
from panda.retrieval.ranking import Bounds, rank_rows
from panda.store.layout import Layout
from tests.stores import dump_index, write_research, write_turn, write_visit


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    return Layout(tmp_path)


def found(index: Index, query: str, user: str = "ann") -> list[str]:
    index.rebuild([user])[user]
    ranked = index.read(user, lambda view: rank_rows(view, query, bounds=Bounds()))
    return [one.entry.node_id for one in ranked]


def test_added_changed_and_removed_turns(layout: Layout) -> None:
    """Each sync brings the rows in line with the turn directories."""
    index = Index(layout)
    paths = write_turn(layout, 1, query="hamsters", response="are small")
    write_turn(layout, 2, query="laptops", response="are flat")
    assert found(index, "hamster") == ["turn:1", "turn:2"]  # turn 2 through its neighbour
    write_turn(layout, 1, query="guinea pigs", response="are bigger")
    assert found(index, "hamster") == []
    shutil.rmtree(paths.directory)
    assert found(index, "guinea") == []
    assert found(index, "laptop") == ["turn:2"]
    index.close()


def test_rebuilt_index_has_the_same_rows(layout: Layout) -> None:
    """An index that grew turn by turn, out of order, equals one made from nothing."""
    index = Index(layout)
    for number in (5, 1, 3, 2):
        write_turn(
            layout, number, query=f"query {number}", response=f"answer {number}", session=f"s{number % 2}"
        )
        write_visit(layout, number, f"visit_{number}", {"title": "x", "price": f"${number}"}, quality=0.9)
        index.rebuild(["ann"])["ann"]
    shutil.rmtree(layout.of("ann").turn(3).directory)
    index.rebuild(["ann"])["ann"]
    index.close()
    grown = dump_index(layout)
    layout.turn_index.unlink()
    rebuilt = Index(layout)
    rebuilt.rebuild(["ann"])["ann"]
    rebuilt.close()
    assert grown == dump_index(layout)


def test_every_kind_of_source_is_found(layout: Layout) -> None:
    """Memory keys, research, visits and knowledge documents are searchable beside turns."""
    write_visit(layout, 1, "visit_a", {"title": "LOQ 15", "specs": {"gpu": "RTX 4050"}}, quality=0.9)
    write_research(
        layout, 1, {"topic": "pets.hamster", "summary": "cages", "claims": [{"claim": "wheels matter"}]}
    )
    layout.of("ann").preferences.write_text("---\nfavorite_rodent: Syrian\n---\n", encoding="utf-8")
    layout.of("ann").facts.write_text("---\nowns_macbook_pro: true\n---\n", encoding="utf-8")
    (layout.of("ann").knowledge / "Research").mkdir(parents=True)
    (layout.of("ann").knowledge / "Research" / "troll_farms.md").write_text(
        "# Olgino\nInfluence.", encoding="utf-8"
    )
    index = Index(layout)
    assert found(index, "4050") == ["visit:visit_a"]
    assert found(index, "wheel") == ["research:pets.hamster"]
    assert found(index, "syrian") == ["memory:favorite_rodent"]
    assert found(index, "macbook") == ["fact:owns_macbook_pro"]
    assert found(index, "influence") == ["knowledge:Research/troll_farms.md"]
    keys = [entry.node_id for entry in index.read("ann", lambda view: view.memory_keys())]
    assert keys == ["memory:favorite_rodent", "fact:owns_macbook_pro"]
    index.close()


def test_unsaved_turns_are_not_indexed(layout: Layout) -> None:
    """Running and halted turns give no rows and no problem."""
    started = write_turn(layout, 1, query="apple", response="", status="running")
    (started / "context.md").unlink()
    write_turn(layout, 2, query="apple", response="", status="halted")
    layout.of("ann").turn(3).directory.mkdir()
    index = Index(layout)
    assert index.rebuild(["ann"])["ann"].problems == ()
    assert found(index, "apple") == []
    index.close()


def test_unreadable_files_are_reported_each_time(layout: Layout) -> None:
    """A file that cannot be parsed is a problem with its path; the rest is indexed."""
    write_turn(layout, 1, query="apple", response="x")
    broken = write_turn(layout, 2, query="apple", response="x")
    (broken / "metadata.json").write_text("{", encoding="utf-8")
    index = Index(layout)
    for _ in range(2):
        problems = index.rebuild(["ann"])["ann"].problems
        assert [(Path(problem.path).name, problem.line) for problem in problems] == [("metadata.json", 1)]
    assert found(index, "apple") == ["turn:1"]
    index.close()


def test_corrupt_index_is_rebuilt(layout: Layout) -> None:
    """An index file full of rubbish is replaced, and the answers are the same."""
    write_turn(layout, 1, query="apple", response="x")
    layout.turn_index.parent.mkdir()
    layout.turn_index.write_bytes(b"not a database" * 1000)
    index = Index(layout)
    assert found(index, "apple") == ["turn:1"]
    index.close()


def test_users_do_not_see_each_other(layout: Layout) -> None:
    """A search answers with the user's own rows alone."""
    write_turn(layout, 1, query="apple", response="x", user="ann")
    write_turn(layout, 1, query="pear", response="x", user="bob-2")
    index = Index(layout)
    assert found(index, "apple", user="bob-2") == []
    assert found(index, "pear", user="bob-2") == ["turn:1"]
    index.close()


@pytest.mark.parametrize("word", ['"', "a AND", "NEAR(", "col:x", "*", "-", "", "\x00", "'; DROP TABLE"])
def test_no_word_is_a_syntax_error(layout: Layout, word: str) -> None:
    """Whatever stands in a query is searched for as text."""
    write_turn(layout, 1, query="apple", response="x")
    index = Index(layout)
    assert isinstance(found(index, word), list)
    index.close()


def test_read_only_root_stays_clean(layout: Layout) -> None:
    """On a root that is marked read-only the index lives in memory."""
    write_turn(layout, 1, query="apple", response="x")
    layout.read_only_mark.write_text("", encoding="utf-8")
    index = Index(layout)
    assert found(index, "apple") == ["turn:1"]
    assert not layout.turn_index.parent.exists()
    index.close()


def test_writers_wait_for_each_other(layout: Layout) -> None:
    """Several writers at once lose no turn and none fails."""
    failures: list[BaseException] = []

    def work(first: int) -> None:
        try:
            index = Index(layout)
            for number in range(first, first + 5):
                write_turn(layout, number, query=f"apple {number}", response="x")
                index.rebuild(["ann"])["ann"]
            index.close()
        except BaseException as exc:  # handed to the main thread
            failures.append(exc)

    threads = [threading.Thread(target=work, args=(first,)) for first in (1, 11, 21, 31)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    index = Index(layout)
    assert failures == []
    assert len(found(index, "apple")) == 20
    index.close()


def test_nothing_changed_is_not_taken_in_again(layout: Layout) -> None:
    """A sync of unchanged turns updates nothing."""
    for number in range(1, 31):
        write_turn(layout, number, query=f"apple {number}", response="pear")
    index = Index(layout)
    assert index.rebuild(["ann"])["ann"].updated == 30
    assert index.rebuild(["ann"])["ann"].updated == 0
    index.close()
