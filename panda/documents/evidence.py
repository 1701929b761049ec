"""Whether what a text claims is held by its sources."""

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import lru_cache
from itertools import combinations
from operator import itemgetter

from panda.documents.computed import ComputationError, work_out
from panda.documents.denials import Denials
from panda.documents.derived import counts_members, find_worked, is_told_otherwise
from panda.documents.misattribution import ThingsOfSources
from panda.documents.safe_text import shorten
from panda.documents.source_statements import read_statements
from panda.language.asked import read_repeated
from panda.language.claims import Amount, Claim, Found, find_claims, scan
from panda.language.differences import is_reversed
from panda.language.names import unknown_names
from panda.language.numbers import rate_after, size_of
from panda.language.text import begins_with_month, plain_text
from panda.language.words import LABELS

__all__ = [
    "Claim",
    "Figure",
    "check_computed",
    "check_each",
    "check_evidence",
    "check_figures",
    "find_claims",
    "work_out_missing",
]

_YEARS = range(1900, 2100)
_DECIMAL = re.compile(r"\d+(?:\.\d+|,(?:\d{1,2}|\d{4,}))")
_LIST_MARK = re.compile(r"(?:^|(?<=[.!?;:]) )[ ]*(\d{1,3})[.)] (?=[^\W\d])", re.MULTILINE)
_TWO_READINGS = re.compile(r"[1-9]\d{0,2}[.,]\d{3}")
_ROUNDED_WITHIN = Fraction(1, 20)
_MOST_OPERANDS = 4
_JOINED_NAME = re.compile(r"\b[^\W_]+(?:_[^\W_]+)+\b")
_RATE_WITHIN_CHARS = 40
"""Characters behind an amount within which its noun ends and its rate begins."""
_WORD_BEHIND = re.compile(r"[ -][^\W\d_]+")
_LEAST_OF_LIST = 2
_BREAKS = "\n.!?…:;"
"""What parts sentences and lines."""
_MOST_PARTS = 600
"""Statements of the sources up to which it is checked whose a value is, and what is denied."""
_MOST_ANSWER_CHARS = 4_000
_QUOTED_CHARS = 78
_ROUNDED_MEAN = Fraction(1, 200)
_DECIMALS = re.compile(r"[.,](\d{1,2}|\d{4,})\Z")


def quote_item(text: str) -> str:
    """Return an item as messages quote it: one line, cut behind a word where it is long."""
    return repr(shorten(text, _QUOTED_CHARS))


def tell_claims(missing: Sequence[Claim], text: str, node_ids: Sequence[str]) -> str:
    """
    Say which claims of a text are not in the nodes that it cites, and what these say instead.

    >>> tell_claims([Claim("warm", "denial", "warm", "the line says 'not warm'")], "It is warm.", ["turn:8"])
    "warm in 'It is warm.' is not what turn:8 says: the line says 'not warm'"
    """
    named = f"{', '.join(claim.text for claim in missing)} in {quote_item(text)}"
    nodes = ", ".join(node_ids)
    reasons = "; ".join(dict.fromkeys(claim.reason for claim in missing if claim.reason))
    return f"{named} is not what {nodes} says: {reasons}" if reasons else f"{named} is not in {nodes}"


def told_claims(issue: str, text: str) -> list[str] | None:
    """
    Return the claims that such an issue names of a text; None if it tells of another text.

    >>> told_claims("$799, 8 GB in '8 GB for $799' is not in turn:811", "8 GB for $799")
    ['$799', '8 GB']
    """
    for quoted in (quote_item(text), f"{text!r:.80}"):  # older turns cut within a word
        before, is_quoted, _ = issue.partition(quoted)
        if is_quoted:
            return before.removesuffix(" in ").split(", ") if before else []
    return None


