"""Texts as one line, and answers without their marks of sources."""

import re

_CITATION = re.compile(
    r"(?:(?<=[.!?,;:)\"”'])|[ \t]+)\[\d{1,3}(?:\s*,\s*\d{1,3})*\](?:[ \t]*\[\d{1,3}\])*(?=[\s.,;:!?)]|$)"
)
_SOURCES_HEADING = re.compile(
    r"^\s*(?:#{1,6}\s*)?[*_]*(?:sources?|source references|references)[*_]*:?[*_]*\s*$", re.I
)
_SOURCE_LINE = re.compile(r"^\s*(?:[-*]\s*)?\[\d{1,3}\]:?\s+\S")


def one_line(text: str) -> str:
    """
    The text with every run of white space made one space.

    >>> one_line("  a\\r\\n\\tb  ")
    'a b'
    """
    return " ".join(text.split())


def shorten(text: str, most_chars: int, mark: str = "…") -> str:
    """
    The text as one line, cut after a word where it is longer, with a mark that counts too.

    >>> shorten("what does\\n it cost?", 13), shorten("what does it cost?", 18), shorten("x" * 30, 5)
    ('what does it…', 'what does it cost?', 'xxxx…')
    """
    line = one_line(text)
    if len(line) <= most_chars:
        return line
    head = line[: most_chars - len(mark)]
    words = head.rpartition(" ")[0] if line[len(head) : len(head) + 1].strip() else head
    return (words or head).rstrip() + mark


def strip_citations(text: str) -> str:
    """
    An answer without its marks like [1] and without its list of sources.

    Args:
        text: An answer as rendered: sentences with marks, a list of sources at the end or none.

    Returns:
        The text with marks and source lists taken out, everything else as it was.

    >>> strip_citations("It costs $697.00 [1][2].\\n\\nSources:\\n- [1] turn:811\\n- [2] visit:a\\n")
    'It costs $697.00.\\n'
    >>> strip_citations("Sources:\\n- my aunt\\n- the library\\n")
    'Sources:\\n- my aunt\\n- the library\\n'
    >>> strip_citations("Use items[1] here.")
    'Use items[1] here.'
    """
    kept: list[str] = []
    heading: list[str] = []  # with the blank lines below it: only above a list of sources it is theirs
    in_sources = False
    for line in text.split("\n"):
        if _SOURCE_LINE.match(line):
            heading, in_sources = [], True
        elif _SOURCES_HEADING.match(line):
            kept += heading
            heading, in_sources = [line], False
        elif not line.strip() and (heading or in_sources):
            heading += [line] if heading else []
        else:
            kept += [*heading, _CITATION.sub("", line)]
            heading, in_sources = [], False
    kept += heading
    stripped = "\n".join(kept).rstrip("\n")
    return stripped + "\n" if text.endswith("\n") and stripped else stripped
