"""What can be asked of a scope, checked the same way from shell, HTTP and MCP. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from difflib import get_close_matches
from typing import Any

from panda.errors import UsageError
from panda.memory.scope_facts import SCOPES, read_scope, read_share
from panda.memory.values import entity_name, read_time


@dataclass(frozen=True)
class SynthesisRequest:
    """What is asked of a scope."""

    scope: str
    """local, team, company or public; matched exactly."""
    entity: str | None = None
    """Only this entity, normalised; None for all."""
    relation: str | None = None
    """Only this relation; None for all."""
    min_confidence: float | None = None
    """Least confidence of an entry's winner; None for any."""
    include_expired: bool = False
    """Whether facts past their end compete too."""
    as_of: datetime | None = None
    """The instant that expiry is judged by; None for the present."""


REQUEST_SCHEMA: Mapping[str, Any] = {
    "type": "object",
    "properties": {
        "scope": {"type": "string", "enum": list(SCOPES), "description": "Matched exactly."},
        "entity": {
            "type": ["string", "null"],
            "pattern": r"\S",
            "description": "Only this entity, such as user:default.",
        },
        "relation": {
            "type": ["string", "null"],
            "pattern": r"\S",
            "description": "Only this relation; case-sensitive.",
        },
        "min_confidence": {
            "type": ["number", "null"],
            "minimum": 0,
            "maximum": 1,
            "description": "Least confidence of an entry.",
        },
        "include_expired": {
            "type": ["boolean", "null"],
            "description": "Whether facts past their valid_until count.",
        },
        "as_of": {
            "type": ["string", "null"],
            "format": "date-time",
            "description": "The instant that expiry is judged by, the present if absent.",
        },
    },
    "required": ["scope"],
    "additionalProperties": False,
}
"""JSON Schema of a request."""


def parse_request(raw: object, *, where: str = "") -> SynthesisRequest:
    """
    A request of JSON values.

    Args:
        raw: An object with the fields of SynthesisRequest; null counts as not given.
        where: Put before the name of a field, for errors, as "--" for options.

    Raises:
        UsageError: A scope that is missing or none of the four, a value of a wrong type or range, a blank
            entity or relation, an unknown field; names it.

    >>> parse_request({"scope": "team", "entity": " Acme Corp"}).entity
    'acme-corp'
    """
    if not isinstance(raw, Mapping):
        raise UsageError("the request is no JSON object", where="body", fix='send {"scope": "local"}')
    for key in raw:
        if key not in SynthesisRequest.__dataclass_fields__:
            near = get_close_matches(str(key), SynthesisRequest.__dataclass_fields__, n=1, cutoff=0.5)
            known = ", ".join(SynthesisRequest.__dataclass_fields__)
            fix = f"did you mean {near[0]}?" if near else f"known fields: {known}"
            raise UsageError(f"unknown field {str(key)[:60]!r}", where=f"{where}{str(key)[:60]}", fix=fix)
    given = {key: value for key, value in raw.items() if value is not None}
    if "scope" not in given:
        raise UsageError(
            "the scope is missing", where=f"{where}scope", fix=f"give one of {', '.join(SCOPES)}"
        )
    values: dict[str, Any] = {}
    for key, value in given.items():
        try:
            values[key] = _READERS[key](value)
        except ValueError as exc:
            raise UsageError(str(exc), where=where + key.replace("_", "-" if where else "_")) from exc
    return SynthesisRequest(**values)


def _entity(value: object) -> str:
    return entity_name(_text(value))


def _relation(value: object) -> str:
    if not _text(value).strip():
        raise ValueError("the relation is blank")
    return _text(value)


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise ValueError(f"{str(value)[:60]} is no text")
    return value


def _flag(value: object) -> bool:
    if not isinstance(value, bool):
        raise ValueError(f"{str(value)[:60]!r} is neither true nor false")
    return value


def _instant(value: object) -> datetime:
    return read_time(_text(value))


_READERS: Mapping[str, Any] = {
    "scope": read_scope,
    "entity": _entity,
    "relation": _relation,
    "min_confidence": lambda value: read_share(value, "the least confidence"),
    "include_expired": _flag,
    "as_of": _instant,
}
