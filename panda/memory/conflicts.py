"""Contradictions in a user's log and how one is settled, what else is questionable, other machines' facts."""

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Literal

from panda.documents.times import render_time
from panda.errors import FileFormatError, Location, NotFoundError, UsageError
from panda.memory.confidence import SAID_BY_USER
from panda.memory.fact import anew, file_value, known_part
from panda.memory.log import MemoryLog
from panda.memory.memory import Memory
from panda.store.fact import Assertion, Conflict, Subject, Value, entity_name
from panda.store.files import parse_json, read_text

_ID_DIGITS = 12


@dataclass(frozen=True)
class Contradiction:
    """Two facts that compete for one scope, entity and relation and say different things."""

    conflict_id: str  # the same on every machine that has both facts
    subject: Subject  # scope, entity, relation
    winner: Assertion  # what holds as long as nobody settles it
    rival: Assertion  # what contradicts it


def find_contradictions(log: MemoryLog, now: datetime) -> list[Contradiction]:
    """All contradictions that stand *now*, those of one subject together, the strongest rival first."""
    return [one for subject in log.subjects() for one in _of_subject(log, subject, now)]


def _of_subject(log: MemoryLog, subject: Subject, now: datetime) -> Iterator[Contradiction]:
    if subject.is_system:
        return
    ranked = log.contenders(subject, now=now)
    for rival in ranked[1:]:
        if rival.value.key != ranked[0].value.key:
            yield Contradiction(_conflict_id(log, ranked[0], rival), subject, ranked[0], rival)


def _conflict_id(log: MemoryLog, one: Assertion, other: Assertion) -> str:
    pair = {one.id, other.id}
    for record in log.conflicts:
        if {record.fact_a, record.fact_b} == pair and record.status != "resolved":
            return record.conflict_id
    return _made_id(*pair)


def _made_id(*facts: str) -> str:
    """The id of a conflict of two facts, the same whichever comes first."""
    digest = hashlib.sha256("\n".join(sorted(facts)).encode()).hexdigest()
    return f"conflict-{digest[:_ID_DIGITS]}"


def resolve(
    memory: Memory,
    name: str,
    now: datetime,
    *,
    winner: str | None = None,
    value: Callable[[Contradiction], Value] | None = None,
) -> tuple[Assertion, list[Conflict]]:
    """
    Settle a contradiction, by its id or a beginning of it, or all of a key; gives the fact that settles it,
    and the records. Either the fact *winner*, by its id or a beginning of it, holds, or the *value* given.
    """
    with memory.held() as log:
        found, is_key = _named(find_contradictions(log, now), name, memory.user)
        first = found[0]
        facts = {one.id: one for pair in found for one in (pair.winner, pair.rival)}
        if is_key:  # whoever says otherwise loses, those that agree with the winner too
            facts |= {one.id: one for one in log.contenders(first.subject, now=now)}
        settled = value(first) if value is not None else _winner(list(facts.values()), winner or "").value
        resolution = memory.asserted(
            anew(
                first.winner,
                entity=f"panda:resolution:{first.conflict_id}",
                value=settled,
                source=f"user:{memory.user}",
                confidence=SAID_BY_USER,
            )
        )
        pairs = _pairs(found, list(facts.values()), settled)
        records = [Conflict(*pair, "resolved", resolution.id) for pair in pairs]
        memory.commit([resolution], records)
        return resolution, records


def _pairs(
    found: Sequence[Contradiction], facts: Sequence[Assertion], settled: Value
) -> list[tuple[str, str, str]]:
    pairs = [(one.conflict_id, one.winner.id, one.rival.id) for one in found]
    named = {name for pair in pairs for name in pair[1:]}
    for one in facts:
        if one.id not in named and one.value.key != settled.key:
            other = next(o for o in facts if o.value.key != one.value.key)
            pairs.append((_made_id(one.id, other.id), other.id, one.id))
    return pairs


def _named(found: Sequence[Contradiction], name: str, user: str) -> tuple[list[Contradiction], bool]:
    by_id = [one for one in found if one.conflict_id.startswith(name)]
    exact = [one for one in by_id if one.conflict_id == name]
    by_key = [one for one in found if one.subject.key(user) == name]
    chosen = exact or by_key or by_id
    if not chosen:
        raise NotFoundError(
            f"no contradiction is called {name!r}", where="CONFLICT", fix="see `panda memory conflicts`"
        )
    if len({one.subject for one in chosen}) > 1 or (not by_key and len(chosen) > 1):
        raise UsageError(
            f"{len(chosen)} contradictions begin with {name!r}", where="CONFLICT", fix="give the whole id"
        )
    return list(chosen), not exact and bool(by_key)


def _winner(facts: Sequence[Assertion], name: str) -> Assertion:
    chosen = [one for one in facts if one.id.startswith(name)]
    if len(chosen) == 1:
        return chosen[0]
    ids = ", ".join(one.id for one in facts)
    message = f"{name!r} is none of its facts" if not chosen else f"{len(chosen)} facts begin with {name!r}"
    raise UsageError(message, where="--winner", fix=f"give one of {ids}")


Rule = Literal["contradiction", "expired", "expiring", "orphaned", "dangling"]
_Standing = Mapping[Subject, Sequence[Assertion]]


@dataclass(frozen=True)
class Finding:
    rule: Rule
    scope: str  # scope of the fact; "" for a conflict record
    key: str  # key of the fact, or id of the record
    facts: tuple[str, ...]  # ids of the facts concerned
    message: str


