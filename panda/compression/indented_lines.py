"""Settings (YAML, TOML, INI) into pieces: a line each, below the keys and sections that it stands in."""

import math
import re
from collections import Counter
from collections.abc import Sequence

from panda.compression.pieces import TITLE_TIER, Piece, TextOutline, chunk_spans, prose_spans
from panda.language.patterns import lazy_pattern
from panda.language.words import phrases

_COMMENT = lazy_pattern(r"\s*[#;]")
_SECTION = lazy_pattern(r"\[.*\]\s*(?:#.*)?$")
_ITEM = lazy_pattern(r"\s*-\s")
_NAMES = lazy_pattern(
    r"\s*-?\s*\"?(?:name|title|description|version|id|run|command|cmd|script|image|entrypoint|exec\w*)\"?\s*[:=]",
    re.IGNORECASE,
)
"""Keys whose values say what something is called, or what is run."""
_OPENS = lazy_pattern(r".*(?::|[|>][-+]?|[\[({])\s*(?:#.*)?$|\[.*\]\s*(?:#.*)?$")
_TEXT_OPENS = lazy_pattern(r":\s+[|>][-+]?\s*$")
_ADDRESS_ALONE = lazy_pattern(r"\s*[#;]+\s*https?://\S+\s*$")
_NOTICES = phrases("page_text.txt", "notices")
_LEVEL = 0.35
_OUTER = 0.3
"""Part of what the line costs more that it stands below."""
_GROUP = 0.15
"""What a key costs more for each doubling of the groups of keys before it, which blank lines part."""
_PLACE = 0.15
_SECTION_PLACE = 0.25
_ITEM_PLACE = 0.3
_COMMENT_COST = 1.4
_COMMENT_LINE = 0.35
_TEXT_COST = 0.1
_SENTENCE = 0.3
_AGAIN = 0.3
"""What a line costs more for each doubling of the lines that said the same before."""
_NAME = 0.5
"""What the name of an entry costs less, and what it runs."""


def parse_indented(source: str) -> TextOutline:
    r"""
    Return the pieces of a file of settings; each line has the lines as heads that it is indented below.

    >>> parse_indented("a:\n  b: 1\n  c: 2\nd: all the others\n").render({1})
    'a:\n  b: 1\n[… 2 lines]\n'
    """
    return TextOutline(source, tuple(_SettingsReader(source).read()))


