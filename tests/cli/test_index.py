"""`panda index`, run in this process."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from panda.index.index import Index
from panda.index.sources import memory_entries
from panda.index.tables import AsOf, IndexView
from panda.retrieval.ranking import Bounds, rank_rows
from panda.store.files import held_lock
from panda.store.layout import Layout
from tests.cli.test_commands import Session
from tests.stores import write_research, write_turn


@pytest.fixture
def panda(tmp_path: Path) -> Session:
    """Commands on a store of two users with two sessions."""
    session = Session(tmp_path / "store")
    session("init")
    lines = [
        {"user": user, "turn": n, "session": f"s{n % 2}", "at": f"2026-01-0{n}T10:00:00Z", "query": query}
        for user, n, query in (
            ("ann", 1, "I adopted a hamster"),
            ("ann", 2, "The RTX 4060 has 16GB"),
            ("ann", 3, "東京都に行きました"),
            ("bob", 1, "I hate every hamster"),
        )
    ]
    file = tmp_path / "turns.jsonl"
    file.write_text("".join(json.dumps({**line, "response": "Fine."}) + "\n" for line in lines), "utf-8")
    assert session("import", str(file)).code == 0
    return session


def found(panda: Session, *words: str) -> list[str]:
    return [one["node_id"] for one in panda.data("index", "search", *words)["results"]]


def test_import_indexes(panda: Session) -> None:
    """What is imported is in the index without another command."""
    status = panda.data("index", "status", "--user", "ann")
    assert (status["rows"], status["fresh"], status["rebuilt_at"]) == ({"turn_summary": 3}, True, None)


def test_search_keeps_users_apart(panda: Session) -> None:
    """A search finds the turns of its user alone, by any form of a word."""
    assert found(panda, "hamsters", "--user", "ann")[0] == "turn:1"
    assert found(panda, "16GB RTX-4060", "--user", "ann")[0] == "turn:2"
    assert found(panda, "東京", "--user", "ann")[0] == "turn:3"
    assert found(panda, "4060", "--user", "bob") == []


def test_search_within_bounds(panda: Session) -> None:
    """--session and --since leave out everything else."""
    assert found(panda, "fine", "--user", "ann", "--session", "s1") == ["turn:1", "turn:3"]
    assert found(panda, "fine", "--user", "ann", "--session", "s1", "--since", "2026-01-02") == ["turn:3"]
    assert panda("index", "search", "fine", "--since", "soon").code == 2
    assert panda("index", "search").code == 2


def test_explained(panda: Session) -> None:
    """--explain names columns and bonuses; without it there is nothing about why."""
    ended = panda("index", "search", "my hamster", "--user", "ann", "--explain", "-k", "1")
    assert "query: hamster | bm25" in ended.out
    assert "speaker" in ended.out
    assert "bm25" not in panda("index", "search", "my hamster", "--user", "ann").out


def test_edits_by_hand(panda: Session) -> None:
    """`status` tells of a turn edited by hand, `rebuild` takes it in, and a turn removed leaves the index."""
    layout = Layout(panda.root)
    write_turn(layout, 1, query="I adopted a parrot", response="Fine.", session="s1")
    status = panda.data("index", "status", "--user", "ann")
    assert (status["fresh"], status["turns_behind"]) == (False, 1)
    assert panda("index", "rebuild").err.startswith("1 indexed, 0 gone, 0 unreadable")
    assert found(panda, "parrot", "--user", "ann")[0] == "turn:1"
    status = panda.data("index", "status", "--user", "ann")
    assert (status["fresh"], status["rebuilt_at"]) == (True, "2026-01-05T00:00:00Z")


def test_unreadable_files(panda: Session) -> None:
    """A damaged file is named with its path, the rest is indexed, and the exit code is 3."""
    layout = Layout(panda.root)
    path = layout.of("ann").turn(2) / "context.md"
    path.write_text("no front matter", "utf-8")
    for words in (("rebuild",), ("rebuild", "--full")):
        ended = panda("index", *words)
        assert (ended.code, str(path) in ended.out) == (3, True)
    ended = panda("index", "search", "hamster", "--user", "ann")
    assert (ended.code, "turn:1" in ended.out, "not in the index" in ended.err) == (0, True, True)


def test_stale_index_is_told(panda: Session) -> None:
    """While another process is writing, a search answers from what the index holds, and says so."""
    layout = Layout(panda.root)
    write_turn(layout, 4, query="a hamster again", response="Fine.")
    with held_lock(layout.index_lock, holder="test", wait_seconds=0):
        ended = panda("index", "search", "hamster", "--user", "ann")
    assert "the index is 1 change behind" in ended.err
    assert "turn:1" in ended.out
    assert "turn:4" not in ended.out


def test_locked_rebuild(panda: Session) -> None:
    """A rebuild that cannot get the lock in time names its holder and ends with 75."""
    with held_lock(Layout(panda.root).index_lock, holder="somebody", wait_seconds=0):
        ended = panda("index", "rebuild", "--wait", "0")
    assert (ended.code, "somebody" in ended.err) == (75, True)


def test_research_is_told_as_it_is(panda: Session) -> None:
    """Research that is expired and poor by now is found, and marked."""
    fields = {"topic": "pets.hamster", "summary": "hamster cages", "quality_score": 0.4}
    times = {"created_at": "2025-01-01T00:00:00Z", "expires_at": "2025-01-02T00:00:00Z"}
    write_research(Layout(panda.root), 1, {**fields, **times, "claims": []}, user="ann")
    assert panda("index", "rebuild").code == 0
    results = panda.data("index", "search", "cages", "--user", "ann")["results"]
    assert results[0]["research"] == {
        "quality": 0.3,
        "expires_at": "2025-01-02T00:00:00Z",
        "expired": True,
        "low": False,
    }
    index = Index(Layout(panda.root))
    assert index.read("bob", lambda view: view.research()) == []
    index.close()


def test_missing_summaries_are_written(panda: Session) -> None:
    """--summaries writes what is missing, at most --limit, and changes no other file of a turn."""
    panda_files = {path: path.read_bytes() for path in Layout(panda.root).users.rglob("*") if path.is_file()}
    ended = panda("index", "rebuild", "--summaries", "--limit", "1", "--user", "ann")
    assert (ended.code, "summaries: 1 written, 0 failed, 2 left" in ended.err) == (0, True)
    path = Layout(panda.root).of("ann").turn(1) / "index_summary.json"
    assert json.loads(path.read_text("utf-8"))["summary"] == "I adopted a hamster Fine."
    after = {path: path.read_bytes() for path in Layout(panda.root).users.rglob("*") if path.is_file()}
    assert set(after) - set(panda_files) == {path}
    assert panda_files.items() <= after.items()
    assert panda("index", "rebuild", "--limit", "1").code == 2


def test_an_index_of_an_earlier_version_is_made_anew(panda: Session) -> None:
    """What an earlier version left, its change journal too, goes with the first search, which finds all."""
    layout = Layout(panda.root)
    with closing(sqlite3.connect(layout.turn_index)) as connection:
        connection.executescript("DROP TABLE postings; PRAGMA user_version = 8")
    journal = layout.indexes / "changes"
    journal.mkdir()
    (journal / "ann.0123").write_text("turn_000001\n")
    assert found(panda, "hamster", "--user", "ann")[0] == "turn:1"
    assert not journal.exists()


def test_what_is_broken_in_a_turn_leaves_the_rest_found(panda: Session) -> None:
    """A turn whose research does not read is found, the file named each time, and counted as one."""
    layout = Layout(panda.root)
    research = write_research(layout, 1, {"topic": "pets.hamster", "summary": "cages"}, user="ann")
    assert panda("index", "rebuild").err.startswith("1 indexed, 0 gone, 0 unreadable")
    assert found(panda, "cages", "--user", "ann") == ["research:pets.hamster"]
    research.write_text("{")
    for _ in range(2):
        ended = panda("index", "rebuild")
        assert (ended.code, str(research) in ended.out) == (3, True)
    assert found(panda, "hamster", "--user", "ann")[0] == "turn:1"
    assert panda.data("index", "status", "--user", "ann")["unreadable"] == 1


def test_a_turn_sees_what_was_saved_when_it_began(panda: Session) -> None:
    """Other turns count neither in what is found nor in how rare a word is."""
    index = Index(Layout(panda.root))
    then = AsOf(
        turns=((1, 1), (3, 3)),
        sources={"facts.md": memory_entries("facts.md", "---\npet: a hamster\n---\n", where="")},
    )

    def look(view: IndexView) -> tuple[list[str], list[int], float]:
        ranked = rank_rows(view, "hamster", bounds=Bounds())
        return [one.entry.node_id for one in ranked], view.turns.tolist(), ranked[-1].score

    before, turns, score = index.read("ann", look, as_of=then)
    assert (sorted(before)[:2], turns) == (["fact:pet", "turn:1"], [1, 3])
    write_turn(Layout(panda.root), 9, query="hamster hamster", response="x", user="ann")
    index.freshen("ann")
    assert index.read("ann", look, as_of=then) == (before, turns, score)
    index.close()
