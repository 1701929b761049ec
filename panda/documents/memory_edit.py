"""Changing one entry of preferences.md or facts.md as text: every other byte stays (design §3)."""

import json
import re
from datetime import datetime

import yaml

from panda.documents.front_matter import FrontMatterText, compose_mapping, split_front_matter
from panda.documents.memory_file import parse_memory_file, render_scalar, render_value
from panda.documents.sentences import one_line
from panda.documents.times import render_time
from panda.errors import DocumentError

_MARKER = re.compile(r"^<!--\s*/?panda\s*-->\s*$", re.MULTILINE)
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
    line = _render_line(key, value, source_turn)
    if not text.strip("\ufeff \t\r\n"):
        return f"---\n{entry}\n---\n\n# {title}\n\n<!-- panda -->\n{line}\n<!-- panda -->\n"
    newline = "\r\n" if "\r\n" in text.split("\n", 1)[0] + "\n" else "\n"
    front = split_front_matter(text, where=where)
    if not front.present:
        mark = "\ufeff" if text.startswith("\ufeff") else ""
        body = text[len(mark) :]
        return f"{mark}---{newline}{entry}{newline}---{newline}{_set_line(body, key, line, newline)}"
    body_start = len(text) - len(front.body)
    edited = _set_yaml(front, key, entry, fields, newline, where)
    between = text[front.yaml_start + len(front.yaml_text) : body_start]
    changed = text[: front.yaml_start] + edited + between + _set_line(front.body, key, line, newline)
    _check_edit(text, changed, key=key, value=value, where=where)
    return changed


def _check_edit(text: str, changed: str, *, key: str, value: object, where: str) -> None:
    before = {entry.key: entry.value for entry in parse_memory_file(text, where=where)}
    after = {entry.key: entry.value for entry in parse_memory_file(changed, where=where)}
    if after != {**before, key: list(value) if isinstance(value, tuple) else value}:
        raise DocumentError(
            f"{key} cannot be changed without changing more", where=where, fix="write one `key: value` a line"
        )


def _render_key(key: str) -> str:
    plain = _PLAIN_KEY.fullmatch(key) and key.lower() not in _RESERVED
    return key if plain else json.dumps(key, ensure_ascii=False)


def _render_fields(fields: dict[str, object]) -> str:
    return "{" + ", ".join(f"{name}: {render_scalar(value)}" for name, value in fields.items()) + "}"


def _render_line(key: str, value: object, source_turn: int | None) -> str:
    shown = {True: "yes", False: "no"}[value] if isinstance(value, bool) else render_value(value)
    suffix = "" if source_turn is None else f" (turn {source_turn})"
    return f"- {one_line(key.replace('_', ' '))}: {shown}{suffix}"


def _set_yaml(
    front: FrontMatterText, key: str, entry: str, fields: dict[str, object], newline: str, where: str
) -> str:
    text = front.yaml_text
    mapping = compose_mapping(text)
    found = [pair for pair in mapping.value if str(pair[0].value) == key] if mapping else []
    if not found:
        if mapping is not None and mapping.flow_style:
            raise DocumentError(
                "the front matter is written as {…}; an entry cannot be added",
                where=f"{where}:{front.yaml_line}",
                fix="write one `key: value` a line",
            )
        ended = text if not text or text.endswith("\n") else text + newline
        return f"{ended}{entry}{newline}"
    name_node, node = found[-1]
    line = front.yaml_line + name_node.start_mark.line
    if node.start_mark.index < name_node.end_mark.index or text[
        node.start_mark.index : node.start_mark.index + 1
    ] in (
        "&",
        "*",
        "!",
    ):
        raise DocumentError(
            f"{key} is written with an anchor, alias or tag",
            where=f"{where}:{line}",
            fix="write the value out",
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
    text: str, node: yaml.Node, fields: dict[str, object], newline: str
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
    return source == render_scalar(value) or (isinstance(value, str) and source == value)


def _span(text: str, node: yaml.Node) -> tuple[int, int]:
    """Where a node's own text begins and ends, without comments and blank lines after a block."""
    start, end = node.start_mark.index, node.end_mark.index
    if isinstance(node, yaml.CollectionNode) and not node.flow_style and node.value:
        last = node.value[-1]
        return start, _span(text, last[1] if isinstance(last, tuple) else last)[1]
    if isinstance(node, yaml.ScalarNode) and node.style in ("|", ">"):
        return start, start + len(text[start:end].rstrip())
    return start, end


def _set_line(body: str, key: str, line: str, newline: str) -> str:
    markers = list(_MARKER.finditer(body))
    if len(markers) < 2:
        return body
    start, end = markers[0].end(), markers[1].start()
    names = {key, one_line(key.replace("_", " "))}
    for match in re.finditer(r"^[ \t]*[-*][ \t]+(.+?):(?=[ \t]|\r?$)[^\r\n]*", body[start:end], re.MULTILINE):
        if match.group(1).strip("*` ") in names:
            return body[: start + match.start()] + line + body[start + match.end() :]
    lead = body[:end]
    if not lead.endswith("\n"):
        lead += newline
    return f"{lead}{line}{newline}{body[end:]}"
