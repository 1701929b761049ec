"""Calculations that a text shows: "(24 × 0.95 €)", "$90 / 2 = $45", "half of $90". Pure."""

import re
from collections.abc import Iterator
from itertools import islice
from typing import NamedTuple

from panda.language.numbers import CURRENCY_BEFORE, FRACTION_WORDS
from panda.language.patterns import lazy_pattern

_UNIT = r"(?:[ ]?[%°$€£¥₹]{1,2}|[ ]?°?[^\W\d_]{1,12}[23]?(?:/[^\W\d_]{1,12})?)"
_NUMBER = rf"(?:{CURRENCY_BEFORE}[ ]?)?\d(?:[\d.,']{{0,20}}\d)?{_UNIT}?"
_OPERATOR = r"(?:[ ]?[*×·÷][ ]?|[ ][-+–x][ ]|[ ]?/[ ]?(?=[\d$€£])|[ ]of[ ])"
_EXPRESSION = lazy_pattern(
    rf"(?:(?P<part>{'|'.join(FRACTION_WORDS)})[ ]of[ ](?P<whole>{_NUMBER})"
    rf"|(?<![\w.,])[(]{{0,2}}{_NUMBER}(?:[)]{{0,2}}{_OPERATOR}[(]{{0,2}}{_NUMBER}){{1,12}}[)]{{0,2}})",
    re.IGNORECASE,
)
_HALVES = lazy_pattern(r"[/÷][ ]?2(?![\d.,])")
_MOST_EXPRESSIONS = 12


class Expression(NamedTuple):
    """A calculation where it stands in a text."""

    text: str  # as computed.work_out reads it
    start: int
    end: int
    divisors: tuple[int, ...]  # what it divides by though no line has it, as 2 for a half


def find_expressions(text: str) -> Iterator[Expression]:
    """
    Yield the calculations of a plain text, in order; of many the first ones.

    >>> [expression.text for expression in find_expressions("half of $90, $45; 3 nights (3 x 40 €), 5-7 °C")]
    ['$90 / 2', '(3 x 40 €)']
    """
    for match in islice(_EXPRESSION.finditer(text), _MOST_EXPRESSIONS):
        if match["part"]:
            divisor = FRACTION_WORDS[match["part"].lower()].denominator
            yield Expression(f"{match['whole']} / {divisor}", *match.span(), (divisor,))
            continue
        expression = match[0]
        for _ in range(expression.count("(") - expression.count(")")):
            expression = expression.replace("(", "", 1)
        for _ in range(expression.count(")") - expression.count("(")):
            expression = expression[: expression.rindex(")")]
        yield Expression(expression, *match.span(), (2,) if _HALVES.search(expression) else ())