def lint_memory(log: MemoryLog, user: str, now: datetime, *, within_days: float) -> list[Finding]:
    """Contradictions, facts expired or about to, facts that a retraction left alone, dead references."""

    def finding(rule: Rule, subject: Subject, message: str, *facts: Assertion) -> Finding:
        ids = tuple(one.id for one in facts)
        return Finding(rule, subject.scope, subject.key(user), ids, message)

    found = []
    for pair in find_contradictions(log, now):
        said, against = (
            f"{_shown(one)} ({one.confidence:g}, {one.source})" for one in (pair.winner, pair.rival)
        )
        message = f"{said} against {against}: settle {pair.conflict_id}"
        found.append(finding("contradiction", pair.subject, message, pair.winner, pair.rival))
    past = {
        subject: log.contenders(subject, now=now, include_expired=True)
        for subject in log.subjects()
        if not subject.is_system
    }
    ending = [(one.valid_until, one) for ranked in past.values() for one in ranked]
    for verb, is_over in (("held", True), ("holds", False)):
        for until, one in ending:
            if until is None or until > now + timedelta(days=within_days) or (until < now) != is_over:
                continue
            message = f"{_shown(one)} {verb} until {render_time(until)}"
            found.append(finding("expired" if is_over else "expiring", one.subject, message, one))
    for one, last in _orphaned(log, past):
        message = f"{_shown(one)} ({one.source}) fell with the retraction by {last.source}"
        found.append(finding("orphaned", one.subject, message, one, last))
    for one, target, is_retracted in _dangling(past):
        lost = "all was retracted" if is_retracted else f"nothing is known in scope {one.scope}"
        message = f"refers to {target}, of which {lost}"
        found.append(finding("orphaned" if is_retracted else "dangling", one.subject, message, one))
    for record in log.conflicts:
        if missing := log.missing_facts(record):
            message = f"names facts that are not in the log: {', '.join(missing)}"
            found.append(Finding("dangling", "", record.conflict_id, missing, message))
    return found


def _shown(one: Assertion) -> str:
    return str(file_value(one.value))


def _orphaned(log: MemoryLog, past: _Standing) -> Iterator[tuple[Assertion, Assertion]]:
    for subject, ranked in past.items():
        said = log.of(subject)
        retractions = [one for one in said if one.confidence == 0]
        if ranked or not retractions:
            continue
        last = max(retractions, key=lambda one: one.reading)
        retracted = {one.value.key for one in retractions}
        for one in said:
            if one.value.key not in retracted and one.source != last.source:
                yield one, last


def _dangling(past: _Standing) -> Iterator[tuple[Assertion, str, bool]]:
    known = {subject[:2] for subject, ranked in past.items() if ranked}
    spoken = {subject[:2] for subject in past}
    for subject, ranked in past.items():
        for one in ranked:
            if one.value.type == "ref":
                target = entity_name(str(one.value.v))
                if (subject.scope, target) not in known:
                    yield one, target, (subject.scope, target) in spoken


@dataclass(frozen=True)
class Merge:
    assertions: tuple[Assertion, ...]  # what was new, by clock reading
    conflicts: tuple[Conflict, ...]  # conflict records that were new
    known: int  # facts and records that were here already


def merge_files(memory: Memory, paths: Sequence[Path]) -> Merge:
    """
    Add the facts and conflict records of files: lines (another machine's memory.jsonl and conflicts.jsonl),
    or documents `{"facts": […], "conflicts": […]}`. A line that is neither, or has the id of another fact,
    raises FileFormatError before anything is written.
    """
    read = [one for path in paths for one in _read(path)]
    with memory.held() as log:
        facts: dict[str, Assertion] = {}
        records: dict[Conflict, None] = {}
        for where, one in read:
            if isinstance(one, Conflict):
                records[one] = None
            else:
                facts.setdefault(one.id, one)
                _check_same(where, one, facts[one.id])
                _check_same(where, one, log.get(one.id) or one)
        new = sorted(
            (one for one in facts.values() if log.get(one.id) is None),
            key=lambda one: (one.reading, one.id),
        )
        there = set(log.conflicts)
        settled = [one for one in records if one not in there]
        if new or settled:
            memory.commit(new, settled)
    return Merge(tuple(new), tuple(settled), len(facts) - len(new) + len(records) - len(settled))


def _check_same(where: str, one: Assertion, other: Assertion) -> None:
    if _meaning(one) != _meaning(other):
        raise FileFormatError(
            f"another fact has the id {one.id!r} and says something else",
            where=Location(where, key="id"),
        )


def _meaning(one: Assertion) -> tuple[object, ...]:
    said = (one.value.key, one.confidence, one.valid_until, one.source)
    return (*one.subject, *said, one.reading)


def _read(path: Path) -> Iterator[tuple[str, Assertion | Conflict]]:
    text = read_text(path, pipe=True)
    for where, raw in _values(path, text):
        if isinstance(raw, dict) and "conflict_id" in raw:
            yield where, known_part(Conflict, raw, where=where)
        else:
            yield where, known_part(Assertion, raw, where=where)


def _document(path: Path, text: str) -> dict[str, Any] | None:
    try:
        value = parse_json(text, where=str(path))
    except FileFormatError:
        first = next((line for line in text.split("\n") if line.strip()), "")
        if first.strip() in ("{", "["):  # one value over several lines, and broken
            raise
        return None
    return value if isinstance(value, dict) and isinstance(value.get("facts"), list) else None


def _values(path: Path, text: str) -> Iterator[tuple[str, Any]]:
    document = _document(path, text)
    if document is not None:
        for name in ("facts", "conflicts"):
            for index, raw in enumerate(document.get(name) or ()):
                yield Location(path, key=f"{name}[{index}]"), raw
        return
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip():
            yield Location(path, line=number), parse_json(line, where=str(path), line=number)
