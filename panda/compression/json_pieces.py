"""A JSON document into pieces, one a value, and back into valid JSON with some of them left out."""

import json
import re
from collections.abc import Sequence, Set
from dataclasses import dataclass, field, replace
from typing import Any

from panda.compression.documents import MARK
from panda.compression.pieces import Piece, has_value, prose_spans, with_heads

_BLANK = re.compile(r"[ \t\n\r]*")
_STRING = re.compile(r'"(?:[^"\\]|\\.)*+"', re.DOTALL)
_SCALAR = re.compile(r"-?[0-9][0-9.eE+-]*|-?Infinity|NaN|true|false|null")
_LONG_CHARS = 160
_LONG_CHARS_WITH_VALUE = 60
_DEEPEST = 100
_DECODER = json.JSONDecoder(parse_int=str, parse_float=str, parse_constant=str)
_NAMES = ("name", "title", "product", "zone", "type", "label", "id", "url")
"""Keys that say what an object is; the first one there stands wherever something of the object stands …"""
_SAYS_ITSELF = re.compile(r": (?:https?://\S+|\d{4}-\d\d-\d\d\S*)\Z")
"""… but for a URL or time alone."""


@dataclass
class _Node:
    start: int  # index of its first character
    end: int = 0  # index behind its last
    key: str = ""  # its key with quotes, as written; empty in a list
    kind: str = "scalar"  # object, list, text (a long string in several pieces) or scalar
    children: list["_Node"] = field(default_factory=list)  # of an object or list
    first: int = 0  # index of its first piece
    last: int = 0  # index behind its last piece
    spans: list[tuple[int, int]] = field(default_factory=list)  # of a text: its pieces in the decoded string
    decoded: str = ""  # of a text: what it says


@dataclass(frozen=True)
class JsonOutline:
    source: str  # the document
    pieces: Sequence[Piece]  # its values, long strings in several pieces
    root: "_Node"  # the value itself

    def render(self, kept: Set[int]) -> str:
        """The document with these pieces, whole ones as they are written, `"[…]"` for what was left out."""
        kept = with_heads(self.pieces, kept)
        if len(kept) == len(self.pieces):
            return self.source
        counts = [0]
        for i in range(len(self.pieces)):
            counts.append(counts[-1] + (i in kept))
        node = self.root
        lines = "\n" in self.source[node.start : node.end]
        return self._render(node, kept, counts, lines) + ("\n" if self.source.endswith("\n") else "")

    def _render(self, node: _Node, kept: Set[int], counts: list[int], lines: bool) -> str:
        if counts[node.last] - counts[node.first] == node.last - node.first:
            return self.source[node.start : node.end]
        if node.kind == "text":
            return self._render_text(node, kept)
        if node.kind == "scalar":
            return f'"{MARK}"'
        parts = []
        missing = False
        for child in node.children:
            if counts[child.last] == counts[child.first]:
                missing = True
                continue
            if missing and node.kind == "list":
                parts.append(f'"{MARK}"')
                missing = False
            value = self._render(child, kept, counts, lines)
            parts.append(f"{child.key}: {value}" if child.key else value)
        if missing:
            parts.append(f'"{MARK}"' if node.kind == "list" else f'"{MARK}": null')
        body = (",\n" if lines and len(parts) > 1 else ", ").join(parts)
        return f"{{{body}}}" if node.kind == "object" else f"[{body}]"

    def _render_text(self, node: _Node, kept: Set[int]) -> str:
        parts: list[str] = []
        dropped = False
        for n, (start, end) in enumerate(node.spans):
            if node.first + n not in kept:
                dropped = True
                continue
            if dropped:
                parts.append(f" {MARK} " if parts else f"{MARK} ")
            elif parts:
                parts.append(node.decoded[node.spans[n - 1][1] : start])
            parts.append(node.decoded[start:end])
            dropped = False
        return json.dumps("".join(parts) + (f" {MARK}" if dropped else ""), ensure_ascii=False)


