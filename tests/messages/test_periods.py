"""Dates as people write them, and the past times that a message names."""

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from panda.messages.periods import find_periods

NOW = datetime(2026, 1, 14, 12, 30, tzinfo=UTC)  # a Wednesday
CASES = [
    json.loads(line)
    for line in (Path(__file__).parents[1] / "evals" / "period.jsonl").read_text("utf-8").splitlines()
]


def days(message: str, now: datetime = NOW) -> list[str]:
    """First and last day of each period."""
    return [str(day) for period in find_periods(message, now) for day in (period.start, period.end)]


@pytest.mark.parametrize("case", [c for c in CASES if c["split"] == "fit"], ids=lambda case: case["query"])
def test_cases(case: dict[str, object]) -> None:
    """Each labelled case of the fit half holds."""
    now = datetime.fromisoformat(str(case["now"]))
    assert days(str(case["query"]), now) == case["label"]


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ("on 2023-02-30", []),
        ("what was said on 11/12/2025, and on 5/6", []),
        *(
            (f"what was said on {day}", ["2024-10-24", "2024-10-24"])
            for day in ("24th of October 2024", "10/24/24", "October the 24th, 2024", "20241024", "24.10.24")
        ),
        ("for 2024 euros", []),
        ("on 29 February, what did we do", ["2024-02-29", "2024-02-29"]),
        ("9999 years ago", []),
        ("ten months ago", ["2025-03-01", "2025-03-31"]),
        ("yesterday or 2023-05-08", ["2026-01-13", "2026-01-13", "2023-05-08", "2023-05-08"]),
        ("LAST WEEK", ["2026-01-05", "2026-01-11"]),
        ("what did I read on 3\u00a0May\u00a02023?", ["2023-05-03", "2023-05-03"]),
        ("", []),
    ],
)
def test_edges(message: str, expected: list[str]) -> None:
    """Days that are none or could be two, one day in five writings, counts beyond all years, other blanks."""
    assert days(message) == expected


def test_place_and_kind() -> None:
    """A period knows its words in the message, and whether they count from the present."""
    query = "What did I say ‘then’ – yesterday, or in May 2023?"
    found = find_periods(query, NOW)
    assert [query[slice(*one.words)] for one in found] == ["yesterday", "May 2023"]
    assert [one.relative for one in found] == [True, False]
