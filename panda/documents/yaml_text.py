"""YAML: values with their places, values as lines, front matter apart from its body. Pure."""

import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import frontmatter
import msgspec
import yaml
from frontmatter.default_handlers import YAMLHandler

from panda.documents.json_text import may_hold_halves, whole_characters
from panda.errors import DocumentError, FileFormatError, Problem

_WORDS: Mapping[str, Any] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **dict.fromkeys(("true", "True"), True),
    **dict.fromkeys(("false", "False"), False),
}
YAML_WORDS = frozenset({"y", "n", "yes", "no", "on", "off", "true", "false", "null"})
_NUMBER = re.compile(r"-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][-+]?\d+)?", re.ASCII)
_TYPED_INT = re.compile(r"-?(?:0|[1-9]\d{0,14})", re.ASCII)
_TYPED_FLOAT = re.compile(r"-?(?:0|[1-9]\d{0,8})\.(?:0|\d{0,5}[1-9])", re.ASCII)
_MOST_DIGITS = 1_234
_MOST_LEVELS = 100
_KEY_CHARS = 120
_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_TEXT_TAGS = (None, "!", "tag:yaml.org,2002:str")
_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class YamlTextError(ValueError):
    """YAML text that does not hold a JSON-like value; `line` counts from 1."""

    def __init__(self, message: str, line: int | None) -> None:
        super().__init__(message)
        self.line = line


class YamlNode(msgspec.Struct, frozen=True):
    """One value of a YAML text, with its place."""

    value: Any  # dict, list, str, int, float, bool or None; not to be changed
    start: int  # index of its first character
    end: int  # index behind its last, comments and blank lines behind it left out
    line: int  # from 1
    pairs: tuple[tuple["YamlNode", "YamlNode"], ...] = ()  # keys and values of a mapping
    items: tuple["YamlNode", ...] = ()  # of a list


_Pairs = tuple[tuple[YamlNode, YamlNode], ...]


def read_yaml(text: str, *, as_typed: bool = False, above: int = 0) -> YamlNode | None:
    """
    The value of a YAML text; None if there is none.

    Args:
        as_typed: What somebody typed: a number that would not print as it is typed is text, and of a key
            that stands twice the last value counts.
        above: Lines of the file above the text.

    Raises:
        YamlTextError: Not YAML, nested too deeply, or with an alias, a tag, a key that is no text or, unless
            as typed, a key twice.
    """
    try:
        try:
            return _compose(text, _LOADER, as_typed, above)
        except (yaml.YAMLError, UnicodeError):
            return _compose(text, yaml.SafeLoader, as_typed, above)  # it reads more and tells more
    except yaml.MarkedYAMLError as exc:
        mark = exc.problem_mark or exc.context_mark
        opened = exc.context_mark
        message = exc.problem or exc.context or "it cannot be read"
        if mark is not None and opened is not None and mark.line >= len(text.splitlines()):
            is_quote = exc.context == "while scanning a quoted scalar"
            message = f"{'a quote' if is_quote else 'what begins there'} is never closed"
            mark = opened
        raise YamlTextError(f"not valid YAML: {message}", above + mark.line + 1 if mark else None) from exc
    except (yaml.YAMLError, UnicodeError) as exc:
        raise YamlTextError(f"not valid YAML: {str(exc).splitlines()[0]}", None) from exc


