"""`panda synthesize`, `serve` and `mcp`: what is known within a scope, on stdout and to clients."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Annotated

from msgspec import UNSET

from panda.actions.synthesis import FactSource, file_source, memory_source
from panda.cli.command import Invocation, NewUser, Result, Stream, Table, excludes, flag, option, requires
from panda.documents.memory_file import render_value
from panda.documents.records import encode
from panda.documents.text import count_noun
from panda.memory.synthesis import CONTRADICTED, Envelope, parse_request, synthesize
from panda.store.fact import SCOPES
from panda.trust import open_layers

if TYPE_CHECKING:
    from panda.serving.mcp_server import McpServer

FACTS_HELP = 'Facts of this file, {"facts": […], "conflicts": […]}, not the memory of the user.'
_COLUMNS = ("entity", "relation", "value", "conf.", "", "other value", "conf.")
HOST_HELP = "Name or address to listen on; other than this machine's own only with PANDA_TOKEN set."
_STOP_SECONDS = 2  # clients keep a stream open, which would never end by itself


@excludes("facts", "user", fix="leave it out: the facts are those of the file")
def synthesize_scope(
    invocation: Invocation,
    scope: Annotated[
        str,
        option(
            f"{', '.join(SCOPES[:-1])} or {SCOPES[-1]}, matched exactly.",
            "SCOPE",
            complete=lambda: list(SCOPES),
        ),
    ],
    entity: Annotated[
        str | None, option("Only this one, as user:default.", "NAME", show_default="all")
    ] = None,
    relation: Annotated[str | None, option("Only this one, as budget.", "NAME", show_default="all")] = None,
    min_confidence: Annotated[
        float | None, option("Leave out what is less certain, 0 to 1.", "C", show_default="0")
    ] = None,
    include_expired: Annotated[
        bool, flag("Count facts past their valid_until too.", "--include-expired")
    ] = False,
    as_of: Annotated[
        str | None, option("Judge by this instant what has expired.", "TIME", show_default="now")
    ] = None,
    facts: Annotated[
        Path | None, option(FACTS_HELP, "FILE.json", show_default="the memory of the user")
    ] = None,
) -> Result:
    """
    Show what is known now within a scope: for each entity and relation the most credible value, and where
    another fact says otherwise, both.

    Example: panda synthesize --scope local --min-confidence 0.5 --user demo
    """
    given = {"scope": scope, "entity": entity, "relation": relation, "min_confidence": min_confidence}
    given |= {"include_expired": include_expired, "as_of": as_of}
    request = parse_request(given, where="--")
    stored = open_source(invocation, facts).load()
    envelope = synthesize(*stored, request, now=invocation.settings.clock())
    invocation.reporter.step(_counts(envelope))
    return Result(encode(envelope), Table(_COLUMNS, list(_rows(envelope))))


def open_source(invocation: Invocation, facts: Path | None) -> FactSource:
    """The facts of the file that `--facts` names, else of the user's memory (NotFoundError: no store)."""
    if facts is not None:
        return file_source(facts)
    return memory_source(invocation.store())


def _counts(envelope: Envelope) -> str:
    parts = [count_noun(envelope.fact_count, "fact"), count_noun(len(envelope.summary), "entry")]
    if envelope.contradiction_count:
        parts.append(f"{envelope.contradiction_count:,} contradicted")
    if envelope.filtered_count:
        parts.append(f"{envelope.filtered_count:,} left out as less certain")
    return f"scope {envelope.scope}: {', '.join(parts)}"


def _rows(envelope: Envelope) -> Iterator[tuple[object, ...]]:
    for entry in envelope.summary:
        values = [value for value in (entry.value, entry.alt_value) if value is not UNSET]
        texts = [render_value(value.v) for value in values]
        if len(set(texts)) < len(texts):  # two values that would look the same
            texts = [f"{text} ({value.type})" for text, value in zip(texts, values, strict=True)]
        rest = (CONTRADICTED, texts[1], entry.alt_confidence) if entry.contradicted else (None, None, None)
        yield entry.entity, entry.relation, texts[0], entry.confidence, *rest


@excludes("facts", "user", fix="leave it out: the facts are those of the file")
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
    from panda.serving.guard import Limits
    from panda.serving.listening import serve_http
    from panda.serving.synthesis_api import SynthesisApi

    limits, token = Limits(), invocation.environ.get("PANDA_TOKEN") or None
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
    from panda.serving.guard import Limits
    from panda.serving.listening import serve_http

    limits, token = Limits(stop_seconds=_STOP_SECONDS), invocation.environ.get("PANDA_TOKEN") or None
    application = _server(invocation, source).application(host)
    served = serve_http(application, host=host, port=port, token=token, limits=limits, lifespan=True)
    for address in served:
        invocation.reporter.step(f"listening on {address}/mcp; Ctrl-C stops")
        yield (f"{address}/mcp",)


def _server(invocation: Invocation, source: FactSource) -> "McpServer":
    """A server whose tools share their models."""
    from panda.cli.mcp_tools import ActionTools, UserResources
    from panda.serving.mcp_server import McpServer

    # never closed: when the process ends, the thread of a turn may still use them
    layers = open_layers(invocation.settings, invocation.environ)
    tools = ActionTools(replace(invocation, layers=layers), source, Lock())
    return McpServer(tools.listed(), UserResources(invocation))
