"""`panda tool list` and `panda tool run`: the tools of plans, by hand."""

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

from panda.cli.command import ALLOW, Invocation, OutputTable, Result, argument, flag, option
from panda.cli.completion import complete_tools
from panda.errors import CheckError, UsageError
from panda.steps.step_contract import R, StepContract
from panda.store.files import parse_json
from panda.tools.table import TOOLS, check_arguments, describe_arguments, run_tool
from panda.tools.tool_contract import ToolContext, ToolResult

if TYPE_CHECKING:
    from panda.app import App

_COLUMNS = ("tool", "kind", "arguments", "description")


def list_tools(invocation: Invocation) -> Result:
    """
    List the tools that plans can use, with their arguments; with --json their schemas too.

    Example: panda tool list
    """
    data = [
        {
            "tool": tool.name,
            "kind": tool.kind,
            "description": tool.description,
            "argument_schema": tool.argument_schema,
            "result_schema": tool.result_schema,
        }
        for tool in TOOLS.values()
    ]
    rows = [(tool.name, tool.kind, describe_arguments(tool), tool.description) for tool in TOOLS.values()]
    return Result({"tools": data}, OutputTable(_COLUMNS, rows))


def run(
    invocation: Invocation,
    name: Annotated[str, argument("A tool.", "NAME", complete=complete_tools)],
    args: Annotated[str, option("Its arguments, a JSON object.", "JSON")] = "{}",
    query: Annotated[str, option("What a user would have said.", "TEXT", show_default="nothing")] = "",
    web_allow: Annotated[str | None, ALLOW] = None,
    dry_run: Annotated[bool, flag("Only show what a file would become.", "--dry-run")] = False,
) -> Result:
    """
    Run one tool by hand, outside of any turn.

    Its arguments are checked first: 2 if they are wrong. 3 if the tool gives an error or is blocked. What
    memory.create stages is shown and not applied.

    Example: panda tool run memory.query --args '{"query": "laptop"}' --user demo
    """
    arguments = parse_json(args, where="--args")
    if not isinstance(arguments, dict):
        fix = """as in '{"query": "tea"}'"""
        raise UsageError("the arguments are no JSON object", where="--args", fix=fix)
    check_arguments(name, arguments)
    named_file = str(arguments.get("path", ""))  # by the user, who typed it
    app = invocation.open_app(invocation.store())
    context = _context(app, query)
    if TOOLS[name].uses_workspace:
        context = replace(context, workspace=app.open_workspace(f"{query}\n{named_file}", dry=dry_run))
    result = run_tool(name, arguments, context)
    data: dict[str, object] = {"tool": name, "arguments": arguments, **result.to_json()}
    if result.status == "success":
        return Result(data, _body(result))
    message = result.error if result.status == "error" else f"blocked: {result.error}"
    return Result(data, error=CheckError(str(message), where=name))


def _context(app: "App", query: str) -> ToolContext:
    """Return what a tool may touch outside of any turn."""
    from panda.compression.fit import InputDocument
    from panda.recipes.calls import NoTurn
    from panda.steps.request import Request

    def ask(contract: StepContract[R], /, **request_fields: Any) -> R:
        documents = [InputDocument(name, text) for name, text in request_fields.pop("extra", {}).items()]
        asked = query or request_fields.get("variables", {}).get("goal", "")
        request = Request(asked, documents, **request_fields)
        return app.executor.ask(contract, request, NoTurn()).content

    return replace(app.tools, turn=app.store.highest() + 1, query=query, ask=ask)


def _body(result: ToolResult) -> str:
    lines = [f"- {claim.text} ({claim.source})" for claim in result.claims]
    if result.text:
        lines.append(result.text)
    return "\n".join(lines) or "- nothing found"
