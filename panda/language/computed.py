"""
What a model that writes has computed: an expression over numbers of what it cites, worked out again.

    $749.99 − $697.00 · 3 nights × €118 · 15 % of $80 · (749.99 − 697) / 749.99 · sum(2 h, 45 min)
    mean(Shopping) · count(Ingredients) · days between 2026-01-04 and 1 February 2026
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from panda.language.claims import scan
from panda.language.dates import span_between
from panda.language.numbers import NUMBER_WORDS, size_of
from panda.language.patterns import lazy_pattern
from panda.language.words import split_terms

_MOST_CHARS, _DAY_SECONDS = 2_000, 86_400
_MOST_DEPTH = 20
_SPAN = lazy_pattern(
    r"\s*(?P<unit>\w+?)s?\s+(?:between|from)\s+(?P<first>.+?)\s+(?:and|to)\s+(?P<last>.+?)\s*\Z"
)
_SPAN_UNITS = {"second": "s", "minute": "min", "hour": "h", "day": "d", "week": "week", "month": "month"}
_CURRENCY = r"[$€£¥₹¢]"
_UNIT = rf"(?:%|{_CURRENCY}|°?[^\W\dxX_]\w*(?:/[^\W\d_]\w*)?|°)"
_TOKEN = lazy_pattern(
    rf"""\s*(?:
      (?P<function>[A-Za-z]+)\s*\((?:\s*(?P<list>[^\d()]*[A-Za-z][^\d()]*?)\s*\))?
    | (?P<operand>
        (?:(?:[A-Z]{{0,3}}{_CURRENCY}|[A-Z]{{3}}[ ])?\s?\d(?:[\d.,:'’]*\d)?\s?{_UNIT}*|(?i:{NUMBER_WORDS}))
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

    @property
    def is_price(self) -> bool:
        return len(self.unit) == 3 and self.unit.isupper()


_HUNDRED = _Quantity(Fraction(100))


class ComputationError(ValueError):
    """Why an expression does not give its value, in a sentence."""


def work_out(
    value: str,
    expression: str,
    sources: Sequence[str],
    is_held: Callable[[str], bool],
    lists: Mapping[str, Sequence[str]],
) -> None:
    """
    Raises ComputationError unless the expression gives the value, as it is rounded there and in its unit,
    from operands that the sources hold. A whole-list figure, sum(NAME), takes every line of that list; the
    members of a count, count(A, B), are words of the sources.
    """
    if len(expression) > _MOST_CHARS:
        raise ComputationError(f"the expression for {value} is too long")
    parser = _Parser(expression, value, sources, is_held, lists)
    claimed, result = parser.claimed, _between(expression, is_held) or parser.result()
    fits = claimed.unit == result.unit or (claimed.unit, result.unit) in (("%", ""), ("pp", "%"))
    if claimed.unit and not fits:
        raise ComputationError(f"{expression} does not give {claimed.unit or 'a number'}, as {value} says")
    if result.unit and not claimed.unit:
        raise ComputationError(f"{value} lacks the unit of {expression}")
    given = result.value
    if claimed.unit == "%" and result.unit != "%":
        given *= 100
    step = _step(value)
    size = next((size_of(found.amount.unit)[0] for found in scan(value) if found.amount), Fraction(1))
    if abs(abs(given) - abs(claimed.value)) > step * size / 2:
        raise ComputationError(f"{expression} is not {value}")


def _step(value: str) -> Fraction:
    decimals = re.search(r"\d[.,](\d{1,2}|\d{4,})(?!\d)", value)
    return Fraction(1, 10 ** len(decimals[1])) if decimals else Fraction(1)


def _read(text: str) -> _Quantity:
    amounts = [found.amount for found in scan(text.strip()) if found.amount]
    sizes = [(amount, *size_of(amount.unit)) for amount in amounts if amount.value is not None]
    if len(sizes) != 1 and {unit for _, _, unit in sizes} != {"s"}:  # "2 h 45 min"
        raise ComputationError(f"{text.strip()!r:.60} is not one number")
    values = [amount.value * size for amount, size, _ in sizes if amount.value is not None]
    return _Quantity(max(values), sizes[0][0].currency or sizes[0][2], sizes[0][1])


def _between(expression: str, is_held: Callable[[str], bool]) -> _Quantity | None:
    asked = _SPAN.match(expression)
    unit = _SPAN_UNITS.get(asked["unit"].lower()) if asked else None
    if asked is None or unit is None:
        return None
    ends = []
    for text in (asked["first"], asked["last"]):
        dates = [found.claim.value for found in scan(text) if found.claim.kind == "date"]
        if len(dates) != 1 or not is_held(text):
            raise ComputationError(f"{text} is no date or time of the lines that are cited")
        ends.append(dates[0])
    _, base = size_of(unit)
    length = span_between(ends[0], ends[1], in_months=base == "month")
    if length is None:
        raise ComputationError(f"{expression} are not two days or two times")
    over_midnight = len(ends[0]) == len("23:50:00") and ends[0] > ends[1]
    return _Quantity(_DAY_SECONDS - length if over_midnight else length, base)


class _Parser:
    def __init__(
        self,
        expression: str,
        value: str,
        sources: Sequence[str],
        is_held: Callable[[str], bool],
        lists: Mapping[str, Sequence[str]],
    ) -> None:
        self._text, self._value, self.claimed = expression, value, _read(value)
        self._sources, self._is_held, self._lists = sources, is_held, lists
        self._at, self._depth, self._added = 0, 0, 1

    def result(self) -> _Quantity:
        result = self._sum()
        if self._text[self._at :].strip():
            raise ComputationError(
                f"{self._text[self._at :].strip()!r:.40} in {self._text!r:.80} is not understood"
            )
        return result

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
                term = _Quantity(total.value * term.value / 100, total.unit)
            if term.unit != total.unit:
                raise ComputationError(
                    f"{self._text} adds {total.unit or 'a number'} and {term.unit or 'a number'}"
                )
            total, self._added = replace(total, value=total.value + sign * term.value), self._added + 1
        self._depth -= 1
        return total

    def _product(self) -> _Quantity:
        result = self._factor({_HUNDRED.value})
        while True:
            if self._next("of"):
                mark = "*"
            elif not (mark := self._mark("*/")):
                return result
            addends = self._added
            factor = self._factor(defined={Fraction(addends), Fraction(100)})
            if mark == "*" and "%" in (result.unit, factor.unit):
                first, second = (result, factor) if result.unit == "%" else (factor, result)
                unit = "%" if second.value == 100 and not second.unit else second.unit
                result = _Quantity(first.value * second.value / (1 if unit == "%" else 100), unit)
            elif mark == "*" and not (result.unit or factor.unit):
                is_share = self.claimed.unit == "%" and _HUNDRED in (result, factor)
                result = _Quantity(result.value * factor.value, "%" if is_share else "")
            elif mark == "*":
                measured = [one for one in (result, factor) if one.unit]
                prices = [one for one in measured if one.is_price]  # of a rate, "€ per kWh"
                if len(measured) == 2 and len(prices) != 1:
                    raise ComputationError(f"{self._text} multiplies {result.unit} by {factor.unit}")
                size = result.size * factor.size if len(measured) == 2 else 1
                result = _Quantity(result.value * factor.value / size, (prices or measured)[0].unit)
            elif not factor.value:
                raise ComputationError(f"{self._text} divides by nothing")
            elif factor.unit and result.is_price and factor.unit != result.unit:
                result = _Quantity(result.value / factor.value * factor.size, result.unit)  # "$290 per kg"
            elif factor.unit and factor.unit != result.unit:
                raise ComputationError(f"{self._text} divides {result.unit or 'a number'} by {factor.unit}")
            else:
                result = _Quantity(result.value / factor.value, "" if factor.unit else result.unit)

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
            return self._function(function["function"].lower(), function["list"])
        token = self._next("operand")
        if token is None:
            raise ComputationError(
                f"{self._text[self._at :].strip()!r:.40} in {self._text!r:.80} is no number"
            )
        text = token["operand"].strip()
        quantity = _read(text)
        if not quantity.unit and self.claimed.unit:  # "749.99" beside "$52.99" may be "$749.99"
            measured = _DIGITS.sub(text, self._value.lstrip("-−–"), count=1)
            if self._is_held(measured):
                return _read(measured)
        if not (quantity.value in defined and not quantity.unit) and not self._is_held(text):
            raise ComputationError(f"{text} in {self._text} is not in the lines that are cited")
        return quantity

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
        if len({term.unit for term in terms}) != 1:
            raise ComputationError(f"{self._text} takes {name} of numbers of several units")
        values, unit = [term.value for term in terms], terms[0].unit
        match name:
            case "sum" | "total":
                return _Quantity(sum(values, Fraction()), unit)
            case "mean" | "average" | "avg":
                return _Quantity(sum(values, Fraction()) / len(values), unit)
            case "min" | "max":
                return _Quantity(min(values) if name == "min" else max(values), unit)
        raise ComputationError(f"{name} in {self._text} is not one of sum, mean, min, max, count")

    def _listed(self, function: str, name: str) -> list[_Quantity]:
        wanted = set(split_terms(name))
        named = [lines for title, lines in self._lists.items() if wanted <= set(split_terms(title))]
        if not named and function == "count":
            return [self._member(member) for member in name.split(",")]
        if len(named) != 1:
            raise ComputationError(
                f"{name} is {'more than one' if named else 'no'} list of the lines that are cited"
            )
        quantities = []
        for line in named[0]:
            amounts = [
                found.amount for found in scan(line) if found.amount and found.amount.value is not None
            ]
            sizes = [(amount, *size_of(amount.unit)) for amount in amounts]
            fitting = [
                _Quantity(amount.value * size, amount.currency or unit)
                for amount, size, unit in sizes
                if amount.value is not None and (amount.currency or unit) == self.claimed.unit
            ]
            if not fitting and function != "count":
                raise ComputationError(
                    f"{line!r:.60} of {name} has no number like {self.claimed.unit or 'that'}"
                )
            quantities.append(fitting[0] if fitting else _Quantity(Fraction(1)))
        return quantities

    def _member(self, name: str) -> _Quantity:
        words = set(split_terms(name))
        if not words or not any(words <= set(split_terms(source)) for source in self._sources):
            raise ComputationError(
                f"{name.strip()!r} in {self._text!r:.80} is not in the lines that are cited"
            )
        return _Quantity(Fraction(1))
