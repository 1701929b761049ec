"""What the memory commands print: rows and JSON values."""

from datetime import datetime

from panda.cli.plain_text import clipped
from panda.documents.memory_file import render_value
from panda.documents.times import render_time
from panda.memory.assertions import Assertion
from panda.memory.confidence import MISSING, level
from panda.memory.conflicts import Contradiction
from panda.memory.keys import file_value, memory_key
from panda.memory.lint import Finding
from panda.memory.remembered import Remembered
from panda.memory.values import FactValue

LIST_COLUMNS = ("key", "value", "confidence", "level", "since", "source", "kind", "scope", "note")
HISTORY_COLUMNS = ("time", "value", "confidence", "source", "until", "clock", "id")
CONFLICT_COLUMNS = ("id", "scope", "key", "holds", "confidence", "against", "its confidence", "facts")
LINT_COLUMNS = ("rule", "scope", "key", "finding")
_VALUE_CHARS = 60


def _shown(value: FactValue) -> str:
    return clipped(render_value(file_value(value)), _VALUE_CHARS)


def _time(moment: datetime | None) -> str | None:
    return render_time(moment) if moment else None


def list_row(one: Remembered, now: datetime) -> tuple[object, ...]:
    """A row of `panda memory list`."""
    confidence = one.confidence(now, missing=MISSING)
    return (
        one.key,
        clipped(one.text, _VALUE_CHARS),
        f"{confidence:.2f}",
        level(confidence),
        _time(one.at),
        one.source,
        one.kind,
        one.scope,
        _note(one),
    )


def _note(one: Remembered) -> str | None:
    if one.expired:
        return "expired"
    if one.alternative is not None:
        rival = one.alternative
        return f"contradicted: {_shown(rival.value)} ({rival.confidence:.2f}, {rival.source})"
    return "typed by hand, not taken in yet" if one.fact is None else None


def remembered_data(one: Remembered, now: datetime) -> dict[str, object]:
    """What holds, as plain JSON values."""
    confidence = one.confidence(now, missing=MISSING)
    rival = one.alternative
    return {
        "key": one.key,
        "kind": one.kind,
        "scope": one.scope,
        "entity": one.entity,
        "relation": one.relation,
        "value": file_value(one.value),
        "type": one.value.type,
        "confidence": round(confidence, 4),
        "level": level(confidence),
        "start_confidence": one.start,
        "content_type": one.content_type,
        "updated_at": _time(one.at),
        "source": one.source,
        "source_turn": one.source_turn,
        "valid_until": _time(one.fact.valid_until) if one.fact else None,
        "hlc": one.fact.hlc if one.fact else None,
        "id": one.fact.id if one.fact else None,
        "expired": one.expired,
        "contradicted": rival is not None,
        "alt_value": file_value(rival.value) if rival else None,
        "alt_confidence": rival.confidence if rival else None,
    }


def assertion_data(one: Assertion, user: str) -> dict[str, object]:
    """An assertion as plain JSON values: its line in the log, and its key."""
    return {"key": memory_key(one.fact.entity, one.fact.relation, user), **one.to_json()}


def history_row(one: Assertion) -> tuple[object, ...]:
    """A row of `panda memory history`."""
    confidence = "retracted" if one.fact.confidence == 0 else f"{one.fact.confidence:.2f}"
    until = _time(one.fact.valid_until)
    value = _shown(one.fact.value)
    return _time(one.asserted_at), value, confidence, one.fact.source, until, one.fact.hlc, one.fact.id


def conflict_row(one: Contradiction, user: str) -> tuple[object, ...]:
    """A row of `panda memory conflicts`."""
    winner, rival = one.winner.fact, one.rival.fact
    return (
        one.conflict_id,
        one.triple[0],
        memory_key(one.triple[1], one.triple[2], user),
        _shown(winner.value),
        f"{winner.confidence:.2f}",
        _shown(rival.value),
        f"{rival.confidence:.2f}",
        f"{winner.id} {rival.id}",
    )


def conflict_data(one: Contradiction, user: str) -> dict[str, object]:
    """A contradiction as plain JSON values."""
    return {
        "conflict_id": one.conflict_id,
        "key": memory_key(one.triple[1], one.triple[2], user),
        "scope": one.triple[0],
        "fact_a": one.winner.to_json(),
        "fact_b": one.rival.to_json(),
    }


def finding_row(one: Finding) -> tuple[object, ...]:
    """A row of `panda memory lint`."""
    return one.rule, one.scope, one.key, one.message