def check_evidence(text: str, sources: Sequence[str], *, about: Sequence[str] = ()) -> list[Claim]:
    """
    The claims of a text that none of its sources holds, in order of appearance. Whether the sources say them
    of the same thing, and do not deny them, is for a model to judge.

    A bare number is supported by the same value anywhere, also in a price or quantity; a price only by the
    same value in the same currency, a quantity by the same value and unit, what is counted by the same value
    of the same thing, a date by the same day (or, with a time, the same instant), a URL only by itself, a
    name by the same whole word. A figure with "about" is also supported by a value that it rounds; a computed
    figure is supported by its calculation (check_computed).

    Args:
        sources: The texts that it cites, one a node.
        about: Texts that support names: the query, the sources' titles and addresses. They support a figure
            only where the text denies it, says that it was asked, or states it as a limit that a source keeps
            ("$697, under $1000").

    >>> check_evidence("$697 on January 4, 2026", ["Lenovo LOQ 15: price $697.00, seen 2026-01-04T13:20:00Z"])
    []
    >>> [claim.text for claim in check_evidence("$697 for 16 GB", ["€697", "697 GB", "16 hours"])]
    ['$697', '16 GB']
    """
    return check_each([text], sources, about=about)[0]


def check_each(
    texts: Sequence[str], sources: Sequence[str], *, about: Sequence[str] = ()
) -> list[list[Claim]]:
    """check_evidence of each text, with the sources read once."""
    plain = {text: plain_text(text) for text in dict.fromkeys((*texts, *sources, *about))}
    cited = [_with_split_names(plain[source]) for source in sources]
    titles = [plain[title] for title in about]
    held = [_read(source) for source in cited]
    unheld = []
    reading = _read_cited(*cited)
    for text in map(plain.__getitem__, texts):
        unsupported = _unheld(text, held)
        if unsupported and any(_quotes(text, source) for source in cited):
            unsupported = []
        if unsupported and titles:
            asked = [_read(title) for title in titles]
            unsupported = [mention for mention in unsupported if not _is_repeated(mention, text, asked, held)]
        unsupported = _not_derived(text, unsupported, cited, titles)
        missing = [(mention.start, mention.claim) for mention in unsupported]
        names = unknown_names(text, [*cited, *titles])
        missing += [(name.start, Claim(name.text, "name", name.folded)) for name in names]
        reported = {claim.text for _, claim in missing}
        against = {
            claim.text: claim for claim in reading.find_contradictions(text) if claim.text not in reported
        }
        missing += [(max(0, text.find(claim.text)), claim) for claim in against.values()]
        unheld.append([claim for _, claim in sorted(missing, key=itemgetter(0))])
    return unheld


def _quotes(text: str, source: str) -> bool:
    """
    Return whether a text is whole lines or sentences of a source, word for word, whatever breaks its lines.

    >>> [_quotes(text, "Bread 3 a loaf. Cake 20.") for text in ("Cake 20.", "3 a loaf.")]
    [True, False]
    """
    words = text.split()
    match = re.search(r"\s+".join(map(re.escape, words)), source) if words else None
    if match is None:
        return False
    before = source[: match.start()].rstrip(" ")
    behind = source[match.end() :].lstrip(" ")
    is_begun = not before or before[-1] in _BREAKS
    return is_begun and (not behind or behind[0] == "\n" or text.rstrip()[-1] in _BREAKS)


def _with_split_names(plain: str) -> str:
    """Return a plain text with the parts of its names behind it: of "harvest_2025_kg" also the year."""
    names = dict.fromkeys(_JOINED_NAME.findall(plain)) if "_" in plain else ()
    return "\n".join([plain, *(name.replace("_", " ") for name in names)])


class _Cited:
    """What the statements of cited texts say of which thing, and what they deny."""

    def __init__(self, texts: Sequence[str]) -> None:
        statements = [statement for text in texts for statement in read_statements(text)]
        if sum(len(statement.parts) for statement in statements) > _MOST_PARTS:
            statements = []
        self._texts = texts
        self._things = ThingsOfSources(statements)
        self._denials = Denials(statements)

    def find_contradictions(self, text: str) -> Iterator[Claim]:
        """Yield what is said of another thing, or denied; nothing of a quotation or a long text."""
        if len(text) <= _MOST_ANSWER_CHARS and not any(text in source for source in self._texts):
            yield from self._things.find(text)
            yield from self._denials.find(text)


