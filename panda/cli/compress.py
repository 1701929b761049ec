"""`panda compress`."""

from pathlib import Path
from typing import Annotated

import typer

from panda.cli.compressing import compress_document, explain, read_document, read_type, result_data
from panda.cli.contract import Document, Invocation, Result
from panda.compression.content_types import CONTENT_TYPES
from panda.storage.files import write_atomic


def compress(
    invocation: Invocation,
    file: Annotated[str, typer.Argument(help="The document; - reads standard input.", metavar="FILE|-")],
    budget: Annotated[int, typer.Option(help="Most tokens (cl100k_base) it may have.", min=1, metavar="N")],
    query: Annotated[
        str | None, typer.Option(help="What the document is wanted for.", metavar="TEXT")
    ] = None,
    content_type: Annotated[
        str | None,
        typer.Option("--type", help=f"{', '.join(CONTENT_TYPES)}; detected if left out.", metavar="TYPE"),
    ] = None,
    keep: Annotated[
        list[str] | None,
        typer.Option(help="Drop nothing in which this regular expression occurs.", metavar="PATTERN"),
    ] = None,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="Write there, not to stdout.", metavar="OUT")
    ] = None,
    explain_it: Annotated[bool, typer.Option("--explain", help="Say on stderr what was left out.")] = False,
) -> Result:
    """
    Bring a document down to a number of tokens. Nothing is invented; […] marks what was left out.

    Error messages, the user's query (§0) and what --keep names stay whole. Ends with 4, and says by how much,
    if that alone is over the budget.

    Example: panda compress notes.md --budget 500 --query "Which laptop was cheapest?"
    """
    text = read_document(file, invocation.stdin)
    kind = read_type(content_type, file, text)
    made = compress_document(
        invocation, text, name=file, kind=kind, budget=budget, query=query, keep=keep or ()
    )
    if explain_it:
        explain(invocation.reporter, made)
    if out is not None:
        write_atomic(out, made.text)
    body = "" if out is not None else Document(made.text.encode("utf-8"), markdown=kind != "page_doc")
    return Result(result_data(made, out), body)
