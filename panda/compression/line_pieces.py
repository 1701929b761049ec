"""Running text and long lines into stretches that can be kept or dropped alone."""

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence

from panda.language.dates import DATES
from panda.language.numbers import CURRENCY_BEFORE, DIGITS
from panda.language.sentences import sentence_spans
from panda.language.topics import negation_before

LONG_CHARS = 110
"""A sentence up to here stays whole."""
_AIM_CHARS = 70
_WIDE = "\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff\uff00-\uffef"
_MOST_CHARS = 4 * _AIM_CHARS
_BREAK = re.compile(rf"\s+(?=\S)|(?<=[{_WIDE}])(?=[{_WIDE}])|(?<=[\]}}\"]),(?=[\[{{\"])")
_CLAUSE_END = re.compile(r"[,;:)—–、，；：。|]\Z")
_BESIDE_VALUE = re.compile(r"[\d$€£¥₽₹%#]")
_BETWEEN_VALUES = re.compile(r"(?<=\d)[;,\t]?\s+(?=[-+]?\d)|(?<=\d),(?=[-+]?\d)")
WORDED_DATE = r"(?<![\d.,])\d{1,2}\.?\s(?:de\s)?[^\W\d_]{3,10}\.?,?\s(?:de\s)?(?:19|20)\d\d(?!\d)"
"""A day with its month as a word, in whatever language, and its year."""
_DAY_WITH_DOT = re.compile(rf"(?=\d\d?\.){WORDED_DATE}")
_VALUE = re.compile(
    rf"""
    \[[^\]\n]{{0,80}}\]\(\S+?://[^\s)]*\)     # a link
  | (?i:(?<![a-z0-9+.-])[a-z][a-z0-9+.-]*://[^\s<>"`|]+)
  | {DATES}
  | {WORDED_DATE}
  | (?<![A-Za-z]){CURRENCY_BEFORE}[ ]?(?:{DIGITS})
  | (?:{DIGITS})\s?(?:[€£¥₽円元]|(?i:USD|EUR|GBP|JPY|dollars?|euros?|руб)\b)
    """,
    re.VERBOSE,
)
_MAY_HAVE_VALUE = re.compile(r"\d|://")
_WHOLE_CHARS = 48
"""What is no longer is not cut for the price, URL or date in it."""
_CRUMB_CHARS = 10


def has_value(text: str) -> bool:
    """
    Whether a price, URL or date stands in a text.

    >>> has_value("for $5"), has_value("5 keys")
    (True, False)
    """
    return bool(_MAY_HAVE_VALUE.search(text) and _VALUE.search(text))


def prose_spans(source: str, start: int, end: int) -> Iterator[list[tuple[int, int]]]:
    """
    Sentences, each as one stretch or, if it is long, several.

    Args:
        source: The document.
        start: Where the text begins.
        end: Where it ends.

    Yields:
        A sentence as the spans it is made of; at least one sentence.
    """
    text = source[start:end]
    for one, other in _with_dates_whole(text, sentence_spans(text) or [(0, end - start)]):
        yield list(chunk_spans(source, start + one, start + other))


def _with_dates_whole(text: str, spans: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """The sentences, two of them joined where a date such as "5. Mai 2024" goes from one to the next."""
    starts = [one for one, _ in spans]
    within = set()
    for day in _DAY_WITH_DOT.finditer(text):
        n = bisect_right(starts, day.start())
        if n < len(starts) and starts[n] < day.end():
            within.add(n)
    joined: list[tuple[int, int]] = []
    for n, span in enumerate(spans):
        if n in within and joined:
            joined[-1] = (joined[-1][0], span[1])
        else:
            joined.append(span)
    return joined


def chunk_spans(source: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """
    A line cut into stretches of about 70 characters where it is long, at the ends of clauses if it has any.

    Never within a word, and not beside a number, so that no stretch says what the line does not; only a long
    row of numbers is cut, between two of them. A line without a blank stays whole. What holds a price, URL or
    date is cut around it, so that this can stay when the room is too small for all that is said about it.
    """
    for one, other in _clauses(source, start, end):
        begin = one
        if other - one > _MOST_CHARS:
            for match in _BETWEEN_VALUES.finditer(source, one, other):
                if match.start() - begin > _AIM_CHARS:
                    yield begin, match.start()
                    begin = match.end()
        yield from _around_values(source, begin, other)


def _around_values(source: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """A stretch cut before and behind each price, URL and date in it, with the words next to them."""
    if end - start <= _WHOLE_CHARS or not _MAY_HAVE_VALUE.search(source, start, end):
        yield start, end
        return
    cuts = [
        match.span()
        for match in _BREAK.finditer(source, start, end)
        if not _is_beside_value(source, match.start(), match.end())
    ]
    cores: list[tuple[int, int]] = []
    for match in _VALUE.finditer(source, start, end):
        left = max((other for _, other in cuts if other <= match.start()), default=start)
        right = min((one for one, _ in cuts if one >= match.end()), default=end)
        negated = negation_before(source, max(start, left - 40), left)
        left = left if negated is None else negated
        left = start if left - start < _CRUMB_CHARS else left
        right = end if end - right < _CRUMB_CHARS else right
        if cores and left - cores[-1][1] < _CRUMB_CHARS:
            cores[-1] = (cores[-1][0], max(right, cores[-1][1]))
        else:
            cores.append((left, right))
    begin = start
    for left, right in cores:
        if left > begin:
            yield begin, _skip_blanks_back(source, left)
        yield left, right
        begin = _skip_blanks(source, right)
    if begin < end:
        yield begin, end


def _clauses(source: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    begin, clause, last = start, start, start
    if end - start > LONG_CHARS:
        for match in _BREAK.finditer(source, start, end):
            at = match.start()
            if at - begin > 1.6 * _AIM_CHARS and max(clause, last) > begin:
                cut = clause if clause > begin else last
                yield begin, cut
                begin = _skip_blanks(source, cut)
            if _is_beside_value(source, at, match.end()):
                continue
            last = at
            if at - begin > 0.4 * _AIM_CHARS and _CLAUSE_END.search(source, max(begin, at - 1), at):
                clause = at
        if end - begin > LONG_CHARS and max(clause, last) > begin:
            cut = clause if clause > begin else last
            yield begin, cut
            begin = _skip_blanks(source, cut)
    yield begin, end


def _is_beside_value(source: str, left: int, right: int) -> bool:
    return bool(_BESIDE_VALUE.match(source, left - 1) or _BESIDE_VALUE.match(source, right))


def _skip_blanks(source: str, at: int) -> int:
    while at < len(source) and source[at].isspace():
        at += 1
    return at


def _skip_blanks_back(source: str, at: int) -> int:
    while at > 0 and source[at - 1].isspace():
        at -= 1
    return at
