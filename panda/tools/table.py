"""Every tool by name: how it is described, what it takes, and the one way to run it."""

import re
import time
from collections.abc import Iterable, Mapping
from dataclasses import replace
from itertools import product
from typing import Any

import msgspec

from panda.documents.evidence import find_claims
from panda.documents.safe_text import count_noun, nearest, one_line
from panda.errors import Problem, UsageError
from panda.extensible_table import ExtensibleTable
from panda.messages.wording import PAGE_ADDRESS
from panda.tools.content import generate_content
from panda.tools.memory_tools import MEMORY_TOOLS
from panda.tools.tool_contract import ArgumentSource, Tool, ToolContext, ToolResult
from panda.tools.web import WEB_TOOLS

TOOLS: Mapping[str, Tool] = ExtensibleTable(
    (*MEMORY_TOOLS, *WEB_TOOLS, generate_content), lambda addon: addon.tools
)
"""Every tool, by name, those of add-ons too."""
_QUERY_CHARS = 2000
_GOAL_CHARS = 500
_MOST_VALUES = 3
_QUOTED = re.compile(r"`([^`\n]+)`|“([^”\n]+)”|\"([^\"\n]+)\"|'([^'\n]+)'")
_IDENTIFIER = re.compile(r"\b(?:\w+_\w+|[a-z]+[A-Z]\w*|\w+(?=\(\)))\b")


def why_unavailable(name: str, context: ToolContext) -> str | None:
    if name == "internet.research" and context.search_provider is None:
        return "no search provider is configured (setting search_provider)"
    return None


def describe_tools(names: Iterable[str], context: ToolContext | None = None) -> str:
    """Return the descriptions of tools for a model: a line each, with the arguments they take."""
    lines = []
    for tool in (TOOLS[name] for name in names):
        more = tool.describe_more(context) if context is not None else ""
        lines.append(f"- {tool.name}: {tool.description}{more} Arguments: {describe_arguments(tool)}")
    return "\n".join(lines)


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
        converted = msgspec.convert(arguments, tool.arguments)
        result = tool.run(converted, context)
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
    sources = {**_SOURCES, **tool.argument_sources}
    if not set(required) <= set(sources):
        return []
    choices = [sources[name](query, context)[:_MOST_VALUES] for name in required]
    return [dict(zip(required, values, strict=True)) for values in product(*choices)][:_MOST_VALUES]


def _urls(query: str, context: ToolContext) -> list[str]:
    named = [c.text for c in find_claims(query) if c.kind == "url" and "://" in c.text]
    return list(dict.fromkeys([*named, *context.pages]))


def _goals(query: str, context: ToolContext) -> list[str]:
    """
    Return the goal of a query that names an address: its words without the address; [] if it names none.
    """
    return [one_line(PAGE_ADDRESS.sub("the page", query))[:_GOAL_CHARS]] if PAGE_ADDRESS.search(query) else []


def _terms(query: str, context: ToolContext) -> list[str]:
    quoted = ["".join(match.groups("")) for match in _QUOTED.finditer(query)]
    return list(dict.fromkeys([*quoted, *_IDENTIFIER.findall(query)]))


_SOURCES: Mapping[str, ArgumentSource] = {
    "query": lambda query, context: [query[:_QUERY_CHARS]],
    "url": _urls,
    "goal": _goals,
    "text": _terms,
}
"""Where an argument of that name comes from."""
