"""
The output schema of a recipe: its decisions and texts, and the form in which it is sent.

The enums of ids are not in the recipe: the step's contract says at which places a reply takes them, and the
phase which there are.
"""

import json
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from panda.steps.step_contract import StepContract

_NUMBER_CHARS = 12
_OPEN_CHARS = 200
"""What is left for a mapping that has no limit, such as the arguments of a tool."""
_UNLIMITED = {"maxLength": 400, "maxItems": 12}
"""What a limit that is missing is lowered from."""
_LOWERINGS = 24
"""How often limits are lowered by a fifth; after the last time texts have a word or two."""


def property_schemas(schema: Mapping[str, Any]) -> Mapping[str, Mapping[str, Any]]:
    """Return the properties of an output schema that are mappings, as all of a sound one are."""
    properties = schema.get("properties", {})
    if not isinstance(properties, Mapping):
        return {}
    return {str(name): value for name, value in properties.items() if isinstance(value, Mapping)}


def asks_at(schema: Mapping[str, Any], place: str) -> bool:
    """
    Return whether a schema has a property at a place of a contract.

    >>> asks_at({"properties": {"items": {"items": {"properties": {"lines": {}}}}}}, "items[].lines")
    True
    """
    part: Any = schema
    for name in place.split("."):
        depth = name.count("[]")
        part = property_schemas(part).get(name.removesuffix("[]" * depth))
        for _ in range(depth):
            part = part.get("items") if isinstance(part, Mapping) else None
        if not isinstance(part, Mapping):
            return False
    return True


def is_decision(name: str, schema: Mapping[str, Any], contract: StepContract[Any]) -> bool:
    """
    Return whether a property is chosen and not worded: it has an enum, is Boolean, or takes ids of options.
    """
    return "enum" in schema or schema.get("type") == "boolean" or name in contract.places


def is_confidence(name: str, schema: object) -> bool:
    """
    Return whether a property is the confidence that a reply of the specification names: code computes it
    (S3 §13.2).
    """
    return name == "confidence" and isinstance(schema, Mapping) and schema.get("type") == "number"


def asked_properties(schema: Mapping[str, Any], contract: StepContract[Any]) -> tuple[str, ...]:
    """
    Return the properties that a reply is asked for, in the order in which a model writes them: texts first,
    so that a decision comes after its reasons. The confidence is none of them.
    """
    properties = property_schemas(schema)
    decisions = [name for name, value in properties.items() if is_decision(name, value, contract)]
    texts = [name for name, value in properties.items() if not is_confidence(name, value)]
    return (*(name for name in texts if name not in decisions), *decisions)


def without_choice(
    schema: Mapping[str, Any], contract: StepContract[Any], options: Mapping[str, Sequence[str]]
) -> frozenset[str]:
    """Return the properties that take ids of a set that has none: they are not asked for."""
    return frozenset(
        name
        for name, value in property_schemas(schema).items()
        if name in contract.places and "enum" not in value and not options.get(contract.places[name])
    )


def askable_schema(
    schema: Mapping[str, Any], contract: StepContract[Any], gives: Callable[[str], bool]
) -> dict[str, Any]:
    """
    Return the schema without the properties of which nothing can be said in one call: those that take ids of
    an empty set, objects that require such a property, and those that the contract asks for only beside
    something that is not there. A property that a recipe requires by itself stays.

    Args:
        gives: Says whether the call has a set of options, a document or a variable of a name.
    """
    return _askable_part(schema, "", contract, gives) or {}


def _askable_part(
    schema: Mapping[str, Any], place: str, contract: StepContract[Any], gives: Callable[[str], bool]
) -> dict[str, Any] | None:
    """Return a part of a schema as it can be asked for; None if it cannot."""
    set_name = contract.places.get(place)
    if set_name is not None and "enum" not in schema and not gives(set_name):
        return None
    askable = dict(schema)
    if isinstance(schema.get("items"), Mapping):
        items = _askable_part(schema["items"], f"{place}[]", contract, gives)
        if items is None:
            return None
        askable["items"] = items
    if "properties" not in schema:
        return askable
    required = schema.get("required", ())
    properties: dict[str, Any] = {}
    for name, part in property_schemas(schema).items():
        inner_place = f"{place}.{name}" if place else name
        beside = contract.only_with.get(inner_place)
        is_apart = beside is not None and name not in required and not gives(beside)
        asked = None if is_apart else _askable_part(part, inner_place, contract, gives)
        if asked is not None:
            properties[name] = asked
        elif name in required and place:
            return None
    askable["properties"] = properties
    if required:
        askable["required"] = [name for name in required if name in properties]
    return askable


def deciding_property(schema: Mapping[str, Any]) -> str | None:
    """Return the property whose confidence is the reply's: the last enum or Boolean; None without one."""
    names = [
        name
        for name, value in property_schemas(schema).items()
        if "enum" in value or value.get("type") == "boolean"
    ]
    return names[-1] if names else None


