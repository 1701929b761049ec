"""Records to plain JSON values and back, with every wrong key named, and the JSON Schema of a record."""

import dataclasses
from collections.abc import Mapping
from datetime import datetime
from difflib import get_close_matches
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

import msgspec

from panda.documents.text import ID_PATTERN, PATH_FIX
from panda.documents.times import render_time
from panda.errors import FileFormatError

_T = TypeVar("_T")
_PLACE = " - at `$"
_MISSING, _STRANGE = "Object missing required field `", "Object contains unknown field `"
"""How msgspec says where something is wrong, what is not there, and what should not be there."""
_TIME = r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)$"
Time = Annotated[str, msgspec.Meta(pattern=_TIME)]
"""An instant, as text."""
_NAME = r"^(?!\.{0,2}\Z)[^/\x00\n]+\Z"
_BELOW = r"^(?!/|([^\x00]*/)?\.\.(/|\Z))[^\x00\n]+\Z"
Id = Annotated[str, msgspec.Meta(pattern=ID_PATTERN)]
"""A user or session id."""
Name = Annotated[str, msgspec.Meta(pattern=_NAME)]
"""The name of a file or directory, without the way to it."""
Place = Annotated[str, msgspec.Meta(pattern=_BELOW)]
"""A path below the directory that it counts from."""
PATH_RULES: Mapping[str, str] = {
    ID_PATTERN: "no user or session id, which has 1 to 64 of a-z, 0-9, _ and -",
    _NAME: "no plain name of a file or directory",
    _BELOW: "no path below its own directory",
}
"""What a text that becomes a path is where it breaks the pattern of its type: no file leads elsewhere."""
_PLAIN: Mapping[Any, Mapping[str, Any]] = {
    Any: {},
    str: {"type": "string"},
    int: {"type": "integer"},
    float: {"type": "number"},
    bool: {"type": "boolean"},
    NoneType: {"type": "null"},
    datetime: {"type": "string", "pattern": _TIME},
}
_KEYWORDS = {"ge": "minimum", "le": "maximum", "pattern": "pattern", "min_length": "minLength"}
"""Keywords of JSON Schema for the limits of msgspec.Meta."""


