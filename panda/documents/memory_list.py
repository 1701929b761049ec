"""The readable list between the `<!-- panda -->` markers of a memory file, changed line by line."""

import re
from collections.abc import Iterator

from panda.documents.memory_file import render_value
from panda.documents.sentences import one_line

_MARKER = re.compile(r"^<!--\s*/?panda\s*-->\s*$", re.MULTILINE)
_LINE = re.compile(r"^[ \t]*[-*][ \t]+(.+?):(?=[ \t]|\r?$)([^\r\n]*)", re.MULTILINE)
_TURN = re.compile(r"\s*\(turn \d+\)\s*$")


def listed_line(key: str, value: object, source_turn: int | None) -> str:
    """
    The line of the list that shows a value.

    >>> listed_line("owns_bike", True, 7), listed_line("pet", "cat", None)
    ('- owns bike: yes (turn 7)', '- pet: cat')
    """
    suffix = "" if source_turn is None else f" (turn {source_turn})"
    return f"- {shown_key(key)}: {_shown(value)}{suffix}"


def shown_key(key: str) -> str:
    """The key as the list writes it."""
    return one_line(key.replace("_", " "))


def _shown(value: object) -> str:
    return {True: "yes", False: "no"}[value] if isinstance(value, bool) else render_value(value)


def says_otherwise(line: str, value: object) -> bool:
    """
    Whether what stands behind the colon of a line is another value.

    >>> says_otherwise(" cat (turn 3)", "cat"), says_otherwise(" dog", "cat")
    (False, True)
    """
    said = line.strip()
    return said != _shown(value) and _TURN.sub("", said) != _shown(value)


def set_listed(body: str, key: str, line: str | None, newline: str) -> str:
    """
    The body of a memory file with the line of one key set.

    Args:
        body: All that follows the front matter; without markers it stays as it is.
        key: The key.
        line: Its line; None takes it away.
        newline: How lines end.

    >>> marked = "<!-- panda -->\\n- pet: cat\\n<!-- panda -->\\n"
    >>> set_listed(marked, "pet", "- pet: dog", "\\n")
    '<!-- panda -->\\n- pet: dog\\n<!-- panda -->\\n'
    >>> set_listed(marked, "pet", None, "\\n")
    '<!-- panda -->\\n<!-- panda -->\\n'
    """
    span = _span(body)
    if span is None:
        return body
    start, end = span
    for name, _, at, until in _lines(body, start, end):
        if name in (key, shown_key(key)):
            if line is not None:
                return body[:at] + line + body[until:]
            until = body.find("\n", until) + 1
            return body[:at] + body[until:]
    if line is None:
        return body
    lead = body[:end] if body[:end].endswith("\n") else body[:end] + newline
    return f"{lead}{line}{newline}{body[end:]}"


def listed(body: str) -> dict[str, str]:
    """
    What the list says, by key as shown.

    >>> listed("<!-- panda -->\\n- pet: cat (turn 3)\\n<!-- panda -->\\n")
    {'pet': ' cat (turn 3)'}
    """
    span = _span(body)
    return {name: said for name, said, _, _ in _lines(body, *span)} if span else {}


def _span(body: str) -> tuple[int, int] | None:
    markers = list(_MARKER.finditer(body))
    return (markers[0].end(), markers[1].start()) if len(markers) > 1 else None


def _lines(body: str, start: int, end: int) -> Iterator[tuple[str, str, int, int]]:
    """Name, text behind the colon, begin and end of each line."""
    for match in _LINE.finditer(body, start, end):
        yield match.group(1).strip("*` "), match.group(2), match.start(), match.end()
