"""Facts, conflict records and assertions as values, read strictly from JSON (S2 §16.1, design §3). Pure."""

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from sys import intern
from typing import Any, cast, get_args

from panda.documents.times import parse_time, render_time
from panda.errors import FileFormatError
from panda.memory.staging import SaidKind
from panda.memory.value import FactValue, entity_name, parse_value, read_time


def parse_hlc(text: str | None) -> tuple[int, int]:
    """
    Milliseconds and counter, to be compared as two integers; a missing one sorts lowest.

    Raises:
        ValueError: Not `milliseconds.counter`.

    >>> parse_hlc("1767470561000.3") == parse_hlc("1767470561000.003")
    True
    >>> parse_hlc(None) < parse_hlc("0.000")
    True
    """
    if text is None:
        return (-1, -1)
    milliseconds, _, counter = text.partition(".")
    if not (milliseconds.isascii() and milliseconds.isdigit() and counter.isascii() and counter.isdigit()):
        raise ValueError(f"{text!r} is no hybrid clock reading like 1767470561000.000")
    return int(milliseconds), int(counter)


def tick(last: str | None, now_ms: int) -> str:
    """
    The next reading.

    Args:
        last: The highest reading so far; None if there is none.
        now_ms: The wall clock in milliseconds since 1970.

    Returns:
        The wall clock with counter 0 if it moved on, else the last reading with its counter one higher;
        past 999 the millisecond moves on.

    >>> tick(None, 1000), tick("999.004", 1000), tick("1000.004", 1000), tick("2000.999", 1000)
    ('1000.000', '1000.000', '1000.005', '2001.000')
    """
    milliseconds, counter = parse_hlc(last)
    if now_ms > milliseconds:
        milliseconds, counter = now_ms, 0
    elif counter >= 999:
        milliseconds, counter = milliseconds + 1, 0
    else:
        counter += 1
    return f"{milliseconds}.{counter:03d}"


SCOPES = ("local", "team", "company", "public")
"""Every scope; none contains another."""

_REQUIRED = ("id", "entity", "relation", "value", "source", "confidence", "scope")


@dataclass(frozen=True, slots=True)
class Fact:
    """Somebody said something at some time; never changed, only added to."""

    id: str  # unique among the facts
    entity: str  # normalised
    relation: str  # case-sensitive, never changed
    value: FactValue
    source: str | None
    confidence: float  # 0 to 1; 0 is a retraction
    scope: str  # one of SCOPES
    hlc: str | None  # hybrid clock reading as written; None sorts lowest
    valid_until: datetime | None  # the last instant at which it holds; None for ever
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

    conflict_id: str  # unique among the conflicts
    fact_a: str  # id of a fact
    fact_b: str  # id of the other
    status: str  # `resolved` if it is settled; anything else counts as open
    resolution_fact: str | None  # id of the fact that settles it; None if it is open

    def to_json(self) -> dict[str, object]:
        """As a line of conflicts.jsonl."""
        return {name: getattr(self, name) for name in self.__dataclass_fields__}


