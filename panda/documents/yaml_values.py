"""JSON-like values as YAML text, written by ourselves on single lines, and read back strictly."""

import math
import re
from collections.abc import Mapping
from typing import Any

import yaml

_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_WORDS = {"y", "n", "yes", "no", "on", "off", "true", "false", "null"}
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
    """YAML without dates: an instant stays the text that it is."""


_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag != _TIMESTAMP]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


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

    Args:
        value: JSON-like value, as plain_value gives it.

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

    Args:
        values: Key to JSON-like value, in order.
        indent: Spaces in front of each line.

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
    if _PLAIN.fullmatch(text) and text.lower() not in _WORDS:
        return text
    return '"' + "".join(_escape_char(char) for char in text) + '"'


def _escape_char(char: str) -> str:
    if char in '"\\':
        return "\\" + char
    if char == "\n":
        return "\\n"
    if char == "\t":
        return "\\t"
    if char.isprintable() and char != "\ufeff":
        return char
    code = ord(char)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


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
    try:
        return plain_value(yaml.load(text, Loader=_Loader))
    except YamlTextError:
        raise
    except yaml.MarkedYAMLError as exc:
        line = exc.problem_mark.line + 1 if exc.problem_mark else None
        raise YamlTextError(f"not valid YAML: {exc.problem or exc.context}", line) from exc
    except yaml.YAMLError as exc:
        raise YamlTextError(f"not valid YAML: {str(exc).splitlines()[0]}", None) from exc
    except RecursionError as exc:
        raise YamlTextError("nested too deeply", None) from exc
    except (ValueError, LookupError, TypeError, AttributeError) as exc:
        # An explicit tag on a wrong value (`!!bool x`) ends in any of these inside the library.
        raise YamlTextError(f"not a JSON-like value: {exc}", None) from exc


class YamlTextError(ValueError):
    """YAML text that does not hold a JSON-like value; `line` counts from 1 inside that text."""

    def __init__(self, message: str, line: int | None) -> None:
        super().__init__(message)
        self.line = line
