"""Of two sources that say different things of the same, the newest comes first."""

import os
from datetime import timedelta
from pathlib import Path

import pytest

from tests.api import LAPTOPS, Panda
from tests.store_files import NOW, write_note

RENT = "The rent of the flat is 900 € a month."
RAISED = "The landlord raised the rent of the flat to 950 €."
AGAIN = "The rent of the flat is 980 € from May."
DENIED = "Not Will after all, Anke waters them."


@pytest.fixture
def panda(tmp_path: Path) -> Panda:
    """Ann's laptops, with the models that come with panda."""
    return Panda(tmp_path / "project", LAPTOPS, user="ann")


def ask(panda: Panda, query: str, *statements: str, days: int | None = None) -> str:
    """The answer after these statements, one a day, beside a note on the rent that is so many days old."""
    if days is not None:
        note = write_note(panda.user_directory, "flat.md", f"{RENT}\n")
        os.utime(note, ((NOW - timedelta(days=days)).timestamp(),) * 2)
    for day, statement in enumerate(statements, 2):
        assert panda.turn(statement, PANDA_NOW=f"2026-01-0{day}T10:00:00Z").code == 0
    return panda.turn(query).response.partition("\n\nSources:")[0]


def test_what_was_told_since_comes_first(panda: Panda) -> None:
    """A statement with another price than the older note stands in front, with its date; the note follows."""
    answer = ask(panda, "How much is the rent of the flat?", RAISED, "Bruno weighs 31 kg.", days=9)
    assert answer == f"Told on 2026-01-02: {RAISED} [1]\n\nBefore: {RENT} [2]"


def test_the_newest_of_two_statements_is_first(panda: Panda) -> None:
    """What was told last stands first."""
    answer = ask(panda, "How much is the rent of the flat?", RAISED, AGAIN, days=9)
    assert answer.startswith(f"Told on 2026-01-03: {AGAIN} [1]\n\n")
    assert f"Told on 2026-01-02: {RAISED}" in answer


@pytest.mark.parametrize("days", [-1, 0])
def test_a_note_that_was_written_later_counts(panda: Panda, days: int) -> None:
    """A statement from before the note was last written is not put in front of it."""
    answer = ask(panda, "How much is the rent of the flat?", RAISED, days=days)
    assert answer.startswith(f"{RENT} [1]")


@pytest.mark.asks_for("shop.example")
@pytest.mark.parametrize(
    ("query", "statements", "answer"),
    [
        (
            "What is the price of the Lenovo LOQ 15?",
            ("My laptop, the Lenovo LOQ 15, had a price of $650.",),
            "Lenovo LOQ 15: price $697.00 [1]",
        ),
        ("Who waters the beds?", ("Will waters the beds.", DENIED), f"Told on 2026-01-03: {DENIED} [1]"),
        ("What is my rent?", ("My rent is 950 €.",), "Told on 2026-01-02: My rent is 950 €. [1]"),
    ],
    ids=["a page has its own date", "a correction stands for what it corrects", "a key is not quoted again"],
)
def test_a_statement_stands_once(panda: Panda, query: str, statements: tuple[str, ...], answer: str) -> None:
    """Not before what a page says, instead of what it corrects, and without the key that it gave."""
    answered = ask(panda, query, *statements)
    assert answered.startswith(answer)
    assert answered.count(statements[-1]) == 1


@pytest.mark.parametrize(
    ("query", "statements", "answer"),
    [
        (
            "when is the vet?",
            ("The vet comes on Tuesday at 9:40.", "The vet comes on Thursday at 9:40."),
            "Told on 2026-01-03: The vet comes on Thursday at 9:40. [1]",
        ),
        (
            "Where does Ida live?",
            ("Ida lives in Graz.", "Ida has moved to Linz."),
            "Told on 2026-01-03: Ida has moved to Linz. [1]",
        ),
        (
            "Where does Ida live?",
            ("Ida lives in Graz.", "Ida's sister Rosa lives in Linz."),
            "Told on 2026-01-02: Ida lives in Graz. [1]",
        ),
        (
            "where is my ticket?",
            ("My ticket is in the blue folder.", "Tom's ticket is in the drawer."),
            "Told on 2026-01-02: My ticket is in the blue folder. [1]",
        ),
        (
            "wann kommt der Tierarzt?",
            ("Der Tierarzt kommt am Dienstag um 9:40.", "Der Tierarzt kommt am Donnerstag um 9:40."),
            "Told on 2026-01-03: Der Tierarzt kommt am Donnerstag um 9:40. [1]",
        ),
        (
            "où habite Zoé ?",
            ("Zoé habite à Nantes.", "Le frère de Zoé habite à Angers."),
            "Told on 2026-01-02: Zoé habite à Nantes. [1]",
        ),
    ],
)
def test_only_what_holds_of_the_thing_answers(
    panda: Panda, query: str, statements: tuple[str, ...], answer: str
) -> None:
    """A correction stands alone; what is told of another person or thing does not stand beside the answer."""
    assert ask(panda, query, *statements) == answer


@pytest.mark.parametrize(
    ("query", "statements"),
    [
        ("Where did Ida live before?", ("Ida lives in Graz.", "Ida has moved to Linz.")),
        (
            "When was the dentist previously?",
            ("The dentist is on the 9th of March.", "They moved it to the 11th of March."),
        ),
    ],
)
def test_the_past_can_be_asked_for(panda: Panda, query: str, statements: tuple[str, str]) -> None:
    """Who asks how it was before is shown both values, also where the newer one does not name the thing."""
    assert f"Before: Told on 2026-01-02: {statements[0]}" in ask(panda, query, *statements)


HOURS = "# Workshop\n\nWe open Tuesday to Saturday, 9:00 to 18:00.\n"
MOVED = "Actually the dentist appointment was moved to 10 March at 9:00."


def test_what_was_told_of_another_matter_outdates_nothing(panda: Panda) -> None:
    """A correction that is far from a line is not put in front of it."""
    write_note(panda.user_directory, "workshop.md", HOURS)
    panda.turn("My locker at the gym is number 83.")
    panda.turn(MOVED)
    answer = panda.turn("is the workshop open on mondays").response
    assert "Tuesday to Saturday" in answer
    assert "Before:" not in answer


def test_a_correction_without_its_subject_counts_for_what_was_told_before_it(panda: Panda) -> None:
    """Even behind a question, a correction means the statement that was told last."""
    panda.turn("Selim's birthday is on 9 June", "--session", "s")
    panda.turn("when is Selim's birthday?", "--session", "s")
    panda.turn("no sorry, it's the 19th of June", "--session", "s")
    answer = panda.turn("when is selims birthday").response
    assert "19th of June" in answer
    assert "9 June" not in answer.replace("19th of June", "")


def test_the_users_own_is_not_what_somebody_else_has(panda: Panda) -> None:
    """Another's thing alone surely answers nothing."""
    panda.turn("Elspeth's passport runs out in August 2031.")
    turn = panda.turn("when does my passport run out")
    assert turn.data["outcome"] == "unsure"
    assert "Elspeth" in turn.data["closest"][0]["text"]
