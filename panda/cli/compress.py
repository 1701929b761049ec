"""`panda compress`."""

import re
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from msgspec import structs

from panda.cli.command import (
    Invocation,
    OutputDocument,
    Raw,
    Reporter,
    Result,
    argument,
    flag,
    option,
    out_file,
)
from panda.cli.output_text import clipped, read_argument
from panda.compression.compressor import Compression, CompressionCache, compile_keep, compress
from panda.compression.fit import (
    STEPS,
    Cut,
    compressed_line,
    detect_content_type,
    overflow_line,
)
from panda.compression.order import PRICE, URL, Closeness
from panda.compression.pieces import CONTENT_TYPES, ContentType
from panda.compression.plans import FORMATS, Format, detect_format
from panda.documents.safe_text import visible
from panda.documents.times import render_time
from panda.errors import LimitError, NotFoundError, ReadOnlyStoreError, StoreError, UsageError
from panda.models.cl100k import count_tokens
from panda.recipes.calls import NoTurn
from panda.recipes.executor import RecipeExecutor, passage_rewriter
from panda.store.demo import is_writable
from panda.store.execution_log import append_executions
from panda.store.files import read_text, write_output
from panda.store.records import Execution
from panda.trust import open_layers

if TYPE_CHECKING:  # loaded with the first document that is too long
    from panda.models.layers import LoadedLayers
    from panda.retrieval.passages import PassageRanker

_SHOWN_CHARS = 70
_DATE = re.compile(
    r"\d{4}-\d\d-\d\d|(?<![\w.,])\d{1,2}\.? [^\W\d_]{3,10}\.?,? \d{4}|[A-Z][a-z]{2,8} \d{1,2}, \d{4}"
)
_VALUES = {"price": PRICE, "url": URL, "date": _DATE}
"""What is counted in the document and in the result, as it is written."""
_Log = Callable[[Execution], None]


def compress_document(
    invocation: Invocation,
    file: Annotated[str, argument("The document; - reads standard input.", "FILE|-")],
    budget: Annotated[int, option("Most tokens (cl100k_base) it may have.", "N", min=1)],
    query: Annotated[
        str | None, option("What the document is wanted for.", "TEXT", show_default="none")
    ] = None,
    content_type: Annotated[
        str | None,
        option(
            f"{', '.join(CONTENT_TYPES)}; or how it is read: {', '.join(FORMATS)}.",
            "TYPE",
            "--type",
            show_default="detected",
        ),
    ] = None,
    keep: Annotated[
        list[str] | None,
        option("Drop nothing in which this regular expression occurs.", "PATTERN", show_default="none"),
    ] = None,
    out: Annotated[Path | None, out_file("Write there.", "--out", "-o", default="stdout")] = None,
    explain_it: Annotated[bool, flag("Say on stderr what was left out.", "--explain")] = False,
    raw: Raw = False,
) -> Result:
    """
    Bring a document down to a number of tokens. Nothing is invented; […] marks what was left out.

    Kept first are error messages, the title and what the document is, then what each section, signature, row
    or message says first. Where that can be counted, a mark says what is gone: [… 38 rows, 2 errors]. The
    user's query (§0) and what --keep names stay whole. Ends with 4, and says by how much, if that alone is
    over the budget, or nothing fits into it.

    Example: panda compress notes.md --budget 500 --query "Which laptop was cheapest?"

    Example: make 2>&1 | panda compress - --budget 300 --type log --explain
    """
    text = read_argument("-", invocation.stdin) if file == "-" else read_text(Path(file))
    read_as = _read_type(content_type, "" if file == "-" else Path(file).resolve().as_posix(), text)
    if out is None and not raw and not invocation.as_json:
        text = _as_printed(text, budget, invocation.reporter)
    compression = _compressed(
        text, file, read_as=read_as, budget=budget, query=query, keep=keep or (), invocation=invocation
    )
    kept_counts = _kept_by_kind(text, compression)
    if explain_it:
        _explain(invocation.reporter, compression)
        invocation.reporter.table(
            ("kind", "in the document", "kept"), [(k, *n.values()) for k, n in kept_counts.items()]
        )
    if out is not None:
        write_output(out, compression.text)
    is_markdown = read_as[0] != "page_doc" and read_as[1] in ("text", "messages", "html")
    body = (
        ""
        if out is not None
        else OutputDocument(compression.text.encode("utf-8"), markdown=is_markdown, raw=raw)
    )
    return Result({**_data(compression, out), "kept": kept_counts}, body)


def _as_printed(text: str, budget_tokens: int, reporter: Reporter) -> str:
    """
    Return a document that is over the budget as stdout gets it, so that the result is within it there:
    with line feeds at the ends of lines, and with its control characters written out.
    """
    printed = visible(text)
    if printed == text or count_tokens(printed) <= budget_tokens:
        return text
    if printed != text.replace("\r\n", "\n"):
        reporter.warn("control characters are written out here; --raw gives the bytes")
    return printed


def _read_type(type_name: str | None, path: str, text: str) -> tuple[ContentType, Format]:
    """Return the type and the format of a document, one of which may be given."""
    kind = detect_content_type(path, text)
    for content_type in CONTENT_TYPES:
        if type_name == content_type:
            kind = content_type
    for document_format in FORMATS:
        if type_name == document_format:
            return kind, document_format
    if type_name is None or type_name == kind:
        return kind, detect_format(path, text, kind)
    fix = f"give one of {', '.join((*CONTENT_TYPES, *FORMATS))}"
    raise UsageError(f"there is no type {type_name!r}", where="--type", fix=fix)


