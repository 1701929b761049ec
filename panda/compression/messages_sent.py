"""Mail, tickets and conversations into pieces: who wrote, what was asked and what was decided."""

import math
from collections import Counter
from collections.abc import Sequence, Set
from itertools import pairwise

from panda.compression.outcomes import find_emptiness, weigh_outcomes
from panda.compression.pieces import TITLE_TIER, Piece, TextOutline
from panda.compression.prose import TURN_LINE, find_versions, parse_prose
from panda.language.patterns import lazy_pattern
from panda.language.words import phrases, split_terms

_HEADER = lazy_pattern(r"([A-Z][\w-]*): ?")
_SUBJECTS = ("subject", "title", "summary")
_KEPT_HEADERS = ("from", "to", "date", "status", "priority", "reporter", "assignee", "created")
_FIRST_HEADERS = ("from", "to", "date", "status")
_HEADER_CHARS = 120
_SPEAKER = lazy_pattern(r"(?:[-*>]\s+)?\*{0,2}[A-Z][\w.' -]{1,30}(?:\*\* \([^)\n]{1,30}\))?:\*{0,2}(?=\s|\Z)")
"""Who speaks, and when; the letters of "Q:" and "A:" are no names."""
_QUOTED = "quoted"
_NAME_WORDS = 3
_SIGNATURE = lazy_pattern(r"--\s*\Z")
_DECIDED = phrases("page_text.txt", "decided")
_GREETING = phrases("page_text.txt", "greetings")
_GREETING_CHARS = 60
_LEAST_TURNS = 3
_MOST_SPEAKERS = 4
_DISTANCE = 0.15
_SENTENCE = 0.2
_SHARED_START = 4
_ANSWERED = 0.5
"""What the paragraph that is answered costs more than the answer."""
_DECIDED_COST = 0.2
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
    if find_versions(lines):
        return False
    turns = sum(TURN_LINE.match(text.strip()) is not None for text in lines)
    speakers = Counter(
        match[0] for text in lines if (match := _SPEAKER.match(text)) and match.end() < len(text)
    )
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
    header = [piece.text.partition(": ") for piece in pieces[:body]]
    subject = next((_beginnings(text) for key, _, text in header if key.lower() in _SUBJECTS), frozenset())
    begins = _find_beginnings(pieces, body)
    bounds = sorted({body, *begins, len(pieces)})
    messages = [
        range(*span) for span in pairwise(bounds) if any(pieces[i].kind != "heading" for i in range(*span))
    ]
    last = [i for i in messages[-1] if pieces[i].kind == "sentence"][-1:] if len(messages) > 1 else []
    for place, message in enumerate(messages):
        distance = min(place, len(messages) - 1 - place)
        base = _DISTANCE * math.log2(1 + distance) + 0.1 * (place > 0)
        _weigh_message(source, pieces, message, place, subject, base=base)
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


def _beginnings(text: str) -> frozenset[str]:
    """Return the beginnings of the longer words of a text, by which two texts are about the same."""
    return frozenset(term[:_SHARED_START] for term in split_terms(text) if len(term) >= _SHARED_START)


def _weigh_message(
    source: str, pieces: Sequence[Piece], span: range, place: int, subject: Set[str], *, base: float
) -> None:
    """
    Weigh the sentences of a message by their place and by what they say; the one that takes up the subject
    opens the first message. Who wrote it stands with each; of what it quotes the paragraphs that it answers
    come after the answers.
    """
    writer = span.start if TURN_LINE.match(pieces[span.start].text) else None
    if writer is not None:
        pieces[writer].heads = tuple(head for head in pieces[writer].heads if head < writer)
    own = [i for i in span if i != writer and pieces[i].kind in ("sentence", "row", "code")]
    _mark_low(source, pieces, own)
    is_opened = False
    answers = 0
    number = 0
    for i in span:
        piece = pieces[i]
        piece.heads = [head for head in piece.heads if head in span or pieces[head].kind == "heading"]
        if writer is not None and i != writer:
            piece.heads = (*piece.heads, writer)
        if piece.kind not in ("sentence", "row", "code"):
            continue
        if piece.low == _QUOTED:
            answers += number > 0
            number = 0
        if piece.low or i == writer:
            piece.tier = 0
            piece.cost = base + 1.0
            continue
        is_short = len(piece.text.split()) <= _NAME_WORDS
        is_opening = place == 0 and not (is_opened or is_short) and answers == 0
        is_opening = is_opening and (not subject or not subject.isdisjoint(_beginnings(piece.text)))
        is_opened = is_opened or is_opening
        piece.tier = TITLE_TIER if is_opening else 0
        piece.cost = base + _SENTENCE * math.log2(1 + number)
        is_pasted = source[piece.start].isspace()
        piece.cost += 1.0 if is_pasted else find_emptiness(piece.text)
        if _DECIDED.search(piece.text):
            piece.cost = min(piece.cost, _DECIDED_COST)
            piece.tier = TITLE_TIER
        elif piece.text.rstrip().endswith("?") and place == 0:
            piece.cost -= 0.3
        number += not is_short
    for i, following in pairwise(own):
        if pieces[i].low == _QUOTED and not pieces[following].low:
            for at in own:
                if pieces[at].line == pieces[i].line:
                    pieces[at].low = ""
                    pieces[at].cost = pieces[following].cost + _ANSWERED


def _mark_low(source: str, pieces: Sequence[Piece], own: Sequence[int]) -> None:
    """Mark what a message quotes, greetings, signatures and headers of its parts."""
    is_over = False  # only a signature follows
    is_opening = True
    for place, i in enumerate(own):
        piece = pieces[i]
        text = piece.text.strip("*_ ")
        is_over = is_over or _SIGNATURE.match(text) is not None
        is_name = len(text.split()) <= _NAME_WORDS and not text.endswith((".", "!", "?", ":"))
        is_greeting = len(text) <= _GREETING_CHARS and _GREETING.search(text) is not None
        if is_over:
            piece.low = piece.low or "signature"
        elif is_opening and _HEADER.match(text):
            piece.low = piece.low or "header of a message"
        elif source.startswith(">", source.rfind("\n", 0, piece.start) + 1):
            piece.low = _QUOTED
        elif is_greeting and place > len(own) / 2 and not text.endswith((".", "!", "?")):
            piece.low = piece.low or "greeting"
            is_over = True
        elif (is_greeting and _GREETING.match(text)) or (
            is_name and ((is_opening and text.endswith(",")) or place == len(own) - 1)
        ):
            piece.low = piece.low or "greeting"
        is_opening = is_opening and bool(piece.low)
