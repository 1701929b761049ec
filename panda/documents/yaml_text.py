"""YAML: one reader that keeps the places of values, values as lines, front matter. Pure."""

import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice, pairwise
from typing import Any

import yaml
from frontmatter.default_handlers import YAMLHandler

from panda.documents.json_text import may_hold_halves, whole_characters
from panda.errors import DocumentError, FileFormatError, Location, Problem

_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
YAML_WORDS = frozenset({"y", "n", "yes", "no", "on", "off", "true", "false", "null"})
_KEY_CHARS = 120
_INTEGER_BITS = 4096
_MOST_DIGITS = 1_234  # of a whole number of so many bits
_MOST_LEVELS = 100


def plain_value(value: object) -> Any:
    """
    A copy made of dict, list, str, int, float, bool and None only.

    Args:
        value: JSON-like value; any mapping counts as dict, a tuple as list.

    Raises:
        ValueError: Something else is inside, a key is no string, or a number is not finite or too large.
    """
    if value is None or isinstance(value, bool | str):
        return value
    if isinstance(value, int):
        if value.bit_length() > _INTEGER_BITS:  # beyond some size Python will not even print it
            raise ValueError(f"a whole number of {value.bit_length()} bits is too large")
        return value
    if isinstance(value, float):
        if not math.isfinite(value):
            raise ValueError(f"{value} is not a finite number")
        return value
    if isinstance(value, Mapping):
        for key in value:
            if not isinstance(key, str):
                raise ValueError(f"key {key!r} is not a string")
        return {key: plain_value(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain_value(item) for item in value]
    raise ValueError(f"{type(value).__name__} is no JSON-like value")


def render_yaml_value(value: object) -> str:
    """A value as YAML on one line."""
    if value is None or isinstance(value, bool):
        return json.dumps(value)
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        digits, e, exponent = repr(value).partition("e")
        return f"{digits}.0e{exponent}" if e and "." not in digits else f"{digits}{e}{exponent}"
    if isinstance(value, Mapping):
        pairs = (f"{_key(str(key))}: {render_yaml_value(item)}" for key, item in value.items())
        return "{" + ", ".join(pairs) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(render_yaml_value(item) for item in value) + "]"
    text = str(value)
    return text if _PLAIN.fullmatch(text) and text.lower() not in YAML_WORDS else _quoted(text)


def render_yaml_lines(values: Mapping[str, object], *, indent: str = "") -> str:
    """A mapping as YAML, one line for each key, each line ended."""
    gap = f"\n{indent}"
    return "".join(f"{indent}{_key(key, gap)}: {render_yaml_value(item)}\n" for key, item in values.items())


def _key(key: str, gap: str = "") -> str:
    name = render_yaml_value(key)
    return f"? {name}{gap}" if len(name) > _KEY_CHARS else name  # YAML wants long keys marked


def render_scalar(value: object) -> str:
    """A scalar or list as a memory file has it: texts in quotes, numbers that are too long as their text."""
    if isinstance(value, list | tuple):
        return "[" + ", ".join(render_scalar(item) for item in value) + "]"
    value = as_read(value)
    return _quoted(value) if isinstance(value, str) else json.dumps(value)


def as_read(value: object) -> object:
    """A scalar or list as it is read from what render_scalar makes of it."""
    if isinstance(value, list | tuple):
        return [as_read(item) for item in value]
    return str(value) if isinstance(value, str) else read_typed(json.dumps(value))


def _quoted(text: str) -> str:
    return '"' + "".join(_ESCAPES.get(char) or _visible(char) for char in text) + '"'


_ESCAPES = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\t": "\\t"}


def _visible(char: str) -> str:
    """A character, or its escape where it shows nothing."""
    if char.isprintable() and char != "\ufeff":
        return char
    code = ord(char)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


class YamlTextError(ValueError):
    """YAML text that does not hold a JSON-like value; `line` counts from 1 inside that text."""

    def __init__(self, message: str, line: int | None) -> None:
        super().__init__(message)
        self.line = line


@dataclass(frozen=True)
class YamlNode:
    """One value of a YAML text, with its place."""

    value: Any  # dict, list, str, int, float, bool or None; not to be changed
    start: int  # index of its first character
    end: int  # index behind its last, comments and blank lines behind it left out
    line: int  # from 1
    is_flow: bool = False  # whether it stands in [] or {}
    is_marked: bool = False  # whether it has an anchor or tag
    pairs: tuple[tuple["YamlNode", "YamlNode"], ...] = ()  # keys and values of a mapping
    items: tuple["YamlNode", ...] = ()  # of a list


def parse_yaml(text: str) -> Any:
    """The JSON-like value of a YAML text, dates as text (YamlTextError as read_yaml)."""
    node = read_yaml(text)
    return None if node is None else node.value


def load_yaml(text: str, *, where: str, fault: type[Problem] = FileFormatError) -> Any:
    """
    The JSON-like value of a YAML file, dates as text.

    Raises:
        FileFormatError: The *fault* is raised with its line where read_yaml finds one.
    """
    try:
        return parse_yaml(text)
    except YamlTextError as exc:
        raise fault(
            str(exc), where, line=exc.line, fix=f"correct {'that line' if exc.line else 'the file'}"
        ) from exc


def line_of(text: str, key: str) -> int | None:
    r"""
    The line of a YAML file in which a dotted key stands, or as much of it as does; None if nothing does.

    >>> line_of("a:\n- b: 1\n- b: 2\n", "a[1].b"), line_of("a:\n  b: 1\n", "a.c"), line_of("a: 1", "b")
    (3, 1, None)
    """
    node, line, left = read_yaml(text), None, key
    while node is not None and left:
        parts = [(name.value, name.line, value) for name, value in node.pairs]
        parts += [(f"[{at}]", value.line, value) for at, value in enumerate(node.items)]
        inside = [part for part in parts if re.match(rf"{re.escape(part[0])}(?![^.\[])", left)]
        if not inside:
            break
        name, line, node = max(inside, key=lambda part: len(part[0]))  # a name may have dots of its own
        left = left[len(name) :].removeprefix(".")
    return line


def read_yaml(text: str, *, as_typed: bool = False) -> YamlNode | None:
    """
    The value of a YAML text; None if there is none.

    Args:
        as_typed: What somebody typed: a number that would not print as it is typed is text, and of a key
            that stands twice the last value counts.

    Raises:
        YamlTextError: Not YAML, nested too deeply, or with an alias, a tag, a key that is no text or, unless
            as typed, a key twice.
    """
    try:
        return _Reader(text, _events(text), as_typed).document()
    except yaml.MarkedYAMLError as exc:
        raise _fault(exc, text) from exc
    except (yaml.YAMLError, UnicodeError) as exc:
        raise YamlTextError(f"not valid YAML: {str(exc).splitlines()[0]}", None) from exc


def _fault(exc: yaml.MarkedYAMLError, text: str) -> YamlTextError:
    """What is wrong with a text that is no YAML, and where; of what is never closed, where it was opened."""
    mark, opened = exc.problem_mark or exc.context_mark, exc.context_mark
    message = exc.problem or exc.context or "it cannot be read"
    if mark is not None and opened is not None and mark.line >= len(text.splitlines()):
        what = "a quote" if exc.context == "while scanning a quoted scalar" else "what begins there"
        message, mark = f"{what} is never closed", opened
    return YamlTextError(f"not valid YAML: {message}", mark.line + 1 if mark else None)


def _events(text: str) -> list[Any]:
    """What libyaml finds; where it stops, what the slower parser does, which knows more and tells more."""
    try:
        return _events_of(text, getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    except (yaml.YAMLError, UnicodeError):
        return _events_of(text, yaml.SafeLoader)


def _events_of(text: str, loader: Any) -> list[Any]:
    events: list[Any] = []
    depth = 0
    found: Any = yaml.parse(text, Loader=loader)
    for event in found:
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if depth > _MOST_LEVELS:
            raise YamlTextError("nested too deeply", event.start_mark.line + 1)
        events.append(event)
    return events


class _Reader:
    """Makes values out of the events of one text."""

    def __init__(self, text: str, events: list[Any], as_typed: bool) -> None:
        self._text = text
        self._events = iter(events)
        self._as_typed = as_typed
        self._has_halves = may_hold_halves(text)

    def document(self) -> YamlNode | None:
        next(self._events)
        if isinstance(next(self._events), yaml.StreamEndEvent):
            return None
        node = self._node(next(self._events))
        next(self._events)
        if not isinstance(other := next(self._events), yaml.StreamEndEvent):
            raise YamlTextError("not valid YAML: a second document begins", other.start_mark.line + 1)
        return node

    def _node(self, event: Any, *, is_key: bool = False) -> YamlNode:
        start, end, line = event.start_mark.index, event.end_mark.index, event.start_mark.line + 1
        if isinstance(event, yaml.AliasEvent):
            message = f"not valid YAML: the alias *{event.anchor} is not read: write the value itself"
            raise YamlTextError(message, line)
        if event.tag not in _TEXT_TAGS:
            raise YamlTextError(f"not a JSON-like value: the tag {event.tag} is not read", line)
        is_marked = bool(event.anchor or event.tag)
        if isinstance(event, yaml.ScalarEvent):
            if event.style in ("|", ">"):
                end = start + len(self._text[start:end].rstrip())
            is_plain = event.implicit[0] and not is_key
            value = self._scalar(event.value, line) if is_plain else event.value
            return YamlNode(self._whole(value), start, end, line, is_marked=is_marked)
        if is_key:
            raise YamlTextError("not a JSON-like value: a key that is no text", line)
        if isinstance(event, yaml.MappingStartEvent):
            return self._mapping(event, is_marked)
        items, closing = self._items()
        end = closing.end_mark.index if event.flow_style else items[-1].end
        values = [item.value for item in items]
        return YamlNode(values, start, end, line, event.flow_style, is_marked, items=tuple(items))

    def _items(self) -> tuple[list[YamlNode], Any]:
        items = []
        while not isinstance(event := next(self._events), yaml.SequenceEndEvent):
            items.append(self._node(event))
        return items, event

    def _mapping(self, opening: Any, is_marked: bool) -> YamlNode:
        pairs: list[tuple[YamlNode, YamlNode]] = []
        lines: dict[str, int] = {}
        while not isinstance(event := next(self._events), yaml.MappingEndEvent):
            key = self._node(event, is_key=True)
            if key.value in lines and not self._as_typed:
                first = lines[key.value]
                message = f"the key {key.value!r:.80} stands in line {first} and again in line {key.line}"
                raise YamlTextError(message, key.line)
            lines[key.value] = key.line
            pairs.append((key, self._node(next(self._events))))
        closing: Any = event
        end = closing.end_mark.index if opening.flow_style else pairs[-1][1].end
        value = {key.value: item.value for key, item in pairs}
        start, line = opening.start_mark.index, opening.start_mark.line + 1
        return YamlNode(value, start, end, line, opening.flow_style, is_marked, tuple(pairs))

    def _scalar(self, source: str, line: int) -> object:
        if self._as_typed:
            return read_typed(source)
        if source in _WORDS:
            return _WORDS[source]
        if not _NUMBER.fullmatch(source):
            return source
        if not source.lstrip("-").isdigit():
            number = float(source)
            if math.isfinite(number):
                return number
            raise YamlTextError(f"not a JSON-like value: {source:.80} is not a finite number", line)
        if len(source) > _MOST_DIGITS:
            message = f"not a JSON-like value: a whole number of {len(source)} digits is too large"
            raise YamlTextError(message, line)
        return int(source)

    def _whole(self, value: object) -> object:
        return whole_characters(value) if self._has_halves else value


_TEXT_TAGS = (None, "!", "tag:yaml.org,2002:str")
_WORDS: Mapping[str, Any] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    "true": True,
    "True": True,
    "false": False,
    "False": False,
}
_NUMBER = re.compile(r"-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][-+]?\d+)?", re.ASCII)
_INT = re.compile(r"-?(?:0|[1-9]\d{0,14})", re.ASCII)
_FLOAT = re.compile(r"-?(?:0|[1-9]\d{0,8})\.(?:0|\d{0,5}[1-9])", re.ASCII)


def read_typed(source: str) -> Any:
    """What a plain word says that somebody typed: null, true, false, a number that prints as typed, text."""
    if source in _WORDS:
        return _WORDS[source]
    return int(source) if _INT.fullmatch(source) else float(source) if _FLOAT.fullmatch(source) else source


def read_number(value: object) -> float | None:
    """A number that a user typed, in whatever form; None if it is none."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        return float(value)
    except ValueError:
        return None


_STARTS_ENTRY = re.compile(r"^[^\s#]", re.MULTILINE)
_BLANK_LINES = re.compile(r"(?:[^\S\n]*(?:#.*)?(?:\n|\Z))*")
_NO_PLAIN_START = frozenset("{}[]&*!|>%@`?,:-")
_LEAD = "\ufeff \t\r\n"


@dataclass(frozen=True)
class YamlEntry:
    """One key of a front matter, with its place."""

    key: str
    value: Any  # not to be changed
    line: int  # line of the file, from 1
    text: str = ""  # its lines, with comments and blank lines up to the next entry


@dataclass(frozen=True)
class FrontMatterText:
    """A text cut into its front matter and its body."""

    entries: tuple[YamlEntry, ...]  # in their order; of a key that stands twice the last one counts
    before: str  # the first boundary with its end of line and all above it; "" without front matter
    lead: str  # what stands above the first entry; if the entries can only be read together, they too
    between: str  # the second boundary with its end of line
    body: str  # all that follows the front matter
    are_apart: bool  # whether each entry is read alone

    @property
    def values(self) -> dict[str, Any]:
        """Values by key; dates and unusual numbers are the text that was typed."""
        return {entry.key: entry.value for entry in self.entries}


@lru_cache(maxsize=8)
def split_front_matter(text: str, *, where: str) -> FrontMatterText:
    """
    Cut a text into front matter and body.

    Raises:
        DocumentError: The front matter has no end, is not YAML, or is no mapping.
    """
    lead = len(text) - len(text.lstrip(_LEAD))
    marks = [lead + mark.start() for mark in islice(YAMLHandler.FM_BOUNDARY.finditer(text[lead:]), 2)]
    if marks[:1] != [lead]:
        return FrontMatterText((), "", "", "", text, are_apart=True)
    start = text.find("\n", lead) + 1
    if len(marks) < 2:
        place = Location(where, line=text.count("\n", 0, lead) + 1)
        fix = "end it with a line that holds only ---"
        raise DocumentError("the front matter is not closed", where=place, fix=fix)
    source, above = text[start : marks[1]], text.count("\n", 0, start)
    body = (text.find("\n", marks[1]) + 1) or len(text)
    frame = (text[marks[1] : body], text[body:])
    entries = _split(source, above)
    if entries is not None:
        first = _STARTS_ENTRY.search(source)
        rest = source[: first.start()] if first else source
        return FrontMatterText(entries, text[:start], rest, *frame, are_apart=True)
    entries = _read_whole(source, where, above)
    return FrontMatterText(entries, text[:start], source, *frame, are_apart=False)


def _split(source: str, above: int) -> tuple[YamlEntry, ...] | None:
    """The entries of a front matter, each read alone; None if that cannot be done."""
    starts = [match.start() for match in _STARTS_ENTRY.finditer(source)]
    first = starts[0] if starts else len(source)
    if not _BLANK_LINES.fullmatch(source, 0, first):
        return None
    line = above + 1 + source.count("\n", 0, first)
    entries = []
    for start, end in pairwise([*starts, len(source)]):
        chunk = source[start:end]
        if (pair := _read_entry(chunk)) is None:
            return None
        entries.append(YamlEntry(*pair, line, chunk))
        line += chunk.count("\n")
    return tuple(entries)


@lru_cache(maxsize=20_000)
def _read_entry(chunk: str) -> tuple[str, Any] | None:
    if chunk[0] in _NO_PLAIN_START:
        return None
    try:
        node = read_yaml(chunk, as_typed=True)
    except YamlTextError:
        return None
    return (node.pairs[0][0].value, node.pairs[0][1].value) if node and len(node.pairs) == 1 else None


def _read_whole(source: str, where: str, above: int) -> tuple[YamlEntry, ...]:
    try:
        node = read_yaml(source, as_typed=True)
    except YamlTextError as exc:
        place, fix = Location(where, line=above + (exc.line or 1)), "mend that line" if exc.line else None
        raise DocumentError(f"the front matter is {exc}", where=place, fix=fix) from exc
    if node is not None and not isinstance(node.value, dict):
        raise DocumentError(
            "the front matter is no list of `key: value`", where=Location(where, line=above + 1)
        )
    pairs = node.pairs if node else ()
    return tuple(YamlEntry(key.value, item.value, above + key.line) for key, item in pairs)
