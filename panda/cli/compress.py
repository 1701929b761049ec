"""`panda compress`."""

import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, BinaryIO

from panda.cli.command import argument, flag, option
from panda.cli.contract import Document, Invocation, Reporter, Result
from panda.cli.text import clipped, read_argument
from panda.compression.cache import CompressionCache
from panda.compression.compressing import Compression
from panda.compression.compressing import compress as compress_text
from panda.compression.content_types import CONTENT_TYPES, RECIPES, ContentType, detect_content_type
from panda.compression.events import compressed_line, overflow_line
from panda.compression.facts import compile_keep
from panda.compression.fitting import Cut, InputDocument
from panda.compression.nerves import NervesReader
from panda.compression.rewriting import Rewrite
from panda.compression.tokens import count_tokens
from panda.documents.times import render_time
from panda.errors import LimitError, NotFoundError, ReadOnlyStoreError, StoreError, UsageError
from panda.models.contract import Usage
from panda.models.layers import Layers
from panda.recipes.book import RecipeBook
from panda.recipes.executor import RecipeExecutor
from panda.recipes.journal import token_fields
from panda.recipes.pack import Request
from panda.recipes.recordings import Recordings
from panda.settings import Settings
from panda.storage.files import append_json_line, read_text, write_atomic
from panda.storage.opening import is_writable
from panda.trust import open_layers

_SHOWN_CHARS = 70
_Log = Callable[[Mapping[str, object]], None]


def read_document(file: str, stdin: BinaryIO) -> str:
    """
    The text of a file, or of stdin for `-`.

    Raises:
        UsageError: It is not UTF-8.
    """
    return read_argument("-", stdin) if file == "-" else read_text(Path(file))


def read_type(given: str | None, file: str, text: str) -> ContentType:
    """
    The type that was named, or the one detected.

    Raises:
        UsageError: There is no such type.
    """
    if given is None:
        return detect_content_type("" if file == "-" else Path(file).resolve().as_posix(), text)
    for kind in CONTENT_TYPES:
        if kind == given:
            return kind
    raise UsageError(
        f"there is no type {given!r}", where="--type", fix=f"give one of {', '.join(CONTENT_TYPES)}"
    )


def compress_document(
    invocation: Invocation,
    text: str,
    *,
    name: str,
    kind: ContentType,
    budget: int,
    query: str | None,
    keep: Sequence[str],
) -> Compression:
    """
    The document within the budget, from the cache if it was made before; noted in the log of the store.

    Raises:
        LimitError: What is protected does not fit.
        UsageError: A pattern is no regular expression.
        ModelFileError: models.yaml or a model of it is broken.
    """
    patterns = compile_keep(keep)
    settings, log = invocation.settings, _log_of(invocation)
    if count_tokens(text) <= budget:
        return compress_text(text, kind=kind, budget_tokens=budget, count=count_tokens)
    about = {"user_id": settings.user, "session_id": None, "turn_id": None}
    layer = settings.compression_model_layer
    try:
        made = _compressed(invocation, text, kind, budget, query, keep, patterns, log)
    except LimitError as exc:
        now = render_time(settings.clock())
        log({**overflow_line(name, exc.message, timestamp=now, recipe=None), **about})
        raise
    cut = Cut(name, made.before_tokens, made.after_tokens, made.method, kind, "command", made.seconds)
    now = render_time(settings.clock())
    log({**compressed_line(cut, timestamp=now, recipe=None, layer=layer), **about})
    return made


def _compressed(
    invocation: Invocation,
    text: str,
    kind: ContentType,
    budget: int,
    query: str | None,
    keep: Sequence[str],
    patterns: Sequence[re.Pattern[str]],
    log: _Log,
) -> Compression:
    settings = invocation.settings
    cache = CompressionCache(
        settings.cache_dir / "compression", max_age_seconds=settings.compression_cache_ttl
    )
    with open_layers(settings, invocation.environ) as layers:
        model = layers.model(settings.compression_model_layer)
        book = RecipeBook(settings.recipe_dirs, settings.prompt_dirs)
        recipe = book.load_recipe(RECIPES[kind])
        key = cache.key(
            text,
            kind=kind,
            budget_tokens=budget,
            query=query,
            keep=keep,
            model=model.info.digest,
            recipe=recipe.text if model.info.writes else None,
        )
        if (found := cache.find(key)) is not None:
            return found
        reader = NervesReader(model) if model.info.scores else None
        made = compress_text(
            text,
            kind=kind,
            budget_tokens=budget,
            count=count_tokens,
            query=query,
            keep=patterns,
            surprise=reader,
            rewrite=_rewriter(settings, layers, book, kind, query, log) if model.info.writes else None,
        )
        if reader is not None and reader.readings:
            log(_reading_line(reader, recipe.name, settings))
    _keep(cache, key, made, invocation.reporter)
    return made


def _keep(cache: CompressionCache, key: str, made: Compression, reporter: Reporter) -> None:
    """Keep what was made for the next time; where that is not possible only speed is lost."""
    try:
        cache.keep(key, made)
    except StoreError as exc:
        reporter.detail(f"not kept in the cache: {exc.message}")


