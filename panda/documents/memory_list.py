"""The readable list between the `<!-- panda -->` markers of a memory file, changed line by line."""

import re
from functools import cached_property

from panda.documents.memory_file import render_value
from panda.documents.sentences import one_line

_MARKER = re.compile(r"^<!--\s*/?panda\s*-->\s*$", re.MULTILINE)
_LINE = re.compile(r"^[ \t]*[-*][ \t]+(.+?):(?=[ \t]|\r?$)([^\r\n]*)", re.MULTILINE)
_TURN = re.compile(r"\s*\(turn \d+\)\s*$")


class MemoryList:
    r"""
    The body of a memory file with its list.

    Args:
        body: All that follows the front matter; without markers nothing is changed.
        newline: How lines end.

    >>> shown = MemoryList("<!-- panda -->\n- pet: cat\n<!-- panda -->\nNotes\n", "\n")
    >>> shown.set("pet", "dog", 7)
    >>> shown.set("owns_bike", True, None)
    >>> shown.body
    '<!-- panda -->\n- pet: dog (turn 7)\n- owns bike: yes\n<!-- panda -->\nNotes\n'
    >>> shown.remove("pet")
    >>> shown.body
    '<!-- panda -->\n- owns bike: yes\n<!-- panda -->\nNotes\n'
    """

    def __init__(self, body: str, newline: str) -> None:
        self._newline = newline
        markers = list(_MARKER.finditer(body))
        self._has_list = len(markers) > 1
        start, end = (markers[0].end(), markers[1].start()) if self._has_list else (0, 0)
        self._before, self._after = body[:start], body[end:]
        self._lines = body[start:end].splitlines(keepends=True)

    @property
    def body(self) -> str:
        """The body as it has become."""
        return self._before + "".join(self._lines) + self._after

    @cached_property
    def _places(self) -> dict[str, int]:
        found: dict[str, int] = {}
        for place, line in enumerate(self._lines):
            match = _LINE.match(line)
            if match:
                found.setdefault(match.group(1).strip("*` "), place)
        return found

    def _place(self, key: str) -> int | None:
        place = self._places.get(key)
        return self._places.get(_shown_key(key)) if place is None else place

    def set(self, key: str, value: object, source_turn: int | None) -> None:
        """Set the line of a key, or add one."""
        if not self._has_list:
            return
        suffix = "" if source_turn is None else f" (turn {source_turn})"
        line = f"- {_shown_key(key)}: {_shown(value)}{suffix}"
        place = self._place(key)
        if place is not None:
            self._lines[place] = line + _line_end(self._lines[place])
            return
        if next((one for one in reversed(self._lines) if one), self._before)[-1:] != "\n":
            self._lines.append(self._newline)
        self._places[_shown_key(key)] = len(self._lines)
        self._lines.append(line + self._newline)

    def remove(self, key: str) -> None:
        """Take the line of a key away, if there is one."""
        place = self._place(key)
        if place is not None:
            self._lines[place] = ""
            self._places.pop(key, self._places.pop(_shown_key(key), None))

    def says_otherwise(self, key: str, value: object) -> bool:
        """Whether there is a line of a key, and it shows another value."""
        place = self._place(key)
        match = None if place is None else _LINE.match(self._lines[place])
        if match is None:
            return False
        said = match.group(2).strip()
        return said != _shown(value) and _TURN.sub("", said) != _shown(value)


def _shown_key(key: str) -> str:
    return one_line(key.replace("_", " "))


def _shown(value: object) -> str:
    return {True: "yes", False: "no"}[value] if isinstance(value, bool) else render_value(value)


def _line_end(line: str) -> str:
    return line[len(line.rstrip("\r\n")) :]
