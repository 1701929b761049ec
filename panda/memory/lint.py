"""What is questionable in a user's memory (S2 §16, "lint"). Pure but for the log it is given."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal

from panda.documents.times import render_time
from panda.memory.conflicts import find_contradictions
from panda.memory.fact import Assertion, Subject
from panda.memory.log import MemoryLog
from panda.memory.value import entity_name, file_value

Rule = Literal["contradiction", "expired", "expiring", "orphaned", "dangling"]


@dataclass(frozen=True)
class Finding:
    """One thing that a person should look at."""

    rule: Rule  # what kind of thing
    scope: str  # scope of the fact; "" for a conflict record
    key: str  # key of the fact, or id of the record
    facts: tuple[str, ...]  # ids of the facts concerned
    message: str


def lint_memory(log: MemoryLog, user: str, now: datetime, *, within_days: float) -> list[Finding]:
    """
    Contradictions, facts that have expired or soon will, facts that a retraction left alone, and references
    to nothing.

    Args:
        user: Whose it is.
        within_days: What expires within so many days from now is soon expiring.

    Returns:
        The findings, kind by kind.
    """
    found = list(_contradictions(log, user, now))
    past = {subject: log.contenders(subject, now=now, include_expired=True) for subject in log.subjects()}
    past = {one: ranked for one, ranked in past.items() if not one.is_system}
    standing = [one for ranked in past.values() for one in ranked]
    found += _ending(standing, user, now, now + timedelta(days=within_days))
    found += _orphaned(log, past, user)
    found += _dangling_refs(past, user)
    return found + list(_dangling_records(log))


def _shown(one: Assertion) -> str:
    return str(file_value(one.fact.value))


def _key(subject: Subject, user: str) -> str:
    return subject.key(user)


def _contradictions(log: MemoryLog, user: str, now: datetime) -> Iterator[Finding]:
    for one in find_contradictions(log, now):
        said = f"{_shown(one.winner)} ({one.winner.fact.confidence:g}, {one.winner.fact.source})"
        against = f"{_shown(one.rival)} ({one.rival.fact.confidence:g}, {one.rival.fact.source})"
        message = f"{said} against {against}: settle {one.conflict_id}"
        facts = (one.winner.fact.id, one.rival.fact.id)
        yield Finding("contradiction", one.subject.scope, _key(one.subject, user), facts, message)


def _ending(standing: list[Assertion], user: str, now: datetime, soon: datetime) -> list[Finding]:
    expired: list[Finding] = []
    expiring: list[Finding] = []
    for one in standing:
        until = one.fact.valid_until
        if until is None or until > soon:
            continue
        gone = until < now
        verb = "held" if gone else "holds"
        finding = Finding(
            "expired" if gone else "expiring",
            one.fact.scope,
            _key(one.subject, user),
            (one.fact.id,),
            f"{_shown(one)} {verb} until {render_time(until)}",
        )
        (expired if gone else expiring).append(finding)
    return expired + expiring


def _orphaned(log: MemoryLog, past: dict[Subject, list[Assertion]], user: str) -> Iterator[Finding]:
    """
    What a retraction of something else took along: facts of other sources, silenced although nobody took
    them back, where nothing has been said since.
    """
    for subject, ranked in past.items():
        if ranked:
            continue
        said = log.of(subject)
        retractions = (one for one in said if one.fact.confidence == 0)
        last = max(retractions, key=lambda one: one.fact.reading, default=None)
        if last is None:
            continue
        retracted = {one.fact.value.key for one in said if one.fact.confidence == 0}
        for one in said:
            if one.fact.value.key not in retracted and one.fact.source != last.fact.source:
                message = f"{_shown(one)} ({one.fact.source}) fell with the retraction by {last.fact.source}"
                facts = (one.fact.id, last.fact.id)
                yield Finding("orphaned", subject[0], _key(subject, user), facts, message)


def _dangling_refs(past: dict[Subject, list[Assertion]], user: str) -> Iterator[Finding]:
    """References to entities that nothing is known of, or of which all was retracted."""
    known = {(subject[0], subject[1]) for subject, ranked in past.items() if ranked}
    spoken = {(subject[0], subject[1]) for subject in past}
    for subject, ranked in past.items():
        for one in ranked:
            if one.fact.value.type != "ref":
                continue
            target = (subject[0], entity_name(str(one.fact.value.v)))
            if target in known:
                continue
            retracted = target in spoken
            message = (
                f"refers to {target[1]}, of which all was retracted"
                if retracted
                else f"refers to {target[1]}, of which nothing is known in scope {subject[0]}"
            )
            rule: Rule = "orphaned" if retracted else "dangling"
            yield Finding(rule, subject[0], _key(subject, user), (one.fact.id,), message)


def _dangling_records(log: MemoryLog) -> Iterator[Finding]:
    for record in log.conflicts:
        if missing := log.missing_facts(record):
            message = f"names facts that are not in the log: {', '.join(missing)}"
            yield Finding("dangling", "", record.conflict_id, missing, message)
