"""How long a reply under a schema can become, and the same schema with lower limits."""

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

Options = Mapping[str, Sequence[str]]
"""Ids by the name of their `x-options` place."""

_NUMBER_CHARS = 12
_OPEN_CHARS = 200
"""What is left for a mapping that has no limit, such as the arguments of a tool."""
_UNLIMITED = {"maxLength": 400, "maxItems": 12}
"""What a limit that is missing is lowered from."""
_STEPS = 24
"""Lowerings that are tried: each by a fifth; after the last one texts have a word or two."""


def longest_chars(
    schema: Mapping[str, Any], options: Options | None = None, name: str = "", *, open_chars: float = math.inf
) -> float:
    """
    Characters of the longest reply that a schema allows, as `json.dumps` writes it; infinite without limits.

    Args:
        schema: Output schema of a recipe, or a part of it.
        options: Ids for its `x-options` places.
        name: Name of the property that the part belongs to.
        open_chars: What a mapping counts that may hold anything. A number counts as 12 characters.

    >>> longest_chars({"properties": {"a": {"type": "string", "maxLength": 3}}})
    14
    >>> longest_chars({"type": "array", "items": {"enum": ["x", None]}})
    inf
    """
    options = options or {}

    def longest(part: Mapping[str, Any], name: str) -> float:
        return longest_chars(part, options, name, open_chars=open_chars)

    if "enum" in schema:
        return max((len(json.dumps(value, ensure_ascii=False)) for value in schema["enum"]), default=2)
    if "x-options" in schema and schema.get("type") != "array":
        return max((len(id_) + 2 for id_ in options.get(str(schema.get("x-from", name)), ())), default=2)
    if "anyOf" in schema or "oneOf" in schema:
        return max(longest(part, name) for part in schema.get("anyOf") or schema["oneOf"])
    kinds = schema.get("type", "object" if "properties" in schema else "null")
    found: list[float] = [0]
    for kind in kinds if isinstance(kinds, list) else [kinds]:
        if kind == "object":
            parts: Mapping[str, Any] = schema.get("properties", {})
            inner = sum(len(key) + 6 + longest(part, key) for key, part in parts.items())
            found.append(2 + (inner if parts else open_chars))
        elif kind == "array":
            ids = options.get(str(schema.get("x-from", name)), ()) if "x-options" in schema else None
            item = longest(schema.get("items", {"type": "string"}), name) if ids is None else 0.0
            item = max((len(id_) + 2.0 for id_ in ids), default=item) if ids else item
            most = 0 if ids is not None and not ids else schema.get("maxItems", math.inf)
            found.append(2 + (most * (item + 2) if most else 0))
        elif kind == "string":
            found.append(2 + schema.get("maxLength", math.inf))
        else:
            found.append(_NUMBER_CHARS if kind in ("integer", "number") else len("false"))
    return max(found)


def lower_limits(
    schema: Mapping[str, Any], most_chars: float, options: Options | None = None
) -> dict[str, Any]:
    """
    A schema with its maxLength and maxItems lowered, all by the same share, until the longest reply fits.

    Args:
        schema: Output schema of a recipe.
        most_chars: What the longest reply may have.
        options: Ids for its `x-options` places.

    Returns:
        The schema as it is if it fits; with the lowest limits that are tried if nothing does.

    >>> texts = {"type": "array", "maxItems": 9, "items": {"type": "string", "maxLength": 90}}
    >>> lower_limits(texts, 99)
    {'type': 'array', 'maxItems': 2, 'items': {'type': 'string', 'maxLength': 29}}
    """
    lowered = dict(schema)
    for step in range(_STEPS):
        lowered = _scaled(schema, 0.8**step) if step else lowered
        if longest_chars(lowered, options, open_chars=_OPEN_CHARS) <= most_chars:
            break
    return lowered


def _scaled(schema: Any, share: float) -> Any:
    """A schema with each limit brought down to a share of it, and with limits where it has none."""
    if isinstance(schema, list):
        return [_scaled(part, share) for part in schema]
    if not isinstance(schema, Mapping):
        return schema
    scaled = {
        key: {name: _scaled(inner, share) for name, inner in part.items()} if key == "properties"
        else _scaled(part, share) if key in ("items", "anyOf", "oneOf") else part
        for key, part in schema.items()
    }  # fmt: skip
    kinds = schema.get("type")
    for kind, most, least in (("string", "maxLength", "minLength"), ("array", "maxItems", "minItems")):
        is_free = (
            "enum" not in schema
            and "const" not in schema
            and not (kind == "string" and "x-options" in schema)
        )
        if is_free and (kind == kinds or (isinstance(kinds, list) and kind in kinds)):
            limit = schema.get(most, _UNLIMITED[most])
            scaled[most] = max(schema.get(least, 0), min(limit, 1), int(limit * share))
    return scaled
