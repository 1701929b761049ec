"""What was told of one thing: its sentences, its keys, its older and its corrected values."""

import re
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from panda.documents.memory_file import is_statement
from panda.messages.clauses import says_otherwise
from panda.messages.forget_requests import (
    clause_spans,
    denied_terms,
    forget_terms,
    is_meant_by,
    refers_back,
)
from panda.store.fact_records import Assertion, Subject

FORGOTTEN = re.compile(r"\[forgotten( \d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ)?\]")
"""The mark that stands where something was forgotten."""
_MOST_EARLIER = 200
"""How many earlier clauses with a word, the newest, may be what a correction corrects."""
_LEAST_SHARED = 2
"""Words, beside the value that it denies, that a correction without a key shares with what it corrects."""


@dataclass(frozen=True, kw_only=True)
class StatementClause:
    """A clause of a sentence that was told, or the whole sentence where it is one clause."""

    subject: Subject  # of the sentence
    start: int  # where it begins in the sentence, in characters
    end: int
    text: str
    sentence: str
    source_turn: int | None


@dataclass(frozen=True)
class ToldThing:
    """All that was told of one thing."""

    keys: frozenset[Subject]  # keys with values, as "gate_code"
    clauses: tuple[StatementClause, ...]  # in the order of telling

    @property
    def subjects(self) -> frozenset[Subject]:
        """Keys and sentences, also those of which only a clause belongs to it."""
        return self.keys | {clause.subject for clause in self.clauses}

    def is_meant_by(self, terms: frozenset[str]) -> bool:
        """Return whether one of its clauses or keys is what some terms want forgotten."""
        texts = (*(clause.text for clause in self.clauses), *(_words_of(key) for key in self.keys))
        return any(is_meant_by(terms, text) for text in texts)


def find_told_things(assertions: Iterable[Assertion]) -> list[ToldThing]:
    """
    Group what a log says of its user, in the order of telling. A sentence belongs to the keys that it gave;
    sentences of the same words belong together, and so does what corrects with what it corrects.
    """
    return _Grouping([assertion for assertion in assertions if assertion.scope == "local"]).things()


