"""What a message tells, clause by clause, and the keys that are sure."""

import pytest

from panda.messages.clauses import clause_texts, find_statements, read_clauses

MOODS = ("asks", "tells", "orders")


def keyed(query: str) -> list[tuple[str | None, object]]:
    """Key and value of each statement."""
    return [(one.key, one.value) for one in find_statements([query])]


def kept(query: str, moods: dict[str, str], *, tells: float = 0.97) -> list[str]:
    """What is kept of a message whose pieces do what is said of them, by their beginnings; the rest tells."""
    read = {}
    for text in clause_texts(query):
        mood = next((one for one, start in moods.items() if start in text), "tells")
        share = tells if mood == "tells" else 0.97
        read[text] = {one: share if one == mood else (1 - share) / 2 for one in MOODS}
    return read_clauses(query, read)[1]  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("my favorite hamster is Syrian", [("favorite_hamster", "Syrian")]),
        ("Hi! Please remember that my budget is $900.", [("budget", "$900")]),
        ("My favourite colours are red, green and blue.", [("favorite_colours", "red, green and blue")]),
        (
            "I’m allergic to nuts, kiwi and wool because of my skin",
            [("allergic_to", ("nuts", "kiwi", "wool"))],
        ),
        ("actually my budget is $800", [("budget", "$800")]),
        ("my budget has changed to 900 EUR", [("budget", "900 EUR")]),
        ("our wifi password is regenbogen-12", [("wifi_password", "regenbogen-12")]),
        ("Our dentist is Dr. Özdemir, Dr. Weiß retired", [("dentist", "Dr. Özdemir")]),
        ("my name is Jo Brand and my birthday is May 3", [("name", "Jo Brand"), ("birthday", "May 3")]),
        ("no, the vet is Dr. Lind now", [("vet", "Dr. Lind")]),
        ("Don't forget that Grandma hates onions", [(None, None)]),
        ("my mum is German", [(None, None)]),
        ("my phone number is wrong", [(None, None)]),
        ("my phone is 2 years old", [(None, None)]),
        ("my friend says my budget is $900", [(None, None)]),
        ("my boss is 2 hours late", [(None, None)]),
        ("Call me later", [(None, None)]),
        ("I moved to the front row", [(None, None)]),
        ("I work for free", [(None, None)]),
        ("the vet is Dr. Lind", [(None, None)]),
    ],
)
def test_keys(query: str, expected: list[tuple[str | None, object]]) -> None:
    """Keys are for what one has one of, favourites and allergies, with a value of its kind."""
    assert keyed(query) == expected


@pytest.mark.parametrize(
    "query", ["Thanks, looks good!", "Good morning", "ok great, that works", "hm, never mind"]
)
def test_talk_of_the_moment(query: str) -> None:
    """Thanks, greetings and approval are not kept."""
    assert keyed(query) == []


@pytest.mark.parametrize(
    ("query", "moods", "expected"),
    [
        (
            "weighed him today, 71.4 kg. whats the contract number again?",
            {"asks": "whats"},
            ["weighed him today, 71.4 kg."],
        ),
        ("the vet moved to Elm St and who has the leash", {"asks": "who"}, ["the vet moved to Elm St"]),
        ("we are four days in how many are left", {"asks": "how"}, ["we are four days in"]),
        ("restart staging, and btw db-1 has 64 gb", {"orders": "restart"}, ["db-1 has 64 gb"]),
        ("my feet are cold, where is the thermostat", {"asks": "where"}, []),
        ("I'm allergic to nuts, which can I eat?", {"asks": "which"}, ["I'm allergic to nuts"]),
        ("draft a sign, closed until the 3rd", {"orders": "draft"}, []),
        ("we paid it already, or not", {"asks": "or not"}, []),
    ],
)
def test_what_is_told_beside_a_question(query: str, moods: dict[str, str], expected: list[str]) -> None:
    """A clause of its own is kept beside a question or an order; a mere reason and the details of an order
    are not."""
    assert kept(query, moods) == expected


def test_doubt_keeps_what_may_be_told() -> None:
    """What may tell or ask is kept, a word or two alone are not."""
    assert kept("Juniors pay full subs", {}, tells=0.7) == ["Juniors pay full subs"]
    assert kept("Full subs", {}, tells=0.7) == []
    assert kept("Juniors pay full subs", {}) == ["Juniors pay full subs"]


def test_what_is_taken_back() -> None:
    """What holds no longer is told apart from what holds."""
    (gone,) = find_statements(["I'm no longer allergic to nuts"])
    assert (gone.key, gone.value, gone.action) == ("allergic_to", "nuts", "removes")
