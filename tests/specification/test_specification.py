"""docs/specification.md: every row of the specification names where it is done and a test that exists."""

import ast
import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
ROWS = [
    [cell.strip() for cell in line.strip("| ").split(" | ")]
    for line in (ROOT / "docs" / "specification.md").read_text(encoding="utf-8").splitlines()
    if re.match(r"\| S\d ", line)
]


@cache
def functions_of(path: Path) -> set[str]:
    """The tests of a file."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row[0]} {row[1]}")
def test_a_row(row: list[str]) -> None:
    """The place is there, and the test is one."""
    _, _, place, test = row
    assert any((ROOT / base / place).exists() for base in ("panda", ".")), place
    path, _, name = test.partition("::")
    assert name.startswith("test_"), test
    assert name in functions_of(ROOT / "tests" / path), test


def test_all_rows_are_there() -> None:
    """Every document has its rows, each once; tests that are named after a row are in the table."""
    assert len({tuple(row) for row in ROWS}) == len(ROWS)
    assert {row[0].split()[0] for row in ROWS} == {"S0", "S1", "S2", "S3", "S4"}
    named = {row[3].partition("::")[2] for row in ROWS}
    here = {name for path in Path(__file__).parent.glob("test_rows_*.py") for name in functions_of(path)}
    assert {name for name in here if re.match(r"test_s\d_", name)} <= named
