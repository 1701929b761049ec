"""The tools there are, by name, and the one way to run them."""

import time
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from typing import Any

from jsonschema import Draft202012Validator
from jsonschema.exceptions import best_match

from panda.errors import PandaError
from panda.tools.contract import Tool, ToolContext, ToolResult
from panda.tools.doc_search import DocSearch
from panda.tools.memory_create import MemoryCreate
from panda.tools.memory_query import MemoryQuery
from panda.tools.web_fetch import WebFetch

TOOLS: dict[str, Tool] = {
    tool.name: tool for tool in (MemoryQuery(), MemoryCreate(), DocSearch(), WebFetch())
}
"""Every tool, by name."""


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
        result = tool.run(arguments, context)
    except PandaError as exc:
        place = f" ({exc.where})" if exc.where else ""
        return ToolResult("error", error=f"{name}: {exc.message}{place}")
    unsourced = [claim.text for claim in result.claims if not claim.source]
    if unsourced:
        return ToolResult(
            "blocked", error=f"{name}: {len(unsourced)} claims without a source: {unsourced[0]}"
        )
    fault = _fault(name, "result_schema", result.data) if result.status == "success" else None
    return ToolResult("blocked", error=f"{name}: result {fault}") if fault is not None else result


def _fault(name: str, which: str, value: object) -> str | None:
    error = best_match(_validator(name, which).iter_errors(value))
    if error is None:
        return None
    place = ".".join(str(part) for part in error.absolute_path)
    return f"{place}: {error.message}" if place else str(error.message)


@cache
def _validator(name: str, which: str) -> Draft202012Validator:
    return Draft202012Validator(getattr(TOOLS[name], which))
