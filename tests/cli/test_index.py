"""`panda index`, run in this process."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from tests.api import NOW, Panda, tree
from tests.store_files import write_research, write_turn


@pytest.fixture
def panda(tmp_path: Path) -> Panda:
    """A store of two users with two sessions; commands are ann's."""
    panda = Panda(tmp_path / "project", user="ann")
    assert panda("init").code == 0
    panda.write_lines(
        "lines.jsonl",
        *(
            {
                "user": user,
                "turn": number,
                "session": f"s{number % 2}",
                "at": f"2026-01-0{number}T10:00:00Z",
                "query": query,
                "response": "Fine.",
            }
            for user, number, query in (
                ("ann", 1, "I adopted a hamster"),
                ("ann", 2, "The RTX 4060 has 16GB"),
                ("ann", 3, "東京都に行きました"),
                ("bob", 1, "I hate every hamster"),
            )
        ),
    )
    assert panda("import", "lines.jsonl").code == 0
    return panda


def search(panda: Panda, *words: str) -> list[str]:
    """The nodes that a search finds."""
    return [result["node_id"] for result in panda.json("index", "search", *words)["results"]]


def test_import_indexes(panda: Panda) -> None:
    """Imported turns are in the index without another command."""
    status = panda.json("index", "status")
    assert (status["rows"], status["fresh"], status["rebuilt_at"]) == ({"turn_summary": 3}, True, None)


def test_search_keeps_users_apart(panda: Panda) -> None:
    """A search finds the turns of its user alone, by any form of a word."""
    assert search(panda, "hamsters")[0] == "turn:1"
    assert search(panda, "16GB RTX-4060")[0] == "turn:2"
    assert search(panda, "東京")[0] == "turn:3"
    assert search(panda, "4060", "--user", "bob") == []


def test_search_within_bounds(panda: Panda) -> None:
    """--session and --since leave out everything else."""
    assert search(panda, "fine", "--session", "s1") == ["turn:1", "turn:3"]
    assert search(panda, "fine", "--session", "s1", "--since", "2026-01-02") == ["turn:3"]
    assert panda("index", "search", "fine", "--since", "soon").code == 2
    assert panda("index", "search").code == 2


def test_explained(panda: Panda) -> None:
    """--explain names columns and bonuses; without it there is nothing about why."""
    ended = panda("index", "search", "my hamster", "--explain", "-k", "1")
    assert "query: hamster | bm25" in ended.out
    assert "speaker" in ended.out
    assert "bm25" not in panda("index", "search", "my hamster").out


def test_edits_by_hand(panda: Panda) -> None:
    """`status` tells of a turn edited by hand, `rebuild` takes it in, and a turn removed leaves the index."""
    write_turn(panda.user_directory, 1, query="I adopted a parrot", response="Fine.", session="s1")
    status = panda.json("index", "status")
    assert (status["fresh"], status["turns_behind"]) == (False, 1)
    assert panda("index", "rebuild").err.startswith("1 indexed, 0 gone, 0 unreadable")
    assert search(panda, "parrot")[0] == "turn:1"
    status = panda.json("index", "status")
    assert (status["fresh"], status["rebuilt_at"]) == (True, NOW)


def test_unreadable_files(panda: Panda) -> None:
    """A damaged file is named with its path, the rest is indexed, and the exit code is 3."""
    path = panda.turn_file(2, "context.md")
    path.write_text("no front matter", "utf-8")
    for words in (("rebuild",), ("rebuild", "--full")):
        ended = panda("index", *words)
        assert (ended.code, str(path) in ended.out) == (3, True)
    ended = panda("index", "search", "hamster")
    assert (ended.code, "turn:1" in ended.out, "not in the index" in ended.err) == (0, True, True)


def test_a_locked_index(panda: Panda) -> None:
    """While another process writes, a search answers from what it has and says so; a rebuild ends 75."""
    write_turn(panda.user_directory, 4, query="a hamster again", response="Fine.")
    with panda.lock("indexes/index.lock"):
        searched = panda("index", "search", "hamster")
        rebuilt = panda("index", "rebuild")
    assert "the index is 1 change behind" in searched.err
    assert "turn:1" in searched.out
    assert "turn:4" not in searched.out
    assert (rebuilt.code, "the lock is held" in rebuilt.err) == (75, True)


def test_research_is_told_as_it_is(panda: Panda) -> None:
    """Research that is expired and poor by now is found, marked, and its user's alone."""
    times = {"created_at": "2025-01-01T00:00:00Z", "expires_at": "2025-01-02T00:00:00Z"}
    topic = {"topic": "pets.hamster", "summary": "hamster cages", "quality_score": 0.4}
    write_research(panda.user_directory, 1, claims=[], **topic, **times)
    assert panda("index", "rebuild").code == 0
    results = panda.json("index", "search", "cages")["results"]
    assert results[0]["research"] == {
        "quality": 0.3,
        "expires_at": "2025-01-02T00:00:00Z",
        "expired": True,
        "low": False,
    }
    assert search(panda, "cages", "--user", "bob") == []


def test_missing_summaries_are_written(panda: Panda) -> None:
    """--summaries writes what is missing, at most --limit, and changes no other file of a turn."""
    before = tree(panda.store / "users")
    ended = panda("index", "rebuild", "--summaries", "--limit", "1")
    assert (ended.code, "summaries: 1 written, 0 failed, 2 left" in ended.err) == (0, True)
    after = tree(panda.store / "users")
    summary = "ann/turns/turn_000001/index_summary.json"
    assert json.loads(after.pop(summary))["summary"] == "I adopted a hamster Fine."
    assert after == before


def test_an_index_of_an_earlier_version_is_made_anew(panda: Panda) -> None:
    """
    The index of an earlier version, its change journal too, goes with the first search, which finds all.
    """
    indexes = panda.store / "indexes"
    with closing(sqlite3.connect(indexes / "turn_index.db")) as connection:
        connection.executescript("DROP TABLE postings; PRAGMA user_version = 8")
    panda.write("store/indexes/changes/ann.0123", "turn_000001\n")
    assert search(panda, "hamster")[0] == "turn:1"
    assert not (indexes / "changes").exists()


def test_what_is_broken_in_a_turn_leaves_the_rest_found(panda: Panda) -> None:
    """A turn whose research does not read is found, the file named each time, and counted as one."""
    research = write_research(panda.user_directory, 1, topic="pets.hamster", summary="cages")
    assert panda("index", "rebuild").err.startswith("1 indexed, 0 gone, 0 unreadable")
    assert search(panda, "cages") == ["research:pets.hamster"]
    research.write_text("{")
    for _ in range(2):
        ended = panda("index", "rebuild")
        assert (ended.code, str(research) in ended.out) == (3, True)
    assert search(panda, "hamster")[0] == "turn:1"
    assert panda.json("index", "status")["unreadable"] == 1


def test_a_turn_sees_what_was_saved_when_it_began(panda: Panda) -> None:
    """Turns that were saved later count neither in what a replay finds nor in how rare a word is."""
    turn = panda.turn("What did I adopt?")
    before = turn.text("retrieval_plan.json")
    for number in range(5, 25):
        write_turn(panda.user_directory, number, query="I adopted a hamster, a hamster", response="Fine.")
    assert panda("index", "rebuild").code == 0
    (replayed,) = panda.json("replay", "4")["turns"]
    assert (replayed["result"], "turn:1" in before) == ("same", True)