def plain_schema(
    schema: Mapping[str, Any],
    contract: StepContract[Any],
    *,
    only: Sequence[str] | None = None,
    options: Mapping[str, Sequence[str]] | None = None,
    arguments: Mapping[str, Mapping[str, Any]] | None = None,
) -> dict[str, Any]:
    """
    Return the schema with the ids of options as enums, where its contract has places for them.

    Args:
        only: Names of the properties that it keeps; None keeps all.
        options: Ids by the name of their set. A place whose set is not named is a string, or a list of them;
            a list of a set without ids stays empty.
        arguments: Schemas by id for the objects of `contract.arguments`: each becomes one of several.
    """
    place = _Places(contract, options or {}, arguments or {})
    result: dict[str, Any] = place.fill(schema, "")
    if only is not None:
        result["properties"] = {name: result["properties"][name] for name in only}
        result["required"] = [name for name in result.get("required", []) if name in only]
    return result


class _Places:
    """Fills the places of a contract with the ids of one call."""

    def __init__(
        self,
        contract: StepContract[Any],
        options: Mapping[str, Sequence[str]],
        arguments: Mapping[str, Mapping[str, Any]],
    ) -> None:
        self._contract = contract
        self._options = options
        self._arguments = arguments

    def fill(self, schema: Any, place: str) -> Any:
        if isinstance(schema, list):
            return [self.fill(part, place) for part in schema]
        if not isinstance(schema, Mapping):
            return schema
        result: dict[str, Any] = {}
        for key, part in schema.items():
            if key == "properties" and isinstance(part, Mapping):
                inside = f"{place}." if place else ""
                result[key] = {name: self.fill(inner, f"{inside}{name}") for name, inner in part.items()}
            elif key == "items":
                result[key] = self.fill(part, f"{place}[]")
            else:
                result[key] = self.fill(part, place)
        set_name = self._contract.places.get(place)
        if set_name is not None:
            self._free_length(result)
        if set_name is not None and set_name in self._options:
            self._take_ids(result, self._options[set_name])
        if place in self._contract.arguments and self._arguments and "properties" in result:
            return self._with_arguments(result, self._contract.arguments[place])
        return result

    @staticmethod
    def _free_length(schema: dict[str, Any]) -> None:
        """Take the limits of length from where ids stand: these are as long as they are."""
        for part in (schema, schema.get("items")):
            if isinstance(part, dict):
                part.pop("minLength", None)
                part.pop("maxLength", None)

    @staticmethod
    def _take_ids(filled: dict[str, Any], option_ids: Sequence[str]) -> None:
        if filled.get("type") == "array":
            filled["items"] = (
                {"type": "string", "enum": list(option_ids)} if option_ids else {"type": "string"}
            )
            if not option_ids:
                filled |= {"minItems": 0, "maxItems": 0}
        elif option_ids:
            filled["enum"] = list(option_ids)

    def _with_arguments(self, schema: Mapping[str, Any], id_property: str) -> dict[str, Any]:
        """Return the schema as one of several: with each id, and what goes with it as `arguments`."""
        variants = []
        for id_ in schema["properties"].get(id_property, {}).get("enum", ()):
            properties = {**schema["properties"], id_property: {"type": "string", "enum": [id_]}}
            properties.pop("arguments", None)
            if id_ in self._arguments:
                properties["arguments"] = self._arguments[id_]
            variants.append({**schema, "properties": properties})
        return {"anyOf": variants}


def describe_schema(schema: Mapping[str, Any]) -> str | None:
    """
    Return a schema as a short form for a prompt; None where it says more than the form can.

    >>> properties = {"why": {"type": "string", "maxLength": 80}, "verdict": {"enum": ["pass", "retry"]}}
    >>> print(describe_schema({"type": "object", "required": ["verdict"], "properties": properties}))
    {"why"?: text ≤80, "verdict": "pass"|"retry"}
    >>> describe_schema({"type": "string", "format": "date"})
    """
    if schema.keys() - _DESCRIBED:
        return None
    if "enum" in schema:
        return "|".join(json.dumps(value, ensure_ascii=False) for value in schema["enum"])
    if "anyOf" in schema:
        parts = [describe_schema(part) for part in schema["anyOf"]]
        return None if None in parts else " or ".join(part for part in parts if part is not None)
    kinds = [_describe_kind(kind, schema) for kind in _kinds(schema)]
    return None if None in kinds else "|".join(kind for kind in kinds if kind is not None)


_DESCRIBED = frozenset(
    {
        *("type", "enum", "anyOf", "properties", "required", "additionalProperties", "items"),
        *("maxItems", "minItems", "maxLength", "minLength", "minimum", "maximum"),
    }
)
_KIND_WORDS = {"string": "text", "boolean": "true|false", "null": "null"}


