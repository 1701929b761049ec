"""preferences.md and facts.md: their values read, single entries changed while every other byte stays."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from panda.documents.text import one_line
from panda.documents.times import parse_time, render_time
from panda.documents.yaml_text import (
    YamlEntry,
    YamlNode,
    YamlTextError,
    as_read,
    read_number,
    read_yaml,
    render_scalar,
    render_yaml_value,
    split_front_matter,
)
from panda.errors import DocumentError

_FIELDS = ("value", "confidence", "source_turn", "updated_at")
_STATEMENT = re.compile(r"said_t\d+_\d+")


@dataclass(frozen=True)
class MemoryEntry:
    """One key of a memory file."""

    key: str  # the key as typed
    value: object  # str, bool, int, float, None, list or mapping
    confidence: float | None  # as written; None if it is not
    source_turn: int | None  # turn in which it was said; None if unknown
    updated_at: datetime | None  # when it was last changed; None if unknown
    is_bare: bool  # whether it is `key: value`, as typed by hand
    line: int  # line of the file, from 1

    @property
    def text(self) -> str:
        """The value on one line."""
        return render_value(self.value)


def statement_key(turn: int, n: int) -> str:
    """The key of what the user said word for word, and nothing else is known of."""
    return f"said_t{turn}_{n}"


def is_statement(relation: str) -> bool:
    """Whether a key is one of statement_key."""
    return _STATEMENT.fullmatch(relation) is not None


def render_value(value: object) -> str:
    """
    A memory value on one line, as a reader would write it.

    >>> render_value(["Lenovo", True, None]), render_value({"min": 500, "max": 800})
    ('Lenovo, true, none', 'min 500, max 800')
    """
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list | tuple):
        return ", ".join(render_value(item) for item in value)
    if isinstance(value, Mapping):
        return ", ".join(f"{one_line(str(key))} {render_value(item)}" for key, item in value.items())
    return one_line(str(value))


def parse_memory_file(text: str, *, where: str) -> tuple[MemoryEntry, ...]:
    """
    The entries of a memory file, in its order.

    Raises:
        DocumentError: Broken front matter, or a field of an entry with an impossible value.

    >>> text = "---\\nbudget: {value: $900, confidence: 0.9}\\ncity: Salem\\n---\\n"
    >>> entries = parse_memory_file(text, where="preferences.md")
    >>> [(entry.key, entry.text, entry.confidence, entry.is_bare, entry.line) for entry in entries]
    [('budget', '$900', 0.9, False, 2), ('city', 'Salem', None, True, 3)]
    """
    found = {entry.key: entry for entry in split_front_matter(text, where=where).entries}
    return tuple(_parse_entry(entry, where) for entry in found.values())


def find_entry(text: str, key: str, *, where: str) -> MemoryEntry | None:
    """One entry of a memory file; None without that key. Raises as parse_memory_file, of this entry alone."""
    entries = split_front_matter(text, where=where).entries
    return next((_parse_entry(entry, where) for entry in reversed(entries) if entry.key == key), None)


def _parse_entry(entry: YamlEntry, where: str) -> MemoryEntry:
    key, raw, line = entry.key, entry.value, entry.line
    if not (isinstance(raw, dict) and "value" in raw and set(raw) <= set(_FIELDS)):
        return MemoryEntry(key, raw, None, None, None, is_bare=True, line=line)
    confidence, turn, updated = raw.get("confidence"), raw.get("source_turn"), raw.get("updated_at")
    number = read_number(confidence)
    wrong, at = None, None
    if confidence is not None and (number is None or not 0 <= number <= 1):
        wrong = f"confidence {confidence!r} is no number from 0 to 1"
    elif turn is not None and (isinstance(turn, bool) or not isinstance(turn, int)):
        wrong = f"source_turn {turn!r} is no turn number"
    try:
        at = None if updated is None else parse_time(str(updated))
    except ValueError:
        wrong = wrong or f"updated_at {updated!r} is no date"
    if wrong:
        raise DocumentError(f"{key}: {wrong}", where, line=line)
    return MemoryEntry(key, raw["value"], number, turn, at, is_bare=False, line=line)


_MARKER = re.compile(r"^<!--\s*/?panda\s*-->\s*$", re.MULTILINE)
_LINE = re.compile(r"^[ \t]*[-*][ \t]+(.+?):(?=[ \t]|\r?$)([^\r\n]*)", re.MULTILINE)
_TURN = re.compile(r"\s*\(turn \d+\)\s*$")


def written_below(text: str, *, where: str) -> str:
    """What a memory file says besides its front matter and its list, as its owner wrote it."""
    parts = _MARKER.split(split_front_matter(text, where=where).body, maxsplit=2)
    return "\n".join([parts[0], *parts[2:]])


class MemoryList:
    r"""
    The body of a memory file, in which a list between two markers shows the values; without markers nothing
    is changed.

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
        self._places: dict[str, int] = {}
        for place, line in enumerate(self._lines):
            if match := _LINE.match(line):
                self._places.setdefault(match[1].strip("*` "), place)

    @property
    def body(self) -> str:
        """The body as it has become."""
        return self._before + "".join(self._lines) + self._after

    def set(self, key: str, value: object, source_turn: int | None) -> None:
        """Set the line of a key, or add one."""
        if not self._has_list:
            return
        suffix = "" if source_turn is None else f" (turn {source_turn})"
        line = f"- {_shown_key(key)}: {_shown(value)}{suffix}"
        place = self._place(key)
        if place is not None:
            former = self._lines[place]
            self._lines[place] = line + former[len(former.rstrip("\r\n")) :]
            return
        if not next((line for line in reversed(self._lines) if line), self._before).endswith("\n"):
            self._lines.append(self._newline)
        self._places[_shown_key(key)] = len(self._lines)
        self._lines.append(line + self._newline)

    def remove(self, key: str) -> None:
        """Take the line of a key away, if there is one."""
        place = self._place(key)
        if place is not None:
            self._lines[place] = ""
            self._places = {name: at for name, at in self._places.items() if at != place}

    def says_otherwise(self, key: str, value: object) -> bool:
        """Whether there is a line of a key, and it shows another value."""
        place = self._place(key)
        match = None if place is None else _LINE.match(self._lines[place])
        return match is not None and _shown(value) not in (match[2].strip(), _TURN.sub("", match[2].strip()))

    def _place(self, key: str) -> int | None:
        return self._places.get(key, self._places.get(_shown_key(key)))


