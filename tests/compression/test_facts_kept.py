"""Prices, URLs, dates and error messages that fit are kept, in documents of many kinds."""

import pytest

from panda.compression.compress import compile_keep, compress
from panda.compression.fit import detect_content_type
from panda.models.cl100k import count_tokens
from tests.compression.fact_documents import MAKERS, fact_document
from tests.compression.found_facts import found_facts


def dense_document(name: str, share: float) -> str:
    """The document with so much talk that its facts need at most this share of a quarter of its tokens."""
    talk, text = 0.7, ""
    while talk < 8:
        text = fact_document(name, talk=talk)
        if count_tokens("\n".join(found_facts(text))) <= share * count_tokens(text) / 4:
            break
        talk *= 1.4
    return text


@pytest.mark.parametrize("name", [name for name in MAKERS if name != "values.csv"])
def test_facts_are_kept(name: str) -> None:
    """At 25 %, nine of ten distinct facts are there where they need at most 40 % of the budget."""
    text = dense_document(name, 0.4)
    kind = detect_content_type(name, text)
    made = compress(text, kind=kind, budget_tokens=count_tokens(text) // 4).text
    facts = found_facts(text)
    assert len(set(facts) & set(found_facts(made))) >= 0.9 * len(facts)


def test_facts_are_kept_in_all() -> None:
    """At 25 %, most facts of all kinds of documents are there even where they need nearly 60 %."""
    facts = kept = 0
    for name in MAKERS:
        text = dense_document(name, 0.6)
        kind = detect_content_type(name, text)
        made = compress(text, kind=kind, budget_tokens=count_tokens(text) // 4).text
        facts += len(found_facts(text))
        kept += len(set(found_facts(text)) & set(found_facts(made)))
    assert kept >= 0.87 * facts


def test_long_cells_give_way_to_facts() -> None:
    """A long cell of a table is left out before its row, which keeps its cells."""
    rows = "\n".join(
        f"| model {n} | ${n}49.99 | " + "there is much to say about its keys and its fans " * 4 + f"{n} |"
        for n in range(1, 9)
    )
    text = f"| name | price | note |\n|---|---|---|\n{rows}\n"
    made = compress(text, kind="generic", budget_tokens=230).text
    assert all(f"| ${n}49.99 |" in made for n in range(1, 9))
    assert all(line.count("|") == 4 for line in made.strip().split("\n"))


def test_a_pattern_reaches_over_cuts() -> None:
    """What --keep names stays also where the sentence would be cut around a price."""
    said = "The seller at the corner of the old market asks for $697.00 in cash or by card from all who come."
    text = "Nothing else is said here. " * 40 + said
    keep = compile_keep([r"market asks for \$697.00 in cash"])
    made = compress(text, kind="generic", budget_tokens=60, keep=keep).text
    assert said in made
