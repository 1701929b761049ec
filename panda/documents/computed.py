"""
What a model that writes has computed: an expression over numbers of what it cites, worked out again.

    $749.99 − $697.00 · 3 nights × €118 · 15 % of $80 · (749.99 − 697) / 749.99 · sum(2 h, 45 min)
    mean(Shopping) · count(Ingredients) · days between 2026-01-04 and 1 February 2026
"""

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property

from panda.language.claims import Amount, scan
from panda.language.dates import age_between, span_between
from panda.language.numbers import ALL_NUMBER_WORDS, name_unit, size_of
from panda.language.patterns import lazy_pattern
from panda.language.text import plain_text
from panda.language.words import split_terms

_MOST_CHARS = 2_000
_DAY_SECONDS = 86_400
_MOST_DEPTH = 20
_LONGEST_RESULT = 10**15
_SPAN = lazy_pattern(
    r"\s*(?P<unit>\w+?)s?\s+(?:between|from)\s+(?P<first>.+?)\s+(?:and|to)\s+(?P<last>.+?)\s*\Z"
)
_SPAN_UNITS = {
    "second": "s",
    "minute": "min",
    "hour": "h",
    "day": "d",
    "week": "week",
    "month": "month",
    "year": "year",
}
_MEMBERS = lazy_pattern(r",(?!\d)")
_COUNT = lazy_pattern(r"\s*count\s*\([^()]*\)\s*")
_HOURS_AND_MINUTES = lazy_pattern(r"(\d{1,3})\s?h\s?([0-5]\d)")
_CURRENCY = r"[$€£¥₹¢]"
_UNIT = rf"(?:%|{_CURRENCY}|°?[^\W\dxX_]\w*(?:/[^\W\d_]\w*)?|°)"
_TOKEN = lazy_pattern(
    rf"""\s*(?:
      (?P<function>[A-Za-z]+)\s*\((?:\s*(?P<list>[^()]*[A-Za-z][^()]*?|(?<=count\()[^()]+?)\s*\))?
    | (?P<operand>
        (?:\d{{1,3}}\s?h\s?[0-5]\d(?![\d.,:])
          |(?:[A-Z]{{0,3}}{_CURRENCY}|[A-Z]{{3}}[ ])?\s?\d(?:[\d.,:'’]*\d)?\s?{_UNIT}*
          |(?i:{ALL_NUMBER_WORDS}))
        (?:[ ]\d+[ ]?(?:s|min|h)\b)*(?:[ ](?!of\b|[xX]\b)[^\W\d_][\w-]*)?)
    | (?P<of>of\b)
    | (?P<mark>[-+*/×÷·−–(),;]|[xX](?=[\s\d(]))
    )""",
    re.VERBOSE,
)
_DIGITS = lazy_pattern(r"\d(?:[\d.,:'’]*\d)?")
_SIGNS = {"−": "-", "–": "-", "×": "*", "·": "*", "x": "*", "X": "*", "÷": "/", ";": ","}


@dataclass(frozen=True)
class _Quantity:
    value: Fraction
    unit: str = ""  # a currency, what its unit is told in, "%", or "" of what only counts
    size: Fraction = Fraction(1)  # of its own unit in that
    own_unit: str = ""  # normal name of the unit that it was written in
    rate: str = ""  # what it is counted for
    bare: tuple[Fraction, ...] = ()  # the numbers that it is the sum of, where none has a unit
    is_count: bool = False  # whether only the length of a list supports it

    @property
    def is_price(self) -> bool:
        return len(self.unit) == 3 and self.unit.isupper()

    @property
    def unit_name(self) -> str:
        """The unit as people write it."""
        if self.is_price or not self.unit:
            return self.unit or "a number without a unit"
        return name_unit(self.own_unit or self.unit)


_HUNDRED = Fraction(100)


class ComputationError(ValueError):
    """Why an expression does not give its value, in a sentence."""


