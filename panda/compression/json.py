"""A JSON document into pieces, one a value, and back into valid JSON with some of them left out."""

import json
import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from itertools import groupby, pairwise
from typing import Any

from panda.compression.errors_told import NO_ERROR, is_error_key, is_error_level
from panda.compression.pieces import (
    ERROR_TIER,
    MARK,
    TITLE_TIER,
    Piece,
    Wordings,
    is_chained,
    prose_spans,
    with_heads,
)
from panda.documents.safe_text import count_noun

_LONG_CHARS = 160
_DEEPEST = 100
_NAMES = ("name", "title", "product", "zone", "type", "label", "id", "url")
"""Keys that say what an object is; the first one there stands wherever something of the object stands …"""
_SAYS_ITSELF = re.compile(r": (?:https?://\S+|\d{4}-\d\d-\d\d\S*)\Z")
"""… but for a URL or time alone."""
_UNSURE = 0.5
"""An object with a lower confidence shows it wherever something of it stands."""
_TITLE_KEYS = frozenset(("name", "title", "status", "query", "description", "summary", "version"))
"""Keys at the top of a document that say what it is."""
_LEVEL = 0.25
_KEY_PLACE = 0.12
_ITEM_PLACE = 0.35
_SENTENCE = 0.3
_SAME_COST = 2.0
_ODD_COST = 0.35
_ALIKE = 3
"""So many values below the same keys are compared."""
_RARE_SHARE = 0.25
_MOST_SHARE = 0.6
"""Part of them that say the same, from which on the others are what differs."""


class _Number(str):
    """As it is written, so it may have any length; NaN and Infinity too."""


class _Object(list[tuple[str, Any]]):
    """Its members; a key may be there twice."""


_DECODER = json.JSONDecoder(
    object_pairs_hook=_Object, parse_int=_Number, parse_float=_Number, parse_constant=_Number
)


@dataclass
class _JsonNode:
    first: int  # index of its first piece
    end: int = 0  # index behind its last
    key: str = ""  # its key as JSON, with the colon; empty in a list
    brackets: str = ""  # of an object or list that holds something
    children: list["_JsonNode"] = field(default_factory=list)  # of such a one
    text: str = ""  # of any other, as JSON; of a string in several pieces as it is
    spans: list[tuple[int, int]] = field(default_factory=list)  # of such a string: where its pieces stand

    def render(self, selected: Set[int], wordings: Wordings, pieces: Sequence[Piece]) -> str:
        """Return what is kept of it, as JSON; empty if that is nothing."""
        if self.spans:
            return self._render_text(selected, wordings)
        if not self.brackets:
            return self.text if self.first in selected else ""
        texts = [
            child.key + text if (text := child.render(selected, wordings, pieces)) else ""
            for child in self.children
        ]
        if not any(texts):
            return ""
        parts = [text for text in texts if text]
        if self.brackets == "{}" and not all(texts):
            parts.append(f'"[… {texts.count("")} more]": null')
        elif self.brackets == "[]":
            parts = list(self._items(texts, pieces))
        return f"{self.brackets[0]}{', '.join(parts)}{self.brackets[1]}"

    def _items(self, texts: Sequence[str], pieces: Sequence[Piece]) -> Iterator[str]:
        """Yield the items of a list that are kept, and a mark for each stretch of others."""
        for is_kept, group in groupby(range(len(texts)), key=lambda n: bool(texts[n])):
            places = list(group)
            if is_kept:
                yield from (texts[n] for n in places)
                continue
            behind = places[-1] + 1
            end = self.children[behind].first if behind < len(texts) else self.end
            firsts = [child.first for child in self.children[places[0] : behind]]
            is_error = any(piece.tier == ERROR_TIER for piece in pieces[firsts[0] : end])
            errors = sum(
                any(piece.tier == ERROR_TIER for piece in pieces[first:last])
                for first, last in pairwise([*firsts, end])
            )
            counts = [f"{len(places) - errors} more"] if errors < len(places) else []
            if is_error:
                counts.append(count_noun(errors, "error"))
            yield json.dumps(f"[… {', '.join(counts)}]", ensure_ascii=False)

    def _render_text(self, selected: Set[int], wordings: Wordings) -> str:
        parts: list[str] = []
        last = self.first - 1
        end = 0
        for i, (start, stop) in enumerate(self.spans, self.first):
            if i in selected and i > last:
                if i == last + 1:
                    parts.append(self.text[end:start])
                else:
                    parts.append(f" {MARK} " if parts else f"{MARK} ")
                last, text = wordings.get(i, (i, self.text[start:stop]))
                end = self.spans[last - self.first][1]
                parts.append(text)
        gap = f" {MARK}" if last < self.first + len(self.spans) - 1 else ""
        return json.dumps("".join(parts) + gap, ensure_ascii=False) if parts else ""


