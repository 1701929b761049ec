"""
JSON Schemas (2020-12) of any origin, and values held against them by the library `jsonschema`. Pure.

Nothing is retrieved: a `$ref` leads to a place in the same schema. The work is bounded: RE2 matches patterns
in linear time, and each judgement has a budget of steps. Why stands in docs/decisions/0020-json-schemas.md.
"""

import re
import reprlib
from collections.abc import Callable, Iterator, Mapping
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Annotated, Any, Literal, TypeAlias

import msgspec
from msgspec import Meta

from panda.documents.json_text import whole_characters
from panda.errors import SchemaError

MAX_STEPS = 200_000
"""Most steps of one judgement; a reply of a recipe takes a few hundred."""
MAX_DEPTH = 100
"""How many levels of mappings and lists a schema may have."""
_MAX_NODES = 50_000
_MAX_PATTERNS = 100
_PATTERN_BYTES = 2**20
"""Memory of one compiled pattern."""
_CHARS_A_STEP = 16
_MATCH_WORK_A_STEP = 2_000
"""Characters of a text times instructions of a pattern."""
_SHOWN_CHARS = 200
_DIALECT_KEYS = frozenset(("$schema", "$id"))
"""Dropped at the top; further down they would change the dialect, or what references mean."""
_REFUSED = _DIALECT_KEYS | {
    *("$anchor", "$dynamicAnchor", "$dynamicRef", "$recursiveAnchor", "$recursiveRef"),
    *("unevaluatedItems", "unevaluatedProperties"),
}
_Type = Literal["array", "boolean", "integer", "null", "number", "object", "string"]
_Count = Annotated[int, Meta(ge=0)] | Annotated[float, Meta(ge=0)]
_SCHEMA_KEYS = frozenset(
    ("additionalProperties", "contains", "else", "if", "items", "not", "propertyNames", "then")
)
_SCHEMA_MAPS = frozenset(("$defs", "definitions", "dependentSchemas", "patternProperties", "properties"))
_SCHEMA_LISTS = frozenset(("allOf", "anyOf", "oneOf", "prefixItems"))
_KEYWORD_TYPES: Mapping[str, Any] = {
    **dict.fromkeys(_SCHEMA_MAPS, dict[str, Any]),
    **dict.fromkeys(_SCHEMA_LISTS, Annotated[list[Any], Meta(min_length=1)]),
    **dict.fromkeys(("exclusiveMaximum", "exclusiveMinimum", "maximum", "minimum"), int | float),
    **dict.fromkeys(("maxContains", "maxItems", "maxLength", "maxProperties"), _Count),
    **dict.fromkeys(("minContains", "minItems", "minLength", "minProperties"), _Count),
    "$ref": str,
    "dependentRequired": dict[str, list[str]],
    "enum": list[Any],
    "multipleOf": Annotated[float, Meta(gt=0)],
    "pattern": str,
    "required": list[str],
    "type": _Type | list[_Type],
    "uniqueItems": bool,
}
_Place: TypeAlias = "tuple[_Place, object] | None"
"""Where something stands in a schema: the place above it and its key; None at the top."""


@dataclass(frozen=True)
class Violation:
    """The most telling way in which a value breaks a schema."""

    path: tuple[str | int, ...]
    """Where it stands in the value: keys, and numbers of items from 0."""
    json_path: str
    """The same place as a JSONPath, such as `$.items[0].text`."""
    message: str


class Steps:
    """The budget of one or more judgements."""

    def __init__(self, limit: int = MAX_STEPS) -> None:
        self._limit = limit
        self._left = limit

    @property
    def are_used_up(self) -> bool:
        return self._left < 0

    def spend(self, count: int) -> None:
        """Raises SchemaError where the budget is used up."""
        self._left -= count
        if self._left < 0:
            message = f"holding values against it takes more than {self._limit:,} steps"
            raise SchemaError(message, fix="use fewer alternatives, references and items")


_STEPS: ContextVar[Steps] = ContextVar("_STEPS")
"""The budget of the judgement that runs."""


def find_violation(
    schema: Mapping[str, Any], value: object, *, steps: Steps | None = None
) -> Violation | None:
    """
    Return the most telling way in which a value breaks a JSON Schema; None if it does not.

    Formats are annotations and not checked, as the specification has it by default. A budget of steps may be
    shared by several judgements.

    Raises:
        SchemaError: Nothing can be judged by this schema: it is not valid, refers to another document or to
            itself without end, has a pattern that cannot be matched in linear time, or takes too many steps.
    """
    check_schema(schema)
    return _judge(_without_dialect(schema), value, steps or Steps())


