"""The lines that phase 2.2 is offered, and how close they are to the query."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.api import LAPTOPS, PRICE_QUESTION, Panda, ScriptedPanda, Turn
from tests.script import PRICE, loaded_lines
from tests.store_files import write_note, write_turn


@pytest.fixture
def panda(tmp_path: Path) -> Panda:
    """Ann's laptops, with the models that come with panda."""
    return Panda(tmp_path / "project", LAPTOPS, user="ann")


def gathered(turn: Turn) -> Sequence[Mapping[str, Any]]:
    """The lines of evidence.json that phase 2 was offered, with the reasons for which some were taken."""
    lines: Sequence[Mapping[str, Any]] = turn.file("evidence.json")["gathered"]
    return lines


def test_analysis_query_and_loaded_nodes_go_in(ann: ScriptedPanda) -> None:
    """A model that writes the draft sees the query as it was asked, its analysis and the loaded lines."""
    (request,) = ann.turn().asked("synthesis")
    query = request.text.partition("===== §0 User Query =====")[2]
    assert query.startswith("\nintent: commerce\n")
    assert query.rstrip().endswith(f"User query: {PRICE_QUESTION}\n\nChoose the passages.")
    assert PRICE in loaded_lines(request).values()


def test_close_lines_come_before_others(panda: Panda) -> None:
    """Beside one line a document, those closest to the query stay, wherever they stand."""
    lines = [f"Line {n} of the log." for n in range(45)]
    late = "A ferry left late that day."
    response = "\n\n".join([*lines, "The ferry leaves at eight.", late])
    write_turn(panda.user_directory, 3, query="Tell me.", response=response)
    turn = panda.turn("When does the ferry leave?")
    assert {"The ferry leaves at eight.", late} <= {line["text"] for line in gathered(turn)}
    assert "The ferry leaves at eight." in turn.response


def test_what_a_turn_repeats_is_offered_once(panda: Panda) -> None:
    """Of a source and a turn that repeats it, the source keeps the line, with the headings above it."""
    line = "The shed key hangs by the door."
    write_note(panda.user_directory, "garden/front_bed.md", f"# Shed\n\n## Keys\n\n- {line}\n")
    write_turn(panda.user_directory, 3, query="Where is the key?", response=f"{line}\n\nThe shed is old.")
    lines = gathered(panda.turn("Where does the shed key hang?"))
    assert [(one["node"], one["above"]) for one in lines if one["text"] == line] == [
        ("knowledge:garden/front_bed.md", "garden. front bed. Shed. Keys")
    ]
    assert ["above" in one for one in lines if one["node"] == "turn:3"] == [False]


def test_a_draft_holds_what_the_query_names(panda: Panda) -> None:
    """Of a turn that the query names a line is taken, whatever seems closer, and says why."""
    lines = gathered(panda.turn("What did turn 2 say of the best laptop?"))
    reasons = {line["text"]: line["why"] for line in lines if line["node"] == "turn:2" and "why" in line}
    assert {"asked for", "closest"} & set(reasons["Assam it is."])