def _shown_key(key: str) -> str:
    return one_line(key.replace("_", " "))


def _shown(value: object) -> str:
    return {True: "yes", False: "no"}[value] if isinstance(value, bool) else render_value(value)


class MemoryText:
    r"""
    The text of a memory file, to be changed entry by entry.

    Args:
        text: The whole file; "" makes one.
        title: Heading of a file that is made.
        where: File name for errors.

    Raises:
        DocumentError: The front matter is broken.

    >>> at = datetime.fromisoformat("2026-01-04T10:00:00+00:00")
    >>> file = MemoryText("", title="Preferences", where="preferences.md")
    >>> file.set("pet", "cat", confidence=0.95, source_turn=3, updated_at=at)
    >>> print(file.text)
    ---
    pet: {value: "cat", confidence: 0.95, source_turn: 3, updated_at: "2026-01-04T10:00:00Z"}
    ---
    <BLANKLINE>
    # Preferences
    <BLANKLINE>
    <!-- panda -->
    - pet: cat (turn 3)
    <!-- panda -->
    <BLANKLINE>
    >>> file = MemoryText("---\na: 1\nb: 2  # two\n# c\n---\n", title="Facts", where="facts.md")
    >>> file.remove("b")
    >>> file.text
    '---\na: 1\n# c\n---\n'
    """

    def __init__(self, text: str, *, title: str, where: str) -> None:
        self._where = where
        if not text.strip("\ufeff \t\r\n"):
            text = f"---\n---\n\n# {title}\n\n<!-- panda -->\n<!-- panda -->\n"
        self._newline = "\r\n" if "\r\n" in text.split("\n", 1)[0] + "\n" else "\n"
        front = split_front_matter(text, where=where)
        if not front.before:
            mark = text[: len(text) - len(text.removeprefix("\ufeff"))]
            front = replace(front, before=mark, body=text.removeprefix("\ufeff"))
        self._front = front
        self._list = MemoryList(front.body, self._newline)
        self._changes: dict[str, Mapping[str, object] | None] = {}  # fields by key; None takes the key away

    def set(
        self, key: str, value: object, *, confidence: float, source_turn: int | None, updated_at: datetime
    ) -> None:
        """
        Set one key: its entry, and its line between the `<!-- panda -->` markers. Of an entry that is there
        only the changed values differ: spacing, order and comments stay.

        Args:
            value: str, bool, int, float, None, or a list of these.
            confidence: 0 to 1.
            source_turn: Turn in which it was said; None if none.
            updated_at: When it was said.
        """
        values = value, confidence, source_turn, render_time(updated_at)
        self._changes[key] = dict(zip(_FIELDS, values, strict=True))
        self._list.set(key, value, source_turn)

    def remove(self, key: str) -> None:
        """Take one key away: its lines in the front matter and in the list."""
        self._changes[key] = None
        self._list.remove(key)

    def relist(self, key: str, value: object, source_turn: int | None) -> None:
        """Bring the line of a key in the list up to date, if it has one and that says something else."""
        if self._list.says_otherwise(key, value):
            self._list.set(key, value, source_turn)

    @property
    def text(self) -> str:
        """
        The file as it has become.

        Raises:
            DocumentError: An entry is written so that it cannot be changed or taken away alone.
        """
        front, added = self._front, ""
        cuts: list[tuple[int, int, str]] = []
        for key, fields in self._changes.items():
            own = [pair for pair in front.pairs if pair[0].value == key]
            if fields is None:
                ends = [front.source.find("\n", max(name.end, node.end)) for name, node in own]
                starts = (name.start for name, _ in own)
                cuts += [(at, end + 1 or len(front.source), "") for at, end in zip(starts, ends, strict=True)]
            elif own:
                cuts += _edits(front.source, *own[-1], fields, self._newline)
            else:
                added += f"{render_yaml_value(key)}: {_render_fields(fields)}{self._newline}"
        source = front.source
        for start, end, text in sorted(cuts, reverse=True):
            source = source[:start] + text + source[end:]
        if added and source and not source.endswith("\n"):
            source += self._newline
        self._check(source + added)
        before, between = front.before, front.between
        if added and not between:
            before, between = f"{before}---{self._newline}", f"---{self._newline}"
        return before + source + added + between + self._list.body

    def _check(self, source: str) -> None:
        """Checks that a front matter says what it must."""
        former, found = self._front.values, dict[str, Any]()
        try:
            node = read_yaml(source, as_typed=True)
            found = node.value if node and isinstance(node.value, dict) else {}
        except YamlTextError:
            found = dict.fromkeys(self._changes, self)  # nothing says what it must
        for key in {**self._changes, **former}:
            fields, entry = self._changes.get(key), found.get(key)
            if key not in self._changes:
                is_right = key in found and repr(entry) == repr(former[key])
            elif fields is None:
                is_right = key not in found
            else:
                is_right = isinstance(entry, dict) and entry.get("value") == as_read(fields["value"])
            if not is_right:
                message = f"{key} cannot be changed without changing more"
                raise DocumentError(message, where=self._where, fix="write one `key: value` a line")


