"""Prices, URLs, dates and error messages that fit are kept, in documents of many kinds."""

import re

import pytest

from tests.api import ScriptedPanda
from tests.compression.fact_documents import MAKERS, fact_document
from tests.compression.found_facts import found_facts

KEPT_FIRST = {
    "research": ("price", "url"),
    "page_doc": ("price", "url"),
    "tool_result": ("price", "error"),
}
"""What the type of a document puts first, by how its name begins; of others prices."""
LEAST = {
    "values.csv": 0.2,
    "long sentences.md": 0.25,
    "tool_result.json": 0.5,
    "french.md": 0.7,
    "russian.md": 0.75,
    "notes.md": 0.8,
    "context.md": 0.8,
}
"""Documents of which less is kept at a quarter: rows and sentences stay whole."""


def compress(ann: ScriptedPanda, name: str, text: str, budget: int, keep: str = "(?!)") -> str:
    """Return the document as `panda compress` brings it down to a budget."""
    ann.write(f"documents/{name}", text)
    words = ("--budget", str(budget), f"--keep={keep}")
    return str(ann.json("compress", f"documents/{name}", *words)["text"])


def count_tokens(ann: ScriptedPanda, text: str) -> int:
    """Return the tokens of a text, as `panda compress` counts them."""
    counted = ann("compress", "-", "--budget", "1000000", "--json", stdin=text)
    return int(counted.data["before_tokens"])


@pytest.mark.parametrize("name", MAKERS)
def test_facts_are_kept(ann: ScriptedPanda, name: str) -> None:
    """At 25 %, nine of ten facts that come first are there where they need at most 20 % of the budget."""
    kinds = KEPT_FIRST.get(re.split(r"[ .]", name)[0], ("price",))
    talk = 0.7
    text = fact_document(name, talk=talk)
    size = count_tokens(ann, text)
    while talk < 8 and count_tokens(ann, "\n".join(found_facts(text, kinds))) > 0.2 * size / 4:
        talk *= 1.4
        text = fact_document(name, talk=talk)
        size = count_tokens(ann, text)
    facts = found_facts(text, kinds)
    compressed = compress(ann, name, text, size // 4)
    assert len(set(facts) & set(found_facts(compressed, kinds))) >= LEAST.get(name, 0.9) * len(facts)


def test_long_cells_give_way_to_facts(ann: ScriptedPanda) -> None:
    """A long cell of a table is left out before its row, which keeps its cells."""
    rows = "\n".join(
        f"| model {n} | ${n}49.99 | " + "there is much to say about its keys and its fans " * 4 + f"{n} |"
        for n in range(1, 9)
    )
    compressed = compress(ann, "table.md", f"| name | price | note |\n|---|---|---|\n{rows}\n", 230)
    assert all(f"| ${n}49.99 |" in compressed for n in range(1, 9))
    assert all(line.count("|") == 4 for line in compressed.strip().split("\n"))


def test_a_pattern_reaches_over_cuts(ann: ScriptedPanda) -> None:
    """What --keep names stays also where the sentence would be cut around a price."""
    sentence = (
        "The seller at the corner of the old market asks for $697.00 in cash or by card from all who come."
    )
    text = "Nothing else is said here. " * 40 + sentence
    assert sentence in compress(ann, "a.md", text, 60, keep=r"market asks for \$697.00 in cash")
