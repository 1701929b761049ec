"""What is told is kept, word for word, however the turn ends."""

import json
from pathlib import Path
from typing import Any

import pytest

from panda.actions.turn import turn_data
from panda.memory.reader import NodeReader
from panda.store.layout import Layout, UserStore
from tests.builders import still_clock
from tests.script import Script
from tests.scripted_turns import USER, Preferring, Ran, laptop_store, run_turn

NOTHING: dict[str, Any] = {"retrieval": {"relevant": []}, "synthesis": {"lines": []}, "answer": {"items": []}}


def tell(layout: Layout, query: str, **replies: Any) -> Ran:
    """A turn of a model that adds nothing of its own."""
    return run_turn(layout, query, Script(**{**NOTHING, **replies}))


def noted(ran: Ran) -> list[tuple[str | None, Any, str | None]]:
    """Key, value and what is replaced, as the envelope has them."""
    return [(one["key"], one["value"], one["replaces"]) for one in turn_data(ran.folder)["noted"]]


def facts(layout: Layout) -> str:
    """facts.md."""
    path = layout.of(USER).facts
    return path.read_text(encoding="utf-8") if path.is_file() else ""


def test_a_sentence_without_a_key(tmp_path: Path) -> None:
    """It is kept under the number of its turn, and the answer says so."""
    layout = laptop_store(tmp_path)
    ran = tell(layout, "Lina can’t do anything on mondays, that's when she is at her dad’s")
    (one,) = turn_data(ran.folder)["noted"]
    assert one == {
        "text": "Lina can’t do anything on mondays, that's when she is at her dad’s",
        "node_id": "fact:said_t3_1",
        "key": None,
        "value": None,
        "replaces": None,
    }
    assert (ran.metadata.status, ran.metadata.answered) == ("approved", True)
    assert ran.response.startswith("Noted: Lina can’t do anything on mondays")
    assert 'said_t3_1: {value: "Lina can’t do anything on mondays' in facts(layout)
    (line,) = layout.of(USER).memory_log.read_text(encoding="utf-8").splitlines()[-1:]
    assert (json.loads(line)["kind"], json.loads(line)["confidence"]) == ("statement", 0.95)
    assert ran.problems == []


def test_deleting_the_line_retracts_it(tmp_path: Path) -> None:
    """What is deleted from facts.md by hand is no longer known."""
    layout = laptop_store(tmp_path)
    tell(layout, "The spare key hangs in the shed.")
    lines = facts(layout).split("\n")
    layout.of(USER).facts.write_text(
        "\n".join(one for one in lines if "said_t3_1" not in one), encoding="utf-8"
    )
    tell(layout, "The bikes are in the cellar.")
    last = [json.loads(one) for one in layout.of(USER).memory_log.read_text(encoding="utf-8").splitlines()]
    assert [one["confidence"] for one in last if one["relation"] == "said_t3_1"] == [0.95, 0.0]
    assert "spare key" not in facts(layout)


def test_several_values_are_one_list(tmp_path: Path) -> None:
    """A second allergy lengthens the list; nothing contradicts. What no longer holds is taken out."""
    layout = laptop_store(tmp_path)
    assert noted(tell(layout, "I'm allergic to penicillin")) == [("allergic_to", ["penicillin"], None)]
    assert noted(tell(layout, "I’m allergic to nuts")) == [("allergic_to", ["penicillin", "nuts"], None)]
    assert 'allergic_to: {value: ["penicillin", "nuts"]' in layout.of(USER).preferences.read_text(
        encoding="utf-8"
    )
    gone = tell(layout, "I'm no longer allergic to nuts")
    assert noted(gone) == [("allergic_to", ["penicillin"], "nuts")]
    assert "instead of: nuts" in gone.response
    assert "I’m allergic to nuts" not in facts(layout)


