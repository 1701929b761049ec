"""Frozen dataclasses to plain JSON values and back, with every unknown, missing or wrong key named."""

from typing import Any, TypeVar

import msgspec

from panda.errors import FileFormatError

_T = TypeVar("_T")
_PLACE, _MISSING = " - at `$", "Object missing required field `"
"""How msgspec says where something is wrong, and what is not there."""


def encode(value: Any) -> Any:
    """A dataclass, or anything that it may hold, as plain JSON values; tuples become lists."""
    return _listed(msgspec.to_builtins(value))


def _listed(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _listed(part) for key, part in value.items()}
    return [_listed(part) for part in value] if isinstance(value, list | tuple) else value


def decode(cls: type[_T], value: object, *, where: str, key: str = "") -> _T:
    """
    A dataclass out of plain JSON values.

    Args:
        value: As encode gives it; keys with a default may be missing.
        key: Place in the file, for errors.

    Raises:
        FileFormatError: A key is unknown, missing or of the wrong type; names it.
    """
    try:
        found = msgspec.convert(value, cls)
    except msgspec.ValidationError as exc:
        message, _, place = str(exc).partition(_PLACE)
        place = place.removesuffix("`")
        if message.startswith(_MISSING):
            missing = message.removeprefix(_MISSING).removesuffix("`")
            message, place = f"{missing} is missing", f"{place}.{missing}"
        raise _error(message, where, key + place) from None
    if (unknown := _unknown(value, msgspec.to_builtins(found))) is not None:
        raise _error(f"unknown key {unknown.rpartition('.')[2]!r:.60}", where, key + unknown)
    return found


def _unknown(value: Any, known: Any) -> str | None:
    """The place of the first key that the dataclass does not have; None if there is none."""
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


def _error(message: str, where: str, place: str) -> FileFormatError:
    return FileFormatError(message, where=f"{where} ({place.removeprefix('.')})" if place else where)
