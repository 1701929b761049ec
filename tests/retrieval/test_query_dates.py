"""The times that a query names."""

from datetime import UTC, datetime

import pytest

from panda.retrieval.query_dates import find_periods

NOW = datetime(2026, 1, 14, 12, 30, tzinfo=UTC)  # a Wednesday


def spans(query: str) -> list[str]:
    """The periods of a query, as days; the end is the day after the last."""
    found = find_periods(query, NOW)
    assert all(f"{one.start:%H:%M:%S.%f}" == "00:00:00.000000" for one in found)
    return [f"{one.start:%Y-%m-%d} {one.end:%Y-%m-%d}" for one in found]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("on 2023-05-08", ["2023-05-08 2023-05-09"]),
        ("on 2023-02-30", []),
        ("the 8th of May 2023", ["2023-05-08 2023-05-09"]),
        ("May 8, 2023", ["2023-05-08 2023-05-09"]),
        ("in May 2023", ["2023-05-01 2023-06-01"]),
        ("in December 2023", ["2023-12-01 2024-01-01"]),
        ("in 2024", ["2024-01-01 2025-01-01"]),
        ("for 2024 euros", []),
        ("today", ["2026-01-14 2026-01-15"]),
        ("tonight", ["2026-01-14 2026-01-15"]),
        ("Yesterday", ["2026-01-13 2026-01-14"]),
        ("the day before yesterday", ["2026-01-12 2026-01-13"]),
        ("this week", ["2026-01-12 2026-01-19"]),
        ("last week", ["2026-01-05 2026-01-12"]),
        ("last weekend", ["2026-01-10 2026-01-12"]),
        ("this month", ["2026-01-01 2026-02-01"]),
        ("last month", ["2025-12-01 2026-01-01"]),
        ("this year", ["2026-01-01 2027-01-01"]),
        ("last year", ["2025-01-01 2026-01-01"]),
        ("last Friday", ["2026-01-09 2026-01-10"]),
        ("on Wednesday", ["2026-01-07 2026-01-08"]),
        ("on Tuesday", ["2026-01-13 2026-01-14"]),
        ("a day ago", ["2026-01-13 2026-01-14"]),
        ("two days ago", ["2026-01-12 2026-01-13"]),
        ("3 weeks ago", ["2025-12-22 2025-12-29"]),
        ("a couple of months ago", ["2025-11-01 2025-12-01"]),
        ("ten months ago", ["2025-03-01 2025-04-01"]),
        ("two years ago", ["2024-01-01 2025-01-01"]),
        ("in the last 3 days", ["2026-01-11 2026-01-14"]),
        ("in the last two weeks", ["2025-12-31 2026-01-14"]),
        ("yesterday or 2023-05-08", ["2026-01-13 2026-01-14", "2023-05-08 2023-05-09"]),
        ("What does it cost?", []),
    ],
)
def test_periods(query: str, expected: list[str]) -> None:
    """Dates, months, years, days of the week and times that count from now, in the order of the query."""
    assert spans(query) == expected


def test_dates_without_a_year() -> None:
    """A day or a month without a year is one period in each of the last ten years and in this one."""
    for query, month, length in (("on 8 May", 5, 1), ("in January", 1, 31)):
        found = find_periods(query, NOW)
        assert [one.start.year for one in found] == list(range(2016, 2027))
        assert {one.start.month for one in found} == {month}
        assert {(one.end - one.start).days for one in found} == {length}


def test_place_and_kind() -> None:
    """A period knows its words in the query, and whether they count from the present."""
    query = "Since last week or in May 2023?"
    found = find_periods(query, NOW)
    assert [query[slice(*one.words)] for one in found] == ["last week", "May 2023"]
    assert [one.relative for one in found] == [True, False]
    (recent,) = find_periods("in the last 3 days", NOW)
    assert recent.start < NOW < recent.end