def work_out(
    value: str,
    expression: str,
    sources: Sequence[str],
    is_held: Callable[[str], bool],
    lists: Mapping[str, Sequence[str]],
    counts: Collection[int] = (),
) -> int:
    """
    Return how many numbers an expression adds. It gives a value, as it is rounded there and in its unit, from
    operands that the sources hold. A whole-list figure, sum(NAME), takes every line of that list; the
    members of a count, count(A, B), are words of the sources. An operand without a unit takes that of the
    others, and may multiply or divide as one of the counts.

    Raises:
        ComputationError: It does not.
    """
    if len(expression) > _MOST_CHARS:
        raise ComputationError(f"the expression for {value} is too long")
    parser = _ExpressionParser(expression, value, sources, is_held, lists=lists, counts=counts)
    claimed = parser.claimed
    result = _between(expression, is_held) or parser.result()
    if claimed.unit and not claimed.is_price and _COUNT.fullmatch(expression):  # "four days"
        claimed = _Quantity(claimed.value / claimed.size)
    fits = claimed.unit == result.unit or (claimed.unit, result.unit) in (("%", ""), ("pp", "%"))
    if claimed.unit and not fits:
        raise ComputationError(
            f"{expression} does not give {claimed.unit_name}, as {value} says, but {result.unit_name}"
        )
    if result.unit and not claimed.unit:
        raise ComputationError(f"{value} lacks the unit of {expression}: {result.unit_name}")
    computed = result.value
    if claimed.unit == "%" and result.unit != "%":
        computed *= 100
    if abs(abs(computed) - abs(claimed.value)) > _step(value) * claimed.size / 2:
        unit = f" {claimed.unit_name}" if claimed.unit else ""
        ratio = computed / claimed.size
        gives = f"far more than {value}"
        if abs(ratio) < _LONGEST_RESULT:
            gives = f"{float(ratio):,.2f}".rstrip("0").rstrip(".") + unit
        raise ComputationError(f"{expression} is not {value}: it gives {gives}")
    return parser.addends


def _step(value: str) -> Fraction:
    decimals = re.search(r"\d[.,](\d{1,2}|\d{4,})(?!\d)", value)
    return Fraction(1, 10 ** len(decimals[1])) if decimals else Fraction(1)


def _read(text: str) -> _Quantity:
    if time := _HOURS_AND_MINUTES.fullmatch(text.strip()):
        return _Quantity(
            Fraction(3_600 * int(time[1]) + 60 * int(time[2])), "s", Fraction(60), own_unit="min"
        )
    amounts = [mention.amount for mention in scan(plain_text(text.strip())) if mention.amount]
    sizes = [(amount, *size_of(amount.unit)) for amount in amounts if amount.value is not None]
    if len(sizes) != 1 and {unit for _, _, unit in sizes} != {"s"}:  # "2 h 45 min"
        raise ComputationError(f"{text.strip()!r:.60} is not one number")
    values = [amount.value * size for amount, size, _ in sizes if amount.value is not None]
    first, size, base = sizes[0]
    return _Quantity(max(values), first.currency or base, size, own_unit=first.unit, rate=first.rate)


def _between(expression: str, is_held: Callable[[str], bool]) -> _Quantity | None:
    asked = _SPAN.match(expression)
    unit = _SPAN_UNITS.get(asked["unit"].lower()) if asked else None
    if asked is None or unit is None:
        return None
    ends = []
    for text in (asked["first"], asked["last"]):
        dates = [mention.claim.value for mention in scan(text) if mention.claim.kind == "date"]
        if len(dates) != 1 or not is_held(text):
            raise ComputationError(f"{text} is no date or time of the lines that are cited")
        ends.append(dates[0])
    size, base = size_of(unit)
    length = span_between(ends[0], ends[1], in_months=base == "month")
    if length is None and unit == "year" and (years := age_between(ends[0], ends[1])) is not None:
        return _Quantity(years * size, base, size, own_unit=unit)
    if length is None:
        raise ComputationError(f"{expression} are not two days or two times")
    over_midnight = len(ends[0]) == len("23:50:00") and ends[0] > ends[1]
    return _Quantity(_DAY_SECONDS - length if over_midnight else length, base, size, own_unit=unit)