def _describe_kind(kind: str, schema: Mapping[str, Any]) -> str | None:
    match kind:
        case "object":
            return _describe_object(schema)
        case "array":
            item = describe_schema(schema.get("items", {"type": "string"}))
            return None if item is None else f"[{item}, …]{_describe_range(schema, 'Items')}"
        case "string":
            return f"text{_describe_range(schema, 'Length')}"
        case "integer" | "number":
            least = schema.get("minimum")
            most = schema.get("maximum")
            limits = f" ≥{least}" if least is not None else ""
            return f"{kind}{limits}" + (f" ≤{most}" if most is not None else "")
    return _KIND_WORDS.get(kind)


def _describe_range(schema: Mapping[str, Any], of: str) -> str:
    least = schema.get(f"min{of}")
    most = schema.get(f"max{of}")
    limits = f" ≥{least}" if least else ""
    return limits if most is None else f"{limits} ≤{most}"


def _describe_object(schema: Mapping[str, Any]) -> str | None:
    properties = property_schemas(schema)
    if not properties:
        return "{…}"
    if schema.get("additionalProperties") not in (None, False):
        return None
    required = schema.get("required", ())
    parts = []
    for name, part in properties.items():
        described = describe_schema(part)
        if described is None:
            return None
        mark = "" if name in required else "?"
        parts.append(f"{json.dumps(name, ensure_ascii=False)}{mark}: {described}")
    return "{" + ", ".join(parts) + "}"


def longest_chars(schema: Mapping[str, Any], *, open_chars: float = math.inf) -> float:
    """
    Characters of the longest reply that a schema allows, as `json.dumps` writes it; infinite without limits.
    A number counts as 12 characters, a mapping that may hold anything as *open_chars*.

    >>> longest_chars({"properties": {"a": {"type": "string", "maxLength": 3}}})
    14.0
    >>> longest_chars({"type": "array", "items": {"enum": ["x", None]}})
    inf
    """

    def longest(part: Mapping[str, Any]) -> float:
        return longest_chars(part, open_chars=open_chars)

    def longest_of(kind: str) -> float:
        if kind == "object":
            parts: Mapping[str, Any] = schema.get("properties", {})
            inner = sum(len(key) + 6 + longest(part) for key, part in parts.items())
            return 2 + (inner if parts else open_chars)
        if kind == "array":
            most = schema.get("maxItems", math.inf)
            return 2 + (most * (longest(schema.get("items", {"type": "string"})) + 2) if most else 0)
        if kind == "string":
            return float(2 + schema.get("maxLength", math.inf))
        return _NUMBER_CHARS if kind in ("integer", "number") else len("false")

    if "enum" in schema:
        return max((len(json.dumps(value, ensure_ascii=False)) for value in schema["enum"]), default=2)
    if parts := schema.get("anyOf") or schema.get("oneOf"):
        return max(map(longest, parts))
    return max(map(longest_of, _kinds(schema)), default=0)


def lower_limits(
    schema: Mapping[str, Any],
    most_chars: float,
    *,
    filled: Callable[[Mapping[str, Any]], Mapping[str, Any]] = dict,
) -> dict[str, Any]:
    """
    Return a schema with maxLength and maxItems lowered, all by the same share, until the longest reply fits,
    or as low as is tried if it never does.

    Args:
        filled: Makes of a schema the one that the longest reply is measured by: with ids as enums.
    """
    lowered = dict(schema)
    for step in range(_LOWERINGS):
        lowered = _scaled(schema, 0.8**step) if step else lowered
        if longest_chars(filled(lowered), open_chars=_OPEN_CHARS) <= most_chars:
            break
    return lowered


def _kinds(schema: Mapping[str, Any]) -> list[str]:
    kinds = schema.get("type", "object" if "properties" in schema else "null")
    return kinds if isinstance(kinds, list) else [kinds]


def _scaled(schema: Any, share: float) -> Any:
    """Each limit brought down to a share of it; limits where there are none."""
    if isinstance(schema, list):
        return [_scaled(part, share) for part in schema]
    if not isinstance(schema, Mapping):
        return schema
    scaled = {key: _scaled(schema[key], share) for key in ("items", "anyOf", "oneOf") if key in schema}
    if "properties" in schema:
        scaled["properties"] = {name: _scaled(part, share) for name, part in schema["properties"].items()}
    is_free = "enum" not in schema and "const" not in schema
    for kind, most, least in (("string", "maxLength", "minLength"), ("array", "maxItems", "minItems")):
        if is_free and kind in _kinds(schema):
            limit = schema.get(most, _UNLIMITED[most])
            scaled[most] = max(schema.get(least, 0), min(limit, 1), int(limit * share))
    return {**schema, **scaled}
