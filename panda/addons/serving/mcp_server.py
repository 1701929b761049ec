"""Tools and resources over the Model Context Protocol, on stdio and HTTP; the only importer of mcp."""

import asyncio
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

import mcp_types
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel.server import Server
from mcp.server.stdio import stdio_server
from mcp.shared.exceptions import MCPError

from panda import __version__
from panda.actions.turn_run import TurnResult
from panda.addons.serving.guard import Application, json_bytes
from panda.errors import NotFoundError, Problem, UsageError
from panda.store.files import interrupt_thread

Report = Callable[[str], None]
"""Told, from any thread, what a tool is doing."""

_Context = ServerRequestContext[Any]
_T = TypeVar("_T")


@dataclass(frozen=True)
class ServedTool:
    name: str  # as clients call it
    description: str  # what it does, for whoever chooses among tools
    input_schema: Mapping[str, Any]  # JSON Schema of its arguments; the tool checks them itself
    run: Callable[[Mapping[str, Any], Report], TurnResult]  # runs in a thread of its own; may raise a Problem
    read_only: bool = True  # whether it leaves the store as it is


@dataclass(frozen=True)
class ServedText:
    uri: str  # its address, or the pattern of addresses
    name: str
    description: str
    mime_type: str  # kind of text


class Resources(Protocol):
    def listed(self) -> Sequence[ServedText]: ...
    def templates(self) -> Sequence[ServedText]: ...
    def read(self, uri: str) -> tuple[str, str]: ...


class McpServer:
    """Answers clients of the protocol: with tools that they call, and resources that they read."""

    def __init__(self, tools: Sequence[ServedTool], resources: Resources) -> None:
        self._tools = {tool.name: tool for tool in tools}
        self._resources = resources
        self._server: Server[Any] = Server(
            "panda",
            version=__version__,
            instructions="Memory and turns of one user: every claim is bound to a file on disk.",
            on_list_tools=self._list_tools,
            on_call_tool=self._call_tool,
            on_list_resources=self._list_resources,
            on_list_resource_templates=self._list_templates,
            on_read_resource=self._read_resource,
        )

    def serve_stdio(self) -> None:
        """Serve one client on standard input and output until it closes them."""
        asyncio.run(self._serve_stdio())

    async def _serve_stdio(self) -> None:
        async with stdio_server() as (incoming, outgoing):
            await self._server.run(incoming, outgoing, self._server.create_initialization_options())

    def application(self, host: str) -> Application:
        return self._server.streamable_http_app(host=host)

    async def _list_tools(
        self, context: _Context, params: mcp_types.PaginatedRequestParams | None
    ) -> mcp_types.ListToolsResult:
        listed = [
            mcp_types.Tool(
                name=tool.name,
                description=tool.description,
                input_schema=dict(tool.input_schema),
                annotations=mcp_types.ToolAnnotations(read_only_hint=tool.read_only, destructive_hint=False),
            )
            for tool in self._tools.values()
        ]
        return mcp_types.ListToolsResult(tools=listed)

    async def _call_tool(
        self, context: _Context, params: mcp_types.CallToolRequestParams
    ) -> mcp_types.CallToolResult:
        tool = self._tools.get(params.name)
        if tool is None:
            raise MCPError(mcp_types.INVALID_PARAMS, f"there is no tool {params.name[:80]!r}")
        outcome = await _in_thread(tool, params.arguments or {}, context)
        value = dict(outcome.data or {})
        if outcome.error is not None:
            value = {"ok": False, "data": outcome.data, "error": outcome.error.to_json()}
        text = mcp_types.TextContent(text=json_bytes(value).decode("utf-8"))
        return mcp_types.CallToolResult(
            content=[text], structured_content=value, is_error=outcome.error is not None
        )

    async def _list_resources(
        self, context: _Context, params: mcp_types.PaginatedRequestParams | None
    ) -> mcp_types.ListResourcesResult:
        resources = await _translated(self._resources.listed)
        listed = [
            mcp_types.Resource(
                uri=resource.uri,
                name=resource.name,
                description=resource.description,
                mime_type=resource.mime_type,
            )
            for resource in resources
        ]
        return mcp_types.ListResourcesResult(resources=listed)

    async def _list_templates(
        self, context: _Context, params: mcp_types.PaginatedRequestParams | None
    ) -> mcp_types.ListResourceTemplatesResult:
        listed = [
            mcp_types.ResourceTemplate(
                uri_template=template.uri,
                name=template.name,
                description=template.description,
                mime_type=template.mime_type,
            )
            for template in self._resources.templates()
        ]
        return mcp_types.ListResourceTemplatesResult(resource_templates=listed)

    async def _read_resource(
        self, context: _Context, params: mcp_types.ReadResourceRequestParams
    ) -> mcp_types.ReadResourceResult:
        uri = str(params.uri)
        mime_type, text = await _translated(self._resources.read, uri)
        return mcp_types.ReadResourceResult(
            contents=[mcp_types.TextResourceContents(uri=uri, mime_type=mime_type, text=text)]
        )


async def _translated(act: Callable[..., _T], *arguments: object) -> _T:
    try:
        return await asyncio.to_thread(act, *arguments)
    except Problem as exc:
        is_request = isinstance(exc, NotFoundError | UsageError)
        raise MCPError(
            mcp_types.INVALID_PARAMS if is_request else mcp_types.INTERNAL_ERROR, exc.message, exc.to_json()
        ) from exc


async def _in_thread(tool: ServedTool, arguments: Mapping[str, Any], context: _Context) -> TurnResult:
    """
    What it reports on the way goes to the client. If the client cancels the call, its thread is interrupted,
    as by Ctrl-C; when the server stops, the thread ends with the process. A turn that is cut off either way
    can be taken up again.
    """
    loop = asyncio.get_running_loop()
    reports: asyncio.Queue[str | None] = asyncio.Queue()
    future: Future[TurnResult] = Future()
    is_cancelled = threading.Event()

    def put(text: str | None) -> None:
        with suppress(RuntimeError):  # the server has stopped meanwhile
            loop.call_soon_threadsafe(reports.put_nowait, text)

    def report(text: str) -> None:
        if is_cancelled.is_set():  # in case the interruption fell into a callback from C, where it is lost
            raise KeyboardInterrupt
        put(text)

    def work() -> None:
        try:
            future.set_result(_run(tool, arguments, report))
        except KeyboardInterrupt as exc:
            future.set_exception(exc)
        except BaseException as exc:
            future.set_exception(exc)
            raise
        finally:
            put(None)

    thread = threading.Thread(target=work, name=tool.name, daemon=True)
    thread.start()
    count = 0
    try:
        while (text := await reports.get()) is not None:
            count += 1
            await context.session.report_progress(count, None, text)
    except asyncio.CancelledError:
        is_cancelled.set()
        interrupt_thread(thread)
        raise
    return future.result()


def _run(tool: ServedTool, arguments: Mapping[str, Any], report: Report) -> TurnResult:
    try:
        return tool.run(arguments, report)
    except Problem as exc:
        return TurnResult(None, exc)