def parse_fact(raw: object, *, where: str, key: str = "") -> Fact:
    """
    A fact of JSON.

    Args:
        raw: An object with the fields of Fact; `hlc` and `valid_until` may be missing, other keys
            are ignored.
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


_OWN_SOURCES = frozenset({"turn", "user", "file"})


@dataclass(frozen=True, slots=True)
class Assertion:
    """One line of memory.jsonl; confidence 0 retracts what was said before of the same thing."""

    fact: Fact  # what is said, by whom, in which scope
    kind: SaidKind  # which file shows it
    source_turn: int | None  # turn in which it was said
    asserted_at: datetime  # instant of writing
    content_type: str | None  # how it ages

    @property
    def triple(self) -> tuple[str, str, str]:
        """What it competes for: scope, entity, relation."""
        return self.fact.scope, self.fact.entity, self.fact.relation

    @property
    def is_own(self) -> bool:
        """Whether the user said it, as against a tool or another person."""
        return self.fact.source is None or self.fact.source.partition(":")[0] in _OWN_SOURCES

    def to_json(self) -> dict[str, object]:
        """As a line of memory.jsonl."""
        fact = self.fact
        return {
            "id": fact.id,
            "entity": fact.entity,
            "relation": fact.relation,
            "value": fact.value.to_json(),
            "source": fact.source,
            "confidence": fact.confidence,
            "scope": fact.scope,
            "hlc": fact.hlc,
            "valid_until": _render(fact.valid_until),
            "kind": self.kind,
            "source_turn": self.source_turn,
            "asserted_at": _render(self.asserted_at),
            "content_type": self.content_type,
        }


def _render(moment: datetime | None) -> str | None:
    if moment is None:
        return None
    if not moment.microsecond:
        return render_time(moment)
    return moment.astimezone(UTC).isoformat().replace("+00:00", "Z")


def parse_assertion(raw: object, *, where: str) -> Assertion:
    """
    An assertion of a JSON object.

    Args:
        raw: A line of memory.jsonl. What only panda adds to a fact may be missing: kind, source_turn,
            asserted_at (then it is the time of the clock reading) and content_type.

    Raises:
        FileFormatError: It is no assertion; names the key.
    """
    fact = parse_fact(raw, where=where)
    assert isinstance(raw, Mapping)  # parse_fact looks
    kind: Any = raw.get("kind", "fact")
    turn, content_type = raw.get("source_turn"), raw.get("content_type", "general_fact")
    if kind not in get_args(SaidKind):
        raise _line_error(f"{kind!r} is no kind: {', '.join(get_args(SaidKind))}", where, "kind")
    if turn is not None and (isinstance(turn, bool) or not isinstance(turn, int)):
        raise _line_error(f"{turn!r} is no turn number", where, "source_turn")
    if content_type is not None and not isinstance(content_type, str):
        raise _line_error(f"{content_type!r} is no content type", where, "content_type")
    return Assertion(fact, cast(SaidKind, kind), turn, _asserted_at(raw, fact, where), content_type)


def _asserted_at(raw: Mapping[str, Any], fact: Fact, where: str) -> datetime:
    text = raw.get("asserted_at")
    try:
        if text is None:
            return datetime.fromtimestamp(max(0, fact.reading[0]) / 1000, UTC).replace(microsecond=0)
        if not isinstance(text, str):
            raise ValueError(f"{text!r} is no date")
        return parse_time(text)
    except (ValueError, OverflowError, OSError) as exc:
        raise _line_error(str(exc), where, "asserted_at" if text is not None else "hlc") from exc


def _line_error(message: str, where: str, key: str) -> FileFormatError:
    return FileFormatError(message, where=f"{where} ({key})")


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
    asserted_at: datetime | None = None
    """When it was said, if that is known to be another time than that of writing."""
    content_type: str | None = None  # how it ages; None as its kind does

    @property
    def triple(self) -> tuple[str, str, str]:
        """What it competes for: scope, entity, relation."""
        return self.scope, self.entity, self.relation

    def asserted(self, hlc: str, now: datetime) -> Assertion:
        """
        The assertion that it becomes.

        Args:
            hlc: Its clock reading; no other assertion of this log has it.
            now: The instant of writing.
        """
        fact = Fact(
            id="",
            entity=self.entity,
            relation=self.relation,
            value=self.value,
            source=self.source,
            confidence=self.confidence,
            scope=self.scope,
            hlc=hlc,
            valid_until=self.valid_until,
        )
        default = "preference" if self.kind == "preference" else "general_fact"
        at = (self.asserted_at or now).replace(microsecond=0)
        return Assertion(
            replace(fact, id=id_of(fact)), self.kind, self.source_turn, at, self.content_type or default
        )


def id_of(fact: Fact) -> str:
    """The id of a fact that is asserted here: a digest of what it says, its source and its clock reading."""
    parts = [
        fact.scope,
        fact.entity,
        fact.relation,
        fact.value.to_json(),
        fact.confidence,
        fact.hlc,
        fact.source,
    ]
    return f"fact-{hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:16]}"
