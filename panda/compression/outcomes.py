"""Minutes, tickets and notes: decisions, things to be done, causes and workarounds come before the talk."""

import math
from collections.abc import Sequence

from panda.compression.pieces import TITLE_TIER, Piece
from panda.language.patterns import lazy_pattern
from panda.language.words import FUNCTION_WORDS, phrases, split_terms

_LABELS = phrases("page_text.txt", "outcomes")
_MEETINGS = phrases("page_text.txt", "meetings")
_BEFORE_LABEL = "*#_>[]() -+.0123456789\t"
_CHECK_BOX = lazy_pattern(r"\s*[-*+] \[[ xX]\] ")
_REQUESTS = phrases("page_text.txt", "requests")
_ITEM = lazy_pattern(r"\s*(?:[-*+•]|\d{1,2}[.)])\s")
_BEHIND_LABEL = lazy_pattern(r"[*_]*(?: [^:.\n]{1,20})?:")
_NAME = lazy_pattern(r"(?<=[\w,;)] )(?!I\b)[A-Z][\w-]+|[`\"“][^`\"”\n]{2,40}[`\"”]|\w+[_./]\w+")
_COMMON_WORDS = frozenset(split_terms(" ".join(FUNCTION_WORDS)))
_DAY = lazy_pattern(r"\b\d{1,2}\.? [^\W\d_]{3,}|[^\W\d_]{3,} \d{1,2}\b|\b\d{1,2}\.\d{1,2}\.|\d{4}-\d\d-\d\d")
_TITLE_CHARS = 120
_TOP_CHARS = 600
_MOST_FIRST = 12
"""So many lines below a label come before all that is no outcome."""
_LABELLED = 0.0
_BELOW = 0.1
_BOX = 0.4
_MANY_FACTS = 4.0
_MEETING_PLACE = 0.1
"""What the place in its section counts there, beside what it says."""


def find_emptiness(text: str) -> float:
    """
    Return how little a sentence says beside what anyone could write, 0 to 1: numbers and names say more than
    other words, and a list of names says little.

    >>> find_emptiness("Thanks a lot, everyone!") > 0.9 > find_emptiness("Mirek measured 51 W at the head")
    True
    """
    terms = {term for term in split_terms(text) if term not in _COMMON_WORDS}
    numbers = sum(map(str.isdigit, terms))
    names = len(_NAME.findall(text))
    if 2 * names > len(terms):
        names = 0
    facts = 1.5 * min(2, numbers) + 0.7 * min(2, names) + 0.1 * (len(terms) - numbers)
    return max(0.0, 1 - facts / _MANY_FACTS)


def weigh_outcomes(source: str, pieces: Sequence[Piece]) -> None:
    """
    Weigh the lines of a text that a label as "Decision:" opens, or that stand in the list below a line as
    "Actions" or "I need from you:". In minutes and notes of a meeting those below a label come before all but
    the title.
    """
    is_meeting = _MEETINGS.search(source, 0, _TITLE_CHARS) is not None or any(
        ":" in line and _MEETINGS.match(line.lstrip(_BEFORE_LABEL))
        for line in source[:_TOP_CHARS].split("\n")
    )
    section: tuple[str, ...] | None = None  # the headings of a section of outcomes
    intro = -1  # the line above a list of outcomes
    is_request = False
    place = 0
    for i, piece in enumerate(pieces):
        if piece.kind == "heading":
            section = piece.path if _is_label(piece.text) else None
            intro = -1
            place = 0
            continue
        if piece.low or piece.kind not in ("sentence", "row"):
            continue
        is_request = (piece.text.endswith(":") and _REQUESTS.search(piece.text) is not None) or (
            is_request and intro >= 0
        )
        if _is_label(piece.text) or (piece.text.endswith(":") and is_request):
            intro = i
            place = 0
            continue
        if intro >= 0 and not (_is_item(pieces, piece) or intro in piece.heads):
            intro = -1
        if is_meeting and piece.kind == "sentence":
            piece.cost = find_emptiness(piece.text) + _MEETING_PLACE * piece.cost
        is_task = is_meeting and piece.kind == "row" and _DAY.search(piece.text) is not None
        if _opens_with_label(pieces, piece):
            cost = _LABELLED + min(_BELOW, _BELOW * piece.cost)
        elif section is not None or intro >= 0 or is_task:
            place += 1
            cost = _LABELLED + _BELOW * math.log2(1 + place)
        else:
            piece.cost = min(piece.cost, _BOX) if _CHECK_BOX.match(piece.text) else piece.cost
            continue
        if intro >= 0 and intro not in piece.heads:
            piece.heads = (*piece.heads, intro)
        piece.cost = min(piece.cost, cost)
        if is_meeting and place <= _MOST_FIRST and not (is_request and intro >= 0):
            piece.tier = max(piece.tier, TITLE_TIER)


def _is_item(pieces: Sequence[Piece], piece: Piece) -> bool:
    """Return whether a piece stands in an item of a list."""
    marks = [pieces[head].text for head in piece.heads if pieces[head].kind == "label"]
    return any(_ITEM.match(text) is not None for text in (piece.text, *(f"{mark} " for mark in marks)))


def _is_label(text: str) -> bool:
    """Return whether a line is a label alone, as "## Actions" or "todo"."""
    words = text.strip(_BEFORE_LABEL + ":").rstrip()
    return _LABELS.fullmatch(words) is not None


def _opens_with_label(pieces: Sequence[Piece], piece: Piece) -> bool:
    labels = [pieces[head].text for head in piece.heads if pieces[head].kind == "label"]
    text = (labels[-1] if labels else piece.text).lstrip(_BEFORE_LABEL)
    match = _LABELS.match(text)
    return match is not None and _BEHIND_LABEL.match(text, match.end()) is not None
