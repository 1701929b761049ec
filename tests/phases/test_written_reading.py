"""Phase 0 with a model that writes: it fills the reading itself."""

import json
from collections.abc import Mapping
from typing import Any

import pytest

from tests.api import ScriptedPanda, Turn
from tests.script import APPROVED, Asked, Script

NOTHING: Mapping[str, Any] = {
    "clauses": [],
    "mood": "asks",
    "references": [],
    "exclusions": [],
    "clears": None,
    "periods": [],
    "limits": [],
    "agreement": None,
    "recap": False,
    "all": False,
    "statements": [],
}


def say(ann: ScriptedPanda, query: str, reading: object, **analyzer: Any) -> Turn:
    """One turn of a session, whose query the model reads in a given way."""
    replies = {**APPROVED["analyzer"], **analyzer, "reading": reading}
    if reading == "absent":
        del replies["reading"]
    turn = ann.turn(query, "--session", "talk", script=Script(analyzer=replies, answer={"items": []}))
    assert turn.code == 0, turn.out
    return turn


def reading_of(turn: Turn) -> dict[str, Any]:
    """The reading of a turn."""
    value: dict[str, Any] = turn.file("query_analysis.json")["reading"]
    return value


def laptop_in_session(ann: ScriptedPanda) -> str:
    """Speak of a laptop in the session, and return that laptop's ref."""
    ann.say("How much is the Lenovo LOQ 15?")
    path = ann.user_directory / "sessions" / "talk" / "session.json"
    records = json.loads(path.read_text(encoding="utf-8"))["carry"]["registry"]["records"]
    (ref,) = [record["ref"] for record in records if "LOQ" in record["label"]]
    return str(ref)


def test_reading_is_the_models(ann: ScriptedPanda) -> None:
    """Every part of a written reading holds, whatever rules would say; the choices are not asked for."""
    ref = laptop_in_session(ann)
    query = "No, not that Lenovo! Anna moved to Bern. List every tent under $90 that I saw last week."
    moved = {"text": "Anna moved to Bern.", "key": "town", "value": "Bern", "entity": "Anna"}
    reading: dict[str, Any] = {
        **NOTHING,
        "clauses": [{"text": "No, not that Lenovo!", "mood": "orders"}],
        "mood": "orders",
        "references": [{"words": "that Lenovo", "refs": [ref]}],
        "exclusions": [{"ref": ref, "action": "drop", "words": "not that Lenovo"}],
        "periods": [{"start": "2026-01-02", "end": "2026-01-03", "words": "last week"}],
        "limits": [{"text": "under $90", "key": "budget_max", "value": "USD 90"}],
        "statements": [{**moved, "action": None}],
    }
    turn = say(ann, query, reading, resolved_query="Which tents under $90?")
    parts = {**reading, "statements": [moved]}
    assert reading_of(turn) == {name: part for name, part in parts.items() if part not in (None, [], False)}
    analysis = turn.file("query_analysis.json")
    assert analysis["resolved_query"] == "Which tents under $90?"
    assert analysis["references"] == [ref]
    assert analysis["constraints"] == [{"key": "budget_max", "value": "USD 90", "text": "under $90"}]
    dropped = turn.file("reflection.json")["entity_curation"]["dropped"]
    assert [(part["ref"], part["reason"]) for part in dropped] == [(ref, "the user said “not that Lenovo”")]
    assert turn.file("staged_memory.json")["noted"][0]["node_id"] == "fact:anna#town"
    (asked,) = turn.asked("analyzer")
    properties = set(asked.params.schema["properties"])  # type: ignore[attr-defined]
    assert not {"mood", "orders", "asks", "tells", "agreement", "looks_back"} & properties
    assert f"- {ref} | Lenovo LOQ 15" in asked.text
    assert "Today is" in asked.text
    assert asked.body["max_tokens"] == 800
    assert ann.problems() == []


