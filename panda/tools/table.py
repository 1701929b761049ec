"""The tools there are, by name, and the one way to run them."""

import time
from collections.abc import Iterable, Mapping
from dataclasses import replace
from difflib import get_close_matches
from typing import Any

import msgspec

from panda.errors import PandaError, UsageError
from panda.tools.content import CONTENT_GENERATE
from panda.tools.contract import Tool, ToolContext, ToolResult
from panda.tools.deadline import run_within
from panda.tools.files import FILE_TOOLS
from panda.tools.git import GIT_TOOLS
from panda.tools.memory import MEMORY_TOOLS
from panda.tools.processes import TEST_RUN
from panda.tools.web import WEB_TOOLS

TOOLS: Mapping[str, Tool] = {
    tool.name: tool
    for tool in (*MEMORY_TOOLS, *WEB_TOOLS, CONTENT_GENERATE, *FILE_TOOLS, *GIT_TOOLS, TEST_RUN)
}
"""Every tool, by name."""


def why_unavailable(name: str, context: ToolContext) -> str | None:
    """Why a tool cannot be used as things are; None if it can."""
    if name == "internet.research" and context.search_provider is None:
        return "no search provider is configured (setting search_provider)"
    return None


def describe_tools(names: Iterable[str]) -> str:
    """
    What a model is told of tools: a line each, with the arguments they take.

    >>> describe_tools(["memory.query"]).partition(" Arguments:")[0]
    '- memory.query: Look up preferences, facts, cached research and visited pages that match a query.'
    """
    return "\n".join(
        f"- {name}: {TOOLS[name].description} Arguments: {describe_arguments(TOOLS[name])}" for name in names
    )


def describe_arguments(tool: Tool) -> str:
    """The argument schema, as short as it can be said."""
    required = tool.argument_schema.get("required", ())
    parts = []
    for name, schema in tool.argument_schema.get("properties", {}).items():
        values = "|".join(map(str, schema["enum"])) if "enum" in schema else schema.get("type", "value")
        parts.append(f"{name}{'' if name in required else '?'}: {values}")
    return "{" + ", ".join(parts) + "}"


def check_arguments(name: str, arguments: Mapping[str, Any]) -> None:
    """
    Raises UsageError for a tool that is not there, or for arguments that it does not take.

    >>> check_arguments("memory.query", {"query": "tea"})
    """
    if name not in TOOLS:
        near = get_close_matches(name, TOOLS, n=1)
        fix = f"did you mean {near[0]}?" if near else "see `panda tool list`"
        raise UsageError(f"there is no tool {name!r}", where="NAME", fix=fix)
    try:
        msgspec.convert(arguments, TOOLS[name].arguments)
    except msgspec.ValidationError as exc:
        takes = describe_arguments(TOOLS[name])
        raise UsageError(f"{name}: arguments: {exc}", where="--args", fix=f"it takes {takes}") from exc


def run_tool(name: str, arguments: Mapping[str, Any], context: ToolContext) -> ToolResult:
    """
    Run one tool.

    Args:
        name: A key of TOOLS.
        arguments: As the plan gives them; checked against the tool's schema.
        context: What the tool may touch.

    Returns:
        The tool's result with its wall clock. An unknown tool, wrong arguments and whatever stops the tool
        give status error with a line that names the fault; claims without a source give status blocked.
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
        if tool.has_own_limit:
            result = tool.run(given, context)
        else:
            result = run_within(context.limit_seconds, lambda: tool.run(given, context), what=name)
    except msgspec.ValidationError as exc:
        return ToolResult("error", error=f"{name}: arguments: {exc}")
    except PandaError as exc:
        place = f" ({exc.where})" if exc.where else ""
        advice = f"; {exc.fix}" if exc.fix else ""
        return ToolResult("error", error=f"{name}: {exc.message}{place}{advice}")
    unsourced = [claim.text for claim in result.claims if not claim.source]
    if unsourced:
        return ToolResult(
            "blocked", error=f"{name}: {len(unsourced)} claims without a source: {unsourced[0]}"
        )
    return result
