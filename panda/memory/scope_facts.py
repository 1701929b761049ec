"""Facts and conflict records as values, read strictly from JSON (S2 §16.1). Pure."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from sys import intern
from typing import Any

from panda.errors import FileFormatError
from panda.memory.hlc import parse_hlc
from panda.memory.values import FactValue, entity_name, parse_value, read_time

SCOPES = ("local", "team", "company", "public")
"""Every scope; none contains another."""

_REQUIRED = ("id", "entity", "relation", "value", "source", "confidence", "scope")


@dataclass(frozen=True, slots=True)
class Fact:
    """Somebody said something at some time; never changed, only added to."""

    id: str
    """Unique among the facts."""
    entity: str
    """Normalised."""
    relation: str
    """Case-sensitive, never changed."""
    value: FactValue
    """What is said."""
    source: str | None
    """Who says so."""
    confidence: float
    """0 to 1; 0 is a retraction."""
    scope: str
    """One of SCOPES."""
    hlc: str | None
    """Hybrid clock reading as written; None sorts lowest."""
    valid_until: datetime | None
    """The last instant at which it holds; None for ever."""
    reading: tuple[int, int] = field(init=False, compare=False, repr=False)
    """The clock reading as two integers."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "reading", parse_hlc(self.hlc))

    @property
    def triple(self) -> tuple[str, str]:
        """Entity and relation: within a scope, what facts compete for."""
        return self.entity, self.relation


@dataclass(frozen=True, slots=True)
class Conflict:
    """A record that two facts contradict each other, and how that was settled."""

    conflict_id: str
    """Unique among the conflicts."""
    fact_a: str
    """Id of a fact."""
    fact_b: str
    """Id of the other."""
    status: str
    """`resolved` if it is settled; anything else counts as open."""
    resolution_fact: str | None
    """Id of the fact that settles it; None if it is open."""

    def to_json(self) -> dict[str, object]:
        """As a line of conflicts.jsonl."""
        return {name: getattr(self, name) for name in self.__dataclass_fields__}


def parse_fact(raw: object, *, where: str, key: str = "") -> Fact:
    """
    A fact of JSON.

    Args:
        raw: An object with the fields of Fact; `hlc` and `valid_until` may be missing, other keys
            are ignored.
        where: File, with line, for errors.
        key: Where in the file the fact stands, as "facts[3].", for errors.

    Raises:
        FileFormatError: Not a fact; names the key.
    """
    if not isinstance(raw, Mapping):
        raise _error(f"a fact is an object, not {type(raw).__name__}", where, key.removesuffix("."))
    name = "id"
    try:
        for name in _REQUIRED:
            if name not in raw:
                raise ValueError(f"{name} is missing")
        name = "id"
        fact_id = _named(raw["id"], "the id")
        name = "entity"
        entity = entity_name(_string(raw["entity"], "the entity"))
        name = "relation"
        relation = _named(raw["relation"], "the relation")
        name = "value"
        value = parse_value(raw["value"])
        name = "source"
        source = None if raw["source"] is None else _string(raw["source"], "the source")
        name = "confidence"
        confidence = read_share(raw["confidence"], "the confidence")
        name = "scope"
        scope = read_scope(raw["scope"])
        name = "valid_until"
        until = raw.get("valid_until")
        valid_until = None if until is None else read_time(_string(until, "the end of validity"))
        name = "hlc"
        hlc = raw.get("hlc")
        hlc = None if hlc is None else _string(hlc, "the hybrid clock reading")
        return Fact(
            id=fact_id,
            entity=intern(entity),
            relation=intern(relation),
            value=value,
            source=source and intern(source),
            confidence=confidence,
            scope=scope,
            hlc=hlc,
            valid_until=valid_until,
        )
    except ValueError as exc:
        raise _error(str(exc), where, key + name) from exc


def parse_conflict(raw: object, *, where: str, key: str = "") -> Conflict:
    """
    A conflict record of JSON.

    Args:
        raw: An object with the fields of Conflict; other keys are ignored.
        where: As for parse_fact.
        key: As for parse_fact, "conflicts[0].".

    Raises:
        FileFormatError: Not a conflict record; names the key.
    """
    if not isinstance(raw, Mapping):
        raise _error(f"a conflict is an object, not {type(raw).__name__}", where, key.removesuffix("."))
    name = "conflict_id"
    texts: dict[str, str] = {}
    try:
        for name in ("conflict_id", "fact_a", "fact_b", "status"):
            if name not in raw:
                raise ValueError(f"{name} is missing")
            texts[name] = _named(raw[name], name)
        name = "resolution_fact"
        settled = raw.get(name)
        if settled is not None or texts["status"] == "resolved":
            settled = _named(settled, "the resolution fact of a resolved conflict")
    except ValueError as exc:
        raise _error(str(exc), where, key + name) from exc
    return Conflict(**texts, resolution_fact=settled)


def parse_scope_facts(raw: object, *, where: str) -> tuple[list[Fact], list[Conflict]]:
    """
    The facts and conflicts of a document `{"facts": […], "conflicts": […]}`; takes the document apart.

    Args:
        raw: The document; `conflicts` may be missing, other keys are ignored. Its list of facts is emptied
            while it is read, so that a large one is not held twice.
        where: File, for errors.

    Raises:
        FileFormatError: Not such a document; names the element and its key.
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
    check_ids(((fact, f"facts[{index}].") for index, fact in enumerate(facts)), where=where)
    settled = [
        parse_conflict(one, where=where, key=f"conflicts[{index}].") for index, one in enumerate(conflicts)
    ]
    return facts, settled


def check_ids(facts: Iterable[tuple[Fact, str]], *, where: str) -> None:
    """
    Raises FileFormatError if two facts of one id differ; the same fact twice is the same fact.

    Args:
        facts: Each fact with its place, as "facts[3].".
        where: File, for the error.
    """
    known: dict[str, Fact] = {}
    for fact, key in facts:
        if known.setdefault(fact.id, fact) != fact:
            raise _error(f"another fact has the id {fact.id!r} and says something else", where, f"{key}id")


def read_scope(value: object) -> str:
    """
    A scope.

    Raises:
        ValueError: Not one of SCOPES.

    >>> read_scope("team")
    'team'
    """
    if not isinstance(value, str) or value not in SCOPES:
        raise ValueError(f"{str(value)[:60]!r} is no scope: {', '.join(SCOPES)}")
    return SCOPES[SCOPES.index(value)]


def read_share(value: object, what: str) -> float:
    """
    A number from 0 to 1.

    Args:
        value: From JSON.
        what: Its name, for the error.

    Raises:
        ValueError: No number, not finite, or outside.

    >>> read_share(1, "the confidence")
    1.0
    """
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError(f"{what} is no number: {str(value)[:60]!r}")
    if not 0 <= value <= 1:
        raise ValueError(f"{what} is {str(value)[:60]}, not from 0 to 1")
    return float(value)


def _string(value: object, what: str) -> str:
    if not isinstance(value, str):
        raise ValueError(f"{what} is no text: {str(value)[:60]}")
    return value


def _named(value: object, what: str) -> str:
    if not _string(value, what).strip():
        raise ValueError(f"{what} is blank")
    return str(value)


def _error(message: str, where: str, key: str) -> FileFormatError:
    return FileFormatError(message, where=f"{where} ({key})" if key else where)
