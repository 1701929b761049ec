"""Values held against a JSON Schema; the library that finds faults is loaded when there may be one. Pure."""

import operator
import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # takes a while to import
    from jsonschema.exceptions import ValidationError

Schema = Mapping[str, Any]

_TYPES: Mapping[str, tuple[type, ...]] = {
    "object": (dict,),
    "array": (list,),
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "null": (type(None),),
}


def worst_fault(schema: Schema, value: object) -> "ValidationError | None":
    """
    The worst way in which a value breaks a JSON Schema (2020-12); None if it does not.

    >>> worst_fault({"type": "integer"}, 3), worst_fault({"type": "integer"}, "x").message
    (None, "'x' is not of type 'integer'")
    """
    if surely_fits(schema, value):
        return None
    from jsonschema import Draft202012Validator
    from jsonschema.exceptions import best_match

    fault: ValidationError | None = best_match(Draft202012Validator(schema).iter_errors(value))
    return fault


def surely_fits(schema: object, value: object) -> bool:
    """
    Whether a value fits a JSON Schema; False too where that takes more than is looked at here.

    >>> surely_fits({"enum": ["a", 1]}, 1), surely_fits({"enum": ["a", 1]}, True)
    (True, False)
    >>> surely_fits({"not": {"type": "string"}}, 1)
    False
    """
    if not isinstance(schema, Mapping):
        return schema is True
    for key, wanted in schema.items():
        check = _CHECKS.get(key)
        if check is None:
            if key not in _ANNOTATIONS and not key.startswith("x-"):
                return False
        elif not check(wanted, value, schema):
            return False
    return True


def _is_of(kinds: Any, value: object) -> bool:
    for kind in [kinds] if isinstance(kinds, str) else kinds:
        if isinstance(value, _TYPES.get(kind, ())) and (kind == "boolean" or not isinstance(value, bool)):
            return True
    return False


def _is_one_of(options: Any, value: object) -> bool:
    simple = isinstance(value, str | int | None)  # of other values equality is more than Python's
    return simple and any(option == value and type(option) is type(value) for option in options)


def _has_properties(parts: Schema, value: object, schema: Schema) -> bool:
    if not isinstance(value, dict):
        return True
    others = schema.get("additionalProperties", True)
    return all(surely_fits(parts.get(name, others), part) for name, part in value.items())


def _has_items(part: Any, value: object) -> bool:
    return not isinstance(value, list) or all(surely_fits(part, item) for item in value)


def _sized(
    kind: type[str] | type[list[Any]], is_within: Callable[[int, int], bool]
) -> Callable[[Any, Any, Schema], bool]:
    return lambda limit, value, schema: not isinstance(value, kind) or is_within(len(value), limit)


def _bounded(is_within: Callable[[float, float], bool]) -> Callable[[Any, Any, Schema], bool]:
    return lambda limit, value, schema: not _is_of("number", value) or is_within(value, limit)


_CHECKS: Mapping[str, Callable[[Any, Any, Schema], bool]] = {
    "type": lambda kinds, value, schema: _is_of(kinds, value),
    "enum": lambda options, value, schema: _is_one_of(options, value),
    "const": lambda option, value, schema: _is_one_of([option], value),
    "properties": _has_properties,
    "additionalProperties": lambda part, value, schema: _has_properties(
        schema.get("properties", {}), value, schema
    ),
    "required": lambda names, value, schema: not isinstance(value, dict) or all(n in value for n in names),
    "items": lambda part, value, schema: _has_items(part, value),
    "minItems": _sized(list, operator.ge),
    "maxItems": _sized(list, operator.le),
    "minLength": _sized(str, operator.ge),
    "maxLength": _sized(str, operator.le),
    "pattern": lambda form, value, schema: not isinstance(value, str) or bool(re.search(form, value)),
    "minimum": _bounded(operator.ge),
    "maximum": _bounded(operator.le),
    "exclusiveMinimum": _bounded(operator.gt),
    "exclusiveMaximum": _bounded(operator.lt),
    "anyOf": lambda parts, value, schema: any(surely_fits(part, value) for part in parts),
}
_ANNOTATIONS = frozenset(
    {"title", "description", "default", "examples", "deprecated", "$schema", "$id", "$comment"}
)
