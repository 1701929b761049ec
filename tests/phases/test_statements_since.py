"""Of two sources that say different things of the same, the newest comes first."""

import os
from datetime import timedelta
from pathlib import Path

import pytest

from panda.memory.reader import NodeReader
from panda.phases.answer_text import render_answer
from panda.phases.evidence import ClosestLines, line_of
from panda.phases.statements import Since, told_since
from panda.store.layout import UserStore
from panda.store.records import GatheredItem
from tests.builders import NOW, still_clock
from tests.scripted_turns import USER, laptop_store, run_turn

RENT = GatheredItem("The rent of the flat is 900 € a month.", ("knowledge:flat.md",))
RAISED = GatheredItem("The landlord raised the rent of the flat to 950 €.", ("fact:said_t2_1",))
AGAIN = GatheredItem("The rent of the flat is 980 € from May.", ("fact:said_t3_1",))
DOG = GatheredItem("Bruno weighs 31 kg.", ("fact:said_t2_2",))


def since(
    tmp_path: Path, *told: GatheredItem, items: tuple[GatheredItem, ...] = (RENT,), days: int = 9
) -> Since:
    """What was told since of an answer about the rent, whose note was written some days ago."""
    layout = laptop_store(tmp_path)
    turn = run_turn(layout, "How much is the rent of the flat?").turn
    note = layout.of(USER).knowledge / "flat.md"
    note.parent.mkdir(parents=True, exist_ok=True)
    note.write_text(f"{RENT.text}\n", encoding="utf-8")
    os.utime(note, ((NOW - timedelta(days=days)).timestamp(),) * 2)
    entries = [
        f'{one.node_ids[0][5:]}: {{value: "{one.text}", confidence: 0.9, source_turn: 1, '
        f"updated_at: 2026-01-0{n}T10:00:00Z}}\n"
        for n, one in enumerate(told, 2)
    ]
    layout.of(USER).facts.write_text("".join(["---\n", *entries, "---\n"]), encoding="utf-8")
    reader = NodeReader(UserStore(layout.root, USER, still_clock))
    return told_since(turn, [line_of(item) for item in items], reader, ClosestLines(None))


def items_of(found: Since) -> tuple[GatheredItem, ...]:
    """Its lines as an answer says them."""
    return tuple(line.item for line in found.lines)


def test_what_was_told_since_comes_first(tmp_path: Path) -> None:
    """A statement with another price than the older note stands in front, with its date; the note follows."""
    found = since(tmp_path, RAISED, DOG)
    assert items_of(found) == (RAISED, RENT)
    lines, places = found.lines, {line.node: "" for line in found.lines}
    answer = render_answer([*lines], places, left_out={}, said=found.leads)
    said = answer.partition("\n\nSources:")[0]
    assert said == f"Told on 2026-01-02: {RAISED.text} [1]\n\nBefore: {RENT.text} [2]"


def test_the_newest_of_two_statements_is_first(tmp_path: Path) -> None:
    """What was told last stands first, whichever line was chosen."""
    assert items_of(since(tmp_path, RAISED, AGAIN, items=(RAISED,))) == (AGAIN, RAISED)


@pytest.mark.parametrize("days", [-1, 0])
def test_a_note_that_was_written_later_counts(tmp_path: Path, days: int) -> None:
    """A statement from before the note was last written is not put in front of it."""
    assert items_of(since(tmp_path, RAISED, days=days)) == (RENT,)


def test_a_page_has_its_own_date(tmp_path: Path) -> None:
    """What a page says is not outdated by what the user said."""
    page = GatheredItem("Flat: rent 900 € a month", ("visit:visit_loq",))
    assert items_of(since(tmp_path, RAISED, items=(page,))) == (page,)


def test_a_correction_stands_for_what_it_corrects(tmp_path: Path) -> None:
    """What turns against a statement made just before takes its place, far as both are from the query."""
    said = GatheredItem("Will waters the beds.", ("fact:said_t2_1",))
    turned = GatheredItem("Not Will after all, Anke waters them.", ("fact:said_t3_1",))
    assert items_of(since(tmp_path, said, turned, items=(said,))) == (turned,)


def test_a_key_that_a_quoted_statement_gave_is_not_quoted_again(tmp_path: Path) -> None:
    """Of a statement and the key and value that it gave the statement stands in the answer, citing both."""
    key = GatheredItem("rent: 950 €", ("memory:rent",))
    (item,) = items_of(since(tmp_path, RAISED, items=(RAISED, key)))
    assert (item.text, item.node_ids) == (RAISED.text, ("fact:said_t2_1", "memory:rent"))
