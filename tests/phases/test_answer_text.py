"""Lists, tables and code of notes in an answer, and what is asked of a list that was shown or ordered."""

import json
from pathlib import Path

import pytest

from tests.api import LAPTOPS, Panda, Turn
from tests.store_files import write_note

BUNS = """# Buns

Ingredients:
- 250 g flour
- 4 eggs
- a pinch of sea salt

Steps:
1. Whisk eggs and flour.
2. Bake:
```
oven --at 180
```
3. Let them cool for an hour.
"""
SHRUBS = """# Shrubs

- shrub Weigela: 17,50 €, needs full sun
- shrub Hazel: 59,00 €
- shrub Hydrangea: 24,90 €, likes shade
"""
SITES = "# Campsites\n\n| Site | Remarks |\n|---|---|\n| Seeblick | no dogs |\n| Waldhof | dogs allowed |\n"
GUESTS = "Guests:\n" + "\n".join(f"- Guest number {n} of the party" for n in range(1, 20))
TWO_LEFT = """1 of 3 left out: what was said in turn 4.

- shrub Weigela: 17,50 €, needs full sun [1]
- shrub Hydrangea: 24,90 €, likes shade [1]

… and 1 more in knowledge/list.md"""


@pytest.fixture
def panda(tmp_path: Path) -> Panda:
    """Ann's laptops, with the models that come with panda."""
    return Panda(tmp_path / "project", LAPTOPS, user="ann")


def ask(panda: Panda, *queries: str, note: str = "") -> Turn:
    """The last of a session's turns, over a store with this note; the turn is sound."""
    if note:
        write_note(panda.user_directory, "list.md", note)
    turns = [panda.turn(query, "--session", "talk") for query in queries]
    assert turns[-1].status == "approved"
    assert panda.problems() == []
    return turns[-1]


def answer(turn: Turn) -> str:
    """The answer without its sources."""
    return turn.response.partition("\n\nSources:")[0]


@pytest.mark.parametrize(
    ("note", "query", "expected"),
    [
        (
            BUNS,
            "What are the ingredients of the buns?",
            "Ingredients: [1]\n\n- 250 g flour [1]\n- 4 eggs [1]\n- a pinch of sea salt [1]",
        ),
        (
            BUNS,
            "List all the steps for the buns.",
            "Steps: [1]\n\n1. Whisk eggs and flour. [1]\n2. Bake: [1]\n  oven --at 180 [1]\n"
            "3. Let them cool for an hour. [1]",
        ),
        (
            "# Board\n- Chair: Ann\n- Treasurer: Bo",
            "Who is on the board?",
            "- Chair: Ann [1]\n- Treasurer: Bo [1]",
        ),
        (
            "# Crew\n\n- Malte: sound\n- Ines: lights\n",
            "show me the crew list",
            "- Malte: sound [1]\n- Ines: lights [1]",
        ),
        (
            SHRUBS,
            "which shrubs are under 20 €?",
            "- shrub Weigela: 17,50 €, needs full sun [1]\n\n… and 2 more in knowledge/list.md",
        ),
    ],
    ids=["ingredients", "steps with their code", "named by itself", "ordered", "a limit in the question"],
)
def test_a_list_that_is_named_is_quoted_whole(panda: Panda, note: str, query: str, expected: str) -> None:
    """In order, as a list, with what is asked for of it."""
    assert answer(ask(panda, query, note=note)) == expected


def test_a_step_is_asked_for_by_its_number(panda: Panda) -> None:
    """It is one of those that were just told; the next one is counted from there."""
    ask(panda, "List all the steps for the buns.", "and what is step 2?", note=BUNS)
    assert answer(ask(panda, "and the next step?")) == "Let them cool for an hour. [1]"
    assert "Bake" in answer(ask(panda, "and what is step 2?"))


def test_a_cut_is_told(panda: Panda) -> None:
    """Of nineteen lines twelve are quoted, and where the others are is told."""
    text = answer(ask(panda, "List all the guests.", note=GUESTS))
    assert text.count("- Guest number") == 12
    assert text.endswith("\n\n… and 7 more in knowledge/list.md")


def test_rows_stay_a_table(panda: Panda) -> None:
    """With the heads of its columns; the session keeps it without marks, and knows its rows."""
    note = "| Room | Litres |\n|---|---|\n| Hall | 5 |\n| Bath | 2 |"
    text = answer(ask(panda, "List all the rooms.", note=note))
    assert text == "| Room | Litres |\n| --- | --- |\n| Hall | 5 [1] |\n| Bath | 2 [1] |"
    path = panda.user_directory / "sessions" / "talk" / "session.json"
    carry = json.loads(path.read_text(encoding="utf-8"))["carry"]
    assert carry["recent_turns"][-1]["assistant"].startswith(text.replace(" [1]", ""))
    assert [record["label"] for record in carry["registry"]["records"]] == ["Hall", "Bath"]


def test_a_list_is_quoted_with_what_introduces_it(panda: Panda) -> None:
    """The line that introduces a list is quoted with the list."""
    note = "Hotels that friends like:\n\n- Palace: $310\n- Jasmim: $95\n\nBook early.\n"
    turn = ask(panda, "Which hotels do friends like?", note=note)
    texts = [item["text"] for item in turn.meta(5)["items"]]
    assert texts[:3] == ["Hotels that friends like:", "Palace: $310", "Jasmim: $95"]


@pytest.mark.parametrize(
    ("note", "told", "query", "expected"),
    [
        (SHRUBS, "my budget is 30 euros", "which of them fit my budget?", TWO_LEFT),
        (SHRUBS, "we ran out of the shrub Hazel on saturday", "which of the shrubs are left?", TWO_LEFT),
        (SHRUBS, "more than 30 is not possible", "which ones can I afford?", TWO_LEFT),
        (
            SHRUBS,
            "the garden is small",
            "which of them likes the shade?",
            "shrub Hydrangea: 24,90 €, likes shade [1]",
        ),
        (
            SITES,
            "Bruno comes along, so dogs have to be allowed",
            "where can we go with him then?",
            "1 of 2 left out: what was said in turn 4.\n\nSite: Waldhof; Remarks: dogs allowed [1]",
        ),
    ],
)
def test_what_was_told_leaves_items_out(
    panda: Panda, note: str, told: str, query: str, expected: str
) -> None:
    """By a limit, a name or a word; the answer says by which turn, how many, and where the others are."""
    turn = ask(panda, f"List all the {note.split()[1].lower()}.", told, query, note=note)
    assert answer(turn) == expected
    assert turn.metadata["answered"] is True


@pytest.mark.parametrize("told", ["the shrub Hazel is not sold out", "we paid 30 euros for a spade"])
def test_what_leaves_nothing_out(panda: Panda, told: str) -> None:
    """What was denied, or is no limit, leaves the whole list."""
    turn = ask(panda, "List all the shrubs.", told, "which of the shrubs are left?", note=SHRUBS)
    assert "left out" not in turn.response


@pytest.mark.parametrize(
    ("query", "is_undone"),
    [
        ("Book a table for two.", True),
        ("Remind me of the laptop and book a table.", False),
        ("Find the laptop.", False),
    ],
)
def test_what_cannot_be_done_here(panda: Panda, query: str, *, is_undone: bool) -> None:
    """An order that no tool carries out is not answered with what stands near it."""
    assert ("can't be done here" in panda.turn(query).response) is is_undone
