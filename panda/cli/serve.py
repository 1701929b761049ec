"""`panda serve`."""

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer

from panda.cli.contract import Invocation, Result, Stream
from panda.cli.option_rules import excludes
from panda.cli.synthesize import FACTS_HELP, open_source
from panda.memory.scope_reading import FactSource

HOST_HELP = "Name or address to listen on; other than this machine's own only with PANDA_TOKEN set."


@excludes("facts", "user", fix="leave it out: the facts are those of the file")
def serve(
    invocation: Invocation,
    host: Annotated[str, typer.Option(help=HOST_HELP, metavar="HOST")] = "127.0.0.1",
    port: Annotated[
        int, typer.Option(help="Port to listen on; 0 for any free one.", min=0, max=65535, metavar="N")
    ] = 8765,
    facts: Annotated[Path | None, typer.Option(help=FACTS_HELP, metavar="FILE.json")] = None,
) -> Result:
    """
    Answer POST /v1/synthesis and GET /healthz over HTTP until Ctrl-C; the address goes to stdout.

    Example: panda serve --port 0 --facts facts.json
    """
    source = open_source(invocation, facts)
    source.load()  # a broken file is told now, not to the first client
    return Result(None, Stream(_served(invocation, source, host, port)))


def _served(invocation: Invocation, source: FactSource, host: str, port: int) -> Iterator[tuple[str]]:
    from panda.serving.guard import Limits
    from panda.serving.listening import serve_http
    from panda.serving.synthesis_api import SynthesisApi

    limits = Limits()
    token = read_token(invocation)
    api = SynthesisApi(source, invocation.settings.clock, limits, token=token is not None)
    application = api.application()
    for address in serve_http(application, host=host, port=port, token=token, limits=limits):
        invocation.reporter.step(f"listening on {address}; Ctrl-C stops")
        yield (address,)


def read_token(invocation: Invocation) -> str | None:
    """The token that clients must send; None if PANDA_TOKEN is unset or empty."""
    return invocation.environ.get("PANDA_TOKEN") or None
