"""The habits that slow readers down are counted, and no count grows."""

import ast
import json

import pytest

from tests.style import HABITS, LIMITS, find_habits

EXAMPLES = {
    "tuple assignment of unrelated values": ("a, b = 1, f()", "a, b = b, a"),
    "conditional append": ("x += [a] if c else []", "x += [a]"),
    "conditional splat": ("f(*([a] if c else []))", "f(*[a])"),
    "loop over a ternary": ("for x in a if c else b: pass", "for x in a: pass"),
    "sequence times a condition": ("x = [a] * (b is not None)", "x = [a] * 3"),
    "chained ternary": ("x = a if b else c if d else e", "x = a if b else c"),
    "six or more positional arguments": ("f(1, 2, 3, 4, 5, 6)", "f(1, 2, 3, 4, 5, six=6)"),
    "placeholder name": ("for one in rows: pass", "for row in rows: pass"),
    "alias": ("from dataclasses import replace as changed", "import numpy as np"),
    "vague docstring": ('def f():\n    """What answers."""', 'def f():\n    """Return the answer."""'),
}


@pytest.mark.parametrize("habit", HABITS)
def test_a_habit_is_recognised(habit: str) -> None:
    """Each habit is found where it stands, and not in what looks like it."""
    with_habit, without = EXAMPLES[habit]
    assert any(HABITS[habit](node) for node in ast.walk(ast.parse(with_habit)))
    assert not any(HABITS[habit](node) for node in ast.walk(ast.parse(without)))


@pytest.mark.parametrize("directory", ["panda", "tests"])
def test_no_habit_grows(directory: str) -> None:
    """Nothing occurs more often than its limit, and a limit stays near to what there is."""
    limits: dict[str, int] = json.loads(LIMITS.read_text(encoding="utf-8"))[directory]
    counts = {habit: len(places) for habit, places in find_habits(directory).items()}
    grown = {habit: (count, limits[habit]) for habit, count in counts.items() if count > limits[habit]}
    assert grown == {}, "now and limit; list the places with `python -m tests.style HABIT`"
    loose = {habit: (count, limits[habit]) for habit, count in counts.items() if count < limits[habit] - 25}
    assert loose == {}, "now and limit; lower the limits with `python -m tests.style --write`"
