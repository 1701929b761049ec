"""Typed values, facts, assertions and conflict records, read strictly from JSON (S2 §16.1, design §3)."""

import hashlib
import json
import math
from collections.abc import Callable, Hashable, Mapping
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from sys import intern
from typing import Any, Literal, NamedTuple, get_args

from panda.documents.memory_file import render_value
from panda.documents.times import parse_time, render_time
from panda.errors import FileFormatError, Location

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
    """An entity as it is compared (S2 §16); ValueError if it is blank."""
    name = "-".join(text.lower().split())
    if not name:
        raise ValueError("the entity is blank")
    return name


def read_time(text: str) -> datetime:
    """An instant, in UTC if it has no offset; ValueError for what is no date or time."""
    try:
        return parse_time(text)
    except ValueError as exc:
        raise ValueError(f"{_shown(text)} is no time such as 2026-06-01T12:00:00Z") from exc


def parse_value(raw: object) -> FactValue:
    """
    The value of a tagged object such as `{"type": "number", "v": 4}` (S2 §16.1); ValueError for what is none.
    Two are equal in meaning exactly if their `key` is: strings and texts by code points, numbers numerically,
    datetimes by instant (without offset: UTC), refs as entities, lists element by element; never across
    types.
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
    """
    raw = value.to_json()
    if "v" in raw:
        raw["v"] = [_plain(v) for v in value.v] if isinstance(value.v, tuple) else _plain(value.v)
    return json.dumps(raw, ensure_ascii=False, separators=(",", ":"), sort_keys=True)


def _plain(v: Scalar) -> Scalar:
    return int(v) if isinstance(v, float) and v.is_integer() and abs(v) < 1e21 else v


def typed_value(raw: object) -> FactValue:
    """The value that somebody typed into a memory file; a mapping counts as the text that it is shown as."""
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


SCOPES = ("local", "team", "company", "public")
"""Every scope; none contains another."""

_KINDS = get_args(SaidKind)
_OWN_SOURCES = frozenset({"turn", "user", "file"})
_DEFAULTS: Mapping[str, object] = {
    **dict.fromkeys(("hlc", "valid_until", "source_turn", "asserted_at")),
    "kind": "fact",
    "content_type": "general_fact",
}


class Subject(NamedTuple):
    """What facts compete for: within a scope, one relation of one entity."""

    scope: str
    entity: str
    relation: str

    def key(self, user: str) -> str:
        """Key of a memory file: the relation, with the entity in front if it is not the user."""
        return self.relation if self.entity == f"user:{user}" else f"{self.entity}#{self.relation}"

    @property
    def is_system(self) -> bool:
        """Whether it is one of panda's own, which are never shown."""
        return is_system(self.entity) or is_system(self.relation)


def parse_hlc(text: str | None) -> tuple[int, int]:
    """
    Milliseconds and counter of a hybrid logical clock (S2), to be compared as two integers; a missing one
    sorts lowest. Raises ValueError: not `milliseconds.counter`.
    """
    if text is None:
        return (-1, -1)
    milliseconds, _, counter = text.partition(".")
    if not (text.isascii() and milliseconds.isdigit() and counter.isdigit()):
        raise ValueError(f"{text!r} is no hybrid clock reading like 1767470561000.000")
    return int(milliseconds), int(counter)


def tick(last: str | None, now_ms: int) -> str:
    """
    The clock reading after *last*: the wall clock with counter 0 if it moved on, else the last reading with
    its counter one higher; past 999 the millisecond moves on.
    """
    milliseconds, counter = parse_hlc(last)
    if now_ms > milliseconds:
        return f"{now_ms}.000"
    return f"{milliseconds + 1}.000" if counter >= 999 else f"{milliseconds}.{counter + 1:03d}"


@dataclass(frozen=True, slots=True)
class Fact:
    """Somebody said something at some time; never changed, only added to."""

    id: str  # unique among the facts
    entity: str  # normalised
    relation: str  # case-sensitive, never changed
    value: FactValue
    source: str | None  # who says so
    confidence: float  # 0 to 1; 0 is a retraction
    scope: str  # one of SCOPES
    hlc: str | None  # hybrid clock reading as written; None sorts lowest
    valid_until: datetime | None  # the last instant at which it holds; None for ever
    reading: tuple[int, int] = field(init=False, compare=False, repr=False)  # *hlc* as two integers

    def __post_init__(self) -> None:
        object.__setattr__(self, "reading", parse_hlc(self.hlc))

    @property
    def subject(self) -> Subject:
        """What it competes for."""
        return Subject(self.scope, self.entity, self.relation)


