"""Values and names that an answer says of one thing and its sources of another. Pure."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from panda.documents.safe_text import shorten
from panda.documents.source_statements import (
    TELL_APART,
    SourceStatement,
    StatementPart,
    read_statements,
    value_keys,
    value_kind,
)
from panda.language.claims import Claim, Found
from panda.language.expressions import find_expressions
from panda.language.patterns import lazy_pattern
from panda.language.polarity import denies, goes_across
from panda.language.words import LABELS, NOT_COUNTED

_MOST_HOLDERS = 6  # of a value that stands in more places it is not asked whose it is
_MOST_NUMBERS = 3
_VALUE_WORDS = 2
_QUOTED_CHARS = 60
_WORD_BEFORE = lazy_pattern(r"([^\W\d_]{2,30})[ ]\Z")
_LOOK_CHARS = 31
_SUM = lazy_pattern(r" [-+–] ")
_INEXACT = ("token", "written", "number", "month")
_NONE: frozenset[str] = frozenset()


@dataclass(frozen=True, eq=False, kw_only=True)
class _Attributed:
    """A value or name of an answer, with the words and values that the answer says of it."""

    text: str
    keys: frozenset[str]  # any of them tells it
    kind: str  # as value_kind has it, or "name"
    near: frozenset[str]  # what stands in the same clause
    wide: frozenset[str]  # what stands before it in the sentence too
    stated: frozenset[str]  # all of the sentence
    names: tuple[frozenset[str], ...]  # words of the sentence that make one name

    @property
    def is_name(self) -> bool:
        return self.kind == "name"

    @property
    def is_measured(self) -> bool:
        """Return whether it is an amount or a time, and does not only tell one thing from another."""
        return self.kind not in (*TELL_APART, "name")


@dataclass(frozen=True, eq=False)
class _Place:
    """A part of a source."""

    statement: SourceStatement
    part: StatementPart

    @property
    def titles(self) -> frozenset[str]:
        return self.statement.title | self.statement.above

    def told_without(self, terms: frozenset[str], keys: frozenset[str]) -> str:
        """Return in words what it is about but a value; not its title if some terms stand below that too."""
        own = " ".join(word for stem, word in self.part.stems.items() if stem not in keys)
        is_title = not (terms & self.statement.words or keys & self.statement.title)
        title = self.statement.title_text or " ".join(self.statement.parts[0].stems.values())
        return shorten((title if is_title else "") or own or self.part.text, _QUOTED_CHARS)

    @property
    def is_bare(self) -> bool:
        """Return whether its source is nothing but a value, as what was computed: "80 jars"."""
        is_short = len(self.part.text.split()) <= _VALUE_WORDS and bool(self.part.values)
        return len(self.statement.parts) == 1 and not self.titles and (is_short or not self.part.stems)


class ThingsOfSources:
    """What the statements of cited texts are about, to ask of an answer's values whose they are."""

    def __init__(self, source_statements: Sequence[SourceStatement]) -> None:
        """Take the statements of the texts."""
        self._places = [
            _Place(statement, part) for statement in source_statements for part in statement.parts
        ]
        self._holders: dict[str, list[_Place]] = defaultdict(list)
        for place in self._places:
            is_first = place.part is place.statement.parts[0]
            for key in place.part.words | (place.titles & place.statement.names if is_first else _NONE):
                self._holders[key].append(place)
        values = [value for statement in source_statements for value in statement.values]
        self._labels = _NONE.union(*(value_keys(value) for value in values if value_kind(value) == "number"))
        self._counts = _NONE.union(*(value_keys(value) for value in values if value_kind(value) != "number"))
        self._numbers = _numbers_by_word(source_statements)

    def find(self, text: str) -> Iterator[Claim]:
        """Yield the values and names of a plain text that the sources have of another thing."""
        for statement in read_statements(text, is_answer=True):
            asked = [(own, self._find_reason(own, statement)) for own in _attributed_values(statement)]
            wrong = [(own, reason) for own, reason in asked if reason]
            measured = [(own, reason) for own, reason in wrong if own.is_measured]
            for own, reason in measured or wrong:  # of "Hive 4 gave 9 kg" the 9 kg tell it
                yield Claim(own.text, "thing", own.text, reason)
            affirming = (part for part in statement.parts if part.values and not denies(part.text))
            for part in affirming:
                for value in part.values:
                    if reason := self._find_other_numbers(statement.text, value):
                        yield Claim(value.claim.text, "thing", value.claim.value, reason)

    def _find_other_numbers(self, text: str, mention: Found) -> str:
        """Return which numbers of a name the sources have, where "Hive 4" is none of them; "" else."""
        word = _word_before(text, mention)
        numbers = self._numbers.get(word.lower().removesuffix("s"), [])
        keys = value_keys(mention)
        if not numbers or keys.isdisjoint(self._counts) or not keys.isdisjoint(self._labels):
            return ""
        listed = " and ".join(f"{word} {number}" for number in numbers[:_MOST_NUMBERS])
        return f"the lines speak of {listed}, not of {word} {mention.claim.text}"

    def _find_reason(self, attributed: _Attributed, answer_statement: SourceStatement) -> str:
        """Return what a value stands beside, and what is said of it and it does not; "" if it may be so."""
        holders = [place for key in attributed.keys for place in self._holders.get(key, ())]
        if not 0 < len(holders) <= _MOST_HOLDERS or any(holder.is_bare for holder in holders):
            return ""
        for terms in attributed.near, attributed.wide:
            taken = [self._taken_by_rivals(terms, attributed, holder) for holder in holders]
            if all(taken):
                other = next(word for key, word in _words_of(answer_statement) if key in taken[0])
                own = holders[0].told_without(taken[0], attributed.keys)
                return f"{attributed.text} stands beside {own!r}, not beside {other!r}"
            if any(taken) or attributed.is_name:
                return ""
        return ""

    def _taken_by_rivals(
        self, terms: frozenset[str], attributed: _Attributed, holder: _Place
    ) -> frozenset[str]:
        """Return which terms name what the first rival is of that takes any; none if no rival does."""
        rivals = (_taken(terms, attributed, holder, rival) for rival in self._places)
        return next(filter(None, rivals), _NONE)


