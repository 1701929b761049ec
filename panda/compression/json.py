"""A JSON document into pieces, one a value, and back into valid JSON with some of them left out."""

import json
import re
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from typing import Any

from panda.compression.pieces import MARK, Piece, Wordings, has_value, prose_spans, with_heads

_LONG_CHARS, _LONG_CHARS_WITH_VALUE = 160, 60
_DEEPEST = 100
_NAMES = ("name", "title", "product", "zone", "type", "label", "id", "url")
"""Keys that say what an object is; the first one there stands wherever something of the object stands …"""
_SAYS_ITSELF = re.compile(r": (?:https?://\S+|\d{4}-\d\d-\d\d\S*)\Z")
"""… but for a URL or time alone."""
_UNSURE = 0.5
"""An object with a lower confidence shows it wherever something of it stands."""


class _Number(str):
    """As it is written, so it may have any length; NaN and Infinity too."""


class _Object(list[tuple[str, Any]]):
    """Its members; a key may be there twice."""


_DECODER = json.JSONDecoder(
    object_pairs_hook=_Object, parse_int=_Number, parse_float=_Number, parse_constant=_Number
)


@dataclass
class _Node:
    first: int  # index of its first piece
    key: str = ""  # its key as JSON, with the colon; empty in a list
    brackets: str = ""  # of an object or list that holds something
    children: list["_Node"] = field(default_factory=list)  # of such a one
    text: str = ""  # of any other, as JSON; of a string in several pieces as it is
    spans: list[tuple[int, int]] = field(default_factory=list)  # of such a string: where its pieces stand

    def render(self, kept: Set[int], wordings: Wordings) -> str:
        """What is kept of it, as JSON; empty if that is nothing."""
        if self.spans:
            return self._render_text(kept, wordings)
        if not self.brackets:
            return self.text if self.first in kept else ""
        texts = [
            child.key + text if (text := child.render(kept, wordings)) else "" for child in self.children
        ]
        if not any(texts):
            return ""
        if self.brackets == "{}":
            parts = [*filter(None, texts), *([] if all(texts) else [f'"{MARK}": null'])]
        else:
            parts = [text or f'"{MARK}"' for n, text in enumerate(texts) if text or n == 0 or texts[n - 1]]
        return f"{self.brackets[0]}{', '.join(parts)}{self.brackets[1]}"

    def _render_text(self, kept: Set[int], wordings: Wordings) -> str:
        parts: list[str] = []
        last, end = self.first - 1, 0
        for i, (start, stop) in enumerate(self.spans, self.first):
            if i in kept and i > last:
                parts.append(self.text[end:start] if i == last + 1 else f" {MARK} " if parts else f"{MARK} ")
                last, text = wordings.get(i, (i, self.text[start:stop]))
                end = self.spans[last - self.first][1]
                parts.append(text)
        gap = f" {MARK}" if last < self.first + len(self.spans) - 1 else ""
        return json.dumps("".join(parts) + gap, ensure_ascii=False) if parts else ""


@dataclass(frozen=True)
class JsonOutline:
    source: str  # the document
    pieces: Sequence[Piece]  # its values, long strings in several pieces
    root: _Node  # the value itself

    def render(self, kept: Set[int], wordings: Wordings | None = None) -> str:
        """The document with these pieces, `"[…]"` for what was left out."""
        text = self.root.render(with_heads(self.pieces, kept), wordings or {})
        bare = f'["{MARK}"]' if self.root.brackets == "[]" else f'{{"{MARK}": null}}'
        return (text or bare) + ("\n" if self.source.endswith("\n") else "")

    def text(self, first: int, last: int) -> str:
        """What the pieces from one to another say, which are those of one string."""
        return " ".join(piece.text for piece in self.pieces[first : last + 1])


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
        value = _DECODER.decode(source)
        parser = _Parser()
        root = parser.parse(value, (), 0)
    except (ValueError, RecursionError):
        return None
    return JsonOutline(source, tuple(parser.pieces), root)


class _Parser:
    def __init__(self) -> None:
        self.pieces: list[Piece] = []
        self.line = 0

    def parse(self, value: Any, path: tuple[str, ...], depth: int) -> _Node:
        node = _Node(len(self.pieces))
        if isinstance(value, _Number) or not (value and isinstance(value, str | list)):
            node.text = _dumps(value)
            self._leaf(path, value if isinstance(value, str) else node.text)
        elif isinstance(value, str):
            self._string(node, value, path)
        elif depth > _DEEPEST:
            node.text = _dumps(value)
            self._leaf(path, node.text)
        elif isinstance(value, _Object):
            node.brackets = "{}"
            for key, member in value:
                child = self.parse(member, (*path, key) if key else path, depth + 1)
                child.key = json.dumps(key, ensure_ascii=False) + ": "
                node.children.append(child)
            self._name(node, dict(value))
        else:
            node.brackets = "[]"
            node.children = [self.parse(item, path, depth + 1) for item in value]
        return node

    def _name(self, node: _Node, members: Mapping[str, Any]) -> None:
        """Let what an object is called, and a low confidence, stand wherever something of it stands."""
        places = {
            child.key[1:-3].lower(): child.first
            for child in node.children
            if not (child.brackets or child.spans)
        }
        name = next((places[key] for key in _NAMES if key in places), None)
        value = members.get("confidence")
        sure = float(value) if isinstance(value, _Number) and 0 <= float(value) <= 1 else None
        flag = places["confidence"] if sure is not None and sure < _UNSURE else None
        for i in range(node.first, len(self.pieces)) if name is not None or sure is not None else ():
            piece = self.pieces[i]
            heads = {flag} if _SAYS_ITSELF.search(piece.text) else {name, flag}
            self.pieces[i] = replace(
                piece,
                heads=(*piece.heads, *(head for head in heads - {i} if head is not None)),
                confidence=sure if piece.confidence is None else piece.confidence,
            )

    def _string(self, node: _Node, text: str, path: tuple[str, ...]) -> None:
        if len(text) <= (_LONG_CHARS_WITH_VALUE if has_value(text) else _LONG_CHARS):
            node.text = json.dumps(text, ensure_ascii=False)
            self._leaf(path, text)
            return
        node.text = text
        self.line += 1
        for sentence in prose_spans(text, 0, len(text)):
            node.spans += sentence
            for start, end in sentence:
                self._add(path, text[start:end], "sentence")

    def _leaf(self, path: tuple[str, ...], text: str) -> None:
        self.line += 1
        self._add(path, f"{path[-1]}: {text}" if path else text, "field")

    def _add(self, path: tuple[str, ...], text: str, kind: Any) -> None:
        at = len(self.pieces)
        self.pieces.append(Piece(at, at + 1, kind, text, self.line, at, path=path))


def _dumps(value: Any) -> str:
    """A decoded value as JSON, however deeply it is nested."""
    if isinstance(value, _Number):
        return str(value)
    if isinstance(value, _Object):
        members = (f"{json.dumps(key, ensure_ascii=False)}: {_dumps(member)}" for key, member in value)
        return f"{{{', '.join(members)}}}"
    if isinstance(value, list):
        return f"[{', '.join(map(_dumps, value))}]"
    return json.dumps(value, ensure_ascii=False)
