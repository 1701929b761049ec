"""Sections are brought within budget before they are written."""

from panda.compression.sections import fit_section
from panda.compression.tokens import count_tokens
from panda.documents.context import Meta, Section, Text, render_section
from panda.documents.sections import SECTIONS

SENTENCES = " ".join(
    f"Laptop number {n} has a screen of {n + 10} inches and weighs {n} kg." for n in range(400)
)


def test_within_budget_nothing_changes() -> None:
    """A section within its budget comes back as it is."""
    section = Section(2, (Text("### Constraints"), Meta({"node_ids": []}), Text("- none stated")))
    assert fit_section(section, query="x", count=count_tokens) == (section, None)


def test_query_section_is_never_cut() -> None:
    """§0 stays whole however long it is."""
    section = Section(0, (Text(SENTENCES),))
    assert fit_section(section, query="x", count=count_tokens) == (section, None)


def test_older_tool_results_shrink_first() -> None:
    """§4 fits its budget with the newest result whole and its `_meta` untouched."""
    newest = " ".join(SENTENCES.split(". ")[:40])
    section = Section(4, (Meta({"step": 1}), Text(SENTENCES), Meta({"step": 2}), Text(newest)))
    fitted, cut = fit_section(section, query="laptop 7", count=count_tokens)
    assert count_tokens(render_section(fitted)) <= SECTIONS[4].budget_tokens
    assert fitted.blocks[2:] == section.blocks[2:]
    assert fitted.blocks[0] == Meta({"step": 1})
    assert cut is not None
    assert cut.before_tokens > SECTIONS[4].budget_tokens >= cut.after_tokens
    assert "[…]" in fitted.text


def test_newest_result_alone_over_budget() -> None:
    """A newest result that alone exceeds the budget shrinks too."""
    fitted, cut = fit_section(Section(4, (Text(SENTENCES),)), query="laptop 7", count=count_tokens)
    assert cut is not None
    assert count_tokens(render_section(fitted)) <= SECTIONS[4].budget_tokens
