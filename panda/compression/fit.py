"""What is brought down to its room (S3 §25, §26): the inputs of a call, sections, context.md."""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from msgspec import structs

from panda.compression.budgets import Limits
from panda.compression.pieces import CONTENT_TYPES, MARK, ContentType
from panda.documents.context import (
    SECTIONS,
    Block,
    ContextDocument,
    Meta,
    Phase,
    Section,
    Text,
    render_context,
    render_section,
)
from panda.errors import BudgetExceededError
from panda.language.patterns import lazy_pattern
from panda.models.cl100k import count_tokens
from panda.store.execution_log import COMPRESSED, OVERFLOW
from panda.store.records import Execution

Rewrite = Callable[[str, int], str]
"""Maps a passage and the budget tokens it may have to another wording; raises HaltError when it cannot."""

Rewriter = Callable[[ContentType], Rewrite | None]
"""Gives what words passages of a type of document anew; None where no model writes."""

REWRITE = "rewrite"
"""Method of a compression for which passages were worded anew."""

STEPS = {kind: f"compress_{kind.removesuffix('.md')}" for kind in CONTENT_TYPES}
"""The step of the registry whose recipe rewrites a document of each type."""

DOCUMENT_TOKENS = 8_600
DOCUMENT_TARGET_TOKENS = 7_500
"""A context.md above the first is brought down to the second."""

_LAST_HEADING = lazy_pattern(r"(?:\A|\n\n)### [^\n]*\Z")
"""The title of a part of §2, at the end of a text."""
_OLDER_TOKENS = 1_500
"""What older results come down to when §4 is over its budget (S3 §26)."""
_SHORT_META = ("step", "steps", "tool", "status")
"""What stays of the `_meta` of an older result that has no room; the rest stands in steps/."""
_MARKS: dict[ContentType, re.Pattern[str]] = {
    "context.md": lazy_pattern(r"^## 0\. User Query\s*$", re.MULTILINE),
    "research.md": lazy_pattern(r"^## Research Findings\s*$", re.MULTILINE),
    "prior_turn": lazy_pattern(r"^(?:#{1,6}\s+|\*\*)?Previous Turn\b", re.MULTILINE),
}
_PAGE_KEYS = ('"ocr_items": ', '"zones": ')
_TURN_NAME = lazy_pattern(r"(?:^|/)turn_\d+(?:/|\.|$)")


def detect_content_type(name: str, text: str) -> ContentType:
    """
    The type of a document, by its name first and by its marks second (S3 §22). A mark counts only where it is
    structure, not where running text mentions it: `ocr_items` must be a key of a JSON document, a heading
    must be a heading.

    >>> detect_content_type("", "# Notes\\n\\n## Research Findings\\n"), detect_content_type("tool:x", "ok")
    ('research.md', 'tool_result')
    """
    file = name.rsplit("/", 1)[-1]
    named: dict[ContentType, bool] = {
        "context.md": name.startswith("§") != name.startswith("§4")
        or file in ("context.md", "gathered_context"),
        "research.md": file == "research.md",
        "page_doc": "page_doc" in file or _is_page(text),
        "tool_result": name.startswith(("tool:", "§4"))
        or file.startswith("toolresults")
        or "tool_result" in file,
        "prior_turn": name in ("carry", "turn_summaries") or bool(_TURN_NAME.search(name)),
    }
    marked = {kind for kind, mark in _MARKS.items() if mark.search(text)}
    return next((kind for kind, is_named in named.items() if is_named or kind in marked), "generic")


def _is_page(text: str) -> bool:
    if not text.lstrip().startswith("{") or ('"ocr_items"' not in text and '"zones"' not in text):
        return False
    from panda.compression.json import parse_json  # loaded with the first text that may be a page

    outline = parse_json(text)
    return outline is not None and any(child.key in _PAGE_KEYS for child in outline.root.children)


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
    rewriter: Rewriter = lambda kind: None,
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
    from panda.compression.compressor import compress, least_tokens  # loaded with the first that is too long

    free = [i for i, document in enumerate(documents) if document.text and not document.protected][::-1]
    kinds = {i: detect_content_type(documents[i].name, documents[i].text) for i in free}
    least = {i: least_tokens(documents[i].text, kind=kinds[i], keep=keep) for i in free}
    needed = sum(least.get(i, size) for i, size in enumerate(sizes))
    if needed > room_tokens:
        raise BudgetExceededError(
            f"the inputs need {needed} tokens when everything that may be cut is cut, "
            f"{needed - room_tokens} more than the room of {room_tokens}",
            expected=f"at most {room_tokens} tokens",
            received=f"{needed} tokens",
            fix="raise token_budget.input of the recipe, or use a model with a larger context window",
        )
    fitted = list(documents)
    cuts: dict[int, Cut] = {}
    shares = {i: max(least[i], int(documents[i].share * room_tokens)) for i in free}
    for i, floor in [*shares.items(), *least.items()]:
        if over <= 0 or floor >= sizes[i]:
            continue
        compression = compress(
            documents[i].text,
            kind=kinds[i],
            budget_tokens=max(floor, sizes[i] - over),
            query=query,
            keep=keep,
            rewrite=rewriter(kinds[i]),
        )
        fitted[i] = replace(documents[i], text=compression.text)
        before = compression.before_tokens
        after = compression.after_tokens
        cuts[i] = Cut(
            documents[i].name, before, after, compression.method, kinds[i], seconds=compression.seconds
        )
        over -= sizes[i] - after
        sizes[i] = after
    return fitted, list(cuts.values())


