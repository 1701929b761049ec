"""A text cut into statements, each with what it is about, and their parts with values of their own. Pure."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import pairwise

from panda.documents.markdown import split_units
from panda.language.claims import Amount, Found, scan
from panda.language.names import Name, find_names
from panda.language.numbers import rate_after, size_of
from panda.language.patterns import lazy_pattern
from panda.language.polarity import JOINT, content_words, denies, goes_on
from panda.language.text import split_sentences
from panda.language.words import split_terms

_MOST_CHARS = 20_000  # a longer text is not cut
_MOST_SENTENCE_CHARS = 1_500  # a longer sentence is one part
_MOST_TITLES = 3  # of one sentence, as in "Trip: Day 2: …"
_MOST_TITLE_WORDS = 8
_TITLE = lazy_pattern(r"[^:|;\n]{1,80}?:\s")
_STATEMENT_END = lazy_pattern(r";\s|\s·\s")
_ASIDE = lazy_pattern(r"\([^()]*\)")
_FIRST_YEAR = 1900
_YEARS_END = 2100
_NONE: frozenset[str] = frozenset()


@dataclass(frozen=True, eq=False, kw_only=True)
class StatementPart:
    """A clause of a statement, what stands between two of its commas, or a cell of a table."""

    text: str
    stems: dict[str, str]  # of the words and names that tell something, each with its word, in order
    values: tuple[Found, ...]  # amounts, dates and names with digits
    names: tuple[Name, ...]
    lead: frozenset[str]  # what it is about: stems and days before its first amount, or else behind it
    is_fronted: bool  # whether that stands before its first amount

    @cached_property
    def says(self) -> frozenset[str]:
        """Return the stems of its words, and what tells its values."""
        return frozenset(self.stems).union(*map(value_keys, self.values))

    @cached_property
    def words(self) -> frozenset[str]:
        """Return the stems of its words, and its values in all forms that they support."""
        return self.says.union(*(value.gives for value in self.values))

    @cached_property
    def by_kind(self) -> dict[str, frozenset[str]]:
        """Return what tells its values, by their kinds."""
        keys: dict[str, frozenset[str]] = {}
        for value in self.values:
            kind = value_kind(value)
            keys[kind] = keys.get(kind, _NONE) | value_keys(value)
        return keys

    @cached_property
    def name_stems(self) -> frozenset[str]:
        """Return the stems of its names."""
        return frozenset(map(_name_stem, self.names))

    @cached_property
    def whole_names(self) -> list[tuple[str, frozenset[str]]]:
        """Return its names, those that stand together as one, each with its stems."""
        starts = [at for at, name in enumerate(self.names) if not (at and name.follows)]
        groups = [self.names[start:end] for start, end in pairwise([*starts, len(self.names)])]
        return [(" ".join(name.text for name in own), frozenset(map(_name_stem, own))) for own in groups]


@dataclass(eq=False, kw_only=True)
class SourceStatement:
    """A sentence, list item or table row."""

    text: str
    parts: tuple[StatementPart, ...]
    title: frozenset[str]  # words and values before its colon, or of a row's first cell
    title_text: str
    has_mark: bool  # whether its title names one thing, by a name or number
    above: frozenset[str]  # words of headings, and of what else it belongs to
    names: frozenset[str]  # stems of all names, its headings' among them
    around: set[str]  # words and values of all sentences of its line that tell of the same thing
    values: tuple[Found, ...]  # those of its title too
    is_row: bool

    @cached_property
    def own(self) -> frozenset[str]:
        """Return the words and values that stand in itself."""
        return self.title.union(*(part.words for part in self.parts))

    @cached_property
    def words(self) -> frozenset[str]:
        """Return all words and values that belong to it."""
        return self.own | self.above


def value_keys(mention: Found) -> frozenset[str]:
    """Return what tells a value from others of its kind, the same for each of its writings."""
    amount = mention.amount
    if amount is None:
        return mention.needs or mention.gives
    size, unit = size_of(amount.unit)
    number = amount.written if amount.value is None else amount.value * size
    key = f"{amount.currency or unit}={number}"
    return frozenset((key, f"number:{number}")) if _is_year(amount) else frozenset((key,))


def value_kind(mention: Found) -> str:
    """Return what a value measures or counts: only values of one kind stand for each other."""
    amount = mention.amount
    if amount is None:
        form = "time" if ":" in mention.claim.value else "day"
        return form if mention.claim.kind == "date" else mention.claim.kind
    if amount.currency or amount.unit == "%":
        return amount.currency or amount.unit
    if amount.unit:
        return f"{size_of(amount.unit)[1]}/{amount.rate}"
    if amount.counts:
        return f"count {amount.head}"
    if amount.ordinal or _is_year(amount):
        return "place" if amount.ordinal else "year"
    return "number" if mention.claim.text[:1].isdigit() else "number word"


TELL_APART = ("number", "number word", "place", "year", "day")
"""Kinds of values that may only tell one thing from another, as in "Roast 118"."""


def _is_year(amount: Amount) -> bool:
    is_bare = not (amount.currency or amount.unit) and amount.value is not None
    return is_bare and amount.written.isdigit() and _FIRST_YEAR <= int(amount.written) < _YEARS_END


@lru_cache(maxsize=256)
def read_statements(text: str, *, is_answer: bool = False) -> tuple[SourceStatement, ...]:
    """
    Return the statements of a plain text, in order; of a long text none.

    Args:
        is_answer: Whether a value without words of its own is a part; else it belongs to the part before.
    """
    return tuple(_read(text, is_answer=is_answer)) if len(text) <= _MOST_CHARS else ()


def _read(text: str, *, is_answer: bool) -> Iterator[SourceStatement]:
    units = split_units(text)
    heads = {unit.heads_line: unit.text for unit in units if unit.heads_line}
    first = units[0].text if units and units[0].form == "line" else ""
    node_title = "" if ":" in first or any(map(str.isdigit, first)) else first
    line = 0
    opening: SourceStatement | None = None
    before: SourceStatement | None = None
    for unit in units:
        titles = (*unit.headings, heads.get(unit.list_line or 0, ""), node_title)
        above = _Sentence("; ".join(titles)).part()
        if unit.line != line:
            line = unit.line
            opening = None
        is_row = unit.form == "row"
        cuts = [unit.text]
        if not is_row:
            cuts = [cut for sentence in split_sentences(unit.text) for cut in _STATEMENT_END.split(sentence)]
        for cut in filter(str.strip, cuts):
            statement = _Sentence(cut).read(above, is_answer=is_answer, is_row=is_row)
            if opening is None or before is None:
                opening = statement
            else:
                _inherit(statement, before, opening)
            statement.around |= statement.own
            before = statement
            yield statement


def _inherit(source_statement: SourceStatement, preceding: SourceStatement, opening: SourceStatement) -> None:
    """
    Add the words of earlier sentences of its line that a statement belongs to. The title of the first stays
    one of all that follow, but where another thing is named ("Roast 118: …. Roast 119: …") or another title
    of no name stands beside one of no name ("Altos: …. Tenors: …").
    """
    has_subject = bool(source_statement.title or source_statement.parts[0].lead)
    goes_with_last = goes_on(source_statement.text) or not has_subject
    above = opening.above | (preceding.words if goes_with_last else _NONE)
    has_mark = _begins_with_mark(source_statement)
    if not has_mark:
        source_statement.around = preceding.around
    if not source_statement.title:
        source_statement.has_mark = preceding.has_mark
        above |= preceding.title | preceding.above
    is_other_thing = source_statement.has_mark and opening.has_mark
    if (opening.has_mark or not source_statement.title) and not is_other_thing:
        above |= opening.title
    is_measured = any(value_kind(value) not in TELL_APART for part in opening.parts for value in part.values)
    is_heading = not is_measured and len(opening.own) <= _MOST_TITLE_WORDS
    if not opening.title and (is_heading or not has_mark):
        above |= opening.own
    source_statement.above |= above


def _name_stem(proper_name: Name) -> str:
    """Return a word of a name as content_words has words; a letter as it is."""
    return next(iter(split_terms(proper_name.text)), proper_name.folded)


def _begins_with_mark(source_statement: SourceStatement) -> bool:
    """Return whether a statement begins with a title, name, day or number: "Anna paid", "Chapter 4 has"."""
    part = source_statement.parts[0]
    has_value = not part.by_kind.keys().isdisjoint((*TELL_APART, "time"))
    return bool(source_statement.title) or has_value or not part.name_stems.isdisjoint(part.lead)


class _Sentence:
    """A sentence with all that is found in it."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._values = scan(text)
        self._names = find_names(text)
        self._content = list(content_words(text))

    def read(self, headings: StatementPart, *, is_answer: bool, is_row: bool) -> SourceStatement:
        """Return the sentence as a statement below some headings."""
        outer = headings.words
        title = self.part(0, 0)
        start = 0
        for _ in range(_MOST_TITLES):
            match = _TITLE.match(self._text, start)
            if match and not is_row:
                outer |= title.words
                title = self.part(start, match.end())
                start = match.end()
        parts = self._parts(start, _STATEMENT_END if is_row else JOINT, is_answer=is_answer or is_row)
        if is_row:
            title = parts[0]
        title_text = title.text.rstrip(": ")
        words = title_text.split()
        is_proper = len(words) > 1 and all(word[0].isupper() for word in words)
        return SourceStatement(
            text=self._text,
            parts=tuple(parts),
            title=title.words,
            title_text=title_text,
            has_mark=is_row or bool(title.names) or is_proper or any(map(str.isdigit, title_text)),
            above=outer,
            names=self.part().name_stems | headings.name_stems,
            around=set(),
            values=self._values,
            is_row=is_row,
        )

    def _parts(self, start: int, joint: re.Pattern[str], *, is_answer: bool) -> list[StatementPart]:
        """Return the parts; one with nothing but a value of another kind ends the one before."""
        whole = [match.span() for match in _ASIDE.finditer(self._text)]
        whole += [(value.start, value.end) for value in self._values]
        joints: list[tuple[int, int]] = []
        if len(self._text) <= _MOST_SENTENCE_CHARS:
            spans = (match.span() for match in joint.finditer(self._text, start))
            joints = [span for span in spans if not any(first < span[0] < end for first, end in whole)]
        starts: list[int] = []
        parts: list[StatementPart] = []
        for stop, following in (*joints, (len(self._text), 0)):
            part = self.part(start, stop)
            is_bare = not (is_answer or part.stems or part.lead or denies(part.text))
            if parts and is_bare and parts[-1].by_kind.keys().isdisjoint(part.by_kind):
                parts[-1] = self.part(starts[-1], stop)
            else:
                parts.append(part)
                starts.append(start)
            start = following
        return parts

    def part(self, first: int = 0, end: int | None = None) -> StatementPart:
        """Return what stands between two indexes."""
        end = len(self._text) if end is None else end
        inside = [value for value in self._values if first <= value.start < end]
        taken = {at for value in inside for at in range(value.start, rate_after(self._text, value.end)[1])}
        words = [word for word in self._content if first <= word.start < end and word.start not in taken]
        names = [name for name in self._names if first <= name.start < end and name.start not in taken]
        values = [value for value in inside if value.claims or value.amount is None]
        amount = next((value.start for value in values if value_kind(value) not in TELL_APART), end)
        marks = [value_keys(value) for value in values if value.start < amount]
        lead = frozenset(word.stem for word in words if word.start < amount).union(*marks)
        return StatementPart(
            text=self._text[first:end].strip(" ,;|"),
            stems={word.stem: word.text for word in words} | {_name_stem(name): name.text for name in names},
            values=tuple(values),
            names=tuple(names),
            lead=lead or frozenset(word.stem for word in words),
            is_fronted=bool(lead),
        )
