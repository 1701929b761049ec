"""Values of files as records: read with every fault told by its key, written as plain JSON values."""

import dataclasses
from collections.abc import Collection, Mapping
from datetime import UTC, datetime
from enum import StrEnum
from functools import cache
from types import UnionType
from typing import Annotated, Any, Literal, TypeVar, Union, cast, get_args, get_origin, get_type_hints

import msgspec
from msgspec import Meta

from panda.documents.safe_text import ID_PATTERN, PATH_FIX, nearest
from panda.documents.times import render_time
from panda.errors import FileFormatError, Problem

_T = TypeVar("_T")
Time = Annotated[
    str,
    Meta(
        pattern=r"^(?!000[01]|9999)\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)$",
        description="an instant of the years 2 to 9998, such as 2026-01-04T14:30:00Z",
    ),
]
_FIRST_YEAR = 2
_LAST_YEAR = 9998
_LEADS_NOWHERE = {"fix": PATH_FIX}
_ID_FORM = "a user or session id of 1 to 64 of a-z, 0-9, _ and -"
Words = Annotated[str, Meta(pattern=r"^\s*[^\s\x00][^\x00]*\Z", description="a text")]
"""A text that is more than white space."""
Id = Annotated[str, Meta(pattern=ID_PATTERN, description=_ID_FORM, extra=_LEADS_NOWHERE)]
"""A user or session id."""
_NAME = r"^(?!\.{0,2}\Z)[^/\x00\n]+\Z"
Name = Annotated[
    str, Meta(pattern=_NAME, description="a plain name of a file or directory", extra=_LEADS_NOWHERE)
]
"""The name of a file or directory, without the way to it."""
_BELOW = r"^(?!/|([^\x00]*/)?\.\.(/|\Z))[^\x00\n]+\Z"
Place = Annotated[
    str, Meta(pattern=_BELOW, description="a path below its own directory", extra=_LEADS_NOWHERE)
]
"""A path below the directory that it counts from."""


