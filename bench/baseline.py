"""
Three passages without a fit: what panda's answers are compared with. Frozen; it does not follow the program.

A passage is a block of a note between blank lines with all headings above it: a table row with its header,
else at most 400 characters of whole lines, list items among them. It is as close to a
question as half its own cosine and half that of its best sentence, each encoded with title and headings, and
three tenths of the share of the question's words that it holds, weighted by rarity.
"""

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePath

import numpy as np

from panda.models.model_contract import Encoder

SHOWN = 3
"""Passages that are shown."""
WORDS_WEIGHT = 0.3
_MAX_CHARS = 400
_HEADING = re.compile(r"(#{1,6}) +(.*)")
_ITEM = re.compile(r"\A\s*(?:[-*+]|\d+[.)])\s+(?:\[[ xX]\]\s+)?")
_RULE = re.compile(r"\s*\|?[\s|:-]*-[\s|:-]*")
_FRONT_MATTER = re.compile(r"\A---\n(.*?\n)?---\n", re.DOTALL)
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+|\n")
_WORD = re.compile(r"\w+")
_ENDINGS = ("ies", "es", "ing", "ed", "s")


@dataclass(frozen=True)
class Block:
    text: str
    """As it is shown."""
    above: str
    """Title and headings."""

    @property
    def sentences(self) -> list[str]:
        return [part.strip() for part in _SENTENCE_END.split(self.text) if part.strip()]


class BaselinePassages:
    """
    Ranks the passages of notes.

    Args:
        encoder: Gives vectors of length 1.
        notes: Texts by path.
    """

    def __init__(self, encoder: Encoder, notes: Mapping[str, str]) -> None:
        self._encoder = encoder
        self._blocks = [block for path, text in notes.items() for block in split_blocks(path, text)]
        self._read()

    def tell(self, text: str) -> None:
        """From now on a message of the user is a passage too."""
        self._blocks.append(Block(text, ""))
        self._read()

    def closest(self, query: str) -> list[tuple[float, str]]:
        """Return how close the three closest passages are to a query, each with its text, closest first."""
        vector = self._encoder.encode([query])[0]
        own = self._vectors @ vector
        sentences = self._sentence_vectors @ vector
        asked = _terms(query)
        weights = {term: math.log((len(self._terms) + 1) / (self._holders(term) + 0.5)) for term in asked}
        whole = sum(weights.values()) or 1.0
        values = []
        for at, terms in enumerate(self._terms):
            best = max(sentences[self._of_block == at], default=own[at])
            words = sum(weights[term] for term in asked & terms) / whole
            values.append((float(best + own[at]) / 2 + WORDS_WEIGHT * words, self._blocks[at].text))
        return sorted(values, key=lambda pair: -pair[0])[:SHOWN]

    def _holders(self, term: str) -> int:
        return sum(term in terms for terms in self._terms)

    def _read(self) -> None:
        pairs = [(at, sentence) for at, block in enumerate(self._blocks) for sentence in block.sentences]
        self._terms = [_terms(f"{block.above} {block.text}") for block in self._blocks]
        self._vectors = self._encoder.encode([_encoded(block, block.text) for block in self._blocks])
        self._of_block = np.array([at for at, _ in pairs])
        self._sentence_vectors = self._encoder.encode(
            [_encoded(self._blocks[at], sentence) for at, sentence in pairs]
        )


def split_blocks(path: str, text: str) -> Iterator[Block]:
    """
    Yield the passages of a note in their order.

    >>> note = "# Keys\\n\\n- garage: 2\\n  in the hall\\n- attic: 1\\n\\n|Day|Gas|\\n|-|-|\\n|May|9|\\n"
    >>> [block.text for block in split_blocks("house/keys.md", note)]
    ['garage: 2 in the hall attic: 1', 'Day: May; Gas: 9']
    """
    title = PurePath(path).stem
    headings: list[tuple[int, str]] = []
    for part in re.split(r"\n[ \t]*\n", _FRONT_MATTER.sub("", text)):
        lines: list[str] = []
        above = ". ".join([title, *(heading for _, heading in headings)])
        for line in part.split("\n"):
            if match := _HEADING.fullmatch(line.strip()):
                yield from _blocks_of(lines, above)
                lines = []
                level = len(match[1])
                headings = [*(pair for pair in headings if pair[0] < level), (level, match[2].strip())]
                above = ". ".join([title, *(heading for _, heading in headings)])
            else:
                lines.append(line)
        yield from _blocks_of(lines, above)


def _blocks_of(lines: Sequence[str], above: str) -> Iterator[Block]:
    lines = [line for line in lines if line.strip()]
    if len(lines) > 1 and lines[0].lstrip().startswith("|") and _RULE.fullmatch(lines[1]):
        header, *rows = [[cell.strip() for cell in line.strip().strip("|").split("|")] for line in lines]
        for row in rows[1:]:
            cells = [f"{name}: {cell}" for name, cell in zip(header, row, strict=False) if cell]
            yield Block("; ".join(cells), above)
        return
    gathered: list[str] = []
    for line in lines:
        if gathered and len(" ".join([*gathered, line])) > _MAX_CHARS:
            yield Block(" ".join(gathered), above)
            gathered = []
        gathered.append(_ITEM.sub("", line, count=1).strip())
    if gathered:
        yield Block(" ".join(gathered), above)


def _encoded(block: Block, text: str) -> str:
    return f"{block.above}. {text}" if block.above else text


def _terms(text: str) -> set[str]:
    words = (word.lower() for word in _WORD.findall(text))
    return {_stem(word) for word in words}


def _stem(word: str) -> str:
    for ending in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) > 2:
            return word.removesuffix(ending)
    return word