def _compose(text: str, loader: Any, as_typed: bool, above: int) -> YamlNode | None:
    has_halves = may_hold_halves(text)
    levels: list[tuple[Any, list[YamlNode]]] = [(None, [])]  # what is open: its event, its nodes so far
    events: Any = yaml.parse(text, Loader=loader)
    for event in events:
        opening, nodes = levels[-1]
        start = event.start_mark.index
        end = event.end_mark.index
        line = above + event.start_mark.line + 1
        is_key = isinstance(opening, yaml.MappingStartEvent) and len(nodes) % 2 == 0
        if getattr(event, "tag", None) not in _TEXT_TAGS:
            raise YamlTextError(f"not a JSON-like value: the tag {event.tag} is not read", line)
        if isinstance(event, yaml.ScalarEvent):
            value: Any = event.value
            if event.implicit[0] and not is_key:
                value = read_typed(value) if as_typed else _plain_value(value, line)
            if event.style in ("|", ">"):
                end = start + len(text[start:end].rstrip())
            nodes.append(YamlNode(whole_characters(value) if has_halves else value, start, end, line))
        elif isinstance(event, yaml.CollectionStartEvent):
            if is_key:
                raise YamlTextError("not a JSON-like value: a key that is no text", line)
            if len(levels) > _MOST_LEVELS:
                raise YamlTextError("nested too deeply", line)
            levels.append((event, []))
        elif isinstance(event, yaml.CollectionEndEvent):
            levels.pop()
            start = opening.start_mark.index
            line = above + opening.start_mark.line + 1
            end = end if opening.flow_style else nodes[-1].end
            pairs: _Pairs = ()
            value = [item.value for item in nodes]
            if isinstance(event, yaml.MappingEndEvent):
                pairs = tuple(zip(nodes[::2], nodes[1::2], strict=True))
                nodes = []
                value = {key.value: item.value for key, item in pairs}
                if len(value) < len(pairs) and not as_typed:
                    _refuse_doubled(pairs)
            levels[-1][1].append(YamlNode(value, start, end, line, pairs=pairs, items=tuple(nodes)))
        elif isinstance(event, yaml.AliasEvent):
            message = f"not valid YAML: the alias *{event.anchor} is not read: write the value itself"
            raise YamlTextError(message, line)
        elif isinstance(event, yaml.DocumentStartEvent) and nodes:
            raise YamlTextError("not valid YAML: a second document begins", line)
    return next(iter(levels[0][1]), None)


def _refuse_doubled(pairs: _Pairs) -> None:
    lines: dict[str, int] = {}
    for key, _ in pairs:
        if key.value in lines:
            where = f"stands in line {lines[key.value]} and again in line {key.line}"
            raise YamlTextError(f"the key {key.value!r:.80} {where}", key.line)
        lines[key.value] = key.line


def _plain_value(source: str, line: int) -> Any:
    if source in _WORDS:
        return _WORDS[source]
    if not _NUMBER.fullmatch(source):
        return source
    if not source.lstrip("-").isdigit():
        if math.isfinite(number := float(source)):
            return number
        raise YamlTextError(f"not a JSON-like value: {source:.80} is not a finite number", line)
    if len(source) > _MOST_DIGITS:
        message = f"not a JSON-like value: a whole number of {len(source)} digits is too large"
        raise YamlTextError(message, line)
    return int(source)


def read_typed(source: str) -> Any:
    """
    Return the value of a plain word that somebody typed: null, true, false, a number that prints as typed,
    text.
    """
    if source in _WORDS:
        return _WORDS[source]
    if _TYPED_INT.fullmatch(source):
        return int(source)
    return float(source) if _TYPED_FLOAT.fullmatch(source) else source


def read_number(value: Any) -> float | None:
    """A number that a user typed, in whatever form; None if it is none."""
    try:
        return None if isinstance(value, bool) else float(value)
    except (TypeError, ValueError):
        return None


