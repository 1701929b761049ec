"""Whether what a text claims is held by its sources."""

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache
from operator import itemgetter

from panda.language.claims import Amount, Claim, Found, find_claims, scan
from panda.language.computed import ComputationError, work_out
from panda.language.names import unknown_names
from panda.language.numbers import size_of
from panda.language.text import plain_text
from panda.language.words import LABELS

__all__ = ["Claim", "check_computed", "check_each", "check_evidence", "find_claims"]

_YEARS = range(1900, 2100)
_DECIMAL = re.compile(r"\d+(?:\.\d+|,(?:\d{1,2}|\d{4,}))")
_LIST_MARK = re.compile(r"(?:^|(?<=[.!?;:]) )[ ]*(\d{1,3})[.)] (?=[^\W\d])", re.MULTILINE)
_TWO_READINGS = re.compile(r"[1-9]\d{0,2}[.,]\d{3}")
_ROUNDED_WITHIN = Fraction(1, 20)


def tell_claims(missing: Sequence[str], text: str, node_ids: Sequence[str]) -> str:
    """That claims of a text are not in the nodes that it cites."""
    return f"{', '.join(missing)} in {text!r:.80} is not in {', '.join(node_ids)}"


def told_claims(issue: str, text: str) -> list[str] | None:
    """
    The claims that such an issue names of a text; None if it tells of another text.

    >>> told_claims(tell_claims(["$799", "8 GB"], "8 GB for $799", ["turn:811"]), "8 GB for $799")
    ['$799', '8 GB']
    """
    before, named, _ = issue.partition(f"{text!r:.80}")
    if not named:
        return None
    return before.removesuffix(" in ").split(", ") if before else []


def check_evidence(text: str, sources: Sequence[str], *, about: Sequence[str] = ()) -> list[Claim]:
    """
    The claims of a text that none of its sources holds, in order of appearance. Whether the sources say them
    of the same thing, and do not deny them, is for a model to judge.

    A bare number is supported by the same value anywhere, also in a price or quantity; a price only by the
    same value in the same currency, a quantity by the same value and unit, what is counted by the same value
    of the same thing, a date by the same day (or, with a time, the same instant), a URL only by itself, a
    name by the same whole word. One that says "about" of itself is also supported by what it rounds; what is
    computed is a source of its own where it holds (check_computed).

    Args:
        sources: The texts that it cites, one a node.
        about: Texts that support names and nothing else: the query, the sources' titles and addresses.

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
    cited = [plain[source] for source in sources]
    titles = [plain[title] for title in about]
    held = [_read(source) for source in cited]
    unheld = []
    for text in map(plain.__getitem__, texts):
        missing = [(found.start, found.claim) for found in _unheld(text, held)]
        names = unknown_names(text, [*cited, *titles])
        missing += [(name.start, Claim(name.text, "name", name.folded)) for name in names]
        unheld.append([claim for _, claim in sorted(missing, key=itemgetter(0))])
    return unheld


def check_computed(
    value: str, expression: str, sources: Sequence[str], lists: Mapping[str, Sequence[str]]
) -> str | None:
    """
    Why an expression over what the sources hold does not give a value, in a sentence; None if it does. Of
    *lists*, by their titles, a figure such as sum(TITLE) takes all lines.

    >>> check_computed("$53", "$749.99 − $697", ["one: $697.00", "other: $749.99"], {})
    >>> check_computed("$54", "$749.99 − $697", ["one: $697.00", "other: $749.99"], {})
    '$749.99 − $697 is not $54: it gives 52.99 USD'
    """
    try:
        work_out(value, expression, sources, lambda operand: not check_evidence(operand, sources), lists)
    except ComputationError as exc:
        return str(exc)
    return None


def _unheld(text: str, held: Sequence["_Held"]) -> list[Found]:
    marks = list(_LIST_MARK.finditer(text))
    is_list = len(marks) > 1 and [int(mark[1]) for mark in marks] == [*range(1, len(marks) + 1)]
    places = {mark.start(1) for mark in marks} if is_list else set()
    claims = [found for found in scan(text) if found.claims and found.start not in places]
    return [found for found in claims if not (_is_held(found, held) or _is_pronoun(found, held))]


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
    for found in scan(source):
        held.keys |= found.gives
        if (amount := found.amount) is None:
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


def _is_pronoun(found: Found, held: Sequence[_Held]) -> bool:
    """Whether a "one" counts nothing: no unit is behind it (but "one day"), and no source counts what is."""
    amount = found.amount
    if amount is None or found.claim.text.lower() not in ("one", "one day") or amount.currency:
        return False
    return not any(amount.head in source.heads for source in held)


def _is_held(found: Found, sources: Sequence[_Held]) -> bool:
    return any(_holds(source, found) for source in sources)


def _holds(source: _Held, found: Found) -> bool:
    if found.needs & source.keys or (found.together and found.together <= source.keys):
        return True
    claimed = found.amount
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
    """What has the same value, or the same writing where that can be read in two ways."""
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
    """Whether a held number of the same value measures or counts what is claimed."""
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
    """Whether "12 laptops" is held: as such, as "Laptops: 12", or in a twelve that counts nothing else."""
    if held.currency or held.unit or held.ordinal:
        return False
    if held.head:
        if claimed.head == held.head or _abbreviates(held.noun, claimed.noun):
            return True
        unsure = not (claimed.counts and held.counts)
        return unsure and (claimed.head in held.behind or held.head in claimed.behind)
    if claimed.head in held.heading or claimed.behind & held.behind:
        return True
    names = held.label or (held.before and not held.before.endswith("s"))
    year = held.value is not None and held.value.denominator == 1 and held.value.numerator in _YEARS
    return not (names or year or claimed.head in source.heads)


def _abbreviates(short: str, long: str) -> bool:
    """Whether a word is another one without vowels, as "sts" of "stitches" and "pcs" of "pieces"."""
    left = iter(long)
    has_form = short[:1] == long[:1] and set(short).isdisjoint("aeiou") and 1 < len(short) < 5
    return has_form and all(char in left for char in short)


def _is_rounded(claimed: Amount, held: Amount, source: _Held) -> bool:
    """Whether a number that says of itself to be rounded is a held one, to the digits that it shows."""
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
