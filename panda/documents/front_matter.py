"""Front matter of files that users edit: read with its places kept, so that single values can be changed."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import yaml
from frontmatter.default_handlers import YAMLHandler

from panda.documents.json_text import may_hold_halves, whole_characters
from panda.documents.yaml_entries import PlainLoader, split_entries
from panda.errors import DocumentError

_BOUNDARY: re.Pattern[str] = YAMLHandler.FM_BOUNDARY


@dataclass(frozen=True)
class FrontMatterText:
    """A text cut into its front matter and its body."""

    values: Mapping[str, Any]
    """Keys of the front matter, not to be changed; dates and unusual numbers stay the text that was typed."""
    yaml_text: str
    """The front matter between its two boundaries; "" if there is none."""
    yaml_start: int
    """Where yaml_text begins, in characters; 0 if there is none."""
    yaml_line: int
    """Line of the file on which yaml_text begins, from 1."""
    body: str
    """All that follows the front matter."""
    present: bool
    """Whether there are boundaries at all."""


@lru_cache(maxsize=8)
def split_front_matter(text: str, *, where: str) -> FrontMatterText:
    """
    Cut a text into front matter and body.

    Args:
        text: The whole file.
        where: File name for errors.

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
        line = first_line + exc.problem_mark.line if exc.problem_mark else first_line
        raise DocumentError(
            f"the front matter is not valid YAML: {exc.problem or exc.context}", where=f"{where}:{line}"
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
