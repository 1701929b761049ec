"""One checked reply of a recipe, and what a reply is checked for."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import jsonschema

from panda.compression.fitting import Cut
from panda.documents.json_text import load_json
from panda.recipes.choices import Choice
from panda.recipes.recipe import Recipe


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
    below_threshold: bool
    """Whether confidence is below the recipe's threshold, or unknown where it has one."""
    attempts: int
    """Model attempts, at least 1."""
    cuts: tuple[Cut, ...]
    """What fitting took from the inputs."""


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


def find_fault(
    values: Mapping[str, Any], schema: Mapping[str, Any], *, optional: Sequence[str]
) -> str | None:
    """
    The worst way in which a reply breaks its schema; None if it does not.

    Args:
        values: The reply.
        schema: Plain JSON Schema.
        optional: Required properties that the reply may lack all the same.

    >>> find_fault({"a": "x"}, {"properties": {"a": {"type": "integer"}}}, optional=())
    "$.a: 'x' is not of type 'integer'"
    """
    required = [name for name in schema.get("required", ()) if name not in optional]
    errors = jsonschema.Draft202012Validator({**schema, "required": required}).iter_errors(cast(Any, values))
    best = jsonschema.exceptions.best_match(errors)
    return f"{best.json_path}: {best.message:.300}" if best else None