def parse_json(source: str) -> JsonOutline | None:
    """
    The pieces of a JSON object or list, None for any other text. What is nested too deeply is one piece.

    >>> outline = parse_json('{"price": 697.00, "tags": ["a", "b"]}')
    >>> [piece.text for piece in outline.pieces]
    ['price: 697.00', 'tags: a', 'tags: b']
    >>> outline.render({0, 2})
    '{"price": 697.00, "tags": ["[…]", "b"]}'
    """
    if source.lstrip()[:1] not in ("{", "["):
        return None
    try:
        load_json(source)
        reader = _Reader(source)
        root = reader.value((), _BLANK.match(source, 0).end(), 0)  # type: ignore[union-attr]  # always matches
    except (ValueError, RecursionError):
        return None
    return JsonOutline(source, tuple(reader.pieces), root) if reader.pieces else None


def load_json(text: str) -> Any:
    """What a JSON document says, its numbers as they are written: so they may have any length."""
    return _DECODER.decode(text)


class _Reader:
    """Reads text that is known to be valid JSON, for the places of its values."""

    def __init__(self, source: str) -> None:
        self.source = source
        self.pieces: list[Piece] = []
        self.line = 0

    def value(self, path: tuple[str, ...], at: int, depth: int) -> _Node:
        node = _Node(at, first=len(self.pieces))
        opening = self.source[at]
        if opening in "{[" and depth > _DEEPEST:
            _, node.end = _DECODER.raw_decode(self.source, at)
            self._piece(node, path, self.source[node.start : node.end])
        elif opening in "{[":
            node.kind = "object" if opening == "{" else "list"
            self._children(node, path, at + 1, depth)
        elif opening == '"':
            match = _STRING.match(self.source, at)
            assert match is not None
            node.end = match.end()
            self._string(node, path)
        else:
            match = _SCALAR.match(self.source, at)
            node.end = match.end() if match else at + 1
            self._piece(node, path, self.source[node.start : node.end])
        node.last = len(self.pieces)
        return node

    def _children(self, node: _Node, path: tuple[str, ...], at: int, depth: int) -> None:
        at = self._skip(at)
        while self.source[at] not in "}]":
            key, name = "", ""
            if node.kind == "object":
                match = _STRING.match(self.source, at)
                assert match is not None
                key, name = match.group(), str(json.loads(match.group()))
                at = self._skip(self._skip(match.end()) + 1)
            child = self.value((*path, name) if name else path, at, depth + 1)
            child.key = key
            node.children.append(child)
            at = self._skip(child.end)
            if self.source[at] == ",":
                at = self._skip(at + 1)
        node.end = at + 1
        if not node.children:
            self._piece(node, path, self.source[node.start : node.end])
        elif node.kind == "object":
            self._name_object(node)

    def _name_object(self, node: _Node) -> None:
        keys = {child.key.strip('"').lower(): child for child in node.children if child.kind == "scalar"}
        named = next((keys[name] for name in _NAMES if name in keys), None)
        if named is None or named.last != named.first + 1:
            return
        for i in range(node.first, len(self.pieces)):
            if i != named.first and not _SAYS_ITSELF.search(self.pieces[i].text):
                self.pieces[i] = replace(self.pieces[i], heads=(*self.pieces[i].heads, named.first))

    def _string(self, node: _Node, path: tuple[str, ...]) -> None:
        text = str(json.loads(self.source[node.start : node.end]))
        if len(text) <= (_LONG_CHARS if not has_value(text) else _LONG_CHARS_WITH_VALUE):
            self._piece(node, path, text)
            return
        node.kind, node.decoded = "text", text
        self.line += 1
        for sentence in prose_spans(text, 0, len(text)):
            for one, other in sentence:
                node.spans.append((one, other))
                self._add(node, path, text[one:other])

    def _piece(self, node: _Node, path: tuple[str, ...], text: str) -> None:
        self.line += 1
        self._add(node, path, f"{path[-1]}: {text}" if path else text)

    def _add(self, node: _Node, path: tuple[str, ...], text: str) -> None:
        self.pieces.append(Piece(node.start, node.end, "field", text, self.line, len(self.pieces), path=path))

    def _skip(self, at: int) -> int:
        match = _BLANK.match(self.source, at)
        return match.end() if match else at
