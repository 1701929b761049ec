"""Links between the notes of a vault, as [[Note]], [[folder/Note#Heading|shown]] or ![[Note]]. Pure."""

import re

_LINK = re.compile(
    r"(?<![\w\])])!?\[\[(?P<note>[^\[\]|#^\n]*)(?:[#^](?P<part>[^\[\]|\n]*))?(?:\|(?P<shown>[^\[\]\n]*))?\]\]"
)


def find_wikilinks(text: str) -> list[str]:
    """
    The notes that a text links to, each once, in order.

    Args:
        text: Markdown.

    Returns:
        Names or paths as written, without headings; links within the note itself are left out.

    >>> find_wikilinks("See [[Trips/Bergen#Hotels|the hotels]], [[Money]] and [[#Below]]; again [[Money]].")
    ['Trips/Bergen', 'Money']
    """
    names = (match["note"].strip().removesuffix("\\") for match in _LINK.finditer(text))
    return list(dict.fromkeys(name for name in names if name))


def spell_out_wikilinks(text: str) -> str:
    """
    A text with its links as a reader sees them.

    >>> spell_out_wikilinks("Ask [[People/Nora|Nora]] about [[Money#Rent]].")
    'Ask Nora about Money: Rent.'
    >>> spell_out_wikilinks("No [link], no a[[0]]")
    'No [link], no a[[0]]'
    """
    return _LINK.sub(_shown, text)


def is_only_wikilinks(text: str) -> bool:
    """
    Whether a text says nothing beside its links.

    >>> is_only_wikilinks("[[Money]], [[Trips]]."), is_only_wikilinks("See [[Money]]"), is_only_wikilinks("")
    (True, False, False)
    """
    rest, links = _LINK.subn("", text)
    return links > 0 and not any(char.isalnum() for char in rest)


def _shown(match: re.Match[str]) -> str:
    note = match["note"].removesuffix("\\").strip()
    return (match["shown"] or "").strip() or ": ".join(filter(None, [note, (match["part"] or "").strip()]))
