"""Typed values, facts, assertions and settled contradictions, as the memory log holds them (S2 §16)."""

import math
from collections.abc import Hashable
from datetime import UTC, datetime
from functools import cached_property
from typing import Annotated, Any, Literal, NamedTuple, get_args

from msgspec import Meta
from msgspec.structs import force_setattr

from panda.documents.record_codec import Record, Whole, check_instant, encode
from panda.documents.times import parse_time

Scalar = str | int | float | bool | None
ValueType = Literal["string", "text", "number", "boolean", "datetime", "ref", "null", "list"]
VALUE_TYPES: tuple[ValueType, ...] = get_args(ValueType)
Scope = Literal["local", "team", "company", "public"]
SCOPES: tuple[Scope, ...] = get_args(Scope)
"""Every scope; none contains another."""
SaidKind = Literal["preference", "fact", "statement"]
"""What the user said word for word is a statement; facts.md shows it."""
Filled = Annotated[str, Meta(pattern=r"\S", description="a text that is not blank")]
_Reading = Annotated[str, Meta(pattern=r"^[0-9]+\.[0-9]+\Z", description="a reading like 1767470561000.000")]
EPOCH = datetime.fromtimestamp(0, UTC)
"""The time of what has none yet."""
_OWN_SOURCES = frozenset({"turn", "user", "file"})


def entity_name(text: str) -> str:
    """An entity as it is compared; ValueError if it is blank."""
    name = "-".join(text.lower().split())
    if not name:
        raise ValueError("entity is blank")
    return name


def read_time(text: str, what: str = "") -> datetime:
    """An instant, in UTC if it has no offset; ValueError, with *what* in front, for what is no time."""
    try:
        return parse_time(text)
    except ValueError as exc:
        raise ValueError(f"{what}{text!r:.60} is no time such as 2026-06-01T12:00:00Z") from exc


class Value(Record, frozen=True, dict=True):
    """A value with its type."""

    type: ValueType
    v: Scalar | tuple[Scalar, ...] = None  # None for null alone

    def __post_init__(self) -> None:
        _ = self.key

    @cached_property
    def key(self) -> tuple[str, Hashable]:
        """
        Equal for values that are equal in meaning: strings and texts by code points, numbers numerically,
        datetimes by instant (without offset: UTC), refs as entities, lists element by element; never across
        types.
        """
        return self.type, self._meaning()

    def _meaning(self) -> Hashable:
        v = self.v
        if self.type == "list" and isinstance(v, tuple):  # with the kind of each, so that 1 and true differ
            return tuple((isinstance(element, bool), element) for element in v if _is_plain(element))
        if self.type == "number" and isinstance(v, int | float) and not isinstance(v, bool) and _is_plain(v):
            return v
        if (self.type == "boolean" and isinstance(v, bool)) or (self.type == "null" and v is None):
            return v
        if self.type in ("string", "text") and isinstance(v, str):
            return v
        if self.type in ("datetime", "ref") and isinstance(v, str):
            return entity_name(v) if self.type == "ref" else read_time(v, "v ")
        raise ValueError(f"v is no {self.type}: {v!r:.60}")

    def to_json(self) -> dict[str, Any]:
        """As `{"type", "v"}`; null has no `v`."""
        value: dict[str, Any] = encode(self)
        return value


def _is_plain(v: Scalar) -> bool:
    if isinstance(v, float) and not math.isfinite(v):
        raise ValueError(f"v is {v}, no finite number")
    return True


def is_system(name: str) -> bool:
    """Return whether an entity or relation is one of panda's own, which are never shown."""
    return name.startswith("panda:") and not name.startswith("panda://")


class Subject(NamedTuple):
    """What facts compete for: within a scope, one relation of one entity."""

    scope: Scope
    entity: str
    relation: str

    def key(self, user: str) -> str:
        """Key of a memory file: the relation, with the entity in front if it is not the user."""
        return self.relation if self.entity == f"user:{user}" else f"{self.entity}#{self.relation}"

    @property
    def is_system(self) -> bool:
        """Return whether the subject is one of panda's own, which are never shown."""
        return is_system(self.entity) or is_system(self.relation)


