"""The tables of examples beside the tests, each with the names of the module that its heading says."""

import doctest
import re
from importlib import import_module
from pathlib import Path

import pytest

EXAMPLES = [
    (f"{file.parent.name}.{module}", name, lines)
    for file in sorted(Path(__file__).parent.glob("*/examples.md"))
    for module, name, lines in re.findall(r"(?ms)^# (\w+)\.(\S+)\n(.*?)(?=^# |\Z)", file.read_text("utf-8"))
]


@pytest.mark.parametrize(("module", "name", "lines"), EXAMPLES, ids=[".".join(one[:2]) for one in EXAMPLES])
def test_what_a_function_gives(module: str, name: str, lines: str) -> None:
    """A function gives what its example says."""
    names = dict(vars(import_module(f"panda.{module}")))
    test = doctest.DocTestParser().get_doctest(lines, names, name, module, 0)
    assert doctest.DocTestRunner().run(test).failed == 0
    assert test.examples
