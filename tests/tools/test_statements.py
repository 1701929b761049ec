"""Statements of users about themselves."""

import pytest

from panda.tools.lasting import lasting_statements
from panda.tools.statements import Stated, find_statements, statement_values


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
        ("My budget is now 1,200 euros", [("budget", "1,200 euros")]),
        ("my budget has changed to $900", [("budget", "$900")]),
        ("Set my budget to $700", [("budget", "$700")]),
        ("my budget: $900", [("budget", "$900")]),
        ("Please note that I am vegetarian", [("diet", "vegetarian")]),
        ("I have two cats and I use Python", [("has", "two cats"), ("uses", "Python")]),
        ("My wife's birthday is May 3", [("wifes_birthday", "May 3")]),
        ("We moved to Berlin last week", [("location", "Berlin")]),
        ("We live in Salem now", [("location", "Salem")]),
        ("I was born in 1980", [("born", "1980")]),
        ("I work as a nurse on night shifts, so I sleep late", [("job", "nurse on night shifts")]),
        ("I prefer tea because coffee makes me nervous", [("prefers", "tea")]),
        ("Favorite hamster: Syrian", [("favorite_hamster", "Syrian")]),
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
        "Can you set my budget to $700?",
        "change my password to hunter2",
        "I have a question",
        "what if I use Python?",
        "## 2. Gathered Context",
        "",
    ],
)
def test_other_queries_state_nothing(query: str) -> None:
    """Questions, requests and hearsay give no value."""
    assert statement_values(query) == []


@pytest.mark.parametrize(
    ("query", "relation", "value", "entity"),
    [
        ("Acme's CEO is Jane Doe.", "ceo", "Jane Doe", "Acme"),
        ("The CEO of Acme Corp is Jane Doe", "ceo", "Jane Doe", "Acme Corp"),
        ("My dog is asleep", "dog", "asleep", None),
        ("I use the bus today", "uses", "the bus", None),
    ],
)
def test_unsure_statements(query: str, relation: str, value: str, entity: str | None) -> None:
    """What is said of others, and what may be of the moment, is found and marked as unsure."""
    assert find_statements(query) == [Stated(relation, value, entity, sure=False)]


@pytest.mark.parametrize("query", ["It's color is red", "Is Acme's CEO Jane Doe?", "That's what is new"])
def test_no_statements_of_others(query: str) -> None:
    """Pronouns name nobody, and questions state nothing."""
    assert find_statements(query) == []


@pytest.mark.parametrize(("answer", "kept"), [("lasting", ["dog", "location"]), ("passing", ["location"])])
def test_a_recipe_decides_where_rules_are_unsure(answer: str, kept: list[str]) -> None:
    """What the recipe calls passing is left out; what rules are sure of stays; it is asked once."""
    asked: list[str] = []

    def ask(step: str) -> dict[str, str]:
        asked.append(step)
        return {"lasts": answer}

    found = lasting_statements("My dog is tired. I live in Oregon.", ask)
    assert [one.relation for one in found] == kept
    assert lasting_statements("I live in Oregon.", ask)[0].value == "Oregon"
    assert asked == ["phase4_memory_statement"]
