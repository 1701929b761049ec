"""Budgets of context.md, and §4 while it is written."""

import pytest

from panda.compression.budgets import append_result, count_document, find_overflow
from panda.compression.tokens import count_tokens
from panda.documents.blocks import ContextDocument, FrontMatter, Section, Text
from panda.errors import BudgetExceededError
from tests.builders import NOW

FRONT = FrontMatter("panda.context/1", 1, "demo", "default", "chat", NOW)


def document(**words: int) -> ContextDocument:
    """A document whose section n has that many words."""
    sections = tuple(Section(int(name[1:]), (Text("word " * size),)) for name, size in words.items())
    return ContextDocument(FRONT, sections)


def test_tokens_by_section() -> None:
    """Each section is counted as it stands on disk; the total counts the file."""
    counted = count_document(document(s0=10, s2=300), count_tokens)
    assert 300 < counted.by_section[2] < 320
    assert counted.total > sum(counted.by_section.values())


def test_the_earliest_level_comes_first() -> None:
    """A section over its budget is named before the document, the document before the call; §0 never."""
    counted = count_document(document(s0=600, s2=9_000), count_tokens)
    assert [one.level for one in find_overflow(counted, prompt_tokens=3_000)] == [
        "section",
        "document",
        "call",
    ]
    assert find_overflow(count_document(document(s0=600), count_tokens)) == []


def test_older_results_shrink() -> None:
    """Twenty long results end within the budget, the newest whole, every error message there."""
    body = ""
    for n in range(20):
        facts = " ".join(f"Item {n}-{k} was seen in aisle {k}." for k in range(80))
        result = f"### Step {n}\n\nError: step {n} gave a warning\n\n{facts}"
        body = append_result(body, result, count=count_tokens, query="Where is item 3-7?")
        assert count_tokens(body) <= 2_484
        assert body.endswith(result)
    assert all(f"Error: step {n} gave a warning" in body for n in range(20))


def test_a_result_that_cannot_fit() -> None:
    """A result over the whole budget is an error with the numbers."""
    with pytest.raises(BudgetExceededError, match=r"more than the 100 of §4"):
        append_result("", "word " * 300, count=count_tokens, query=None, room_tokens=100)