def fit_context(
    document: ContextDocument,
    number: int,
    *,
    query: str,
    limits: Limits | None = None,
    rewriter: Rewriter = lambda kind: None,
) -> tuple[ContextDocument, list[Cut]]:
    """
    context.md with a new section, before it is written, and the cuts, with what caused each of them. A
    section over its budget is compressed alone. Only if the document is over 8,600 tokens all the same, it is
    brought to 7,500: the largest sections first, down to one common size, the new one last, §0 never.
    *rewriter* gives what words passages of §2 and §4 anew. BudgetExceededError: something would have to be
    cut, and compression is off.
    """
    limits = limits or Limits()
    cuts: list[Cut] = []
    section = document.section(number)
    if section is not None:
        section, cut = fit_section(section, query=query, rewriter=rewriter)
        if cut is not None:
            document, cuts = document.with_section(section), [cut]
    total = count_tokens(render_context(document))
    most = DOCUMENT_TOKENS
    for is_newest in (False, True):
        if total <= most:
            break
        most = DOCUMENT_TARGET_TOKENS
        group = [
            other for other in document.sections if other.number and (other.number == number) is is_newest
        ]
        for section, budget in _shares(group, total - most):
            section, cut = _shrink(section, budget, query)
            if cut is not None:
                document = document.with_section(section)
                cuts.append(replace(cut, trigger="document"))
        total = count_tokens(render_context(document))
    if cuts and not limits.enabled:
        first = cuts[0]
        raise BudgetExceededError(
            f"{first.name} has {first.before_tokens} tokens, too many for its budget or for context.md, and "
            "compression is off",
            where="setting compression_enabled",
            fix="set compression_enabled = true",
        )
    return document, cuts


def fit_section(
    section: Section, *, query: str, rewriter: Rewriter = lambda kind: None
) -> tuple[Section, Cut | None]:
    """
    A section within its budget, before it is written, `_meta` whole; and the cut, None if there was none. In
    §4 older results go to 1,500 tokens, the oldest first, then their `_meta` to step, tool and status, then
    all of them to one mark with their numbers. The newest stays whole unless it alone is over the budget. A
    section whose `_meta` leaves no room comes back as far down as it goes.
    """
    budget = SECTIONS[section.number].budget_tokens
    before = count_tokens(render_section(section))
    if section.number == Phase.QUERY_ANALYZER or before <= budget:
        return section, None
    newest = section.blocks[newest_result(section) :]
    if section.number != Phase.COORDINATOR or newest == section.blocks:
        return _shrink(section, budget, query, rewriter)
    aim = _OLDER_TOKENS + count_tokens(render_section(Section(Phase.COORDINATOR, newest)))
    fitted, cut = _shrink(section, min(aim, budget), query, rewriter)
    if aim < budget and fitted.blocks[-len(newest) :] != newest:
        return _shrink(section, budget, query, rewriter)
    return fitted, cut


def _shrink(
    section: Section, budget: int, query: str, rewriter: Rewriter = lambda kind: None
) -> tuple[Section, Cut | None]:
    """The section in so many tokens, or as near to them as what it must hold allows."""
    before = count_tokens(render_section(section))
    if before <= budget:
        return section, None
    is_tools = section.number == Phase.COORDINATOR
    kind: ContentType = "tool_result" if is_tools else "context.md"
    rewrite = rewriter(kind) if is_tools or section.number == Phase.CONTEXT_GATHERER else None
    for form, whole in _forms(section):
        texts, headings = _texts_of(form)
        order = list(texts)[:: -1 if is_tools else 1]
        if section.number == Phase.CONTEXT_GATHERER:
            order = [*order[-1:], *order[:-1]]  # the constraints, which stand last, are cut last
        name = "tool_result" if is_tools else "context.md"
        inputs = [InputDocument(name, texts[place], protected=place >= whole) for place in order]
        frame = count_tokens(render_section(form)) - sum(map(count_tokens, texts.values()))
        room = budget - frame - len(texts)  # texts beside each other may take a token more
        try:
            fitted, cuts = fit_documents(
                inputs, room_tokens=max(0, room), query=query, rewriter=lambda kind: rewrite
            )
        except BudgetExceededError:
            continue
        blocks = list(form.blocks)
        for place, document in zip(order, fitted, strict=True):
            blocks[place] = Text(document.text + headings[place])
        shrunk = Section(section.number, tuple(blocks))
        after = count_tokens(render_section(shrunk))
        if after <= budget:
            method = REWRITE if any(cut.method == REWRITE for cut in cuts) else "lexical"
            seconds = sum(cut.seconds for cut in cuts)
            return shrunk, Cut(
                name=f"§{section.number}",
                before_tokens=before,
                after_tokens=after,
                method=method,
                content_type=kind,
                trigger="section",
                seconds=seconds,
            )
    return section, None


