"""Retrieval by meaning: what it finds, what it leaves to the words, and how vectors are filled in."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from panda.index.index import Index
from panda.index.tables import AsOf
from panda.index.vectors import VectorStore
from panda.models.kept_encoder import KeptEncoder
from panda.retrieval.candidates import Retriever
from panda.retrieval.meaning import Meaning
from panda.retrieval.ranking import Bounds, Ranked, rank_rows
from panda.store.layout import Layout
from tests.scripted_model import ScriptedEncoder
from tests.scripted_turns import still_clock
from tests.store_files import dump_database, write_turn

SAME = {"cost": "price", "costs": "price", "notebook": "laptop", "huhn": "laptop"}


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    """A store with four turns and a note."""
    layout = Layout(tmp_path)
    write_turn(layout.of("ann").home, 1, query="the red tent", response="It has room for three.")
    write_turn(layout.of("ann").home, 2, query="laptop price", response="697 dollars.")
    write_turn(layout.of("ann").home, 3, query="bees in spring", response="They fly from March on.")
    write_turn(layout.of("ann").home, 4, query="ein huhn im stall", response="das huhn ist weiß")
    note = layout.of("ann").knowledge / "garden.md"
    note.parent.mkdir()
    note.write_text("# Garden\n\nThe pond is deep. The hose leaks at the tap.\n", "utf-8")
    return layout


def opened(layout: Layout) -> tuple[Index, Meaning, ScriptedEncoder]:
    scripted = ScriptedEncoder(SAME)
    index = Index(layout)
    return index, Meaning(KeptEncoder(scripted, VectorStore(layout)), index, layout, still_clock), scripted


def ranked(layout: Layout, query: str, bounds: Bounds | None = None) -> Sequence[Ranked]:
    index, meaning, _ = opened(layout)
    index.freshen("ann")
    meaning.fill("ann")
    return index.read("ann", lambda view: rank_rows(view, query, bounds=bounds or Bounds(), meaning=meaning))


def test_a_row_in_other_words_is_found(layout: Layout) -> None:
    found = ranked(layout, "notebook costs")
    assert [one.entry.node_id for one in found] == ["turn:2"]
    assert (found[0].words, found[0].score > 0) == (0.0, True)


def test_words_and_meaning_add_up(layout: Layout) -> None:
    """Of rows with the same word of the query the one that also means the rest of it comes first."""
    write_turn(layout.of("ann").home, 5, query="the ropes lie in the cellar", response="", session="a")
    write_turn(layout.of("ann").home, 6, query="the ropes have a price", response="", session="b")
    write_turn(layout.of("ann").home, 7, query="the ropes hang in the hall", response="", session="c")
    assert ranked(layout, "what the ropes cost")[0].entry.row == 6


def test_a_node_ranks_by_its_best_line(layout: Layout) -> None:
    text = "Nothing of interest was said. " * 8
    write_turn(layout.of("ann").home, 6, query=text, response=f"{text} Notebook price.")
    near = {one.entry.node_id: one.cosine for one in ranked(layout, "laptop costs")}
    assert near["turn:6"] is not None
    assert near["turn:6"] > 0.4


def test_other_languages_are_left_to_the_words(layout: Layout) -> None:
    """A query that is not English is ranked by words, and so is a row that is not."""
    index, _, _ = opened(layout)
    for query in ("ein notebook im stall", "笔记本电脑"):
        plain = index.read("ann", lambda view, query=query: rank_rows(view, query, bounds=Bounds()))  # type: ignore[misc]
        assert [(one.entry.row, one.score) for one in ranked(layout, query)] == [
            (one.entry.row, one.score) for one in plain
        ]
    assert all(one.cosine is None for one in ranked(layout, "the laptop price") if one.entry.number == 4)


def test_bounds_and_snapshots_hold(layout: Layout) -> None:
    assert ranked(layout, "notebook costs", Bounds(before_turn=2)) == []
    index, meaning, _ = opened(layout)
    then = AsOf(turns=((1, 1), (3, 4)), sources={})
    look = lambda view: rank_rows(view, "notebook costs", bounds=Bounds(), meaning=meaning)  # noqa: E731
    assert index.read("ann", look, as_of=then) == []
    assert [one.entry.row for one in index.read("ann", look)] == [2]


def test_candidates_in_other_words(layout: Layout) -> None:
    index, meaning, _ = opened(layout)
    index.freshen("ann")
    meaning.fill("ann")
    found = Retriever(index, "ann", None, None, meaning).find("notebook costs", before_turn=None)
    assert [(one.node_id, one.shares_words) for one in found] == [("turn:2", False)]


def test_what_is_missing_is_filled_in_parts(layout: Layout) -> None:
    """The rest is told, and filled later without computing anything twice."""
    index, meaning, scripted = opened(layout)
    index.freshen("ann")
    assert meaning.count_missing("ann") == 5
    assert meaning.fill("ann", most=3) == 5
    assert len(scripted.asked) == 3
    while meaning.fill("ann", most=3):
        pass
    assert len(scripted.asked) == len(set(scripted.asked))
    in_parts = dump_database(layout.vectors)
    layout.vectors.unlink()
    again = opened(layout)[1]
    assert again.fill("ann") == 0
    assert dump_database(layout.vectors) == in_parts


def test_a_limit_holds_for_texts_of_other_languages_too(tmp_path: Path) -> None:
    """They get no vector, but a look at each costs time: a turn does not go through all of them."""
    layout = Layout(tmp_path)
    for number in range(1, 31):
        write_turn(
            layout.of("ann").home, number, query=f"wo ist das huhn {number}", response="das huhn ist im stall"
        )
    index, meaning, scripted = opened(layout)
    index.freshen("ann")
    assert meaning.fill("ann", most=10) == 30
    assert meaning.fill("ann", most=10) == 30
    assert 20 <= meaning.fill("ann", most=20) < 30
    assert meaning.fill("ann") == 0
    assert scripted.asked == [""]


def test_a_turn_takes_few_of_many(tmp_path: Path) -> None:
    """Where turns would not get through all that lacks vectors, they see to some alone."""
    layout = Layout(tmp_path)
    note = layout.of("ann").knowledge / "garden.md"
    note.parent.mkdir(parents=True)
    note.write_text("".join(f"# Bed {number}\n\nThe pond is deep.\n\n" for number in range(1_600)), "utf-8")
    index, meaning, scripted = opened(layout)
    index.freshen("ann")
    assert meaning.fill("ann", most=150, in_turn=True) == 1_600
    assert len([*filter(None, scripted.asked)]) == 12


def test_an_interrupted_rebuild_goes_on(layout: Layout) -> None:
    index, meaning, scripted = opened(layout)
    index.freshen("ann")
    meaning.fill("ann", most=4)
    asked = [*filter(None, scripted.asked)]
    index, meaning, scripted = opened(layout)
    meaning.fill("ann")
    asked += filter(None, scripted.asked)
    assert len(asked) == len(set(asked)) == VectorStore(layout).count()


def test_changed_rows_are_filled_anew_and_the_former_dropped(layout: Layout) -> None:
    """What was changed is missing until it is filled; dropping leaves what a new store would have."""
    ranked(layout, "x")
    write_turn(layout.of("ann").home, 2, query="laptop prize", response="697 dollars.")
    index, meaning, _ = opened(layout)
    index.rebuild(full=True)
    assert meaning.count_missing("ann") == 1
    before = VectorStore(layout).count()
    assert meaning.fill("ann") == 0
    assert VectorStore(layout).count() > before
    meaning.drop_others(["ann"])
    changed = dump_database(layout.vectors)
    layout.vectors.unlink()
    opened(layout)[1].fill("ann")
    assert dump_database(layout.vectors) == changed


def test_a_forgotten_turn_leaves_no_vector(layout: Layout) -> None:
    ranked(layout, "x")
    kept = set(dump_database(layout.vectors))
    for path in layout.of("ann").turn(3).directory.iterdir():
        path.unlink()
    layout.of("ann").turn(3).directory.rmdir()
    index, meaning, scripted = opened(layout)
    index.freshen("ann")
    assert meaning.fill("ann") == 0
    meaning.drop_others(["ann"])
    assert scripted.asked == []
    assert len(dump_database(layout.vectors)) < len(kept)


def test_where_nothing_can_be_kept_it_is_computed(layout: Layout) -> None:
    """A store that cannot be written finds the same."""
    right = [(one.entry.row, one.score) for one in ranked(layout, "notebook costs of the garden hose")]
    layout.vectors.unlink()
    layout.read_only_mark.touch()
    assert [
        (one.entry.row, one.score) for one in ranked(layout, "notebook costs of the garden hose")
    ] == right
    assert not layout.vectors.exists()


def test_many_rows_are_searched_by_their_signs(tmp_path: Path) -> None:
    """Among more rows than are looked at exactly the nearest is found first."""
    layout = Layout(tmp_path)
    rng = np.random.default_rng(1)
    words = [f"w{n}" for n in range(300)]
    for number in range(1, 302):
        said = " ".join(rng.choice(words, 6))
        write_turn(
            layout.of("ann").home, number, query="laptop price" if number == 150 else said, response=""
        )
    assert ranked(layout, "notebook costs")[0].entry.number == 150


def test_places_left_over_go_to_the_nearest_however_far(layout: Layout) -> None:
    """Rows that are hardly near are candidates before those that are only new."""
    index, meaning, _ = opened(layout)
    index.freshen("ann")
    meaning.fill("ann")
    query = "which notebook would somebody recommend who travels by train every single morning"
    found = Retriever(index, "ann", meaning=meaning).find(query, limit=2, before_turn=None, fill_up=True)
    assert not ranked(layout, query)
    assert [one.score > 0 for one in found] == [True, True]
