"""Figures that a model computes: the expression is worked out again from what is cited."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from panda.documents.evidence import check_computed, check_evidence

CASES: list[dict[str, Any]] = [
    json.loads(line)
    for line in Path(__file__).with_name("computed_cases.jsonl").read_text(encoding="utf-8").splitlines()
]
LAPTOPS = ["Lenovo LOQ 15: price $697.00, 2.38 kg, 10 % off in May", "ASUS TUF A15: price $749.99, 2.2 kg"]
SHOPPING = {"Shopping": ["milk $1", "eggs $2", "ham $4"], "Tools": ["saw $9", "axe"]}

RIGHT = [
    ("$52.99", "749.99 − 697"),
    ("$53", "$749.99 - $697"),
    ("180 g", "2.38 kg − 2.2 kg"),
    ("7.1%", "($749.99 - $697.00) / $749.99 * 100"),
    ("7 %", "100 × (749.99 − 697) / 749.99"),
    ("$723.50", "($697 + $749.99) / 2"),
    ("$69.70", "10 % of $697"),
    ("$766.70", "$697 + 10 %"),
    ("$749.99", "max($697.00, $749.99)"),
    ("$7", "sum(Shopping)"),
    ("$2.33", "mean(Shopping)"),
    ("3", "count(Shopping)"),
    ("-$52.99", "-(749.99 − 697)"),
]
WRONG = [
    ("$54", "$749.99 − $697", "is not $54"),
    ("$52.98", "$749.99 − $697", "is not $52.98"),
    ("€52.99", "$749.99 − $697", "does not give EUR"),
    ("52.99", "$749.99 − $697", "lacks the unit"),
    ("$22.99", "$749.99 − $727", "$727"),
    ("$747.61", "$749.99 − 2.38 kg", "adds USD and g"),
    ("$7", "sum(Tools)", "has no number like"),
    ("$7", "sum(Garden)", "no list"),
    ("$3", "sum(milk, eggs)", "no list"),
    ("two", "count(Lenovo, Acer)", "Acer"),
    ("$1", "$697 / 0", "0"),
    ("$697", "power($697, 1)", "power"),
    ("$697", "($697", "open"),
    ("$697", "$697 of the best", "is not understood"),
    ("two days", "days between 4 May and 6 May", "4 May"),
    ("$2.40", "$697 × $749.99", "multiplies"),
    ("the best", "$697", "is not one number"),
    ("$697", "-" * 1_990 + "$697", "two signs"),
    ("$697", "(" * 40 + "$697" + ")" * 40, "too deep"),
]


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
    """It makes a percentage only where one is claimed."""
    assert check_computed("300", "3 × 100", ["3 boxes of 100"], {}) is None


def test_a_night() -> None:
    """What begins before midnight ends after it."""
    lines = ["The train leaves at 23:50 and arrives at 00:10."]
    assert check_computed("20 minutes", "minutes between 23:50 and 00:10", lines, {}) is None


@pytest.mark.parametrize(("value", "expression"), RIGHT)
def test_right(value: str, expression: str) -> None:
    """Units, rounding, percentages and whole lists."""
    assert check_computed(value, expression, LAPTOPS, SHOPPING) is None


@pytest.mark.parametrize(("value", "expression", "told"), WRONG)
def test_wrong(value: str, expression: str, told: str) -> None:
    """What is wrong is told."""
    fault = check_computed(value, expression, LAPTOPS, SHOPPING)
    assert fault is not None
    assert told in fault