def _taken(terms: frozenset[str], attributed: _Attributed, holder: _Place, rival: _Place) -> frozenset[str]:
    """
    Return which of some terms, said of a value, name what a rival is of: a place with another value of the
    same kind. None if that is not clear.

    Args:
        terms: The near or the wide ones.
        holder: Where the value stands.
    """
    is_near = terms is attributed.near
    is_same = rival.statement is holder.statement
    if not is_same and attributed.wide & rival.statement.words <= holder.statement.words:
        return _NONE
    values, all_values = _values_like(attributed, holder, rival)
    is_stated = not attributed.stated.isdisjoint(all_values)
    if not values or terms & values or (is_stated and not is_near):
        return _NONE
    part = rival.part
    lead = part.lead - values
    titles = _NONE
    if is_same:
        beside = part.words if part.stems else part.words | holder.part.lead  # "until 6, on Sundays until 4"
        if part.is_fronted and not holder.part.is_fronted:  # "costs 14 € for adults, 9 € for children"
            beside -= part.lead
        held = holder.part.words - attributed.keys
    else:
        titles = rival.titles
        beside = rival.statement.words
        held = holder.statement.words - attributed.keys
        if part.is_fronted and not rival.statement.title:  # "Delta 438 €, deductible 150 €"
            lead |= rival.statement.parts[0].lead - all_values
    along = _NONE.union(*map(value_keys, holder.part.values)) - holder.part.lead  # as the time of a day
    taken = (terms & beside) - values - held
    if rival.statement.around is not holder.statement.around:
        taken -= holder.statement.around
    if not taken or terms & held - beside - along:
        return _NONE
    taken = taken.difference(*(name for name in attributed.names if not name.isdisjoint(held)))
    if taken & titles:
        return taken & titles
    if not is_same and terms & holder.part.words - attributed.keys - part.words - titles - lead - along:
        return _NONE
    is_named = is_same and not part.name_stems.isdisjoint(lead) and part.name_stems & lead <= terms
    is_clear = is_named or (frozenset(filter(str.isalpha, lead)) or lead) <= terms
    if is_clear and taken & lead:
        return taken & lead
    return frozenset(filter(_is_exact, taken)) if is_near and not is_stated else _NONE


