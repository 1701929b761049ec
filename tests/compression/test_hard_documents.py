"""Hard documents: within budget, nothing invented, structure whole, more budget never keeps less."""

import re

import pytest

from panda.compression.compress import Compression, compress
from panda.compression.fit import detect_content_type
from panda.models.cl100k import count_tokens
from tests.compression.faults import damaged, invented
from tests.compression.hard_documents import MAKERS, hard_document

SCALE = 0.03
NOTHING_SMALLER = {"one word", "one number", "wide table"}
"""Documents of which nothing fits an eighth of them."""


def small(name: str, text: str, budget: int) -> Compression:
    """The document in so many tokens."""
    kind = detect_content_type(name, text)
    return compress(text, kind=kind, budget_tokens=budget)


@pytest.mark.parametrize("name", MAKERS)
def test_hard_document(name: str) -> None:
    """At 10, 25 and 50 %: the size, the numbers, the URLs, the form; and again at the same budget."""
    text = hard_document(name, SCALE)
    size = count_tokens(text)
    for share in (0.1, 0.25, 0.5):
        made = small(name, text, int(share * size))
        assert count_tokens(made.text) <= int(share * size)
        assert invented(made.text, text) == []
        assert damaged(made.text, text, is_json=name.endswith(".json")) == []
        assert small(name, made.text, int(share * size)).text == made.text


@pytest.mark.parametrize("name", [name for name in MAKERS if not name.endswith(".json")])
def test_more_budget_keeps_no_less(name: str) -> None:
    """Each stretch that is kept at a budget is kept at twice that budget."""
    text = hard_document(name, SCALE)
    budget = count_tokens(text) // 8
    before: list[str] = []
    for _ in range(3):
        made = small(name, text, budget)
        assert [part for part in before if part not in made.text] == []
        before = [part.strip(" |") for part in re.split(r"\n|\[…\]", made.text) if part.strip(" |")]
        assert before or name in NOTHING_SMALLER
        budget *= 2