class _SettingsReader:
    def __init__(self, source: str) -> None:
        self.source = source
        self.pieces: list[Piece] = []
        self.above: list[tuple[int, int]] = []  # indentation and piece of lines that the next may stand below
        self.section: list[int] = []
        self.section_place = 0
        self.places: Counter[tuple[int, ...]] = Counter()  # lines below the same heads
        self.groups: Counter[tuple[int, ...]] = Counter()  # groups of such lines
        self.comments: list[Piece] = []  # that stand directly above
        self.comment_blocks = 0
        self.seen: Counter[str] = Counter()
        self.children: dict[int, list[int]] = {}  # what stands directly below a line that opens something

    def read(self) -> list[Piece]:
        start = 0
        text_end = 0  # of a value of several lines
        for number, text in enumerate(self.source.split("\n")):
            begin = start
            start += len(text) + 1
            if begin < text_end:
                continue
            if not text.strip():
                self.comments = []
                self.groups[tuple(self.section)] += 1
                self.places[tuple(self.section)] = 0
            elif _COMMENT.match(text):
                self._add_comment(begin, text, number)
            else:
                cost = self._add_line(begin, text, number)
                if _TEXT_OPENS.search(text):
                    text_end = self._add_text(start, text, number, cost)
        for head, below in self.children.items():  # what opens a block says nothing alone
            best = min(below, key=lambda child: self.pieces[child].cost)
            self.pieces[head].heads = (*self.pieces[head].heads, best)
        return self.pieces

    def _add(self, start: int, end: int, number: int, cost: float, heads: Sequence[int]) -> Piece:
        text = self.source[start:end]
        piece = Piece(start, end, "code", text, line=number, unit=number, noun="line", heads=heads, cost=cost)
        if not any(map(str.isalnum, text)) or _ADDRESS_ALONE.match(text):
            piece.low = "no words"
        self.pieces.append(piece)
        return piece

    def _add_comment(self, begin: int, text: str, number: int) -> None:
        """Add a line of a comment, which costs more than the key below it."""
        if not any(map(str.isalnum, text)):
            self.comments = []  # parts paragraphs of a comment
        self.comment_blocks += not self.comments
        cost = _LEVEL * len(self.above) + _COMMENT_COST + _PLACE * math.log2(self.comment_blocks)
        cost += _COMMENT_LINE * math.log2(1 + len(self.comments))
        piece = self._add(begin, begin + len(text.rstrip()), number, cost, tuple(self.section))
        if len(self.pieces) == 1 and not _NOTICES.search(text):
            piece.tier = TITLE_TIER
        self.comments.append(piece)

    def _add_line(self, begin: int, text: str, number: int) -> float:
        """Add a line with a key, an item or a section; returns its cost."""
        at = len(self.pieces)
        if _SECTION.match(text):
            self.above = []
            self.section = [at]
            self.section_place += 1
            heads: tuple[int, ...] = ()
        else:
            self._leave(text)
            heads = (*self.section, *(outer for _, outer in self.above))
        place = self.places[heads]
        self.places[heads] += 1
        outer_cost = self.pieces[heads[-1]].cost - _LEVEL * (len(heads) - 1) if heads else 0.0
        cost = (
            _LEVEL * len(heads) + _OUTER * max(0.0, outer_cost) + _GROUP * math.log2(1 + self.groups[heads])
        )
        cost += (_ITEM_PLACE if _ITEM.match(text) else _PLACE) * math.log2(1 + place)
        if self.section:
            cost += _SECTION_PLACE * math.log2(1 + self.section_place)
        if _NAMES.match(text):
            cost = max(0.0, cost - _NAME)
        cost += _AGAIN * math.log2(1 + self.seen[text.strip()])
        self.seen[text.strip()] += 1
        if heads and _OPENS.match(self.pieces[heads[-1]].text):
            self.children.setdefault(heads[-1], []).append(at)
        for line, comment in enumerate(self.comments):
            comment.heads = (*comment.heads, at)
            comment.cost = cost + _COMMENT_COST + _COMMENT_LINE * math.log2(1 + line)
        self.comments = []
        self.above.append((len(text) - len(text.lstrip()), at))
        for left, right in chunk_spans(self.source, begin, begin + len(text.rstrip())):
            self._add(left, right, number, cost, heads)
        return cost

    def _leave(self, text: str) -> None:
        """Leave the lines that a line does not stand below; a list may stand as far left as its key."""
        indentation = len(text) - len(text.lstrip())
        is_item = _ITEM.match(text) is not None
        while self.above and self.above[-1][0] >= indentation:
            depth, outer = self.above[-1]
            if depth == indentation and is_item and not _ITEM.match(self.pieces[outer].text):
                return
            self.above.pop()

    def _add_text(self, start: int, key_line: str, number: int, cost: float) -> int:
        """Add the sentences of a value of several lines; returns where it ends."""
        indentation = len(key_line) - len(key_line.lstrip())
        text_end = start
        for line in self.source[start:].split("\n"):
            if line.strip() and len(line) - len(line.lstrip()) <= indentation:
                break
            text_end += len(line) + 1
        text_end = min(text_end, len(self.source))
        stop = start + len(self.source[start:text_end].rstrip())
        if start >= stop:
            return text_end
        head = len(self.pieces) - 1
        self.children[head] = [head + 1]
        for place, sentence in enumerate(prose_spans(self.source, start, stop)):
            own = cost + _TEXT_COST + _SENTENCE * math.log2(1 + place)
            unit = len(self.pieces)
            for left, right in sentence:
                piece = self._add(left, right, number, own, (*self.pieces[head].heads, head))
                piece.kind = "sentence"
                piece.unit = unit
        return text_end
