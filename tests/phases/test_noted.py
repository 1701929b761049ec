"""What is told is kept, word for word, however the turn ends."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.api import LAPTOPS, Panda, ScriptedPanda, Turn
from tests.script import PRICE_NODE, Script, pick

NOTHING: dict[str, Any] = {"retrieval": {"relevant": []}, "synthesis": {"lines": []}, "answer": {"items": []}}


def tell(ann: ScriptedPanda, query: str, **replies: Any) -> Turn:
    """A turn of a model that adds nothing of its own."""
    return ann.turn(query, "--session", "talk", script=Script(**{**NOTHING, **replies}))


def noted(turn: Turn) -> list[tuple[str | None, Any, str | None]]:
    """Key, value and what is replaced, as the envelope has them."""
    return [(entry["key"], entry["value"], entry["replaces"]) for entry in turn.data["noted"]]


def facts(ann: Panda) -> str:
    """facts.md."""
    path = ann.user_directory / "facts.md"
    return path.read_text(encoding="utf-8") if path.is_file() else ""


def preferences(ann: Panda) -> str:
    """preferences.md."""
    return (ann.user_directory / "preferences.md").read_text(encoding="utf-8")


def memory_log(ann: Panda) -> list[dict[str, Any]]:
    """The lines of the memory log."""
    text = (ann.user_directory / "memory.jsonl").read_text(encoding="utf-8")
    return [json.loads(line) for line in text.splitlines()]


def test_a_sentence_without_a_key(ann: ScriptedPanda) -> None:
    """It is kept under the number of its turn, and the answer says so."""
    turn = tell(ann, "Lina can’t do anything on mondays, that's when she is at her dad’s")
    assert turn.data["noted"] == [
        {
            "text": "Lina can’t do anything on mondays, that's when she is at her dad’s",
            "node_id": "fact:said_t3_1",
            "key": None,
            "value": None,
            "replaces": None,
        }
    ]
    assert (turn.status, turn.metadata["answered"]) == ("approved", True)
    assert turn.response.startswith("Noted: Lina can’t do anything on mondays")
    assert 'said_t3_1: {value: "Lina can’t do anything on mondays' in facts(ann)
    last = memory_log(ann)[-1]
    assert (last["kind"], last["confidence"]) == ("statement", 0.95)
    assert ann.problems() == []


def test_deleting_the_line_retracts_it(ann: ScriptedPanda) -> None:
    """What is deleted from facts.md by hand is no longer known."""
    tell(ann, "The spare key hangs in the shed.")
    lines = [line for line in facts(ann).split("\n") if "said_t3_1" not in line]
    (ann.user_directory / "facts.md").write_text("\n".join(lines), encoding="utf-8")
    tell(ann, "The bikes are in the cellar.")
    log = [entry["confidence"] for entry in memory_log(ann) if entry["relation"] == "said_t3_1"]
    assert log == [0.95, 0.0]
    assert "spare key" not in facts(ann)


def test_several_values_are_one_list(ann: ScriptedPanda) -> None:
    """A second allergy lengthens the list; nothing contradicts. What no longer holds is taken out."""
    assert noted(tell(ann, "I'm allergic to penicillin")) == [("allergic_to", ["penicillin"], None)]
    assert noted(tell(ann, "I’m allergic to nuts")) == [("allergic_to", ["penicillin", "nuts"], None)]
    assert 'allergic_to: {value: ["penicillin", "nuts"]' in preferences(ann)
    gone = tell(ann, "I'm no longer allergic to nuts")
    assert noted(gone) == [("allergic_to", ["penicillin"], "nuts")]
    assert "instead of: nuts" in gone.response
    assert "I’m allergic to nuts" not in facts(ann)


def test_corrections_replace(ann: ScriptedPanda) -> None:
    """The value and the sentence that told it go, the answer says which."""
    tell(ann, "My landlord is Mr. Pauli.")
    turn = tell(ann, "My landlord is Ms. Grün now.")
    assert noted(turn) == [("landlord", "Ms. Grün", "Mr. Pauli")]
    assert "- landlord: Ms. Grün, instead of: Mr. Pauli" in turn.response
    assert "Pauli" not in facts(ann)
    assert "Pauli" in str(memory_log(ann))


def test_a_correction_by_a_shorter_name(ann: ScriptedPanda) -> None:
    """It replaces the one value whose key has these words; with two of them both stay."""
    tell(ann, "Our bee vet is Dr. Lind.")
    assert noted(tell(ann, "No, the vet is Dr. Kamp.")) == [("bee_vet", "Dr. Kamp", "Dr. Lind")]
    assert "Lind" not in preferences(ann) + facts(ann)
    assert "\nvet:" not in preferences(ann)
    tell(ann, "Our cow vet is Dr. Ost.")
    assert noted(tell(ann, "No, the vet is Dr. Abt.")) == [("vet", "Dr. Abt", None)]
    assert [name in facts(ann) for name in ("Dr. Kamp", "Dr. Ost")] == [True, True]


def test_a_correction_without_a_key(ann: ScriptedPanda) -> None:
    """What is clearly the same thing is replaced, and stands above what replaced it; others stay."""
    tell(ann, "The plumber comes on Tuesday at 9.")
    tell(ann, "Grandpa plays chess with the vicar.")
    correction = "Sorry, the plumber comes at 9 on Friday, not on Tuesday."
    turn = tell(ann, correction)
    assert [entry["replaces"] for entry in turn.data["noted"]] == ["The plumber comes on Tuesday at 9."]
    assert "comes on Tuesday" not in facts(ann)
    assert "vicar" in facts(ann)
    assert correction in facts(ann)


@pytest.mark.parametrize(
    ("replies", "status"),
    [
        ({"planner": {"tools": [], "next_step": "clarify", "question": "Which one?"}}, "clarify"),
        (
            {
                "retrieval": {"relevant": pick(PRICE_NODE)},
                "synthesis": {"lines": pick("price $697.00")},
                "answer": {"items": [{"text": "It costs $1.", "node_ids": [PRICE_NODE]}]},
            },
            "failed",
        ),
    ],
)
def test_other_endings(ann: ScriptedPanda, replies: dict[str, Any], status: str) -> None:
    """What was told is kept where the turn asks back, or is refused."""
    turn = tell(ann, "The vet moved to Elm Street. How much is the Lenovo LOQ 15?", **replies)
    assert turn.status == status
    assert "said_t3_1" in facts(ann)
    assert turn.response.startswith("Noted: The vet moved to Elm Street.\n\n")


def test_without_a_language_model(tmp_path: Path) -> None:
    """What is only told is noted: nothing is looked up, no tool is called. Thanks are taken as thanks."""
    panda = Panda(tmp_path / "project", LAPTOPS, user="ann")
    turn = panda.turn("My sister keeps bees.")
    assert noted(turn) == [(None, None, None)]
    assert (turn.sections, turn.steps) == ([0, 1, 2, 3, 5, 6], [])
    assert turn.response == "Noted: My sister keeps bees. [1]\n\nSources:\n- [1] turn:3, §0.raw_query"
    assert panda.problems() == []
    thanks = panda.turn("Thanks, looks good!")
    assert noted(thanks) == []
    assert not (thanks.directory / "staged_memory.json").exists()
