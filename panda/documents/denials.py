"""What an answer says and its sources say the reverse of: affirmed and denied, at most and at least. Pure."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from panda.documents.safe_text import shorten
from panda.documents.source_statements import SourceStatement, StatementPart, read_statements, value_keys
from panda.language.asked import read_repeated
from panda.language.claims import Claim, Found
from panda.language.polarity import Polarity, denies, first_opposite, read_polarity, without_denial
from panda.language.words import split_words

_MOST_CLAUSES = 60  # that hold one word, of which it is asked what they say
_MOST_CLAUSE_CHARS = 300  # of which it is asked what they limit
_LEAST_SHARED = 2
_QUOTED_CHARS = 60


@dataclass(frozen=True, eq=False, kw_only=True)
class _SourceClause:
    """A part of a source, with opposites as one word."""

    text: str
    polarity: Polarity
    stems: frozenset[str]  # of the part, with what tells its values
    titled: frozenset[str]  # and of what it stands below
    whole: frozenset[str]  # and of its sentence

    def shares(self, stems: frozenset[str]) -> int:
        """Return how much it has of some words, those of its own part twice."""
        return len(stems & self.stems) + len(stems & self.whole)


class Denials:
    """The clauses of cited texts by what they affirm or deny."""

    def __init__(self, source_statements: Sequence[SourceStatement]) -> None:
        """Take the statements of the texts."""
        self._clauses: dict[tuple[str, bool], list[_SourceClause]] = defaultdict(list)
        self._same_words: dict[frozenset[str], list[_SourceClause]] = defaultdict(list)
        self._limits: dict[frozenset[str], list[tuple[str, str]]] = defaultdict(list)
        self._stems = _as_one(word for statement in source_statements for word in statement.words)
        for statement in source_statements:
            for value, limit, text in _limited_values(statement):
                self._limits[value_keys(value)].append((limit, text))
            for part in statement.parts:
                clause = _SourceClause(
                    text=part.text,
                    polarity=_polarity_of(part),
                    stems=_as_one(part.says),
                    titled=_as_one(part.words | statement.title | statement.above),
                    whole=_as_one(statement.words),
                )
                for stem, is_affirmed in clause.polarity.affirmed.items():
                    self._clauses[stem, is_affirmed].append(clause)
                if clause.polarity.is_sure:
                    self._same_words[without_denial(part.text)].append(clause)

    def find(self, text: str) -> Iterator[Claim]:
        """Yield what a plain text says and the sources say the reverse of, in order."""
        for statement in read_statements(text, is_answer=True):
            for value, limit, _ in _limited_values(statement):
                limits = self._limits.get(value_keys(value), [])
                if limit and limits and all(other not in ("", limit) for other, _ in limits):
                    yield _denied(value.claim.text, limits[0][1])
            for part in statement.parts:
                against = self._find_reverse(part)
                if against is not None and not statement.text.endswith("?"):
                    word, clause = against
                    yield _denied(word, clause.polarity.denial or clause.text)

    def _find_reverse(self, clause_part: StatementPart) -> tuple[str, _SourceClause] | None:
        """Return the words of an answer and the clause that says their reverse; None if none clearly does."""
        polarity = _polarity_of(clause_part)
        stems = _as_one(clause_part.says)
        same = self._same_words.get(without_denial(clause_part.text), []) if polarity.is_sure else []
        is_reverse = all(bool(clause.polarity.denial) != bool(polarity.denial) for clause in same)
        if same and is_reverse and len(stems) >= _LEAST_SHARED:
            return clause_part.text, same[0]
        for stem, is_affirmed in polarity.affirmed.items():
            against = self._clauses.get((stem, not is_affirmed), [])
            alike = self._clauses.get((stem, is_affirmed), [])
            if len(against) + len(alike) > _MOST_CLAUSES:
                continue
            for clause in against:
                is_closest = all(other.shares(stems) < clause.shares(stems) for other in alike)
                if is_closest and self._speaks_of_same(clause, clause_part, polarity):
                    words = (word for own, word in clause_part.stems.items() if first_opposite(own) == stem)
                    return polarity.denial or next(words), clause
        return None

    def _speaks_of_same(
        self, source_clause: _SourceClause, clause_part: StatementPart, polarity: Polarity
    ) -> bool:
        """Return whether a clause of a source speaks of what a part of an answer does."""
        stems = _as_one(clause_part.says)
        in_sources = stems & self._stems
        least = _LEAST_SHARED
        if not polarity.denial:
            least = min(least, len(stems), len(source_clause.stems))
        if len(stems & source_clause.stems) < least or not in_sources <= source_clause.whole:
            return False
        if polarity.denial:
            spoken = split_words(source_clause.text.lower())
            return stems <= source_clause.titled and polarity.between.issubset(spoken)
        if not source_clause.polarity.between.issubset(split_words(clause_part.text.lower())):
            return False
        return in_sources <= source_clause.titled or source_clause.stems <= stems


def _denied(text: str, phrase: str) -> Claim:
    return Claim(text, "denial", text, f"the line says {shorten(phrase, _QUOTED_CHARS)!r}")


def _as_one(terms: Iterable[str]) -> frozenset[str]:
    return frozenset(map(first_opposite, terms))


def _polarity_of(clause_part: StatementPart) -> Polarity:
    """Return what a part affirms and denies of its words; nothing of one with a zero, which may deny."""
    polarity = read_polarity(clause_part.text)
    if any(value.amount and value.amount.value == 0 for value in clause_part.values):
        return Polarity({}, is_sure=False)
    stems = _as_one(clause_part.stems)
    affirmed = {stem: is_affirmed for stem, is_affirmed in polarity.affirmed.items() if stem in stems}
    return polarity._replace(affirmed=affirmed)


def _limited_values(source_statement: SourceStatement) -> Iterator[tuple[Found, str, str]]:
    """Yield the amounts of a statement, the side that each limits ("most", "least", "") and their part."""
    for part in source_statement.parts:
        amounts = [value for value in part.values if value.amount]
        if len(part.text) <= _MOST_CLAUSE_CHARS and amounts and not denies(part.text):
            for value in amounts:
                limit = read_repeated(source_statement.text, value.start, value.end).limit
                yield value, limit, part.text
