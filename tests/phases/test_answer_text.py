"""Lists, tables and code in an answer."""

from pathlib import Path

from panda.documents.text import strip_citations
from panda.language.lists import listed_things
from panda.phases.answer_text import render_answer, without_doubles
from panda.store.records import Line
from tests.scripted_turns import USER, Preferring, Ran, laptop_store, run_turn

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


def ask(tmp_path: Path, note: str, query: str, line: str) -> Ran:
    """The answer to a query that this line of a note answers, by a model that quotes."""
    layout = laptop_store(tmp_path)
    notes = layout.of(USER).knowledge
    notes.mkdir(parents=True)
    (notes / "buns.md").write_text(note, encoding="utf-8")
    return run_turn(layout, query, answer=Preferring("PROCEED", "question", line), writes=False, scores=True)


def said(ran: Ran) -> str:
    """The answer without its sources."""
    return ran.response.partition("\n\nSources:")[0]


def test_a_list_that_is_named_is_quoted_whole(tmp_path: Path) -> None:
    """In order, as a list, what its lines carry told once."""
    ran = ask(tmp_path, BUNS, "What are the ingredients of the buns?", "4 eggs")
    assert "- 250 g flour [1]\n- 4 eggs [1]\n- a pinch of sea salt [1]" in said(ran)
    assert (said(ran).count("Ingredients"), ran.metadata.status, ran.problems) == (1, "approved", [])


def test_steps_are_quoted_with_their_numbers_and_code(tmp_path: Path) -> None:
    """Code between two steps is theirs."""
    ran = ask(tmp_path, BUNS, "List all the steps for the buns.", "Whisk eggs and flour.")
    assert "2. Steps" not in said(ran)
    assert "1. Whisk eggs and flour. [1]\n" in said(ran)
    assert "\n  oven --at 180 [1]\n3. Let them cool for an hour. [1]" in said(ran)


def test_one_step_of_many(tmp_path: Path) -> None:
    """Who asks for a step by its number gets that one; who names nothing but the list gets all of it."""
    (tmp_path / "a").mkdir()
    ran = ask(tmp_path / "a", BUNS, "What is step 3 of the buns?", "Let them cool")
    assert said(ran) == "Let them cool for an hour. [1]"
    (tmp_path / "b").mkdir()
    ran = ask(tmp_path / "b", "# Board\n- Chair: Ann\n- Treasurer: Bo", "Who is on the board?", "Chair: Ann")
    assert said(ran) == "- Chair: Ann [1]\n- Treasurer: Bo [1]"


def test_a_step_of_the_last_reply(tmp_path: Path) -> None:
    """A step that is asked for by nothing but its number is one of those that were just told."""
    ran = ask(tmp_path, BUNS, "List all the steps for the buns.", "Whisk eggs and flour.")
    model = Preferring("PROCEED", "question", "Let them cool")
    again = run_turn(ran.layout, "and what is step 3?", answer=model, writes=False, scores=True)
    assert said(again) == "Let them cool for an hour. [1]"
    assert (again.metadata.status, again.problems) == ("approved", [])


def test_a_cut_is_told(tmp_path: Path) -> None:
    """Of nineteen lines twelve are quoted, and where the others are is told."""
    note = "Guests:\n" + "\n".join(f"- Guest number {n} of the party" for n in range(1, 20))
    ran = ask(tmp_path, note, "List all the guests.", "Guest number")
    assert said(ran).count("- Guest number") == 12
    assert said(ran).endswith("\n\n… and 7 more in knowledge/buns.md")
    assert ran.problems == []


def test_rows_stay_a_table(tmp_path: Path) -> None:
    """With the heads of its columns; what it lists is read from it as before."""
    note = "| Room | Litres |\n|---|---|\n| Hall | 5 |\n| Bath | 2 |"
    ran = ask(tmp_path, note, "List all the rooms.", "Room: Hall")
    assert said(ran) == "| Room | Litres |\n| --- | --- |\n| Hall | 5 [1] |\n| Bath | 2 [1] |"
    assert [label for label, _ in listed_things(said(ran))] == ["Hall", "Bath"]


def test_markdown_of_a_writer_stays() -> None:
    """Fences that close stay; a mark that would break them stands below; heads and sources are quotes."""
    lines = [
        Line("Run:\n\n```sh\n# all\nmake\n```", node="a"),
        Line("1. Tea\n# Head\n[2] x", node="a"),
    ]
    assert render_answer(lines, {"a": "a.md"}, left_out={}, said={}) == (
        "Run:\n\n```sh\n# all\nmake\n```\n\n([1])\n\n1. Tea\n\\# Head\n"
        "\\[2\\] x [1]\n\nSources:\n- [1] a, a.md"
    )


def test_other_numbers_and_names_are_no_doubles() -> None:
    """Lines that differ in a price, a number or a name are all told."""
    texts = [
        f"The cheap room in {city} costs {n} € a night now"
        for city, n in (("Ghent", 80), ("Ghent", 85), ("Bruges", 80))
    ]
    assert len(without_doubles([Line(text, node="a") for text in texts])) == 3


def test_marks_are_taken_from_lists_and_tables() -> None:
    """What a turn said is kept without its marks."""
    assert strip_citations("- a [1]\n- b [1]\n\n| x [1] |\n") == "- a\n- b\n\n| x |\n"
