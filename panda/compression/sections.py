"""Sections of context.md within their budgets, and the document within its own (S3 §25, §26)."""

from collections.abc import Callable
from dataclasses import replace

from panda.compression.budgets import DOCUMENT_TARGET_TOKENS, DOCUMENT_TOKENS, Limits
from panda.compression.documents import MARK, REWRITE, ContentType, Cut, InputDocument, Rewrite, fit_documents
from panda.documents.context import (
    SECTIONS,
    Block,
    ContextDocument,
    Meta,
    Section,
    Text,
    render_context,
    render_section,
)
from panda.errors import BudgetExceededError
from panda.models.cl100k import count_tokens

Rewriter = Callable[[ContentType], Rewrite | None]
"""Gives what words passages of a type of document anew; None where no model writes."""

_GATHERED, _TOOLS = 2, 4
_WORDED_ANEW = (_GATHERED, _TOOLS)
_NAMES = {_TOOLS: "tool_result"}
_MOST_TRIES = 3
_SHORT_META = ("step", "steps", "tool", "status")
"""What stays of the `_meta` of an older result that has no room; the rest stands in steps/."""


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
    fitted_document, cuts = document, []
    section = document.section(number)
    if section is not None:
        fitted, cut = fit_section(section, query=query, limits=limits, rewriter=rewriter)
        if cut is not None:
            fitted_document = fitted_document.with_section(fitted)
            cuts.append(cut)
    total = count_tokens(render_context(fitted_document))
    if total > DOCUMENT_TOKENS:
        older = [one for one in fitted_document.sections if one.number not in (0, number)]
        newest = [one for one in fitted_document.sections if one.number == number != 0]
        for group in (older, newest):
            for one, budget in _shares(group, total - DOCUMENT_TARGET_TOKENS):
                fitted, cut = _shrink(one, budget, query)
                if cut is not None:
                    fitted_document = fitted_document.with_section(fitted)
                    cuts.append(replace(cut, trigger="document"))
            total = count_tokens(render_context(fitted_document))
            if total <= DOCUMENT_TARGET_TOKENS:
                break
    if cuts and not limits.enabled:
        first = cuts[0]
        raise BudgetExceededError(
            f"{first.name} has {first.before_tokens} tokens, too many for its budget or for context.md, and "
            "compression is off",
            where="setting compression_enabled",
            fix="set compression_enabled = true",
        )
    return fitted_document, cuts


def fit_section(
    section: Section,
    *,
    query: str,
    limits: Limits | None = None,
    rewriter: Rewriter = lambda kind: None,
) -> tuple[Section, Cut | None]:
    """
    A section within its budget, before it is written, `_meta` whole; and the cut, None if there was none. In
    §4 older results shrink before newer ones, then their `_meta` to step, tool and status, then all of them
    to one mark with their numbers. The newest stays whole unless it alone is over the budget. A section whose
    `_meta` leaves no room comes back as far down as it goes.
    """
    budget = SECTIONS[section.number].budget_tokens
    before = count_tokens(render_section(section))
    if section.number == 0 or before <= budget:
        return section, None
    aim = (limits or Limits()).target(before, budget)
    fitted, cut = _shrink(section, aim, query, rewriter)
    newest = newest_result(section)
    if section.number == _TOOLS and aim < budget and section.blocks[newest:] != fitted.blocks[newest:]:
        fitted, cut = _shrink(section, budget, query, rewriter)
    return fitted, cut


