"""Settings (YAML, TOML, INI) into pieces: a line each, below the keys and sections that it stands in."""

import math
from collections import Counter
from collections.abc import Sequence

from panda.compression.pieces import TITLE_TIER, Piece, TextOutline, chunk_spans, prose_spans
from panda.language.patterns import lazy_pattern

_COMMENT = lazy_pattern(r"\s*[#;]")
_SECTION = lazy_pattern(r"\[.*\]\s*(?:#.*)?$")
_ITEM = lazy_pattern(r"\s*-\s")
_NAMES = lazy_pattern(r"\s*-?\s*\"?(?:name|title|description|version|id)\"?\s*[:=]")
_OPENS = lazy_pattern(r".*(?::|[|>][-+]?|[\[({])\s*(?:#.*)?$")
_LEVEL = 0.35
_PLACE = 0.15
_SECTION_PLACE = 0.25
_ITEM_PLACE = 0.3
_COMMENT_COST = 0.2
_TEXT_COST = 0.1
_SENTENCE = 0.3
_AGAIN = 0.3
"""What a line costs more for each doubling of the lines that said the same before."""
_TEXT_OPENS = lazy_pattern(r":\s+[|>][-+]?\s*$")


def parse_indented(source: str) -> TextOutline:
    r"""
    The pieces of a file of settings; each line has the lines as heads that it is indented below.

    >>> parse_indented("a:\n  b: 1\n  c: 2\nd: all the others\n").render({1})
    'a:\n  b: 1\n[… 2 lines]\n'
    """
    return TextOutline(source, tuple(_read(source)))


def _read(source: str) -> Sequence[Piece]:
    pieces: list[Piece] = []
    above: list[tuple[int, int]] = []  # indentation and piece of the lines that the next one may stand below
    section: list[int] = []
    places: dict[tuple[int, ...], int] = {}
    comments: list[Piece] = []
    section_place = 0
    below: dict[int, list[int]] = {}  # what stands directly below a line
    seen: Counter[str] = Counter()
    blocks = 0  # of comments
    text_end = 0  # of a value of several lines
    start = 0
    for number, text in enumerate(source.split("\n")):
        begin, start = start, start + len(text) + 1
        if begin < text_end or not text.strip():
            comments = []
            continue
        indentation = len(text) - len(text.lstrip())
        if _COMMENT.match(text):
            at = Piece(begin, begin + len(text.rstrip()), "code", text, line=number, unit=number, noun="line")
            blocks += not comments
            at.cost = _LEVEL * len(above) + _COMMENT_COST + _PLACE * math.log2(blocks * (1 + len(comments)))
            if not pieces:
                at.tier = TITLE_TIER
            at.heads = tuple(section)
            pieces.append(at)
            comments.append(at)
            continue
        if _SECTION.match(text):
            above = []
            section = [len(pieces)]
            section_place += 1
        else:
            is_item = _ITEM.match(text) is not None
            while above and above[-1][0] >= indentation + (is_item and above[-1][0] == indentation):
                if above[-1][0] == indentation and is_item and not _ITEM.match(pieces[above[-1][1]].text):
                    break  # a list may stand at the indentation of its key
                above.pop()
        is_section = bool(section) and section[0] == len(pieces)
        heads = () if is_section else (*section, *(at for _, at in above))
        place = places.get(heads, 0)
        places[heads] = place + 1
        each = _ITEM_PLACE if _ITEM.match(text) else _PLACE
        cost = (
            _LEVEL * len(heads)
            + each * math.log2(1 + place)
            + _SECTION_PLACE * math.log2(1 + section_place) * bool(section)
        )
        if _NAMES.match(text):
            cost = max(0.0, cost - 0.5)
        cost += _AGAIN * math.log2(1 + seen[text.strip()])
        seen[text.strip()] += 1
        if heads and not is_section and _OPENS.match(pieces[heads[-1]].text):
            below.setdefault(heads[-1], []).append(len(pieces))
        for n, comment in enumerate(comments):
            comment.heads = (*comment.heads, len(pieces))
            comment.cost = cost + _COMMENT_COST + _PLACE * math.log2(1 + n)
        comments = []
        above.append((indentation, len(pieces)))
        for left, right in chunk_spans(source, begin, begin + len(text.rstrip())):
            piece = Piece(left, right, "code", source[left:right], line=number, unit=number, noun="line")
            piece.cost = cost
            piece.heads = heads
            piece.low = "" if any(map(str.isalnum, piece.text)) else "no words"
            pieces.append(piece)
        if _TEXT_OPENS.search(text) and not is_section:
            text_end = start + _text_length(source[start:], indentation)
            stop = start + len(source[start:text_end].rstrip())
            head = len(pieces) - 1
            for place, sentence in enumerate(prose_spans(source, start, stop) if start < stop else ()):
                for left, right in sentence:
                    piece = Piece(left, right, "sentence", source[left:right], line=number, unit=len(pieces))
                    piece.noun = "line"
                    piece.cost = cost + _TEXT_COST + _SENTENCE * math.log2(1 + place)
                    piece.heads = (*heads, head)
                    pieces.append(piece)
            if start < stop:
                below[head] = [head + 1]
    for head, children in below.items():  # what opens a block says nothing alone
        best = min(children, key=lambda child: pieces[child].cost)
        pieces[head].heads = (*pieces[head].heads, best)
    return pieces


def _text_length(yaml: str, indentation: int) -> int:
    """Return how much of a text stands deeper than a key, blank lines with it."""
    length = 0
    for line in yaml.split("\n"):
        if line.strip() and len(line) - len(line.lstrip()) <= indentation:
            break
        length += len(line) + 1
    return min(length, len(yaml))
