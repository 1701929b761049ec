"""session.json: the fields of its carry, and what is told of wrong ones."""

import pytest

from tests.api import PRICE_QUESTION, ScriptedPanda
from tests.session.conversations import load_session, write_session


def test_fields_are_those_of_the_carry(ann: ScriptedPanda) -> None:
    """An error on an unknown field names all fields of the carry, in the order of the file."""
    ann.say(PRICE_QUESTION)
    session = load_session(ann)
    write_session(ann, {**session, "carry": {"mood": 1}})
    fix = ann("session", "show", "talk", "--json").error["fix"]
    assert fix == f"use one of {', '.join(session['carry'])}"


@pytest.mark.parametrize(
    ("key", "change"),
    [
        ("carry.mood", {"carry": {"mood": 1}}),
        ("head_turn", {"head_turn": "one"}),
        ("turns[0].directory", {"turns": [{"turn": 1}]}),
        ("carry.flow.phase", {"carry": {"flow": {"phase": "arguing"}}}),
    ],
)
def test_unknown_and_wrong_keys(ann: ScriptedPanda, key: str, change: dict[str, object]) -> None:
    """An unknown, missing or wrong key is an error that names it, and a finding of `validate`."""
    ann.say(PRICE_QUESTION)
    write_session(ann, {**load_session(ann), **change})
    ended = ann("session", "show", "talk", "--json")
    assert ended.code == 2
    assert ended.error["where"].endswith(f"session.json ({key})")
    assert len(ann.problems()) == 1
