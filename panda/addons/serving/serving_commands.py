"""`panda serve` and `mcp`: what is known within a scope, and turns, for clients."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Annotated

from panda.actions.synthesis_facts import FactSource
from panda.cli.command import Invocation, NewUser, Result, Stream, excludes, flag, option, requires
from panda.cli.synthesize import FACTS_HELP, open_source
from panda.trust import open_layers

if TYPE_CHECKING:
    from panda.addons.serving.mcp_server import McpServer

HOST_HELP = "Name or address to listen on; other than this machine's own only with PANDA_TOKEN set."
_STOP_SECONDS = 2  # clients keep a stream open, which would never end by itself


@excludes("facts", ["user"], fix="leave it out: the facts are those of the file")
def serve(
    invocation: Invocation,
    host: Annotated[str, option(HOST_HELP, "HOST")] = "127.0.0.1",
    port: Annotated[int, option("Port to listen on; 0 for any free one.", "N", min=0, max=65535)] = 8765,
    facts: Annotated[
        Path | None, option(FACTS_HELP, "FILE.json", show_default="the memory of the user")
    ] = None,
) -> Result:
    """
    Answer POST /v1/synthesis and GET /healthz over HTTP until Ctrl-C; the address goes to stdout.

    Example: panda serve --port 0 --user demo
    """
    source = open_source(invocation, facts)
    source.load()  # a broken file is told now, not to the first client
    return Result(None, Stream(_served(invocation, source, host, port)))


def _served(invocation: Invocation, source: FactSource, host: str, port: int) -> Iterator[tuple[str]]:
    from panda.addons.serving.guard import RequestLimits
    from panda.addons.serving.listening import serve_http
    from panda.addons.serving.synthesis_api import SynthesisApi

    limits = RequestLimits()
    token = invocation.environ.get("PANDA_TOKEN") or None
    api = SynthesisApi(source, invocation.settings.clock, limits, token=token is not None)
    application = api.application()
    for address in serve_http(application, host=host, port=port, token=token, limits=limits):
        invocation.reporter.step(f"listening on {address}; Ctrl-C stops")
        yield (address,)


@requires("host", "http", True)
@requires("port", "http", True)
def mcp(
    invocation: Invocation,
    http: Annotated[bool, flag("Serve over HTTP, not on stdin and stdout.", "--http")] = False,
    host: Annotated[str, option(f"With --http. {HOST_HELP}", "HOST")] = "127.0.0.1",
    port: Annotated[int, option("With --http; 0 for any free one.", "N", min=0, max=65535)] = 8766,
    facts: Annotated[
        Path | None, option(FACTS_HELP, "FILE.json", show_default="the memory of the user")
    ] = None,
    new_user: NewUser = False,
) -> Result:
    """
    Serve tools and resources over the Model Context Protocol: synthesize_scope, search_turns, gather_context,
    run_turn; memory and turns to read. Ends with its client, or at Ctrl-C.

    Example: panda mcp --user demo
    """
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
    from panda.addons.serving.guard import RequestLimits
    from panda.addons.serving.listening import serve_http

    limits = RequestLimits(stop_seconds=_STOP_SECONDS)
    token = invocation.environ.get("PANDA_TOKEN") or None
    application = _server(invocation, source).application(host)
    served = serve_http(application, host=host, port=port, token=token, limits=limits, lifespan=True)
    for address in served:
        invocation.reporter.step(f"listening on {address}/mcp; Ctrl-C stops")
        yield (f"{address}/mcp",)


def _server(invocation: Invocation, source: FactSource) -> "McpServer":
    """A server whose tools share their models."""
    from panda.addons.serving.mcp_server import McpServer
    from panda.addons.serving.mcp_tools import ActionTools, UserResources

    # never closed: when the process ends, the thread of a turn may still use them
    layers = open_layers(invocation.settings, invocation.environ)
    tools = ActionTools(replace(invocation, layers=layers), source, Lock())
    return McpServer(tools.listed(), UserResources(invocation))
