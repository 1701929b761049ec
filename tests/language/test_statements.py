"""What a message tells."""

import pytest

from panda.language.reading import Clause, Mood
from panda.language.statements import find_statements


def keyed(query: str, mood: Mood = "tells") -> list[tuple[str | None, object]]:
    """Key and value of each statement."""
    return [(one.key, one.value) for one in find_statements(query, [Clause(query, mood)])]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("my favorite hamster is Syrian", [("favorite_hamster", "Syrian")]),
        ("Hi! Please remember that my budget is $900.", [("budget", "$900")]),
        ("I moved to St. Louis, and my name is J. Doe", [("location", "St. Louis"), ("name", "J. Doe")]),
        ("My favorite colors are red, green and blue.", [("favorite_colors", "red, green and blue")]),
        ("I’m allergic to nuts and kiwi", [("allergic_to", ("nuts", "kiwi"))]),
        ("actually my budget is $800", [("budget", "$800")]),
        ("my budget has changed to $900", [("budget", "$900")]),
        ("remember the wifi password is regenbogen-12", [("wifi_password", "regenbogen-12")]),
        ("Our dentist is Dr. Özdemir, Dr. Weiß retired", [("dentist", "Dr. Özdemir")]),
        ("I have two cats and I use Python", [("has", ("two cats",)), ("uses", ("Python",))]),
        ("We moved to Berlin last week", [("location", "Berlin")]),
        ("I work as a nurse on night shifts, so I sleep late", [("job", "nurse on night shifts")]),
        ("Acme's CEO is Jane Doe.", [("ceo", "Jane Doe")]),
        ("No, sorry, I live in Turin now", [("location", "Turin")]),
        ("Don't forget that Grandma hates onions", [(None, None)]),
        ("my mum is German", [(None, None)]),
        ("my phone number is wrong", [(None, None)]),
        ("we moved to a new flat", [(None, None)]),
        ("my friend says my budget is $900", [(None, None)]),
        ("I like that", [(None, None)]),
    ],
)
def test_keys(query: str, expected: list[tuple[str | None, object]]) -> None:
    """Keys are made of the user's words where they are sure, values are verbatim; all else is only kept."""
    assert keyed(query) == expected


@pytest.mark.parametrize(
    "query", ["Thanks, looks good!", "Good morning", "ok great, that works", "hm, never mind"]
)
def test_talk_of_the_moment(query: str) -> None:
    """Thanks, greetings and approval are not kept."""
    assert keyed(query) == []


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("since I'm allergic to nuts, which of these can I eat?", [("allergic_to", ("nuts",))]),
        ("I moved to Porto last month, where do I register?", [("location", "Porto")]),
        ("is my location Oregon?", []),
        ("do you know that my budget is $900?", []),
        ("what if I use Python?", []),
    ],
)
def test_statements_inside_questions(query: str, expected: list[tuple[str, object]]) -> None:
    """What a question tells on its way is kept, what it only asks is not."""
    assert keyed(query, "asks") == expected


def test_sentences_stay_whole() -> None:
    """Clauses that tell are kept with what joins them, beside a question."""
    query = "The hall is damp and we need a heater. Which one did I write down?"
    clauses = [
        Clause("The hall is damp", "tells"),
        Clause("we need a heater.", "tells"),
        Clause("Which one did I write down?", "asks"),
    ]
    (one,) = find_statements(query, clauses)
    assert one.text == "The hall is damp and we need a heater."


def test_what_is_taken_back() -> None:
    """What holds no longer is told apart from what holds."""
    query = "I'm no longer allergic to nuts"
    (gone,) = find_statements(query, [Clause(query, "tells")])
    assert (gone.key, gone.value, gone.action) == ("allergic_to", "nuts", "removes")