class Record(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """What a file, or a mapping in it, holds. Keys with a default may be missing."""


def check_instant(name: str, moment: object, *, is_counted_from: bool = False) -> None:
    """
    Raises ValueError for an instant of a field that no UTC time is, or, where days are counted from it, that
    leaves no room to.
    """
    if not isinstance(moment, datetime):
        return
    first = _FIRST_YEAR if is_counted_from else 1
    last = _LAST_YEAR if is_counted_from else 9999
    try:
        is_within = first <= moment.year <= last and moment.astimezone(UTC).year > 0
    except OverflowError:
        is_within = False
    if not is_within:
        raise ValueError(f"{name} lies outside the years {first} to {last} in UTC")


class Whole(Record, frozen=True, omit_defaults=False):
    """The same, with all keys written."""


def encode(value: Any) -> Any:
    """A record, or anything that it may hold, as plain JSON values: tuples are lists, instants are texts."""
    return _listed(msgspec.to_builtins(value, builtin_types=(datetime,)))


def _listed(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _listed(part) for key, part in value.items()}
    if isinstance(value, datetime):
        return render_time(value)
    return [_listed(part) for part in value] if isinstance(value, list | tuple) else value


def decode(
    cls: type[_T],
    value: object,
    *,
    where: str,
    key: str = "",
    fault: type[Problem] = FileFormatError,
    text: str | None = None,
) -> _T:
    """
    A record, a frozen dataclass, or any type of one of their fields, out of plain JSON values.

    Args:
        key: Place in the file, for errors.
        text: The YAML text that the value was read from; tells the line of a fault.

    Raises:
        fault: A key is unknown, missing or of the wrong type; names it. The `description` in the Meta of a
            field says what it must be.
    """
    try:
        record = convert(cls, value)
        first_fault = _first_fault(cls, value, key) if dataclasses.is_dataclass(cls) else None
    except msgspec.ValidationError as exc:
        first_fault = _first_fault(cls, value, key) or (key, str(exc), None)
    if first_fault is None:
        return record
    place, message, fix = first_fault
    if text is None:
        raise fault(message, where, key=place or None, fix=fix)
    from panda.documents.yaml_text import line_of  # it loads yaml, and help must not

    raise fault(message, where, line=line_of(text, place), key=place or "top level", fix=fix)


def convert(cls: type[_T], value: object) -> _T:
    """A value of a type out of plain ones; what is one already stays (msgspec.ValidationError)."""
    return msgspec.convert(value, cls, str_keys=True, dec_hook=lambda kind, part: part)


_Fault = tuple[str, str, str | None]
"""Key, message and fix."""


def _first_fault(kind: Any, value: Any, key: str) -> _Fault | None:
    """The first thing in a value that is not of its type, as deep as it can be told; None if it fits."""
    for member in _members(kind):
        member = get_args(member)[0] if get_origin(member) is Annotated else member
        inner = get_args(member)
        origin = get_origin(member) or member
        parts: list[tuple[Any, Any, str]] = []  # type, value and key of what the value consists of
        names: Collection[str] = ()  # keys that it may have; of none given, any
        missing: list[str] = []
        if isinstance(value, dict) and _is_record(member):
            config = getattr(member, "__struct_config__", None)
            if config and config.tag is not None and value.get(config.tag_field) != config.tag:
                continue  # another member is meant
            types_by_key, required = _fields(member)
            names = types_by_key if config is None or config.forbid_unknown_fields else ()
            missing = [name for name in required if name not in value]
            parts = [
                (types_by_key[name], part, _below(key, name))
                for name, part in value.items()
                if name in types_by_key
            ]
        elif isinstance(value, dict) and origin in (dict, Mapping) and inner:
            names = get_args(inner[0]) if get_origin(inner[0]) is Literal else ()
            parts = [(inner[1], part, _below(key, name)) for name, part in value.items()]
        elif isinstance(value, list) and origin in (list, tuple) and inner:
            types = inner[:1] * len(value) if origin is list or inner[-1] is Ellipsis else inner
            items = zip(types, value, strict=False)
            parts = [(of, part, f"{key}[{at}]") for at, (of, part) in enumerate(items)]
        if unknown := [name for name in value if name not in names] if names else ():
            return _below(key, unknown[0]), f"unknown key {unknown[0]!r:.60}", nearest(unknown[0], names)
        if missing:
            return _below(key, missing[0]), f"{missing[0]} is missing", f"add {missing[0]}"
        for part in parts:
            if first_fault := _first_fault(*part):
                return first_fault
        if parts:
            break
    try:
        convert(kind, value)
    except msgspec.ValidationError as exc:
        name = str(exc).split(" ", 1)[0]  # a __post_init__ names the key first
        is_key = isinstance(value, dict) and any(
            name in _fields(m)[0] for m in _members(kind) if _is_record(m)
        )
        return _below(key, name) if is_key else key, *_describe_type_fault(kind, value, key, str(exc))
    return None


def _members(kind: Any) -> tuple[Any, ...]:
    return get_args(kind) if get_origin(kind) in (Union, UnionType) else (kind,)


def _is_record(kind: Any) -> bool:
    return isinstance(kind, type) and (issubclass(kind, msgspec.Struct) or dataclasses.is_dataclass(kind))


def _below(key: str, name: str) -> str:
    return f"{key}.{name:.60}".removeprefix(".")


@cache
def _fields(cls: type) -> tuple[dict[str, Any], list[str]]:
    """The types of a record's keys, with that of its tag, and the keys that must be there."""
    hints = get_type_hints(cls, include_extras=True)
    info = cast(Any, msgspec.inspect.type_info(cls))
    types_by_key = {field.encode_name: hints[field.name] for field in info.fields}
    if getattr(info, "tag_field", None):
        types_by_key[info.tag_field] = Any
    return types_by_key, [field.encode_name for field in info.fields if field.required]


def _describe_type_fault(kind: Any, value: object, key: str, otherwise: str) -> tuple[str, str | None]:
    """Message and fix for a value that is not of its type."""
    name = key.rpartition(".")[2] or "the file"
    members = [member for member in _members(kind) if member is not msgspec.UnsetType]
    options = [option for member in members if get_origin(member) is Literal for option in get_args(member)]
    for member in members:
        if isinstance(member, type) and issubclass(member, StrEnum):
            options += list(member)
    if options:
        return f"{name} is {value!r:.60}", nearest(str(value), [str(option) for option in options])
    metas = [get_args(member)[1] for member in members if get_origin(member) is Annotated]
    fix = next((meta.extra["fix"] for meta in metas if meta.extra), None)
    wanted = [None if _is_form(member, value) else _wanted(member) for member in members]
    if None in wanted:
        return otherwise, fix
    expected = " or ".join(dict.fromkeys(filter(None, wanted)))
    if "a mapping" in wanted and isinstance(value, dict):
        return otherwise, fix
    return f"{name} must be {expected}, but is {value!r:.60}", fix or f"give {expected}"


def _is_form(kind: Any, value: object) -> bool:
    """Return whether a text lacks a form that there are no words for."""
    meta = get_args(kind)[1] if get_origin(kind) is Annotated else None
    return meta is not None and isinstance(value, str) and bool(meta.pattern) and not meta.description


_PLAIN: Mapping[Any, str] = {
    str: "a text", int: "a whole number", float: "a number", bool: "true or false", type(None): "null",
    dict: "a mapping", list: "a list", tuple: "a list", Mapping: "a mapping",
    datetime: "an instant such as 2026-01-04T14:30:00Z",
}  # fmt: skip


def _wanted(kind: Any) -> str | None:
    """Return what a type wants, in words; None if there are none for it."""
    if get_origin(kind) is Annotated:
        inner, meta = get_args(kind)[:2]
        least = meta.ge if meta.ge is not None else meta.gt
        if meta.description or least is None:
            return meta.description or _wanted(inner)
        if meta.le is not None:
            return f"{_wanted(inner)} from {least:,} to {meta.le:,}"
        return f"{_wanted(inner)} {'above' if meta.ge is None else 'of at least'} {least:,}"
    origin = get_origin(kind) or kind
    inner = get_args(kind)
    if origin in (list, tuple) and inner and inner[0] is str:
        return "a list of texts"
    return "a mapping" if _is_record(origin) else _PLAIN.get(origin)
