"""One line of memory.jsonl: a fact with who noted it, when, and how it ages (design §3). Pure."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, cast, get_args

from panda.documents.times import parse_time, render_time
from panda.errors import FileFormatError
from panda.memory.scope_facts import Fact, parse_fact
from panda.memory.staging import SaidKind
from panda.memory.values import FactValue

_OWN_SOURCES = frozenset({"turn", "user", "file"})


@dataclass(frozen=True, slots=True)
class Assertion:
    """One line of memory.jsonl; confidence 0 retracts what was said before of the same thing."""

    fact: Fact
    """What is said, by whom, in which scope."""
    kind: SaidKind
    """Which file shows it."""
    source_turn: int | None
    """Turn in which it was said."""
    asserted_at: datetime
    """Instant of writing."""
    content_type: str | None
    """How it ages."""

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
        where: File with line, for errors.

    Raises:
        FileFormatError: It is no assertion; names the key.
    """
    fact = parse_fact(raw, where=where)
    assert isinstance(raw, Mapping)  # parse_fact looks
    kind: Any = raw.get("kind", "fact")
    turn, content_type = raw.get("source_turn"), raw.get("content_type", "general_fact")
    if kind not in get_args(SaidKind):
        raise _error(f"{kind!r} is no kind: {', '.join(get_args(SaidKind))}", where, "kind")
    if turn is not None and (isinstance(turn, bool) or not isinstance(turn, int)):
        raise _error(f"{turn!r} is no turn number", where, "source_turn")
    if content_type is not None and not isinstance(content_type, str):
        raise _error(f"{content_type!r} is no content type", where, "content_type")
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
        raise _error(str(exc), where, "asserted_at" if text is not None else "hlc") from exc


def _error(message: str, where: str, key: str) -> FileFormatError:
    return FileFormatError(message, where=f"{where} ({key})")


@dataclass(frozen=True)
class Statement:
    """What is to be asserted, before it has an id and a clock reading."""

    kind: SaidKind
    """Which file shows it."""
    entity: str
    """Normalised."""
    relation: str
    """Key."""
    value: FactValue
    """What is said."""
    source: str
    """Who says so, as "turn:812", "user:ann" or "file:preferences.md"."""
    confidence: float
    """0 retracts."""
    scope: str = "local"
    """local, team, company or public."""
    valid_until: datetime | None = None
    """The last instant at which it holds; None for ever."""
    source_turn: int | None = None
    """Turn in which it was said."""
    asserted_at: datetime | None = None
    """When it was said, if that is known to be another time than that of writing."""
    content_type: str | None = None
    """How it ages; None as its kind does."""

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
