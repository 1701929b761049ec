"""The tools there are, by name, and the one way to run them."""

import time
from collections.abc import Iterable, Mapping
from dataclasses import replace
from difflib import get_close_matches
from typing import Any

from panda.documents.json_schema import worst_fault
from panda.errors import PandaError, UsageError
from panda.tools.command_run import CommandRun
from panda.tools.content_generate import ContentGenerate
from panda.tools.contract import Tool, ToolContext, ToolResult
from panda.tools.deadline import run_within
from panda.tools.doc_search import DocSearch
from panda.tools.file_edit import FileEdit
from panda.tools.file_list import FileList
from panda.tools.file_read import FileRead
from panda.tools.file_search import FileSearch
from panda.tools.file_write import FileWrite
from panda.tools.git_diff import GitDiff
from panda.tools.git_status import GitStatus
from panda.tools.internet_research import InternetResearch
from panda.tools.memory_create import MemoryCreate
from panda.tools.memory_query import MemoryQuery
from panda.tools.web_fetch import WebFetch

_ALL: tuple[Tool, ...] = (
    *(MemoryQuery(), MemoryCreate(), DocSearch(), WebFetch(), InternetResearch(), ContentGenerate()),
    *(FileList(), FileRead(), FileSearch(), FileEdit(), FileWrite(), GitStatus(), GitDiff(), CommandRun()),
)
TOOLS: dict[str, Tool] = {tool.name: tool for tool in _ALL}
"""Every tool, by name."""

REACHING_OUT: frozenset[str] = frozenset(
    {
        "web.fetch",
        "internet.research",
        "test.run",
        *(name for name in TOOLS if name.startswith(("file.", "git."))),
    }
)
"""Tools whose result depends on more than the store: a replay takes what they gave when they ran."""

STOPPED_BY_THEMSELVES = frozenset({"test.run", "internet.research", "content.generate"})
"""Tools that keep a limit of their own, longer than that of the context."""


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
    fault = _fault(name, "argument_schema", dict(arguments))
    if fault is not None:
        raise UsageError(
            f"{name}: argument {fault}", where="--args", fix=f"it takes {describe_arguments(TOOLS[name])}"
        )


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
    fault = _fault(name, "argument_schema", dict(arguments))
    if fault is not None:
        return ToolResult("error", error=f"{name}: argument {fault}")
    try:
        if name in STOPPED_BY_THEMSELVES:
            result = tool.run(arguments, context)
        else:
            result = run_within(context.limit_seconds, lambda: tool.run(arguments, context), what=name)
    except PandaError as exc:
        place = f" ({exc.where})" if exc.where else ""
        advice = f"; {exc.fix}" if exc.fix else ""
        return ToolResult("error", error=f"{name}: {exc.message}{place}{advice}")
    unsourced = [claim.text for claim in result.claims if not claim.source]
    if unsourced:
        return ToolResult(
            "blocked", error=f"{name}: {len(unsourced)} claims without a source: {unsourced[0]}"
        )
    fault = _fault(name, "result_schema", result.data) if result.status == "success" else None
    return ToolResult("blocked", error=f"{name}: result {fault}") if fault is not None else result


def _fault(name: str, which: str, value: object) -> str | None:
    error = worst_fault(getattr(TOOLS[name], which), value)
    if error is None:
        return None
    place = ".".join(str(part) for part in error.absolute_path)
    return f"{place}: {error.message}" if place else str(error.message)
