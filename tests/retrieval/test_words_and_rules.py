"""What a query asks the index for, how much of it a text has, and what belongs into a context by rule."""

from typing import Any

import msgspec
import pytest

from panda.messages.reading import Reading, Referred
from panda.retrieval.candidates import ruled_nodes
from panda.retrieval.relevance import find_names, find_query_words, folded_names, share_of_words
from panda.store.records import QueryAnalysis


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("What is the price of the RTX 4050 laptop?", ["price", "RTX", "4050", "laptop"]),
        ("price price Price", ["price", "Price"]),
        ("who are you?", ["who", "are", "you"]),
        ("", []),
        ("Read http://anna@www.shop.example:8080/tents/blue.php?x=1#top", ["Read", "shop", "tents", "blue"]),
        ("Read https://127.0.0.1:9000/tents/blue", ["Read", "tents", "blue"]),
        ("Größe der Straße", ["Größe", "Straße"]),
    ],
)
def test_query_words(query: str, words: list[str]) -> None:
    """Words and numbers in order, each once, without the commonest ones unless there are no others."""
    assert find_query_words(query) == words


@pytest.mark.parametrize(
    ("query", "names", "folded"),
    [
        ("When did Caroline meet the HP people in May?", ["Caroline", "HP"], {"caroline", "hp"}),
        ("Did Caroline move in January?", ["Caroline"], {"caroline"}),
        ("Caroline's sister met Caroline.", ["Caroline"], {"caroline"}),
        ("Thanks. Is the laptop that I saw in stock?", [], set()),
        ("what does it cost?", [], set()),
    ],
)
def test_names(query: str, names: list[str], folded: set[str]) -> None:
    """Names are words that no ordinary word or month is, "HP" too."""
    assert find_names(query) == names
    assert folded_names(query) == folded


@pytest.mark.parametrize(
    ("query", "text", "share"),
    [
        ("What do the laptops cost?", "Laptop prices", 0.5),
        ("hiked boots", "hiking boot", 1.0),
        ("bus", "the bus leaves", 1.0),
        ("price", "prices", 1.0),
        ("batteries", "the battery", 1.0),
        ("phone case", "Phone cases", 1.0),
        ("red tent", "blue car", 0.0),
        ("red, red tent", "a tent", 0.5),
        ("", "anything", 0.0),
        ("tent", "", 0.0),
    ],
)
def test_share_of_words(query: str, text: str, share: float) -> None:
    """The share of the query's words that a text has, whatever their endings."""
    assert share_of_words(query, text) == share


def analysis(reading: Reading | None = None, **changes: Any) -> QueryAnalysis:
    """A query analysis that refers to nothing."""
    resolution = {
        "status": changes.pop("status", "not_needed"),
        "original_references": [],
        "resolved_to": None,
    }
    if (node_id := changes.pop("refers_to", None)) is not None:
        changes["content_reference"] = {"title": None, "node_id": node_id, "source_turn": None}
    return msgspec.convert(
        {
            **dict.fromkeys(("user_purpose", "content_reference", "reasoning")),
            "original_query": "q",
            "resolved_query": "q",
            "reference_resolution": resolution,
            "query_type": "informational",
            "intent": "recall",
            "entities": [],
            "reading": reading or Reading(),
            "data_requirements": {"needs_current_prices": False, "needs_live_data": False, "freshness": None},
            **changes,
        },
        QueryAnalysis,
    )


OFFERED = ["turn:3", "turn:4", "memory:budget", "memory:hamster", "visit:a", "knowledge:budget.md"]


def named(turn: str) -> Reading:
    """A query that names a turn."""
    return Reading(references=(Referred(turn, (turn,)),))


@pytest.mark.parametrize(
    ("about", "previous", "expected"),
    [
        (analysis(), "turn:4", []),
        (analysis(status="failed"), "turn:4", ["turn:4"]),
        (analysis(status="failed"), None, []),
        (analysis(status="resolved"), "turn:4", []),
        (analysis(named("turn:3")), "turn:4", ["turn:3"]),
        (analysis(named("turn:9")), "turn:4", []),
        (
            analysis(refers_to="visit:a", status="failed"),
            "turn:4",
            ["visit:a"],
        ),
        (
            analysis(refers_to="visit:a", reference_nodes=["turn:3", "visit:gone"]),
            None,
            ["visit:a", "turn:3"],
        ),
        (analysis(Reading("orders"), intent="commerce"), None, ["memory:budget"]),
        (analysis(intent="commerce"), None, []),
        (analysis(Reading("orders")), None, []),
    ],
)
def test_nodes_by_rule(about: QueryAnalysis, previous: str | None, expected: list[str]) -> None:
    """Named turns, what is referred to, the previous turn if that fails, a buyer's budget, if offered."""
    assert ruled_nodes(about, OFFERED, previous) == expected
