"""Front matter of files that users edit: read with its places kept, so that single values can be changed."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import yaml
from frontmatter.default_handlers import YAMLHandler

from panda.documents.yaml_values import NoAliasLoader
from panda.errors import DocumentError

_BOUNDARY: re.Pattern[str] = YAMLHandler.FM_BOUNDARY


class _Loader(NoAliasLoader):
    """YAML in which a plain word is text unless it is null, true, false or a number that prints as typed."""


_Loader.yaml_implicit_resolvers = {}
_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:null", re.compile(r"^(?:~|null|Null|NULL|)$"), ["~", "n", "N", ""]
)
_Loader.add_implicit_resolver("tag:yaml.org,2002:bool", re.compile(r"^(?:[Tt]rue|[Ff]alse)$"), list("tTfF"))
_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:int", re.compile(r"^-?(?:0|[1-9]\d{0,14})$"), list("-0123456789")
)
_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:float",
    re.compile(r"^-?(?:0|[1-9]\d{0,8})\.(?:0|\d{0,5}[1-9])$"),
    list("-0123456789"),
)


@dataclass(frozen=True)
class FrontMatterText:
    """A text cut into its front matter and its body."""

    values: Mapping[str, Any]
    """Keys of the front matter; dates and unusual numbers stay the text that was typed."""
    yaml_text: str
    """The front matter between its two boundaries; "" if there is none."""
    yaml_start: int
    """Where yaml_text begins, in characters; 0 if there is none."""
    yaml_line: int
    """Line of the file on which yaml_text begins, from 1."""
    body: str
    """All that follows the front matter."""
    body_line: int
    """Line of the file on which body begins, from 1."""
    present: bool
    """Whether there are boundaries at all."""


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
        return FrontMatterText({}, "", 0, 1, text, 1, present=False)
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
    values = _load_mapping(yaml_text, where=where, first_line=yaml_line)
    return FrontMatterText(
        values, yaml_text, start, yaml_line, text[body_start:], _line_of(text, body_start), present=True
    )


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


def compose_mapping(yaml_text: str) -> yaml.MappingNode | None:
    """
    The YAML nodes of a front matter that was read before, with their places.

    Args:
        yaml_text: Text that split_front_matter accepted.

    Returns:
        The mapping with start and end marks, or None if there are no keys.
    """
    node = yaml.compose(yaml_text, Loader=_Loader)
    return node if isinstance(node, yaml.MappingNode) else None


def _load_mapping(yaml_text: str, *, where: str, first_line: int) -> Mapping[str, Any]:
    try:
        values = yaml.load(yaml_text, Loader=_Loader)
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
    return {str(key): value for key, value in values.items()}


def _line_of(text: str, offset: int) -> int:
    return text.count("\n", 0, offset) + 1
