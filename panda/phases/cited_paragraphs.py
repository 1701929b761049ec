"""An answer in markdown, taken apart into paragraphs and the sources that each cites (S3 §16.3)."""

import re
from collections.abc import Iterator, Sequence

from panda.memory.gathered import GatheredItem

_MARK = re.compile(r"[ \t]?\[(\d{1,3}(?:[ ]*,[ ]*\d{1,3})*)\](?!\()")
_FENCE = re.compile(r"[ ]{0,3}(```|~~~)")


def cited_paragraphs(text: str, node_ids: Sequence[str]) -> list[GatheredItem]:
    """
    The paragraphs of a markdown answer, each with the nodes that its marks `[n]` name.

    Args:
        text: As the model wrote it.
        node_ids: The sources on offer; `[1]` is the first.

    Returns:
        One item a paragraph, list, table or code block, without the marks. One that marks no source on offer
        cites all of them, and so must be held by them; the check of the answer sees the rest.

    >>> found = cited_paragraphs("It costs $697 [1].\\n\\nIt is light.", ["visit:a", "turn:2"])
    >>> [(one.text, one.node_ids) for one in found]
    [('It costs $697.', ('visit:a',)), ('It is light.', ('visit:a', 'turn:2'))]
    """
    found = []
    for part in _paragraphs(text):
        marked = [int(n) for marks in _MARK.findall(part) for n in re.findall(r"\d+", marks)]
        cited = tuple(dict.fromkeys(node_ids[n - 1] for n in marked if 0 < n <= len(node_ids)))
        plain = _MARK.sub("", part).strip("\n").rstrip()
        if plain.strip() and node_ids:
            found.append(GatheredItem(plain, cited or tuple(node_ids)))
    return found


def _paragraphs(text: str) -> Iterator[str]:
    """What stands between blank lines; a code block is one piece."""
    lines: list[str] = []
    is_code = False
    for line in text.strip().splitlines():
        is_code = is_code != bool(_FENCE.match(line))
        if line.strip() or is_code:
            lines.append(line)
        elif lines:
            yield "\n".join(lines)
            lines = []
    if lines:
        yield "\n".join(lines)
