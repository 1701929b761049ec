"""preferences.md and facts.md: their values read, single entries changed while every other byte stays."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import Any

import yaml

from panda.documents.text import one_line
from panda.documents.times import parse_time, render_time
from panda.documents.yaml_text import (
    as_read,
    compose_mapping,
    key_lines,
    load_mapping,
    read_number,
    read_plain,
    render_scalar,
    render_yaml_value,
    split_entries,
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
    """
    The key of what the user said word for word, and nothing else is known of.

    >>> statement_key(12, 1)
    'said_t12_1'
    """
    return f"said_t{turn}_{n}"


def is_statement(relation: str) -> bool:
    """
    Whether a key is one of statement_key.

    >>> is_statement("said_t12_1"), is_statement("said")
    (True, False)
    """
    return _STATEMENT.fullmatch(relation) is not None


def render_value(value: object) -> str:
    """
    A memory value on one line, as a reader would write it.

    >>> render_value(["Lenovo", "ASUS"]), render_value(True), render_value(None)
    ('Lenovo, ASUS', 'true', 'none')
    >>> render_value({"min": 500, "max": 800})
    'min 500, max 800'
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
    front = split_front_matter(text, where=where)
    lines = key_lines(front.yaml_text)
    return tuple(
        _parse_entry(key, raw, where=where, line=front.yaml_line + lines.get(key, 0))
        for key, raw in front.values.items()
    )


def find_entry(text: str, key: str, *, where: str) -> MemoryEntry | None:
    """
    One entry of a memory file; None if it has no such key.

    Raises:
        DocumentError: As for parse_memory_file, of this entry only.
    """
    front = split_front_matter(text, where=where)
    if key not in front.values:
        return None
    line = front.yaml_line + key_lines(front.yaml_text)[key]
    return _parse_entry(key, front.values[key], where=where, line=line)


def _parse_entry(key: str, raw: object, *, where: str, line: int) -> MemoryEntry:
    if not (isinstance(raw, dict) and "value" in raw and set(raw) <= set(_FIELDS)):
        return MemoryEntry(key, raw, None, None, None, is_bare=True, line=line)
    place = f"{where}:{line}"
    confidence, turn, updated = raw.get("confidence"), raw.get("source_turn"), raw.get("updated_at")
    number = read_number(confidence)
    if confidence is not None and (number is None or not 0 <= number <= 1):
        raise DocumentError(f"{key}: confidence {confidence!r} is no number from 0 to 1", where=place)
    if turn is not None and (isinstance(turn, bool) or not isinstance(turn, int)):
        raise DocumentError(f"{key}: source_turn {turn!r} is no turn number", where=place)
    try:
        at = None if updated is None else parse_time(str(updated))
    except ValueError as exc:
        raise DocumentError(f"{key}: updated_at {updated!r} is no date", where=place) from exc
    return MemoryEntry(key, raw["value"], number, turn, at, is_bare=False, line=line)


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
            self._lines[place] = line + self._lines[place][len(self._lines[place].rstrip("\r\n")) :]
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
        body = front.body
        start = front.yaml_start
        self._before, self._between = text[:start], text[start + len(front.yaml_text) : len(text) - len(body)]
        self._is_bare = not front.present
        if self._is_bare:
            self._before, self._between = "\ufeff" if text.startswith("\ufeff") else "", ""
            body = body[len(self._before) :]
        self._list = MemoryList(body, self._newline)
        entries = split_entries(front.yaml_text)
        whole = front.yaml_text
        if entries is None:
            self._chunks = [whole]
            self._places = {key: [0] for key in front.values}
            self._lines = [front.yaml_line]
        else:
            self._chunks = [whole[: entries[0].start] if entries else whole]
            self._chunks += [whole[one.start : one.end] for one in entries]
            self._lines = [front.yaml_line, *(front.yaml_line + one.line for one in entries)]
            self._places = {}
            for place, one in enumerate(entries, 1):
                self._places.setdefault(one.key, []).append(place)
        self._is_whole = entries is None

    @property
    def text(self) -> str:
        """The file as it has become."""
        return self._before + "".join(self._chunks) + self._between + self._list.body

    def set(
        self, key: str, value: object, *, confidence: float, source_turn: int | None, updated_at: datetime
    ) -> None:
        """
        Set one key: its entry, and its line between the `<!-- panda -->` markers. Of an entry that is there
        only the changed values differ: spacing, order and comments stay.

        Args:
            key: Key as in the front matter.
            value: str, bool, int, float, None, or a list of these.
            confidence: 0 to 1.
            source_turn: Turn in which it was said; None if none.
            updated_at: When it was said.

        Raises:
            DocumentError: The entry is written so that it cannot be changed alone.
        """
        fields = dict(zip(_FIELDS, (value, confidence, source_turn, render_time(updated_at)), strict=True))
        entry = f"{render_yaml_value(key)}: {_render_fields(fields)}"
        places = self._places.get(key)
        if places or self._is_whole:
            place = places[-1] if places else 0
            chunk, where = self._chunks[place], f"{self._where}:{self._lines[place]}"
            edited = _set_in(chunk, key, entry, fields, self._newline, where)
            _check(edited, {**self._values(chunk), key: {"value": as_read(value)}}, key, self._where)
            self._chunks[place] = edited
        else:
            self._add(key, entry, value)
        self._list.set(key, value, source_turn)

    def _add(self, key: str, entry: str, value: object) -> None:
        _check(entry + "\n", {key: {"value": as_read(value)}}, key, self._where)
        if self._is_bare:
            self._before, self._between = f"{self._before}---{self._newline}", f"---{self._newline}"
            self._is_bare = False
        last = self._chunks[-1]
        if last and not last.endswith("\n"):
            self._chunks[-1] = last + self._newline
        self._places[key] = [len(self._chunks)]
        self._chunks.append(entry + self._newline)
        self._lines.append(self._lines[-1] + 1)

    def remove(self, key: str) -> None:
        """
        Take one key away: its lines in the front matter and in the list.

        Raises:
            DocumentError: The entry is written so that it cannot be removed alone.
        """
        for place in self._places.pop(key, []):
            chunk = self._chunks[place]
            edited = _without(chunk, key)
            wanted = self._values(chunk)
            del wanted[key]
            _check(edited, wanted, key, self._where)
            self._chunks[place] = edited
        self._list.remove(key)

    def relist(self, key: str, value: object, source_turn: int | None) -> None:
        """Bring the line of a key in the list up to date, if it has one and that says something else."""
        if self._list.says_otherwise(key, value):
            self._list.set(key, value, source_turn)

    def _values(self, chunk: str) -> dict[str, Any]:
        return dict(load_mapping(chunk, where=self._where, first_line=1))


