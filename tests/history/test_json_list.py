"""A list in a JSON file is read entry by entry, whatever the pieces it comes in; what is wrong is told."""

import io
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from panda.addons.exchange.export_files import JsonListError, read_entries

_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=6,
)


class Trickle(io.RawIOBase):
    """A file that gives a few bytes at a time."""

    def __init__(self, data: bytes, at_once: int) -> None:
        self._data, self._at_once = io.BytesIO(data), at_once

    def read(self, size: int = -1) -> bytes:
        """At most so many."""
        return self._data.read(self._at_once)


def entries(data: bytes, at_once: int = 7) -> list[Any]:
    return list(read_entries(Trickle(data, at_once), "conversations", lambda: None))  # type: ignore[arg-type]


@given(
    st.lists(_VALUES, max_size=5),
    st.sampled_from([None, 1]),
    st.booleans(),
    st.integers(1, 40),
    st.sampled_from(["", "\ufeff", " \n"]),
)
def test_the_entries_are_those_of_the_list(
    values: list[Any], indent: int | None, is_object: bool, at_once: int, before: str
) -> None:
    """As a list, or under the key; with blanks or without, after a mark of the byte order."""
    whole = {"a": [1, {"conversations": 2}], "conversations": values, "b": "]"} if is_object else values
    text = before + json.dumps(whole, indent=indent, ensure_ascii=not is_object) + "\n"
    assert entries(text.encode("utf-8", "surrogatepass"), at_once) == values


@given(st.lists(_VALUES, min_size=1, max_size=3), st.data())
def test_a_list_that_is_cut_short_is_refused(values: list[Any], data: st.DataObject) -> None:
    """Wherever it is cut."""
    whole = json.dumps(values).encode()
    end = data.draw(st.integers(0, len(whole) - 1))
    with pytest.raises(JsonListError):
        entries(whole[:end])


@pytest.mark.parametrize(
    ("data", "told"),
    [
        (b"", "it is cut short, after 0 entries"),
        (b"5", "not valid JSON: Expecting '\\['"),
        (b"{}", "has no list of conversations"),
        (b'{"conversations": 5}', "Expecting '\\['"),
        (b"[1, 2", "it is cut short, after 2 entries"),
        (b'[1, "a', "after 1 entry"),
        (b"[1, 2] 3", "something follows the list of 2 entries"),
        (b"[1 2]", "not valid JSON: Expecting ','"),
        (b"[1,]", "after 1 entry"),
        (b"[nope]", "not valid JSON"),
        (b'[1, "\xff"]', "not UTF-8"),
        (b"[" + b"9" * 5_000 + b"]", "not valid JSON"),
        (b"[" * 100_000, "nested too deeply"),
        (b'[{"a":' * 100_000, "nested too deeply"),
    ],
)
def test_what_is_wrong_is_told(data: bytes, told: str) -> None:
    """And after how many entries; depth costs no memory."""
    with pytest.raises(JsonListError, match=told):
        entries(data, 65_536)


def test_an_error_far_from_the_end_is_told_at_once() -> None:
    """A large file is not read to its end for it."""
    file = io.BytesIO(b'[{"a": nope}' + b" " * 30_000_000 + b"]")
    with pytest.raises(JsonListError):
        list(read_entries(file, "conversations", lambda: None))
    assert file.tell() < 5_000_000