def test_rules_add_nothing(ann: ScriptedPanda) -> None:
    """A model that reads nothing out of a query is not overruled by what its words look like."""
    laptop_in_session(ann)
    query = "forget the Lenovo, I live in Bern, what did we talk about last week?"
    turn = say(ann, query, NOTHING)
    assert reading_of(turn) == {"mood": "asks"}
    assert not (turn.directory / "staged_memory.json").exists()
    assert "entity_curation" not in turn.file("reflection.json")


def test_what_cannot_be_is_dropped_and_told(ann: ScriptedPanda) -> None:
    """A bad part is left out with a warning, at the first attempt; the turn goes on."""
    ref = laptop_in_session(ann)
    bad = {
        **NOTHING,
        "mood": "whistles",
        "exclusions": [
            {"ref": "made_up", "action": "drop", "words": "tent"},
            {"ref": ref, "action": "drop", "words": "no Lenovo"},
            None,
        ],
        "limits": 7,
        "statements": [{"text": "I own a tent"}],
        "colour": "red",
    }
    turn = say(ann, "How much is the tent?", bad)
    assert len(turn.asked("analyzer")) == 1
    assert reading_of(turn) == {"mood": "asks"}
    warnings = [warning for warning in turn.warnings if warning.startswith("reading: dropped ")]
    assert len(warnings) == 6
    assert "reading: dropped exclusions[0]: there is no entity 'made_up'" in warnings
    assert "reading: dropped exclusions[1]: 'no Lenovo' does not stand in the query" in warnings
    assert ann.problems() == []


@pytest.mark.parametrize("reading", ["absent", None, [], "asks", {}, dict.fromkeys(NOTHING)])
def test_missing_reading(ann: ScriptedPanda, reading: object) -> None:
    """A reading that is missing, null, empty or no object halts nothing and costs no second attempt."""
    turn = say(ann, "How much is the Lenovo LOQ 15?", reading)
    assert (turn.status, len(turn.asked("analyzer"))) == ("approved", 1)
    assert reading_of(turn)["mood"] == "asks"


def test_what_was_dropped_comes_back_when_named(ann: ScriptedPanda) -> None:
    """An entity that was ruled out is back as soon as a reading refers to it."""
    ref = laptop_in_session(ann)
    drop = {**NOTHING, "exclusions": [{"ref": ref, "action": "drop", "words": "Forget the Lenovo"}]}
    say(ann, "Forget the Lenovo.", drop)
    back = {**NOTHING, "references": [{"words": "that Lenovo", "refs": [ref]}]}
    turn = say(ann, "How heavy is that Lenovo?", back)
    assert reading_of(turn)["exclusions"] == [{"ref": ref, "action": "keep", "words": ""}]
    retained = turn.file("reflection.json")["entity_curation"]["retained"]
    assert [record["ref"] for record in retained] == [ref]


def test_agreement_is_the_models(ann: ScriptedPanda) -> None:
    """To an open question a query agrees if the model says so, in whatever words."""
    asking = {"tools": [], "next_step": "clarify", "question": "Do you mean the Lenovo?"}
    ann.say("How much is it?", planner=asking)
    turn = say(ann, "righty ho", {**NOTHING, "agreement": "agrees"})
    assert reading_of(turn)["agreement"] == "agrees"
    assert turn.file("query_analysis.json")["pending"]["agreed"] is True


def test_a_reply_that_was_cut_is_asked_for_without_the_reading(ann: ScriptedPanda) -> None:
    """A model that goes on and on in its reading does not halt the turn; rules read the query then."""
    script = Script(answer={"items": []})

    def going_on(asked: Asked) -> Any:
        schema = asked.params.schema  # type: ignore[attr-defined]
        return "cut" if schema and "reading" in schema["properties"] else script(asked)

    turn = ann.turn("My landlord is Ms. Roth.", script=going_on)
    assert (turn.status, len(turn.asked("analyzer"))) == ("approved", 2)
    assert [statement["key"] for statement in reading_of(turn)["statements"]] == ["landlord"]
