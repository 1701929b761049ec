"""Sections are brought within budget before they are written."""

from collections.abc import Sequence

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
from panda.models.cl100k import count_tokens
from tests.store_files import NOW


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


def sentences(seed: int, tokens: int) -> str:
    """Sentences of so many tokens."""
    found: list[str] = []
    while count_tokens(" ".join(found)) < tokens:
        found.append(f"Laptop {seed}.{len(found)} weighs {len(found)} kg.")
    return " ".join(found[:-1])
