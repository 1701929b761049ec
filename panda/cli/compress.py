"""`panda compress`."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any

from msgspec import structs

from panda.cli.command import Document, Invocation, Raw, Reporter, Result, argument, flag, option, out_file
from panda.cli.text import clipped, read_argument
from panda.compression.compress import Compression, CompressionCache, compile_keep
from panda.compression.compress import compress as compress_text
from panda.compression.fit import (
    STEPS,
    Cut,
    compressed_line,
    detect_content_type,
    overflow_line,
)
from panda.compression.pieces import CONTENT_TYPES, ContentType
from panda.documents.evidence import find_claims
from panda.documents.times import render_time
from panda.errors import LimitError, NotFoundError, ReadOnlyStoreError, StoreError, UsageError
from panda.models.cl100k import count_tokens
from panda.recipes.calls import NoTurn
from panda.recipes.executor import RecipeExecutor, passage_rewriter
from panda.store.demo import is_writable
from panda.store.files import read_text, write_output
from panda.store.log import append_executions
from panda.store.records import Execution
from panda.trust import open_layers

_SHOWN_CHARS = 70
_Log = Callable[[Execution], None]


def compress(
    invocation: Invocation,
    file: Annotated[str, argument("The document; - reads standard input.", "FILE|-")],
    budget: Annotated[int, option("Most tokens (cl100k_base) it may have.", "N", min=1)],
    query: Annotated[
        str | None, option("What the document is wanted for.", "TEXT", show_default="none")
    ] = None,
    content_type: Annotated[
        str | None, option(f"{', '.join(CONTENT_TYPES)}.", "TYPE", "--type", show_default="detected")
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

    Error messages, the user's query (§0) and what --keep names stay whole. Ends with 4, and says by how much,
    if that alone is over the budget, or nothing fits into it.

    Example: panda compress notes.md --budget 500 --query "Which laptop was cheapest?"
    """
    text = read_argument("-", invocation.stdin) if file == "-" else read_text(Path(file))
    kind = _read_type(content_type, file, text)
    made = _compressed(text, file, kind, budget, query, keep or (), invocation)
    kept = _kept_by_kind(text, made.text)
    if explain_it:
        _explain(invocation.reporter, made)
        invocation.reporter.table(
            ("kind", "in the document", "kept"), [(k, *n.values()) for k, n in kept.items()]
        )
    if out is not None:
        write_output(out, made.text)
    body = (
        "" if out is not None else Document(made.text.encode("utf-8"), markdown=kind != "page_doc", raw=raw)
    )
    return Result({**_data(made, out), "kept": kept}, body)


def _read_type(given: str | None, file: str, text: str) -> ContentType:
    if given is None:
        return detect_content_type("" if file == "-" else Path(file).resolve().as_posix(), text)
    for kind in CONTENT_TYPES:
        if kind == given:
            return kind
    fix = f"give one of {', '.join(CONTENT_TYPES)}"
    raise UsageError(f"there is no type {given!r}", where="--type", fix=fix)


def _compressed(
    text: str,
    name: str,
    kind: ContentType,
    budget: int,
    query: str | None,
    keep: Sequence[str],
    invocation: Invocation,
) -> Compression:
    """The document within the budget, from the cache if it was made before; noted in the log of the store."""
    patterns = compile_keep(keep)
    settings, log = invocation.settings, _log_of(invocation)
    if count_tokens(text) <= budget:
        return compress_text(text, kind=kind, budget_tokens=budget)
    layer = settings.compression_model_layer
    about: dict[str, Any] = {"user_id": settings.user, "session_id": None, "turn_id": None}
    cache = CompressionCache(
        settings.cache_dir / "compression", max_age_seconds=settings.compression_cache_ttl
    )
    book = invocation.book()
    with open_layers(settings, invocation.environ) as layers:
        info = None if layers.is_offline(layer) else layers.model(layer).info
        version = book.recipe_for(STEPS[kind], "chat").text if info else None
        key = cache.key(text, kind, budget, query, list(keep), info.digest if info else None, version)
        was_kept = (made := cache.find(key)) is not None
        if made is None:
            executor = RecipeExecutor(book, layers, clock=settings.clock, log=log)
            journal = NoTurn(settings.user, None, settings.seed or 0)
            try:
                made = compress_text(
                    text,
                    kind=kind,
                    budget_tokens=budget,
                    query=query,
                    keep=patterns,
                    rewrite=passage_rewriter(executor, kind, query or "", journal),
                    marks_alone=False,
                )
            except LimitError as exc:
                now = render_time(settings.clock())
                log(structs.replace(overflow_line(name, exc.message, timestamp=now, recipe=None), **about))
                raise
            try:
                cache.keep(key, made)
            except StoreError as exc:  # only speed is lost
                invocation.reporter.detail(f"not kept in the cache: {exc.message}")
    cut = Cut(name, made.before_tokens, made.after_tokens, made.method, kind, "command", made.seconds)
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
    return made


def _log_of(invocation: Invocation) -> _Log:
    try:
        layout = invocation.store_for_writing(any_user=True)
    except (NotFoundError, ReadOnlyStoreError):
        return lambda line: None
    if not is_writable(layout):
        return lambda line: invocation.reporter.detail("not in the log: the store may only be read")
    return lambda line: append_executions(layout, [line])


def _explain(reporter: Reporter, made: Compression) -> None:
    dropped = [(one.rung, one.reason, clipped(one.text, _SHOWN_CHARS)) for one in made.dropped]
    reporter.table(("rung", "reason", "left out"), dropped)
    if made.protected:
        reporter.table(("protected",), [(clipped(text, _SHOWN_CHARS),) for text in made.protected])
    if made.note:
        reporter.step(f"not used: {made.note}")
    sizes = f"{made.before_tokens} tokens before, {made.after_tokens} after ({100 * made.ratio:.0f} %)"
    how = f"by {made.method} (rung {made.rung}), verified, {made.seconds:.2f} seconds"
    reporter.step(f"{made.kind}: {sizes}, {how}")


def _kept_by_kind(text: str, made: str) -> dict[str, dict[str, int]]:
    """How many distinct prices, URLs and dates a document has, and how many of them what was made of it."""
    before, after = ({(claim.kind, claim.value) for claim in find_claims(source)} for source in (text, made))
    return {
        kind: {
            "before": sum(known == kind for known, _ in before),
            "after": sum(known == kind for known, _ in before & after),
        }
        for kind in ("price", "url", "date")
    }


def _data(made: Compression, out: Path | None) -> dict[str, object]:
    numbers = ("before_tokens", "after_tokens", "ratio", "rung", "method", "kept_pieces")
    return {
        "type": made.kind,
        **{name: getattr(made, name) for name in numbers},
        "dropped": [{"rung": one.rung, "reason": one.reason, "text": one.text} for one in made.dropped],
        "protected": list(made.protected),
        "verification": {"problems": [], "refused_rewrites": made.note},
        "seconds": round(made.seconds, 4),
        "out": None if out is None else str(out),
        "text": made.text if out is None else None,
    }
