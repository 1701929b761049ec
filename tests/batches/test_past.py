"""A batch is a test unless it is saved: what it makes stays in its run, and its items see the same past."""

import json
from pathlib import Path

import pytest

from panda.errors import Verdict
from panda.memory.files import Projection
from panda.runs.queries import Query
from panda.store.layout import Layout
from tests.api import digest
from tests.batches.scripted import QUESTION, run_batch, settings_of
from tests.scripted_turns import USER, laptop_store

OUTSIDE = ("runs/", "indexes/turn_index.db-", "users/ann/memory.lock")
TOLD = "Remember that my cat is called Luna."


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    """The laptop store of user ann."""
    return laptop_store(tmp_path / "panda-system-docs")


def turns_of(run: Path) -> dict[str, Path]:
    """The directories of a run's turns, by item."""
    lines = (json.loads(line) for line in (run / "turns.jsonl").read_text(encoding="utf-8").splitlines())
    return {line["item"]: Path(line["directory"]) for line in lines}


def test_nothing_reaches_the_store(layout: Layout) -> None:
    """Counter, sessions, memory, log and index stay byte for byte; turns and sessions go on in the run."""
    run_batch(layout.root, [Query("first", QUESTION)], jobs=1, save=False)  # makes the index
    before = digest(layout.root, *OUTSIDE)
    queries = [
        Query("a1", TOLD, session="a"),
        Query("a2", QUESTION, session="a"),
        Query("b1", QUESTION, session="b"),
        Query("d1", QUESTION, session="default"),
    ]
    found = run_batch(layout.root, queries, save=False)
    assert [line.verdict for line in found.lines] == [Verdict.SOUND] * 4
    assert digest(layout.root, *OUTSIDE) == before
    run = max(layout.runs.iterdir(), key=lambda path: path.stat().st_mtime_ns)
    turns = turns_of(run)
    assert all(path.is_relative_to(run) for path in turns.values())
    seen = {item: json.loads((path / "snapshot.json").read_text()) for item, path in turns.items()}
    assert {item: one["turns"] for item, one in seen.items()} == {
        "a1": [[1, 2]],
        "a2": [[1, 3]],
        "b1": [[1, 2]],
        "d1": [[1, 2]],
    }
    known = {item: one["memory"]["assertions"] for item, one in seen.items()}
    assert known["a2"] > known["a1"] == known["b1"] == known["d1"]


def test_items_see_the_same_notes(layout: Layout) -> None:
    """A note that is edited, one that is removed and one that is new while a batch runs change nothing."""
    notes = layout.of(USER).knowledge
    notes.mkdir(parents=True, exist_ok=True)
    for name in ("kept", "edited", "removed"):
        (notes / f"{name}.md").write_text(f"# {name}\n\nThe Lenovo LOQ 15 stands in the {name} room.\n")
    queries = [Query(f"q{number}", QUESTION) for number in range(2)]
    run_batch(layout.root, queries, jobs=1, save=False, most=1)
    (notes / "edited.md").write_text("# edited\n\nThe Lenovo LOQ 15 was sold.\n")
    (notes / "removed.md").unlink()
    (notes / "new.md").write_text("# new\n\nThe Lenovo LOQ 15 costs $1.\n")
    run_batch(layout.root, None, jobs=1, resume="last")
    (run,) = layout.runs.iterdir()
    turns = turns_of(run)
    one, two = ((turns[item] / "retrieval_plan.json").read_text() for item in ("q0", "q1"))
    assert one == two
    assert "knowledge:removed.md" in two
    assert "knowledge:new.md" not in two
    kept = {path.name for path in (run / "start" / USER / "knowledge").iterdir()}
    assert kept == {"edited.md", "removed.md"}


def test_saved_in_the_order_of_the_items(layout: Layout) -> None:
    """What two items tell of one thing: the later line holds, however long the earlier one took."""
    told = "Remember that my cat is called"
    queries = [
        Query("q0", f"{told} Luna. slowly slowly", session="a"),
        Query("q1", f"{told} Mia.", session="b"),
    ]
    run_batch(layout.root, queries)
    memory = Projection(layout.of(USER))
    memory.refresh()
    turns = [one.source_turn for one in memory.log.assertions if one.source_turn in (3, 4)]
    assert turns == sorted(turns)
    assert {3, 4} <= set(turns)
    assert settings_of(layout.root).user == USER
