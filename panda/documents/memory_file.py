"""preferences.md and facts.md: current values in the front matter, read as values (design §3)."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from panda.documents.front_matter import read_number, split_front_matter
from panda.documents.sentences import one_line
from panda.documents.times import parse_time
from panda.documents.yaml_entries import key_lines
from panda.errors import DocumentError

_FIELDS = {"value", "confidence", "source_turn", "updated_at"}


_STATEMENT = re.compile(r"said_t\d+_\d+")


@dataclass(frozen=True)
class MemoryEntry:
    """One key of a memory file."""

    key: str
    """The key as typed."""
    value: object
    """str, bool, int, float, None, list or mapping."""
    confidence: float | None
    """As written; None if it is not."""
    source_turn: int | None
    """Turn in which it was said; None if unknown."""
    updated_at: datetime | None
    """When it was last changed; None if unknown."""
    is_bare: bool
    """Whether it is `key: value`, as typed by hand."""
    line: int
    """Line of the file, from 1."""

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

    Args:
        text: The whole file; may be empty.
        where: File name for errors.

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

    Args:
        text: The whole file.
        key: The key as typed.
        where: File name for errors.

    Raises:
        DocumentError: As for parse_memory_file, of this entry only.
    """
    front = split_front_matter(text, where=where)
    if key not in front.values:
        return None
    line = front.yaml_line + key_lines(front.yaml_text)[key]
    return _parse_entry(key, front.values[key], where=where, line=line)


def _parse_entry(key: str, raw: object, *, where: str, line: int) -> MemoryEntry:
    if not (isinstance(raw, dict) and "value" in raw and set(raw) <= _FIELDS):
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