def _shrink(
    section: Section,
    budget: int,
    query: str,
    rewriter: Rewriter = lambda kind: None,
) -> tuple[Section, Cut | None]:
    """The section in so many tokens, or as near to them as what it must hold allows."""
    before = count_tokens(render_section(section))
    if before <= budget:
        return section, None
    is_tools = section.number == _TOOLS
    tries = [(section, False)]
    if is_tools:
        short = _with_short_meta(section)
        tries = [(section, True), (short, True), (_folded(section), True), *tries, (short, False)]
    for given, newest_whole in tries:
        extract = _fit(given, budget, newest_whole, query)
        if extract is None:
            continue
        kind: ContentType = "tool_result" if is_tools else "context.md"
        rewrite = rewriter(kind) if section.number in _WORDED_ANEW else None
        worded = _fit(given, budget, newest_whole, query, rewrite) if rewrite else None
        best, method, seconds = worded or extract
        after = count_tokens(render_section(best))
        return best, Cut(f"§{section.number}", before, after, method, kind, "section", seconds)
    return section, None


def _fit(
    section: Section,
    budget: int,
    newest_whole: bool,
    query: str,
    rewrite: Rewrite | None = None,
) -> tuple[Section, str, float] | None:
    """The section with its texts compressed into the budget, how, and in what time; None if it cannot be."""
    texts = {place: block.text for place, block in enumerate(section.blocks) if isinstance(block, Text)}
    order = places = list(texts)
    if section.number == _TOOLS:
        order = places[::-1]
    elif section.number == _GATHERED:
        order = [*places[-1:], *places[:-1]]  # the constraints, which stand last, are cut last
    name = _NAMES.get(section.number, SECTIONS[section.number].title)
    whole = newest_result(section) if newest_whole else len(section.blocks)
    given = [InputDocument(name, texts[place], protected=place >= whole) for place in order]
    size = count_tokens(render_section(section))
    room = budget - (size - sum(count_tokens(document.text) for document in given))
    for _ in range(_MOST_TRIES):
        try:
            fitted, cuts = fit_documents(given, room_tokens=max(0, room), query=query, rewrite=rewrite)
        except BudgetExceededError:
            return None
        blocks = list(section.blocks)
        for place, document in zip(order, fitted, strict=True):
            blocks[place] = Text(document.text)
        shrunk = Section(section.number, tuple(blocks))
        over = count_tokens(render_section(shrunk)) - budget  # texts beside each other may take a token more
        if over <= 0:
            worded = any(cut.method == REWRITE for cut in cuts)
            return shrunk, REWRITE if worded else "lexical", sum(cut.seconds for cut in cuts)
        room -= over
    return None


def newest_result(section: Section) -> int:
    """Where the newest result of §4 begins; what is said behind it of how the calls ended belongs to it."""
    steps = [
        n for n, block in enumerate(section.blocks) if isinstance(block, Meta) and "step" in block.values
    ]
    return max(steps, default=0)


def _with_short_meta(section: Section) -> Section:
    """The section with what can be read in steps/ left out of the `_meta` of all results but the newest."""
    newest = newest_result(section)
    blocks = [
        Meta({name: block.values[name] for name in _SHORT_META if name in block.values})
        if isinstance(block, Meta) and place < newest
        else block
        for place, block in enumerate(section.blocks)
    ]
    return Section(section.number, tuple(blocks))


def _folded(section: Section) -> Section:
    """The section with one mark for all results but the newest: these can be read in steps/ alone."""
    newest = newest_result(section)
    older: list[object] = []
    for block in section.blocks[:newest]:
        if isinstance(block, Meta):
            known = block.values.get("steps")
            older += known if isinstance(known, list) else [block.values.get("step")]
    mark: list[Block] = [Meta({"steps": older}), Text(MARK)] if older else []
    return Section(section.number, (*mark, *section.blocks[newest:]))


def _shares(sections: list[Section], over: int) -> list[tuple[Section, int]]:
    """The sections to shrink, largest first, with the common size that takes off so many tokens together."""
    sizes = sorted(((count_tokens(render_section(one)), one.number, one) for one in sections), reverse=True)
    cap = 0
    for n in range(1, len(sizes) + 1):
        below = sizes[n][0] if n < len(sizes) else 0
        cap = (sum(size for size, _, _ in sizes[:n]) - over) // n
        if cap >= below:
            break
    return [(one, max(0, cap)) for size, _, one in sizes if size > cap]
