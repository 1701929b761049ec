"""Values held against JSON Schemas: our keywords (patterns, budgets) change no verdict of the library."""

import json
import random
from collections.abc import Callable, Mapping
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from panda.documents.json_schema import find_violation

CASES_PER_SEED = 1_500
KINDS = ("string", "integer", "number", "object", "array", "null", "boolean")


class Maker:
    """Makes random schemas, and values that often fit them."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self._keywords: Mapping[str, Callable[[int], Any]] = {
            "type": lambda _: self._random.choice([*KINDS, ["string", "null"]]),
            "enum": lambda _: [self.value(2) for _ in range(3)],
            "const": lambda _: self.value(1),
            "multipleOf": lambda _: self._random.choice([1, 2, 0.5]),
            "pattern": lambda _: self._random.choice(["^a", "b$", "[0-9]"]),
            "uniqueItems": lambda _: self._random.random() < 0.8,
            "required": lambda _: self._random.sample("abc", 2),
            "dependentRequired": lambda _: {"a": ["b"]},
            "$ref": lambda _: "#/$defs/x",
            **dict.fromkeys(("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"), self._count),
            **dict.fromkeys(("minLength", "maxLength", "minItems", "maxItems", "minContains"), self._count),
            **dict.fromkeys(("minProperties", "maxProperties"), self._count),
            **dict.fromkeys(("items", "contains", "additionalProperties", "propertyNames"), self.schema),
            **dict.fromkeys(("not", "if", "then", "else"), self.schema),
            **dict.fromkeys(("allOf", "anyOf", "oneOf", "prefixItems"), self._schemas),
            "properties": lambda depth: {name: self.schema(depth) for name in self._random.sample("abc", 2)},
            "patternProperties": lambda depth: {"^a|b": self.schema(depth)},
            "dependentSchemas": lambda depth: {"a": self.schema(depth)},
        }

    def schema(self, depth: int = 0) -> Any:
        if depth > 3 or self._random.random() < 0.08:
            return self._random.choice([True, False, {}])
        names = self._random.sample(list(self._keywords), self._random.randrange(1, 4))
        return {name: self._keywords[name](depth + 1) for name in names}

    def value(self, depth: int = 0) -> Any:
        kind = self._random.choice(["plain", "list", "object", "object"]) if depth < 3 else "plain"
        size = self._random.randrange(4)
        if kind == "list":
            return [self.value(depth + 1) for _ in range(size)]
        if kind == "object":
            return {self._random.choice("abc"): self.value(depth + 1) for _ in range(size)}
        return self._random.choice([None, True, False, -1, 0, 1, 2, 1.0, 0.5, "", "a", "ab", "b1"])

    def _count(self, _: int) -> int:
        return self._random.randrange(3)

    def _schemas(self, depth: int) -> list[Any]:
        return [self.schema(depth), self.schema(depth)]


@pytest.mark.parametrize("seed", range(2))
def test_verdicts_are_those_of_the_library(seed: int) -> None:
    """A value breaks a schema exactly where it does with the library's own keywords."""
    maker = Maker(seed)
    broken = 0
    for _ in range(CASES_PER_SEED):
        referenced = maker.schema(1)
        if "$ref" in json.dumps(referenced):
            referenced = {"type": "object"}
        schema = {"$defs": {"x": referenced}, "allOf": [maker.schema()]}
        value = maker.value()
        violation = find_violation(schema, value)
        broken += violation is not None
        assert (violation is None) == Draft202012Validator(schema).is_valid(value), (schema, value)
    assert CASES_PER_SEED / 5 < broken < CASES_PER_SEED * 4 / 5