def _without(region: str, key: str) -> str:
    """Some entries without those of a key."""
    mapping = compose_mapping(region)
    assert mapping is not None  # it holds the key
    edited = region
    for name, node in reversed([pair for pair in mapping.value if str(pair[0].value) == key]):
        _, stop = _span(region, node)
        line_end = region.find("\n", max(stop, name.end_mark.index))
        rest = edited[line_end + 1 :] if line_end >= 0 else ""
        edited = edited[: name.start_mark.index] + rest
    return edited


def _check(edited: str, wanted: Mapping[str, Any], key: str, where: str) -> None:
    """Raises DocumentError unless a stretch of front matter says what it must."""
    found = dict(load_mapping(edited, where=where, first_line=1))
    if key in wanted:
        found = {**found, key: {"value": found[key]["value"]}} if isinstance(found.get(key), dict) else {}
    if found != wanted:
        raise DocumentError(
            f"{key} cannot be changed without changing more", where=where, fix="write one `key: value` a line"
        )


def _render_fields(fields: Mapping[str, object]) -> str:
    return "{" + ", ".join(f"{name}: {render_scalar(value)}" for name, value in fields.items()) + "}"


def _set_in(text: str, key: str, entry: str, fields: Mapping[str, object], newline: str, where: str) -> str:
    mapping = compose_mapping(text)
    found = [pair for pair in mapping.value if str(pair[0].value) == key] if mapping else []
    if not found:
        if mapping is not None and mapping.flow_style:
            raise DocumentError(
                "the front matter is written as {…}; an entry cannot be added",
                where=where,
                fix="write one `key: value` a line",
            )
        ended = text if not text or text.endswith("\n") else text + newline
        return f"{ended}{entry}{newline}"
    name_node, node = found[-1]
    begin = text[node.start_mark.index : node.start_mark.index + 1]
    if node.start_mark.index < name_node.end_mark.index or begin in ("&", "*", "!"):
        raise DocumentError(
            f"{key} is written with an anchor, alias or tag", where=where, fix="write the value out"
        )
    edits = _field_edits(text, node, fields, newline)
    if edits is None:
        start, end = _span(text, node)
        lead = "" if start > name_node.end_mark.index + 1 else " "
        edits = [(start, end, lead + _render_fields(fields))]
    for start, end, replacement in sorted(edits, reverse=True):
        text = text[:start] + replacement + text[end:]
    return text


def _field_edits(
    text: str, node: yaml.Node, fields: Mapping[str, object], newline: str
) -> list[tuple[int, int, str]] | None:
    """Edits inside an entry that already is a mapping of our fields; None if it has another form."""
    if not isinstance(node, yaml.MappingNode) or not node.value:
        return None
    children = {str(name.value): (name, child) for name, child in node.value}
    if "value" not in children or not set(children) <= set(_FIELDS) or len(children) < len(node.value):
        return None
    edits: list[tuple[int, int, str]] = []
    missing: list[str] = []
    for name, value in fields.items():
        if name not in children:
            if value is not None:
                missing.append(f"{name}: {render_scalar(value)}")
            continue
        name_node, child = children[name]
        start, end = _span(text, child)
        if start < name_node.end_mark.index:
            return None
        same = isinstance(child, yaml.ScalarNode) and _reads_as(text[start:end], value)
        if not same:
            edits.append(
                (start, end, ("" if start > name_node.end_mark.index + 1 else " ") + render_scalar(value))
            )
    if missing:
        _, end = _span(text, node.value[-1][1])
        if node.flow_style:
            edits.append((end, end, "".join(f", {item}" for item in missing)))
        else:
            line_end = text.find("\n", end)
            at = len(text) if line_end < 0 else line_end + 1
            indent = " " * node.value[0][0].start_mark.column
            edits.append((at, at, "".join(f"{indent}{item}{newline}" for item in missing)))
    return edits


def _reads_as(source: str, value: object) -> bool:
    return source == render_scalar(value) or (
        isinstance(value, str) and read_plain(source) == value == source
    )


def _span(text: str, node: yaml.Node) -> tuple[int, int]:
    """Where a node's own text begins and ends, without comments and blank lines after a block."""
    start, end = node.start_mark.index, node.end_mark.index
    if isinstance(node, yaml.CollectionNode) and not node.flow_style and node.value:
        last = node.value[-1]
        return start, _span(text, last[1] if isinstance(last, tuple) else last)[1]
    if isinstance(node, yaml.ScalarNode) and node.style in ("|", ">"):
        return start, start + len(text[start:end].rstrip())
    return start, end
