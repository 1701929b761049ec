"""Passages: pieces of a node that can stand alone, and how close they are to a query. Pure."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from panda.language.words import split_terms
from panda.memory.budget import is_usable
from panda.memory.node import Node, line_text
from panda.messages.matching import common_words, is_latin
from panda.retrieval.operations import Operation, read_operations
from panda.retrieval.relevance import WORDS_WEIGHT, find_names, shares_by_rarity
from panda.store.records import Line

if TYPE_CHECKING:  # imports sqlite3
    from panda.models.kept_encoder import KeptEncoder
    from panda.models.model_contract import Vectors

    Words = Sequence[tuple[str, Vectors]]

MAX_CHARS = 400
"""Characters that the lines of a passage have together, unless one line alone is longer."""
_CLOSE_ITEM = 0.5
"""Closeness from which on an item of a list can be the answer by itself."""
_ITEM_BEHIND = 0.2
"""How far behind it other items of its list may be to be part of the answer."""
_MOST_READ = 40
"""So many of the closest passages are compared sentence by sentence."""


@dataclass(frozen=True)
class Passage:
    """Lines of one node that are understood together: a paragraph, a list, a row with its header, code."""

    lines: tuple[Line, ...]
    """In their order in the node; at least one."""

    @property
    def node_id(self) -> str:
        return self.lines[0].node

    @property
    def text(self) -> str:
        """Return the lines as a text, a line each."""
        return "\n".join(line.text for line in self.lines)

    @cached_property
    def encoded(self) -> str:
        """Return the text that an encoder gets: what the passage stands below, then its lines."""
        return line_text(self.lines[0].above, " ".join(line.text for line in self.lines))


class WordCoverage(NamedTuple):
    """How well the words of a query are covered by a text: each by its closest word there."""

    mean: float
    """Mean cosine of the telling words."""
    least: float
    """Cosine of the word that the text covers worst."""


@dataclass(frozen=True)
class RankedPassage:
    passage: Passage
    closeness: float
    """Mean cosine of the passage and of its best line, and three tenths of the share of words."""
    best: Line
    """The line that is closest to the query."""
    words: float
    """Share of the query's words that the passage and its headings hold, weighted by rarity, 0 to 1."""


def cut_passages(node: Node) -> list[Passage]:
    """
    Return the usable lines of a node as passages, in order; each line is in one passage.

    Lines that stand together without a blank line or a heading in between are one passage up to MAX_CHARS; a
    question stands with what follows it, a line that introduces a list with the list, an item with the item
    that it belongs to. A row of a table, and a line of a node that has no text of its own (a preference, a
    claim of research, a field of a page), is a passage by itself.
    """
    lines = [line for line in node.items if is_usable(line) and line.origin is None]
    return [Passage(tuple(part)) for block in _blocks(lines) for part in _parts(block)]


def _blocks(lines: Sequence[Line]) -> Iterator[list[Line]]:
    """Yield the lines block by block."""
    waiting: list[Line] = []
    for _, group in groupby(lines, key=_block_key):
        block = [*waiting, *group]
        waiting = []
        if len(block) == 1 and _goes_with_next(block[0]):
            waiting = block
        else:
            yield block
    if waiting:
        yield waiting


def _block_key(line: Line) -> tuple[object, ...]:
    if line.form == "row" or line.block is None:
        return (line.id,)
    return (line.block, line.heading if line.form != "item" else None, line.form == "code")


def _goes_with_next(line: Line) -> bool:
    """Return whether a line that stands alone is understood only with what follows it."""
    return line.form in ("sentence", "line") and (line.heads is not None or line.text.endswith(("?", ":")))


def _parts(together: Sequence[Line]) -> Iterator[list[Line]]:
    """Yield the lines in parts of at most MAX_CHARS; no part begins with a deeper item without its parent."""
    part: list[Line] = []
    chars = 0
    for line in together:
        if part and (chars + len(line.text) > MAX_CHARS or line.form == "row"):
            yield part
            part = _parents(part, line)
            chars = sum(len(parent.text) for parent in part)
        part.append(line)
        chars += len(line.text) + 1
    yield part


def _parents(preceding: Sequence[Line], deeper: Line) -> list[Line]:
    """Return the nearest item before a deeper one that it stands below, if there is one."""
    if deeper.form != "item" or not deeper.depth:
        return []
    above = [line for line in preceding if line.form == "item" and line.depth < deeper.depth]
    return above[-1:]


