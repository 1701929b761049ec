"""preferences.md and facts.md: their values read, single entries changed while every other byte stays."""

import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from difflib import get_close_matches
from typing import Any

from panda.documents.safe_text import one_line
from panda.documents.times import parse_time, render_time
from panda.documents.yaml_text import (
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
_MARKER = re.compile(r"^<!--\s*/?panda\s*-->\s*$", re.MULTILINE)
_LISTED = re.compile(r"[ \t]*[-*][ \t]+(.+?):(?=[ \t]|\r?$)([^\r\n]*)", re.MULTILINE)
_TURN = re.compile(r"\s*\(turn \d+\)\s*$")


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
    faults: tuple[str, ...] = ()  # what of its fields cannot be read, and counts as not written

    @property
    def text(self) -> str:
        """The value on one line."""
        return render_value(self.value)


def statement_key(turn: int, n: int) -> str:
    """The key of what the user said word for word, and nothing else is known of."""
    return f"said_t{turn}_{n}"


def is_statement(relation: str) -> bool:
    """Return whether a key is one of statement_key."""
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
        return ", ".join(map(render_value, value))
    if isinstance(value, Mapping):
        return ", ".join(f"{one_line(str(key))} {render_value(value[key])}" for key in value)
    return one_line(str(value))


def parse_memory_file(text: str, *, where: str, only: str | None = None) -> tuple[MemoryEntry, ...]:
    """
    Return the entries of a memory file in its order, or the one of the key *only*.

    Raises:
        DocumentError: The front matter is broken.
    """
    pairs = split_front_matter(text, where=where).pairs
    last = {name.value: (name.line, node.value) for name, node in pairs if only in (None, name.value)}
    return tuple(_parse_entry(key, raw, line) for key, (line, raw) in last.items())


def _parse_entry(key: str, raw: Any, line: int) -> MemoryEntry:
    fields = raw if isinstance(raw, dict) else {}
    if "value" not in fields or not fields.keys() <= set(_FIELDS):
        return MemoryEntry(key, raw, None, None, None, is_bare=True, line=line)
    written_confidence = fields.get("confidence")
    turn = fields.get("source_turn")
    updated = fields.get("updated_at")
    faults: list[str] = []
    confidence = read_number(written_confidence)
    if written_confidence is not None and (confidence is None or not 0 <= confidence <= 1):
        faults.append(f"confidence {written_confidence!r:.60} is no number from 0 to 1")
        confidence = None
    if turn is not None and (isinstance(turn, bool) or not isinstance(turn, int)):
        faults.append(f"source_turn {turn!r:.60} is no turn number")
        turn = None
    updated_at = None
    try:
        updated_at = None if updated is None else parse_time(str(updated))
    except ValueError:
        faults.append(f"updated_at {updated!r:.60} is no date")
    return MemoryEntry(
        key=key,
        value=fields["value"],
        confidence=confidence,
        source_turn=turn,
        updated_at=updated_at,
        is_bare=False,
        line=line,
        faults=tuple(faults),
    )


def suggest_field(value: object) -> str | None:
    """
    Return what to do about a nested value that has fields of an entry and a misspelt one; None of any other.

    >>> suggest_field({"value": 900, "confidance": 0.4}), suggest_field({"min": 500, "max": 800})
    ('write confidence for confidance', None)
    """
    names = list(value) if isinstance(value, dict) else []
    unknown = [str(name) for name in names if name not in _FIELDS]
    if len(unknown) == len(names):
        return None
    for name in unknown:
        for near in get_close_matches(name, _FIELDS, 1, 0.75):
            return f"write {near} for {name:.60}"
    return None


def written_below(text: str, *, where: str) -> str:
    """Return what a memory file says besides its front matter and its list, as its owner wrote it."""
    parts = _MARKER.split(split_front_matter(text, where=where).body, maxsplit=2)
    return "\n".join([parts[0], *parts[2:]])


class MemoryText:
    r"""
    The text of a memory file, to be changed entry by entry; of the text "" a file with that title is made.
    Raises DocumentError: the front matter is broken.

    >>> file = MemoryText("---\na: 1\nb: 2  # two\n# c\n---\n", title="Facts", where="facts.md")
    >>> file.remove("b")
    >>> file.text
    '---\na: 1\n# c\n---\n'
    """

    def __init__(self, text: str, *, title: str, where: str) -> None:
        self._where = where
        if not text.strip("\ufeff \t\r\n"):
            text = f"---\n---\n\n# {title}\n\n<!-- panda -->\n<!-- panda -->\n"
        self._newline = "\r\n" if text.partition("\n")[0].endswith("\r") else "\n"
        self._front = split_front_matter(text, where=where)
        self._changes: dict[str, Mapping[str, object] | None] = {}  # fields by key; None takes the key away
        self._mark = "\ufeff" if not self._front.before and text.startswith("\ufeff") else ""
        body = self._front.body.removeprefix(self._mark)
        markers = [*_MARKER.finditer(body)][:2]
        self._has_list = len(markers) > 1
        start, end = (markers[0].end(), markers[1].start()) if self._has_list else (0, 0)
        self._above = body[:start]
        self._below = body[end:]
        self._list = body[start:end].splitlines(keepends=True)
        self._places: dict[str, int] = {}  # the line of the list by the key that it shows
        for place, line in enumerate(self._list):
            if match := _LISTED.match(line):
                self._places.setdefault(match[1].strip("*` "), place)

    def set(
        self, key: str, value: object, *, confidence: float, source_turn: int | None, updated_at: datetime
    ) -> None:
        """
        Set one key, to a scalar or a list: its entry, and its line between the `<!-- panda -->` markers, if
        there are any. Of an entry that is there only the changed values differ: spacing and comments stay.
        """
        values = value, confidence, source_turn, render_time(updated_at)
        self._changes[key] = dict(zip(_FIELDS, values, strict=True))
        if self._has_list:
            self._show(key, value, source_turn)

    def remove(self, key: str) -> None:
        """Take one key away: its lines in the front matter and in the list."""
        self._changes[key] = None
        if (place := self._place(key)) is not None:
            self._list[place] = ""
            self._places = {name: at for name, at in self._places.items() if at != place}

    def relist(self, key: str, value: object, source_turn: int | None) -> None:
        """Bring the line of a key in the list up to date, if it has one and that says something else."""
        if self.lists_otherwise(key, value):
            self._show(key, value, source_turn)

    def lists_otherwise(self, key: str, value: object) -> bool:
        """Return whether the list has a line of a key, and it shows another value."""
        place = self._place(key)
        match = None if place is None else _LISTED.match(self._list[place])
        return match is not None and _list_text(value) not in (
            match[2].strip(),
            _TURN.sub("", match[2].strip()),
        )

    def _place(self, key: str) -> int | None:
        return self._places.get(key, self._places.get(_shown_key(key)))

    def _show(self, key: str, value: object, source_turn: int | None) -> None:
        suffix = "" if source_turn is None else f" (turn {source_turn})"
        line = f"- {_shown_key(key)}: {_list_text(value)}{suffix}"
        if (place := self._place(key)) is not None:
            former = self._list[place]
            self._list[place] = line + former[len(former.rstrip("\r\n")) :]
            return
        if not next(filter(None, reversed(self._list)), self._above).endswith("\n"):
            self._list.append(self._newline)
        self._places[_shown_key(key)] = len(self._list)
        self._list.append(line + self._newline)

    @property
    def text(self) -> str:
        """The file as it has become. Raises DocumentError: an entry can't be changed or taken away alone."""
        front = self._front
        newline = self._newline
        added = ""
        cuts: list[tuple[int, int, str]] = []
        for key, fields in self._changes.items():
            own = [pair for pair in front.pairs if pair[0].value == key]
            if fields is None:
                for name, node in own:
                    end = front.source.find("\n", max(name.end, node.end))
                    cuts.append((name.start, end + 1 or len(front.source), ""))
            elif own:
                cuts += _edits(front.source, *own[-1], fields, newline)
            else:
                added += f"{render_yaml_value(key)}: {_render_fields(fields)}{newline}"
        source = front.source
        for start, end, text in sorted(cuts, reverse=True):
            source = source[:start] + text + source[end:]
        if added and source and not source.endswith("\n"):
            source += newline
        self._check(source + added)
        body = self._above + "".join(self._list) + self._below
        if not front.between:
            return self._mark + (f"---{newline}{added}---{newline}" if added else "") + body
        return front.before + source + added + front.between + body

    def _check(self, source: str) -> None:
        """Raises DocumentError unless a front matter says what is set, and of all else what it said."""
        former = self._front.values
        written = None
        with suppress(YamlTextError):
            written = node.value if (node := read_yaml(source, as_typed=True)) else {}
        for key in {**self._changes, **former}:
            fields = self._changes.get(key)
            if not isinstance(written, dict):
                is_right = False
            elif fields is not None:
                entry = written.get(key)
                is_right = isinstance(entry, dict) and entry.get("value") == as_read(fields["value"])
            else:
                is_right = repr(written.get(key, self)) == repr(self if key in self._changes else former[key])
            if not is_right:
                message = f"{key} cannot be changed without changing more"
                raise DocumentError(message, where=self._where, fix="write one `key: value` a line")


def _shown_key(key: str) -> str:
    return one_line(key.replace("_", " "))


def _list_text(value: object) -> str:
    return {True: "yes", False: "no"}[value] if isinstance(value, bool) else render_value(value)


def _edits(
    source: str, name: YamlNode, node: YamlNode, fields: Mapping[str, object], newline: str
) -> Iterator[tuple[int, int, str]]:
    """Yield the edits that give an entry other values: start and end in the source, and the new text."""
    inner = {field.value: (field, item) for field, item in node.pairs}
    if not ("value" in inner and set(inner) <= set(_FIELDS) and len(inner) == len(node.pairs)):
        yield node.start, node.end, _behind(name, node, _render_fields(fields))
        return
    for field, (before, item) in inner.items():
        if repr(item.value) != repr(as_read(fields[field])):
            yield item.start, item.end, _behind(before, item, render_scalar(fields[field]))
    missing = [field for field in fields if field not in inner and fields[field] is not None]
    lines = [f"{field}: {render_scalar(fields[field])}" for field in missing]
    if source.startswith("{", node.start):
        at = node.pairs[-1][1].end
        yield at, at, "".join(f", {line}" for line in lines)
    elif missing:
        at = (source.find("\n", node.end) + 1) or len(source)
        indent = " " * (node.start - source.rfind("\n", 0, node.start) - 1)
        yield at, at, "".join(f"{indent}{line}{newline}" for line in lines)


def _behind(key: YamlNode, former: YamlNode, text: str) -> str:
    return text if former.start > key.end + 1 else f" {text}"


def _render_fields(fields: Mapping[str, object]) -> str:
    return "{" + ", ".join(f"{name}: {render_scalar(value)}" for name, value in fields.items()) + "}"
