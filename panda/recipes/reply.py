"""One checked reply of a recipe, and what a reply is checked for."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from panda.choosing.decision import Choice
from panda.compression.fitting import Cut
from panda.documents.json_schema import worst_fault
from panda.documents.json_text import load_json
from panda.recipes.recipe import Recipe

Gate = Literal["passed", "below", "not_measured"]


@dataclass(frozen=True)
class Reply:
    """One checked reply."""

    recipe: Recipe
    """The recipe that was executed."""
    values: Mapping[str, Any]
    """The reply as an object that satisfies the output schema."""
    choices: Mapping[str, Choice]
    """Choices by property."""
    confidence: float | None
    """Confidence of the deciding choice: the last enum or boolean; None when none is known."""
    gate: Gate | None
    """What the recipe's threshold says of the confidence; not_measured where none is known, and then the
    reply stands as it is; None without a threshold."""
    attempts: int
    """Model attempts, at least 1."""
    cuts: tuple[Cut, ...]
    """What fitting took from the inputs."""

    @property
    def below_threshold(self) -> bool:
        """Whether the confidence is known and below the recipe's threshold."""
        return self.gate == "below"

    @property
    def asks_back(self) -> bool:
        """Whether the recipe says to ask the user because of that."""
        return self.below_threshold and self.recipe.quality_gates.below_threshold == "clarify"


def parse_object(text: str) -> tuple[dict[str, Any], str | None]:
    """
    The JSON object that a model wrote, and what is wrong with it.

    >>> parse_object('{"a": 1}')
    ({'a': 1}, None)
    >>> parse_object("[]")
    ({}, 'not a JSON object')
    """
    try:
        value = load_json(text)
    except (ValueError, RecursionError) as exc:
        return {}, f"not JSON: {exc}"
    if not isinstance(value, dict):
        return {}, "not a JSON object"
    return value, None


def value_span(text: str, name: str) -> tuple[int, int] | None:
    """
    Where the value of a property stands in a JSON object, without its quotation marks; None if it does not.

    Args:
        text: A valid JSON object.
        name: A property of it, not of one within.

    >>> said = '{"why": {"verdict": 1}, "verdict": "FAIL"}'
    >>> said[slice(*value_span(said, "verdict"))], value_span(said, "reason")
    ('FAIL', None)
    """
    decoder = json.JSONDecoder()
    at = text.index("{") + 1
    while text[at:].lstrip(" \t\n\r,")[:1] == '"':
        at = text.index('"', at)
        key, at = decoder.raw_decode(text, at)
        at = text.index(":", at) + 1
        at += len(text[at:]) - len(text[at:].lstrip())
        _, end = decoder.raw_decode(text, at)
        if key == name:
            return (at + 1, end - 1) if text[at] == '"' else (at, end)
        at = end
    return None


def find_fault(
    values: Mapping[str, Any],
    schema: Mapping[str, Any],
    *,
    optional: Sequence[str] = (),
    lenient: Sequence[str] = (),
) -> str | None:
    """
    The worst way in which a reply breaks its schema; None if it does not.

    Args:
        values: The reply.
        schema: Plain JSON Schema.
        optional: Required properties that the reply may lack all the same.
        lenient: Properties that it may lack, and that may hold anything.

    >>> schema = {"properties": {"a": {"type": "integer"}}}
    >>> find_fault({"a": "x"}, schema), find_fault({"a": "x"}, schema, lenient=["a"])
    ("$.a: 'x' is not of type 'integer'", None)
    """
    required = [name for name in schema.get("required", ()) if name not in (*optional, *lenient)]
    checked = {**schema, "required": required}
    if lenient:
        checked["properties"] = {**schema.get("properties", {}), **{name: {} for name in lenient}}
    best = worst_fault(checked, values)
    return f"{best.json_path}: {best.message:.300}" if best else None