class _Grouping:
    """Joins clauses and keys of a log that say something of the same thing."""

    def __init__(self, assertions: list[Assertion]) -> None:
        self._assertions = assertions
        self._leaders: dict[StatementClause | Subject, StatementClause | Subject] = {}
        self._clauses: dict[Subject, list[StatementClause]] = {}
        self._told_in: dict[int | None, list[StatementClause]] = defaultdict(list)
        self._holding: dict[str, list[StatementClause]] = defaultdict(list)
        self._terms: dict[StatementClause, frozenset[str]] = {}
        for assertion in assertions:
            if is_statement(assertion.relation) and assertion.confidence > 0:
                self._add_sentence(assertion)
            elif not is_statement(assertion.relation):
                self._leaders.setdefault(assertion.subject, assertion.subject)

    def things(self) -> list[ToldThing]:
        for assertion in self._assertions:
            if not is_statement(assertion.relation):
                self._join_key(assertion)
        self._join_corrections()
        members: dict[StatementClause | Subject, list[StatementClause | Subject]] = defaultdict(list)
        for member in self._leaders:
            members[self._leader(member)].append(member)
        return [
            ToldThing(
                keys=frozenset(member for member in group if isinstance(member, Subject)),
                clauses=tuple(member for member in group if isinstance(member, StatementClause)),
            )
            for group in members.values()
        ]

    def _add_sentence(self, assertion: Assertion) -> None:
        text = str(assertion.value.v)
        if assertion.subject in self._clauses or FORGOTTEN.fullmatch(text):
            return
        clauses = [
            StatementClause(
                subject=assertion.subject,
                start=start,
                end=end,
                text=text[start:end],
                sentence=text,
                source_turn=assertion.source_turn,
            )
            for start, end in clause_spans(text)
        ]
        self._clauses[assertion.subject] = clauses
        self._told_in[assertion.source_turn] += clauses
        for clause in clauses:
            self._leaders[clause] = clause
            self._terms[clause] = forget_terms(clause.text)
            for term in self._terms[clause]:
                self._holding[term].append(clause)
            self._join_same_words(clause)

    def _join_same_words(self, clause: StatementClause) -> None:
        words = clause.text.casefold().split()
        rare = min((self._holding[term] for term in self._terms[clause]), key=len, default=[])
        for other in rare:
            if other.text.casefold().split() == words:
                self._join(clause, other)

    def _join_key(self, assertion: Assertion) -> None:
        """Join a key with the clauses of its turn that give the value; by the key's words if several do."""
        values = {value.casefold() for value in value_texts(assertion)}
        turn_clauses = (
            self._told_in.get(assertion.source_turn, []) if assertion.source_turn is not None else []
        )
        giving = [
            clause for clause in turn_clauses if any(value in clause.text.casefold() for value in values)
        ]
        terms = forget_terms(_words_of(assertion.subject))
        named = [clause for clause in giving if not terms.isdisjoint(self._terms[clause])]
        for clause in named or giving:
            self._join(assertion.subject, clause)

    def _join_corrections(self) -> None:
        retracted: dict[int | None, list[Subject]] = defaultdict(list)
        keys: dict[int | None, list[Subject]] = defaultdict(list)
        for assertion in self._assertions:
            if is_statement(assertion.relation):
                if assertion.confidence == 0 and assertion.source_turn is not None:
                    retracted[assertion.source_turn].append(assertion.subject)
            else:
                keys[assertion.source_turn].append(assertion.subject)
        for subject, clauses in self._clauses.items():
            turn = clauses[0].source_turn
            sentence = clauses[0].sentence
            if turn is None or not (says_otherwise(sentence) or refers_back(sentence)):
                continue
            for clause in clauses:
                for former in self._corrected(clause, retracted[turn], keys[turn]):
                    if former.subject != subject:
                        self._join(clause, former)

    def _corrected(
        self, clause: StatementClause, retracted: Iterable[Subject], keys: Iterable[Subject]
    ) -> Iterator[StatementClause]:
        """The earlier clauses that one corrects: retracted with it, of its key, or with a value it denies."""
        terms = self._terms[clause]
        for subject in retracted:
            formers = self._clauses.get(subject, [])
            sharing = [former for former in formers if not terms.isdisjoint(self._terms[former])]
            yield from sharing or formers
        earlier = {former: self._terms[former] for term in terms for former in self._before(clause, term)}
        if refers_back(clause.sentence):
            before = [former for former in earlier if denied_terms(clause.text) & self._terms[former]]
            yield from before or self._told_in.get((clause.source_turn or 0) - 1, [])
            return
        joined = [forget_terms(_words_of(key)) for key in keys if self._leader(key) == self._leader(clause)]
        if joined:
            yield from (former for former, words in earlier.items() if any(key <= words for key in joined))
            return
        values = denied_terms(clause.text)
        shared = {former: words & terms - values for former, words in earlier.items() if words & values}
        most = max(map(len, shared.values()), default=0)
        if most >= _LEAST_SHARED:
            yield from (former for former, words in shared.items() if len(words) == most)

    def _before(self, clause: StatementClause, term: str) -> Iterator[StatementClause]:
        """The newest clauses with a term that were told before one."""
        turn = clause.source_turn or 0
        clauses = self._holding[term]
        end = bisect_left(clauses, turn, key=lambda former: former.source_turn or 0)
        return reversed(clauses[max(0, end - _MOST_EARLIER) : end])

    def _join(self, left: StatementClause | Subject, right: StatementClause | Subject) -> None:
        self._leaders[self._leader(left)] = self._leader(right)

    def _leader(self, member: StatementClause | Subject) -> StatementClause | Subject:
        while self._leaders[member] != member:
            self._leaders[member] = self._leaders[self._leaders[member]]
            member = self._leaders[member]
        return member


def removed_spans(things: Iterable[ToldThing]) -> Mapping[Subject, list[tuple[int, int]]]:
    """By sentence where the clauses of some things stand in it."""
    spans: dict[Subject, list[tuple[int, int]]] = defaultdict(list)
    for thing in things:
        for clause in thing.clauses:
            spans[clause.subject].append((clause.start, clause.end))
    return spans


def value_texts(assertion: Assertion) -> list[str]:
    """The values that an assertion gives, as texts; none for null and booleans."""
    value = assertion.value.v
    parts = value if isinstance(value, tuple) else (value,)
    texts = []
    for part in parts:
        if isinstance(part, float):
            texts.append(f"{part:g}")
        elif part is not None and not isinstance(part, bool):
            texts.append(str(part))
    return [text for text in texts if text and not FORGOTTEN.fullmatch(text)]


def _words_of(subject: Subject) -> str:
    return re.sub(r"[_\W]+", " ", subject.relation)