@dataclass(frozen=True)
class JsonOutline:
    source: str  # the document
    pieces: Sequence[Piece]  # its values, long strings in several pieces
    root: _JsonNode  # the value itself

    def render(self, selected: Set[int], wordings: Wordings | None = None) -> str:
        """The document with these pieces, `"[…]"` for what was left out."""
        text = self.root.render(with_heads(self.pieces, selected), wordings or {}, self.pieces)
        bare = f'["{MARK}"]' if self.root.brackets == "[]" else f'{{"{MARK}": null}}'
        return (text or bare) + ("\n" if self.source.endswith("\n") else "")

    def text(self, first: int, last: int) -> str:
        """Return what the pieces from one to another say, which are those of one string."""
        return " ".join(piece.text for piece in self.pieces[first : last + 1])


def parse_json(source: str) -> JsonOutline | None:
    """
    The pieces of a JSON object or list, None for any other text. What is nested too deeply is one piece.

    >>> outline = parse_json('{"price": 697.00, "tags": ["a", "b"]}')
    >>> [piece.text for piece in outline.pieces]
    ['price: 697.00', 'tags: a', 'tags: b']
    >>> outline.render({0, 2})
    '{"price": 697.00, "tags": ["[… 1 more]", "b"]}'
    """
    if source.lstrip()[:1] not in ("{", "["):
        return None
    try:
        value = _DECODER.decode(source)
        parser = _JsonParser()
        root = parser.parse(value, (), 0)
    except (ValueError, RecursionError):
        return None
    _Weigher(parser.pieces, root).weigh(root, 0.0)
    return JsonOutline(source, tuple(parser.pieces), root)


class _JsonParser:
    def __init__(self) -> None:
        self.pieces: list[Piece] = []
        self.line = 0

    def parse(self, value: Any, path: tuple[str, ...], depth: int) -> _JsonNode:
        node = _JsonNode(len(self.pieces))
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
        node.end = len(self.pieces)
        return node

    def _name(self, node: _JsonNode, members: Mapping[str, Any]) -> None:
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
        if name is None and sure is None:
            return
        for i in range(node.first, len(self.pieces)):
            piece = self.pieces[i]
            heads = {flag} if _SAYS_ITSELF.search(piece.text) else {name, flag}
            piece.heads = (*piece.heads, *(head for head in heads - {i} if head is not None))
            if piece.confidence is None:
                piece.confidence = sure

    def _string(self, node: _JsonNode, text: str, path: tuple[str, ...]) -> None:
        if len(text) <= _LONG_CHARS:
            node.text = json.dumps(text, ensure_ascii=False)
            self._leaf(path, text)
            return
        node.text = text
        self.line += 1
        for sentence in prose_spans(text, 0, len(text)):
            node.spans += sentence
            chain: list[int] = []
            for start, end in sentence:
                self._add(path, text[start:end], "sentence")
                self.pieces[-1].heads = tuple(chain)
                if is_chained(sentence):
                    chain = [len(self.pieces) - 1]

    def _leaf(self, path: tuple[str, ...], text: str) -> None:
        self.line += 1
        self._add(path, f"{path[-1]}: {text}" if path else text, "field")

    def _add(self, path: tuple[str, ...], text: str, kind: Any) -> None:
        at = len(self.pieces)
        self.pieces.append(Piece(at, at + 1, kind, text, line=self.line, unit=at, path=path))


