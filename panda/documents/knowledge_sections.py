"""Knowledge documents in sections: what of a long document is loaded, cited and indexed alone. Pure."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from panda.documents.passages import Passage, split_passages
from panda.documents.sentences import one_line

LONG_CHARS = 6_000
"""A longer document is cited by section, and a longer section is cut into parts: about 1,500 tokens."""


@dataclass(frozen=True)
class KnowledgeSection:
    """What stands below one heading of a document, or a part of it."""

    anchor: str | None
    """Names it within the document, as "visa-rules" or "visa-rules-2"; None for a document that is short."""
    headings: tuple[str, ...]
    """Headings it stands under, outermost first."""
    passages: tuple[Passage, ...]
    """Its passages in order."""

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
        Sections in order; [] if there is no text. Those of a document over LONG_CHARS have anchors, each
        another.

    >>> [section.anchor for section in split_knowledge("# A\\nOne.\\n## B\\nTwo.")]
    [None, None]
    >>> long = "# Visa rules\\n" + "Bring a passport. " * 400 + "\\n# Money\\nOnce more."
    >>> [section.anchor for section in split_knowledge(long)]
    ['visa-rules', 'visa-rules-2', 'money']
    """
    is_long = len(body) > LONG_CHARS
    found: list[KnowledgeSection] = []
    taken: set[str] = set()
    for headings, group in groupby(split_passages(body), key=lambda passage: passage.headings):
        passages = list(group)
        for part in _parts(passages) if is_long else [passages]:
            anchor = _free(_slug(headings), taken) if is_long else None
            found.append(KnowledgeSection(anchor, headings, tuple(part)))
    return found


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
