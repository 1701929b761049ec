"""YAML as we write and read it: JSON-like values, front matter with its places kept. Pure."""

import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import Any

import yaml
from frontmatter.default_handlers import YAMLHandler

from panda.documents.json_text import may_hold_halves, whole_characters
from panda.errors import DocumentError

_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
YAML_WORDS = frozenset({"y", "n", "yes", "no", "on", "off", "true", "false", "null"})
_KEY_CHARS = 120
_INTEGER_BITS = 4096
_MOST_LEVELS = 100
_TIMESTAMP = "tag:yaml.org,2002:timestamp"


class NoAliasLoader(yaml.SafeLoader):
    """YAML nested within reason, without aliases: ten lines of these can be a thousand million values."""

    depth = 0

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        if self.check_event(yaml.AliasEvent):
            event = self.get_event()  # type: ignore[no-untyped-call]  # the library has no types
            problem = f"the alias *{event.anchor} is not read: write the value itself"
            raise yaml.composer.ComposerError(None, None, problem, event.start_mark)
        if self.depth == _MOST_LEVELS:
            raise YamlTextError("nested too deeply", self.line + 1)
        self.depth += 1
        try:
            return super().compose_node(parent, index)
        finally:
            self.depth -= 1


class _Loader(NoAliasLoader):
    """YAML without dates, an instant stays the text that it is, in which no map has a key twice."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        lines: dict[object, int] = {}
        for key, _ in node.value:
            line = key.start_mark.line + 1
            name = key.value if isinstance(key, yaml.ScalarNode) else key
            if name in lines:
                message = f"the key {name!r:.80} stands in line {lines[name]} and again in line {line}"
                raise YamlTextError(message, line)
            lines[name] = line
        return super().construct_mapping(node, deep)


class _QuickLoader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]  # libyaml may be missing
    """The same by libyaml, for texts that are known to hold neither aliases nor deep nesting."""


_Loader.yaml_implicit_resolvers = _QuickLoader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag != _TIMESTAMP]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
_NOT_OURS = re.compile(r"^ {0,2}[^\S ]|^ {3}|^ {0,2}[?-]|&", re.MULTILINE)
_MOST_BRACKETS = 200


def plain_value(value: object) -> Any:
    """
    A copy made of dict, list, str, int, float, bool and None only.

    Args:
        value: JSON-like value; any mapping counts as dict, a tuple as list.

    Raises:
        ValueError: Something else is inside, a key is no string, or a number is not finite or too large.

    >>> plain_value({"a": (1, None)})
    {'a': [1, None]}
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
    r"""
    A value as YAML on one line.

    >>> render_yaml_value(["turn:811", "budget", 0.5, None])
    '["turn:811", budget, 0.5, null]'
    >>> render_yaml_value({"quote": "a\nb"})
    '{quote: "a\\nb"}'
    """
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        digits, e, exponent = repr(value).partition("e")
        return f"{digits}.0e{exponent}" if e and "." not in digits else f"{digits}{e}{exponent}"
    if isinstance(value, Mapping):
        return "{" + ", ".join(_pair(str(key), item) for key, item in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(render_yaml_value(item) for item in value) + "]"
    return _render_string(str(value))


def render_yaml_lines(values: Mapping[str, object], *, indent: str = "") -> str:
    """
    A mapping as YAML, one line for each key, each line ended.

    >>> render_yaml_lines({"turn": 812, "mode": "chat"})
    'turn: 812\\nmode: chat\\n'
    """
    return "".join(_line(key, item, indent) for key, item in values.items())


def _line(key: str, item: object, indent: str) -> str:
    name = _render_string(key)
    if len(name) > _KEY_CHARS:  # YAML wants long keys marked
        return f"{indent}? {name}\n{indent}: {render_yaml_value(item)}\n"
    return f"{indent}{name}: {render_yaml_value(item)}\n"


def _pair(key: str, item: object) -> str:
    name = _render_string(key)
    mark = "? " if len(name) > _KEY_CHARS else ""
    return f"{mark}{name}: {render_yaml_value(item)}"


def _render_string(text: str) -> str:
    if _PLAIN.fullmatch(text) and text.lower() not in YAML_WORDS:
        return text
    return '"' + "".join(_escape_char(char) for char in text) + '"'


def _escape_char(char: str) -> str:
    if char in '"\\':
        return "\\" + char
    if char == "\n":
        return "\\n"
    if char == "\t":
        return "\\t"
    return _visible(char)


def yaml_fault(exc: yaml.MarkedYAMLError, text: str) -> tuple[str, yaml.Mark | None]:
    """What is wrong with a text that is no YAML, and where; of what is never closed, where it was opened."""
    mark = exc.problem_mark or exc.context_mark
    if mark is None or exc.context_mark is None or mark.line < len(text.splitlines()):
        return exc.problem or exc.context or "it cannot be read", mark
    what = "a quote" if exc.context == "while scanning a quoted scalar" else "what begins there"
    return f"{what} is never closed", exc.context_mark


def parse_yaml(text: str) -> Any:
    """
    The JSON-like value that a YAML text holds.

    Args:
        text: YAML; dates stay text.

    Raises:
        ValueError: Not YAML, or not JSON-like; the message is one line, with the line number in *text*
            (from 1) as its attribute `line` if that is known.

    >>> parse_yaml("at: 2026-01-04")
    {'at': '2026-01-04'}
    """
    own = _parse_own(text)
    if own is not None:
        return own
    try:
        return plain_value(yaml.load(text, Loader=_Loader))
    except YamlTextError:
        raise
    except yaml.MarkedYAMLError as exc:
        message, mark = yaml_fault(exc, text)
        raise YamlTextError(f"not valid YAML: {message}", mark.line + 1 if mark else None) from exc
    except yaml.YAMLError as exc:
        raise YamlTextError(f"not valid YAML: {str(exc).splitlines()[0]}", None) from exc
    except RecursionError as exc:
        raise YamlTextError("nested too deeply", None) from exc
    except (ValueError, LookupError, TypeError, AttributeError) as exc:
        # An explicit tag on a wrong value (`!!bool x`) ends in any of these inside the library.
        raise YamlTextError(f"not a JSON-like value: {exc}", None) from exc


def _parse_own(text: str) -> dict[str, Any] | None:
    """What a text says that render_yaml_lines wrote, `_meta:` above it or not; None of any other text."""
    if _NOT_OURS.search(text) or text.count("[") + text.count("{") > _MOST_BRACKETS:
        return None
    try:
        value = plain_value(yaml.load(text, Loader=_QuickLoader))
        head = text.partition("\n")[0]
        if head.endswith(":"):
            ((key, inner),) = value.items()
            rendered = f"{key}:\n{render_yaml_lines(inner, indent='  ')}"
        else:
            rendered = render_yaml_lines(value)
    except (yaml.YAMLError, ValueError, LookupError, TypeError, AttributeError, RecursionError):
        return None  # the strict parser says what is wrong
    return value if rendered in (text, f"{text}\n") else None


class YamlTextError(ValueError):
    """YAML text that does not hold a JSON-like value; `line` counts from 1 inside that text."""

    def __init__(self, message: str, line: int | None) -> None:
        super().__init__(message)
        self.line = line


_INT = re.compile(r"^-?(?:0|[1-9]\d{0,14})$")
_FLOAT = re.compile(r"^-?(?:0|[1-9]\d{0,8})\.(?:0|\d{0,5}[1-9])$")
_STARTS_ENTRY = re.compile(r"^[^\s#]", re.MULTILINE)
_NO_PLAIN_START = frozenset("{}[]&*!|>%@`?,:-")
_OURS = re.compile(
    r'(?P<key>[A-Za-z_][A-Za-z0-9_]*|"[^"\\\n]*"): \{value: (?P<value>[^\n]+), '
    r"confidence: (?P<confidence>[\d.]+|null), source_turn: (?P<source_turn>\d+|null), "
    r'updated_at: "(?P<updated_at>[\dTZ:-]+)"\}\r?\n'
)
_PLAIN_WORDS: Mapping[str, Any] = {"null": None, "true": True, "false": False}


class PlainLoader(NoAliasLoader):
    """YAML in which a plain word is text unless it is null, true, false or a number that prints as typed."""


PlainLoader.yaml_implicit_resolvers = {}
PlainLoader.add_implicit_resolver(
    "tag:yaml.org,2002:null", re.compile(r"^(?:~|null|Null|NULL|)$"), ["~", "n", "N", ""]
)
PlainLoader.add_implicit_resolver(
    "tag:yaml.org,2002:bool", re.compile(r"^(?:[Tt]rue|[Ff]alse)$"), list("tTfF")
)
PlainLoader.add_implicit_resolver("tag:yaml.org,2002:int", _INT, list("-0123456789"))
PlainLoader.add_implicit_resolver("tag:yaml.org,2002:float", _FLOAT, list("-0123456789"))


@dataclass(frozen=True)
class YamlEntry:
    """One key of a front matter, with its place."""

    key: str  # the key
    value: Any  # its value; not to be changed
    start: int  # where its first line begins, in characters
    end: int  # where the next entry begins; comments and blank lines in between count to this one
    line: int  # its first line, from 0


@lru_cache(maxsize=8)
def split_entries(yaml_text: str) -> tuple[YamlEntry, ...] | None:
    """
    The entries of a front matter, each read alone.

    Returns:
        The entries in order; None if the text can only be read as a whole, or not at all.

    >>> [(one.key, one.value, one.line) for one in split_entries("# mine\\na: 1\\nb:\\n  - x\\n")]
    [('a', 1, 1), ('b', ['x'], 2)]
    >>> split_entries("{a: 1}\\n") is None
    True
    """
    starts = [match.start() for match in _STARTS_ENTRY.finditer(yaml_text)]
    lead = yaml_text[: starts[0]] if starts else yaml_text
    if any(line.strip() and not line.lstrip(" ").startswith("#") for line in lead.split("\n")):
        return None
    entries = []
    line = lead.count("\n")
    for start, end in pairwise([*starts, len(yaml_text)]):
        chunk = yaml_text[start:end]
        found = _read_ours(chunk) or _read_entry(chunk)
        if found is None:
            return None
        entries.append(YamlEntry(*found, start, end, line))
        line += chunk.count("\n")
    return tuple(entries)


@lru_cache(maxsize=20_000)
def _read_ours(chunk: str) -> tuple[str, Any] | None:
    """An entry as panda writes it, without the YAML library; None if it is any other."""
    match = _OURS.fullmatch(chunk)
    if match is None or "\\u" in chunk:
        return None
    source = match["value"]
    try:
        value = json.loads(source)
    except ValueError:
        return None
    if isinstance(value, dict) or render_scalar(value) != source or not reads_back(value):
        return None
    fields = {"value": value, **{name: read_plain(match[name]) for name in ("confidence", "source_turn")}}
    return match["key"].strip('"'), {**fields, "updated_at": match["updated_at"]}


@lru_cache(maxsize=20_000)
def _read_entry(chunk: str) -> tuple[str, Any] | None:
    if chunk[0] in _NO_PLAIN_START:
        return None
    try:
        value = yaml.load(chunk, Loader=PlainLoader)
    except (yaml.YAMLError, YamlTextError, ValueError, LookupError, TypeError, AttributeError):
        return None
    except RecursionError:
        return None
    if not isinstance(value, dict) or len(value) != 1:
        return None
    return next((str(key), inner) for key, inner in value.items())


def read_plain(source: str) -> Any:
    """
    What a plain word of YAML says.

    >>> read_plain("0.95"), read_plain("7"), read_plain("null"), read_plain("1.50")
    (0.95, 7, None, '1.50')
    """
    if source in _PLAIN_WORDS:
        return _PLAIN_WORDS[source]
    return int(source) if _INT.match(source) else float(source) if _FLOAT.match(source) else source


def reads_back(value: object) -> bool:
    """
    Whether a scalar or list, written by render_scalar, is read as the same value: numbers that are too long
    are read as text.

    >>> reads_back(0.5), reads_back(1e300), reads_back(["a", 12])
    (True, False, True)
    """
    if isinstance(value, list | tuple):
        return all(reads_back(item) for item in value)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return True
    return (_INT if isinstance(value, int) else _FLOAT).match(json.dumps(value)) is not None


def as_read(value: object) -> object:
    """
    A scalar or list as it is read from what render_scalar makes of it.

    >>> as_read(("a", 2)), as_read(1e300)
    (['a', 2], '1e+300')
    """
    if isinstance(value, list | tuple):
        return [as_read(item) for item in value]
    if isinstance(value, str):
        return str(value)
    return value if reads_back(value) else json.dumps(value)


def render_scalar(value: object) -> str:
    """
    A value as YAML on one line that reads back equal, numbers that are too long as their text.

    >>> render_scalar("Syrian: the golden one"), render_scalar(["a", True, 1.5, None])
    ('"Syrian: the golden one"', '["a", true, 1.5, null]')
    """
    if isinstance(value, Sequence) and not isinstance(value, str):
        return "[" + ", ".join(render_scalar(item) for item in value) + "]"
    if value is None or isinstance(value, bool | int | float):
        return json.dumps(value) if reads_back(value) else json.dumps(json.dumps(value))
    quoted = json.dumps(str(value), ensure_ascii=False)
    return "".join(map(_visible, quoted))


def _visible(char: str) -> str:
    """A character, or its escape where it shows nothing."""
    if char.isprintable() and char != "\ufeff":
        return char
    code = ord(char)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def compose_mapping(yaml_text: str) -> yaml.MappingNode | None:
    """The YAML nodes of a front matter that was read before, with their places."""
    node = yaml.compose(yaml_text, Loader=PlainLoader)
    return node if isinstance(node, yaml.MappingNode) else None


@lru_cache(maxsize=8)
def key_lines(yaml_text: str) -> dict[str, int]:
    """The line of each key of a front matter that was read before, from 0; not to be changed."""
    entries = split_entries(yaml_text)
    if entries is not None:
        return {entry.key: entry.line for entry in entries}
    node = compose_mapping(yaml_text)
    return {str(key.value): key.start_mark.line for key, _ in node.value} if node else {}


_BOUNDARY: re.Pattern[str] = YAMLHandler.FM_BOUNDARY


@dataclass(frozen=True)
class FrontMatterText:
    """A text cut into its front matter and its body."""

    values: Mapping[str, Any]
    """Keys of the front matter, not to be changed; dates and unusual numbers stay the text that was typed."""
    yaml_text: str  # the front matter between its two boundaries; "" if there is none
    yaml_start: int  # where yaml_text begins, in characters; 0 if there is none
    yaml_line: int  # line of the file on which yaml_text begins, from 1
    body: str  # all that follows the front matter
    present: bool  # whether there are boundaries at all


@lru_cache(maxsize=8)
def split_front_matter(text: str, *, where: str) -> FrontMatterText:
    """
    Cut a text into front matter and body.

    Raises:
        DocumentError: The front matter has no end, is not YAML, or is no mapping.

    >>> split_front_matter("---\\nbudget: $500-800\\n---\\nNotes\\n", where="preferences.md").values
    {'budget': '$500-800'}
    >>> split_front_matter("---\\nwakes: 6:30\\nscale: 1.50\\nday: 2026-01-04\\n---\\n", where="f").values
    {'wakes': '6:30', 'scale': '1.50', 'day': '2026-01-04'}
    """
    lead = len(text) - len(text.lstrip("\ufeff \t\r\n"))
    opening = _BOUNDARY.match(text, lead)
    if opening is None:
        return FrontMatterText({}, "", 0, 1, text, present=False)
    start = text.find("\n", lead) + 1
    closing = re.compile(r"^-{3,}[ \t]*\r?$", re.MULTILINE).search(text, start) if start else None
    if closing is None:
        raise DocumentError(
            "the front matter is not closed",
            where=f"{where}:{_line_of(text, lead)}",
            fix="end it with a line that holds only ---",
        )
    body_start = min(len(text), closing.end() + 1)
    yaml_text, yaml_line = text[start : closing.start()], _line_of(text, start)
    values = load_mapping(yaml_text, where=where, first_line=yaml_line)
    return FrontMatterText(values, yaml_text, start, yaml_line, text[body_start:], present=True)


def read_number(value: object) -> float | None:
    """
    A number that a user typed, in whatever form; None if it is none.

    >>> read_number(".70"), read_number(1), read_number(True), read_number("high")
    (0.7, 1.0, None, None)
    """
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        return float(value)
    except ValueError:
        return None


def load_mapping(yaml_text: str, *, where: str, first_line: int) -> Mapping[str, Any]:
    """
    The keys and values of a front matter.

    Args:
        yaml_text: The text between the boundaries, or some of its entries.
        where: File name for errors.
        first_line: Line of the file on which the text begins, from 1.

    Raises:
        DocumentError: It is not YAML, or no mapping.
    """
    entries = split_entries(yaml_text)
    if entries is not None:
        return _whole({entry.key: entry.value for entry in entries}, yaml_text)
    try:
        values = yaml.load(yaml_text, Loader=PlainLoader)
    except yaml.MarkedYAMLError as exc:
        message, mark = yaml_fault(exc, yaml_text)
        line = first_line + (mark.line if mark else 0)
        raise DocumentError(
            f"the front matter is not valid YAML: {message}", where=f"{where}:{line}", fix="mend that line"
        ) from exc
    except yaml.YAMLError as exc:
        reason = str(exc).splitlines()[0]
        raise DocumentError(
            f"the front matter is not valid YAML: {reason}", where=f"{where}:{first_line}"
        ) from exc
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as exc:
        # An explicit tag on a wrong value (`!!int x`) ends in any of these inside the library.
        raise DocumentError(f"the front matter cannot be read: {exc}", where=f"{where}:{first_line}") from exc
    if values is None:
        return {}
    if not isinstance(values, dict):
        raise DocumentError("the front matter is no list of `key: value`", where=f"{where}:{first_line}")
    return _whole({str(key): value for key, value in values.items()}, yaml_text)


def _whole(values: dict[str, Any], yaml_text: str) -> dict[str, Any]:
    """The values, where half a surrogate pair may be among them with U+FFFD in its place."""
    return whole_characters(values) if may_hold_halves(yaml_text) else values


def _line_of(text: str, offset: int) -> int:
    return text.count("\n", 0, offset) + 1