class Record(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """What a JSON file, or an object in it, holds. Keys with a default may be missing."""


def encode(value: Any) -> Any:
    """A record, or anything that it may hold, as plain JSON values: tuples are lists, instants are texts."""
    return _listed(msgspec.to_builtins(value, builtin_types=(datetime,)))


def _listed(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _listed(part) for key, part in value.items()}
    if isinstance(value, datetime):
        return render_time(value)
    return [_listed(part) for part in value] if isinstance(value, list | tuple) else value


def decode(cls: type[_T], value: object, *, where: str, key: str = "") -> _T:
    """
    A record out of plain JSON values.

    Args:
        cls: A Record, or a frozen dataclass.
        value: As encode gives it; keys with a default may be missing.
        key: Place in the file, for errors.

    Raises:
        FileFormatError: A key is unknown, missing or of the wrong type; names it.
    """
    try:
        found = msgspec.convert(value, cls, str_keys=True)
    except msgspec.ValidationError as exc:
        message, _, place = str(exc).partition(_PLACE)
        place, fix = place.removesuffix("`"), None
        for start, shown in ((_MISSING, "{} is missing"), (_STRANGE, "unknown key {!r:.60}")):
            if message.startswith(start):
                name = message.removeprefix(start).removesuffix("`")
                message, place = shown.format(name), f"{place}.{name:.60}"
                fix = _nearest(name, cls) if start == _STRANGE else f"add {name}"
        rule = next((rule for form, rule in PATH_RULES.items() if message.endswith(repr(form))), None)
        raise _error(rule or message, where, key + place, PATH_FIX if rule else fix) from None
    if not dataclasses.is_dataclass(cls):
        return found
    if (unknown := _unknown(value, msgspec.to_builtins(found, str_keys=True))) is not None:
        name = unknown.rpartition(".")[2]
        raise _error(f"unknown key {name!r:.60}", where, key + unknown, _nearest(name, cls))
    return found


def _unknown(value: Any, known: Any) -> str | None:
    """The place of the first key that the record does not have; None if there is none."""
    if isinstance(value, dict):
        pairs = [(f".{name:.60}", part, known.get(name, known)) for name, part in value.items()]
        if (strange := next((name for name in value if name not in known), None)) is not None:
            return f".{strange:.60}"
    elif isinstance(value, list):
        pairs = [(f"[{at}]", *both) for at, both in enumerate(zip(value, known, strict=True))]
    else:
        return None
    found = ((place, _unknown(part, other)) for place, part, other in pairs)
    return next((place + deeper for place, deeper in found if deeper is not None), None)


def _error(message: str, where: str, place: str, fix: str | None = None) -> FileFormatError:
    return FileFormatError(message, where=f"{where} ({place.removeprefix('.')})" if place else where, fix=fix)


def _nearest(name: str, cls: Any) -> str:
    """What is to be done about a key that a record and those in it do not have."""
    known, schemas = dict[str, None](), [schema_of(cls)]
    while schemas:
        schema = schemas.pop()
        known |= dict.fromkeys(schema.get("properties", ()))
        schemas += [part for part in schema.get("properties", {}).values() if isinstance(part, dict)]
        schemas += [schema["items"]] if isinstance(schema.get("items"), dict) else []
    near = get_close_matches(name, known, n=1)
    return f"did you mean {near[0]}?" if near else f"the keys that there are: {', '.join(known)}"


def schema_of(hint: Any) -> dict[str, Any]:
    """
    The JSON Schema (2020-12) of a record, or of a type that a record may hold.

    A key is required if it has no default, or one possible value. Keys that a record does not have are
    refused, but by a Record with forbid_unknown_fields=False.

    >>> schema_of(tuple[Literal["a", "b"] | None, ...])
    {'type': 'array', 'items': {'enum': ['a', 'b', None]}}
    """
    if hint in _PLAIN:
        return dict(_PLAIN[hint])
    origin, parts = get_origin(hint), get_args(hint)
    if origin is Annotated:
        return _limited(schema_of(parts[0]), parts[1])
    if origin is Literal:
        return {"const": parts[0]} if len(parts) == 1 else {"enum": list(parts)}
    if origin in (Union, UnionType):
        return _united([schema_of(part) for part in parts if part is not msgspec.UnsetType])
    if origin is tuple:
        many = {} if parts[-1] is ... else {"minItems": len(parts), "maxItems": len(parts)}
        return {"type": "array", "items": schema_of(parts[0]), **many}
    return _object(hint) if origin is None else {"type": "object", **_keyed(*map(schema_of, parts))}


def _limited(schema: dict[str, Any], limits: msgspec.Meta) -> dict[str, Any]:
    given = {word: getattr(limits, key) for key, word in _KEYWORDS.items()}
    if schema.get("type") == "array":
        given["minItems"] = given.pop("minLength")
    words = {word: limit for word, limit in given.items() if limit is not None}
    return {**schema, **words, **(limits.extra_json_schema or {})}


def _united(schemas: list[dict[str, Any]]) -> dict[str, Any]:
    """A schema for what fits one of several: of one object where no two types meet."""
    first, *others = schemas
    if "enum" in first and others == [_PLAIN[NoneType]]:
        return {"enum": [*first["enum"], None]}
    if not others:
        return first
    types = [schema.get("type") for schema in schemas]
    if (kind := _kind_key(schemas)) is not None:
        kinds = [schema["properties"][kind] for schema in schemas]
        cases = [
            {"if": {"properties": {kind: is_}}, "then": one} for is_, one in zip(kinds, schemas, strict=True)
        ]
        options = {kind: {"enum": [one["const"] for one in kinds]}}
        return {"type": "object", "properties": options, "required": [kind], "allOf": cases}
    if not all(isinstance(one, str) for one in types) or types.count("object") > 1:
        return {"anyOf": schemas}
    return {key: part for schema in schemas for key, part in schema.items()} | {"type": types}


def _kind_key(schemas: list[dict[str, Any]]) -> str | None:
    """The key by whose one value each of several records is known."""
    keys = [
        {key for key, part in schema.get("properties", {}).items() if "const" in part} for schema in schemas
    ]
    return next(iter(set.intersection(*keys)), None)


def _object(cls: Any) -> dict[str, Any]:
    schemas = {name: schema_of(hint) for name, hint in get_type_hints(cls, include_extras=True).items()}
    if dataclasses.is_dataclass(cls):
        required = [
            field.name
            for field in dataclasses.fields(cls)
            if field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING
        ]
        is_open = False
    else:
        required = [field.name for field in msgspec.structs.fields(cls) if field.required]
        is_open = not cls.__struct_config__.forbid_unknown_fields
    required += [name for name, schema in schemas.items() if "const" in schema and name not in required]
    closed = {} if is_open else {"additionalProperties": False}
    return {"type": "object", "properties": schemas, "required": required, **closed}


def _keyed(keys: dict[str, Any], values: dict[str, Any]) -> dict[str, Any]:
    """The keywords of an object whose keys are of one type, and its values of another."""
    if "enum" in keys:
        return {"properties": dict.fromkeys(keys["enum"], values), "additionalProperties": False}
    if "pattern" in keys:
        return {"patternProperties": {keys["pattern"]: values}, "additionalProperties": False}
    return {"additionalProperties": values} if values else {}
