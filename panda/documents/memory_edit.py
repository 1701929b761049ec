"""Changing one entry of preferences.md or facts.md as text: every other byte stays (design §3)."""

import json
import re
from collections.abc import Mapping
from datetime import datetime
from typing import Any

import yaml

from panda.documents.front_matter import FrontMatterText, load_mapping, split_front_matter
from panda.documents.memory_list import listed, listed_line, says_otherwise, set_listed, shown_key
from panda.documents.times import render_time
from panda.documents.yaml_entries import (
    as_read,
    compose_mapping,
    read_plain,
    render_scalar,
    split_entries,
)
from panda.errors import DocumentError

_PLAIN_KEY = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_RESERVED = frozenset({"null", "true", "false", "yes", "no", "on", "off", "y", "n"})
_FIELDS = ("value", "confidence", "source_turn", "updated_at")


def set_entry(
    text: str,
    *,
    key: str,
    value: object,
    confidence: float,
    source_turn: int | None,
    updated_at: datetime,
    title: str,
    where: str,
) -> str:
    """
    The text of a memory file with one key set.

    Args:
        text: The whole file; "" makes one.
        key: Key as in the front matter; one line.
        value: str, bool, int, float, None, or a list of these.
        confidence: 0 to 1.
        source_turn: Turn in which it was said; None if none.
        updated_at: When it was said.
        title: Heading of a file that is made.
        where: File name for errors.

    Returns:
        The text in which only the entry of that key and its line between the `<!-- panda -->` markers
        differ. Of an entry that is there only the changed values do: spacing, order and comments stay.

    Raises:
        DocumentError: The front matter is broken, or written so that the entry cannot be changed alone.

    >>> at = datetime.fromisoformat("2026-01-04T10:00:00+00:00")
    >>> print(set_entry("", key="pet", value="cat", confidence=0.95, source_turn=3, updated_at=at,
    ...                 title="Preferences", where="preferences.md"))
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
    """
    fields = dict(zip(_FIELDS, (value, confidence, source_turn, render_time(updated_at)), strict=True))
    entry = f"{_render_key(key)}: {_render_fields(fields)}"
    line = listed_line(key, value, source_turn)
    if not text.strip("\ufeff \t\r\n"):
        return f"---\n{entry}\n---\n\n# {title}\n\n<!-- panda -->\n{line}\n<!-- panda -->\n"
    newline = _newline(text)
    front = split_front_matter(text, where=where)
    body = set_listed(front.body, key, line, newline)
    if not front.present:
        mark = "\ufeff" if text.startswith("\ufeff") else ""
        return f"{mark}---{newline}{entry}{newline}---{newline}{body[len(mark) :]}"
    start, end, first_line = _region(front, key)
    region = front.yaml_text[start:end]
    if start == end:
        edited = f"{entry}{newline}"
    else:
        edited = _set_in(region, key, entry, fields, newline, f"{where}:{first_line}")
    wanted = {**_values(region, where), key: {"value": as_read(value)}}
    _check(edited, wanted, key, where)
    return _joined(text, front, (start, end), edited) + body


def remove_entry(text: str, *, key: str, where: str) -> str:
    """
    The text of a memory file without a key: without its lines in the front matter and in the list.

    Args:
        text: The whole file.
        key: Key as in the front matter.
        where: File name for errors.

    Returns:
        The text; all other lines stay byte for byte.

    Raises:
        DocumentError: The front matter is broken, or written so that the entry cannot be removed alone.

    >>> remove_entry("---\\na: 1\\nb: 2  # two\\n# c\\n---\\n", key="b", where="facts.md")
    '---\\na: 1\\n# c\\n---\\n'
    """
    front = split_front_matter(text, where=where)
    body = set_listed(front.body, key, None, _newline(text))
    if key not in front.values:
        return text[: len(text) - len(front.body)] + body
    start, end, _ = _region(front, key)
    region = front.yaml_text[start:end]
    mapping = compose_mapping(region)
    assert mapping is not None  # it holds the key
    edited = region
    for name, node in reversed([pair for pair in mapping.value if str(pair[0].value) == key]):
        _, stop = _span(region, node)
        line_end = region.find("\n", max(stop, name.end_mark.index))
        rest = edited[line_end + 1 :] if line_end >= 0 else ""
        edited = edited[: name.start_mark.index] + rest
    wanted = _values(region, where)
    del wanted[key]
    _check(edited, wanted, key, where)
    changed = _joined(text, front, (start, end), edited) + body
    return remove_entry(changed, key=key, where=where)  # a key may be there twice


def relist_entry(text: str, *, key: str, value: object, source_turn: int | None, where: str) -> str:
    """
    The text of a memory file whose list shows a value that the front matter has already.

    Args:
        text: The whole file.
        key: Key as in the front matter.
        value: As for set_entry.
        source_turn: Turn in which it was said; None if none.
        where: File name for errors.

    Returns:
        The text; it differs only if the list has a line of the key that says something else.

    Raises:
        DocumentError: The front matter is broken.
    """
    body = split_front_matter(text, where=where).body
    said = listed(body).get(shown_key(key))
    if said is None or not says_otherwise(said, value):
        return text
    line = listed_line(key, value, source_turn)
    return text[: len(text) - len(body)] + set_listed(body, key, line, _newline(text))


def _newline(text: str) -> str:
    return "\r\n" if "\r\n" in text.split("\n", 1)[0] + "\n" else "\n"


def _region(front: FrontMatterText, key: str) -> tuple[int, int, int]:
    """What of the front matter must be read as YAML to change a key: from, to, and the line of the file."""
    entries = split_entries(front.yaml_text)
    if entries is None:
        return 0, len(front.yaml_text), front.yaml_line
    own = [one for one in entries if one.key == key]
    if not own:
        end = len(front.yaml_text)
        return end, end, front.yaml_line
    return own[-1].start, own[-1].end, front.yaml_line + own[-1].line


def _values(region: str, where: str) -> dict[str, Any]:
    return dict(load_mapping(region, where=where, first_line=1))


def _joined(text: str, front: FrontMatterText, place: tuple[int, int], edited: str) -> str:
    """The text up to its body, with a stretch of the front matter replaced."""
    start, end = (front.yaml_start + offset for offset in place)
    return text[:start] + edited + text[end : len(text) - len(front.body)]


def _check(edited: str, wanted: Mapping[str, Any], key: str, where: str) -> None:
    """Raises DocumentError unless a stretch of front matter says what it must."""
    found = _values(edited, where)
    if key in wanted:
        found = {**found, key: {"value": found[key]["value"]}} if isinstance(found.get(key), dict) else {}
    if found != wanted:
        raise DocumentError(
            f"{key} cannot be changed without changing more", where=where, fix="write one `key: value` a line"
        )


def _render_key(key: str) -> str:
    plain = _PLAIN_KEY.fullmatch(key) and key.lower() not in _RESERVED
    return key if plain else json.dumps(key, ensure_ascii=False)


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