def parse_yaml(text: str) -> Any:
    """The JSON-like value of a YAML text, dates as text. Raises YamlTextError as read_yaml."""
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
    The line of a YAML or JSON file in which a dotted key stands, or as much of it as does; None if nothing
    does.

    >>> line_of("a:\n- b: 1\n- b: 2\n", "a[1].b"), line_of("a:\n  b: 1\n", "a.c"), line_of("a: 1", "b")
    (3, 1, None)
    """
    try:
        node = read_yaml(text, as_typed=True)
        line = None
        left = key
    except YamlTextError:  # JSON with a key of a thousand characters
        return None
    while node is not None and left:
        parts = [(name.value, name.line, value) for name, value in node.pairs]
        parts += [(f"[{at}]", value.line, value) for at, value in enumerate(node.items)]
        inside = [part for part in parts if re.match(rf"{re.escape(part[0])}(?![^.\[])", left)]
        if not inside:
            break
        name, line, node = max(inside, key=lambda part: len(part[0]))  # a name may have dots of its own
        left = left[len(name) :].removeprefix(".")
    return line


def render_yaml_value(value: object) -> str:
    """A JSON-like value as YAML on one line."""
    if isinstance(value, float):
        digits, e, exponent = repr(value).partition("e")
        return f"{digits}.0e{exponent}" if e and "." not in digits else f"{digits}{e}{exponent}"
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{_key(str(key))}: {render_yaml_value(value[key])}" for key in value) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(render_yaml_value, value)) + "]"
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
        return "[" + ", ".join(map(render_scalar, value)) + "]"
    value = as_read(value)
    return _quoted(value) if isinstance(value, str) else json.dumps(value)


def as_read(value: object) -> object:
    """A scalar or list as it is read from what render_scalar makes of it."""
    if isinstance(value, list | tuple):
        return [as_read(item) for item in value]
    return str(value) if isinstance(value, str) else read_typed(json.dumps(value))


_ESCAPES = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\t": "\\t", "\r": "\\x0d"}


def _quoted(text: str) -> str:
    return '"' + "".join(_ESCAPES.get(char) or _visible(char) for char in text) + '"'


def _visible(char: str) -> str:
    return char if char.isprintable() else char.encode("unicode_escape").decode()


@dataclass(frozen=True)
class FrontMatterText:
    """A text cut into its front matter and its body."""

    before: str  # the first border and all above it; "" without front matter
    source: str  # what stands between the borders, from the end of the first one's line on
    between: str  # the second border with its end of line
    body: str  # all that follows the front matter
    pairs: _Pairs = ()
    """Keys and values in their order: starts and ends are those in the source, lines those of the file."""

    @property
    def values(self) -> dict[str, Any]:
        """Values by key, of a key that stands twice the last; dates and unusual numbers as typed text."""
        return {key.value: item.value for key, item in self.pairs}


class _FrontMatter(YAMLHandler):
    """Gets front matter from the library, and reads it by read_yaml as it stands in *rest* of a file."""

    def __init__(self, rest: str, above: int) -> None:
        super().__init__()
        self._rest = rest
        self._above = above
        self.source: str | None = None  # None: the library has found no end of it
        self.node: YamlNode | None = None

    def load(self, fm: str, **kwargs: object) -> Any:
        body = self._rest.split("\n", fm.count("\n"))[-1]  # the library has made all ends of lines alike
        self.source = self._rest.removesuffix(body)
        self.node = read_yaml(self.source, as_typed=True, above=self._above)
        return self.node and self.node.value


@lru_cache(maxsize=8)
def split_front_matter(text: str, *, where: str) -> FrontMatterText:
    """A text cut in two. Raises DocumentError: the front matter has no end, is not YAML, or is no mapping."""
    lead = len(text) - len(text.lstrip("\ufeff \t\r\n"))
    above = text.count("\n", 0, lead)
    front = text[lead:]
    if not (border := YAMLHandler.FM_BOUNDARY.match(front)):
        return FrontMatterText("", "", "", text)
    handler = _FrontMatter(front[border.end() :], above + border[0].count("\n"))  # it may end in blank lines
    try:
        frontmatter.parse(front, handler=handler)
    except YamlTextError as exc:
        line = exc.line or above + 2
        advice = "mend that line" if exc.line else None
        raise DocumentError(f"the front matter is {exc}", where, line=line, fix=advice) from exc
    source = handler.source
    node = handler.node
    if source is None:
        fix = "end it with a line that holds only ---"
        raise DocumentError("the front matter is not closed", where, line=above + 1, fix=fix)
    if node is not None and not isinstance(node.value, dict):
        raise DocumentError("the front matter is no list of `key: value`", where, line=above + 2)
    start = lead + border.end()
    end = start + len(source)
    body = (text.find("\n", end) + 1) or len(text)
    return FrontMatterText(text[:start], source, text[end:body], text[body:], node.pairs if node else ())
