"""Numbers that no source holds, proved by the operands that the same text states."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import combinations, pairwise, permutations, product

from panda.language.claims import Amount, Found, scan
from panda.language.dates import find_days, span_between
from panda.language.names import words_of
from panda.language.numbers import RATES, rate_of, size_of
from panda.language.text import sentence_spans, split_sentences
from panda.language.words import NOT_COUNTED, stem

_MOST_OPERANDS = 14
_MOST_SIGNS = 50  # operands of one expression
_MOST_CHARS = 50_000  # a text or source that is longer proves nothing
LESS = (
    r"less|fewer|cheaper|lighter|lower|shorter|smaller|younger|slower|earlier|sooner|colder|narrower|thinner"
)
MORE = (
    r"more|extra|dearer|costlier|pricier|heavier|higher|longer|larger|bigger|greater|taller|older|faster|later"
    r"|warmer|wider"
)
_COMPARES = re.compile(
    rf"[ ]?(?:\w+[ ]){{0,2}}?(?:(?P<less>{LESS})|(?P<more>{MORE})|\w{{3,}}er[ ]than|off|apart|left"
    r"|too[ ](?:much|many)"
    r"|remain\w*|over|under|below|above|short|saved|ahead|behind|in[ ](?:savings|change)|difference|discount"
    r"|reduction|increase|rise|gap|=)\b",
    re.IGNORECASE,
)
_DIFFERS = re.compile(
    r"(?:\b(?:differen\w+|sav(?:e|es|ed|ing|ings)|gap|drop\w*|fell|fall\w*|rose|ris\w+|increas\w+|decreas\w+"
    r"|gain\w*|los\w+|lost|chang\w+|discount\w*|reduc\w+|grew|grow\w*|by|leav\w+|left|remain\w*|margin|exceed\w*|spread"
    r"|minus|off)\b|[-–−=])[^!?\n]{0,60}\Z",
    re.IGNORECASE,
)
_WHOLE = re.compile(
    r"\b(?:total\w*|sum|altogether|in all|overall|average\w*|mean|on average)\b", re.IGNORECASE
)
_ADDS = re.compile(
    r"\b(?:total\w*|sum\w*|together|altogether|combined|in all|overall|plus|both|adds? up|makes?|comes? to)\b"
    r"|\+",
    re.IGNORECASE,
)
_TIMES = re.compile(
    r"\b(?:total\w*|altogether|in all|comes? to|makes?|each|per|apiece|times|every|at|for)\b"
    r"|[×*]|\bx\b|\ban? \w+",
    re.IGNORECASE,
)
_TO = re.compile(r"[^.!?;\n]{0,30}[ ](?:to|versus|vs\.?)[ ]")
_CROSS = re.compile(r"[ ]?[x×*][ ]?")
_AT = re.compile(r"(?:[ ][\w-]+){0,3}[ ](?:at|@|x|×)[ ]")
_LENGTHS = frozenset("mm cm dm m km in ft yd mi".split())  # noqa: SIM905
_AVERAGES = re.compile(r"\b(?:average\w*|mean)\b", re.IGNORECASE)
_DIVIDES = re.compile(r"[ ]?(?:/|per\b|each\b|apiece\b|an?[ ]\w+)|\b(?:each|apiece|per)\b", re.IGNORECASE)
_PART_OF = re.compile(
    r"\b(?:of|share|off|discount|cheaper|less|more|percent|increase\w*|rose|fell|grew|sav\w+|\w+er than)\b|%",
    re.IGNORECASE,
)
_OPERATOR = re.compile(
    r"(?:[ ][\w-]+){0,3}\)?[ ]?(?:(?P<times>[×x*·]|\btimes|\bmultiplied by)|(?P<by>[/÷]|\bdivided by)"
    r"|(?P<plus>\+|\bplus)"
    r"|(?P<minus>[-–−]|\bminus))[ ]?"
)
_MARKS = {"×": "times", "/": "by", "+": "plus", "−": "minus"}
_MULTIPLES = {
    "double": 2,
    "doubles": 2,
    "doubled": 2,
    "twice": 2,
    "half": 2,
    "halve": 2,
    "triple": 3,
    "thrice": 3,
}
_LIST_LINE = re.compile(r"^\s*(?:[-*+•|]|\d{1,3}[.)])\s*\S", re.MULTILINE)
_BETWEEN_MEMBERS = re.compile(r"\s*(?:,\s*(?:and|or)\s|,|;|\band\b|\bor\b|&|\n\s*(?:[-*+•]|\d{1,3}[.)]))\s*")
_ARE = re.compile(r"\s(?:are|were|make|makes|is)\b|:|\(|—|–")


@dataclass(frozen=True)
class Proof:
    """How a number that no source holds follows from numbers that they do."""

    text: str
    """The number, as stated."""
    steps: str
    """The operation, as "$749.99 − $697.00"."""


def prove(
    claimed: Found,
    stated: Sequence[Found],
    claims: Sequence[Found],
    text: str,
    sources: Sequence[str],
    asked: Sequence[str] = (),
) -> Proof | None:
    """
    The first proof of what no source holds by others that the text states. A difference, sum, product,
    percentage, share or average must be told as one ("$52.99 less", "in total"), of operands of one unit;
    totals and averages take every such number of the text or of a list; a count needs its members, named one
    by one. Results are exact; percentages, averages and shares, and what says "about", may be rounded to the
    digits shown. *stated* are those of *claims* that a source holds or a proof gave; *asked* may say how many
    times something is taken, as "for 5 nights".
    """
    amount = claimed.amount
    if amount is None or amount.value is None or amount.ordinal or amount.version:
        return None
    if max(map(len, (text, *sources, *asked))) > _MOST_CHARS:
        return None
    operands = [found for found in stated if found.amount and found.amount.value is not None][:_MOST_OPERANDS]
    sentence = _sentence(text, claimed)
    for expression in _expressions(claims, text):
        if steps := expression.proves(claimed, stated, text, sources, asked):
            return Proof(claimed.claim.text, steps)
    if amount.label:
        return None
    if steps := _beyond(claimed, amount, operands, text, sentence, sources):
        return Proof(claimed.claim.text, steps)
    if size_of(amount.unit)[1] in ("s", "month"):
        for steps, result in _spans(stated, amount.unit, sources):
            if _equals(amount, result, rounds=False):
                return Proof(claimed.claim.text, steps)
    for steps, result, rounds in _results(claimed, amount, operands, text, sentence, sources):
        if _equals(amount, result, rounds=rounds):
            return Proof(claimed.claim.text, steps)
    return _proved_count(claimed, amount, text, sources)


def _results(
    claimed: Found,
    amount: Amount,
    operands: Sequence[Found],
    text: str,
    sentence: str,
    sources: Sequence[str],
) -> Iterator[tuple[str, Fraction, bool]]:
    others = [_in_unit(found, amount.unit) for found in operands if not _is_same(found, claimed)]
    for found in others:
        if found not in operands and found.amount and found.amount.unit == amount.unit:
            yield found.claim.text, _value(found), False
    same = [found for found in others if _measure(found.amount) == _measure(amount)]
    after, before = text[claimed.end : claimed.end + 60], text[max(0, claimed.start - 60) : claimed.start]
    compared = _COMPARES.match(after)
    differs = bool(compared or _DIFFERS.search(before))
    if differs and amount.unit == "pp":
        for first, second in combinations(
            [one for one in operands if one.amount and one.amount.unit == "%"], 2
        ):
            yield f"{first.claim.text} − {second.claim.text}", _value(first) - _value(second), False
    if differs and amount.unit != "%":
        for first, second in combinations(same, 2):
            if not (compared and _points_wrong(compared, claimed, first, second, text)):
                high, low = sorted((first, second), key=_value, reverse=True)
                yield f"{high.claim.text} − {low.claim.text}", _value(high) - _value(low), False
    for first, second in pairwise(same):
        if amount.unit != "%" and _TO.fullmatch(text, first.end, second.start):
            high, low = sorted((first, second), key=_value, reverse=True)
            yield f"{high.claim.text} − {low.claim.text}", _value(high) - _value(low), False
    if amount.unit == "%" and _PART_OF.search(sentence):
        yield from _percentages(operands, differs)
    else:
        for share in operands:
            if share.amount and share.amount.unit == "%":
                for base in same:
                    part = _value(base) * _value(share) / 100
                    yield f"{share.claim.text} of {base.claim.text}", part, False
                    yield f"{base.claim.text} − {share.claim.text}", _value(base) - part, False
                    yield f"{base.claim.text} + {share.claim.text}", _value(base) + part, False
    for source in sources if _ADDS.search(sentence) else ():
        listed = _listed(source, amount)
        if len(listed) > 1:
            yield (
                " + ".join(found.claim.text for found in listed),
                sum(map(_value, listed), Fraction()),
                False,
            )
    for group in (same, _inside(same, sentence, text)):  # all of the text, or of the sentence
        if (
            len(group) > 1
            and _ADDS.search(sentence)
            and (not _WHOLE.search(sentence) or _is_whole(group, amount, sources))
        ):
            yield " + ".join(found.claim.text for found in group), sum(map(_value, group), Fraction()), False
        if len(group) > 1 and _AVERAGES.search(sentence) and _is_whole(group, amount, sources):
            mean = sum(map(_value, group), Fraction()) / len(group)
            yield f"({' + '.join(found.claim.text for found in group)}) / {len(group)}", mean, True
    for first, second in pairwise(same):
        if _CROSS.fullmatch(text[first.end : second.start]) and amount.unit not in _LENGTHS:
            yield f"{first.claim.text} × {second.claim.text}", _value(first) * _value(second), False
    takes_times = amount.currency or amount.unit or re.search(r"[×*=]|\btimes\b", sentence)
    counts = [found for found in operands if found.amount and _is_count(found.amount, amount) and takes_times]
    for count, base in _nearest(product(counts, same), claimed):
        if _TIMES.search(sentence):
            yield f"{count.claim.text} × {base.claim.text}", _value(count) * _value(base), False
        rest = [found for found in _inside(same, sentence, text) if found is not base]
        if rest and _AT.fullmatch(text[count.end : base.start]) and _ADDS.search(sentence):
            steps = " + ".join(found.claim.text for found in rest)
            whole = _value(count) * _value(base) + sum(map(_value, rest), Fraction())
            yield f"{count.claim.text} × {base.claim.text} + {steps}", whole, False
        if _value(count) and (amount.rate or _DIVIDES.match(after)):
            yield f"{base.claim.text} / {count.claim.text}", _value(base) / _value(count), True


def _nearest(pairs: Iterable[tuple[Found, Found]], claimed: Found) -> list[tuple[Found, Found]]:

    def span(pair: tuple[Found, Found]) -> int:
        starts = [found.start for found in (*pair, claimed)]
        return max(starts) - min(starts)

    return sorted(pairs, key=span)


def _beyond(
    claimed: Found,
    amount: Amount,
    operands: Sequence[Found],
    text: str,
    sentence: str,
    sources: Sequence[str],
) -> str | None:
    """How "both are under $1,000" follows from what the sentence states of both."""
    bound = _BOUND.search(text[max(0, claimed.start - 24) : claimed.start])
    same = [
        found
        for found in _inside(operands, sentence, text)
        if _measure(found.amount) == _measure(amount) != (None, "", "")
    ]
    if not same:
        same = [  # what is itself a limit is no value that keeps within one
            one
            for source in sources
            for one in scan(source)
            if _measure(one.amount) == _measure(amount)
            and not _BOUND.search(source[max(0, one.start - 24) : one.start])
        ]
        same = [one for one in same if one.amount and one.amount.value is not None]
    if not bound or not same or amount.value is None or not (amount.currency or amount.unit):
        return None
    below, limit = bound["below"], amount.value
    holds = all(_value(found) < limit if below else _value(found) > limit for found in same)
    mark = "<" if below else ">"
    return f"{', '.join(found.claim.text for found in same)} {mark} {claimed.claim.text}" if holds else None


def _in_unit(found: Found, unit: str) -> Found:
    if not found.amount or not found.amount.unit or found.amount.unit == unit:
        return found
    (size, measured_in), (other, wanted_in) = size_of(found.amount.unit), size_of(unit)
    if measured_in != wanted_in:
        return found
    return replace(found, amount=replace(found.amount, unit=unit, value=_value(found) * size / other))


def _spans(stated: Sequence[Found], unit: str, sources: Sequence[str]) -> Iterator[tuple[str, Fraction]]:
    dated = [found for found in stated if found.claim.kind == "date"][:_MOST_OPERANDS]
    years = {day[:4] for source in sources for day in find_days(source) if day[0].isdigit()} or {"2001"}
    size, base = size_of(unit)
    for first, second in combinations(dated, 2):
        is_range = first.start == second.start and base == "s"  # "14–16 April" are three days
        for year in sorted(years):
            for length in span_between(
                first.claim.value, second.claim.value, year, in_months=base == "month"
            ):
                yield f"{first.claim.text} to {second.claim.text}", (length + 86_400 * is_range) / size


@dataclass(frozen=True)
class _Expression:
    """What a text computes with signs: "2 × $18 + $9"."""

    operands: tuple[Found, ...]
    """The numbers, in order."""
    signs: tuple[str, ...]
    """What stands between them, each one of ×, /, + and − (the sign of subtraction)."""
    divided: bool = False
    """Whether all before a division stands in parentheses."""

    @property
    def result(self) -> Fraction:
        total, product, sign = Fraction(), _value(self.operands[0]), "+"
        for mark, found in zip(self.signs, self.operands[1:], strict=True):
            if mark == "/" and self.divided:
                total, product, sign = Fraction(), total + (product if sign == "+" else -product), "+"
            if mark == "×":
                product *= _value(found)
            elif mark == "/":
                product = product / _value(found) if _value(found) else Fraction()
            else:
                total, product, sign = total + (product if sign == "+" else -product), _value(found), mark
        return total + (product if sign == "+" else -product)

    @property
    def steps(self) -> str:
        first, *rest = (found.claim.text for found in self.operands)
        return first + "".join(f" {mark} {text}" for mark, text in zip(self.signs, rest, strict=True))

    def proves(
        self, claimed: Found, stated: Sequence[Found], text: str, sources: Sequence[str], asked: Sequence[str]
    ) -> str | None:
        amount = claimed.amount
        assert amount is not None
        if len(self.operands) > _MOST_SIGNS:
            return None
        line = text[: self.operands[0].start].count("\n")
        if text[: claimed.start].count("\n") != line:
            return None
        unknown = [found for found in self.operands if found not in stated]
        sentence = _sentence(text, self.operands[0])
        told = [found for found in scan(sentence) if found.amount and found.amount.value is not None]
        if not all(
            self._is_factor(found, sentence, sources, asked)
            or any(self._is_asked(one, sources, asked) for one in told if _value(one) == _value(found))
            for found in unknown
        ):
            return None
        if claimed in self.operands:
            near = [found for found in scan(text) if text.count("\n", 0, found.start) == line]
            return self.steps if any(self._gives(found) for found in near) else None
        if self._gives(claimed):
            return self.steps
        factors = [found for found in self.operands if self._is_factor(found, sentence, sources, asked)]
        if any(_value(found) == amount.value for found in self.operands) and self._is_asked(
            claimed, sources, asked
        ):
            return self.steps
        bases = [one.amount for source in sources for one in scan(source) if one.amount]
        multiplied = amount.head and any(
            base.head == amount.head and base.value and base.value * _value(found) == amount.value
            for found in factors
            for base in bases
        )
        return self.steps if multiplied else None

    def _gives(self, found: Found) -> bool:
        amount = found.amount
        if amount is None or amount.value is None or found in self.operands:
            return False
        measures = {(one.amount.currency, one.amount.unit) for one in self.operands if one.amount}
        measures -= {(None, "")}
        measured = [one for one in self.operands if one.amount and (one.amount.unit or one.amount.currency)]
        squares = self.signs == ("×",) and len(measured) > 1
        if self.signs == ("/",) and len(measured) > 1 and len(measures) == 1:
            measures = {(None, "")}
        fits = not squares and (not measures or (amount.currency, amount.unit) in measures)
        return fits and _equals(amount, self.result, rounds="/" in self.signs)

    def _is_factor(self, found: Found, sentence: str, sources: Sequence[str], asked: Sequence[str]) -> bool:
        amount, at = found.amount, self.operands.index(found)
        beside = self.signs[max(0, at - 1) : at + 1]
        if amount and amount.unit == "%" and amount.value == 100:
            return True
        if not amount or amount.currency or amount.unit == "%" or not {"×", "/"} & set(beside):
            return False
        value = _value(found)
        if self.divided and found is self.operands[-1] and value == len(self.operands) - 1:
            return True
        if any(_MULTIPLES.get(word) == value for word in re.findall(r"[a-z]+", sentence.lower())):
            return True
        told = [rate_of(word.removesuffix("ly")) for word in re.findall(r"[a-z]+", sentence.lower())]
        told += [
            one.amount.rate for source in sources for one in scan(source) if one.amount and one.amount.rate
        ]
        sizes = [size_of(unit) for unit in dict.fromkeys(told) if unit in RATES]
        if any(big == value * small for (big, one), (small, other) in permutations(sizes, 2) if one == other):
            return True
        return self._is_asked(found, sources, asked)

    def _is_asked(self, found: Found, sources: Sequence[str], asked: Sequence[str]) -> bool:
        assert found.amount is not None
        if any(one.amount and one.amount.value == found.amount.value for text in asked for one in scan(text)):
            return True
        of = found.amount.unit or found.amount.head
        amounts = [one.amount for source in sources for one in scan(source) if one.amount]
        counted = {one.value for one in amounts if of and of in (one.unit, one.head)}
        rates = {one.rate for one in amounts if any(one.value == _value(base) for base in self.operands)}
        return bool(of) and not counted and of in {stem(rate) for rate in rates} | rates


def _expressions(claims: Sequence[Found], text: str) -> Iterator[_Expression]:
    operands: list[Found] = []
    signs: list[str] = []
    divided = False
    for found in claims:
        if not found.amount or found.amount.value is None:
            continue
        gap = _OPERATOR.fullmatch(text, operands[-1].end, found.start) if operands else None
        if gap:
            signs.append(next(mark for mark in _MARKS if gap[_MARKS[mark]]))
            divided = divided or (")" in gap[0] and signs[-1] == "/")
        else:
            if signs:
                yield _Expression(tuple(operands), tuple(signs), divided)
            operands, signs, divided = [], [], False
        operands.append(found)
    if signs:
        yield _Expression(tuple(operands), tuple(signs), divided)


def _percentages(operands: Sequence[Found], differs: bool) -> Iterator[tuple[str, Fraction, bool]]:
    for part, base in permutations(operands, 2):
        if (
            part.amount
            and base.amount
            and _measure(part.amount) == _measure(base.amount)
            and _value(base) > 0
        ):
            if part.amount.unit == "%":
                continue
            share = _value(part) / _value(base) * 100
            if differs:
                yield f"({part.claim.text} − {base.claim.text}) / {base.claim.text}", abs(share - 100), True
            else:
                yield f"{part.claim.text} / {base.claim.text}", share, True


def _value(found: Found) -> Fraction:
    assert found.amount is not None
    assert found.amount.value is not None
    return found.amount.value


def _measure(amount: Amount | None) -> tuple[str | None, str, str] | None:
    if amount is None:
        return None
    return (amount.currency, amount.unit, "" if amount.currency or amount.unit else amount.head)


def _is_count(amount: Amount, of: Amount) -> bool:
    whole = amount.value is not None and amount.value.denominator == 1 and amount.value > 0
    return (
        whole
        and not amount.currency
        and amount.unit != "%"
        and (not amount.label)
        and amount.unit != (of.unit or "-")
    )


def _is_same(found: Found, other: Found) -> bool:
    return (found.start, found.claim) == (other.start, other.claim)


def _equals(amount: Amount, result: Fraction, *, rounds: bool) -> bool:
    assert amount.value is not None
    value = abs(amount.value)
    if value == abs(result):
        return True
    if not (rounds or amount.about):
        return False
    step = rounding_step(value) if amount.about else Fraction(1, 10 ** _places(amount.written))
    return abs(value - abs(result)) <= step / 2 and abs(value - abs(result)) * 20 <= abs(result)


def _places(written: str) -> int:
    return len(re.split(r"[.,]", written)[1]) if re.search(r"[.,]\d+\Z", written) else 0


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


def _sentence(text: str, claimed: Found) -> str:
    return next(
        (text[start:end] for start, end in sentence_spans(text) if start <= claimed.start < end), text
    )


def _points_wrong(compared: re.Match[str], claimed: Found, first: Found, second: Found, text: str) -> bool:
    if not (first.end <= claimed.start and claimed.end <= second.start) or not re.search(
        r"\bthan\b", text[claimed.end : second.start]
    ):
        return False
    return bool(
        (compared["less"] and _value(first) > _value(second))
        or (compared["more"] and _value(first) < _value(second))
    )


def _inside(same: Sequence[Found], sentence: str, text: str) -> list[Found]:
    start = text.find(sentence)
    return [found for found in same if start <= found.start < start + len(sentence)]


def _is_whole(group: Sequence[Found], amount: Amount, sources: Sequence[str]) -> bool:
    stated = {_value(found) for found in group}
    for source in sources:
        lines = [match.start() for match in _LIST_LINE.finditer(source)]
        if len(lines) < 2:
            continue
        listed = set(map(_value, _listed(source, amount)))
        if len(listed & stated) > 1 and not listed <= stated:
            return False
    return True


def _listed(source: str, amount: Amount) -> list[Found]:
    return [
        found
        for found in scan(source)
        if found.amount
        and found.amount.value is not None
        and _measure(found.amount) == _measure(amount)
        and _LIST_LINE.match(source, source.rfind("\n", 0, found.start) + 1)
    ]


def _proved_count(claimed: Found, amount: Amount, text: str, sources: Sequence[str]) -> Proof | None:
    if (
        amount.currency
        or amount.unit not in ("", "d")
        or amount.value is None
        or amount.value.denominator != 1
        or amount.value < 1
    ):
        return None
    number = int(amount.value)
    determined = _DETERMINED.search(text[: claimed.start])
    of_all = number + bool(determined and determined["other"])
    if determined and _is_of_them(claimed, amount, text, sources) and of_all in _sizes_of(sources):
        return Proof(claimed.claim.text, f"{number} in what is cited")
    if steps := _counted(claimed, amount, text, sources):
        return Proof(claimed.claim.text, steps)
    for members in _enumerations(text, claimed) if number > 1 else ():
        if len(members) == number and _all_listed(members, sources):
            return Proof(claimed.claim.text, ", ".join(members))
    return None


_BOUND = re.compile(
    r"\b(?:(?P<below>below|under|less than|fewer than|beneath)"
    r"|(?P<above>above|over|more than|exceed\w*))[ ]\Z",
    re.IGNORECASE,
)
_DETERMINED = re.compile(r"\b(?:the|these|those|all)[ ](?P<other>other[ ])?\Z", re.IGNORECASE)
_PARTITIVE = re.compile(r"[ ](?:[\w-]+[ ]){0,2}of[ ](?:them|the|these|those|your)\b")


def _is_of_them(claimed: Found, amount: Amount, text: str, sources: Sequence[str]) -> bool:
    counted = {one.amount.head for source in sources for one in scan(source) if one.amount}
    told_otherwise = amount.head and amount.head in counted
    partitive = _PARTITIVE.match(text, claimed.end)
    return not partitive and not told_otherwise and not amount.unit


def _sizes_of(sources: Sequence[str]) -> set[int]:
    if len(sources) != 1:
        return {len(sources)}
    lines = [line for line in sources[0].split("\n") if re.search(r"\w", line)]
    listed = [line for line in lines if _LIST_LINE.match(line)]
    if len(listed) > 1 or len(lines) > 1:
        return {len(listed or lines)}
    return {len(split_sentences(sources[0])), len(re.split(r";\s", sources[0])), len(_members(sources[0]))}


def _counted(claimed: Found, amount: Amount, text: str, sources: Sequence[str]) -> str | None:
    number = amount.value
    if _PARTITIVE.match(text, claimed.end):
        sentence = _sentence(text, claimed)
        clause = re.split(r"[;:—]\s", sentence[max(0, claimed.start - text.find(sentence)) :])[0]
        for other in scan(clause):
            parts = [part for source in sources for part in re.split(r"[;,\n]|\.\s", source) if part.strip()]
            having = sum(any(other.needs & one.gives for one in scan(part)) for part in parts)
            if other.needs and other.claims and having == number:
                return f"{other.claim.text} in {having} places"
        return None
    for word in sorted(amount.behind):
        lines = [line for source in sources for line in source.split("\n")]
        having = sum(any(_is_like(word, one) for one in _stems(line)) for line in lines)
        if len(word) > 3 and len(lines) > 1 and having == number:
            return f"{word} on {having} lines"
    return None


def _is_like(first: str, second: str) -> bool:
    return first == second or (
        min(len(first), len(second)) > 3 and (first.startswith(second) or second.startswith(first))
    )


def _enumerations(text: str, claimed: Found) -> Iterator[list[str]]:
    behind = re.match(
        r"(?:[ -][\w'-]+){0,6}?\s*[:,(—–]\s*(?P<members>(?:[^.!?)]|\.(?=\d))+(?:\n.*)*)", text[claimed.end :]
    )
    if behind:
        yield _members(behind["members"])
        between = re.match(r"[^,;:.(—–]+and[^,;:.(—–]+(?=[,)—–])", behind["members"])
        if between:
            yield _members(between[0])
    before = _sentence(text, claimed)
    head = text[text.find(before) : claimed.start]
    verbs = list(_ARE.finditer(head))
    if verbs:
        yield _members(head[: verbs[-1].start()])


def _members(text: str) -> list[str]:
    parts = (part.strip(" .:;()\n\"'") for part in _BETWEEN_MEMBERS.split(text.strip(" \n-*")))
    return [part for part in parts if part]


def _all_listed(members: Sequence[str], sources: Sequence[str]) -> bool:
    known = [_stems(source) for source in sources]
    for member in members:
        if not _telling(member) or not any(_telling(member) <= stems for stems in known):
            return False
    for source in sources:
        lines = [line for line in source.split("\n") if _LIST_LINE.match(line) and re.search(r"\w", line)]
        having = [line for line in lines if any(_telling(one) <= _stems(line) for one in members)]
        if len(having) > 1 and len(lines) != len(members):
            return False
        for sentence in (
            part
            for line in source.split("\n")
            for one in split_sentences(line)
            for part in re.split(r"[;:—–]\s", one)
        ):
            stems = _stems(sentence)
            if all(_telling(member) <= stems for member in members) and len(_members(sentence)) > len(
                members
            ):
                return False
    return True


def _stems(text: str) -> set[str]:
    return {stem(word) for word in words_of(text).folded}


def _telling(member: str) -> set[str]:
    plain = re.sub(r"\d{1,2}:\d\d(?: ?[ap]m\b)?|[$€£] ?\d[\d.,]*", "", member)
    words = words_of(plain if re.search(r"\w", plain) else member).folded
    return {stem(word) for word in words if word not in NOT_COUNTED}
