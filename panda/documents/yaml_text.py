"""YAML: one reader that keeps the places of values, values as lines, front matter. Pure."""

import json
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from typing import Any

import yaml
from frontmatter.default_handlers import YAMLHandler

from panda.documents.json_text import may_hold_halves, whole_characters
from panda.errors import DocumentError, FileFormatError, Location, Problem

_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
YAML_WORDS = frozenset({"y", "n", "yes", "no", "on", "off", "true", "false", "null"})
_KEY_CHARS = 120
_MOST_DIGITS = 1_234
_MOST_LEVELS = 100


def render_yaml_value(value: object) -> str:
    """A JSON-like value as YAML on one line."""
    if isinstance(value, float):
        digits, e, exponent = repr(value).partition("e")
        return f"{digits}.0e{exponent}" if e and "." not in digits else f"{digits}{e}{exponent}"
    if isinstance(value, Mapping):
        pairs = (f"{_key(str(key))}: {render_yaml_value(item)}" for key, item in value.items())
        return "{" + ", ".join(pairs) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(render_yaml_value(item) for item in value) + "]"
    if not isinstance(value, str):
        return json.dumps(value)
    return value if _PLAIN.fullmatch(value) and value.lower() not in YAML_WORDS else _quoted(value)


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
    pairs: tuple[tuple["YamlNode", "YamlNode"], ...] = ()  # keys and values of a mapping
    items: tuple["YamlNode", ...] = ()  # of a list


def parse_yaml(text: str) -> Any:
    """The JSON-like value of a YAML text, dates as text (YamlTextError as read_yaml)."""
    node = read_yaml(text)
    return None if node is None else node.value


def load_yaml(text: str, *, where: str, fault: type[Problem] = FileFormatError) -> Any:
    """parse_yaml of a file's text; what is wrong is raised as a *fault* with file and line."""
    try:
        return parse_yaml(text)
    except YamlTextError as exc:
        fix = f"correct {'that line' if exc.line else 'the file'}"
        raise fault(str(exc), where, line=exc.line, fix=fix) from exc


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
        try:
            events = _events(text, getattr(yaml, "CSafeLoader", yaml.SafeLoader))
        except (yaml.YAMLError, UnicodeError):
            events = _events(text, yaml.SafeLoader)  # slower, but it reads more and tells more
        return _Reader(text, iter(events), as_typed).document()
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


def _events(text: str, loader: Any) -> list[Any]:
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

    def __init__(self, text: str, events: Iterator[Any], as_typed: bool) -> None:
        self._text = text
        self._events = events
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
        if isinstance(event, yaml.ScalarEvent):
            if event.style in ("|", ">"):
                end = start + len(self._text[start:end].rstrip())
            is_plain = event.implicit[0] and not is_key
            value = self._scalar(event.value, line) if is_plain else event.value
            return YamlNode(whole_characters(value) if self._has_halves else value, start, end, line)
        if is_key:
            raise YamlTextError("not a JSON-like value: a key that is no text", line)
        if isinstance(event, yaml.MappingStartEvent):
            return self._mapping(event)
        items = []
        while not isinstance(inner := next(self._events), yaml.SequenceEndEvent):
            items.append(self._node(inner))
        closing: Any = inner
        end = closing.end_mark.index if event.flow_style else items[-1].end
        values = [item.value for item in items]
        return YamlNode(values, start, end, line, event.flow_style, items=tuple(items))

    def _mapping(self, opening: Any) -> YamlNode:
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
        return YamlNode(value, start, end, line, opening.flow_style, tuple(pairs))

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


_TEXT_TAGS = (None, "!", "tag:yaml.org,2002:str")
_WORDS: Mapping[str, Any] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **dict.fromkeys(("true", "True"), True),
    **dict.fromkeys(("false", "False"), False),
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


_LEAD = "\ufeff \t\r\n"


@dataclass(frozen=True)
class YamlEntry:
    """One key of a front matter, with its place."""

    key: str
    value: Any  # not to be changed
    line: int  # line of the file, from 1


@dataclass(frozen=True)
class FrontMatterText:
    """A text cut into its front matter and its body."""

    before: str  # the first boundary with its end of line and all above it; "" without front matter
    source: str  # what stands between the boundaries
    between: str  # the second boundary with its end of line
    body: str  # all that follows the front matter
    pairs: tuple[tuple[YamlNode, YamlNode], ...] = ()  # keys and values, with their places in the source

    @property
    def entries(self) -> list[YamlEntry]:
        """In their order; of a key that stands twice the last one counts."""
        above = self.before.count("\n")
        return [YamlEntry(key.value, item.value, above + key.line) for key, item in self.pairs]

    @property
    def values(self) -> dict[str, Any]:
        """Values by key; dates and unusual numbers are the text that was typed."""
        return {key.value: item.value for key, item in self.pairs}


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
        return FrontMatterText("", "", "", text)
    start = text.find("\n", lead) + 1
    if len(marks) < 2:
        place = Location(where, line=text.count("\n", 0, lead) + 1)
        fix = "end it with a line that holds only ---"
        raise DocumentError("the front matter is not closed", where=place, fix=fix)
    above = text.count("\n", 0, start)
    body = (text.find("\n", marks[1]) + 1) or len(text)
    try:
        node = read_yaml(text[start : marks[1]], as_typed=True)
    except YamlTextError as exc:
        line, advice = above + (exc.line or 1), "mend that line" if exc.line else None
        raise DocumentError(f"the front matter is {exc}", where, line=line, fix=advice) from exc
    if node is not None and not isinstance(node.value, dict):
        raise DocumentError("the front matter is no list of `key: value`", where, line=above + 1)
    pairs = node.pairs if node else ()
    return FrontMatterText(text[:start], text[start : marks[1]], text[marks[1] : body], text[body:], pairs)
