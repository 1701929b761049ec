"""Facts, conflicts, values and requests are read strictly."""

from typing import Any

import pytest

from panda.errors import FileFormatError, UsageError
from panda.memory.fact import parse_scope_facts
from panda.memory.synthesis import parse_request

FACT: dict[str, Any] = {
    "id": "a",
    "entity": "user:ann",
    "relation": "tea",
    "value": {"type": "string", "v": "Assam"},
    "source": None,
    "confidence": 0.9,
    "scope": "local",
    "hlc": None,
    "valid_until": None,
}
CONFLICT: dict[str, Any] = {
    "conflict_id": "k",
    "fact_a": "a",
    "fact_b": "b",
    "status": "resolved",
    "resolution_fact": "r",
}
NAN, INFINITE = float("nan"), float("inf")

WRONG_FACTS: list[tuple[str, object]] = [
    *((key, None) for key in ("id", "entity", "relation", "value", "confidence", "scope")),
    *((key, " \t") for key in ("id", "entity", "relation", "scope", "hlc", "valid_until")),
    *((key, 7) for key in ("id", "entity", "relation", "value", "source", "scope", "hlc", "valid_until")),
    *(("confidence", wrong) for wrong in (-0.001, 1.001, NAN, INFINITE, True, "0.5", [0.5], 10**20)),
    *(("scope", wrong) for wrong in ("Local", "global", ["local"])),
    *(("hlc", wrong) for wrong in ("1", "1.", ".1", "-1.0", "1.0.0", "1e3.0", "²3.0")),
    *(("valid_until", wrong) for wrong in ("soon", "2026-13-01", "2026-01-01T25:00:00", True)),
]
WRONG_VALUES: list[object] = [
    {},
    {"v": "x"},
    {"type": "string"},
    {"type": "text", "v": None},
    {"type": "String", "v": "x"},
    {"type": ["string"], "v": "x"},
    {"type": "string", "v": "x", "unit": "kg"},
    {"type": "null", "v": 0},
    {"type": "boolean", "v": 1},
    {"type": "boolean", "v": "true"},
    {"type": "number", "v": True},
    {"type": "number", "v": "1"},
    {"type": "number", "v": NAN},
    {"type": "number", "v": -INFINITE},
    {"type": "datetime", "v": "yesterday"},
    {"type": "datetime", "v": 1780315200},
    {"type": "ref", "v": " "},
    {"type": "list", "v": "a"},
    {"type": "list", "v": [["a"]]},
    {"type": "list", "v": [{"type": "string", "v": "a"}]},
    {"type": "list", "v": [1, NAN]},
    "Assam",
    ["string", "Assam"],
]


@pytest.mark.parametrize(("key", "wrong"), WRONG_FACTS, ids=repr)
def test_wrong_field_of_a_fact(key: str, wrong: object) -> None:
    """A field with a value that it cannot have is an error that names the fact's index and the key."""
    with pytest.raises(FileFormatError) as caught:
        parse_scope_facts({"facts": [dict(FACT), {**FACT, "id": "b", key: wrong}]}, where="f.json")
    assert caught.value.where == f"f.json (facts[1].{key})"


@pytest.mark.parametrize("key", [key for key in FACT if key not in ("hlc", "valid_until")])
def test_missing_field_of_a_fact(key: str) -> None:
    """A missing field is an error that names it; only clock and end may be missing."""
    with pytest.raises(FileFormatError, match=f"{key} is missing") as caught:
        parse_scope_facts({"facts": [{k: v for k, v in FACT.items() if k != key}]}, where="f.json")
    assert caught.value.where == f"f.json (facts[0].{key})"


@pytest.mark.parametrize("wrong", WRONG_VALUES, ids=repr)
def test_wrong_value(wrong: object) -> None:
    """A value is a tag and a `v` of just that type; the error names it, or what of it is wrong."""
    with pytest.raises(FileFormatError) as caught:
        parse_scope_facts({"facts": [{**FACT, "value": wrong}]}, where="f.json")
    assert str(caught.value.where).startswith("f.json (facts[0].value")


