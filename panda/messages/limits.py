"""The budgets, dates and counts that limit what a message looks for. Pure."""

import re
from collections.abc import Iterator, Mapping
from itertools import pairwise
from types import MappingProxyType

from panda.language.claims import Found, scan
from panda.language.patterns import lazy_pattern
from panda.language.text import plain_text, sentence_spans
from panda.language.words import alternatives, read_groups, read_words
from panda.messages.reading import MESSAGE_CHARS, Limit, LimitValue, find_span
from panda.messages.wording import is_past_form

_LIMIT = {name: alternatives("limit_words.txt", name) for name in read_groups("limit_words.txt")}
_BEFORE_VALUE = lazy_pattern(
    rf"(?<![\w'-])(?:(?P<turned>no|not|never) )?(?:(?P<early>{_LIMIT['early']})|(?P<late>{_LIMIT['late']})"
    rf"|(?P<most>{_LIMIT['most']})|(?P<least>{_LIMIT['least']})|(?P<people>for(?=[ ]?\Z))|(?P<day>on)"
    r"|between)[.:]?(?: (?:of|is|an?|the|about))*[ ]?\Z",
    re.IGNORECASE,
)
_BEHIND_VALUE = lazy_pattern(
    rf"(?:[ /]{{0,3}}(?!and|or)[\w€£$]+){{0,2}}[ ](?:(?P<most>{_LIMIT['tops']})|(?P<least>{_LIMIT['up']})"
    r"|(?P<only>only))\b",
    re.IGNORECASE,
)
_RANGE = lazy_pattern(r"[ ]?(?:and|to|-|–)[ ]?")
_PART = lazy_pattern(r"[,;]\s|\s(?:that|which|who)\b")
_SEEKS = lazy_pattern(
    rf"(?:\w+,? ){{0,2}}?(?:(?:can|could|would|will) you (?:please )?)?{_LIMIT['looks']}\b"
    r"(?! (?:the|my|our|his|her|this|that|it|him)\b)"
    rf"|.*?\b{_LIMIT['wishes']}\b(?! (?:the|my|our)\b)|which\b|what(?:'s| is| are) the (?:best|\w+est)\b",
    re.IGNORECASE,
)
_SPEAKS = lazy_pattern(
    rf"(?:{_LIMIT['asks']}|{_LIMIT['known']})\b|\w+ (?:to )?{_LIMIT['known']}\b"
    rf"|.*?(?:(?<![\w-]){_LIMIT['finite']}(?![\w-])|\w'(?:s|re|ve|m)\b)",
    re.IGNORECASE,
)
_ORDERED = lazy_pattern(
    rf"(?:please )?(?:{_LIMIT['looks']}|{_LIMIT['makes']}) (?:(?:me|us|the|some|all|only|exactly|out) )*\Z",
    re.IGNORECASE,
)
_INSTEAD = lazy_pattern(r"\b(?P<value>\d{1,9}(?:\.\d{1,9})?),? (?:and )?not (?P<was>\d{1,9}(?:\.\d{1,9})?)\b")
_LOOK_CHARS = 60
_HEAD_CHARS = 300


def find_limits(message: str, holding: Mapping[str, str | int | float] = MappingProxyType({})) -> list[Limit]:
    """
    Return the budgets, dates and counts that limit what a message looks for, in order, their words as they
    stand; what it tells, and questions about one known thing, limit nothing. Keys are budget, date or
    count:NOUN, with _min or _max; of those *holding* so far "4, not 6" changes the one that is 6.
    """
    text = plain_text(message[:MESSAGE_CHARS])
    limits = []
    for match in _INSTEAD.finditer(text):
        value = float(match["value"]) if "." in match["value"] else int(match["value"])
        keys = [key for key, held in holding.items() if str(held) == match["was"]]
        if not keys and match[0] == text.strip(" .!"):
            keys = ["count"]
        limits += [Limit(match[0], key, value) for key in keys]
    for start, end in sentence_spans(text):
        for limit in _limits_of(text[start:end]):
            limits.append(Limit(find_span(limit.text, message) or limit.text, limit.key, limit.value))
    return list(dict.fromkeys(limits))