class _ExpressionParser:
    def __init__(
        self,
        expression: str,
        value: str,
        sources: Sequence[str],
        is_held: Callable[[str], bool],
        *,
        lists: Mapping[str, Sequence[str]],
        counts: Collection[int],
    ) -> None:
        self._text = expression
        self._value = value
        self.claimed = _read(value)
        self._sources = sources
        self._is_held = is_held
        self._lists = lists
        self._counts = frozenset(map(Fraction, counts))
        self._at = 0
        self._depth = 0
        self._added = 1

    def result(self) -> _Quantity:
        result = self._sum()
        if self._text[self._at :].strip():
            raise ComputationError(
                f"{self._text[self._at :].strip()!r:.40} in {self._text!r:.80} is not understood"
            )
        return result

    @property
    def addends(self) -> int:
        """Return how many numbers the sum that was read last adds."""
        return self._added

    def _next(self, *names: str) -> re.Match[str] | None:
        token = _TOKEN.match(self._text, self._at)
        if token is None or token.lastgroup is None or not any(token[name] for name in names):
            return None
        self._at = token.end()
        return token

    def _mark(self, marks: str) -> str:
        at = self._at
        token = self._next("mark")
        mark = _SIGNS.get(token["mark"], token["mark"]) if token else ""
        if mark and mark in marks:
            return mark
        self._at = at
        return ""

    def _sum(self) -> _Quantity:
        self._depth += 1
        if self._depth > _MOST_DEPTH:
            raise ComputationError("the expression is nested too deep")
        total, self._added = self._product(), 1
        while mark := self._mark("+-"):
            term = self._product()
            sign = 1 if mark == "+" else -1
            if term.unit == "%" != total.unit:
                term = replace(total, value=total.value * term.value / 100)
            total = self._in_unit(total, term)
            term = self._in_unit(term, total)
            if term.unit != total.unit:
                raise ComputationError(f"{self._text} adds {self._unit_of(total)} and {self._unit_of(term)}")
            value = total.value + sign * term.value
            total = replace(total, value=value, bare=(*total.bare, *term.bare) if total.bare else ())
            self._added += 1
        self._depth -= 1
        return total

    def _in_unit(self, addend: _Quantity, partner: _Quantity) -> _Quantity:
        """
        Return a sum of numbers without a unit in that of the other side of a sum, where the lines do not say
        that they measure or count something else; anything else as it is.
        """
        if not addend.bare or not partner.unit or partner.unit == "%":
            return addend
        unit = partner.unit if partner.is_price else partner.own_unit
        measures = all(
            any((amount.currency or amount.unit) in ("", unit) for amount in self._amounts(value))
            for value in addend.bare
        )
        return replace(partner, value=addend.value * partner.size) if measures else addend

    def _amounts(self, value: Fraction) -> list[Amount]:
        """Return the numbers of the lines that have a value, count nothing and are no place in an order."""
        return self._amounts_by_value.get(value, [])

    @cached_property
    def _amounts_by_value(self) -> dict[Fraction, list[Amount]]:
        amounts: dict[Fraction, list[Amount]] = {}
        for source in self._sources:
            for mention in scan(plain_text(source)):
                amount = mention.amount
                if amount is None or amount.value is None:
                    continue
                if not (amount.counts or amount.ordinal or amount.label):
                    amounts.setdefault(amount.value, []).append(amount)
        return amounts

    def _units(self, value: Fraction) -> str:
        """Return the units in which the lines have a number, as people write them; "" if it has none."""
        amounts = self._amounts(value)
        units = {amount.currency or name_unit(amount.unit) for amount in amounts}
        return " and ".join(sorted(units - {""}))

    def _unit_of(self, quantity: _Quantity) -> str:
        """Return the unit of one side of a sum; of a number without one that which the lines give it."""
        units = (self._units(value) for value in quantity.bare[:1])
        return next(filter(None, units), quantity.unit_name)

    def _product(self) -> _Quantity:
        result = self._factor({_HUNDRED})
        leading = result
        while True:
            if self._next("of"):
                mark = "*"
            elif not (mark := self._mark("*/")):
                if result is leading and leading.is_count:
                    raise ComputationError(f"{leading.value} in {self._text} is only the length of a list")
                return result
            addends = self._added
            factor = self._factor(defined={Fraction(addends), _HUNDRED})
            if mark == "*" and "%" in (result.unit, factor.unit):
                first, second = (result, factor) if result.unit == "%" else (factor, result)
                unit = "%" if second.value == 100 and not second.unit else second.unit
                share = first.value / (1 if unit == "%" else 100)
                result = _Quantity(share * second.value, unit, second.size, own_unit=second.own_unit)
            elif mark == "*" and not (result.unit or factor.unit):
                is_share = self.claimed.unit == "%" and _HUNDRED in (result.value, factor.value)
                result = _Quantity(result.value * factor.value, "%" if is_share else "")
            elif mark == "*":
                measured = [quantity for quantity in (result, factor) if quantity.unit]
                prices = [quantity for quantity in measured if quantity.is_price]  # of a rate, "€ per kWh"
                if len(measured) == 2 and len(prices) != 1:
                    raise ComputationError(
                        f"{self._text} multiplies {result.unit_name} by {factor.unit_name}"
                    )
                size = result.size * factor.size if len(measured) == 2 else Fraction(1)
                value = result.value * factor.value / size
                result = replace((prices or measured)[0], value=value, bare=())
            elif not factor.value:
                raise ComputationError(f"{self._text} divides by nothing")
            else:
                result = self._quotient(result, factor)

    def _quotient(self, dividend: _Quantity, divisor: _Quantity) -> _Quantity:
        """Return one number by another: a share of one unit, else an amount in the unit of the first."""
        if not divisor.unit:
            return replace(dividend, value=dividend.value / divisor.value, bare=())
        is_rate = divisor.own_unit != "" and divisor.own_unit == self.claimed.rate
        if divisor.unit == dividend.unit and not is_rate:
            return _Quantity(dividend.value / divisor.value)
        if self.claimed.unit == f"{dividend.unit}/{divisor.unit}":  # "km/h"
            return replace(self.claimed, value=dividend.value / divisor.value)
        if dividend.is_price or (dividend.unit and dividend.unit == self.claimed.unit):  # "$290 per kg"
            return replace(dividend, value=dividend.value / divisor.value * divisor.size)
        raise ComputationError(f"{self._text} divides {dividend.unit_name} by {divisor.unit_name}")

    def _factor(self, defined: frozenset[Fraction] | set[Fraction] = frozenset()) -> _Quantity:
        if self._mark("-"):
            if self._text[self._at :].lstrip()[:1] in ("-", "−", "–"):
                raise ComputationError(f"{self._text!r:.80} has two signs before a number")
            negative = self._factor(defined)
            return replace(negative, value=-negative.value)
        if self._mark("("):
            inner = self._sum()
            if not self._mark(")"):
                raise ComputationError(f"a parenthesis of {self._text} is open")
            return inner
        if function := self._next("function"):
            name = function["function"].lower()
            listed = function["list"]
            has_numbers = listed is not None and any(map(str.isdigit, listed))
            if listed and has_numbers and name != "count" and not self._titles(listed):
                self._at = function.start("list")
                listed = None
            return self._function(name, listed)
        token = self._next("operand")
        if token is None:
            raise ComputationError(
                f"{self._text[self._at :].strip()!r:.40} in {self._text!r:.80} is no number"
            )
        text = token["operand"].strip()
        return self._operand(text, defined)

    def _operand(self, text: str, defined: frozenset[Fraction] | set[Fraction]) -> _Quantity:
        """Return a number that the lines hold, or one that is defined where it stands."""
        quantity = _read(text)
        if not quantity.unit and self.claimed.unit:  # "749.99" beside "$52.99" may be "$749.99"
            unit = self.claimed.unit if self.claimed.is_price else name_unit(self.claimed.own_unit)
            for measured in (_DIGITS.sub(text, self._value.lstrip("-−–"), count=1), f"{text} {unit}"):
                if self._is_held(measured):
                    return _read(measured)
        if quantity.unit in ("cent", "¢") and self.claimed.is_price and self._is_held(text):
            return _Quantity(quantity.value / 100, self.claimed.unit)
        if self._is_held(text):
            return replace(quantity, bare=() if quantity.unit else (quantity.value,))
        if quantity.value in defined and not quantity.unit:
            return quantity
        if quantity.value in self._counts and not quantity.unit:
            return replace(quantity, is_count=True)
        units = self._units(quantity.value / quantity.size)
        cause = f", which have it in {units}" if units else ""
        raise ComputationError(f"{text} in {self._text} is not in the lines that are cited{cause}")

    def _function(self, name: str, listed: str | None) -> _Quantity:
        if listed is not None:
            terms = self._listed(name, listed)
        else:
            terms = [self._sum()]
            while self._mark(","):
                terms.append(self._sum())
            if not self._mark(")"):
                raise ComputationError(f"a parenthesis of {self._text} is open")
        if name == "count":
            return _Quantity(Fraction(len(terms)))
        measured = next((term for term in terms if term.unit), terms[0])
        terms = [self._in_unit(term, measured) for term in terms]
        if len({term.unit for term in terms}) != 1:
            units = " and ".join(dict.fromkeys(term.unit_name for term in terms))
            raise ComputationError(f"{self._text} takes {name} of numbers of several units: {units}")
        values = [term.value for term in terms]
        bare = tuple(number for term in terms for number in term.bare)
        match name:
            case "sum" | "total":
                return replace(measured, value=sum(values, Fraction()), bare=bare)
            case "mean" | "average" | "avg":
                return replace(measured, value=sum(values, Fraction()) / len(values), bare=())
            case "min" | "max":
                return replace(measured, value=min(values) if name == "min" else max(values), bare=())
        raise ComputationError(f"{name} in {self._text} is not one of sum, mean, min, max, count")

    def _listed(self, function: str, name: str) -> list[_Quantity]:
        named = [self._lists[title] for title in self._titles(name)]
        if not named and function == "count":
            return [self._member(member) for member in _MEMBERS.split(name)]
        if len(named) != 1:
            raise ComputationError(
                f"{name} is {'more than one' if named else 'no'} list of the lines that are cited"
            )
        quantities = []
        for line in named[0]:
            amounts = [
                mention.amount
                for mention in scan(line)
                if mention.amount and mention.amount.value is not None
            ]
            sizes = [(amount, *size_of(amount.unit)) for amount in amounts]
            fitting = [
                _Quantity(amount.value * size, amount.currency or unit, size, own_unit=amount.unit)
                for amount, size, unit in sizes
                if amount.value is not None and (amount.currency or unit) == self.claimed.unit
            ]
            if not fitting and function != "count":
                raise ComputationError(f"{line!r:.60} of {name} has no number like {self.claimed.unit_name}")
            quantities.append(fitting[0] if fitting else _Quantity(Fraction(1)))
        return quantities

    def _titles(self, name: str) -> list[str]:
        """Return the titles of the lists that have all words of a name."""
        wanted = set(split_terms(name))
        return [title for title in self._lists if wanted <= set(split_terms(title))]

    def _member(self, name: str) -> _Quantity:
        words = set(split_terms(name))
        if not words or not any(words <= set(split_terms(source)) for source in self._sources):
            raise ComputationError(
                f"{name.strip()!r} in {self._text!r:.80} is not in the lines that are cited"
            )
        return _Quantity(Fraction(1))