def parse_hlc(text: str | None) -> tuple[int, int]:
    """
    Milliseconds and counter of a hybrid logical clock (S2), to be compared as two integers; a missing one
    sorts lowest.
    """
    milliseconds, _, counter = (text or "-1.-1").partition(".")
    return int(milliseconds), int(counter)


class Fact(Whole, frozen=True, dict=True):
    """Somebody said something at some time; never changed, only added to."""

    id: Filled  # unique among the facts
    entity: Filled  # normalised
    relation: Filled  # case-sensitive, never changed
    value: Value
    source: str | None  # who says so, as "turn:812", "user:ann" or "file:preferences.md"
    confidence: Annotated[float, Meta(ge=0, le=1)]  # 0 takes back what was said before of the same thing
    scope: Scope
    hlc: _Reading | None = None  # hybrid clock; None sorts lowest
    valid_until: datetime | None = None  # the last instant at which it holds, in UTC; None for ever

    def __post_init__(self) -> None:
        if not 0 <= self.confidence <= 1:
            raise ValueError(f"confidence is {self.confidence}, not from 0 to 1")
        if (name := entity_name(self.entity)) != self.entity:
            force_setattr(self, "entity", name)
        if self.valid_until is not None and self.valid_until.tzinfo is None:
            force_setattr(self, "valid_until", self.valid_until.replace(tzinfo=UTC))
        check_instant("valid_until", self.valid_until)

    @cached_property
    def reading(self) -> tuple[int, int]:
        return parse_hlc(self.hlc)

    @property
    def subject(self) -> Subject:
        """Return the subject that the assertion competes for."""
        return Subject(self.scope, self.entity, self.relation)

    def to_json(self) -> dict[str, Any]:
        """As a line of memory.jsonl."""
        value: dict[str, Any] = encode(self)
        if self.valid_until is not None and self.valid_until.microsecond:
            value["valid_until"] = self.valid_until.astimezone(UTC).isoformat().replace("+00:00", "Z")
        return value


class Assertion(Fact, frozen=True, dict=True):
    """A line of memory.jsonl. What only panda adds to a fact may be missing."""

    kind: SaidKind = "fact"  # which file shows it
    source_turn: int | None = None  # turn in which it was said
    asserted_at: datetime = EPOCH  # instant of writing; if it is missing, that of the clock reading
    content_type: str = ""  # how it ages; if it is missing, as its kind does

    def __post_init__(self) -> None:
        super().__post_init__()
        check_instant("asserted_at", self.asserted_at)
        if not self.content_type:
            force_setattr(self, "content_type", "preference" if self.kind == "preference" else "general_fact")
        if self.hlc is not None and self.asserted_at == EPOCH:
            try:
                at = datetime.fromtimestamp(self.reading[0] // 1000, UTC)
            except (ValueError, OverflowError, OSError) as exc:
                raise ValueError(f"hlc is {self.hlc:.60}, beyond all dates") from exc
            force_setattr(self, "asserted_at", at)

    @property
    def is_own(self) -> bool:
        """Return whether the user said it, as against a tool or another person."""
        return self.source is None or self.source.partition(":")[0] in _OWN_SOURCES

    def is_said_by(self, other: Fact) -> bool:
        """Return whether another fact of the same thing says it, from the same source."""
        return other.confidence > 0 and (other.source, other.value.key) == (self.source, self.value.key)

    @property
    def is_dated(self) -> bool:
        """Return whether it is known when the assertion was made."""
        return self.asserted_at != EPOCH


class Conflict(Whole, frozen=True):
    """A line of conflicts.jsonl: two facts contradict each other, and how that was settled."""

    conflict_id: Filled  # unique among the conflicts
    fact_a: Filled  # id of a fact
    fact_b: Filled  # id of the other
    status: Filled  # `resolved` if it is settled; anything else counts as open
    resolution_fact: str | None = None  # id of the fact that settles it; None if it is open

    def __post_init__(self) -> None:
        if self.status == "resolved" and not (self.resolution_fact or "").strip():
            raise ValueError("resolution_fact is missing")