def _limits_of(sentence: str) -> Iterator[Limit]:
    values = [
        (figure, *_limit_kind(figure))
        for figure in scan(sentence)
        if figure.claims or figure.claim.kind == "date"
    ]
    begin: int | None = None  # of the range that a value ends
    for (figure, kind, value), (other, same, _) in zip(
        values, [*values[1:], (None, None, None)], strict=False
    ):
        front = _BEFORE_VALUE.search(sentence[max(0, figure.start - _LOOK_CHARS) : figure.start])
        behind = _BEHIND_VALUE.match(sentence, figure.end)
        name, colon, noun = kind.partition(":")
        start = figure.start - len(front[0]) if front else figure.start
        end = sentence.lower().find(noun, figure.end) + len(noun) if noun else figure.end
        end = max(end, behind.end() if behind else 0)
        is_ordered = bool(noun) and _ORDERED.match(sentence[: min(start, _HEAD_CHARS)]) is not None
        bound = _limit_bound(name, value, front, behind)
        if begin is not None:
            start, bound, begin = begin, "_max", None
        elif same == kind and other and _RANGE.fullmatch(sentence, figure.end, other.start):
            begin = start
            end = other.end
            bound = "_min"
        elif bound is None and is_ordered:
            bound = ""
        if kind and bound is not None and (is_ordered or _seeks(sentence, start, end)):
            if bound == "?" or value is None:
                yield Limit(sentence[start:end])
            else:
                yield Limit(sentence[start:end], f"{name}{bound}{colon}{noun}", value)


def _limit_kind(figure: Found) -> tuple[str, LimitValue]:
    if figure.claim.kind in ("price", "date"):
        return {"price": "budget", "date": "date"}[figure.claim.kind], figure.claim.value
    amount = figure.amount
    if not amount or amount.value is None or amount.label or amount.ordinal or amount.version or amount.unit:
        return "budget" if amount and amount.unit == "lb" else "", None  # pounds may be either
    value = int(amount.value) if amount.value.denominator == 1 else float(amount.value)
    if not amount.counts:
        return "budget", value
    return (f"count:{amount.noun}", value) if isinstance(value, int) else ("", None)


def _limit_bound(
    name: str, value: LimitValue, front: re.Match[str] | None, behind: re.Match[str] | None
) -> str | None:
    """
    Return how the words around a value limit it: "_max", "_min", "" exactly, "?" somehow; None not at all.
    """
    groups = {key for match in (front, behind) if match for key, words in match.groupdict().items() if words}
    if groups & {"early", "late"} and name != "date":
        return "?" if name == "budget" and isinstance(value, int) else None  # "before 8"
    if not front and name == "budget" and not isinstance(value, str):
        return None  # "age 6 and up"
    if groups & {"most", "early"}:
        return "_min" if "turned" in groups else "_max"
    if groups & {"least", "late"}:
        return "_max" if "turned" in groups else "_min"
    if name == "date" and "day" in groups and "turned" in groups:
        return "?"
    return "" if name == "count" and "people" in groups else None


def _seeks(sentence: str, start: int, end: int) -> bool:
    first = _PART.split(sentence[:_HEAD_CHARS], maxsplit=1)[0]
    part = _PART.split(sentence[max(0, start - _HEAD_CHARS) : start])[-1] + sentence[start:end]
    part += _PART.split(sentence[end : end + _HEAD_CHARS], maxsplit=1)[0]
    words = re.findall(r"[a-z']+", first.lower())
    nouns = read_words("limit_words.txt", "before_nouns")  # "a used cello"
    if any(is_past_form(word) and before not in nouns for before, word in pairwise(words)):
        return False
    return _SEEKS.match(first) is not None or _SPEAKS.match(part) is None
