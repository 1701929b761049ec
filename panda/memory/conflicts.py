"""Contradictions in a user's log and how one is settled, what else is questionable, other machines' facts."""

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import islice
from pathlib import Path
from typing import Any, Literal

from panda.documents.times import render_time
from panda.errors import FileFormatError, Location, NotFoundError, UsageError
from panda.memory.assertion_log import MemoryLog
from panda.memory.confidence import SAID_BY_USER
from panda.memory.fact_reader import anew, file_value, known_part
from panda.memory.user_memory import Memory
from panda.store.fact_records import Assertion, Conflict, Subject, Value, entity_name
from panda.store.files import parse_json, read_text


@dataclass(frozen=True)
class Contradiction:
    """Two facts that compete for one scope, entity and relation and say different things."""

    conflict_id: str  # the same on every machine that has both facts
    subject: Subject  # scope, entity, relation
    winner: Assertion  # what holds as long as nobody settles it
    rival: Assertion  # what contradicts it


def find_contradictions(log: MemoryLog, now: datetime) -> list[Contradiction]:
    """All contradictions that stand *now*, those of one subject together, the strongest rival first."""
    named = {frozenset((record.fact_a, record.fact_b)): record for record in reversed(log.conflicts)}
    contradictions = []
    for subject in log.subjects():
        ranked = [] if subject.is_system else log.contenders(subject, now=now)
        for rival in islice(ranked, 1, None):
            if rival.value.key != ranked[0].value.key:
                pair = (ranked[0].id, rival.id)
                record = named.get(frozenset(pair))
                is_open = record is not None and record.status != "resolved"
                name = record.conflict_id if record and is_open else _id_of(*pair)
                contradictions.append(Contradiction(name, subject, ranked[0], rival))
    return contradictions


def _id_of(*facts: str) -> str:
    """The id of a conflict of two facts, the same whichever comes first."""
    digest = hashlib.sha256("\n".join(sorted(facts)).encode()).hexdigest()
    return f"conflict-{digest[:12]}"


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
        contradictions, is_key = _named(find_contradictions(log, now), name, memory.user)
        first = contradictions[0]
        facts = {fact.id: fact for pair in contradictions for fact in (pair.winner, pair.rival)}
        if is_key:  # whoever says otherwise loses, those that agree with the winner too
            facts |= {fact.id: fact for fact in log.contenders(first.subject, now=now)}
        settled = value(first) if value is not None else _winner(list(facts.values()), winner or "").value
        of = f"panda:resolution:{first.conflict_id}"
        by = f"user:{memory.user}"
        sure = SAID_BY_USER
        resolution = memory.asserted(anew(first.winner, entity=of, value=settled, source=by, confidence=sure))
        pairs = {
            (contradiction.winner.id, contradiction.rival.id): contradiction.conflict_id
            for contradiction in contradictions
        }
        there = {fact_id for pair in pairs for fact_id in pair}
        for fact in facts.values():
            if fact.id not in there and fact.value.key != settled.key:
                other = next(rival for rival in facts.values() if rival.value.key != fact.value.key)
                pairs[other.id, fact.id] = _id_of(fact.id, other.id)
        records = [Conflict(of, *pair, "resolved", resolution.id) for pair, of in pairs.items()]
        memory.commit([resolution], records)
        return resolution, records


def _named(contradictions: Sequence[Contradiction], name: str, user: str) -> tuple[list[Contradiction], bool]:
    """The contradictions that a name means, and whether it is their key."""
    by_id = [contradiction for contradiction in contradictions if contradiction.conflict_id.startswith(name)]
    exact = [contradiction for contradiction in by_id if contradiction.conflict_id == name]
    by_key = [contradiction for contradiction in contradictions if contradiction.subject.key(user) == name]
    chosen = exact or by_key or by_id
    if not chosen:
        message = f"no contradiction is called {name!r}"
        raise NotFoundError(message, where="CONFLICT", fix="see `panda memory conflicts`")
    if len({contradiction.subject for contradiction in chosen}) > 1 or (not by_key and len(chosen) > 1):
        message = f"{len(chosen)} contradictions begin with {name!r}"
        raise UsageError(message, where="CONFLICT", fix="give the whole id")
    return chosen, not exact and bool(by_key)


def _winner(facts: Sequence[Assertion], name: str) -> Assertion:
    chosen = [fact for fact in facts if fact.id.startswith(name)]
    if len(chosen) == 1:
        return chosen[0]
    message = f"{name!r} is none of its facts" if not chosen else f"{len(chosen)} facts begin with {name!r}"
    fix = f"give one of {', '.join(fact.id for fact in facts)}"
    raise UsageError(message, where="--winner", fix=fix)


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
    past = {
        subject: log.contenders(subject, now=now, include_expired=True)
        for subject in log.subjects()
        if not subject.is_system
    }
    return [
        *_contradicted(log, user, now),
        *_ending(past, user, now, timedelta(days=within_days)),
        *_orphaned(log, past, user),
        *_dangling(log, past, user),
    ]


def _finding(rule: Rule, user: str, message: str, *facts: Assertion) -> Finding:
    subject = facts[0].subject
    ids = tuple(fact.id for fact in facts)
    return Finding(rule, subject.scope, subject.key(user), ids, message)


