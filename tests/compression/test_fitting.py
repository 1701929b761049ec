"""Documents brought down to the room they have."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from panda.compression.fitting import MARK, Cut, InputDocument, fit_documents
from panda.errors import BudgetExceededError

LINES = "one one\ntwo two\nthree three"


def words(text: str) -> int:
    """Length in words; the mark is one."""
    return len(text.split())


def fit(room: int, *documents: InputDocument) -> tuple[list[str], list[Cut]]:
    """The texts that fit, and the cuts."""
    fitted, cuts = fit_documents(documents, room_tokens=room, count=words)
    assert [document.name for document in fitted] == [document.name for document in documents]
    return [document.text for document in fitted], cuts


def test_within_room() -> None:
    """What fits stays as it is."""
    assert fit(6, InputDocument("a", LINES)) == ([LINES], [])


def test_whole_lines() -> None:
    """Lines go from the end, whole, and a mark stands in their place."""
    assert fit(5, InputDocument("a", LINES)) == ([f"one one\ntwo two\n{MARK}"], [Cut("a", 6, 5)])
    assert fit(4, InputDocument("a", LINES)) == ([f"one one\n{MARK}"], [Cut("a", 6, 3)])
    assert fit(1, InputDocument("a", LINES)) == ([MARK], [Cut("a", 6, 1)])


def test_least_important_first() -> None:
    """The last document is cut before the first, and only as far as needed."""
    texts, cuts = fit(10, InputDocument("a", LINES), InputDocument("b", LINES))
    assert texts == [LINES, f"one one\n{MARK}"]
    assert cuts == [Cut("b", 6, 3)]


def test_protected() -> None:
    """A protected document is never cut, wherever it stands."""
    texts, _ = fit(7, InputDocument("a", LINES), InputDocument("b", LINES, protected=True))
    assert texts == [MARK, LINES]


def test_protected_alone_does_not_fit() -> None:
    """When what may be cut is cut and it still does not fit, the error has the numbers."""
    with pytest.raises(BudgetExceededError, match="need 7 tokens") as caught:
        fit(5, InputDocument("a", LINES), InputDocument("b", LINES, protected=True))
    assert (caught.value.expected, caught.value.received) == ("at most 5 tokens", "7 tokens")


def test_nothing_to_fit() -> None:
    """No documents need no room."""
    assert fit(0) == ([], [])
    assert fit(0, InputDocument("a", "")) == ([""], [])


@given(st.lists(st.text("ab \n\r", max_size=40), max_size=4), st.integers(0, 30))
def test_room_is_kept(texts: list[str], room: int) -> None:
    """Whatever comes back fits, and each text is the beginning of what was given."""
    documents = [InputDocument(str(n), text) for n, text in enumerate(texts)]
    try:
        fitted, cuts = fit_documents(documents, room_tokens=room, count=words)
    except BudgetExceededError:
        assert room < len(texts)
        return
    assert sum(words(document.text) for document in fitted) <= room
    for cut in cuts:
        kept = fitted[int(cut.name)].text.splitlines()[:-1]
        assert texts[int(cut.name)].splitlines()[: len(kept)] == kept
