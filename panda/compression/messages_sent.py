"""Mail, tickets and conversations into pieces: who wrote, what was asked and what was decided."""

import math
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise

from panda.compression.outcomes import weigh_outcomes
from panda.compression.pieces import TITLE_TIER, Piece, TextOutline
from panda.compression.prose import TURN_LINE, parse_prose
from panda.language.patterns import lazy_pattern
from panda.language.words import phrases

_HEADER = lazy_pattern(r"([A-Z][\w-]*): ?")
_SUBJECTS = ("subject", "title", "summary")
_KEPT_HEADERS = ("from", "to", "date", "status", "priority", "reporter", "assignee", "created")
_FIRST_HEADERS = ("from", "to", "date", "status")
_HEADER_CHARS = 120
_SPEAKER = lazy_pattern(r"(?:[-*>]\s+)?\*{0,2}[A-Z][\w.' -]{0,30}:\*{0,2}(?=\s|\Z)")
_PART_HEADER = lazy_pattern(r"-{4,}\S|Content-[\w-]+: |MIME-Version: ")
_QUOTED = lazy_pattern(r">")
_SIGNATURE = lazy_pattern(r"--\s*\Z")
_DECIDED = phrases("page_text.txt", "decided")
_GREETING = phrases("page_text.txt", "greetings")
_GREETING_CHARS = 60
_LEAST_TURNS = 3
_MOST_SPEAKERS = 4
_DISTANCE = 0.15
_SENTENCE = 0.35
_LAST_COST = 0.15
"""What the last sentence of the last of several messages costs at most."""


def is_messages(source: str) -> bool:
    """
    Return whether a text is a mail, a ticket or a conversation.

    >>> is_messages("From: Ann\\nSubject: Tea\\n\\nHi"), is_messages("Name: httpx\\nVersion: 1\\n\\nHi")
    (True, False)
    """
    keys = {
        match[1].lower() for text in source.split("\n\n", 1)[0].split("\n") if (match := _HEADER.match(text))
    }
    if "subject" in keys and not keys.isdisjoint(("from", "to", "date")):
        return True
    lines = source.split("\n")
    turns = sum(TURN_LINE.match(text.strip()) is not None for text in lines)
    speakers = Counter(match[0] for text in lines if (match := _SPEAKER.match(text)))
    is_talk = len(speakers) <= _MOST_SPEAKERS and all(count > 1 for count in speakers.values())
    return turns >= _LEAST_TURNS or (is_talk and speakers.total() > _LEAST_TURNS)


def parse_messages(source: str) -> TextOutline:
    r"""
    The pieces of messages: of each its opening and what it asks or decides before the rest of it.

    >>> outline = parse_messages("Subject: Tea\nFrom: Ann\nX-Id: 7\n\nHi,\nwe decided for Assam.\n")
    >>> [piece.text for piece in outline.pieces if piece.low]
    ['X-Id: 7', 'Hi,']
    """
    outline = parse_prose(source)
    pieces = outline.pieces
    body = _weigh_headers(source, pieces)
    begins = _find_beginnings(pieces, body)
    bounds = sorted({body, *begins, len(pieces)})
    messages = [range(first, end) for first, end in pairwise(bounds)]
    last = [i for i in messages[-1] if pieces[i].kind == "sentence"][-1:] if len(messages) > 1 else []
    for place, message in enumerate(messages):
        _weigh_message(pieces, message, place, distance=min(place, len(messages) - 1 - place))
    for i in last:
        pieces[i].cost = min(pieces[i].cost, _LAST_COST)
    weigh_outcomes(source, pieces)
    return outline


def _weigh_headers(source: str, pieces: Sequence[Piece]) -> int:
    """Weigh the lines with keys that open the text; returns the first piece behind them."""
    first = source.split("\n\n", 1)[0]
    has_keys = sum(_HEADER.match(text) is not None for text in first.split("\n")) > 1
    keys = {match[1].lower() for text in first.split("\n") if (match := _HEADER.match(text))}
    for i, piece in enumerate(pieces):
        if not has_keys or piece.start >= len(first):
            return i
        match = _HEADER.match(piece.text)
        key = match[1].lower() if match else ""
        piece.tier = (
            TITLE_TIER
            if key in _SUBJECTS
            or (i == 0 and key not in _KEPT_HEADERS and (not key or keys.isdisjoint(_SUBJECTS)))
            else 0
        )
        if key in _KEPT_HEADERS:
            piece.cost = 0.15 if key == "status" else 0.5
            if key in _FIRST_HEADERS and len(piece.text) <= _HEADER_CHARS:
                piece.tier = TITLE_TIER
        elif piece.tier == 0:
            piece.low = "header of a message"
    return len(pieces)


def _find_beginnings(pieces: Sequence[Piece], first: int) -> list[int]:
    """Return where messages begin: at lines that say who wrote when, else at those that say who speaks."""
    for pattern in (TURN_LINE, _SPEAKER):
        begins = [i for i in range(first, len(pieces)) if pattern.match(pieces[i].text)]
        if len(begins) >= _LEAST_TURNS:
            return begins
    return []


def _weigh_message(pieces: Sequence[Piece], span: range, place: int, *, distance: int) -> None:
    """Weigh the sentences of a message, so many from the first or last; who wrote it stands with each."""
    base = _DISTANCE * math.log2(1 + distance) + 0.1 * (place > 0)
    writer = span.start if TURN_LINE.match(pieces[span.start].text) else None
    if writer is not None:
        pieces[writer].heads = tuple(head for head in pieces[writer].heads if head < writer)
    number = 0
    is_over = False  # only a signature follows
    for i in span:
        piece = pieces[i]
        if writer is not None and i != writer:
            piece.heads = (*piece.heads, writer)
        if piece.kind not in ("sentence", "row", "code"):
            continue
        is_over = is_over or _SIGNATURE.match(piece.text) is not None
        if is_over:
            piece.low = piece.low or "signature"
        elif _PART_HEADER.match(piece.text):
            piece.low = piece.low or "header of a message"
        elif _QUOTED.match(piece.text):
            piece.low = piece.low or "quoted"
        elif len(piece.text) <= _GREETING_CHARS and _GREETING.match(piece.text.strip("*_ ")):
            piece.low = piece.low or "greeting"
        if piece.low or i == writer:
            piece.tier = 0
            piece.cost = base + 1.0
            continue
        piece.tier = TITLE_TIER if place == 0 and number == 0 else 0
        piece.cost = base + _SENTENCE * math.log2(1 + number)
        if _DECIDED.search(piece.text):
            piece.cost = min(piece.cost, 0.2)
            piece.tier = TITLE_TIER
        elif piece.text.rstrip().endswith("?") and place == 0:
            piece.cost -= 0.3
        number += 1
