"""YAML that is read, and that is refused."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from panda.documents.yaml_text import (
    YamlTextError,
    parse_yaml,
    render_yaml_lines,
    split_front_matter,
)
from panda.errors import DocumentError
from tests.documents.test_context import jsonlike, wild

BOMB = "a: &a [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{anchor}: &{anchor} [{', '.join([f'*{before}'] * 9)}]\n"
    for before, anchor in zip("abcdefghi", "bcdefghij", strict=True)
)


def test_large_number() -> None:
    """A number too large to be printed again is refused."""
    with pytest.raises(YamlTextError, match="a whole number of 5000 digits is too large"):
        parse_yaml("a: " + "9" * 5000)


@pytest.mark.parametrize("text", ["[" * 30_000, "{a: " * 30_000])
def test_deep_nesting(text: str) -> None:
    """More than a hundred levels are refused, before the time for them grows with their square."""
    with pytest.raises(YamlTextError, match="nested too deeply") as caught:
        parse_yaml(f"b: 1\na: {text}")
    assert caught.value.line == 2
    with pytest.raises(DocumentError, match="nested too deeply"):
        split_front_matter(f"---\na: {text}\n---\n", where="f.md")


def test_aliases() -> None:
    """An alias is refused with its line, before it can stand for a thousand million values."""
    with pytest.raises(YamlTextError, match=r"the alias \*a is not read") as caught:
        parse_yaml(BOMB)
    assert caught.value.line == 2
    with pytest.raises(DocumentError, match=r"the alias \*a is not read") as front:
        split_front_matter(f"---\n{BOMB}---\n", where="f.md")
    assert front.value.where == "f.md:3"


@given(st.dictionaries(wild, jsonlike, max_size=4), st.sampled_from(["", "  "]))
def test_own_yaml_is_read_as_any_other(values: dict[str, Any], indent: str) -> None:
    """A value that was written reads back as it was."""
    text = ("_meta:\n" if indent else "") + render_yaml_lines(values, indent=indent)
    assert repr(parse_yaml(text)) == repr({"_meta": values or None} if indent else values or None)
