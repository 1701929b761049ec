"""What kinds of text documents are, how they come down to the room of a call, and cuts in the log."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Literal, get_args

from panda.errors import BudgetExceededError
from panda.models.cl100k import count_tokens
from panda.store.log import COMPRESSED, OVERFLOW

MARK = "[…]"
"""Stands where something was left out."""

Rewrite = Callable[[str, int], str]
"""Maps a passage and the budget tokens it may have to another wording; raises HaltError when it cannot."""

REWRITE = "rewrite"
"""Method of a compression for which passages were worded anew."""

ContentType = Literal["context.md", "research.md", "page_doc", "tool_result", "prior_turn", "generic"]
CONTENT_TYPES: tuple[ContentType, ...] = get_args(ContentType)

RECIPES = {kind: f"compress/compress_{kind.removesuffix('.md')}" for kind in CONTENT_TYPES}
"""The recipe that rewrites a document of each type."""

_CONTEXT_LINE = re.compile(r"^## 0\. User Query\s*$", re.MULTILINE)
_RESEARCH_LINE = re.compile(r"^## Research Findings\s*$", re.MULTILINE)
_PRIOR_TURN_LINE = re.compile(r"^(?:#{1,6}\s+|\*\*)?Previous Turn\b", re.MULTILINE)
_TURN_NAME = re.compile(r"(?:^|/)turn_\d+(?:/|\.|$)")
_BY_MODEL = ("model", REWRITE)
"""Methods for which a model was asked."""


def detect_content_type(name: str, text: str) -> ContentType:
    """
    The type of a document, by its name first and by its marks second (S3 §22). A mark counts only where it is
    structure, not where running text mentions it: `ocr_items` must be a key of a JSON document, a heading
    must be a heading.

    >>> detect_content_type("", "# Notes\\n\\n## Research Findings\\n"), detect_content_type("tool:x", "ok")
    ('research.md', 'tool_result')
    """
    file = name.rsplit("/", 1)[-1]
    if file == "context.md" or _CONTEXT_LINE.search(text):
        return "context.md"
    if file == "research.md" or _RESEARCH_LINE.search(text):
        return "research.md"
    if "page_doc" in file or _is_page(text):
        return "page_doc"
    if name.startswith("tool:") or file.startswith("toolresults") or "tool_result" in file:
        return "tool_result"
    if _TURN_NAME.search(name) or _PRIOR_TURN_LINE.search(text):
        return "prior_turn"
    return "generic"


def _is_page(text: str) -> bool:
    if not text.lstrip().startswith("{") or ('"ocr_items"' not in text and '"zones"' not in text):
        return False
    from panda.compression.json_pieces import load_json  # loaded with the first text that may be a page

    try:
        value = load_json(text)
    except (ValueError, RecursionError):
        return False
    return isinstance(value, dict) and ("ocr_items" in value or "zones" in value)


Trigger = Literal["section", "document", "input", "call", "window", "command"]
"""
Budget of a section, of context.md, of a recipe's inputs, of any call, or the model's context window: what is
over an earlier one is compressed before a later one is looked at. Or `panda compress` was asked to.
"""


@dataclass(frozen=True)
class InputDocument:
    """One document that goes into a prompt."""

    name: str  # its title in the prompt
    text: str  # what it says
    protected: bool = False  # never cut
    share: float = 0.0  # part of the room, 0 to 1, that it is left with until all else is cut


@dataclass(frozen=True)
class Cut:
    """What fitting took from one document."""

    name: str  # the document
    before_tokens: int  # budget tokens it had
    after_tokens: int  # budget tokens it kept, the marks included
    method: str = "lexical"  # how it was compressed: whole pieces, lexical, model or rewrite
    content_type: ContentType = "generic"  # its type
    trigger: Trigger = "input"  # which limit it was over
    seconds: float = 0.0  # what it took


def fit_documents(
    documents: Sequence[InputDocument],
    *,
    room_tokens: int,
    query: str | None = None,
    keep: Sequence[re.Pattern[str]] = (),
    rewrite: Rewrite | None = None,
) -> tuple[list[InputDocument], list[Cut]]:
    """
    Documents, the most important first, that fit the room together, and the cuts. The least important
    unprotected ones are compressed first, with `[…]` in the place of what was dropped. One with a share of
    the room goes below it only when all others are cut. BudgetExceededError: what is protected, error
    messages in the documents included, does not fit.
    """
    sizes = [count_tokens(document.text) for document in documents]
    over = sum(sizes) - room_tokens
    if over <= 0:
        return list(documents), []
    from panda.compression.compress import compress, least_tokens  # loaded with the first that is too long

    fitted = list(documents)
    cuts: dict[int, Cut] = {}
    backwards = list(reversed(range(len(documents))))
    for i, is_last in [*((i, False) for i in backwards), *((i, True) for i in backwards)]:
        document = documents[i]
        if over <= 0 or document.protected or not document.text or (is_last and not document.share):
            continue
        kind = detect_content_type(document.name, document.text)
        least = least_tokens(document.text, kind=kind, keep=keep)
        floor = least if is_last else max(least, int(document.share * room_tokens))
        if floor >= sizes[i]:
            continue
        compressed = compress(
            document.text,
            kind=kind,
            budget_tokens=max(floor, sizes[i] - over),
            query=query,
            keep=keep,
            rewrite=rewrite,
        )
        fitted[i] = replace(document, text=compressed.text)
        before, after = compressed.before_tokens, compressed.after_tokens
        cuts[i] = Cut(
            document.name, before, after, compressed.method, compressed.kind, seconds=compressed.seconds
        )
        over -= sizes[i] - compressed.after_tokens
        sizes[i] = compressed.after_tokens
    if over > 0:
        raise BudgetExceededError(
            f"the inputs need {room_tokens + over} tokens when everything that may be cut is cut, "
            f"{over} more than the room of {room_tokens}",
            expected=f"at most {room_tokens} tokens",
            received=f"{room_tokens + over} tokens",
            fix="raise token_budget.input of the recipe, or use a model with a larger context window",
        )
    return fitted, list(cuts.values())


def compressed_line(
    cut: Cut, *, timestamp: str, recipe: str | None, layer: str | None, model: str | None = None
) -> dict[str, object]:
    """
    One compression for the log, without whose it was; layer and model are named only if one was asked.

    >>> line = compressed_line(Cut("§4", 3000, 2400), timestamp="", recipe=None, layer="NERVES")
    >>> line["trigger"], line["tokens_saved"], line["compression_ratio"]
    ('input', 600, 0.8)
    """
    return {
        "timestamp": timestamp,
        "event": COMPRESSED,
        "trigger": cut.trigger,
        "document": cut.name,
        "content_type": cut.content_type,
        "recipe": recipe,
        "model_layer": layer if cut.method in _BY_MODEL else None,
        "method": cut.method,
        "model": model if cut.method in _BY_MODEL else None,
        "original_tokens": cut.before_tokens,
        "compressed_tokens": cut.after_tokens,
        "tokens_saved": cut.before_tokens - cut.after_tokens,
        "compression_ratio": round(cut.after_tokens / cut.before_tokens, 4) if cut.before_tokens else 1.0,
        "latency_ms": round(cut.seconds * 1000, 1),
    }


def overflow_line(what: str, message: str, *, timestamp: str, recipe: str | None) -> dict[str, object]:
    """What could not be brought within its budget, for the log."""
    return {
        "timestamp": timestamp,
        "event": OVERFLOW,
        "document": what,
        "content_type": None,
        "recipe": recipe,
        "model_layer": None,
        "message": message,
    }
