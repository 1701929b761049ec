"""What is asked of a list that was shown, or ordered to be."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from panda.language.reading import Clause, Reading
from panda.phases.tool_outcome import is_undone
from panda.store.layout import Layout
from tests.phases.test_answer_text import BUNS, ask, said
from tests.scripted_turns import USER, Preferring, Ran, laptop_store, run_turn

SHRUBS = (
    "# Shrubs\n\n- shrub Weigela: 17,50 €, needs full sun\n- shrub Hazel: 59,00 €\n"
    "- shrub Hydrangea: 24,90 €, likes shade\n"
)
SITES = "# Campsites\n\n| Site | Remarks |\n|---|---|\n| Seeblick | no dogs |\n| Waldhof | dogs allowed |\n"


def follow(layout: Layout, query: str, line: str = "nothing") -> Ran:
    """A further turn of the session, by a model that prefers a line."""
    return run_turn(layout, query, Preferring("PROCEED", line), writes=False, scores=True)


@pytest.mark.parametrize(
    ("note", "told", "query", "answer"),
    [
        (
            SHRUBS,
            "my budget is 30 euros",
            "which of them fit my budget?",
            "1 of 3 left out: what was said in turn 4.\n\n- shrub Weigela: 17,50 €, needs full sun [1]\n"
            "- shrub Hydrangea: 24,90 €, likes shade [1]\n\n… and 1 more in knowledge/buns.md",
        ),
        (
            SHRUBS,
            "we ran out of the shrub Hazel on saturday",
            "which of the shrubs are left?",
            "1 of 3 left out: what was said in turn 4.\n\n- shrub Weigela: 17,50 €, needs full sun [1]\n"
            "- shrub Hydrangea: 24,90 €, likes shade [1]\n\n… and 1 more in knowledge/buns.md",
        ),
        (
            SHRUBS,
            "more than 30 is not possible",
            "which ones can I afford?",
            "1 of 3 left out: what was said in turn 4.\n\n- shrub Weigela: 17,50 €, needs full sun [1]\n"
            "- shrub Hydrangea: 24,90 €, likes shade [1]\n\n… and 1 more in knowledge/buns.md",
        ),
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
    tmp_path: Path, note: str, told: str, query: str, answer: str
) -> None:
    """By a limit, a name or a word; the answer says by which turn, how many, and where the others are."""
    ran = ask(
        tmp_path, note, f"List all the {note.split()[1].lower()}.", "shrub" if note == SHRUBS else "Waldhof"
    )
    follow(ran.layout, told)
    again = follow(ran.layout, query)
    assert said(again) == answer
    assert (again.metadata.status, again.metadata.answered, again.problems) == ("approved", True, [])


@pytest.mark.parametrize("told", ["the shrub Hazel is not sold out", "we paid 30 euros for a spade"])
def test_what_leaves_nothing_out(tmp_path: Path, told: str) -> None:
    """What was denied, or is no limit, leaves the whole list."""
    ran = ask(tmp_path, SHRUBS, "List all the shrubs.", "shrub")
    follow(ran.layout, told)
    assert "left out" not in follow(ran.layout, "which of the shrubs are left?", "Hazel").response


def test_a_limit_in_the_question(tmp_path: Path) -> None:
    """A question that sets a limit is answered with what is within it."""
    ran = ask(tmp_path, SHRUBS, "which shrubs are under 20 €?", "shrub")
    within = "- shrub Weigela: 17,50 €, needs full sun [1]"
    assert said(ran) == f"{within}\n\n… and 2 more in knowledge/buns.md"


def test_the_next_step(tmp_path: Path) -> None:
    """It is counted from the last one that was quoted."""
    ran = ask(tmp_path, BUNS, "What is step 2 of the buns?", "Bake")
    assert said(follow(ran.layout, "and the next step?")) == "Let them cool for an hour. [1]"


def test_a_list_that_is_ordered(tmp_path: Path) -> None:
    """Who orders a list by its name gets it whole, whatever line a model prefers."""
    layout = laptop_store(tmp_path)
    layout.of(USER).knowledge.mkdir(parents=True)
    (layout.of(USER).knowledge / "crew.md").write_text(
        "# Crew\n\n- Malte: sound\n- Ines: lights\n", encoding="utf-8"
    )
    assert said(follow(layout, "show me the crew list", "sound")) == "- Malte: sound [1]\n- Ines: lights [1]"


@pytest.mark.parametrize(
    ("clauses", "tools", "undone"),
    [
        (["Book a table"], ["doc.search"], True),
        (["Remind me of it", "book a table"], ["memory.query"], False),
        (["Find the key"], ["doc.search"], False),
        (["Write a letter"], ["content.generate"], False),
    ],
)
def test_what_cannot_be_done_here(clauses: list[str], tools: list[str], undone: bool) -> None:
    """An order that no tool carried out is not answered with what stands near it."""
    reading = Reading(mood="orders", clauses=tuple(Clause(text, "orders") for text in clauses))
    steps = [SimpleNamespace(tool=name, status="success") for name in tools]
    turn: Any = SimpleNamespace(
        mode="chat", reading=reading, steps=lambda: steps, plan=SimpleNamespace(next_step="coordinator")
    )
    assert is_undone(turn) is undone
