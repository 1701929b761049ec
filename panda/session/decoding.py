"""Frozen dataclasses to plain JSON values and back, with every unknown, missing or wrong key named."""

import types
from dataclasses import MISSING, fields, is_dataclass
from functools import cache
from typing import Any, Literal, TypeVar, Union, cast, get_args, get_origin, get_type_hints

from panda.errors import FileFormatError

_T = TypeVar("_T")


def encode(value: Any) -> Any:
    """
    A dataclass as plain JSON values; tuples become lists.

    Args:
        value: A dataclass, or anything that it may hold.
    """
    if is_dataclass(value):
        return {name: encode(getattr(value, name)) for name in _hints(cast(Any, type(value)))}
    if isinstance(value, tuple):
        return [encode(part) for part in value]
    return value


def decode(cls: type[_T], value: object, *, where: str, key: str = "") -> _T:
    """
    A dataclass out of plain JSON values.

    Args:
        cls: The dataclass.
        value: As encode gives it; keys with a default may be missing.
        where: File, for errors.
        key: Place in the file, for errors.

    Raises:
        FileFormatError: A key is unknown, missing or of the wrong type; names it.
    """
    if not isinstance(value, dict):
        raise _fault(f"expected an object, found {type(value).__name__}", where, key)
    hints = _hints(cast(Any, cls))
    for name in value:
        if name not in hints:
            raise _fault(f"unknown key {name!r:.60}", where, f"{key}.{name:.60}")
    for name in _required(cast(Any, cls)):
        if name not in value:
            raise _fault(f"{name} is missing", where, f"{key}.{name}")
    return cls(**{name: _read(hints[name], part, where, f"{key}.{name}") for name, part in value.items()})


@cache
def _hints(cls: Any) -> dict[str, Any]:
    return get_type_hints(cls)


@cache
def _required(cls: Any) -> tuple[str, ...]:
    return tuple(f.name for f in fields(cls) if f.default is MISSING and f.default_factory is MISSING)


def _read(hint: Any, value: object, where: str, key: str) -> Any:
    if hint in (str, int, bool):
        if type(value) is hint:
            return value
    elif hint is float:
        if type(value) in (int, float):
            return value
    elif is_dataclass(hint):
        return decode(cast(type, hint), value, where=where, key=key)
    elif get_origin(hint) is tuple:
        if isinstance(value, list):
            inner = get_args(hint)[0]
            return tuple(_read(inner, part, where, f"{key}[{n}]") for n, part in enumerate(value))
    elif get_origin(hint) is Literal:
        if value in get_args(hint):
            return value
    elif get_origin(hint) in (Union, types.UnionType):
        return _read_union(get_args(hint), value, where, key)
    raise _fault(f"unexpected value {value!r:.80}", where, key)


def _read_union(hints: tuple[Any, ...], value: object, where: str, key: str) -> Any:
    if value is None and type(None) in hints:
        return None
    kept = [hint for hint in hints if hint is not type(None)]
    if len(kept) == 1:
        return _read(kept[0], value, where, key)
    if type(value) in kept:
        return value
    raise _fault(f"unexpected value {value!r:.80}", where, key)


def _fault(message: str, where: str, key: str) -> FileFormatError:
    return FileFormatError(message, where=f"{where} ({key.removeprefix('.')})" if key else where)
