"""
An output schema, split into choices and text.

A property with `enum`, of type boolean, or with `x-options` is a choice: its options are scored. Every other
property is text; one with `x-lenient: true` is checked by the phase that reads it, which leaves out what is
wrong in it, and never refused. The x- keys of a choice say how it is made:

    x-options   candidates or spans: the options come with the call, each with an id and a text
    x-from      name of these options, if not that of the property
    x-many      a subset instead of one, as Many has it
    x-written   values of an enum that only models that write choose
    x-decide    a decision list, as Step has it; the first step that reaches its bar decides
"""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, cast

from panda.choosing.decision import FITTED, PARTS, VALUES, ChoiceSpec, Many, Step
from panda.documents.records import decode
from panda.documents.text import nearest
from panda.documents.yaml_text import line_of
from panda.errors import RecipeKeyError


def is_choice(schema: Mapping[str, Any]) -> bool:
    """Whether a property is scored and not written."""
    return "enum" in schema or "x-options" in schema or schema.get("type") == "boolean"


def choice_specs(schema: Mapping[str, Any], *, path: Path, text: str = "") -> tuple[ChoiceSpec, ...]:
    """The choices of an output schema, in its order; file and text are for the errors and their lines."""
    source = _Source(str(path), text)
    properties = source.read(dict[str, dict[str, Any]], schema.get("properties", {}), _PROPERTIES)
    return tuple(source.spec(name, value) for name, value in properties.items() if is_choice(value))


_PROPERTIES = "output_schema.properties"


def text_properties(schema: Mapping[str, Any]) -> tuple[str, ...]:
    """Names of the properties that are written."""
    properties = schema.get("properties", {})
    if not isinstance(properties, Mapping):
        return ()
    return tuple(n for n, value in properties.items() if isinstance(value, Mapping) and not is_choice(value))


def is_confidence(name: str, schema: Any) -> bool:
    """Whether it is the confidence that a reply of the specification names: code computes it (S3 §13.2)."""
    return name == "confidence" and isinstance(schema, Mapping) and schema.get("type") == "number"


def lenient_properties(schema: Mapping[str, Any]) -> tuple[str, ...]:
    """Names of the text properties whose faults refuse no reply."""
    return tuple(name for name in text_properties(schema) if schema["properties"][name].get("x-lenient"))


def option_places(schema: Any, name: str = "") -> tuple[str, ...]:
    """Names of the options that values of a schema are taken from, nested ones included."""
    if isinstance(schema, list):
        return tuple(place for item in schema for place in option_places(item, name))
    if not isinstance(schema, Mapping):
        return ()
    own = (str(schema.get("x-from", name)),) if "x-options" in schema else ()
    parts = [*schema.get("properties", {}).items()]
    parts += [(name, part) for key, part in schema.items() if key not in ("properties", "x-decide")]
    return own + tuple(place for key, part in parts for place in option_places(part, key))


def plain_schema(
    schema: Mapping[str, Any],
    *,
    only: Sequence[str] | None,
    options: Mapping[str, Sequence[str]],
    arguments: Mapping[str, Mapping[str, Any]] | None = None,
) -> dict[str, Any]:
    """
    The schema without x- keys, with the ids of the given options as enums, and of its properties *only*
    those. *options* has ids for each `x-options` place, by property name; a nested place uses its own name or
    the name in `x-from`. A place that is not named becomes a string or a list of strings; a list whose
    options are none stays empty. With *arguments* an object with `x-arguments: property` becomes one of
    several, each with its id for that property and the schema of the id for `arguments`, or without those.
    """
    result = cast(dict[str, Any], _strip(schema, "", options, arguments or {}))
    if only is not None:
        result["properties"] = {name: result["properties"][name] for name in only}
        result["required"] = [name for name in result.get("required", []) if name in only]
    return result


