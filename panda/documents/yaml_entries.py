"""Front matter entry by entry: each `key: value` read alone, so that changing one costs no more than that."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import Any

import yaml

from panda.documents.yaml_values import NoAliasLoader, YamlTextError

_INT = re.compile(r"^-?(?:0|[1-9]\d{0,14})$")
_FLOAT = re.compile(r"^-?(?:0|[1-9]\d{0,8})\.(?:0|\d{0,5}[1-9])$")
_STARTS_ENTRY = re.compile(r"^[^\s#]", re.MULTILINE)
_NO_PLAIN_START = frozenset("{}[]&*!|>%@`?,:-")
_OURS = re.compile(
    r'(?P<key>[A-Za-z_][A-Za-z0-9_]*|"[^"\\\n]*"): \{value: (?P<value>[^\n]+), '
    r"confidence: (?P<confidence>[\d.]+|null), source_turn: (?P<source_turn>\d+|null), "
    r'updated_at: "(?P<updated_at>[\dTZ:-]+)"\}\r?\n'
)
_WORDS: Mapping[str, Any] = {"null": None, "true": True, "false": False}


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

    key: str
    """The key."""
    value: Any
    """Its value; not to be changed."""
    start: int
    """Where its first line begins, in characters."""
    end: int
    """Where the next entry begins; comments and blank lines in between count to this one."""
    line: int
    """Its first line, from 0."""


@lru_cache(maxsize=8)
def split_entries(yaml_text: str) -> tuple[YamlEntry, ...] | None:
    """
    The entries of a front matter, each read alone.

    Args:
        yaml_text: The text between the boundaries.

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
    if source in _WORDS:
        return _WORDS[source]
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
    return "".join(c if c.isprintable() and c != "\ufeff" else _escaped(ord(c)) for c in quoted)


def _escaped(code: int) -> str:
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def compose_mapping(yaml_text: str) -> yaml.MappingNode | None:
    """
    The YAML nodes of a front matter that was read before, with their places.

    Args:
        yaml_text: Text that split_front_matter accepted.

    Returns:
        The mapping with start and end marks, or None if there are no keys.
    """
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