class _Weigher:
    """Says of each value how much a reader needs it: the shape, one full example, what differs from it."""

    def __init__(self, pieces: Sequence[Piece], root_node: _JsonNode) -> None:
        self.pieces = pieces
        self.shapes: list[tuple[str, ...]] = [()] * len(pieces)
        """Keys that each value stands below, those of a set of like objects as one."""
        self.objects: Counter[tuple[str, ...]] = Counter()
        self._find_shapes(root_node, ())
        alike: dict[tuple[str, ...], Counter[str]] = defaultdict(Counter)
        for piece, shape in zip(pieces, self.shapes, strict=True):
            alike[shape][piece.text.partition(": ")[2]] += 1
        self.most: dict[tuple[str, ...], str] = {}
        """Of values below the same keys, the one that most of them are; none where they all differ."""
        self.rare: set[tuple[str, ...]] = set()
        """Keys that few of the like objects have."""
        for shape, counts in alike.items():
            text, count = counts.most_common(1)[0]
            if counts.total() >= _ALIKE and count >= _MOST_SHARE * counts.total():
                self.most[shape] = text
            objects = self.objects[shape[:-1]]
            if objects >= _ALIKE and counts.total() <= _RARE_SHARE * objects:
                self.rare.add(shape)

    def _find_shapes(self, node: _JsonNode, shape: tuple[str, ...]) -> None:
        if not node.brackets:
            self.shapes[node.first : node.end] = [shape] * (node.end - node.first)
        self.objects[shape] += node.brackets == "{}"
        is_set = node.brackets == "{}" and _is_set_of_objects(node)
        for child in node.children:
            key = "*" if is_set else child.key
            self._find_shapes(child, (*shape, key) if node.brackets == "{}" else shape)

    def weigh(self, node: _JsonNode, cost: float, *, is_example: bool = True) -> None:
        """Set the cost of the values of a node, which itself costs so much."""
        if not node.brackets:
            self._weigh_value(node, cost, is_example=is_example)
            return
        for place, child in enumerate(node.children):
            if node.brackets == "{}":
                own = cost + _KEY_PLACE * math.log2(1 + place)
            else:
                own = cost + _ITEM_PLACE * math.log2(1 + place)
            if child.brackets:
                own += _LEVEL
            is_member = node.brackets == "{}" and not _is_set_of_objects(node)
            is_first = is_example and (is_member or place == 0)
            self.weigh(child, own, is_example=is_first)

    def _weigh_value(self, node: _JsonNode, cost: float, *, is_example: bool) -> None:
        for place, piece in enumerate(self.pieces[node.first : node.end]):
            piece.cost = cost + _SENTENCE * math.log2(1 + place)
            value = piece.text.partition(": ")[2].strip().lower()
            is_level = piece.path[-1:] in (("level",), ("severity",)) and is_error_level(f"level={value}")
            keys_tell = any(map(is_error_key, piece.path)) and value not in NO_ERROR
            if (
                keys_tell
                or is_level
                or (piece.path[-1:] == ("status",) and value in ("error", "failed", "failure"))
            ):
                piece.tier = ERROR_TIER
                piece.noun = "error"
            elif self.objects[()] == 1 and len(piece.path) == 1 and piece.path[0].lower() in _TITLE_KEYS:
                piece.tier = TITLE_TIER
            elif not is_example:
                shape = self.shapes[node.first]
                usual = self.most.get(shape)
                if shape in self.rare or (usual is not None and piece.text.partition(": ")[2] != usual):
                    piece.cost = _ODD_COST + 0.05 * piece.cost
                elif usual is not None:
                    piece.cost += _SAME_COST


def _is_set_of_objects(node: _JsonNode) -> bool:
    """Return whether the values of an object are objects with mostly the same keys, as entries by name."""
    if len(node.children) < _ALIKE or any(child.brackets != "{}" for child in node.children):
        return False
    keys = [{member.key for member in child.children} for child in node.children]
    counts = Counter(key for own in keys for key in own)
    return 2 * sum(map(len, keys)) > len(counts) * len(keys)


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