def _strip(
    value: Any, name: str, options: Mapping[str, Sequence[str]], arguments: Mapping[str, Mapping[str, Any]]
) -> Any:
    if isinstance(value, list):
        return [_strip(item, name, options, arguments) for item in value]
    if not isinstance(value, Mapping):
        return value
    result = {
        key: {inner: _strip(item, inner, options, arguments) for inner, item in part.items()}
        if key == "properties" and isinstance(part, Mapping)
        else _strip(part, name, options, arguments)
        for key, part in value.items()
        if not str(key).startswith("x-")
    }
    if isinstance(value.get("x-many"), Mapping) and "max" in value["x-many"]:
        result.setdefault("maxItems", value["x-many"]["max"])
    source = str(value.get("x-from", name))
    if "x-options" in value and source in options:
        ids = list(options[source])
        if value.get("type") == "array":
            result["items"] = {"type": "string", **({"enum": ids} if ids else {})}
            if not ids:
                result |= {"minItems": 0, "maxItems": 0}
        elif ids:
            result["enum"] = ids
    if "x-arguments" in value and arguments:
        of = value["x-arguments"]
        ids = result["properties"][of].get("enum", ())
        return {"anyOf": [_with_arguments(result, of, id_, arguments.get(id_)) for id_ in ids]}
    return result


def _with_arguments(
    schema: Mapping[str, Any], of: str, id_: str, arguments: Mapping[str, Any] | None
) -> dict[str, Any]:
    properties = {**schema["properties"], of: {"type": "string", "enum": [id_]}}
    properties.pop(_ARGUMENTS, None)
    if arguments is not None:
        properties[_ARGUMENTS] = arguments
    return {**schema, "properties": properties}


_ARGUMENTS = "arguments"
_CHOICE_KEYS = ("x-options", "x-many", "x-decide", "x-from", "x-written")


@dataclass(frozen=True)
class _Source:
    where: str
    text: str

    def read(self, cls: Any, value: object, key: str) -> Any:
        return decode(cls, value, where=self.where, key=key, fault=RecipeKeyError, text=self.text)

    def wrong(self, key: str, message: str, fix: str) -> RecipeKeyError:
        line = line_of(self.text, key) if self.text else None
        return RecipeKeyError(message, self.where, line=line, key=key, fix=fix)

    def spec(self, name: str, schema: Mapping[str, Any]) -> ChoiceSpec:
        at = f"{_PROPERTIES}.{name}"
        for key in schema:
            if key.startswith("x-") and key not in _CHOICE_KEYS:
                raise self.wrong(f"{at}.{key}", f"unknown key {key!r}", nearest(key, _CHOICE_KEYS))
        self.read(Literal["candidates", "spans"], schema.get("x-options", "spans"), f"{at}.x-options")
        enum = self.read(list[str | bool], schema.get("enum", []), f"{at}.enum")
        values = tuple(enum) or ((True, False) if schema.get("type") == "boolean" else ())
        values = tuple(value for value in values if value not in schema.get("x-written", ()))
        steps = self.read(tuple[Step, ...], schema.get("x-decide", [{}]), f"{at}.x-decide")
        if not steps:
            fix = "leave x-decide out, or add a step"
            raise self.wrong(f"{at}.x-decide", "x-decide has no step", fix)
        for n, step in enumerate(steps):
            self.check(step, f"{at}.x-decide[{n}]", values)
        if steps[-1].scorer in FITTED:
            message = "the last step is a fit, which may be missing"
            raise self.wrong(f"{at}.x-decide", message, "add one that always decides")
        many = self.read(Many, schema["x-many"], f"{at}.x-many") if "x-many" in schema else None
        return ChoiceSpec(name, values, many, steps)

    def check(self, step: Step, at: str, allowed: Sequence[str | bool]) -> None:
        scorer = step.scorer
        if step.choose is not None and allowed and step.choose not in allowed:
            message = f"choose is {step.choose!r}, which is not among the values"
            raise self.wrong(f"{at}.choose", message, f"use one of {', '.join(map(str, allowed))}")
        if step.class_ is not None and scorer not in ("cosine", "head"):
            message = f"class goes with cosine and head, not {scorer}"
            raise self.wrong(f"{at}.class", message, "leave it out")
        if scorer in FITTED:
            if not step.fit or not step.reads:
                message = f"the scorer {scorer} needs a fit and what it reads"
                raise self.wrong(f"{at}.fit", message, "add fit: and reads:")
            known = PARTS if scorer == "head" else VALUES
            for name in step.reads:
                if name not in known:
                    raise self.wrong(f"{at}.reads", f"reads is {name!r:.60}", nearest(name, known))
            if scorer == "options" and list(step.reads) != [name for name in VALUES if name in step.reads]:
                message = f"they are read in the order {', '.join(VALUES)}"
                raise self.wrong(f"{at}.reads", message, "put them so")


