"""What a query asks the index for, how much of it a text has, and what belongs into a context by rule."""

from typing import Any

import pytest

from panda.retrieval.overlap import share_of_words
from panda.retrieval.query_words import find_capitalised, find_names, find_query_words
from panda.retrieval.rules import asks_for_details, asks_only_for_details, ruled_nodes


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("What is the price of the RTX 4050 laptop?", ["price", "RTX", "4050", "laptop"]),
        ("price price Price", ["price", "Price"]),
        ("who are you?", ["who", "are", "you"]),
        ("", []),
        ("Read http://anna@www.shop.example:8080/tents/blue.php?x=1#top", ["Read", "shop", "tents", "blue"]),
        ("Read https://127.0.0.1:9000/tents/blue", ["Read", "tents", "blue"]),
        ("Größe der Straße", ["Größe", "der", "Straße"]),
    ],
)
def test_query_words(query: str, words: list[str]) -> None:
    """Words and numbers in order, each once, without the commonest ones unless there are no others."""
    assert find_query_words(query) == words


@pytest.mark.parametrize(
    ("query", "names", "capitalised"),
    [
        ("When did Caroline meet the HP people in May?", ["Caroline"], {"caroline", "hp"}),
        ("Did Caroline move in January?", ["Caroline"], {"caroline", "january"}),
        ("Caroline's sister met Caroline.", ["Caroline"], {"caroline"}),
        ("Thanks. Is the laptop that I saw in stock?", ["Thanks"], set()),
        ("what does it cost?", [], set()),
    ],
)
def test_names(query: str, names: list[str], capitalised: set[str]) -> None:
    """Names are capitalised words that are no common words or months; the first of a sentence may be none."""
    assert find_names(query) == names
    assert find_capitalised(query) == capitalised


@pytest.mark.parametrize(
    ("query", "text", "share"),
    [
        ("What do the laptops cost?", "Laptop prices", 0.5),
        ("hiked boots", "hiking boot", 1.0),
        ("bus", "the bus leaves", 1.0),
        ("bus", "bu", 0.0),
        ("red tent", "blue car", 0.0),
        ("red, red tent", "a tent", 0.5),
        ("", "anything", 0.0),
        ("tent", "", 0.0),
    ],
)
def test_share_of_words(query: str, text: str, share: float) -> None:
    """The share of the query's words that a text has, whatever their endings."""
    assert share_of_words(query, text) == share


def analysis(**changes: Any) -> dict[str, Any]:
    """A query analysis that refers to nothing."""
    resolution = {"status": changes.pop("status", "not_needed")}
    return {"content_reference": None, "reference_resolution": resolution, "intent": "recall", **changes}


OFFERED = ["turn:3", "turn:4", "memory:budget", "memory:hamster", "visit:a", "knowledge:budget.md"]


@pytest.mark.parametrize(
    ("query", "about", "previous", "expected"),
    [
        ("What did we say?", analysis(), "turn:4", []),
        ("What about the other?", analysis(status="failed"), "turn:4", ["turn:4"]),
        ("What about the other?", analysis(status="failed"), None, []),
        ("What about the other?", analysis(status="resolved"), "turn:4", []),
        ("What was in turn 3?", analysis(), "turn:4", ["turn:3"]),
        ("What was in turn 9?", analysis(), "turn:4", []),
        (
            "What does it cost?",
            analysis(content_reference={"node_id": "visit:a"}, status="failed"),
            "turn:4",
            ["visit:a"],
        ),
        (
            "What do they cost?",
            analysis(content_reference={"node_id": "visit:a"}, reference_nodes=["turn:3", "visit:gone"]),
            None,
            ["visit:a", "turn:3"],
        ),
        ("find a cheap laptop", analysis(intent="commerce"), None, ["memory:budget"]),
        ("Is the laptop light?", analysis(intent="commerce"), None, []),
        ("find a cheap laptop", analysis(), None, []),
    ],
)
def test_nodes_by_rule(query: str, about: dict[str, Any], previous: str | None, expected: list[str]) -> None:
    """Named turns, what is referred to, the previous turn if that fails, a buyer's budget, if offered."""
    assert ruled_nodes(query, about, OFFERED, previous) == expected


@pytest.mark.parametrize(
    ("query", "details", "only"),
    [
        ("what were the specs on that Lenovo?", True, True),
        ("specs and price of that Lenovo?", True, False),
        ("tell me more about the tent that is in stock", True, False),
        ("how much is it?", False, False),
    ],
)
def test_details(query: str, details: bool, only: bool) -> None:
    """Whether all that a page says is wanted, and whether nothing of it changes from day to day."""
    assert (asks_for_details(query), asks_only_for_details(query)) == (details, only)
