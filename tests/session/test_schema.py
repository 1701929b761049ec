"""session.json: one truth for its dataclasses, its schema and its fields."""

import json

import pytest

from panda.documents.records import decode, encode
from panda.errors import FileFormatError
from panda.store.carry import EMPTY, FIELDS, Carry
from panda.store.records import Session, SessionTurn, check_json

SESSION = Session(
    session_id="default",
    user_id="ann",
    created_at="2026-01-03T10:00:00Z",
    last_active_at="2026-01-03T10:00:00Z",
    head_turn=1,
    turns=(SessionTurn(turn=1, directory="turn_000001"),),
    carry=EMPTY,
)


def test_fields_are_those_of_the_carry() -> None:
    """The table of fields and the carry have the same fields, in the same order."""
    assert list(FIELDS) == list(Carry.__struct_fields__)


def test_round_trip() -> None:
    """A session comes back as it was, and fits its schema."""
    value = json.loads(json.dumps(encode(SESSION)))
    assert decode(Session, value, where="x") == SESSION
    check_json("session.json", value, "x")


@pytest.mark.parametrize(
    ("key", "change"),
    [
        ("carry.mood", {"carry": {"mood": 1}}),
        ("head_turn", {"head_turn": "one"}),
        ("turns[0].directory", {"turns": [{"turn": 1}]}),
        ("carry.flow.phase", {"carry": {"flow": {"phase": "arguing"}}}),
    ],
)
def test_unknown_and_wrong_keys(key: str, change: dict[str, object]) -> None:
    """An unknown, missing or wrong key is an error that names it."""
    with pytest.raises(FileFormatError) as caught:
        decode(Session, {**encode(SESSION), **change}, where="session.json")
    assert caught.value.where == f"session.json ({key})"
    with pytest.raises(FileFormatError):
        check_json("session.json", {**encode(SESSION), **change}, "x")
