"""`panda mcp`."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Annotated

import typer

from panda.cli.contract import Invocation, Result, Stream
from panda.cli.option_rules import requires
from panda.cli.serve import HOST_HELP, read_token
from panda.cli.synthesize import FACTS_HELP, open_source
from panda.memory.scope_reading import FactSource
from panda.trust import open_layers

if TYPE_CHECKING:  # imported when a server starts
    from panda.serving.mcp_server import McpServer

_STOP_SECONDS = 2  # clients keep a stream open, which would never end by itself


@requires("host", "http", True)
@requires("port", "http", True)
def mcp(
    invocation: Invocation,
    http: Annotated[bool, typer.Option("--http", help="Serve over HTTP, not on stdin and stdout.")] = False,
    host: Annotated[str, typer.Option(help=f"With --http. {HOST_HELP}", metavar="HOST")] = "127.0.0.1",
    port: Annotated[
        int, typer.Option(help="With --http; 0 for any free one.", min=0, max=65535, metavar="N")
    ] = 8766,
    facts: Annotated[Path | None, typer.Option(help=FACTS_HELP, metavar="FILE.json")] = None,
) -> Result:
    """
    Serve tools and resources over the Model Context Protocol: synthesize_scope, search_turns, gather_context,
    run_turn; memory and turns to read. Ends with its client, or at Ctrl-C.

    Example: panda mcp --user demo
    """
    invocation = replace(invocation, new_user=True)  # a client may ask the first turn of a user
    source = open_source(invocation, facts)
    source.load()  # a broken file is told now, not to the first client
    if http:
        return Result(None, Stream(_over_http(invocation, source, host, port)))
    return Result(None, Stream(_over_stdio(invocation, source)))


def _over_stdio(invocation: Invocation, source: FactSource) -> Iterator[tuple[str]]:
    """No rows: standard output belongs to the protocol."""
    _server(invocation, source).serve_stdio()
    yield from ()


def _over_http(invocation: Invocation, source: FactSource, host: str, port: int) -> Iterator[tuple[str]]:
    from panda.serving.guard import Limits
    from panda.serving.listening import serve_http

    limits, token = Limits(stop_seconds=_STOP_SECONDS), read_token(invocation)
    application = _server(invocation, source).application(host)
    served = serve_http(application, host=host, port=port, token=token, limits=limits, lifespan=True)
    for address in served:
        invocation.reporter.step(f"listening on {address}/mcp; Ctrl-C stops")
        yield (f"{address}/mcp",)


def _server(invocation: Invocation, source: FactSource) -> "McpServer":
    """A server whose tools share their models."""
    from panda.cli.mcp_resources import UserResources
    from panda.cli.mcp_tools import CommandTools
    from panda.serving.mcp_server import McpServer

    # never closed: when the process ends, the thread of a turn may still use them
    layers = open_layers(invocation.settings, invocation.environ)
    tools = CommandTools(replace(invocation, layers=layers), source, Lock())
    return McpServer(tools.listed(), UserResources(invocation))