@lru_cache(maxsize=16)
def _read_cited(*cited_texts: str) -> _Cited:
    return _Cited(cited_texts)


def _not_derived(
    text: str, unsupported: Sequence[Found], sources: Sequence[str], asked: Sequence[str]
) -> list[Found]:
    """
    Return the figures that the sources do not give, neither directly nor by a calculation; the operands of
    such a calculation are supported too, and may come from the question.
    """
    left = [
        mention
        for mention in unsupported
        if not (counts_members(text, mention, sources) or is_told_otherwise(text, mention, sources))
    ]
    if not left:
        return left
    held = [_read(source) for source in (*sources, *asked)]
    worked = dict(
        find_worked(
            text, left, [*sources, *asked], is_held=lambda operand: not _unheld(plain_text(operand), held)
        )
    )
    spans = [(expression.start, expression.end) for expression in worked.values()]
    inside = [mention for mention in scan(text) if any(start <= mention.start < end for start, end in spans)]
    operands = {mention.amount.value for mention in inside if mention.amount}
    return [
        mention
        for mention in left
        if not (mention in worked or mention in inside)
        and not (mention.amount and mention.amount.value in operands and _is_held(mention, held))
    ]


def check_computed(
    value: str,
    expression: str,
    sources: Sequence[str],
    lists: Mapping[str, Sequence[str]],
    *,
    counts: Collection[int] = (),
) -> str | None:
    """
    Why an expression over what the sources hold does not give a value, in a sentence; None if it does. Of
    *lists*, by their titles, a figure such as sum(TITLE) takes all lines; *counts* may multiply and divide.

    >>> check_computed("$53", "$749.99 − $697", ["one: $697.00", "other: $749.99"], {})
    >>> check_computed("$54", "$749.99 − $697", ["one: $697.00", "other: $749.99"], {})
    '$749.99 − $697 is not $54: it gives 52.99 USD'
    """
    try:
        _work_out(Figure(value, expression, sources), lists, counts)
    except ComputationError as exc:
        return str(exc)
    return None


@dataclass(frozen=True)
class Figure:
    """What a model computed for a text, with the texts that hold its operands."""

    value: str
    expression: str
    sources: Sequence[str]


def _work_out(figure: Figure, lists: Mapping[str, Sequence[str]], counts: Collection[int]) -> int:
    return work_out(
        figure.value,
        figure.expression,
        figure.sources,
        is_held=lambda operand: not check_evidence(operand, figure.sources),
        lists=lists,
        counts=counts,
    )


@dataclass(frozen=True)
class FigureCheck:
    """The figures of a text that hold, and what is wrong with the others."""

    values: tuple[str, ...] = ()  # each is a source of its text
    are_held: tuple[bool, ...] = ()  # of each figure that was given, whether its expression gives it
    faults: tuple[str, ...] = ()
    worked_out: tuple[tuple[str, str], ...] = ()  # values and expressions that code alone has found


def check_figures(
    text: str,
    figures: Sequence[Figure],
    sources: Sequence[str],
    lists: Mapping[str, Sequence[str]],
    *,
    whole_lists: Mapping[str, Sequence[str]],
    about: Sequence[str] = (),
) -> FigureCheck:
    """
    Return which figures of a text hold. One may use another, and divide by how many numbers that adds; what
    one is counted for ("per visit") is taken as the text has it. One that does not hold is no fault if the
    text is right without it.

    Args:
        sources: The texts that the whole text cites, one a node.
        lists: All lists of the nodes that it cites, by their titles.
        whole_lists: Those of which it cites a line: how long they are counts, and what they add up to.
        about: As for check_evidence.
    """
    counts = {len(lines) for lines in whole_lists.values() if len(lines) > 1}
    values, faults_by_place = _work_out_all(figures, lists, counts)
    are_held = [place not in faults_by_place for place in range(len(figures))]
    faults = [*faults_by_place.values()]
    values += _with_rates(text, values)
    worked_out = work_out_missing(text, [*sources, *values], whole_lists, about=about)
    values += [value for value, _ in worked_out]
    if faults:
        claims = check_evidence(text, [*sources, *values], about=about)
        if all(claim.kind == "name" for claim in claims):
            faults = []
    return FigureCheck(
        values=tuple(values), are_held=tuple(are_held), faults=tuple(faults), worked_out=tuple(worked_out)
    )