def _compressed(
    text: str,
    name: str,
    read_as: tuple[ContentType, Format],
    budget: int,
    query: str | None,
    keep: Sequence[str],
    invocation: Invocation,
) -> Compression:
    """The document within the budget, from the cache if it was made before; noted in the log of the store."""
    patterns = compile_keep(keep)
    kind, document_format = read_as
    settings = invocation.settings
    log = _log_of(invocation)
    if count_tokens(text) <= budget:
        return compress(text, kind=kind, budget_tokens=budget)
    layer = settings.compression_model_layer
    about: dict[str, Any] = {"user_id": settings.user, "session_id": None, "turn_id": None}
    cache = CompressionCache(
        settings.cache_dir / "compression", max_age_seconds=settings.compression_cache_ttl
    )
    book = invocation.book()
    with open_layers(settings, invocation.environ) as layers:
        info = None if layers.is_offline(layer) else layers.model(layer).info
        version = book.recipe_for(STEPS[kind], "chat").text if info else None
        digest = info.digest if info else None
        decided_by = (text, kind, document_format, budget, query, list(keep), digest, version)
        key = cache.key(*decided_by)
        was_kept = (compression := cache.find(key)) is not None
        if compression is None:
            executor = RecipeExecutor(book, layers, clock=settings.clock, log=log)
            journal = NoTurn(settings.user, None, settings.seed or 0)
            try:
                compression = compress(
                    text,
                    kind=kind,
                    budget_tokens=budget,
                    query=query,
                    keep=patterns,
                    rewrite=passage_rewriter(executor, kind, query or "", journal),
                    marks_alone=False,
                    document_format=document_format,
                    closeness=_closeness(layers, invocation),
                )
            except LimitError as exc:
                now = render_time(settings.clock())
                log(structs.replace(overflow_line(name, exc.message, timestamp=now, recipe=None), **about))
                raise
            try:
                cache.keep(key, compression)
            except StoreError as exc:  # only speed is lost
                invocation.reporter.detail(f"not kept in the cache: {exc.message}")
    cut = Cut(
        name,
        compression.before_tokens,
        after_tokens=compression.after_tokens,
        method=compression.method,
        content_type=kind,
        trigger="command",
        seconds=compression.seconds,
    )
    now = render_time(settings.clock())
    asked = None if was_kept else info
    line = compressed_line(
        cut,
        timestamp=now,
        recipe=None,
        layer=layer if asked else None,
        model=asked.name if asked else None,
    )
    log(structs.replace(line, **about))
    return compression


def _close(ranker: "PassageRanker", query: str, texts: Sequence[str]) -> Sequence[float]:
    return ranker.closeness(query, texts) if query else ranker.centrality(texts)


def _closeness(layers: "LoadedLayers", invocation: Invocation) -> Closeness | None:
    """Return what says how close texts are to a query, or to each other; None without an encoder."""
    encoder = layers.encoder()
    if encoder is None:
        return None
    from panda.index.vectors import VectorStore
    from panda.models.kept_encoder import KeptEncoder
    from panda.retrieval.passages import PassageRanker
    from panda.store.layout import Layout

    layout = Layout(invocation.settings.root)
    return partial(_close, PassageRanker(KeptEncoder(encoder, VectorStore(layout, is_written=False))))


def _log_of(invocation: Invocation) -> _Log:
    try:
        layout = invocation.store_for_writing(any_user=True)
    except (NotFoundError, ReadOnlyStoreError):
        return lambda line: None
    if not is_writable(layout):
        return lambda line: invocation.reporter.detail("not in the log: the store may only be read")
    return lambda line: append_executions(layout, [line])


def _explain(reporter: Reporter, compression: Compression) -> None:
    dropped = [(piece.rung, piece.reason, clipped(piece.text, _SHOWN_CHARS)) for piece in compression.dropped]
    reporter.table(("rung", "reason", "left out"), dropped)
    if compression.protected:
        reporter.table(("protected",), [(clipped(text, _SHOWN_CHARS),) for text in compression.protected])
    if compression.note:
        reporter.step(f"not used: {compression.note}")
    counts = f"{compression.before_tokens} tokens before, {compression.after_tokens} after"
    sizes = f"{counts} ({100 * compression.ratio:.0f} %)"
    how = f"by {compression.method} (rung {compression.rung}), verified, {compression.seconds:.2f} seconds"
    read_as = f"{compression.kind}, read as {compression.format}" if compression.format else compression.kind
    reporter.step(f"{read_as}: {sizes}, {how}")


def _kept_by_kind(text: str, compression: Compression) -> dict[str, dict[str, int]]:
    """Return how many prices, URLs, dates and parts of each kind a document has, and how many are kept."""
    counts: dict[str, dict[str, int]] = {}
    for kind, pattern in _VALUES.items():
        before = {match[0] for match in pattern.finditer(text)}
        after = {match[0] for match in pattern.finditer(compression.text)}
        counts[kind] = {"before": len(before), "after": len(before & after)}
    for part in compression.parts:
        counts[part.kind] = {"before": part.before, "after": part.after}
    return counts


def _data(compression: Compression, out: Path | None) -> dict[str, object]:
    numbers = ("before_tokens", "after_tokens", "ratio", "rung", "method", "kept_pieces")
    return {
        "type": compression.kind,
        "format": compression.format,
        **{name: getattr(compression, name) for name in numbers},
        "dropped": [
            {"rung": piece.rung, "reason": piece.reason, "text": piece.text} for piece in compression.dropped
        ],
        "protected": list(compression.protected),
        "verification": {"problems": [], "refused_rewrites": compression.note},
        "seconds": round(compression.seconds, 4),
        "out": None if out is None else str(out),
        "text": compression.text if out is None else None,
    }
