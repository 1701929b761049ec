"""JSON texts as values that any file can hold, and values held against a JSON Schema. Pure."""

import json
import operator
import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # takes a while to import
    from jsonschema.exceptions import ValidationError

_HALVES = re.compile("[\ud800-\udfff]")
_HALF_ESCAPES = re.compile(r"\\(?:u|U0000)[dD][89a-fA-F]")


def load_json(text: str | bytes, **options: Any) -> Any:
    r"""
    The value of a JSON text, with U+FFFD for half of a surrogate pair, which no file could hold.

    Raises:
        ValueError, RecursionError: As json.loads does.
    """
    value = json.loads(text, **options)
    source = text if isinstance(text, str) else text.decode("latin-1")
    return whole_characters(value) if may_hold_halves(source) else value


def may_hold_halves(source: str) -> bool:
    """Whether a JSON or YAML text may write half of a surrogate pair, or holds one."""
    return ("\\" in source and _HALF_ESCAPES.search(source) is not None) or _HALVES.search(source) is not None


def whole_characters(value: Any) -> Any:
    """A value with U+FFFD for each half of a surrogate pair in its texts and keys."""
    if isinstance(value, str):
        return _HALVES.sub("\ufffd", value)
    if isinstance(value, list):
        return [whole_characters(one) for one in value]
    if isinstance(value, dict):
        return {whole_characters(key): whole_characters(one) for key, one in value.items()}
    return value


Schema = Mapping[str, Any]

_TYPES: Mapping[str, tuple[type, ...]] = {
    "object": (dict,),
    "array": (list,),
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (),
    "null": (type(None),),
}


def worst_fault(schema: Schema, value: object) -> "ValidationError | None":
    """The worst way in which a value breaks a JSON Schema (2020-12); None if it does not."""
    if surely_fits(schema, value):
        return None
    from jsonschema import Draft202012Validator
    from jsonschema.exceptions import best_match

    fault: ValidationError | None = best_match(Draft202012Validator(schema).iter_errors(value))
    return fault


def surely_fits(schema: object, value: object) -> bool:
    """Whether a value fits a JSON Schema; False too where the schema has a keyword that is not known here."""
    try:
        return _fits(schema, value)
    except KeyError:
        return False


def _fits(schema: Any, value: Any) -> bool:
    """Exact; KeyError where that takes more than is known here."""
    if isinstance(schema, bool):
        return schema
    return all(
        _CHECKS[key](part, value, schema)
        for key, part in schema.items()
        if key not in _ANNOTATIONS and not key.startswith("x-")
    )


def _is_of(kinds: Any, value: object) -> bool:
    return any(_is_of_kind(kind, value) for kind in ([kinds] if isinstance(kinds, str) else kinds))


def _is_of_kind(kind: str, value: object) -> bool:
    if isinstance(value, bool):
        return kind == "boolean"
    is_whole = kind == "integer" and isinstance(value, float) and value.is_integer()
    return isinstance(value, _TYPES[kind]) or is_whole


def _equals(option: object, value: object) -> bool:
    if isinstance(option, dict | list):
        raise KeyError(option)
    return option == value and isinstance(option, bool) == isinstance(value, bool)


def _has_properties(parts: Any, value: Any, schema: Schema) -> bool:
    return all(_fits(parts[name], part) for name, part in value.items() if name in parts)


def _has_patterned(parts: Any, value: Any, schema: Schema) -> bool:
    return all(
        _fits(part, value[name]) for form, part in parts.items() for name in value if re.search(form, name)
    )


def _has_others(part: Any, value: Any, schema: Schema) -> bool:
    named, forms = schema.get("properties", ()), schema.get("patternProperties", ())
    others = (name for name in value if name not in named and not any(re.search(f, name) for f in forms))
    return all(_fits(part, value[name]) for name in others)


def _has_items(part: Any, value: Any, schema: Schema) -> bool:
    if "prefixItems" in schema:
        raise KeyError("prefixItems")
    return all(_fits(part, item) for item in value)


def _follows(part: Any, value: Any, schema: Schema) -> bool:
    return _fits(schema.get("then" if _fits(part, value) else "else", True), value)


_Check = Callable[[Any, Any, Schema], bool]


def _of(kinds: str | list[str], check: _Check) -> _Check:
    """A check that only values of some types can fail."""
    return lambda part, value, schema: not _is_of(kinds, value) or check(part, value, schema)


def _sized(kind: str, is_within: Callable[[int, int], bool]) -> _Check:
    return _of(kind, lambda limit, value, schema: is_within(len(value), limit))


def _bounded(is_within: Callable[[float, float], bool]) -> _Check:
    return _of("number", lambda limit, value, schema: is_within(value, limit))


_CHECKS: Mapping[str, _Check] = {
    "type": lambda kinds, value, schema: _is_of(kinds, value),
    "enum": lambda options, value, schema: any(_equals(option, value) for option in options),
    "const": lambda option, value, schema: _equals(option, value),
    "properties": _of("object", _has_properties),
    "patternProperties": _of("object", _has_patterned),
    "additionalProperties": _of("object", _has_others),
    "propertyNames": _of("object", lambda part, value, schema: all(_fits(part, name) for name in value)),
    "required": _of("object", lambda names, value, schema: all(name in value for name in names)),
    "items": _of("array", _has_items),
    "minItems": _sized("array", operator.ge),
    "maxItems": _sized("array", operator.le),
    "minLength": _sized("string", operator.ge),
    "maxLength": _sized("string", operator.le),
    "pattern": _of("string", lambda form, value, schema: bool(re.search(form, value))),
    "minimum": _bounded(operator.ge),
    "maximum": _bounded(operator.le),
    "exclusiveMinimum": _bounded(operator.gt),
    "exclusiveMaximum": _bounded(operator.lt),
    "anyOf": lambda parts, value, schema: any(_fits(part, value) for part in parts),
    "allOf": lambda parts, value, schema: all(_fits(part, value) for part in parts),
    "oneOf": lambda parts, value, schema: sum(_fits(part, value) for part in parts) == 1,
    "not": lambda part, value, schema: not _fits(part, value),
    "if": _follows,
    "then": lambda part, value, schema: True,
    "else": lambda part, value, schema: True,
}
_ANNOTATIONS = frozenset(
    {"title", "description", "default", "examples", "deprecated", "$schema", "$id", "$comment"}
)