@dataclass(frozen=True, slots=True)
class Conflict:
    """A record that two facts contradict each other, and how that was settled."""

    conflict_id: str  # unique among the conflicts
    fact_a: str  # id of a fact
    fact_b: str  # id of the other
    status: str  # `resolved` if it is settled; anything else counts as open
    resolution_fact: str | None  # id of the fact that settles it; None if it is open

    def to_json(self) -> dict[str, object]:
        """As a line of conflicts.jsonl."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Assertion:
    """One line of memory.jsonl; confidence 0 retracts what was said before of the same thing."""

    fact: Fact  # what is said, by whom, in which scope
    kind: SaidKind  # which file shows it
    source_turn: int | None  # turn in which it was said
    asserted_at: datetime  # instant of writing
    content_type: str | None  # how it ages

    @property
    def subject(self) -> Subject:
        """What it competes for."""
        return self.fact.subject

    @property
    def is_own(self) -> bool:
        """Whether the user said it, as against a tool or another person."""
        return self.fact.source is None or self.fact.source.partition(":")[0] in _OWN_SOURCES

    def to_json(self) -> dict[str, object]:
        """As a line of memory.jsonl."""
        line = {name: getattr(self.fact, name) for name in _FACT}
        line |= {name: getattr(self, name) for name in _NOTED}
        times = {name: _render(line[name]) for name in ("valid_until", "asserted_at")}
        return {**line, "value": self.fact.value.to_json(), **times}


def _render(moment: datetime | None) -> str | None:
    if moment is None:
        return None
    if not moment.microsecond:
        return render_time(moment)
    return moment.astimezone(UTC).isoformat().replace("+00:00", "Z")


@dataclass(frozen=True)
class Statement:
    """What is to be asserted, before it has an id and a clock reading."""

    kind: SaidKind  # which file shows it
    entity: str  # normalised
    relation: str
    value: FactValue
    source: str  # who says so, as "turn:812", "user:ann" or "file:preferences.md"
    confidence: float  # 0 retracts
    scope: str = "local"  # local, team, company or public
    valid_until: datetime | None = None  # the last instant at which it holds; None for ever
    source_turn: int | None = None  # turn in which it was said
    asserted_at: datetime | None = None  # when it was said, if that is not the time of writing
    content_type: str | None = None  # how it ages; None as its kind does

    @property
    def subject(self) -> Subject:
        """What it competes for."""
        return Subject(self.scope, self.entity, self.relation)

    def asserted(self, hlc: str, now: datetime) -> Assertion:
        """The assertion that it becomes, written *now* under a clock reading that no other one has."""
        said = (self.entity, self.relation, self.value, self.source, self.confidence, self.scope)
        fact = Fact("", *said, hlc, self.valid_until)
        ages = self.content_type or ("preference" if self.kind == "preference" else "general_fact")
        at = (self.asserted_at or now).replace(microsecond=0)
        return Assertion(replace(fact, id=id_of(fact)), self.kind, self.source_turn, at, ages)


def id_of(fact: Fact) -> str:
    """The id of a fact that is asserted here: a digest of what it says, its source and its clock reading."""
    parts = [*fact.subject, fact.value.to_json(), fact.confidence, fact.hlc, fact.source]
    return f"fact-{hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:16]}"


def read_scope(value: object) -> str:
    """A scope; ValueError for what is none of SCOPES."""
    if not isinstance(value, str) or value not in SCOPES:
        raise ValueError(f"{str(value)[:60]!r} is no scope: {', '.join(SCOPES)}")
    return SCOPES[SCOPES.index(value)]


def read_share(value: object, what: str) -> float:
    """A number from 0 to 1; ValueError, with the name *what*, for anything else."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError(f"{what} is no number: {str(value)[:60]!r}")
    if not 0 <= value <= 1:
        raise ValueError(f"{what} is {str(value)[:60]}, not from 0 to 1")
    return float(value)


def _text(what: str, *, blank: bool = False, none: bool = False) -> Callable[[Any], Any]:
    """Reads a text, kept once however often it occurs; blank or null only where that is said."""

    def read(value: object) -> str | None:
        if isinstance(value, str) and (blank or value.strip()):
            return intern(value)
        if value is None and none:
            return None
        fault = "blank" if isinstance(value, str) else f"no text: {str(value)[:60]}"
        raise ValueError(f"{what} is {fault}")

    return read


def _time(what: str, read: Callable[[str], datetime]) -> Callable[[Any], datetime | None]:
    text = _text(what, blank=True)
    return lambda value: None if value is None else read(text(value))


def _read_entity(value: object) -> str:
    if not isinstance(value, str):
        raise ValueError(f"the entity is no text: {str(value)[:60]}")
    return intern(entity_name(value))


def _read_kind(value: object) -> object:
    if value not in _KINDS:
        raise ValueError(f"{value!r} is no kind: {', '.join(_KINDS)}")
    return value


def _read_turn(value: object) -> object:
    if value is not None and (isinstance(value, bool) or not isinstance(value, int)):
        raise ValueError(f"{value!r} is no turn number")
    return value


def _read_hlc(value: object) -> str | None:
    if value is not None and not isinstance(value, str):
        raise ValueError(f"the hybrid clock reading is no text: {str(value)[:60]}")
    parse_hlc(value)
    return value