class PassageRanker:
    """Orders passages by how close they are to a query; *encoder* None goes by words alone."""

    def __init__(self, encoder: "KeptEncoder | None") -> None:
        self._encoder = encoder

    def reads(self, query: str) -> bool:
        """Return whether a query is compared by meaning, and not by its words alone."""
        return self._encoder is not None and is_latin(query)

    def read_operations(self, query: str) -> Mapping[Operation, float]:
        """Return how probable it is that a query wants each operation on rows; {} where words alone count."""
        return read_operations(query, self._encoder) if self.reads(query) else {}

    def closeness(self, query: str, texts: Sequence[str]) -> list[float]:
        """Return how close texts are to a query: cosines, or shares of words where words alone count."""
        shares = shares_by_rarity(query, texts)
        return self._cosines(query, texts, shares) if self.reads(query) else shares

    def centrality(self, texts: Sequence[str]) -> list[float]:
        """Return how close each text is to all of them together; 0 where words alone count."""
        if self._encoder is None or not texts or not is_latin(texts[0]):
            return [0.0] * len(texts)
        return [cosine or 0.0 for cosine in self._encoder.cosines_with_mean(texts)]

    def measure_coverage(self, query: str, passage: Passage) -> WordCoverage | None:
        """
        Return how well a passage covers the query's telling words; None where words alone count. A name or
        a number is covered by itself alone.
        """
        if self._encoder is None or not is_latin(query):
            return None
        return measure_coverage(query, passage.encoded, self._encoder.encode_words)

    def rank(self, query: str, passages: Sequence[Passage]) -> list[RankedPassage]:
        """
        Return the passages, closest first; of equals the earlier.

        A turn computes only so many vectors that are not kept: those of the passages that share most words
        with the query come first. A passage without a vector counts by its words.
        """
        if not passages:
            return []
        words = shares_by_rarity(query, [passage.encoded for passage in passages])
        cosines = self._cosines(query, [passage.encoded for passage in passages], words)
        rough = [cosine + WORDS_WEIGHT * share for cosine, share in zip(cosines, words, strict=True)]
        order = sorted(range(len(passages)), key=lambda at: -rough[at])
        nearest = [(passages[at], cosines[at], words[at]) for at in order[:_MOST_READ]]
        ranked = self._read_lines(query, nearest)
        ranked += [
            RankedPassage(passages[at], rough[at], passages[at].lines[0], words[at])
            for at in order[_MOST_READ:]
        ]
        return sorted(ranked, key=lambda near: -near.closeness)

    def _read_lines(
        self, query: str, passages: Sequence[tuple[Passage, float, float]]
    ) -> list[RankedPassage]:
        """Return passages with their best line, of those that were closest by their cosine and words."""
        lines = [line for passage, _, _ in passages for line in passage.lines]
        texts = [line_text(line.above, line.text) for line in lines]
        shares = shares_by_rarity(query, texts)
        cosines = self._cosines(query, texts, shares)
        near = {line.id: pair for line, *pair in zip(lines, cosines, shares, strict=True)}
        ranked = []
        for passage, cosine, words in passages:
            best = max(passage.lines, key=lambda line: near[line.id][0] + WORDS_WEIGHT * near[line.id][1])
            highest = max(near[line.id][0] for line in passage.lines)
            closeness = (cosine + highest) / 2 + WORDS_WEIGHT * words
            ranked.append(RankedPassage(passage, closeness, best, words))
        return ranked

    def _cosines(self, query: str, texts: Sequence[str], shares: Sequence[float]) -> list[float]:
        """Return the cosine of each text with the query; 0 for what has no vector."""
        if self._encoder is None or not is_latin(query):
            return [0.0] * len(texts)
        order = sorted(range(len(texts)), key=lambda at: -shares[at])
        cosines = self._encoder.cosines(query, [texts[at] for at in order])
        self._encoder.save([*cosines])
        return [cosines.get(text, 0.0) for text in texts]


def closest_items(passage: Passage) -> Sequence[Line]:
    """
    Return the lines of a passage without the items of a list that are far behind its closest one, if that is
    close. An item stands with those below it; other lines all stay.
    """
    listed = [line for line in passage.lines if line.list_id is not None]
    outermost = min((line.depth for line in listed), default=0)
    items: list[list[Line]] = []
    for line in listed:
        if line.depth == outermost or not items:
            items.append([])
        items[-1].append(line)
    closeness = [max(line.score or 0.0 for line in item) for item in items]
    if max(closeness, default=0.0) < _CLOSE_ITEM:
        return passage.lines
    least = max(closeness) - _ITEM_BEHIND
    far = [item for item, near in zip(items, closeness, strict=True) if near < least]
    far_ids = {line.id for item in far for line in item}
    return [line for line in passage.lines if line.id not in far_ids]


def measure_coverage(query: str, text: str, encode_words: "Callable[[str], Words]") -> WordCoverage:
    """Return how well a text covers a query's telling words, all of them if none is; 0 without words."""
    asked = encode_words(query)
    held = encode_words(text)
    common = common_words(query)
    telling = [pair for pair in asked if _is_telling(pair[0], common)] or asked
    if not telling or not held:
        return WordCoverage(0.0, 0.0)
    closest = nearest_cosines(telling, held)
    names = {term for name in find_names(query) for term in split_terms(name)}
    there = set(split_terms(text))
    for place, (word, _) in enumerate(telling):
        if _needs_itself(word, names) and not there.issuperset(split_terms(word)):
            closest[place] = 0.0
    return WordCoverage(round(sum(closest) / len(closest), 4), round(min(closest), 4))


def _needs_itself(word: str, name_terms: Collection[str]) -> bool:
    """Return whether no other word is as good: a number, or part of a name."""
    return any(map(str.isdigit, word)) or not set(split_terms(word)).isdisjoint(name_terms)


def _is_telling(word: str, common: Collection[str]) -> bool:
    if len(word) == 1 and not word.isdigit():  # "r" for "are"
        return False
    return any(map(str.isalnum, word)) and word.lower() not in common


def nearest_cosines(words: "Words", others: "Words") -> list[float]:
    """Return the cosine of each word with the closest of some others; both as encode_words gives them."""
    products = np.array([vector for _, vector in words]) @ np.array([vector for _, vector in others]).T
    return [float(cosine) for cosine in products.max(axis=1)]