def _work_out_all(
    figures: Sequence[Figure], lists: Mapping[str, Sequence[str]], sum_lengths: set[int]
) -> tuple[list[str], dict[int, str]]:
    """
    Return the values of the figures that hold, and by their places why others do not.

    Those that failed are tried again with what holds, as figures are listed in any order. Lengths of sums
    are added to *sum_lengths*.
    """
    values: list[str] = []
    faults: dict[int, str] = {}
    waiting = [*range(len(figures))]
    while waiting:
        faults = {}
        for place in waiting:
            figure = figures[place]
            sources = [*figure.sources, *values]
            try:
                sum_lengths.add(_work_out(replace(figure, sources=sources), lists, sum_lengths))
            except ComputationError as exc:
                faults[place] = str(exc)
            else:
                values.append(figure.value)
        if len(faults) == len(waiting):
            break
        waiting = [*faults]
    return values, faults


def _with_rates(text: str, values: Sequence[str]) -> list[str]:
    """Return the amounts of a text that are values but for what they are counted for, with that."""
    plain = plain_text(text)
    computed = [_read(plain_text(value)) for value in values]
    rated = []
    for mention in scan(plain):
        if mention.amount and mention.amount.rate:
            bare = replace(mention, amount=replace(mention.amount, rate=""))
            if _is_held(bare, computed):
                rated.append(plain[mention.start : _end_of_rate(plain, mention.end)])
    return rated


def _end_of_rate(text: str, end: int) -> int:
    """Return the index behind what an amount is counted for: "40 jars per market day"."""
    places = (end, *(word.end() for word in _WORD_BEHIND.finditer(text, end, end + _RATE_WITHIN_CHARS)))
    return next((behind for place in places if (behind := rate_after(text, place)[1]) > place), end)


def work_out_missing(
    text: str, sources: Sequence[str], lists: Mapping[str, Sequence[str]], *, about: Sequence[str] = ()
) -> list[tuple[str, str]]:
    """
    Return value and expression of each price or quantity of a text that no source holds, and that is exactly
    the sum or difference of two others of the text which sources hold, or sum or mean of a whole list, in the
    same unit.

    >>> work_out_missing("42 km and 57 km, 15 km more", ["42 km in March, 57 km in April"], {})
    [('15 km', '57 km - 42 km')]
    """
    plain = plain_text(text)
    held = [_read(plain_text(source)) for source in sources]
    unheld = [mention for mention in _unheld(plain, held) if _is_measured(mention)]
    if not unheld:
        return []
    asked = [_read(plain_text(title)) for title in about]
    named = [
        mention
        for mention in scan(plain)
        if mention.claims and _is_measured(mention) and mention.claim not in {lost.claim for lost in unheld}
    ]
    worked_out = []
    for mention in unheld:
        if _is_repeated(mention, plain, asked, held):
            continue
        operands = [own for own in named if own.claim != mention.claim]
        expression = _expression(mention, plain, operands) or _of_whole_list(mention, lists)
        if expression:
            worked_out.append((mention.claim.text, expression))
    return worked_out


def _is_measured(mention: Found) -> bool:
    amount = mention.amount
    return bool(amount and amount.value and (amount.currency or (amount.unit and amount.unit != "%")))


def _measure(amount: Amount) -> tuple[str, Fraction]:
    """Return the currency or base unit of an amount, and how much of it that is."""
    size, unit = size_of(amount.unit)
    return amount.currency or unit, (amount.value or Fraction(0)) * size


