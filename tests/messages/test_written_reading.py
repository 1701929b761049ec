"""What is kept of a reading that a model wrote."""

from typing import Any

import pytest

from panda.messages.reading import Clause, Days, Excluded, Limit, Reading, Referred, Statement, check_reading

QUERY = "Drop the HP, please. I’m in Bern now; find 3 hotels under $200 there, like last week."


def read(is_open: bool = False, **written: Any) -> tuple[Reading, list[str]]:
    """What is kept of a reading of QUERY in a session with the entities e1 and e2."""
    return check_reading(written, query=QUERY, refs=["e1", "e2"], is_open=is_open)


DROP = {"ref": "e1", "action": "drop", "words": "drop the HP"}
WEEK = {"start": "2026-01-05", "end": "2026-01-11", "words": "last week"}
BERN = {"text": "I'm in Bern now", "key": "Location", "value": "Bern", "entity": None, "action": "corrects"}


@pytest.mark.parametrize(
    ("name", "written", "kept"),
    [
        ("mood", "tells", "tells"),
        ("clauses", [{"text": "drop the hp", "mood": "orders"}], (Clause("Drop the HP", "orders"),)),
        (
            "references",
            [{"words": "the HP", "refs": ["e1"]}, {"words": "there", "refs": []}],
            (Referred("the HP", ("e1",)), Referred("there")),
        ),
        ("exclusions", [DROP], (Excluded("e1", "drop", "Drop the HP"),)),
        ("clears", "Drop the HP", "Drop the HP"),
        ("periods", [WEEK], (Days("2026-01-05", "2026-01-11", "last week"),)),
        (
            "limits",
            [
                {"text": "under $200", "key": "budget_max", "value": "USD 200"},
                {"text": "3 hotels", "key": "count:hotels", "value": 3},
                {"text": "there", "key": None, "value": None},
            ],
            (
                Limit("under $200", "budget_max", "USD 200"),
                Limit("3 hotels", "count:hotels", 3),
                Limit("there"),
            ),
        ),
        ("recap", True, True),
        ("all", True, True),
        ("statements", [BERN], (Statement("I’m in Bern now", "location", "Bern", action="corrects"),)),
        (
            "statements",
            [{"text": "I'm in Bern now", "key": "visited", "value": ["Bern"], "action": "adds"}],
            (Statement("I’m in Bern now", "visited", ("Bern",), action="adds"),),
        ),
    ],
)
def test_each_part_is_kept(name: str, written: Any, kept: Any) -> None:
    """What a model wrote holds as it wrote it, its quotations as they stand in the query."""
    reading, dropped = read(**{name: written})
    assert (getattr(reading, name), dropped) == (kept, [])


@pytest.mark.parametrize(
    ("name", "written", "kept"),
    [
        ("mood", "sings", "asks"),
        ("clauses", [{"text": "Keep the HP", "mood": "orders"}], ()),
        ("clauses", ["Drop the HP"], ()),
        ("clauses", "Drop the HP", ()),
        ("references", [{"words": "the HP", "refs": ["e7"]}], (Referred("the HP"),)),
        ("references", [{"words": "the Dell", "refs": ["e1"]}], ()),
        ("exclusions", [{**DROP, "ref": "e7"}], ()),
        ("exclusions", [{**DROP, "words": "no HP"}], ()),
        ("exclusions", [{**DROP, "words": "rop the H"}], ()),
        ("exclusions", [{**DROP, "action": "burn"}], ()),
        ("exclusions", [{"ref": None, "action": None, "words": None}], ()),
        ("clears", "start over", None),
        ("clears", 7, None),
        ("periods", [{**WEEK, "start": "last Monday"}], ()),
        ("periods", [{**WEEK, "end": "2026-01-01"}], ()),
        ("periods", [{**WEEK, "words": "last month"}], ()),
        ("limits", [{"text": "under $500", "key": "budget_max", "value": 500}], ()),
        ("limits", [{"text": "under $200", "key": "the budget!", "value": 200}], (Limit("under $200"),)),
        ("limits", [{"text": "under $200", "key": "budget_max", "value": [200]}], (Limit("under $200"),)),
        ("agreement", "agrees", None),
        ("recap", "yes", False),
        ("all", 1, False),
        ("statements", [{**BERN, "text": "I live in Bern"}], ()),
        ("statements", [{**BERN, "value": "Basel"}], (Statement("I’m in Bern now", action="corrects"),)),
        ("statements", [{**BERN, "key": "said_t1_1"}], (Statement("I’m in Bern now", action="corrects"),)),
        ("statements", [{**BERN, "entity": "Anna"}], (Statement("I’m in Bern now", action="corrects"),)),
    ],
)
def test_what_cannot_be_is_left_out(name: str, written: Any, kept: Any) -> None:
    """Words that do not stand in the query, ids that are not there and wrong forms go, and are named."""
    reading, dropped = read(**{name: written})
    assert getattr(reading, name) == kept
    assert dropped
    assert all(name in part for part in dropped)


def test_missing_parts_are_empty() -> None:
    """What is missing or null is empty, and nothing is said of it; the mood follows from the clauses."""
    assert read() == (Reading(), [])
    names = ("clauses", "references", "exclusions", "clears", "periods", "limits", "recap", "statements")
    nulls: dict[str, Any] = dict.fromkeys((*names, "mood", "agreement", "all"))
    assert read(**nulls) == (Reading(), [])
    assert read(clauses=[{"text": "Drop the HP", "mood": "orders"}])[0].mood == "orders"
    assert check_reading([1], query=QUERY, refs=(), is_open=False) == (
        Reading(),
        ["all of it: it is no object"],
    )


def test_agreement_needs_a_question() -> None:
    """Where a question is open, what is not said is neither; without one there is nothing to agree to."""
    assert read(is_open=True, agreement="declines")[0].agreement == "declines"
    assert read(is_open=True)[0].agreement == "neither"
    assert read(agreement="neither") == (Reading(), [])
