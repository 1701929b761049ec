"""
JSON Schemas (2020-12) of any origin, and values held against them. Pure.

Nothing is retrieved: a `$ref` leads to a place in the same schema. The work is bounded: patterns are matched
in linear time, and each judgement has a budget of steps. Why this is not left to a library stands in
docs/decisions/0020-json-schemas.md.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import islice
from math import isfinite
from reprlib import Repr
from typing import Any, TypeAlias, TypeGuard
from urllib.parse import unquote

from panda.documents.json_text import whole_characters
from panda.errors import SchemaError

MAX_STEPS = 200_000
"""Most steps of one judgement; a reply of a recipe takes a few hundred."""
MAX_DEPTH = 100
"""How deep schemas, and the values that they describe, may be nested."""
_MAX_SCHEMA_NODES = 50_000
_PATTERN_BYTES = 2**20
"""Memory of one compiled pattern."""
_CHARS_A_STEP = 16
_NAMES_A_STEP = 8
_VIOLATION_STEPS = 5
_SHOWN_CHARS = 200
_SHOWN_PARTS = 40
_SCHEMA_KEYS = frozenset(
    ("additionalProperties", "items", "contains", "not", "if", "then", "else", "propertyNames")
)
_SCHEMA_MAPS = frozenset(("properties", "patternProperties", "$defs", "definitions", "dependentSchemas"))
_SCHEMA_LISTS = frozenset(("allOf", "anyOf", "oneOf", "prefixItems"))
_REFUSED = frozenset(("$dynamicRef", "$recursiveRef", "unevaluatedProperties", "unevaluatedItems"))
_ALTERNATIVES = frozenset(("anyOf", "oneOf"))
_PLAIN_NAME = re.compile(r"[a-zA-Z][a-zA-Z0-9_]*")

Path: TypeAlias = tuple[str | int, ...]
"""Where something stands in a value: keys, and numbers of items from 0."""


@dataclass(frozen=True)
class Violation:
    """One way in which a value breaks a schema."""

    path: Path
    keyword: str
    message: str
    has_type: bool
    """Whether the value at least is of the type that the schema asks for."""
    context: tuple["Violation", ...] = ()
    """Why no alternative fits, of anyOf and oneOf."""

    @property
    def json_path(self) -> str:
        """The place as a JSONPath, such as `$.items[0].text`."""
        return "$" + "".join(map(_path_part, self.path))


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
            raise SchemaError(
                f"holding values against it takes more than {self._limit:,} steps",
                fix="use fewer alternatives, references and items",
            )


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
    judge = _Judge(schema, steps or Steps())
    try:
        return _most_telling(judge.violations(schema, value, ()))
    except RecursionError as exc:
        raise _too_deep() from exc


def check_schema(schema: object) -> None:
    """Raise SchemaError, with the key as a JSON pointer, where a schema is not one to judge values by."""
    _check_nodes(schema)


def _too_deep(pointer: str = "") -> SchemaError:
    return SchemaError(
        f"nested deeper than {MAX_DEPTH} levels", key=pointer or None, fix="use fewer levels of nesting"
    )


def _wrong(pointer: str, message: str, fix: str) -> SchemaError:
    return SchemaError(message, key=pointer or "/", fix=fix)


# What a schema may say


def _is_number(value: object) -> TypeGuard[int | float]:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_integer(value: object) -> bool:
    return _is_number(value) and (isinstance(value, int) or value.is_integer())


def _is_count(value: object) -> bool:
    return _is_number(value) and _is_integer(value) and value >= 0


def _is_bound(value: object) -> bool:
    return _is_number(value) and isfinite(value)


def _is_divisor(value: object) -> bool:
    return _is_number(value) and isfinite(value) and value > 0


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def _is_list(value: object) -> bool:
    return isinstance(value, list | tuple)


def _is_text_list(value: object) -> bool:
    return isinstance(value, list | tuple) and all(isinstance(part, str) for part in value)


def _is_type(value: object) -> bool:
    names = [value] if isinstance(value, str) else value
    return isinstance(names, list | tuple) and all(isinstance(name, str) and name in _TYPES for name in names)


_FORMS: Mapping[str, tuple[Callable[[object], bool], str]] = {
    "type": (_is_type, "one of array, boolean, integer, null, number, object, string, or a list of them"),
    "enum": (_is_list, "a list"),
    "required": (_is_text_list, "a list of texts"),
    "multipleOf": (_is_divisor, "a number above 0"),
    **dict.fromkeys(("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"), (_is_bound, "a number")),
    **dict.fromkeys(
        (
            *("minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties"),
            *("minContains", "maxContains"),
        ),
        (_is_count, "a whole number, 0 or more"),
    ),
    "uniqueItems": (lambda value: isinstance(value, bool), "true or false"),
    "pattern": (_is_text, "a text"),
    "$ref": (_is_text, "a text"),
    "format": (_is_text, "a text"),
    "dependentRequired": (
        lambda value: isinstance(value, Mapping) and all(map(_is_text_list, value.values())),
        "a mapping of lists of texts",
    ),
}
"""What a keyword's value must be, as a test and in words."""


