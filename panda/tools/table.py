"""Every tool by name: how it is described, what it takes, and the one way to run it."""

import re
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from itertools import product
from typing import Any

import msgspec

from panda.documents.evidence import find_claims
from panda.documents.text import count_noun, nearest, one_line
from panda.errors import Problem, UsageError
from panda.language.text import PAGE_ADDRESS
from panda.tools.content import generate_content
from panda.tools.contract import Tool, ToolContext, ToolResult
from panda.tools.files import FILE_TOOLS
from panda.tools.git import GIT_TOOLS
from panda.tools.memory import MEMORY_TOOLS
from panda.tools.processes import run_command
from panda.tools.web import WEB_TOOLS

TOOLS: Mapping[str, Tool] = {
    tool.name: tool
    for tool in (*MEMORY_TOOLS, *WEB_TOOLS, generate_content, *FILE_TOOLS, *GIT_TOOLS, run_command)
}
"""Every tool, by name."""
_QUERY_CHARS = 2000
_GOAL_CHARS = 500
_MOST_VALUES = 3
_QUOTED = re.compile(r"`([^`\n]+)`|“([^”\n]+)”|\"([^\"\n]+)\"|'([^'\n]+)'")
_IDENTIFIER = re.compile(r"\b(?:\w+_\w+|[a-z]+[A-Z]\w*|\w+(?=\(\)))\b")
_PATH = re.compile(r"[\w.-]+(?:/[\w.-]+)*")


def why_unavailable(name: str, context: ToolContext) -> str | None:
    if name == "internet.research" and context.search_provider is None:
        return "no search provider is configured (setting search_provider)"
    return None


def describe_tools(names: Iterable[str], context: ToolContext | None = None) -> str:
    """What a model is told of tools: a line each, with the arguments they take."""
    project = context.project if context else None
    there = f" There are: {', '.join(project.commands) or 'none'}." if project else ""
    return "\n".join(
        f"- {name}: {TOOLS[name].description}{there if name == run_command.name else ''}"
        f" Arguments: {describe_arguments(TOOLS[name])}"
        for name in names
    )


def outline_tools(names: Iterable[str]) -> str:
    """Return what a model that plans is told of tools, a line each: the first sentence, without arguments."""
    firsts = {name: TOOLS[name].description.partition(". ")[0].rstrip(".") for name in names}
    return "\n".join(f"- {name}: {first}." for name, first in firsts.items())


def describe_arguments(tool: Tool) -> str:
    required = tool.argument_schema.get("required", ())
    parts = []
    for name, schema in tool.argument_schema.get("properties", {}).items():
        values = "|".join(map(str, schema["enum"])) if "enum" in schema else schema.get("type", "value")
        parts.append(f"{name}{'' if name in required else '?'}: {values}")
    return "{" + ", ".join(parts) + "}"


def check_arguments(name: str, arguments: Mapping[str, Any]) -> None:
    """Raises UsageError for a tool that is not there, or for arguments that it does not take."""
    if name not in TOOLS:
        fix = nearest(name, TOOLS, "see `panda tool list`")
        raise UsageError(f"there is no tool {name!r}", where="NAME", fix=fix)
    try:
        msgspec.convert(arguments, TOOLS[name].arguments)
    except msgspec.ValidationError as exc:
        takes = describe_arguments(TOOLS[name])
        raise UsageError(f"{name}: arguments: {exc}", where="--args", fix=f"it takes {takes}") from exc


def run_tool(name: str, arguments: Mapping[str, Any], context: ToolContext) -> ToolResult:
    """
    Run one tool; whatever stops it gives status error with a line that names the fault, claims without a
    source give status blocked.
    """
    started = time.perf_counter()
    result = _run(name, arguments, context)
    return replace(result, seconds=round(time.perf_counter() - started, 3))


def _run(name: str, arguments: Mapping[str, Any], context: ToolContext) -> ToolResult:
    tool = TOOLS.get(name)
    if tool is None:
        return ToolResult("error", error=f"there is no tool {name!r}; there are {', '.join(sorted(TOOLS))}")
    try:
        given = msgspec.convert(arguments, tool.arguments)
        result = tool.run(given, context)
    except msgspec.ValidationError as exc:
        return ToolResult("error", error=f"{name}: arguments: {exc}")
    except Problem as exc:
        place = f" ({exc.where})" if exc.where else ""
        advice = f"; {exc.fix}" if exc.fix else ""
        return ToolResult("error", error=f"{name}: {exc.message}{place}{advice}")
    unsourced = [claim.text for claim in result.claims if not claim.source]
    if unsourced:
        return ToolResult(
            "blocked", error=f"{name}: {count_noun(len(unsourced), 'claim')} without a source: {unsourced[0]}"
        )
    return result


def fill_arguments(tool: Tool, query: str, context: ToolContext) -> list[dict[str, Any]]:
    """At most three calls of a tool that a query suggests; [{}] for one that needs no arguments."""
    if why_unavailable(tool.name, context) is not None:
        return []
    required = list(tool.argument_schema.get("required", ()))
    if not set(required) <= set(_SOURCES):
        return []
    found = [_SOURCES[name](query, context)[:_MOST_VALUES] for name in required]
    return [dict(zip(required, values, strict=True)) for values in product(*found)][:_MOST_VALUES]


def _urls(query: str, context: ToolContext) -> list[str]:
    named = [c.text for c in find_claims(query) if c.kind == "url" and "://" in c.text]
    return list(dict.fromkeys([*named, *context.pages]))


def _goals(query: str, context: ToolContext) -> list[str]:
    """What is wanted of a site, in the words of a query that names an address of it."""
    return [one_line(PAGE_ADDRESS.sub("the page", query))[:_GOAL_CHARS]] if PAGE_ADDRESS.search(query) else []


def _paths(query: str, context: ToolContext) -> list[str]:
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
    quoted = ["".join(match.groups("")) for match in _QUOTED.finditer(query)]
    return list(dict.fromkeys([*quoted, *_IDENTIFIER.findall(query)]))


def _commands(query: str, context: ToolContext) -> list[str]:
    known = list(context.project.commands) if context.project else []
    words = set(re.findall(r"[\w.-]+", query.lower()))
    return [name for name in known if name.lower() in words] or known


_SOURCES: Mapping[str, Callable[[str, ToolContext], list[str]]] = {
    "query": lambda query, context: [query[:_QUERY_CHARS]],
    "url": _urls,
    "goal": _goals,
    "path": _paths,
    "text": _terms,
    "command": _commands,
}
"""Where an argument of that name comes from."""