def _expression(unsupported: Found, text: str, operands: Sequence[Found]) -> str:
    """Return the sum or difference of two amounts that gives another one of their text; "" if none does."""
    assert unsupported.amount is not None
    unit, value = _measure(unsupported.amount)
    alike = {}
    for mention in operands:
        assert mention.amount is not None
        own_unit, own_value = _measure(mention.amount)
        if own_unit == unit and mention.amount.rate == unsupported.amount.rate:
            alike[own_value] = mention
    if len(alike) > _MOST_OPERANDS:  # more give too many sums that are right by chance
        return ""
    for first, second in combinations(sorted(alike, reverse=True), 2):
        larger = alike[first]
        smaller = alike[second]
        falls = larger.start < unsupported.start < smaller.start
        rises = smaller.start < unsupported.start < larger.start
        if first + second == value:
            return f"{larger.claim.text} + {smaller.claim.text}"
        if first - second != value:
            continue
        if (falls or rises) and is_reversed(text, unsupported.end, falls=falls):
            continue
        return f"{larger.claim.text} - {smaller.claim.text}"
    return ""


def _of_whole_list(unsupported: Found, lists: Mapping[str, Sequence[str]]) -> str:
    """Return the sum or mean of a list that gives an amount; "" if none does."""
    assert unsupported.amount is not None
    unit, value = _measure(unsupported.amount)
    for title, lines in lists.items():
        mentions = [
            [mention for mention in scan(plain_text(line)) if _is_measured(mention)] for line in lines
        ]
        if len(mentions) < _LEAST_OF_LIST or any(len(own) != 1 for own in mentions):
            continue
        measures = [_measure(own[0].amount) for own in mentions if own[0].amount]
        if any(own_unit != unit for own_unit, _ in measures):
            continue
        total = sum((own_value for _, own_value in measures), Fraction(0))
        if total == value:
            return f"sum({title})"
        if _rounds_to(total / len(measures), unsupported.amount):
            return f"mean({title})"
    return ""


def _rounds_to(mean: Fraction, claimed: Amount) -> bool:
    """Return whether a mean, rounded to as many decimals as the claimed amount has, is that amount."""
    size, _ = size_of(claimed.unit)
    decimals = _DECIMALS.search(claimed.written)
    step = size / 10 ** len(decimals[1]) if decimals else size
    off = abs(mean - (claimed.value or 0) * size)
    return off <= step / 2 and off <= abs(mean) * _ROUNDED_MEAN


def _is_repeated(
    mention: Found, text: str, questions: Sequence["_Held"], read_sources: Sequence["_Held"]
) -> bool:
    """Return whether a text only denies a figure of the question, or names it as a limit or as asked."""
    if not _is_held(mention, questions):
        return False
    repeated = read_repeated(text, mention.start, mention.end)
    is_denied = repeated.is_denied_itself or (repeated.is_denied and bool(repeated.limit))
    if repeated.is_asked or is_denied:
        return True
    if mention.amount is None or not _is_measured(mention):  # a model number, a count or a date
        return repeated.is_denied
    if not repeated.limit:
        return False
    unit, limit = _measure(mention.amount)
    others = [other.amount for other in scan(text) if other is not mention and other.amount]
    limited = _values_in(unit, others)
    if not limited:
        amounts = (group for source in read_sources for group in source.amounts.values())
        limited = _values_in(unit, [amount for group in amounts for amount in group])
    return any(value <= limit if repeated.limit == "most" else value >= limit for value in limited)


def _values_in(unit: str, amounts: Sequence[Amount]) -> list[Fraction]:
    """Return how much those amounts are that are in a unit, in any order."""
    measures = [_measure(amount) for amount in amounts if amount.value]
    return [value for own_unit, value in measures if own_unit == unit]