def test_corrections_replace(tmp_path: Path) -> None:
    """The value and the sentence that told it go, the answer says which."""
    layout = laptop_store(tmp_path)
    tell(layout, "My landlord is Mr. Pauli.")
    ran = tell(layout, "My landlord is Ms. Grün now.")
    assert noted(ran) == [("landlord", "Ms. Grün", "Mr. Pauli")]
    assert "- landlord: Ms. Grün, instead of: Mr. Pauli" in ran.response
    assert "Pauli" not in facts(layout)
    assert "Pauli" in layout.of(USER).memory_log.read_text(encoding="utf-8")


def test_a_correction_by_a_shorter_name(tmp_path: Path) -> None:
    """It replaces the one value whose key has these words; with two of them both stay."""
    layout = laptop_store(tmp_path)
    tell(layout, "Our bee vet is Dr. Lind.")
    assert noted(tell(layout, "No, the vet is Dr. Kamp.")) == [("bee_vet", "Dr. Kamp", "Dr. Lind")]
    preferences = layout.of(USER).preferences.read_text(encoding="utf-8")
    assert ("Lind" in preferences + facts(layout), "\nvet:" in preferences) == (False, False)
    tell(layout, "Our cow vet is Dr. Ost.")
    assert noted(tell(layout, "No, the vet is Dr. Abt.")) == [("vet", "Dr. Abt", None)]
    assert [name in facts(layout) for name in ("Dr. Kamp", "Dr. Ost")] == [True, True]


def test_a_correction_without_a_key(tmp_path: Path) -> None:
    """What is clearly the same thing is replaced, and stands above what replaced it; others stay."""
    layout = laptop_store(tmp_path)
    tell(layout, "The plumber comes on Tuesday at 9.")
    tell(layout, "Grandpa plays chess with the vicar.")
    ran = tell(layout, "Sorry, the plumber comes at 9 on Friday, not on Tuesday.")
    assert [one["replaces"] for one in turn_data(ran.folder)["noted"]] == [
        "The plumber comes on Tuesday at 9."
    ]
    assert "comes on Tuesday" not in facts(layout)
    assert "vicar" in facts(layout)
    (item,) = NodeReader(UserStore(layout.root, USER, still_clock)).load("fact:said_t5_1").items
    assert (item.text, item.heading) == (
        "Sorry, the plumber comes at 9 on Friday, not on Tuesday.",
        "The plumber comes on Tuesday at 9.",
    )


@pytest.mark.parametrize(
    ("replies", "status"),
    [
        ({"planner": {"tools": [], "next_step": "clarify", "question": "Which one?"}}, "clarify"),
        ({"answer": {"items": [{"text": "$1.", "node_ids": ["turn:3"]}]}}, "failed"),
    ],
)
def test_other_endings(tmp_path: Path, replies: dict[str, Any], status: str) -> None:
    """What was told is kept where the turn asks back, or is refused."""
    layout = laptop_store(tmp_path)
    ran = tell(layout, "The vet moved to Elm Street. Which hotel was good?", **replies)
    assert ran.metadata.status == status
    assert "said_t3_1" in facts(layout)
    assert ran.response.startswith("Noted: The vet moved to Elm Street.\n\n")


def test_a_model_that_chooses(tmp_path: Path) -> None:
    """It looks nothing up for what is only told, calls no tool, and is not asked whether that answers."""
    ran = run_turn(laptop_store(tmp_path), "My sister keeps bees.", Preferring(), writes=False, scores=True)
    assert [key for key, _, _ in noted(ran)] == [None]
    assert ran.sections() == [0, 1, 2, 3, 5, 6]
    assert ran.response == "Noted: My sister keeps bees. [1]\n\nSources:\n- [1] turn:3, §0.raw_query\n"
    assert ran.problems == []


def test_talk_is_not_noted(tmp_path: Path) -> None:
    """Thanks are taken as thanks."""
    ran = run_turn(laptop_store(tmp_path), "Thanks, looks good!", Preferring(), writes=False, scores=True)
    assert noted(ran) == []
    assert not ran.folder.has("staged_memory.json")
