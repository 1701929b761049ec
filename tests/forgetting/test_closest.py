"""Passages that were shown as closest are forgotten like any other line."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.api import Panda
from tests.forgetting.traces import assert_sound, holding, make_project
from tests.store_files import write_json, write_visit

UNSURE_QUERY = "How much does the Lenovo LOQ 15 cost?"


@pytest.fixture
def panda(tmp_path: Path) -> Panda:
    """A new project with a cache of its own."""
    return make_project(tmp_path / "project")


def evidence_of(panda: Panda, number: int) -> dict[str, Any]:
    """Return evidence.json of a turn."""
    record: dict[str, Any] = json.loads(panda.turn_file(number, "evidence.json").read_bytes())
    return record


def test_what_was_told_goes_from_closest_passages(panda: Panda) -> None:
    """A statement that a later turn showed as closest, with all that names it, is gone from that turn."""
    assert panda.turn("My vault code is tulip-4711-amber.").data["outcome"] == "noted"
    unsure = panda.turn(UNSURE_QUERY)
    assert unsure.data["outcome"] == "unsure"
    assert "tulip-4711-amber" in json.dumps(unsure.data["closest"])
    assert panda("forget", "--yes", "1").code == 0
    assert holding(panda, "tulip-4711-amber") == []
    assert "[forgotten" in json.dumps(evidence_of(panda, 2)["closest"])
    assert_sound(panda)
    assert "tulip" not in panda("show", "2", "--why", "--json").out


def test_a_text_of_a_note_goes_from_closest_passages(panda: Panda) -> None:
    """A phrase within a passage of several lines is taken out of its text and of its best line."""
    text = "# Shed\n\nThe key hangs behind the door.\nThe alarm is switched off with tulip-4711-amber.\n"
    note = panda.write("store/users/ann/knowledge/shed.md", text)
    unsure = panda.turn(UNSURE_QUERY)
    assert unsure.data["outcome"] == "unsure"
    assert "tulip-4711-amber" in json.dumps(unsure.data["closest"])
    note.write_text(text.replace("tulip-4711-amber", "a code"), encoding="utf-8")
    assert panda("forget", "--yes", "--text", "tulip-4711-amber").code == 0
    assert holding(panda, "tulip-4711-amber") == []
    (passage,) = evidence_of(panda, 1)["closest"]
    assert passage["text"].startswith("The key hangs behind the door.\n")
    assert "tulip" not in panda.json("show", "1")["text"]


def test_a_visit_goes_from_closest_passages(panda: Panda) -> None:
    """A page goes with what its turn showed of it as closest, line by line, from other turns as well."""
    panda.write("store/users/ann/knowledge/trip.md", "# Trip\n\nThe flight leaves at 9:40.\n")
    panda.turn(UNSURE_QUERY)
    fields = {"title": "Tide table", "summary": "High water at the tulip lighthouse is at noon."}
    write_visit(panda.user_directory, 1, "visit_tides", fields, quality=0.9)
    panda.turn(UNSURE_QUERY)
    passages = [passage for passage in evidence_of(panda, 2)["closest"] if "tulip" in passage["text"]]
    passages[0]["text"] += "\nLow water is at six."
    record = evidence_of(panda, 1)
    write_json(panda.turn_file(1, "evidence.json"), {**record, "closest": [*record["closest"], *passages]})
    assert panda("forget", "--yes", "visit:visit_tides").code == 0
    assert holding(panda, "tulip lighthouse", "Low water") == []