def _unheld(text: str, held: Sequence["_Held"]) -> list[Found]:
    marks = [mark for mark in _LIST_MARK.finditer(text) if not begins_with_month(text[mark.end() :])]
    is_list = len(marks) > 1 and [int(mark[1]) for mark in marks] == [*range(1, len(marks) + 1)]
    places = {mark.start(1) for mark in marks} if is_list else set()
    claims = [mention for mention in scan(text) if mention.claims and mention.start not in places]
    return [mention for mention in claims if not (_is_held(mention, held) or _is_pronoun(mention, held))]


@dataclass
class _Held:
    """What one source holds."""

    keys: set[str] = field(default_factory=set)  # of dates, addresses and names with digits
    amounts: dict[Fraction | str, dict[Amount, None]] = field(default_factory=lambda: defaultdict(dict))
    """Numbers in their order by value, and by their writing."""
    heads: set[str] = field(default_factory=set)  # what is counted
    sizes: set[tuple[Fraction, str, str]] = field(default_factory=set)  # as _size gives them
    rates: set[str] = field(default_factory=set)  # what is counted for: the "week" of "6 € a week"
    has_order: bool = False  # whether anything has a place in an order


@lru_cache(maxsize=256)
def _read(source: str) -> _Held:
    held = _Held()
    for mention in scan(source):
        held.keys |= mention.gives
        if (amount := mention.amount) is None:
            continue
        held.amounts[amount.written][amount] = None
        held.rates |= amount.rates
        held.has_order |= amount.ordinal
        if amount.value is not None:
            held.amounts[amount.value][amount] = None
            if size := _size(amount):
                held.sizes.add(size)
            if amount.counts:
                held.heads.add(amount.head)
    return held


def _size(amount: Amount) -> tuple[Fraction, str, str] | None:
    """A quantity in the unit that its like is measured in, and what for; None of what has no unit."""
    if not amount.unit or amount.value is None:
        return None
    size, unit = size_of(amount.unit)
    return amount.value * size, unit, amount.rate


def _is_pronoun(mention: Found, held: Sequence[_Held]) -> bool:
    """
    Return whether a "one" counts nothing: no unit is behind it (but "one day"), and no source counts what is.
    """
    amount = mention.amount
    if amount is None or mention.claim.text.lower() not in ("one", "one day") or amount.currency:
        return False
    return not any(amount.head in source.heads for source in held)


def _is_held(mention: Found, sources: Sequence[_Held]) -> bool:
    if mention.apart and all(any(key in source.keys for source in sources) for key in mention.apart):
        return True
    return any(_holds(source, mention) for source in sources)


def _holds(source: _Held, mention: Found) -> bool:
    if mention.needs & source.keys or (mention.together and mention.together <= source.keys):
        return True
    claimed = mention.amount
    if claimed is None:
        return False
    if any(_is_same(claimed, held, source) for held in _candidates(claimed, source)):
        return True
    if claimed.value is not None and (claimed.unit == "cent" or claimed.currency == "¢"):
        return any(held.currency for held in source.amounts.get(claimed.value / 100, ()))
    if _size(claimed) in source.sizes or (claimed.value == 1 and claimed.unit in source.rates):
        return True
    if claimed.about:
        numbers = (group for value, group in source.amounts.items() if isinstance(value, Fraction))
        if any(_is_rounded(claimed, held, source) for group in numbers for held in group):
            return True
    if claimed.ordinal and not claimed.written:
        return not source.has_order
    bare = not (claimed.currency or claimed.unit or claimed.head or claimed.ordinal)
    return bare and claimed.value is not None and f"number:{claimed.value}" in source.keys


def _candidates(claimed: Amount, source: _Held) -> Iterable[Amount]:
    """Return the amounts of the same value, or of the same writing where that can be read in two ways."""
    written = source.amounts.get(claimed.written, ())
    if claimed.value is None or claimed.version:
        return written
    valued = source.amounts.get(claimed.value, ())
    same = [held for held in valued if not held.version or held.written == claimed.written]
    if _TWO_READINGS.fullmatch(claimed.written):  # its dot or comma may be taken for either
        factors = (1, 1_000, Fraction(1, 1_000))
        same += [held for held in written if held.value is None or held.value / claimed.value in factors]
    return same