_Readers = Mapping[str, Callable[[Any], Any]]
_FACT: _Readers = {
    "id": _text("the id"),
    "entity": _read_entity,
    "relation": _text("the relation"),
    "value": parse_value,
    "source": _text("the source", blank=True, none=True),
    "confidence": lambda value: read_share(value, "the confidence"),
    "scope": read_scope,
    "hlc": _read_hlc,
    "valid_until": _time("the end of validity", read_time),
}
"""How the fields of a fact are read, in the order of a line of memory.jsonl."""
_NOTED: _Readers = {
    "kind": _read_kind,
    "source_turn": _read_turn,
    "asserted_at": _time("the date", parse_time),
    "content_type": _text("the content type", blank=True, none=True),
}
_ASSERTION = {**_FACT, **_NOTED}
_CONFLICT = {name: _text(name) for name in ("conflict_id", "fact_a", "fact_b", "status")}
_RESOLUTION = {"resolution_fact": _text("the resolution fact of a resolved conflict")}


def _read(raw: Any, readers: _Readers, what: str, where: str, key: str = "") -> Any:
    if type(raw) is not dict and not isinstance(raw, Mapping):
        raise _error(f"a {what} is an object, not {type(raw).__name__}", where, key.removesuffix("."))
    found: dict[str, Any] = {}
    name = ""
    try:
        for name, read in readers.items():
            if name in raw:
                found[name] = read(raw[name])
            elif name in _DEFAULTS:
                found[name] = read(_DEFAULTS[name])
            else:
                raise ValueError(f"{name} is missing")
    except ValueError as exc:
        raise _error(str(exc), where, key + name) from exc
    return found


def parse_fact(raw: object, *, where: str, key: str = "") -> Fact:
    """
    A fact of JSON; `hlc` and `valid_until` may be missing, other keys are ignored. Raises FileFormatError:
    Not a fact; names the key, behind *key*, where in the file the fact stands ("facts[3].").
    """
    return Fact(**_read(raw, _FACT, "fact", where, key))


def parse_assertion(raw: object, *, where: str) -> Assertion:
    """
    An assertion of a line of memory.jsonl. What only panda adds to a fact may be missing: kind, source_turn,
    asserted_at (then it is the time of the clock reading) and content_type. Raises FileFormatError as
    parse_fact.
    """
    fields = _read(raw, _ASSERTION, "fact", where)
    noted = {name: fields.pop(name) for name in _NOTED}
    fact = Fact(**fields)
    try:
        if noted["asserted_at"] is None:
            seconds = max(0, fact.reading[0]) / 1000
            noted["asserted_at"] = datetime.fromtimestamp(seconds, UTC).replace(microsecond=0)
    except (ValueError, OverflowError, OSError) as exc:
        raise _error(str(exc), where, "hlc") from exc
    return Assertion(fact, **noted)


def parse_conflict(raw: object, *, where: str, key: str = "") -> Conflict:
    """A conflict record of JSON; other keys are ignored. Raises FileFormatError as parse_fact."""
    found = _read(raw, _CONFLICT, "conflict", where, key)
    assert isinstance(raw, Mapping)  # _read looks
    settled = raw.get("resolution_fact")
    if settled is not None or found["status"] == "resolved":
        settled = _read({"resolution_fact": settled}, _RESOLUTION, "", where, key)["resolution_fact"]
    return Conflict(**found, resolution_fact=settled)


def parse_scope_facts(raw: object, *, where: str) -> tuple[list[Fact], list[Conflict]]:
    """
    The facts and conflicts of a document `{"facts": […], "conflicts": […]}`; its list of facts is emptied
    while it is read, so that a large one is not held twice. Raises FileFormatError: Not such a document, or
    two facts of one id differ; names the element and its key.
    """
    if not isinstance(raw, Mapping) or not isinstance(raw.get("facts"), list):
        raise _error("there is no list of facts", where, "facts")
    conflicts = raw.get("conflicts", [])
    if not isinstance(conflicts, list):
        raise _error("the conflicts are no list", where, "conflicts")
    found: list[Any] = raw["facts"]
    facts: list[Fact] = []
    for index, one in enumerate(found):
        facts.append(parse_fact(one, where=where, key=f"facts[{index}]."))
        found[index] = None
    known: dict[str, Fact] = {}
    for index, fact in enumerate(facts):
        if known.setdefault(fact.id, fact) != fact:
            message = f"another fact has the id {fact.id!r} and says something else"
            raise _error(message, where, f"facts[{index}].id")
    keyed = ((f"conflicts[{index}].", one) for index, one in enumerate(conflicts))
    return facts, [parse_conflict(one, where=where, key=key) for key, one in keyed]


def _error(message: str, where: str, key: str) -> FileFormatError:
    return FileFormatError(message, where=Location(where, key=key) if key else where)
