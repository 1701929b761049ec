"""Statements of users about themselves."""

import pytest

from panda.tools.statements import statement_values


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("my favorite hamster is Syrian", [("favorite_hamster", "Syrian")]),
        ("Hi! Please remember that my budget is $900.", [("budget", "$900")]),
        ("remember: my budget is $1,200.50", [("budget", "$1,200.50")]),
        ("I live in Oregon", [("location", "Oregon")]),
        ("I moved to St. Louis, and my name is J. Doe", [("location", "St. Louis"), ("name", "J. Doe")]),
        ("My favorite colors are red, green and blue.", [("favorite_colors", "red, green and blue")]),
        ("I prefer ASUS", [("prefers", "ASUS")]),
        ("i'm allergic to peanuts", [("allergic_to", "peanuts")]),
    ],
)
def test_statements(query: str, expected: list[tuple[str, str]]) -> None:
    """Keys are made of the user's words, values are verbatim."""
    assert statement_values(query) == expected


@pytest.mark.parametrize(
    "query",
    [
        "what is my favorite hamster?",
        "What is my budget",
        "do you know that my budget is $900?",
        "Compare RTX 4050 laptops under $1000 for me, please.",
        "my friend says my budget is $900",
        "My question is how this works",
        "I would like a laptop",
        "is my location Oregon",
        "## 2. Gathered Context",
        "",
    ],
)
def test_other_queries_state_nothing(query: str) -> None:
    """Questions, requests and hearsay give no value."""
    assert statement_values(query) == []
