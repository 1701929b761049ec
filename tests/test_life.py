"""Ordinary questions of ordinary notes: a few of what `make life` asks, and how an answer is judged."""

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from bench import asking
from bench.asking import (
    ANSWERS,
    BELOW_FLOOR,
    LIFE,
    Answer,
    Trail,
    check_floors,
    holds,
    misses,
)
from tests.api import ROOT, Panda
from tests.store_files import write_note, write_turn

VAULT, VAULT_2 = (json.loads((LIFE / f"vault{end}.json").read_text(encoding="utf-8")) for end in ("", "_2"))
TALKS, TALKS_2 = (
    json.loads((LIFE / f"conversations{end}.json").read_text(encoding="utf-8")) for end in ("", "_2")
)
FLOORS = json.loads(asking.FLOORS.read_text(encoding="utf-8"))
ASKED = (
    "what does the school lunch cost",
    "whats our tax number",
)
"""Questions of the vault that are answered right."""


class Notebook(Panda):
    """
    A project with notes, whose turns are judged as `make life` judges them.

    Args:
        home: The directory.
        notes: Text of each note, by its path below knowledge/.
    """

    def __init__(self, home: Path, notes: Mapping[str, str]) -> None:
        super().__init__(home)
        assert self("init").code == 0
        for name, text in notes.items():
            write_note(self.user_directory, name, text)

    def ask(self, query: str, session: str = "s") -> Answer:
        """Ask in a session and return what came of it."""
        data = self.turn(query, "--session", session).data
        approved = data["status"] == "approved"
        text = data["response"].partition("\n\nSources:\n")[0] if approved else data["question"] or ""
        noted = tuple(statement["text"] for statement in data.get("noted", ()))
        return Answer(data["status"], approved and bool(data["answered"]), text, noted)


def test_questions_of_a_vault(tmp_path: Path) -> None:
    """Questions in the words of 45 notes are answered right, one after another in one store."""
    notebook = Notebook(tmp_path / "project", VAULT["notes"])
    cases = [case for case in VAULT["questions"] if case["ask"] in ASKED]
    wrong = {case["ask"]: misses(case, notebook.ask(case["ask"], f"s{n}")) for n, case in enumerate(cases)}
    assert wrong == {query: [] for query in ASKED}


def test_a_piece_of_a_conversation(tmp_path: Path) -> None:
    """What the last message told is answered, although a note says otherwise."""
    (garden,) = [talk for talk in TALKS if talk["name"] == "garden"]
    notebook = Notebook(tmp_path / "project", garden["notes"])
    statement, question = garden["turns"][7:9]
    notebook.ask(statement["say"])
    assert misses(question, notebook.ask(question["say"])) == []


def test_a_pronoun_means_what_the_last_turn_was_about(tmp_path: Path) -> None:
    """After a list "they" are what its note is about; after a statement "one of those" is what that told."""
    notes = {
        "oats.md": "# Oat biscuits\n\n1. Melt the butter.\n2. Stir in the oats.\n\nBake for 14 minutes.\n",
        "prices.md": "# Prices\n\n- small wicker basket: 8 €\n- large wicker basket: 15 €\n",
    }
    ask = Notebook(tmp_path / "project", notes).ask
    ask("how do I make the oat biscuits, all the steps")
    assert holds(ask("and how long do they bake?").text, "14 minutes")
    ask("Sigrun wants 12 large wicker baskets for the fair")
    answer = ask("what does one of those cost").text
    assert (holds(answer, "15 €"), holds(answer, "Sigrun")) == (True, False)


def test_a_pronoun_of_the_message_itself_means_nothing_else(tmp_path: Path) -> None:
    """A message that names its thing is looked for as it stands, whatever was spoken of before."""
    notes = {
        "guests.md": "# Guests\n\n- Rollo: owner Mrs Haddad, kennel B2\n- Bess: owner Mr Quist, kennel A1\n"
    }
    ask = Notebook(tmp_path / "project", notes).ask
    ask("Bess must not have chicken any more")
    assert holds(ask("who is the owner of Rollo").text, "Haddad")
    assert holds(ask("what was it that Bess mustn't eat").text, "chicken")


def test_a_follow_up_asks_of_another_thing(tmp_path: Path) -> None:
    """A message that only names another thing asks the last question of it."""
    table = (
        "| plate | strain | colonies |\n|-|-|-|\n| P2 | dA4 | 87 |\n| P4 | WT | 164 |\n| P5 | dB1 | 201 |\n"
    )
    ask = Notebook(tmp_path / "project", {"plates.md": f"# Plates\n\n{table}"}).ask
    ask("how many colonies are on P2")
    assert holds(ask("and P4?").text, "164")