def _check_nodes(root: object) -> None:
    """Check a schema with all schemas in it, and those that its references lead to."""
    checked: set[int] = set()
    waiting: list[tuple[str, object, int]] = [("", root, 1)]
    while waiting:
        place, node, depth = waiting.pop()
        if isinstance(node, bool) or id(node) in checked:
            continue
        if not isinstance(node, Mapping):
            raise _wrong(place, f"a schema is a mapping, true or false, not {_show(node)}", "write one")
        if depth > MAX_DEPTH:
            raise _too_deep(place[:_SHOWN_CHARS])
        checked.add(id(node))
        if len(checked) > _MAX_SCHEMA_NODES:
            raise _wrong("", f"more than {_MAX_SCHEMA_NODES:,} schemas in one", "make it simpler")
        for key, value in node.items():
            waiting += [(below, part, depth + 1) for below, part in _parts(f"{place}/{key}", key, value)]
            if key == "$ref":
                target = _look_up(root, value, f"{place}/{key}")
                waiting.append((value.removeprefix("#"), target, 1))


def _parts(place: str, key: object, value: Any) -> Iterator[tuple[str, object]]:
    """The schemas in the value of one keyword, each with its place; raises SchemaError for a wrong value."""
    if key in _REFUSED:
        raise _wrong(place, f"{key} is not supported", "say it with properties, items, $ref and anyOf")
    if key in _SCHEMA_KEYS:
        yield place, value
    elif key in _SCHEMA_MAPS:
        if not isinstance(value, Mapping):
            raise _wrong(place, f"{key} must be a mapping, not {_show(value)}", "give a mapping of schemas")
        for name, part in value.items():
            if key == "patternProperties":
                _compile_pattern(name, f"{place}/{name}")
            yield f"{place}/{name}", part
    elif key in _SCHEMA_LISTS:
        if not isinstance(value, list | tuple) or not value:
            message = f"{key} must be a list of schemas, not {_show(value)}"
            raise _wrong(place, message, "give at least one schema")
        for number, part in enumerate(value):
            yield f"{place}/{number}", part
    elif isinstance(key, str) and key in _FORMS:
        fits, form = _FORMS[key]
        if not fits(value):
            raise _wrong(place, f"{key} must be {form}, not {_show(value)}", f"give {form}")
        if key == "pattern":
            _compile_pattern(value, place)


@lru_cache(maxsize=256)
def _compile_pattern(pattern: str, place: str = "") -> Any:
    """The pattern for an engine that takes linear time; a SchemaError where it has none."""
    import re2  # loaded where a schema has a pattern

    options = re2.Options()
    options.log_errors = False
    options.max_mem = _PATTERN_BYTES
    try:
        return re2.compile(_as_re2(pattern), options=options)
    except re2.error as exc:
        reason = exc.args[0] if exc.args else exc
        said = reason.decode("utf-8", "replace") if isinstance(reason, bytes) else str(reason)
        message = f"the pattern {_show(pattern)} cannot be matched in linear time: {said:.100}"
        fix = "use no look-around, no references to groups and no repetition above 1,000"
        raise _wrong(place, f"{message} (look-around and references to groups cannot)", fix) from exc