def _value_text(assertion: Assertion) -> str:
    return str(file_value(assertion.value))


def _contradicted(log: MemoryLog, user: str, now: datetime) -> Iterator[Finding]:
    for pair in find_contradictions(log, now):
        sides = (pair.winner, pair.rival)
        claims = " against ".join(
            f"{_value_text(side)} ({side.confidence:g}, {side.source})" for side in sides
        )
        yield _finding("contradiction", user, f"{claims}: settle {pair.conflict_id}", *sides)


def _ending(past: _Standing, user: str, now: datetime, within: timedelta) -> Iterator[Finding]:
    ending = [(until, fact) for ranked in past.values() for fact in ranked if (until := fact.valid_until)]
    for until, fact in ending:
        if until < now:
            yield _finding("expired", user, f"{_value_text(fact)} held until {render_time(until)}", fact)
    for until, fact in ending:
        if now <= until <= now + within:
            yield _finding("expiring", user, f"{_value_text(fact)} holds until {render_time(until)}", fact)


def _orphaned(log: MemoryLog, past: _Standing, user: str) -> Iterator[Finding]:
    for subject, ranked in past.items():
        assertions = log.of(subject)
        retractions = [assertion for assertion in assertions if assertion.confidence == 0]
        if ranked or not retractions:
            continue
        last = max(retractions, key=lambda assertion: assertion.reading)
        retracted = {assertion.value.key for assertion in retractions}
        for assertion in assertions:
            if assertion.value.key not in retracted and assertion.source != last.source:
                message = (
                    f"{_value_text(assertion)} ({assertion.source}) fell with the retraction by {last.source}"
                )
                yield _finding("orphaned", user, message, assertion, last)


def _dangling(log: MemoryLog, past: _Standing, user: str) -> Iterator[Finding]:
    live_entities = {subject[:2] for subject, ranked in past.items() if ranked}
    spoken = {subject[:2] for subject in past}
    for fact in (fact for ranked in past.values() for fact in ranked if fact.value.type == "ref"):
        target = entity_name(str(fact.value.v))
        if (fact.scope, target) in live_entities:
            continue
        is_retracted = (fact.scope, target) in spoken
        lost = "all was retracted" if is_retracted else f"nothing is known in scope {fact.scope}"
        message = f"refers to {target}, of which {lost}"
        yield _finding("orphaned" if is_retracted else "dangling", user, message, fact)
    for record in log.conflicts:
        if missing := log.missing_facts(record):
            message = f"names facts that are not in the log: {', '.join(missing)}"
            yield Finding("dangling", "", record.conflict_id, missing, message)


@dataclass(frozen=True)
class Merge:
    assertions: tuple[Assertion, ...]  # what was new, by clock reading
    conflicts: tuple[Conflict, ...]  # conflict records that were new
    existing_count: int  # facts and records that were here already


def merge_files(memory: Memory, paths: Sequence[Path]) -> Merge:
    """
    Add the facts and conflict records of files: lines (another machine's memory.jsonl and conflicts.jsonl),
    or documents `{"facts": […], "conflicts": […]}`. A line that is neither, or has the id of another fact,
    raises FileFormatError before anything is written.
    """
    read = [(where, _record(raw, where)) for path in paths for where, raw in _values(path)]
    with memory.held() as log:
        facts: dict[str, Assertion] = {}
        records = dict.fromkeys(entry for _, entry in read if isinstance(entry, Conflict))
        for where, entry in read:
            if isinstance(entry, Assertion):
                existing = log.get(entry.id) or facts.setdefault(entry.id, entry)
                if _meaning(entry) != _meaning(existing):
                    message = f"another fact has the id {entry.id!r} and says something else"
                    raise FileFormatError(message, Location(where, key="id"))
                facts[entry.id] = existing
        new = [fact for fact in facts.values() if log.get(fact.id) is None]
        new.sort(key=lambda fact: (fact.reading, fact.id))
        there = set(log.conflicts)
        settled = [record for record in records if record not in there]
        if new or settled:
            memory.commit(new, settled)
    existing_count = len(facts) - len(new) + len(records) - len(settled)
    return Merge(tuple(new), tuple(settled), existing_count)


def _meaning(fact: Assertion) -> tuple[object, ...]:
    return *fact.subject, fact.value.key, fact.confidence, fact.valid_until, fact.source, fact.reading


def _record(raw: Any, where: str) -> Assertion | Conflict:
    is_conflict = isinstance(raw, dict) and "conflict_id" in raw
    return known_part(Conflict, raw, where=where) if is_conflict else known_part(Assertion, raw, where=where)


def _values(path: Path) -> Iterator[tuple[str, Any]]:
    text = read_text(path, pipe=True)
    document = None
    lines = [(number, line) for number, line in enumerate(text.split("\n"), 1) if line.strip()]
    try:
        document = parse_json(text, where=str(path))
    except FileFormatError:
        if lines and lines[0][1].strip() in ("{", "["):  # one value over several lines, and broken
            raise
    if isinstance(document, dict) and isinstance(document.get("facts"), list):
        for name in ("facts", "conflicts"):
            for index, raw in enumerate(document.get(name) or ()):
                yield Location(path, key=f"{name}[{index}]"), raw
        return
    for number, line in lines:
        yield Location(path, line=number), parse_json(line, where=str(path), line=number)
