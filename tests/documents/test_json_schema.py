"""Values held against JSON Schemas without the library: none fits in which the library finds a fault."""

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from panda.documents.json_text import surely_fits, worst_fault

_LEAVES: list[dict[str, Any]] = [
    {},
    {"type": "string", "minLength": 1, "maxLength": 2},
    {"type": ["integer", "null"], "minimum": 0},
    {"type": "number", "maximum": 1, "exclusiveMinimum": -1},
    {"type": "number", "exclusiveMaximum": 1},
    {"type": "boolean"},
    {"enum": ["a", 1, True, None]},
    {"enum": [[1], 0, False]},
    {"const": 1},
    {"pattern": "^a"},
    {"not": {"type": "string"}},
    {"if": {"type": "integer"}, "then": {"minimum": 1}, "else": {"type": "string"}},
    {"propertyNames": {"maxLength": 1}},
    {"uniqueItems": True},
]
_NAMES = ("a", "b", "c")


def _objects(parts: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    properties = st.dictionaries(st.sampled_from(_NAMES), parts)
    names = st.lists(st.sampled_from(_NAMES), unique=True)
    return st.fixed_dictionaries(
        {},
        optional={
            "type": st.just("object"),
            "properties": properties,
            "required": names,
            "additionalProperties": st.booleans() | parts,
            "patternProperties": st.fixed_dictionaries({"^b": parts}),
        },
    )


def _lists(parts: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    size = st.integers(0, 2)
    optional = {
        "items": parts,
        "minItems": size,
        "maxItems": size,
        "prefixItems": st.lists(parts, min_size=1),
    }
    return st.fixed_dictionaries({}, optional=optional)


_SCHEMAS = st.recursive(
    st.sampled_from(_LEAVES),
    lambda parts: (
        _objects(parts)
        | _lists(parts)
        | st.dictionaries(st.sampled_from(["anyOf", "allOf", "oneOf"]), st.lists(parts, min_size=1))
    ),
    max_leaves=6,
)
_VALUES = st.recursive(
    st.sampled_from(["", "a", "ab", "abc", 0, 1, -1, 1.0, 0.5, True, False, None]),
    lambda parts: st.lists(parts, max_size=3) | st.dictionaries(st.sampled_from(_NAMES), parts),
    max_leaves=6,
)


_UNKNOWN = ("uniqueItems", "prefixItems", "[1]")


@given(_SCHEMAS, _VALUES)
def test_as_the_library(schema: dict[str, Any], value: object) -> None:
    """What surely fits is what the library finds valid; with unknown keywords nothing does by mistake."""
    valid = Draft202012Validator(schema).is_valid(value)
    if any(name in json.dumps(schema) for name in _UNKNOWN):
        assert valid or not surely_fits(schema, value)
    else:
        assert surely_fits(schema, value) == valid


def test_worst_fault_names_the_place() -> None:
    """The fault is the library's, with its place and words."""
    fault = worst_fault({"properties": {"a": {"items": {"type": "integer"}}}}, json.loads('{"a": [1, "x"]}'))
    assert fault is not None
    assert (fault.json_path, fault.message) == ("$.a[1]", "'x' is not of type 'integer'")