WITHOUT_ENCODER = (
    "what does the school lunch cost",
    "Our boiler was serviced on 3 March.",
    "when was the boiler serviced?",
    "find me three hotels in Kyoto",
    "yes",
    "no, leave that one out",
    "what did we talk about?",
)


def test_every_turn_ends_without_an_encoder(tmp_path: Path) -> None:
    """With `encoder: null` words and the language model alone bring each turn to a proper end."""
    notebook = Notebook(tmp_path / "project", VAULT["notes"])
    packaged = (ROOT / "models.yaml").read_text(encoding="utf-8")
    notebook.write("models.yaml", re.sub(r"(?m)^encoder:.*$", "encoder: null", packaged))
    answers = [notebook.ask(query) for query in WITHOUT_ENCODER]
    assert {answer.status for answer in answers} <= {"approved", "clarify"}
    (lunch,) = [case for case in VAULT["questions"] if case["ask"] == WITHOUT_ENCODER[0]]
    assert misses(lunch, answers[0]) == []
    assert answers[1].kept


LISTED = Answer("approved", True, "Weigela: likes sun.\n\nAnnabelle: likes shade.")
NTH = {"nth": 2, "of": 1, "labels": {"Annabelle": "24,90 €", "Weigela": "17,50 €", "Hazel": "59 €"}}


@pytest.mark.parametrize(
    ("case", "answer", "wrong"),
    [
        ({"all": ["a hand's width", "33"]}, "A hand’s  width, size 33.", []),
        ({"all": ["33"]}, "size 333, 3.33", ["does not hold '33'"]),
        ({"all": ["6 €"]}, "16 € a week", ["does not hold '6 €'"]),
        ({"all": ["697"], "not": ["749"]}, "$697 or $749", ["holds '749'"]),
        (NTH, "It is 24,90\u00a0€.", []),
        (NTH, "It is 17,50 €.", ["does not hold '24,90 €'", "holds '17,50 €'"]),
        ({**NTH, "nth": 3}, "59 €", ["the reply to turn 1 named 2 of its list"]),
        ({"answered": False, "all": []}, "$5", ["answered, though nothing that is saved answers it"]),
    ],
)
def test_what_a_right_answer_is(case: Mapping[str, Any], answer: str, wrong: list[str]) -> None:
    """It holds what is expected, as whole words, and nothing else; places count in the order of the reply."""
    assert misses(case, Answer("approved", True, answer), [LISTED]) == wrong


def test_endings_that_answer_nothing() -> None:
    """A turn that is not approved, finds nothing, or keeps nothing of what it was told, is wrong."""
    assert misses({"all": ["33"]}, Answer("failed", False, "33")) == ["ended failed"]
    assert misses({"all": ["33"]}, Answer("approved", False, "33")) == ["not answered"]
    assert misses({"tell": True}, Answer("approved", True, "Noted.")) == ["nothing was kept"]
    assert misses({"tell": True}, Answer("approved", True, "Noted.", ("x",))) == []


def test_what_is_below_its_floor(capsys: pytest.CaptureFixture[str]) -> None:
    """One right answer less than the floor ends with 3 and says so; at the floor it passes."""
    (part, floor), *_ = FLOORS["right"].items()
    assert check_floors("right", {part: floor, "another": 0}) == 0
    assert capsys.readouterr().out == ""
    assert check_floors("right", {part: floor - 1}) == BELOW_FLOOR
    assert f"BELOW ITS FLOOR: {part} {floor - 1}, the floor is {floor}" in capsys.readouterr().out


def test_every_case_can_be_wrong() -> None:
    """No case of the demo, the vault or the conversations takes any answer for right."""
    demo = [json.loads(line) for line in ANSWERS.read_text(encoding="utf-8").splitlines()]
    turns = [turn for talk in [*TALKS, *TALKS_2] for turn in talk["turns"]]
    made_up = Answer("approved", True, "Nobody knows.")
    for case in [*demo, *VAULT["questions"], *VAULT_2["questions"], *turns]:
        assert misses(case, made_up, [made_up] * len(turns)), case


@pytest.mark.parametrize("vault", [VAULT, VAULT_2])
def test_the_notes_hold_what_is_expected(vault: Mapping[str, Any]) -> None:
    """Every answer of a vault stands in its notes."""
    notes = "\n".join(vault["notes"].values())
    for case in vault["questions"]:
        assert [part for part in case["all"] if not holds(notes, part)] == [], case["ask"]