def _values_like(
    attributed: _Attributed, holder: _Place, rival: _Place
) -> tuple[frozenset[str], frozenset[str]]:
    """Return what tells the values of a rival's part, and of its statement, that are of a value's kind."""
    own = rival.statement
    is_same = own is holder.statement
    if not attributed.keys.isdisjoint(rival.part.words if is_same else own.words):
        return _NONE, _NONE
    if attributed.is_name:
        names = _names_like(attributed, holder, rival)
        return names, names
    if is_same and holder.part.words <= attributed.keys:
        return _NONE, _NONE
    held = [value for value in holder.part.values if attributed.keys & (value.gives | value_keys(value))]
    kinds = set(map(value_kind, held))
    values = _NONE.union(*(rival.part.by_kind.get(kind, _NONE) for kind in kinds))
    if is_same:
        return values, values
    if own.is_row and holder.statement.is_row:  # values of one column stand for each other
        is_column = own.parts.index(rival.part) == holder.statement.parts.index(holder.part)
        values = (values or rival.part.says - holder.part.says) if is_column else _NONE
    return values, values.union(*(part.by_kind.get(kind, _NONE) for part in own.parts for kind in kinds))


def _names_like(attributed: _Attributed, holder: _Place, rival: _Place) -> frozenset[str]:
    """Return the names of a rival that stand for a name: of titles for one of a title, or letters."""
    own = rival.statement
    if not holder.titles or denies(rival.part.text):
        return _NONE
    if own is holder.statement:
        is_parallel = rival.part.by_kind.keys() == holder.part.by_kind.keys()
        is_held = not attributed.keys.isdisjoint(holder.part.words)
        return rival.part.name_stems - attributed.near if is_parallel and is_held else _NONE
    if all(len(key) == 1 for key in attributed.keys):  # "Bed A"
        return frozenset(name for name in own.names if len(name) == 1)
    if attributed.keys.isdisjoint(holder.statement.title):
        return own.names - rival.titles
    return own.title if own.names & own.title else _NONE


def _is_exact(term: str) -> bool:
    """Return whether a term is an amount with its unit, a time or a day."""
    kind, _, exact = term.partition(":")
    return term.find("=") > 0 or (bool(exact) and kind not in _INEXACT)


def _attributed_values(answer_statement: SourceStatement) -> Iterator[_Attributed]:
    """Yield the values and names of an answer's sentence that it says of something, and of one thing each."""
    text = answer_statement.text
    sums = [range(own.start, own.end) for own in find_expressions(text) if _SUM.search(own.text)]
    in_sums = (value for value in answer_statement.values if any(value.start in span for span in sums))
    operands = _NONE.union(*map(value_keys, in_sums))
    names = tuple(keys for part in answer_statement.parts for _, keys in part.whole_names)
    leading = _NONE
    wide = answer_statement.title
    for part in answer_statement.parts:
        near = part.says | leading
        wide |= near
        leading = _NONE if part.values else near
        if goes_across(part.text) or denies(part.text):
            continue
        values = [(own.claim.text, value_keys(own), value_kind(own)) for own in part.values if own.claims]
        for words, keys, kind in (*values, *((name, keys, "name") for name, keys in part.whole_names)):
            if keys.isdisjoint(operands):
                clause = part.says if kind == "name" else near
                yield _Attributed(
                    text=words,
                    keys=keys,
                    kind=kind,
                    near=clause - keys - operands,
                    wide=wide - keys - operands,
                    stated=answer_statement.own,
                    names=names,
                )


def _words_of(answer_statement: SourceStatement) -> Iterator[tuple[str, str]]:
    """Yield the stems of a sentence and what tells its values, each with its words as they stand."""
    for part in answer_statement.parts:
        yield from part.stems.items()
        yield from ((key, value.claim.text) for value in part.values for key in value_keys(value))
    yield from ((stem, answer_statement.title_text) for stem in sorted(answer_statement.title))


def _word_before(text: str, mention: Found) -> str:
    """Return the word that a number tells apart from others of its kind: "Hive" of "Hive 3"; "" if none."""
    match = _WORD_BEFORE.search(text, max(0, mention.start - _LOOK_CHARS), mention.start)
    if match is None or mention.amount is None or value_kind(mention) != "number":
        return ""
    return "" if match[1].lower() in NOT_COUNTED else match[1]


def _numbers_by_word(source_statements: Sequence[SourceStatement]) -> dict[str, list[str]]:
    """Return the numbers that stand behind each word that is one of the labels or has a capital once."""
    numbers: dict[str, list[str]] = defaultdict(list)
    labels = set(LABELS)
    for statement in source_statements:
        for value in statement.values:
            if word := _word_before(statement.text, value):
                label = word.lower().removesuffix("s")
                numbers[label].append(value.claim.text)
                if word[0].isupper():
                    labels.add(label)
    return {label: own for label, own in numbers.items() if label in labels}
