"""Numbers that no source holds, proved by the operands that the same text states."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations, pairwise, permutations

from panda.language.claims import Amount, Found, scan
from panda.language.lexicon import NOT_COUNTED
from panda.language.names import words_of
from panda.language.sentences import split_sentences
from panda.language.stemming import stem

_MOST_OPERANDS = 14
_LESS = (
    r"less|fewer|cheaper|lighter|lower|shorter|smaller|younger|slower|earlier|sooner|colder|narrower|thinner"
)
_MORE = (
    r"more|extra|dearer|costlier|pricier|heavier|higher|longer|larger|bigger|greater|taller|older|faster|later"
    r"|warmer|wider"
)
_COMPARES = re.compile(
    rf"[ ]?(?:\w+[ ]){{0,2}}?(?:(?P<less>{_LESS})|(?P<more>{_MORE})|\w{{3,}}er[ ]than|off|apart|left"
    r"|remain\w*|over|under|below|above|short|saved|ahead|behind|in[ ](?:savings|change)|difference|discount"
    r"|reduction|increase|rise|gap|=)\b",
    re.IGNORECASE,
)
_DIFFERS = re.compile(
    r"(?:\b(?:differen\w+|sav(?:e|es|ed|ing|ings)|gap|drop\w*|fell|fall\w*|rose|ris\w+|increas\w+|decreas\w+"
    r"|gain\w*|los\w+|lost|chang\w+|discount\w*|reduc\w+|grew|grow\w*|by|leav\w+|left|remain\w*|margin|exceed\w*"
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
_CROSS = re.compile(r"[ ]?[x×*][ ]?")
_AT = re.compile(r"(?:[ ][\w-]+){0,3}[ ](?:at|@|x|×)[ ]")
_LENGTHS = frozenset("mm cm dm m km in ft yd mi".split())  # noqa: SIM905
_AVERAGES = re.compile(r"\b(?:average\w*|mean)\b", re.IGNORECASE)
_DIVIDES = re.compile(r"[ ]?(?:/|per\b|each\b|apiece\b|an?[ ]\w+)|\b(?:each|apiece|per)\b", re.IGNORECASE)
_PART_OF = re.compile(
    r"\b(?:of|share|off|discount|cheaper|less|more|percent|increase\w*|rose|fell|grew|sav\w+|\w+er than)\b|%",
    re.IGNORECASE,
)
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


def prove(claimed: Found, stated: Sequence[Found], text: str, sources: Sequence[str]) -> Proof | None:
    """
    The proof of a number by others that the same text states.

    A difference, sum, product, percentage, share or average must be told as one ("$52.99 less", "in total");
    its operands have the same unit. Totals and averages take every such number of the text, and where the
    numbers come from a list, the whole list. A count needs its members, named one by one. Results are exact;
    percentages, averages and shares may be rounded to the digits that they show, as any result that says
    "about" of itself.

    Args:
        claimed: What no source holds.
        stated: What else the text claims and a source holds, in order.
        text: The plain text.
        sources: What it cites, as plain texts.

    Returns:
        The first proof that is found; None if there is none.
    """
    amount = claimed.amount
    if amount is None or amount.value is None or amount.ordinal or amount.version or amount.label:
        return None
    operands = [found for found in stated if found.amount and found.amount.value is not None][:_MOST_OPERANDS]
    sentence = _sentence(text, claimed)
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
    """Every result that the text tells of: how it is reached, its value, and whether it may be rounded."""
    same = [
        found
        for found in operands
        if _measure(found.amount) == _measure(amount) and not _is_same(found, claimed)
    ]
    after, before = text[claimed.end : claimed.end + 60], text[max(0, claimed.start - 60) : claimed.start]
    compared = _COMPARES.match(after)
    differs = bool(compared or _DIFFERS.search(before))
    if differs and amount.unit != "%":
        for first, second in combinations(same, 2):
            if not (compared and _points_wrong(compared, claimed, first, second, text)):
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
    for group in _groups(same, sentence, text):
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
    measured = amount.currency or amount.unit or re.search(r"[×*=]|\btimes\b", sentence)
    counts = [found for found in operands if found.amount and _is_count(found.amount, amount) and measured]
    for count in counts:
        for base in same:
            if _TIMES.search(sentence):
                yield f"{count.claim.text} × {base.claim.text}", _value(count) * _value(base), False
            rest = [found for found in _inside(same, sentence, text) if found is not base]
            if rest and _AT.fullmatch(text[count.end : base.start]) and _ADDS.search(sentence):
                steps = " + ".join(found.claim.text for found in rest)
                whole = _value(count) * _value(base) + sum(map(_value, rest), Fraction())
                yield f"{count.claim.text} × {base.claim.text} + {steps}", whole, False
            if _value(count) and (amount.rate or _DIVIDES.match(after)):
                yield f"{base.claim.text} / {count.claim.text}", _value(base) / _value(count), True


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
    """What a number must have in common with another one to be added to it."""
    if amount is None:
        return None
    return (amount.currency, amount.unit, "" if amount.currency or amount.unit else amount.head)


def _is_count(amount: Amount, of: Amount) -> bool:
    """Whether a number says how many times another is taken."""
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
    """Whether a stated number is a result, or what rounding to the digits that it shows makes of it."""
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
    """The sentence in which a number stands."""
    start = max(text.rfind(mark, 0, claimed.start) for mark in (". ", "! ", "? ", "\n"))
    ends = [at for mark in (". ", "! ", "? ", "\n") if (at := text.find(mark, claimed.end)) >= 0]
    return text[start + 1 : min(ends, default=len(text))]


def _points_wrong(compared: re.Match[str], claimed: Found, first: Found, second: Found, text: str) -> bool:
    """Whether "$697 is $52.99 more than $749.99" calls the smaller one the greater."""
    if not (first.end <= claimed.start and claimed.end <= second.start) or not re.search(
        r"\bthan\b", text[claimed.end : second.start]
    ):
        return False
    return bool(
        (compared["less"] and _value(first) > _value(second))
        or (compared["more"] and _value(first) < _value(second))
    )


def _groups(same: Sequence[Found], sentence: str, text: str) -> Iterator[list[Found]]:
    """What a total may be taken over: all numbers of its unit in the text, or those in its sentence."""
    yield list(same)
    yield _inside(same, sentence, text)


def _inside(same: Sequence[Found], sentence: str, text: str) -> list[Found]:
    start = text.find(sentence)
    return [found for found in same if start <= found.start < start + len(sentence)]


def _is_whole(group: Sequence[Found], amount: Amount, sources: Sequence[str]) -> bool:
    """Whether numbers that a list holds are all numbers of their unit in that list."""
    stated = {_value(found) for found in group}
    for source in sources:
        lines = [match.start() for match in _LIST_LINE.finditer(source)]
        if len(lines) < 2:
            continue
        listed = {
            _value(found)
            for found in scan(source)
            if found.amount
            and found.amount.value is not None
            and _measure(found.amount) == _measure(amount)
            and _LIST_LINE.match(source[source.rfind("\n", 0, found.start) + 1 :])
        }
        if len(listed & stated) > 1 and not listed <= stated:
            return False
    return True


def _proved_count(claimed: Found, amount: Amount, text: str, sources: Sequence[str]) -> Proof | None:
    """A count by the members that the text names, each of which a source has, if no source lists more."""
    if (
        amount.currency
        or amount.unit
        or amount.value is None
        or amount.value.denominator != 1
        or amount.value < 2
    ):
        return None
    number = int(amount.value)
    for members in _enumerations(text, claimed):
        if len(members) == number and _all_listed(members, sources):
            return Proof(claimed.claim.text, ", ".join(members))
    return None


def _enumerations(text: str, claimed: Found) -> Iterator[list[str]]:
    """What may be the members of what a number counts: the list behind it, or the one before its verb."""
    behind = re.match(
        r"(?:[ -][\w'-]+){0,6}?\s*[:,(—–]\s*(?P<members>[^.!?)]+(?:\n.*)*)", text[claimed.end :]
    )
    if behind:
        yield _members(behind["members"])
    before = _sentence(text, claimed)
    head = text[text.find(before) : claimed.start]
    verbs = list(_ARE.finditer(head))
    if verbs:
        yield _members(head[: verbs[-1].start()])


def _members(text: str) -> list[str]:
    parts = (part.strip(" .:;()\n\"'") for part in _BETWEEN_MEMBERS.split(text.strip(" \n-*")))
    return [part for part in parts if part]


def _all_listed(members: Sequence[str], sources: Sequence[str]) -> bool:
    """Whether each member is in a source, and no list that has them goes on."""
    known = [_stems(source) for source in sources]
    for member in members:
        if not _telling(member) or not any(_telling(member) <= stems for stems in known):
            return False
    for source in sources:
        lines = [line for line in source.split("\n") if _LIST_LINE.match(line) and re.search(r"\w", line)]
        having = [line for line in lines if any(_telling(one) <= _stems(line) for one in members)]
        if len(having) > 1 and len(lines) != len(members):
            return False
        for sentence in (one for line in source.split("\n") for one in split_sentences(line)):
            stems = _stems(sentence)
            if all(_telling(member) <= stems for member in members) and len(_members(sentence)) > len(
                members
            ):
                return False
    return True


def _stems(text: str) -> set[str]:
    return {stem(word) for word in words_of(text).folded}


def _telling(member: str) -> set[str]:
    return {stem(word) for word in words_of(member).folded if word not in NOT_COUNTED}
