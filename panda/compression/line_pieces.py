"""Running text and long lines into stretches that can be kept or dropped alone."""

import re
from collections.abc import Iterator

from panda.documents.sentences import sentence_spans

LONG_CHARS = 110
"""A sentence up to here stays whole."""
_AIM_CHARS = 70
_WIDE = "\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff\uff00-\uffef"
_MOST_CHARS = 4 * _AIM_CHARS
_BREAK = re.compile(rf"\s+(?=\S)|(?<=[{_WIDE}])(?=[{_WIDE}])|(?<=[\]}}\"]),(?=[\[{{\"])")
_CLAUSE_END = re.compile(r"[,;:)—–、，；：。|]\Z")
_BESIDE_VALUE = re.compile(r"[\d$€£¥₽₹%#]")
_BETWEEN_VALUES = re.compile(r"(?<=\d)[;,\t]?\s+(?=[-+]?\d)|(?<=\d),(?=[-+]?\d)")


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
    found = sentence_spans(source[start:end]) or [(0, end - start)]
    for one, other in found:
        yield list(chunk_spans(source, start + one, start + other))


def chunk_spans(source: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """
    A line cut into stretches of about 70 characters where it is long, at the ends of clauses if it has any.

    Never within a word, and not beside a number, so that no stretch says what the line does not; only a long
    row of numbers is cut, between two of them. A line without a blank stays whole.
    """
    for one, other in _clauses(source, start, end):
        begin = one
        if other - one > _MOST_CHARS:
            for match in _BETWEEN_VALUES.finditer(source, one, other):
                if match.start() - begin > _AIM_CHARS:
                    yield begin, match.start()
                    begin = match.end()
        yield begin, other


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
