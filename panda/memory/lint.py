"""What is questionable in a user's memory (S2 §16, "lint"). Pure but for the log it is given."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal

from panda.documents.times import render_time
from panda.memory.conflicts import find_contradictions
from panda.memory.fact import Assertion, Subject
from panda.memory.log import MemoryLog
from panda.memory.value import entity_name, file_value

Rule = Literal["contradiction", "expired", "expiring", "orphaned", "dangling"]
_Standing = Mapping[Subject, Sequence[Assertion]]


@dataclass(frozen=True)
class Finding:
    """One thing that a person should look at."""

    rule: Rule
    scope: str  # scope of the fact; "" for a conflict record
    key: str  # key of the fact, or id of the record
    facts: tuple[str, ...]  # ids of the facts concerned
    message: str


def lint_memory(log: MemoryLog, user: str, now: datetime, *, within_days: float) -> list[Finding]:
    """
    Contradictions, facts that have expired or soon will, facts that a retraction left alone, and references
    to nothing.

    Args:
        within_days: What expires within so many days from now is soon expiring.

    Returns:
        The findings, kind by kind.
    """

    def finding(rule: Rule, subject: Subject, message: str, *facts: Assertion) -> Finding:
        ids = tuple(one.fact.id for one in facts)
        return Finding(rule, subject.scope, subject.key(user), ids, message)

    found = []
    for pair in find_contradictions(log, now):
        said, against = (
            f"{_shown(one)} ({one.fact.confidence:g}, {one.fact.source})" for one in (pair.winner, pair.rival)
        )
        message = f"{said} against {against}: settle {pair.conflict_id}"
        found.append(finding("contradiction", pair.subject, message, pair.winner, pair.rival))
    past = {
        subject: log.contenders(subject, now=now, include_expired=True)
        for subject in log.subjects()
        if not subject.is_system
    }
    ending = [(one.fact.valid_until, one) for ranked in past.values() for one in ranked]
    for verb, is_over in (("held", True), ("holds", False)):
        for until, one in ending:
            if until is None or until > now + timedelta(days=within_days) or (until < now) != is_over:
                continue
            message = f"{_shown(one)} {verb} until {render_time(until)}"
            found.append(finding("expired" if is_over else "expiring", one.subject, message, one))
    for one, last in _orphaned(log, past):
        message = f"{_shown(one)} ({one.fact.source}) fell with the retraction by {last.fact.source}"
        found.append(finding("orphaned", one.subject, message, one, last))
    for one, target, is_retracted in _dangling(past):
        lost = "all was retracted" if is_retracted else f"nothing is known in scope {one.fact.scope}"
        message = f"refers to {target}, of which {lost}"
        found.append(finding("orphaned" if is_retracted else "dangling", one.subject, message, one))
    for record in log.conflicts:
        if missing := log.missing_facts(record):
            message = f"names facts that are not in the log: {', '.join(missing)}"
            found.append(Finding("dangling", "", record.conflict_id, missing, message))
    return found


def _shown(one: Assertion) -> str:
    return str(file_value(one.fact.value))


def _orphaned(log: MemoryLog, past: _Standing) -> Iterator[tuple[Assertion, Assertion]]:
    """
    What a retraction of something else took along, with that retraction: facts of other sources, silenced
    although nobody took them back, where nothing has been said since.
    """
    for subject, ranked in past.items():
        said = log.of(subject)
        retractions = [one for one in said if one.fact.confidence == 0]
        if ranked or not retractions:
            continue
        last = max(retractions, key=lambda one: one.fact.reading)
        retracted = {one.fact.value.key for one in retractions}
        for one in said:
            if one.fact.value.key not in retracted and one.fact.source != last.fact.source:
                yield one, last


def _dangling(past: _Standing) -> Iterator[tuple[Assertion, str, bool]]:
    """References to entities that nothing is known of, or of which all was retracted."""
    known = {subject[:2] for subject, ranked in past.items() if ranked}
    spoken = {subject[:2] for subject in past}
    for subject, ranked in past.items():
        for one in ranked:
            if one.fact.value.type == "ref":
                target = entity_name(str(one.fact.value.v))
                if (subject.scope, target) not in known:
                    yield one, target, (subject.scope, target) in spoken