def _edits(
    source: str, name: YamlNode, node: YamlNode, fields: Mapping[str, object], newline: str
) -> Iterator[tuple[int, int, str]]:
    """What is cut out of a source, from where to where, for what, to give an entry other values."""
    edits, missing = [(name, node, _render_fields(fields))], []
    inner = {child.value: (child, item) for child, item in node.pairs}
    if "value" in inner and set(inner) <= set(_FIELDS) and len(inner) == len(node.pairs):
        rendered = {field: render_scalar(value) for field, value in fields.items()}
        changed = [one for one in inner if repr(inner[one][1].value) != repr(as_read(fields[one]))]
        edits = [(*inner[field], rendered[field]) for field in changed]
        missing = [
            f"{field}: {rendered[field]}"
            for field in fields
            if field not in inner and fields[field] is not None
        ]
    for before, item, text in edits:
        yield item.start, item.end, text if item.start > before.end + 1 else f" {text}"
    if missing and node.is_flow:
        at = node.pairs[-1][1].end
        yield at, at, "".join(f", {line}" for line in missing)
    elif missing:
        at = (source.find("\n", node.end) + 1) or len(source)
        indent = " " * (node.start - source.rfind("\n", 0, node.start) - 1)
        yield at, at, "".join(f"{indent}{line}{newline}" for line in missing)


def _render_fields(fields: Mapping[str, object]) -> str:
    return "{" + ", ".join(f"{name}: {render_scalar(value)}" for name, value in fields.items()) + "}"
