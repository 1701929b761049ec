"""How an answer repeats its question: a limit, what it asks about, that there is no such thing."""

import re
from typing import Literal, NamedTuple

from panda.language.numbers import CURRENCY_BEFORE
from panda.language.patterns import lazy_pattern
from panda.language.words import alternatives

_LIMIT_BEFORE = {
    side: lazy_pattern(
        rf"(?<!\w){alternatives('asked_words.txt', side)}[ ](?:(?:the|de|den|los)[ ])?{CURRENCY_BEFORE}?\Z",
        re.IGNORECASE,
    )
    for side in ("most", "least")
}
_DENIAL = lazy_pattern(rf"(?<!\w){alternatives('asked_words.txt', 'denials')}(?!\w)", re.IGNORECASE)
_DENIAL_BEFORE = lazy_pattern(
    rf"(?<!\w){alternatives('asked_words.txt', 'denials')}(?:[ ]\w+){{0,2}}[ ]?\Z", re.IGNORECASE
)
_ASKED = lazy_pattern(rf"(?<!\w){alternatives('asked_words.txt', 'asked')}(?!\w)", re.IGNORECASE)
_CLAUSE_END = lazy_pattern(
    rf"[.;:!?,](?=\s|\Z)|\n|[ ]{alternatives('asked_words.txt', 'joints')}[ ]|[ ][–—-][ ]", re.IGNORECASE
)
_LOOK_CHARS = 160


class Repeated(NamedTuple):
    """What a clause says of a figure that the question has."""

    limit: Literal["most", "least", ""]  # which side it limits, if it does
    is_denied: bool  # whether the clause denies something
    is_denied_itself: bool  # whether what denies stands right before it: "does not cost $450"
    is_asked: bool  # whether it says what was asked


def read_repeated(text: str, start: int, end: int) -> Repeated:
    """Return what the clause around a figure of a plain text says of it."""
    before = text[max(0, start - _LOOK_CHARS) : start]
    after = text[end : end + _LOOK_CHARS]
    breaks = list(_CLAUSE_END.finditer(before))
    if breaks:
        before = before[breaks[-1].end() :]
    if first := _CLAUSE_END.search(after):
        after = after[: first.start()]
    limit: Literal["most", "least", ""] = ""
    for side in ("most", "least"):
        if limiting := _LIMIT_BEFORE[side].search(before):
            limit = side
            before = before[: limiting.start()]
            break
    clause = f"{before} {after}"
    return Repeated(
        limit=limit,
        is_denied=_DENIAL.search(clause) is not None,
        is_denied_itself=_DENIAL_BEFORE.search(before) is not None,
        is_asked=_ASKED.search(clause) is not None,
    )