def _judge(schema: Any, value: object, steps: Steps) -> Violation | None:
    """Hold a value against a schema that has been checked."""
    from jsonschema.exceptions import best_match
    from referencing import Registry

    token = _STEPS.set(steps)
    try:
        error = best_match(_validator_class()(schema, registry=Registry()).iter_errors(value))
        return error and Violation(tuple(error.absolute_path), error.json_path, error.message)
    except RecursionError as exc:
        message = "it refers to itself without end, or is nested too deeply for this value"
        raise SchemaError(message, fix="let its references lead to something smaller") from exc
    except (ArithmeticError, ValueError) as exc:  # numbers beyond what Python computes with
        message = f"this value cannot be held against it: {str(exc)[:_SHOWN_CHARS]}"
        raise SchemaError(message, fix="use smaller numbers") from exc
    finally:
        _STEPS.reset(token)


def check_schema(schema: object) -> None:
    """Raise SchemaError, with the key as a JSON pointer, where a schema is not one to judge values by."""
    root = _without_dialect(schema)
    _check_size(root)
    waiting: list[tuple[Any, _Place]] = [(root, None)]
    checked_ids: set[int] = set()
    pattern_places: dict[str, _Place] = {}
    while waiting:
        node, place = waiting.pop()
        if isinstance(node, bool) or id(node) in checked_ids:
            continue
        if not isinstance(node, Mapping):
            message = f"a schema is a mapping, true or false, not {reprlib.repr(node)}"
            raise _wrong(place, message, "write one")
        checked_ids.add(id(node))
        for key, part in node.items():
            below = (place, key)
            _check_keyword(key, part, below)
            if key == "$ref":
                waiting.append((_look_up(root, part, below), below))
            elif key == "pattern":
                pattern_places[part] = below
            elif key == "patternProperties":
                pattern_places.update((name, (below, name)) for name in part)
            if key in _SCHEMA_KEYS:
                waiting.append((part, below))
            elif key in _SCHEMA_MAPS:
                waiting += [(inner, (below, name)) for name, inner in part.items()]
            elif key in _SCHEMA_LISTS:
                waiting += [(inner, (below, number)) for number, inner in enumerate(part)]
    if len(pattern_places) > _MAX_PATTERNS:
        raise _wrong(None, f"more than {_MAX_PATTERNS} patterns in it", "make it simpler")
    for pattern, place in pattern_places.items():
        try:
            _compile_pattern(pattern)
        except ValueError as exc:
            fix = "use no look-around, no references to groups and no repetition above 1,000"
            raise _wrong(place, str(exc), fix) from exc


def _without_dialect(schema: Any) -> Any:
    if not isinstance(schema, Mapping):
        return schema
    return {key: part for key, part in schema.items() if key not in _DIALECT_KEYS}


def _check_size(schema: Any) -> None:
    waiting: list[tuple[Any, _Place, int]] = [(schema, None, 0)]
    node_count = 0
    while waiting:
        node, place, depth = waiting.pop()
        if depth > MAX_DEPTH:
            raise _wrong(place, f"nested deeper than {MAX_DEPTH} levels", "use fewer levels of nesting")
        if isinstance(node, Mapping | list | tuple):
            node_count += len(node)
            if node_count > _MAX_NODES:
                raise _wrong(None, f"more than {_MAX_NODES:,} values in it", "make it simpler")
            parts = node.items() if isinstance(node, Mapping) else enumerate(node)
            waiting += [(part, (place, key), depth + 1) for key, part in parts]


def _check_keyword(key: str, argument: Any, place: _Place) -> None:
    if key in _REFUSED:
        message = f"{key} is not supported inside a schema"
        raise _wrong(place, message, "say it with properties, items, $ref and anyOf")
    try:
        msgspec.convert(argument, _KEYWORD_TYPES.get(key, Any))
    except msgspec.ValidationError as exc:
        message = f"{key} is not valid: {str(exc)[:_SHOWN_CHARS]}"
        raise _wrong(place, message, "see https://json-schema.org/understanding-json-schema") from exc


def _wrong(place: _Place, message: str, fix: str) -> SchemaError:
    keys: list[str] = []
    while place is not None:
        place, key = place
        keys.insert(0, str(key)[:_SHOWN_CHARS])
    return SchemaError(message, key="/" + "/".join(keys), fix=fix)


def _look_up(root: Any, reference: str, place: _Place) -> Any:
    """Return what a reference such as `#/$defs/name` leads to."""
    from referencing import Registry
    from referencing.exceptions import Unresolvable
    from referencing.jsonschema import DRAFT202012

    quoted = reprlib.repr(reference)
    fix = "put what it names under $defs, and refer to it as #/$defs/NAME"
    if reference != "#" and not reference.startswith("#/"):
        raise _wrong(place, f"the reference {quoted} leads out of the schema, and nothing is retrieved", fix)
    resolver = Registry().resolver_with_root(DRAFT202012.create_resource(root))
    try:
        return resolver.lookup(reference).contents
    except (Unresolvable, ValueError, TypeError, AttributeError) as exc:  # the last three for odd paths
        raise _wrong(place, f"the reference {quoted} leads to nothing", fix) from exc