@pytest.mark.parametrize(
    ("document", "place"),
    [
        ([], "facts"),
        ({}, "facts"),
        ({"facts": {}}, "facts"),
        ({"facts": [3]}, "facts[0]"),
        ({"facts": [], "conflicts": {}}, "conflicts"),
        ({"facts": [], "conflicts": ["k"]}, "conflicts[0]"),
        ({"facts": [], "conflicts": [{**CONFLICT, "fact_b": 3}]}, "conflicts[0].fact_b"),
        ({"facts": [], "conflicts": [{**CONFLICT, "status": None}]}, "conflicts[0].status"),
        ({"facts": [], "conflicts": [{**CONFLICT, "resolution_fact": None}]}, "conflicts[0].resolution_fact"),
        ({"facts": [dict(FACT), {**FACT, "source": "else"}]}, "facts[1].id"),
    ],
    ids=repr,
)
def test_wrong_document(document: object, place: str) -> None:
    """Anything but lists of facts and conflicts with ids of their own is an error that names the place."""
    with pytest.raises(FileFormatError) as caught:
        parse_scope_facts(document, where="f.json")
    assert caught.value.where == f"f.json ({place})"


def test_more_than_is_needed() -> None:
    """Other keys are ignored, a clock and an end may be missing, a fact may be told twice."""
    small = {key: value for key, value in FACT.items() if key not in ("hlc", "valid_until")}
    facts, conflicts = parse_scope_facts(
        {"facts": [{**small, "kind": "fact"}, dict(small)], "now": "x"}, where="f.json"
    )
    assert facts[0] == facts[1]
    assert conflicts == []


@pytest.mark.parametrize(
    ("raw", "place"),
    [
        ([], "body"),
        ({}, "scope"),
        ({"scope": None}, "scope"),
        ({"scope": "galaxy"}, "scope"),
        ({"scope": "LOCAL"}, "scope"),
        ({"scope": 3}, "scope"),
        ({"scope": "team", "entity": ""}, "entity"),
        ({"scope": "team", "entity": " \n"}, "entity"),
        ({"scope": "team", "entity": ["a"]}, "entity"),
        ({"scope": "team", "relation": ""}, "relation"),
        ({"scope": "team", "relation": {}}, "relation"),
        ({"scope": "team", "min_confidence": -0.1}, "min_confidence"),
        ({"scope": "team", "min_confidence": 1.1}, "min_confidence"),
        ({"scope": "team", "min_confidence": NAN}, "min_confidence"),
        ({"scope": "team", "min_confidence": INFINITE}, "min_confidence"),
        ({"scope": "team", "min_confidence": "0.5"}, "min_confidence"),
        ({"scope": "team", "min_confidence": True}, "min_confidence"),
        ({"scope": "team", "include_expired": 1}, "include_expired"),
        ({"scope": "team", "include_expired": "true"}, "include_expired"),
        ({"scope": "team", "as_of": "now"}, "as_of"),
        ({"scope": "team", "as_of": 3}, "as_of"),
        ({"scope": "team", "as_of": ""}, "as_of"),
        ({"scope": "team", "minconfidence": 1}, "minconfidence"),
    ],
    ids=repr,
)
def test_wrong_request(raw: object, place: str) -> None:
    """A request is checked field by field; the error names the field."""
    with pytest.raises(UsageError) as caught:
        parse_request(raw)
    assert caught.value.where == place


def test_number_beyond_floats() -> None:
    """A whole number too large for a float is a number, but no confidence."""
    (fact,), _ = parse_scope_facts(
        {"facts": [{**FACT, "value": {"type": "number", "v": 10**400}}]}, where="f.json"
    )
    assert fact.value.v == 10**400
    with pytest.raises(FileFormatError):
        parse_scope_facts({"facts": [{**FACT, "confidence": 10**400}]}, where="f.json")


def test_request_with_nulls() -> None:
    """null counts as not given."""
    raw = {"scope": "team", "entity": None, "min_confidence": None, "include_expired": None, "as_of": None}
    assert parse_request(raw) == parse_request({"scope": "team"})
