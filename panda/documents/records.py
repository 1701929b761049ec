"""Records to plain JSON values and back, with every wrong key named, and the JSON Schema of a record."""

import dataclasses
from collections.abc import Mapping
from datetime import datetime
from difflib import get_close_matches
from typing import Annotated, Any, TypeVar

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


class Record(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """What a JSON file, or an object in it, holds. Keys with a default may be missing."""


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
    return FileFormatError(message, where=where, key=place.removeprefix(".") or None, fix=fix)


def _nearest(name: str, cls: Any) -> str:
    """What is to be done about a key that a record and those in it do not have."""
    _, parts = msgspec.json.schema_components([cls])
    known = list(dict.fromkeys(key for part in parts.values() for key in part.get("properties", ())))
    near = get_close_matches(name, known, n=1)
    return f"did you mean {near[0]}?" if near else f"the keys that there are: {', '.join(known)}"