def _texts_of(section: Section) -> tuple[dict[int, str], dict[int, str]]:
    """
    Return what may be compressed of each text of a section, and the heading that ends the text, by place.

    In §2 the heading of the next part stands behind the lines of the one before. It stays whole: without it
    the `_meta` that follows would belong to the wrong part.
    """
    texts: dict[int, str] = {}
    headings: dict[int, str] = {}
    for place, block in enumerate(section.blocks):
        if not isinstance(block, Text):
            continue
        heading = _LAST_HEADING.search(block.text) if section.number == Phase.CONTEXT_GATHERER else None
        headings[place] = heading[0] if heading else ""
        texts[place] = block.text.removesuffix(headings[place])
    return texts, headings


def _forms(section: Section) -> Iterator[tuple[Section, int]]:
    """
    Yield what a section may be compressed as, the fullest first, with the block from which on it stays whole;
    of §4 with less and less of the older results, which can be read in steps/.
    """
    blocks = section.blocks
    end = len(blocks)
    if section.number == Phase.COORDINATOR:
        newest = newest_result(section)
        older: list[Block] = []
        numbers: list[object] = []
        for block in blocks[:newest]:
            if isinstance(block, Meta):
                steps = block.values.get("steps")
                numbers += steps if isinstance(steps, list) else [block.values.get("step")]
                block = Meta({name: block.values[name] for name in _SHORT_META if name in block.values})
            older.append(block)
        short = Section(Phase.COORDINATOR, (*older, *blocks[newest:]))
        mark: list[Block] = [Meta({"steps": numbers}), Text(MARK)] if numbers else []
        yield section, newest
        yield short, newest
        yield Section(Phase.COORDINATOR, (*mark, *blocks[newest:])), len(mark)
        yield section, end
        yield short, end
    else:
        yield section, end


def newest_result(section: Section) -> int:
    """Return where the newest result of §4 begins, with what is said behind it of how the calls ended."""
    steps = [
        n for n, block in enumerate(section.blocks) if isinstance(block, Meta) and "step" in block.values
    ]
    return max(steps, default=0)


def _shares(sections: Sequence[Section], over: int) -> list[tuple[Section, int]]:
    """The sections to shrink, largest first, with the common size that takes off so many tokens together."""
    sizes = sorted(
        ((count_tokens(render_section(other)), other.number, other) for other in sections), reverse=True
    )
    cap = 0
    for n in range(1, len(sizes) + 1):
        below = sizes[n][0] if n < len(sizes) else 0
        cap = (sum(size for size, _, _ in sizes[:n]) - over) // n
        if cap >= below:
            break
    return [(section, max(0, cap)) for size, _, section in sizes if size > cap]


def compressed_line(
    cut: Cut, *, timestamp: str, recipe: str | None, layer: str | None, model: str | None = None
) -> Execution:
    """
    One compression for the log, without whose it was; layer and model are named only if one was asked.

    >>> line = compressed_line(Cut("§4", 3000, 2400), timestamp="", recipe=None, layer="NERVES")
    >>> line.trigger, line.tokens_saved, line.compression_ratio
    ('input', 600, 0.8)
    """
    before = cut.before_tokens
    after = cut.after_tokens
    asked = cut.method == REWRITE
    return Execution(
        timestamp=timestamp,
        event=COMPRESSED,
        trigger=cut.trigger,
        document=cut.name,
        content_type=cut.content_type,
        recipe=recipe,
        model_layer=layer if asked else None,
        method=cut.method,
        model=model if asked else None,
        original_tokens=before,
        compressed_tokens=after,
        tokens_saved=before - after,
        compression_ratio=round(after / before, 4) if before else 1.0,
        latency_ms=round(cut.seconds * 1000, 1),
    )


def overflow_line(what: str, message: str, *, timestamp: str, recipe: str | None) -> Execution:
    """Return what could not be brought within its budget, for the log."""
    line = Execution(timestamp=timestamp, event=OVERFLOW, document=what, content_type=None)
    return structs.replace(line, recipe=recipe, model_layer=None, message=message)
