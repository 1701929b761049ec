"""Frozen dataclasses to plain JSON values and back, with every unknown, missing or wrong key named."""

import types
from collections.abc import Callable
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
        value: As encode gives it; keys with a default may be missing.
        key: Place in the file, for errors.

    Raises:
        FileFormatError: A key is unknown, missing or of the wrong type; names it.
    """
    try:
        return cast(_T, _reader(cast(Any, cls))(value))
    except _MisfitError as exc:
        place = (key + exc.place).removeprefix(".")
        raise FileFormatError(exc.message, where=f"{where} ({place})" if place else where) from None


class _MisfitError(Exception):
    """A value that does not fit; on its way up each level puts its key in front of the place."""

    def __init__(self, message: str, place: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.place = place


_Reader = Callable[[Any], Any]


@cache
def _hints(cls: Any) -> dict[str, Any]:
    return get_type_hints(cls)


@cache
def _reader(hint: Any) -> _Reader:
    """Reads values of a type; made once for each."""
    if is_dataclass(hint):
        return _object_reader(hint)
    if get_origin(hint) is tuple:
        return _list_reader(_reader(get_args(hint)[0]))
    if get_origin(hint) in (Union, types.UnionType):
        return _union_reader(get_args(hint))
    if get_origin(hint) is Literal:
        allowed = get_args(hint)
        return lambda value: value if value in allowed else _misfit(value)
    kinds = (int, float) if hint is float else (hint,)
    return lambda value: value if type(value) in kinds else _misfit(value)


def _object_reader(cls: Any) -> _Reader:
    readers = {name: _reader(hint) for name, hint in _hints(cls).items()}
    required = {f.name for f in fields(cls) if f.default is MISSING and f.default_factory is MISSING}

    def read(value: Any) -> Any:
        if type(value) is not dict:
            raise _MisfitError(f"expected an object, found {type(value).__name__}")
        found, name = {}, ""
        try:
            for name, part in value.items():
                found[name] = readers[name](part)
        except KeyError:
            raise _MisfitError(f"unknown key {name!r:.60}", f".{name:.60}") from None
        except _MisfitError as exc:
            exc.place = f".{name}{exc.place}"
            raise
        for name in required - found.keys():
            raise _MisfitError(f"{name} is missing", f".{name}")
        return cls(**found)

    return read


def _list_reader(item: _Reader) -> _Reader:
    def read(value: Any) -> Any:
        if type(value) is not list:
            return _misfit(value)
        found: list[Any] = []
        try:
            for part in value:
                found.append(item(part))
        except _MisfitError as exc:
            exc.place = f"[{len(found)}]{exc.place}"
            raise
        return tuple(found)

    return read


def _union_reader(hints: tuple[Any, ...]) -> _Reader:
    """A value of one of several types: None, and an object or plain values."""
    kept = [hint for hint in hints if hint is not type(None)]
    one = (
        _reader(kept[0]) if len(kept) == 1 else lambda value: value if type(value) in kept else _misfit(value)
    )
    return lambda value: None if value is None and len(kept) < len(hints) else one(value)


def _misfit(value: object) -> Any:
    raise _MisfitError(f"unexpected value {value!r:.80}")