def _log_of(invocation: Invocation) -> _Log:
    """Where lines of the log go: nowhere if there is no store, or one that may not be changed."""
    try:
        layout = invocation.store_for_writing()
    except (NotFoundError, ReadOnlyStoreError):
        return lambda line: None
    if not is_writable(layout):
        return lambda line: invocation.reporter.detail("not in the log: the store may only be read")
    return lambda line: append_json_line(layout.executions_log, line)


def _reading_line(reader: NervesReader, recipe: str, settings: Settings) -> dict[str, object]:
    """What the model read to weigh the sentences, as the line of an execution."""
    usage = sum((usage for usage, _ in reader.readings), Usage(0, 0, 0))
    return {
        "timestamp": render_time(settings.clock()),
        "recipe": recipe,
        "phase": None,
        "model_layer": settings.compression_model_layer,
        "method": "choose",
        "model": reader.model.name,
        "user_id": settings.user,
        "session_id": None,
        "turn_id": None,
        "tokens": token_fields(usage),
        "latency_ms": round(1000 * sum(seconds for _, seconds in reader.readings)),
        "success": True,
        "schema_valid": None,
        "confidence": None,
        "retries": 0,
        "compression_applied": False,
        "compression_savings": 0,
    }


def explain(reporter: Reporter, made: Compression) -> None:
    """Say what was left out and why, what was protected, and what it cost."""
    reporter.table(
        ("rung", "reason", "left out"),
        [(one.rung, one.reason, clipped(one.text, _SHOWN_CHARS)) for one in made.dropped],
    )
    if made.protected:
        reporter.table(("protected",), [(clipped(text, _SHOWN_CHARS),) for text in made.protected])
    if made.note:
        reporter.step(f"not used: {made.note}")
    reporter.step(
        f"{made.kind}: {made.before_tokens} tokens before, {made.after_tokens} after "
        f"({100 * made.ratio:.0f} %), by {made.method} (rung {made.rung}), verified, "
        f"{made.seconds:.2f} seconds"
    )


def result_data(made: Compression, out: Path | None) -> dict[str, object]:
    """The numbers of a compression for `--json`."""
    return {
        "type": made.kind,
        "before_tokens": made.before_tokens,
        "after_tokens": made.after_tokens,
        "ratio": made.ratio,
        "rung": made.rung,
        "method": made.method,
        "kept_pieces": made.kept_pieces,
        "dropped": [{"rung": one.rung, "reason": one.reason, "text": one.text} for one in made.dropped],
        "protected": list(made.protected),
        "verification": {"problems": [], "refused_rewrites": made.note},
        "seconds": round(made.seconds, 4),
        "out": None if out is None else str(out),
        "text": made.text if out is None else None,
    }


class _NoTurn:
    """A journal for calls outside a turn: nothing is written, nothing is counted."""

    def __init__(self, settings: Settings) -> None:
        self.user_id = settings.user
        self.session_id = settings.session
        self.turn = 0
        self.phase = None
        self.recordings = Recordings(())
        self._seed = settings.seed or 0

    def seed(self, recipe: str, attempt: int) -> int:
        return self._seed + attempt

    def count_execution(self, recipe: str) -> None:
        pass

    def add_call(self, record: Mapping[str, object]) -> None:
        pass

    def knows_prefix(self, digest: str) -> bool:
        return True


def _rewriter(
    settings: Settings, layers: Layers, book: RecipeBook, kind: ContentType, query: str | None, log: _Log
) -> Rewrite:
    """Words a passage anew by the recipe of the document's type."""
    clock = settings.clock
    executor = RecipeExecutor(book, layers, clock=clock, log=log, count=count_tokens)
    key = RECIPES[kind]
    name = book.load_recipe(key).input_docs[0]

    def rewrite(passage: str, tokens: int) -> str:
        request = Request(
            query=query or "",
            documents=[InputDocument(name, passage, protected=True)],
            variables={"target_tokens": str(tokens)},
        )
        return str(executor.execute(key, request, _NoTurn(settings)).values["text"])

    return rewrite


def compress(
    invocation: Invocation,
    file: Annotated[str, argument("The document; - reads standard input.", "FILE|-")],
    budget: Annotated[int, option("Most tokens (cl100k_base) it may have.", "N", min=1)],
    query: Annotated[str | None, option("What the document is wanted for.", "TEXT")] = None,
    content_type: Annotated[
        str | None, option(f"{', '.join(CONTENT_TYPES)}; detected if left out.", "TYPE", "--type")
    ] = None,
    keep: Annotated[
        list[str] | None, option("Drop nothing in which this regular expression occurs.", "PATTERN")
    ] = None,
    out: Annotated[Path | None, option("Write there, not to stdout.", "OUT", "--out", "-o")] = None,
    explain_it: Annotated[bool, flag("Say on stderr what was left out.", "--explain")] = False,
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
