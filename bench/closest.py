"""
The two closest lines alone: what the encoder gives for a question without panda around it.

Each line of the notes, and of what was told before, is encoded as "title. heading. line"; the two whose
vectors are closest to the question's are the answer. No set of questions may be answered worse than that.
"""

import re
from collections.abc import Mapping, Sequence
from pathlib import PurePath

import numpy as np

from panda.models.model_contract import Encoder

QUOTED = 2
"""Lines that are the answer."""
_HEADING = re.compile(r"#{1,6} +(.*)")
_MARK = re.compile(r"\s*(?:[-*+]|\d+[.)])\s+(?:\[[ xX]\]\s+)?")
_RULE = re.compile(r"[\s|:-]*")


class ClosestLines:
    """
    Answers with the closest lines.

    Args:
        encoder: Gives vectors of length 1.
        notes: Texts by path.
    """

    def __init__(self, encoder: Encoder, notes: Mapping[str, str]) -> None:
        self._encoder = encoder
        self._lines = [line for path, text in notes.items() for line in lines_of(path, text)]
        self._vectors = encoder.encode([shown for _, shown in self._lines])

    def tell(self, text: str) -> None:
        """From now on a message of the user is a line too."""
        self._lines.append((text, text))
        self._vectors = np.vstack([self._vectors, self._encoder.encode([text])])

    def answer(self, query: str) -> str:
        """The closest lines, the closest first."""
        closeness = self._vectors @ self._encoder.encode([query])[0]
        return "\n".join(self._lines[place][0] for place in np.argsort(-closeness)[:QUOTED])


def lines_of(path: str, text: str) -> Sequence[tuple[str, str]]:
    """
    The lines of a note, each as it stands and as it is encoded; a row of a table names its columns.

    >>> lines_of("house/keys.md", "# Keys\\n\\n- garage: 2 keys\\n\\n|Day|Gas|\\n|-|-|\\n|May|9|\\n")
    [('garage: 2 keys', 'keys. Keys. garage: 2 keys'), ('Day: May; Gas: 9', 'keys. Keys. Day: May; Gas: 9')]
    """
    title, heading, heads = PurePath(path).stem, "", []
    found = []
    for raw in text.split("\n"):
        if not _RULE.fullmatch(raw):
            if match := _HEADING.fullmatch(raw):
                heading, heads = match[1], []
                continue
            line = _MARK.sub("", raw, count=1).strip()
            if line.startswith("|"):
                cells = [cell.strip() for cell in line.strip("|").split("|")]
                if not heads:
                    heads = cells
                    continue
                line = "; ".join(f"{head}: {cell}" for head, cell in zip(heads, cells, strict=False) if cell)
            elif heads:
                heads = []
            found.append((line, ". ".join(filter(None, (title, heading, line)))))
        elif not raw.strip():
            heads = []
    return found
