"""Typed values of facts: read strictly, compared by what they mean, written back as they were given. Pure."""

import json
import math
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

from panda.documents.memory_file import render_value
from panda.documents.times import parse_time

VALUE_TYPES = ("string", "text", "number", "boolean", "datetime", "ref", "null", "list")
"""The tags that a value may have."""

Scalar = str | bool | int | float | None
Kind = Literal["preference", "fact"]
SaidKind = Literal["preference", "fact", "statement"]
"""What the user said word for word is a statement; facts.md shows it."""


@dataclass(frozen=True, slots=True)
class FactValue:
    """What a fact says, with its type. `parse_value` makes it."""

    type: str  # one of VALUE_TYPES
    v: Scalar | tuple[Scalar, ...]  # the value as it was given; None for null
    key: Hashable  # equal for equal values, whatever their notation

    def to_json(self) -> dict[str, object]:
        """As `{"type", "v"}`; null has no `v`."""
        if self.type == "null":
            return {"type": "null"}
        return {"type": self.type, "v": list(self.v) if isinstance(self.v, tuple) else self.v}


def entity_name(text: str) -> str:
    """
    An entity as it is compared (S2 §16); ValueError if it is blank.

    >>> entity_name("  Acme \\t Corp "), entity_name("panda://Acme.example/User/Ada")
    ('acme-corp', 'panda://acme.example/user/ada')
    """
    name = "-".join(text.lower().split())
    if not name:
        raise ValueError("the entity is blank")
    return name


def read_time(text: str) -> datetime:
    """
    An instant, in UTC if it has no offset; ValueError for what is no date or time.

    >>> read_time("2026-06-01T14:00:00+02:00").hour
    12
    """
    try:
        return parse_time(text)
    except ValueError as exc:
        raise ValueError(f"{_shown(text)} is no time such as 2026-06-01T12:00:00Z") from exc


def parse_value(raw: object) -> FactValue:
    """
    The value of a tagged object such as `{"type": "number", "v": 4}` (S2 §16.1).

    Returns:
        The value. Two are equal in meaning exactly if their `key` is equal: strings and texts by code points,
        numbers numerically, datetimes by instant (without offset: UTC), refs as entities, lists element by
        element; never across types.

    Raises:
        ValueError: Not a tagged value, or a `v` that its type does not allow.

    >>> parse_value({"type": "number", "v": 1}).key == parse_value({"type": "number", "v": 1.0}).key
    True
    >>> parse_value({"type": "string", "v": "a"}).key == parse_value({"type": "text", "v": "a"}).key
    False
    >>> parse_value({"type": "list", "v": [1]}).key == parse_value({"type": "list", "v": [True]}).key
    False
    """
    if type(raw) is not dict and not isinstance(raw, Mapping):
        raise ValueError(f'{_shown(raw)} is no object like {{"type": "string", "v": "…"}}')
    kind = raw.get("type")
    if kind == "null" and len(raw) == 1:
        return _NULL
    if not isinstance(kind, str) or kind not in VALUE_TYPES:
        raise ValueError(f"the type is {_shown(kind)}, not one of {', '.join(VALUE_TYPES)}")
    if kind == "null" or raw.keys() != {"type", "v"}:
        wanted = "type alone" if kind == "null" else "type and v"
        raise ValueError(f"a value of type {kind} has {wanted}, not {', '.join(map(str, raw))}")
    v = raw["v"]
    return FactValue(kind, tuple(v) if isinstance(v, list) else v, (kind, _meaning(kind, v)))


_NULL = FactValue("null", None, ("null", None))


def _meaning(kind: str, v: Any) -> Hashable:
    """What of a `v` is compared."""
    if kind == "boolean" and isinstance(v, bool):
        return v
    if kind == "number":
        return _number(v)
    if kind == "list" and isinstance(v, list):
        return tuple(_element(one) for one in v)
    if kind in ("boolean", "list") or not isinstance(v, str):
        raise ValueError(f"{_shown(v)} is no {kind}")
    if kind == "datetime":
        return read_time(v)
    return entity_name(v) if kind == "ref" else v


def _number(v: object) -> int | float:
    if isinstance(v, bool) or not isinstance(v, int | float):
        raise ValueError(f"{_shown(v)} is no number")
    if isinstance(v, float) and not math.isfinite(v):
        raise ValueError(f"{v} is no finite number")
    return v


def _element(v: object) -> Hashable:
    """A list's element with its kind, so that 1 and true differ."""
    if v is None or isinstance(v, bool):
        return ("constant", v)
    return ("string", v) if isinstance(v, str) else ("number", _number(v))


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:59]}…"


def canonical_json(value: FactValue) -> str:
    """
    A value as the one JSON text that ties are broken by: no spaces, characters as they are, a whole number
    without a point.

    >>> canonical_json(parse_value({"v": 2.0, "type": "number"}))
    '{"type":"number","v":2}'
    """
    raw = value.to_json()
    if "v" in raw:
        raw["v"] = [_plain(v) for v in value.v] if isinstance(value.v, tuple) else _plain(value.v)
    return json.dumps(raw, ensure_ascii=False, separators=(",", ":"), sort_keys=True)


def _plain(v: Scalar) -> Scalar:
    return int(v) if isinstance(v, float) and v.is_integer() and abs(v) < 1e21 else v


def typed_value(raw: object) -> FactValue:
    """
    The value that somebody typed into a memory file; a mapping counts as the text that it is shown as.

    >>> typed_value(900).to_json(), typed_value({"min": 5, "max": 8}).to_json()
    ({'type': 'number', 'v': 900}, {'type': 'string', 'v': 'min 5, max 8'})
    """
    if raw is None:
        return parse_value({"type": "null"})
    if isinstance(raw, list | tuple):
        return parse_value({"type": "list", "v": [_scalar(one) for one in raw]})
    value = _scalar(raw)
    kind = "boolean" if isinstance(value, bool) else "string" if isinstance(value, str) else "number"
    return parse_value({"type": kind, "v": value})


def _scalar(raw: object) -> str | bool | int | float | None:
    return raw if raw is None or isinstance(raw, str | bool | int | float) else render_value(raw)


def file_value(value: FactValue) -> object:
    """The value as a memory file holds it: a scalar or a list."""
    return list(value.v) if isinstance(value.v, tuple) else value.v


def is_system(name: str) -> bool:
    """Whether an entity or relation is one of panda's own, which are never shown."""
    return name.startswith("panda:") and not name.startswith("panda://")