def test_which_phase_lost_what_is_missing() -> None:
    """A wrong answer is followed back to the first phase that had not what it lacks."""
    trail = Trail((("the candidates", "size 33, 34"), ("§2", "size 34")), "")
    assert trail.lost("35") == "lost on the way into the candidates"
    assert trail.lost("33") == "lost on the way into §2"
    assert trail.lost("34") == "in all stages up to the answer"


MOORINGS = """# Moorings

| Berth | Boat | Fee |
|---|---|---|
| A1 | Kittiwake | £410 |
| B4 | Petrel | £540 |
| B7 | Old Tom | £295 |
"""
HUTS = """# Huts

- Almhütte: sleeps 12, 30 € a night, no shower
- Gipfelhaus: sleeps 40, 28 € a night
- Seealm: sleeps 22, 35 € a night, a shower
"""


@pytest.mark.parametrize(
    ("query", "held", "others"),
    [
        ("which berth is the cheapest?", ("Old Tom", "£295"), ("£410", "£540")),
        ("which hut sleeps the most", ("Gipfelhaus", "40"), ("Almhütte", "Seealm")),
        ("list the huts under 32 €", ("Almhütte", "Gipfelhaus"), ("Seealm",)),
        ("compare the Almhütte and the Seealm", ("30 €", "35 €"), ("Gipfelhaus",)),
        ("which hut is the nicest", ("Almhütte", "Gipfelhaus", "Seealm"), ()),
    ],
)
def test_a_question_about_a_list_looks_at_all_of_it(
    tmp_path: Path, query: str, held: tuple[str, ...], others: tuple[str, ...]
) -> None:
    """A superlative, a bound and a comparison look at all rows, and show those that fit with their value."""
    notebook = Notebook(tmp_path / "project", {"club/moorings.md": MOORINGS, "travel/huts.md": HUTS})
    text = notebook.ask(query).text
    assert [part for part in held if not holds(text, part)] == []
    assert [part for part in others if holds(text, part)] == []


@pytest.mark.asks_for("www.bestbuy.com")
def test_the_cheapest_of_what_research_found(demo: Path, tmp_path: Path) -> None:
    """The first example of the specification is answered with the cheapest laptop and its price alone."""
    panda = Panda(tmp_path / "project", demo, user="demo")
    text = panda.turn("what's the cheapest laptop with nvidia gpu").response
    assert (holds(text, "697"), holds(text, "749.99")) == (True, False)


def test_a_right_line_is_quoted_among_many_sources(tmp_path: Path) -> None:
    """What lies closest to a question is quoted, however many notes and earlier questions are there."""
    notes = {f"other/note-{n}.md": f"Cell {n} of the battery was bought on day {n}.\n" for n in range(1, 29)}
    notes["hobby/telescope.md"] = "The red dot finder of the telescope takes a CR2032.\n"
    notebook = Notebook(tmp_path / "project", notes)
    for n in range(1, 13):
        write_turn(
            notebook.user_directory,
            n,
            query=f"when was cell {n} of the battery bought?",
            response=f"Cell {n} of the battery was bought on day {n}.",
            session=f"s{n}",
        )
    assert holds(notebook.ask("which battery does the telescope take?").text, "CR2032")


def test_what_a_comma_joins_to_a_question_is_looked_for_too(tmp_path: Path) -> None:
    """A clause that only tells belongs to the question in its sentence, not one in a sentence of its own."""
    notes = {
        "street.md": "Frau Demirel on the ground floor has our spare key.\nThe Kowalskis take parcels.\n",
        "stairlift.md": "The contract number of the stairlift is 88-213.\n",
    }
    ask = Notebook(tmp_path / "project", notes).ask
    assert holds(ask("I locked myself out, which neighbour has a key", "s1").text, "Frau Demirel")
    answer = ask("Weighed him today, 71.4 kg. What is the stairlift contract number again?", "s2")
    assert holds(answer.text, "88-213")


def test_the_head_of_a_column_means_no_row(tmp_path: Path) -> None:
    """A question in words that every row has, as the head of a column, is answered with all rows."""
    rows = ("waffles | Ayla | two irons", "tombola | Iris | tickets", "lemonade | class 3 | a cool box")
    table = "\n".join(
        f"| {row} |" for row in ("Stall | Who | Needs", "-|-|-", *rows, "books | Ivo | 4 tables")
    )
    fair = f"Winter fair, Saturday 28 November, 10:00 to 14:00:\n\n{table}\n"
    answer = (
        Notebook(tmp_path / "project", {"school/fair.md": fair}).ask("what stalls r there at the fair").text
    )
    assert [part for part in ("waffles", "tombola", "lemonade", "books") if not holds(answer, part)] == []