@lru_cache(maxsize=_MAX_PATTERNS)
def _compile_pattern(pattern: str) -> Any:
    """Compile a pattern for an engine that takes linear time; raise ValueError where it cannot."""
    import re2

    options = re2.Options()
    options.log_errors = False
    options.max_mem = _PATTERN_BYTES
    by_number = re.compile(r"\\(?:u([0-9a-fA-F]{4})|.)", re.DOTALL)  # \u00e9 of ECMAScript is \x{00e9} of RE2
    text = by_number.sub(lambda escape: rf"\x{{{escape[1]}}}" if escape[1] else escape[0], pattern)
    try:
        return re2.compile(whole_characters(text), options=options)
    except re2.error as exc:
        reason = exc.args[0] if exc.args else exc
        reason_text = reason.decode("utf-8", "replace") if isinstance(reason, bytes) else str(reason)
        message = f"the pattern {reprlib.repr(pattern)} cannot be matched in linear time: {reason_text:.100}"
        raise ValueError(f"{message} (look-around and references to groups cannot)") from exc


def _matches(pattern: str, text: str) -> bool:
    compiled = _compile_pattern(pattern)
    _STEPS.get().spend(1 + len(text) * compiled.programsize // _MATCH_WORK_A_STEP)
    return compiled.search(whole_characters(text)) is not None


@cache
def _validator_class() -> Any:
    """The library's validator, with each keyword's work counted and patterns matched by RE2."""
    from jsonschema import Draft202012Validator
    from jsonschema.exceptions import ValidationError
    from jsonschema.validators import extend

    by_library: Mapping[str, Any] = Draft202012Validator.VALIDATORS

    def pattern(validator: Any, argument: str, instance: Any, schema: Any) -> Iterator[Any]:
        if isinstance(instance, str) and not _matches(argument, instance):
            yield ValidationError(f"{instance!r} does not match {argument!r}")

    def pattern_properties(validator: Any, argument: Any, instance: Any, schema: Any) -> Iterator[Any]:
        properties = instance if isinstance(instance, dict) else {}
        for name_pattern, inner in argument.items():
            for name, part in properties.items():
                if _matches(name_pattern, name):
                    yield from validator.descend(part, inner, path=name, schema_path=name_pattern)

    def additional_properties(validator: Any, argument: Any, instance: Any, schema: Any) -> Iterator[Any]:
        properties = instance if isinstance(instance, dict) else {}
        named = schema.get("properties", {})
        patterns = schema.get("patternProperties", {})
        extras = {
            name: part
            for name, part in properties.items()
            if name not in named and not any(_matches(name_pattern, name) for name_pattern in patterns)
        }
        yield from by_library["additionalProperties"](validator, argument, extras, {})

    judges = {
        **by_library,
        "pattern": pattern,
        "patternProperties": pattern_properties,
        "additionalProperties": additional_properties,
    }
    counted = {name: _count_steps(name, judge) for name, judge in judges.items()}
    return extend(Draft202012Validator, counted)  # type: ignore[no-untyped-call]


def _count_steps(keyword: str, judge: Callable[..., Any]) -> Callable[..., Iterator[Any]]:
    """Return a keyword's function of the library that spends steps for what it compares, visits and tells."""

    def judge_counted(validator: Any, argument: Any, instance: Any, schema: Any) -> Iterator[Any]:
        steps = _STEPS.get()
        steps.spend(1 + _width(argument) + _width(instance))
        if keyword in ("const", "dependentRequired", "enum"):
            steps.spend(_size(argument))
        elif keyword == "uniqueItems" and argument and isinstance(instance, list):
            steps.spend(_comparisons(instance))
        for error in judge(validator, argument, instance, schema) or ():
            if not error.schema_path:  # not told by a keyword further in: its text holds both values
                steps.spend(_size(argument) + _size(instance))
            yield error

    return judge_counted


def _width(value: Any) -> int:
    if isinstance(value, str):
        return len(value) // _CHARS_A_STEP
    return len(value) if isinstance(value, Mapping | list | tuple) else 0


def _size(value: Any) -> int:
    """Return the steps that it takes to read a value whole."""
    size = 0
    waiting = [value]
    while waiting:
        part = waiting.pop()
        size += 1 + _width(part)
        if isinstance(part, Mapping):
            waiting += part.keys()
            waiting += part.values()
        elif isinstance(part, list | tuple):
            waiting += part
    return size


def _comparisons(items: list[Any]) -> int:
    """Return the steps to find equal items: the library sorts texts and numbers, and pairs up all others."""
    kinds = set(map(type, items))
    if kinds <= {str} or kinds <= {int, float}:
        return _size(items)
    return len(items) * _size(items) // _CHARS_A_STEP
