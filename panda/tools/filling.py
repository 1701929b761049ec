"""Arguments of tools for models that do not write: spans of the query and known names (design §5)."""

import re
from collections.abc import Callable, Mapping
from itertools import product
from typing import Any

from panda.documents.evidence import find_claims
from panda.tools.contract import Tool, ToolContext
from panda.tools.table import why_unavailable

_QUERY_CHARS = 2000
_MOST_VALUES = 3
_QUOTED = re.compile(r"`([^`\n]+)`|“([^”\n]+)”|\"([^\"\n]+)\"|'([^'\n]+)'")
_IDENTIFIER = re.compile(r"\b(?:\w+_\w+|[a-z]+[A-Z]\w*|\w+(?=\(\)))\b")
_PATH = re.compile(r"[\w.-]+(?:/[\w.-]+)*")


def fill_arguments(tool: Tool, query: str, context: ToolContext) -> list[dict[str, Any]]:
    """
    The calls of a tool that a query suggests, without a word of a model's own.

    Args:
        tool: The tool.
        query: The query, references resolved.
        context: Of the running turn.

    Returns:
        Arguments, at most three; [{}] for a tool that needs none, [] if the query holds nothing for one that
        does.
    """
    if why_unavailable(tool.name, context) is not None:
        return []
    required = list(tool.argument_schema.get("required", ()))
    if not set(required) <= set(_SOURCES):
        return []
    found = [_SOURCES[name](query, context)[:_MOST_VALUES] for name in required]
    return [dict(zip(required, values, strict=True)) for values in product(*found)][:_MOST_VALUES]


def _urls(query: str, context: ToolContext) -> list[str]:
    """Addresses that the query names, then pages that were read before and should be looked at again."""
    named = [c.text for c in find_claims(query) if c.kind == "url" and "://" in c.text]
    return list(dict.fromkeys([*named, *context.pages]))


def _paths(query: str, context: ToolContext) -> list[str]:
    """The words of the query that are files of the project."""
    project = context.project
    if project is None:
        return []
    files = list(project.files())
    known = set(files)
    named = [word.rstrip(".") for word in _PATH.findall(query)]
    exact = [word for word in named if word in known]
    by_name = [path for word in named if "." in word for path in files if path.endswith(f"/{word}")]
    return list(dict.fromkeys([*exact, *by_name]))


def _terms(query: str, context: ToolContext) -> list[str]:
    """What the query quotes, and its words that look like names in code."""
    quoted = ["".join(match.groups("")) for match in _QUOTED.finditer(query)]
    return list(dict.fromkeys([*quoted, *_IDENTIFIER.findall(query)]))


def _commands(query: str, context: ToolContext) -> list[str]:
    """The commands that the query names, or else all there are."""
    known = list(context.project.commands) if context.project else []
    words = set(re.findall(r"[\w.-]+", query.lower()))
    return [name for name in known if name.lower() in words] or known


_SOURCES: Mapping[str, Callable[[str, ToolContext], list[str]]] = {
    "query": lambda query, context: [query[:_QUERY_CHARS]],
    "url": _urls,
    "path": _paths,
    "text": _terms,
    "command": _commands,
}
"""Where an argument of that name comes from."""