def _as_re2(pattern: str) -> str:
    r"""
    A pattern with characters of ECMAScript by their number as RE2 writes them.

    >>> _as_re2(r"\u00e9\\u00e9")
    '\\x{00e9}\\\\u00e9'
    """
    return re.sub(
        r"\\(?:u([0-9a-fA-F]{4})|.)",
        lambda found: f"\\x{{{found[1]}}}" if found[1] else found[0],
        whole_characters(pattern),
        flags=re.DOTALL,
    )


# Values held against it


class _Judge:
    """One schema, with what has been worked out of it; *steps* are spent."""

    def __init__(self, root: Mapping[str, Any], steps: Steps) -> None:
        self._root = root
        self.steps = steps
        self._enums: dict[int, frozenset[str]] = {}
        self._targets: dict[str, Any] = {}
        self._open: set[tuple[int, int]] = set()
        """References that are being followed: schema and value, by their ids."""
        self._depth = 0
        _check_nodes(root)

    def violations(self, schema: Any, value: object, path: Path) -> list[Violation]:
        """All ways in which a value breaks a schema, in the order of its keywords."""
        if schema is True:
            return []
        if schema is False:
            return [Violation(path, "false", f"False schema does not allow {_show(value)}", False)]
        self._depth += 1
        if self._depth > 2 * MAX_DEPTH:
            raise _too_deep()
        self.steps.spend(1 + len(schema))
        judgement = _Judgement(self, schema, value, path)
        broken: list[Violation] = []
        for keyword, argument in schema.items():
            if check := _KEYWORDS.get(keyword):
                broken += check(judgement, argument)
        self._depth -= 1
        return broken

    def matches(self, pattern: str, text: str) -> bool:
        self.steps.spend(1 + len(text) // _CHARS_A_STEP)
        return _compile_pattern(pattern).search(whole_characters(text)) is not None

    def canonical(self, value: object) -> str:
        """The same text for equal values alone."""
        parts: list[str] = []
        self._write(value, parts)
        return "".join(parts)

    def _write(self, value: object, parts: list[str]) -> None:
        self.steps.spend(1)
        if isinstance(value, str):
            self.steps.spend(len(value) // _CHARS_A_STEP)
            parts.append(f"{len(value)}:{value}")
        elif isinstance(value, list | tuple):
            parts.append("[")
            for part in value:
                self._write(part, parts)
            parts.append("]")
        elif isinstance(value, Mapping):
            parts.append("{")
            for name in sorted(value, key=str):
                self._write(str(name), parts)
                self._write(value[name], parts)
            parts.append("}")
        elif isinstance(value, bool) or value is None:
            parts.append(f"{value};")
        elif isinstance(value, float) and not value.is_integer():
            parts.append(f"{value!r};")
        elif isinstance(value, int | float):
            parts.append(f"{int(value):x};")  # decimal digits of large numbers take too long
        else:
            parts.append(f"{value!r};")

    def options(self, enum: Sequence[object]) -> frozenset[str]:
        if id(enum) not in self._enums:
            self._enums[id(enum)] = frozenset(map(self.canonical, enum))
        return self._enums[id(enum)]

    def follow(self, reference: str, value: object, path: Path) -> list[Violation]:
        """The violations of the schema that a reference leads to."""
        target = self._target(reference)
        place = id(target), id(value)
        if place in self._open:
            message = f"the reference {_show(reference)} leads to itself without end"
            raise _wrong("", message, "let it lead to something smaller")
        self._open.add(place)
        broken = self.violations(target, value, path)
        self._open.discard(place)
        return broken

    def _target(self, reference: str) -> Any:
        self.steps.spend(1 + len(reference) // _CHARS_A_STEP)
        if reference not in self._targets:
            self._targets[reference] = _look_up(self._root, reference)
        return self._targets[reference]


def _look_up(root: Any, reference: str, place: str = "") -> Any:
    """What stands in a schema at a reference such as `#/$defs/name`."""
    if reference != "#" and not reference.startswith("#/"):
        message = f"the reference {_show(reference)} leads out of the schema, and nothing is retrieved"
        raise _wrong(place, message, "put what it names under $defs, and refer to it as #/$defs/NAME")
    target = root
    for part in reference.split("/")[1:]:
        name = unquote(part).replace("~1", "/").replace("~0", "~")
        if isinstance(target, Mapping) and name in target:
            target = target[name]
        elif isinstance(target, list | tuple) and name.isdecimal() and name.isascii() and len(name) < 8:
            target = target[int(name)] if int(name) < len(target) else None
        else:
            target = None
        if target is None:
            fix = "put what it names under $defs"
            raise _wrong(place, f"the reference {_show(reference)} leads to nothing", fix)
    return target


_TYPES: Mapping[str, Callable[[object], bool]] = {
    "array": _is_list,
    "boolean": lambda value: isinstance(value, bool),
    "integer": _is_integer,
    "null": lambda value: value is None,
    "number": _is_number,
    "object": lambda value: isinstance(value, Mapping),
    "string": _is_text,
}


class _Judgement:
    """One value held against one schema; each method judges by one keyword, whose argument it is given."""

    def __init__(self, judge: _Judge, schema: Mapping[str, Any], value: Any, path: Path) -> None:
        self._judge = judge
        self._schema = schema
        self._value = value
        self._path = path

    def _broken(self, keyword: str, message: str, context: Sequence[Violation] = ()) -> list[Violation]:
        self._judge.steps.spend(_VIOLATION_STEPS)
        types = _as_list(self._schema.get("type", ()))
        has_type = any(_TYPES[name](self._value) for name in types)
        return [Violation(self._path, keyword, message, has_type, tuple(context))]

    def _inner(self, schema: Any, value: object, *below: str | int) -> list[Violation]:
        return self._judge.violations(schema, value, (*self._path, *below))

    def _is_valid(self, schema: Any, value: object) -> bool:
        return not self._judge.violations(schema, value, ())

    # any value

    def type(self, names: str | Sequence[str]) -> list[Violation]:
        if any(_TYPES[name](self._value) for name in _as_list(names)):
            return []
        told = ", ".join(map(repr, _as_list(names)))
        return self._broken("type", f"{_show(self._value)} is not of type {told}")

    def enum(self, options: Sequence[object]) -> list[Violation]:
        if self._judge.canonical(self._value) in self._judge.options(options):
            return []
        return self._broken("enum", f"{_show(self._value)} is not one of {_show(options)}")

    def const(self, wanted: object) -> list[Violation]:
        if self._judge.canonical(self._value) == self._judge.canonical(wanted):
            return []
        return self._broken("const", f"{_show(wanted)} was expected")

    # numbers

    def minimum(self, least: float) -> list[Violation]:
        if not _is_number(self._value) or self._value >= least:
            return []
        return self._broken("minimum", f"{_show(self._value)} is less than the minimum of {_show(least)}")

    def maximum(self, most: float) -> list[Violation]:
        if not _is_number(self._value) or self._value <= most:
            return []
        return self._broken("maximum", f"{_show(self._value)} is greater than the maximum of {_show(most)}")

    def exclusive_minimum(self, bound: float) -> list[Violation]:
        if not _is_number(self._value) or self._value > bound:
            return []
        message = f"{_show(self._value)} is less than or equal to the minimum of {_show(bound)}"
        return self._broken("exclusiveMinimum", message)

    def exclusive_maximum(self, bound: float) -> list[Violation]:
        if not _is_number(self._value) or self._value < bound:
            return []
        message = f"{_show(self._value)} is greater than or equal to the maximum of {_show(bound)}"
        return self._broken("exclusiveMaximum", message)

    def multiple_of(self, divisor: float) -> list[Violation]:
        value = self._value
        if not _is_number(value):
            return []
        is_multiple = False
        if isinstance(value, int) and isinstance(divisor, int):
            is_multiple = value % divisor == 0
        elif isfinite(value) and isfinite(divisor):  # as both are written: 0.3 is a multiple of 0.1
            is_multiple = (Fraction(repr(value)) / Fraction(repr(divisor))).denominator == 1
        if is_multiple:
            return []
        return self._broken("multipleOf", f"{_show(value)} is not a multiple of {divisor}")

    # texts

    def min_length(self, least: int) -> list[Violation]:
        return self._too_short("minLength", str, least)

    def max_length(self, most: int) -> list[Violation]:
        return self._too_long("maxLength", str, most)

    def pattern(self, pattern: str) -> list[Violation]:
        if not isinstance(self._value, str) or self._judge.matches(pattern, self._value):
            return []
        return self._broken("pattern", f"{_show(self._value)} does not match {_show(pattern)}")

    def _too_short(self, keyword: str, kind: Any, least: int) -> list[Violation]:
        if not isinstance(self._value, kind) or len(self._value) >= least:
            return []
        told = "should be non-empty" if least == 1 else "is too short"
        return self._broken(keyword, f"{_show(self._value)} {told}")

    def _too_long(self, keyword: str, kind: Any, most: int) -> list[Violation]:
        if not isinstance(self._value, kind) or len(self._value) <= most:
            return []
        told = "is expected to be empty" if most == 0 else "is too long"
        return self._broken(keyword, f"{_show(self._value)} {told}")

    # lists

    def min_items(self, least: int) -> list[Violation]:
        return self._too_short("minItems", list | tuple, least)

    def max_items(self, most: int) -> list[Violation]:
        return self._too_long("maxItems", list | tuple, most)

    def unique_items(self, is_wanted: bool) -> list[Violation]:
        if not is_wanted or not _is_list(self._value):
            return []
        if len(set(map(self._judge.canonical, self._value))) == len(self._value):
            return []
        return self._broken("uniqueItems", f"{_show(self._value)} has non-unique elements")

    def prefix_items(self, schemas: Sequence[Any]) -> list[Violation]:
        if not _is_list(self._value):
            return []
        pairs = enumerate(zip(schemas, self._value, strict=False))
        return [broken for at, (schema, item) in pairs for broken in self._inner(schema, item, at)]

    def items(self, schema: Any) -> list[Violation]:
        first = len(self._schema.get("prefixItems", ()))
        if not _is_list(self._value) or len(self._value) <= first:
            return []
        if schema is not False:
            items = enumerate(islice(self._value, first, None), first)
            return [broken for at, item in items for broken in self._inner(schema, item, at)]
        extra = len(self._value) - first
        noun = "item" if first == 1 else "items"
        rest = self._value[first] if extra == 1 else self._value[first:]
        message = f"Expected at most {first} {noun} but found {extra} extra: {_show(rest)}"
        return self._broken("items", message)

    def contains(self, schema: Any) -> list[Violation]:
        if not _is_list(self._value):
            return []
        count = sum(self._is_valid(schema, item) for item in self._value)
        least = self._schema.get("minContains", 1)
        most = self._schema.get("maxContains", len(self._value))
        if least <= count <= most:
            return []
        message = f"{_show(self._value)} does not contain items matching the given schema"
        if count or least > 1:
            message = f"{count} items match the given schema (expected {least} to {most})"
        return self._broken("contains", message)

    # mappings

    def min_properties(self, least: int) -> list[Violation]:
        if not isinstance(self._value, Mapping) or len(self._value) >= least:
            return []
        told = "should be non-empty" if least == 1 else "does not have enough properties"
        return self._broken("minProperties", f"{_show(self._value)} {told}")

    def max_properties(self, most: int) -> list[Violation]:
        if not isinstance(self._value, Mapping) or len(self._value) <= most:
            return []
        told = "is expected to be empty" if most == 0 else "has too many properties"
        return self._broken("maxProperties", f"{_show(self._value)} {told}")

    def properties(self, schemas: Mapping[str, Any]) -> list[Violation]:
        if not isinstance(self._value, Mapping):
            return []
        self._judge.steps.spend(len(schemas) // _NAMES_A_STEP)
        names = [name for name in schemas if name in self._value]
        return [broken for name in names for broken in self._inner(schemas[name], self._value[name], name)]

    def pattern_properties(self, schemas: Mapping[str, Any]) -> list[Violation]:
        if not isinstance(self._value, Mapping):
            return []
        return [
            broken
            for pattern, schema in schemas.items()
            for name, part in self._value.items()
            if self._judge.matches(pattern, str(name))
            for broken in self._inner(schema, part, name)
        ]

    def additional_properties(self, schema: Any) -> list[Violation]:
        if not isinstance(self._value, Mapping):
            return []
        named = self._schema.get("properties", {})
        patterns = self._schema.get("patternProperties", {})
        self._judge.steps.spend(len(self._value) // _NAMES_A_STEP)
        extras = [
            name
            for name in self._value
            if name not in named and not any(self._judge.matches(pattern, str(name)) for pattern in patterns)
        ]
        if schema is not False:
            return [broken for name in extras for broken in self._inner(schema, self._value[name], name)]
        if not extras:
            return []
        told = ", ".join(map(_show, sorted(map(str, extras))[:_SHOWN_PARTS]))
        verb = "was" if len(extras) == 1 else "were"
        message = f"Additional properties are not allowed ({told} {verb} unexpected)"
        if patterns:
            verb = "does" if len(extras) == 1 else "do"
            forms = ", ".join(map(_show, sorted(patterns)[:_SHOWN_PARTS]))
            message = f"{told} {verb} not match any of the regexes: {forms}"
        return self._broken("additionalProperties", message)

    def property_names(self, schema: Any) -> list[Violation]:
        names = self._value if isinstance(self._value, Mapping) else ()
        return [broken for name in names for broken in self._inner(schema, name)]

    def required(self, names: Sequence[str]) -> list[Violation]:
        if not isinstance(self._value, Mapping):
            return []
        self._judge.steps.spend(len(names) // _NAMES_A_STEP)
        missing = [name for name in names if name not in self._value]
        return [
            broken
            for name in missing
            for broken in self._broken("required", f"{_show(name)} is a required property")
        ]

    def dependent_required(self, names_by_property: Mapping[str, Sequence[str]]) -> list[Violation]:
        if not isinstance(self._value, Mapping):
            return []
        broken: list[Violation] = []
        for name, needed in names_by_property.items():
            self._judge.steps.spend(1 + len(needed) // _NAMES_A_STEP)
            for other in needed if name in self._value else ():
                if other not in self._value:
                    message = f"{_show(other)} is a dependency of {_show(name)}"
                    broken += self._broken("dependentRequired", message)
        return broken

    def dependent_schemas(self, schemas: Mapping[str, Any]) -> list[Violation]:
        names = [name for name in schemas if isinstance(self._value, Mapping) and name in self._value]
        return [broken for name in names for broken in self._inner(schemas[name], self._value)]

    # several schemas

    def ref(self, reference: str) -> list[Violation]:
        return self._judge.follow(reference, self._value, self._path)

    def all_of(self, schemas: Sequence[Any]) -> list[Violation]:
        return [broken for schema in schemas for broken in self._inner(schema, self._value)]

    def any_of(self, schemas: Sequence[Any]) -> list[Violation]:
        return self._no_alternative("anyOf", schemas)

    def one_of(self, schemas: Sequence[Any]) -> list[Violation]:
        if broken := self._no_alternative("oneOf", schemas):
            return broken
        fitting = [schema for schema in schemas if self._is_valid(schema, self._value)]
        if len(fitting) == 1:
            return []
        told = ", ".join(map(_show, fitting[:_SHOWN_PARTS]))
        return self._broken("oneOf", f"{_show(self._value)} is valid under each of {told}")

    def _no_alternative(self, keyword: str, schemas: Sequence[Any]) -> list[Violation]:
        context: list[Violation] = []
        for schema in schemas:
            broken = self._inner(schema, self._value)
            if not broken:
                return []
            context += broken
        message = f"{_show(self._value)} is not valid under any of the given schemas"
        return self._broken(keyword, message, context)

    def not_(self, schema: Any) -> list[Violation]:
        if not self._is_valid(schema, self._value):
            return []
        return self._broken("not", f"{_show(self._value)} should not be valid under {_show(schema)}")

    def if_(self, schema: Any) -> list[Violation]:
        branch = "then" if self._is_valid(schema, self._value) else "else"
        return self._inner(self._schema.get(branch, True), self._value)


def _as_list(names: str | Sequence[str]) -> Sequence[str]:
    return [names] if isinstance(names, str) else names


_KEYWORDS: Mapping[str, Callable[[_Judgement, Any], list[Violation]]] = {
    "type": _Judgement.type,
    "enum": _Judgement.enum,
    "const": _Judgement.const,
    "minimum": _Judgement.minimum,
    "maximum": _Judgement.maximum,
    "exclusiveMinimum": _Judgement.exclusive_minimum,
    "exclusiveMaximum": _Judgement.exclusive_maximum,
    "multipleOf": _Judgement.multiple_of,
    "minLength": _Judgement.min_length,
    "maxLength": _Judgement.max_length,
    "pattern": _Judgement.pattern,
    "minItems": _Judgement.min_items,
    "maxItems": _Judgement.max_items,
    "uniqueItems": _Judgement.unique_items,
    "prefixItems": _Judgement.prefix_items,
    "items": _Judgement.items,
    "contains": _Judgement.contains,
    "minProperties": _Judgement.min_properties,
    "maxProperties": _Judgement.max_properties,
    "properties": _Judgement.properties,
    "patternProperties": _Judgement.pattern_properties,
    "additionalProperties": _Judgement.additional_properties,
    "propertyNames": _Judgement.property_names,
    "required": _Judgement.required,
    "dependentRequired": _Judgement.dependent_required,
    "dependentSchemas": _Judgement.dependent_schemas,
    "$ref": _Judgement.ref,
    "allOf": _Judgement.all_of,
    "anyOf": _Judgement.any_of,
    "oneOf": _Judgement.one_of,
    "not": _Judgement.not_,
    "if": _Judgement.if_,
}


# What is told of a violation


def _relevance(broken: Violation) -> tuple[object, ...]:
    path = tuple((isinstance(part, str), part) for part in broken.path)
    return -len(path), path, broken.keyword not in _ALTERNATIVES, not broken.has_type


def _most_telling(violations: Sequence[Violation]) -> Violation | None:
    """The violation highest up in the value; where no alternative fits, the deepest reason why, if one is."""
    best = max(violations, key=_relevance, default=None)
    while best is not None and best.context:
        closest, *others = sorted(best.context, key=_relevance)[:2]
        if others and _relevance(others[0]) == _relevance(closest):
            return best
        best = closest
    return best


def _path_part(part: str | int) -> str:
    if isinstance(part, int):
        return f"[{part}]"
    escaped = part.replace("\\", "\\\\").replace("'", "\\'")
    return f".{part}" if _PLAIN_NAME.fullmatch(part) else f"['{escaped}']"


class _Shown(Repr):
    """Values as Python writes them; of large ones the beginning, at the cost of a small one."""

    def __init__(self) -> None:
        super().__init__()
        self.maxlevel = 6
        self.maxlist = self.maxtuple = self.maxdict = _SHOWN_PARTS
        self.maxstring = self.maxother = _SHOWN_CHARS

    def repr_int(self, x: int, level: int) -> str:
        return repr(x) if x.bit_length() < 1000 else f"a number of {x.bit_length():,} bits"

    def repr_dict(self, x: dict[Any, Any], level: int) -> str:
        if level <= 0 and x:
            return "{...}"
        pairs = [
            f"{self.repr1(name, level - 1)}: {self.repr1(part, level - 1)}"
            for name, part in islice(x.items(), self.maxdict)
        ]
        if len(x) > self.maxdict:
            pairs.append("...")
        return "{" + ", ".join(pairs) + "}"


_show = _Shown().repr