Options = Mapping[str, Sequence[str]]
"""Ids by the name of their `x-options` place."""

_NUMBER_CHARS = 12
_OPEN_CHARS = 200
"""What is left for a mapping that has no limit, such as the arguments of a tool."""
_UNLIMITED = {"maxLength": 400, "maxItems": 12}
"""What a limit that is missing is lowered from."""
_LOWERINGS = 24
"""How often limits are lowered by a fifth; after the last time texts have a word or two."""


def longest_chars(
    schema: Mapping[str, Any], options: Options | None = None, name: str = "", *, open_chars: float = math.inf
) -> float:
    """
    Characters of the longest reply that a schema allows, as `json.dumps` writes it; infinite without limits.
    *name* is that of a property that the schema belongs to; a number counts as 12 characters, a mapping that
    may hold anything as *open_chars*.

    >>> longest_chars({"properties": {"a": {"type": "string", "maxLength": 3}}})
    14.0
    >>> longest_chars({"type": "array", "items": {"enum": ["x", None]}})
    inf
    """
    ids = (options or {}).get(str(schema.get("x-from", name)), ()) if "x-options" in schema else None
    longest_id = max((len(id_) + 2.0 for id_ in ids or ()), default=2.0)

    def longest(part: Mapping[str, Any], name: str) -> float:
        return longest_chars(part, options, name, open_chars=open_chars)

    def longest_of(kind: str) -> float:
        if kind == "object":
            parts: Mapping[str, Any] = schema.get("properties", {})
            inner = sum(len(key) + 6 + longest(part, key) for key, part in parts.items())
            return 2 + (inner if parts else open_chars)
        if kind == "array":
            most = 0 if ids is not None and not ids else schema.get("maxItems", math.inf)
            item = longest_id if ids else longest(schema.get("items", {"type": "string"}), name)
            return 2 + (most * (item + 2) if most else 0)
        if kind == "string":
            return float(2 + schema.get("maxLength", math.inf))
        return _NUMBER_CHARS if kind in ("integer", "number") else len("false")

    if "enum" in schema:
        return max((len(json.dumps(value, ensure_ascii=False)) for value in schema["enum"]), default=2)
    if ids is not None and schema.get("type") != "array":
        return longest_id
    if parts := schema.get("anyOf") or schema.get("oneOf"):
        return max(longest(part, name) for part in parts)
    return max(map(longest_of, _kinds(schema)), default=0)


def lower_limits(
    schema: Mapping[str, Any], most_chars: float, options: Options | None = None
) -> dict[str, Any]:
    """
    A schema with maxLength and maxItems lowered, all by the same share, until the longest reply fits, or as
    low as is tried if it never does.
    """
    lowered = dict(schema)
    for step in range(_LOWERINGS):
        lowered = _scaled(schema, 0.8**step) if step else lowered
        if longest_chars(lowered, options, open_chars=_OPEN_CHARS) <= most_chars:
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
        if is_free and kind in _kinds(schema) and not (kind == "string" and "x-options" in schema):
            limit = schema.get(most, _UNLIMITED[most])
            scaled[most] = max(schema.get(least, 0), min(limit, 1), int(limit * share))
    return {**schema, **scaled}
