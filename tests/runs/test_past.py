"""A turn that is run again reads what was there when it began, and leaves the store as it is."""

import gc
import json
import shutil
from pathlib import Path

import pytest

from tests.api import Panda, digest
from tests.record_replays import FIRST_TURN, QUESTIONS

ALL = f"{FIRST_TURN}-{FIRST_TURN + len(QUESTIONS) - 1}"
OUTSIDE = ("runs/", "indexes/turn_index.db-")
"""What a replay may write, and what SQLite keeps beside an index that is open."""
LATER = "2026-02-03T12:00:00Z"


@pytest.fixture
def panda(recorded: Path, tmp_path: Path) -> Panda:
    """The demo store with the recorded turns in it, and much that has happened since."""
    panda = Panda(tmp_path / "project", recorded, user="demo", PANDA_NOW=LATER)
    panda.json("memory", "set", "budget", "$2000")
    panda.json("memory", "set", "favorite_tea", "Assam")
    panda.json("memory", "retract", "preferred_brands")
    home = panda.store / "users" / "demo"
    note = home / "knowledge" / "Pets" / "syrian_hamsters.md"
    note.write_text(note.read_text(encoding="utf-8") + "\nA hamster needs a wheel.\n", encoding="utf-8")
    (home / "knowledge" / "laptops.md").write_text("# Laptops\n\nThe Lenovo LOQ 15 costs $1.\n", "utf-8")
    line = {"user": "demo", "session": "pets", "at": LATER, "query": "How much is the Lenovo LOQ 15?"}
    panda.write("more.jsonl", json.dumps({**line, "response": "It costs $2."}) + "\n")
    assert panda("import", "more.jsonl").code == 0
    assert panda("index", "rebuild").code == 0
    return panda


def test_the_past_is_what_was_there(panda: Panda) -> None:
    """Later facts, turns and counts of words change nothing; a note that changed is named where it does."""
    before = digest(panda.store, *OUTSIDE)
    ended = panda("replay", ALL, "--json")
    turns = {turn["turn"]: turn for turn in ended.data["turns"]}
    for turn in turns.values():
        assert turn["misses"] == [] or "knowledge/Pets/syrian_hamsters.md" in turn["findings"][0], turn
    assert digest(panda.store, *OUTSIDE) == before


def test_only_facts_and_turns_have_changed(panda: Panda, recorded: Path) -> None:
    """With the notes as they were, every document comes out byte for byte as it was saved."""
    knowledge = panda.store / "users" / "demo" / "knowledge"
    shutil.rmtree(knowledge)
    shutil.copytree(recorded / "users" / "demo" / "knowledge", knowledge)
    assert panda("index", "rebuild").code == 0
    gc.collect()  # closes the index that the commands above have opened
    before = digest(panda.store, *OUTSIDE)
    data = panda("replay", ALL, "--json").data
    assert data["results"] == {"same": len(QUESTIONS)}
    directory = Path(data["directory"]) / "turns" / "demo" / f"turn_{FIRST_TURN:06d}"
    for name in ("context.md", "response.md", "metadata.json"):
        assert (directory / name).is_file()
    assert (directory / "context.md").read_bytes() == panda.turn_file(FIRST_TURN, "context.md").read_bytes()
    assert digest(panda.store, *OUTSIDE) == before
