"""What a message limits."""

import json
from pathlib import Path

import pytest

from panda.evals.report import same_phrases
from panda.messages.limits import find_limits

CASES = [
    json.loads(line)
    for line in (Path(__file__).parents[1] / "evals" / "constraint.jsonl").read_text("utf-8").splitlines()
]


@pytest.mark.parametrize("case", [c for c in CASES if c["split"] == "fit"], ids=lambda case: case["query"])
def test_cases(case: dict[str, object]) -> None:
    """Each labelled case of the fit half holds."""
    query, label = str(case["query"]), case["label"]
    assert isinstance(label, list)
    assert same_phrases(query, tuple(label), tuple(one.text for one in find_limits(query)))


@pytest.mark.parametrize(
    ("message", "keyed"),
    [
        ("a tent under 200 euros", [("budget_max", "EUR 200")]),
        (
            "find flights after 3 May 2027, at least $90",
            [("date_min", "2027-05-03"), ("budget_min", "USD 90")],
        ),
        ("a sofa between 300 and 500 €", [("budget_min", "EUR 300"), ("budget_max", "EUR 500")]),
        ("trains on 3 May, not before 9:30", [("date_min", "09:30:00")]),
        ("a router with at least four LAN ports", [("count_min:ports", 4)]),
        ("a flute under 300 pounds", [(None, None)]),
        ("a hotel with a pool, 12 km from the beach", []),
        ("I paid 35 euros for the last lesson", []),
        ("Which one is less expensive?", []),
        ("Does it have 2 USB ports?", []),
        ("Compare RTX 4050 laptops", []),
        ("what did the 3 eggs cost?", []),
        ("we had 4 people", []),
    ],
)
def test_keys(message: str, keyed: list[tuple[str | None, str | None]]) -> None:
    """Budgets, dates and counts have a key where their value is sure; what is told limits nothing."""
    assert [(one.key, one.value) for one in find_limits(message)] == keyed


def test_as_written() -> None:
    """A limit is quoted as the message has it, in typographic signs too."""
    assert [one.text for one in find_limits("I’m looking for a cello that’s under 300\u00a0€")] == [
        "under 300\u00a0€"
    ]
