"""Knowledge documents in sections: what of a long document is loaded, cited and indexed alone. Pure."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from panda.documents.passages import Passage, split_passages
from panda.documents.sentences import one_line

LONG_CHARS = 6_000
"""A longer document is found by section, and a longer section is cut into parts: about 1,500 tokens."""


@dataclass(frozen=True)
class KnowledgeSection:
    """What stands below one heading of a document, or a part of it."""

    anchor: str
    """Names it within the document, as "visa-rules"; "visa-rules-2" below the second heading of that name,
    "visa-rules~2" for the second part of a long section. No length changes the name of another section."""
    headings: tuple[str, ...]
    """Headings it stands under, outermost first."""
    passages: tuple[Passage, ...]
    """Its passages in order."""
    former: str
    """What turns of before called it: parts and headings of one name were counted together."""

    @property
    def text(self) -> str:
        """Its passages, a line each."""
        return "\n".join(passage.text for passage in self.passages)


def split_knowledge(body: str) -> list[KnowledgeSection]:
    """
    The sections of a document.

    Args:
        body: A document without its front matter.

    Returns:
        Sections in order, each with another anchor; [] if there is no text.

    >>> [section.anchor for section in split_knowledge("# A\\nOne.\\n## B\\nTwo.\\n# A\\nThree.")]
    ['a', 'b', 'a-2']
    >>> long = "# A\\n" + "Bring a passport. " * 400 + "\\n# B\\nOnce more.\\n# A\\nThree."
    >>> [(section.anchor, section.former) for section in split_knowledge(long)]
    [('a', 'a'), ('a~2', 'a-2'), ('b', 'b'), ('a-2', 'a-3')]
    """
    found: list[KnowledgeSection] = []
    taken: set[str] = set()
    taken_before: set[str] = set()
    for headings, group in groupby(split_passages(body), key=lambda passage: passage.headings):
        anchor = _free(_slug(headings), taken)
        for n, part in enumerate(_parts(list(group)), 1):
            former = _free(_slug(headings), taken_before)
            name = anchor if n == 1 else f"{anchor}~{n}"
            found.append(KnowledgeSection(name, headings, tuple(part), former))
    return found


def section_named(sections: Sequence[KnowledgeSection], anchor: str) -> KnowledgeSection | None:
    """The section of an anchor, of today or of before; None if there is none."""
    by_name = {one.former: one for one in sections} | {one.anchor: one for one in sections}
    return by_name.get(anchor)


def _parts(passages: Sequence[Passage]) -> Iterator[list[Passage]]:
    """Passages in runs of at most LONG_CHARS."""
    part: list[Passage] = []
    size = 0
    for passage in passages:
        if part and size + len(passage.text) > LONG_CHARS:
            yield part
            part, size = [], 0
        part.append(passage)
        size += len(passage.text)
    yield part


def _slug(headings: Sequence[str]) -> str:
    """As web pages name headings: lower-case words with hyphens."""
    words = re.findall(r"\w+", one_line(headings[-1]).lower()) if headings else []
    return "-".join(words) or "text"


def _free(anchor: str, taken: set[str]) -> str:
    number, name = 1, anchor
    while name in taken:
        number += 1
        name = f"{anchor}-{number}"
    taken.add(name)
    return name
