"""Figures that a model computes: the expression is worked out again from what is cited."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from panda.documents.evidence import Figure, check_computed, check_evidence, check_figures

CASES: list[dict[str, Any]] = [
    json.loads(line)
    for line in Path(__file__).with_name("computed_cases.jsonl").read_text(encoding="utf-8").splitlines()
]
LAPTOPS = ["Lenovo LOQ 15: price $697.00, 2.38 kg, 10 % off in May", "ASUS TUF A15: price $749.99, 2.2 kg"]
SHOPPING = {"Shopping": ["milk $1", "eggs $2", "ham $4"], "Tools": ["saw $9", "axe"]}

FIGURES: list[dict[str, Any]] = [
    json.loads(line)
    for line in Path(__file__).with_name("computed_figures.jsonl").read_text(encoding="utf-8").splitlines()
]
"""Figures of LAPTOPS and SHOPPING, each with what is wrong with it."""


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["text"])
def test_what_people_compute(case: dict[str, Any]) -> None:
    """Its figures hold, and with them the whole text does; another figure does not."""
    figures = [(figure["value"], figure["expression"]) for figure in case["computed"]]
    assert [check_computed(*figure, case["sources"], {}) for figure in figures] == [None] * len(figures)
    assert check_evidence(case["text"], [*case["sources"], *(value for value, _ in figures)]) == []
    for value, expression in figures:
        digit = re.search(r"\d(?=\D*\Z)", value) or re.search(r"\d", value)
        wrong = value.replace(digit[0], str((int(digit[0]) + 5) % 10)) if digit else "eleven weeks"
        assert check_computed(wrong, expression, case["sources"], {}) is not None


def test_a_hundred_is_a_number() -> None:
    """A hundred makes a percentage only where one is claimed."""
    assert check_computed("300", "3 × 100", ["3 boxes of 100"], {}) is None


def test_a_night() -> None:
    """A span that begins before midnight ends after it."""
    lines = ["The train leaves at 23:50 and arrives at 00:10."]
    assert check_computed("20 minutes", "minutes between 23:50 and 00:10", lines, {}) is None


@pytest.mark.parametrize(
    "figure", FIGURES, ids=lambda figure: f"{figure['value']} = {figure['expression']:.40}"
)
def test_figures(figure: dict[str, Any]) -> None:
    """Units, rounding, percentages and whole lists; what is wrong is told."""
    fault = check_computed(figure["value"], figure["expression"], LAPTOPS, SHOPPING)
    assert (fault is None) == (figure["fault"] is None)
    assert (figure["fault"] or "") in (fault or "")


@pytest.mark.parametrize("rate", ["per market day", "a day", "per day"])
def test_what_a_computed_count_is_counted_for(rate: str) -> None:
    """A count that was worked out holds with what the text counts it for, behind its noun too."""
    sources = ["9 May 2026: 36 jars", "16 May 2026: 44 jars"]
    text = f"You sold 40 jars {rate}: 36 on 9 May 2026 and 44 on 16 May 2026."
    check = check_figures(
        text, [Figure("40 jars", "mean(36 jars, 44 jars)", sources)], sources, lists={}, whole_lists={}
    )
    assert check_evidence(text, [*sources, *check.values]) == []


TAKINGS = ["Day: 29 November; Takings: 514 EUR\nDay: 30 November; Takings: 702 EUR"]
MARKET = {"Sales at the Advent market 2025": TAKINGS[0].splitlines()}


@pytest.mark.parametrize(
    ("value", "expression", "is_given"),
    [
        ("two days", "count(29 November, 30 November)", True),
        ("two days", "count(Sales at the Advent market 2025)", True),
        ("two days", "count(514 EUR, 702 EUR)", True),
        ("three days", "count(514 EUR, 702 EUR)", False),
        ("two days", "count(1 March, 30 November)", False),
        ("1,216 EUR", "sum(Sales at the Advent market 2025)", True),
        ("1,216 EUR", "sum(EUR 514, EUR 702)", True),
        ("1,217 EUR", "sum(EUR 514, EUR 702)", False),
    ],
)
def test_counts_and_lists_with_numbers_in_their_names(value: str, expression: str, *, is_given: bool) -> None:
    """Lists with a year in their names are found, and days are counted by what the lines name."""
    assert (check_computed(value, expression, TAKINGS, MARKET) is None) is is_given


@pytest.mark.parametrize("order", [1, -1])
def test_figures_are_listed_in_any_order(order: int) -> None:
    """Figures use those that are listed after them."""
    figures = [
        Figure("1,216 EUR", "514 EUR + 702 EUR", TAKINGS),
        Figure("608 EUR", "1,216 EUR / 2", TAKINGS),
    ]
    text = "You took 608 EUR a day, 1,216 EUR in all."
    check = check_figures(text, figures[::order], TAKINGS, lists={}, whole_lists={})
    assert check.are_held == (True, True)
    wrong = [Figure("608 EUR", "1,216 EUR / 2", TAKINGS), Figure("1,217 EUR", "514 EUR + 702 EUR", TAKINGS)]
    assert check_figures(text, wrong, TAKINGS, lists={}, whole_lists={}).are_held == (False, False)