def _is_same(claimed: Amount, held: Amount, source: _Held) -> bool:
    """Return whether a held number of the same value measures or counts what is claimed."""
    measures = bool(held.currency or held.unit)
    if claimed.currency or claimed.unit:
        same_rate = not claimed.rate or claimed.rate == held.rate
        same_rate |= not held.rate and claimed.rate in held.rates
        return _same_measure(claimed, held) and same_rate
    if claimed.version:
        return not (measures or held.counts)
    if claimed.ordinal:
        return held.ordinal or not (source.has_order or measures or held.counts)
    if claimed.rate and claimed.rate != held.rate and claimed.rate not in held.rates:
        return False
    decimals = {n.replace(",", ".") for n in (claimed.written, held.written) if _DECIMAL.fullmatch(n)}
    if not measures and len(decimals) > 1:  # without a unit "3.1" is not "3.10"
        return False
    if claimed.label:
        is_other = measures or held.counts or held.label
        return claimed.label == held.label or claimed.label in held.labels or not is_other
    if claimed.head:
        return _counts_same(claimed, held, source)
    return not (claimed.before in LABELS and (measures or held.counts) and held.before != claimed.before)


def _same_measure(claimed: Amount, held: Amount) -> bool:
    if claimed.currency:
        as_pounds = claimed.currency == "GBP" and "pound" in held.behind and held.unit == "lb"
        return claimed.currency == held.currency or as_pounds
    if held.currency:
        return held.currency == "GBP" and "pound" in claimed.behind
    if held.unit:
        return claimed.unit == held.unit or (claimed.unit == "°" and held.unit in ("°c", "°f"))
    return claimed.unit in held.units_before


def _counts_same(claimed: Amount, held: Amount, source: _Held) -> bool:
    """
    Return whether "12 laptops" is held: as such, as "Laptops: 12", or in a twelve that counts nothing else.
    """
    if held.currency or held.unit or held.ordinal:
        return False
    if held.head:
        if claimed.head == held.head or _abbreviates(held.noun, claimed.noun):
            return True
        if claimed.languages.isdisjoint(held.languages) and claimed.head not in source.heads:
            return True  # in another language the thing is called otherwise
        unsure = not (claimed.counts and held.counts)
        return unsure and (claimed.head in held.behind or held.head in claimed.behind)
    if claimed.head in held.heading or claimed.behind & held.behind:
        return True
    names = held.label or (held.before and not held.before.endswith("s"))
    year = held.value is not None and held.value.denominator == 1 and held.value.numerator in _YEARS
    return not (names or year or claimed.head in source.heads)


def _abbreviates(short: str, long: str) -> bool:
    """Return whether a word is another one without vowels, as "sts" of "stitches" and "pcs" of "pieces"."""
    left = iter(long)
    has_form = short[:1] == long[:1] and set(short).isdisjoint("aeiou") and 1 < len(short) < 5
    return has_form and all(char in left for char in short)


def _is_rounded(claimed: Amount, held: Amount, source: _Held) -> bool:
    """
    Return whether a number that says of itself to be rounded is a held one, to the digits that it shows.
    """
    if claimed.value is None or held.value is None or not claimed.value or held.value * claimed.value <= 0:
        return False
    off = claimed.value - held.value
    if off * claimed.beyond < 0 or abs(off) > abs(held.value) * _ROUNDED_WITHIN:
        return False
    return _is_same(claimed, held, source) and abs(off) <= rounding_step(claimed.value) / 2


def rounding_step(value: Fraction) -> Fraction:
    """
    The place of the last digit that a rounded number shows.

    >>> rounding_step(Fraction(700)), rounding_step(Fraction("7.5"))
    (Fraction(100, 1), Fraction(1, 10))
    """
    step = Fraction(1)
    if value.denominator == 1:
        while value and value % (step * 10) == 0:
            step *= 10
        return step
    while (value / step).denominator != 1 and step > Fraction(1, 10**9):
        step /= 10
    return step
