"""A batch is a test unless it is saved: what it makes stays in its run, and its items see the same past."""

import gc
import json
from pathlib import Path

from tests.api import ScriptedPanda, digest
from tests.batches.commands import (
    MEMORY,
    MoodyScript,
    begin_batch,
    item,
    items,
    remembered_turns,
    results_of,
    resume_batch,
)
from tests.store_files import write_note

OUTSIDE = ("runs/", "indexes/turn_index.db-", "users/ann/memory.lock")


def turns_of(run: Path) -> dict[str, Path]:
    """Return the directories of a run's turns, by item."""
    lines = (json.loads(line) for line in (run / "turns.jsonl").read_text(encoding="utf-8").splitlines())
    return {line["item"]: Path(line["directory"]) for line in lines}


def test_nothing_reaches_the_store(ann: ScriptedPanda) -> None:
    """Counter, sessions, memory, log and index stay byte for byte; turns and sessions go on in the run."""
    assert ann("index", "rebuild").code == 0
    begin_batch(ann, items(1))
    gc.collect()  # closes the index that the commands above have opened
    before = digest(ann.store, *OUTSIDE)
    lines = [
        item("a1", MEMORY, session="a"),
        item("a2", session="a"),
        item("b1", session="b"),
        item("d1", session="default"),
    ]
    data = begin_batch(ann, lines, "--jobs", "2")
    assert set(results_of(data).values()) == {"passed"}
    assert digest(ann.store, *OUTSIDE) == before
    run = Path(data["directory"])
    turns = turns_of(run)
    assert all(path.is_relative_to(run) for path in turns.values())
    snapshots = {name: json.loads((path / "snapshot.json").read_text()) for name, path in turns.items()}
    assert {name: snapshot["turns"] for name, snapshot in snapshots.items()} == {
        "a1": [[1, 2]],
        "a2": [[1, 3]],
        "b1": [[1, 2]],
        "d1": [[1, 2]],
    }
    counts = {name: snapshot["memory"]["assertions"] for name, snapshot in snapshots.items()}
    assert counts["a2"] > counts["a1"] == counts["b1"] == counts["d1"]


def test_items_see_the_same_notes(ann: ScriptedPanda) -> None:
    """A note that is edited, one that is removed and one that is new while a batch runs change nothing."""
    for name in ("same", "edited", "removed"):
        text = f"# {name}\n\nThe Lenovo LOQ 15 stands in the {name} room.\n"
        write_note(ann.user_directory, f"{name}.md", text)
    run = Path(begin_batch(ann, items(2), "--limit", "1")["directory"])
    write_note(ann.user_directory, "edited.md", "# edited\n\nThe Lenovo LOQ 15 was sold.\n")
    (ann.user_directory / "knowledge" / "removed.md").unlink()
    write_note(ann.user_directory, "new.md", "# new\n\nThe Lenovo LOQ 15 costs $1.\n")
    resume_batch(ann)
    turns = turns_of(run)
    first, second = ((turns[name] / "retrieval_plan.json").read_text() for name in ("q0", "q1"))
    assert first == second
    assert "knowledge:removed.md" in second
    assert "knowledge:new.md" not in second
    copied = {path.name for path in (run / "start" / "ann" / "knowledge").iterdir()}
    assert copied == {"edited.md", "removed.md"}


def test_saved_in_the_order_of_the_items(ann: ScriptedPanda, tmp_path: Path) -> None:
    """What two items tell of one thing: the later line holds, however long the earlier one took."""
    ann.server.script = MoodyScript(ann, tmp_path)
    start = "Remember that my cat is called"
    lines = [item("q0", f"{start} Luna. slowly", session="a"), item("q1", f"{start} Mia.", session="b")]
    begin_batch(ann, lines, "--save", "--jobs", "2")
    turns = [turn for turn in remembered_turns(ann) if turn in (3, 4)]
    assert turns == sorted(turns)
    assert {3, 4} <= set(turns)
