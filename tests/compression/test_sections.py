"""Sections are brought within budget before they are written."""

from collections.abc import Sequence

import pytest

from panda.compression.budgets import Limits
from panda.compression.fit import DOCUMENT_TARGET_TOKENS, fit_context, fit_section
from panda.documents.context import (
    SECTIONS,
    Block,
    ContextDocument,
    FrontMatter,
    Meta,
    Section,
    Text,
    parse_context,
    render_context,
    render_section,
)
from panda.errors import BudgetExceededError
from panda.models.cl100k import count_tokens
from tests.store_files import NOW

SENTENCES = " ".join(
    f"Laptop number {n} has a screen of {n + 10} inches and weighs {n} kg." for n in range(400)
)


def test_within_budget_nothing_changes() -> None:
    """A section within its budget comes back as it is."""
    section = Section(2, (Text("### Constraints"), Meta({"node_ids": []}), Text("- none stated")))
    assert fit_section(section, query="x") == (section, None)


def test_query_section_is_never_cut() -> None:
    """§0 stays whole however long it is."""
    section = Section(0, (Text(SENTENCES),))
    assert fit_section(section, query="x") == (section, None)


def test_older_tool_results_shrink_first() -> None:
    """§4 fits its budget with the newest result whole and its `_meta` untouched."""
    newest = " ".join(SENTENCES.split(". ")[:40])
    section = Section(4, (Meta({"step": 1}), Text(SENTENCES), Meta({"step": 2}), Text(newest)))
    fitted, cut = fit_section(section, query="laptop 7")
    assert count_tokens(render_section(fitted)) <= SECTIONS[4].budget_tokens
    assert fitted.blocks[2:] == section.blocks[2:]
    assert fitted.blocks[0] == Meta({"step": 1})
    assert cut is not None
    assert cut.before_tokens > SECTIONS[4].budget_tokens >= cut.after_tokens
    assert "[…]" in fitted.text


def test_newest_result_alone_over_budget() -> None:
    """A newest result that alone exceeds the budget shrinks too."""
    fitted, cut = fit_section(Section(4, (Text(SENTENCES),)), query="laptop 7")
    assert cut is not None
    assert count_tokens(render_section(fitted)) <= SECTIONS[4].budget_tokens


def tool_section(sizes: Sequence[int]) -> Section:
    """§4 with a result of so many sentences for each step."""
    blocks: list[Block] = []
    for step, size in enumerate(sizes, 1):
        blocks.append(
            Meta({"step": step, "tool": "web.fetch", "status": "success", "node_ids": ["turn:1"] * 9})
        )
        blocks.append(Text(" ".join(f"Result {step}.{n} is a laptop of {n} kg." for n in range(size))))
    return Section(4, tuple(blocks))


def document(*sections: Section) -> ContextDocument:
    """context.md with these sections."""
    return ContextDocument(FrontMatter("context/1", 1, "ann", "default", "chat", NOW), sections)


def test_a_section_of_20000_tokens() -> None:
    """However much came before, §4 ends within budget, the newest whole, every step's `_meta` there."""
    section = tool_section([250] * 9 + [150])
    assert count_tokens(render_section(section)) > 20_000
    fitted, _ = fit_section(section, query="laptop")
    assert count_tokens(render_section(fitted)) <= SECTIONS[4].budget_tokens
    assert fitted.blocks[-2:] == section.blocks[-2:]
    metas = [block.values["step"] for block in fitted.blocks if isinstance(block, Meta)]
    assert metas == list(range(1, 11))
    assert parse_context(render_context(document(fitted)), where="x") == document(fitted)


def test_a_document_over_8600_tokens() -> None:
    """Sections within their budgets that are too much together are brought to 7,500, the largest first."""
    sections = [Section(n, (Text(sentences(n, SECTIONS[n].budget_tokens - 15)),)) for n in range(7)]
    sections[0] = Section(0, (Text(sentences(0, 900)),))
    whole = document(*sections)
    fitted, cuts = fit_context(whole, 6, query="")
    assert count_tokens(render_context(fitted)) <= DOCUMENT_TARGET_TOKENS
    assert [fitted.section(n) for n in (0, 1, 3, 6)] == [sections[n] for n in (0, 1, 3, 6)]
    assert {cut.name for cut in cuts} == {"§2", "§4", "§5"}
    assert {cut.trigger for cut in cuts} == {"document"}


def test_a_document_within_8600_tokens() -> None:
    """A section over its budget is cut alone, and the document with it is left as it is."""
    whole = document(Section(0, (Text("x"),)), Section(2, (Text(sentences(2, 2100)),)))
    fitted, cuts = fit_context(whole, 2, query="")
    assert [(cut.name, cut.trigger) for cut in cuts] == [("§2", "section")]
    assert SECTIONS[2].budget_tokens - 50 <= count_tokens(render_context(fitted)) <= 2100 - 50


def test_compression_off() -> None:
    """With compression off a section over its budget is an error with the number."""
    whole = document(Section(2, (Text(sentences(2, 2100)),)))
    with pytest.raises(BudgetExceededError, match=r"§2 has 2\d\d\d tokens"):
        fit_context(whole, 2, query="", limits=Limits(enabled=False))


def sentences(seed: int, tokens: int) -> str:
    """Sentences of so many tokens."""
    found: list[str] = []
    while count_tokens(" ".join(found)) < tokens:
        found.append(f"Laptop {seed}.{len(found)} weighs {len(found)} kg.")
    return " ".join(found[:-1])
