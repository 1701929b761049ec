"""Sections of context.md within their budgets (S3 §25 level 1, §26)."""

from collections.abc import Callable
from dataclasses import replace

from panda.compression.fitting import Cut, InputDocument, fit_documents
from panda.documents.context import Section, Text, render_section
from panda.documents.sections import SECTIONS
from panda.errors import BudgetExceededError

_TOOLS = 4
_NAMES = {_TOOLS: "tool_result"}


def fit_section(section: Section, *, query: str, count: Callable[[str], int]) -> tuple[Section, Cut | None]:
    """
    A section within its budget, before it is written.

    Args:
        section: Any section; §0 is never touched.
        query: The user's query, so that what answers it is kept first.
        count: Maps a text to budget tokens.

    Returns:
        The section, its text compressed if it was over budget, `_meta` whole; and the cut, None if there was
        none. In §4 older results shrink before newer ones, and the newest stays whole unless it alone is
        over budget. A section whose `_meta` leaves no room comes back as far down as it goes.
    """
    budget = SECTIONS[section.number].budget_tokens
    before = count(render_section(section))
    if section.number == 0 or before <= budget:
        return section, None
    places = [place for place, block in enumerate(section.blocks) if isinstance(block, Text)]
    order = places[::-1] if section.number == _TOOLS else places
    name = _NAMES.get(section.number, SECTIONS[section.number].title)
    given = [InputDocument(name, _text(section, place)) for place in order]
    room = budget - (before - sum(count(document.text) for document in given))
    for protect in (section.number == _TOOLS, False):
        first = [replace(given[0], protected=protect)] if given else []
        fitted = _fit([*first, *given[1:]], room, query, count)
        if fitted is not None:
            blocks = list(section.blocks)
            for place, document in zip(order, fitted, strict=True):
                blocks[place] = Text(document.text)
            made = Section(section.number, tuple(blocks))
            return made, Cut(f"§{section.number}", before, count(render_section(made)))
    return section, None


def _text(section: Section, place: int) -> str:
    block = section.blocks[place]
    assert isinstance(block, Text)
    return block.text


def _fit(
    documents: list[InputDocument], room_tokens: int, query: str, count: Callable[[str], int]
) -> list[InputDocument] | None:
    try:
        return fit_documents(documents, room_tokens=max(0, room_tokens), count=count, query=query)[0]
    except BudgetExceededError:
        return None
