"""Documents brought down to the room they have."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from panda.compression.fit import Cut, InputDocument, fit_documents
from panda.compression.pieces import MARK
from panda.errors import BudgetExceededError
from panda.models.cl100k import count_tokens

LINES = "one one\ntwo two\nthree three"
SIZE = count_tokens(LINES)
MARKED = count_tokens(MARK)


def fit(room: int, *documents: InputDocument) -> tuple[list[str], list[Cut]]:
    """The texts that fit, and the cuts."""
    fitted, cuts = fit_documents(documents, room_tokens=room)
    assert [document.name for document in fitted] == [document.name for document in documents]
    return [document.text for document in fitted], cuts


def test_within_room() -> None:
    """What fits stays as it is."""
    assert fit(SIZE, InputDocument("a", LINES)) == ([LINES], [])


def test_over_room() -> None:
    """What is over the room goes in whole sentences, with a mark in its place, and the cut is recorded."""
    text = "Ants walk far. Bees fly high. Cats sleep long."
    (kept,), (cut,) = fit(10, InputDocument("a", text))
    assert MARK in kept
    assert count_tokens(kept) <= 10
    assert all(sentence.strip() in text for sentence in kept.split(MARK))
    assert (cut.name, cut.before_tokens, cut.after_tokens) == ("a", count_tokens(text), count_tokens(kept))


def test_least_important_first() -> None:
    """The last document is cut before the first."""
    text = "Ants walk far. Bees fly high. Cats sleep long."
    texts, cuts = fit(2 * count_tokens(text) - 4, InputDocument("a", text), InputDocument("b", text))
    assert texts[0] == text
    assert MARK in texts[1]
    assert [cut.name for cut in cuts] == ["b"]


def test_protected() -> None:
    """A protected document is never cut, wherever it stands."""
    texts, _ = fit(SIZE + MARKED, InputDocument("a", LINES), InputDocument("b", LINES, protected=True))
    assert texts == [MARK, LINES]


def test_protected_alone_does_not_fit() -> None:
    """When what may be cut is cut and it still does not fit, the error has the numbers."""
    with pytest.raises(BudgetExceededError, match=f"need {SIZE + MARKED} tokens") as caught:
        fit(5, InputDocument("a", LINES), InputDocument("b", LINES, protected=True))
    assert (caught.value.expected, caught.value.received) == ("at most 5 tokens", f"{SIZE + MARKED} tokens")


def test_nothing_to_fit() -> None:
    """No documents need no room."""
    assert fit(0) == ([], [])
    assert fit(0, InputDocument("a", "")) == ([""], [])


@given(st.lists(st.text("ab. \n\r", max_size=40), max_size=4), st.integers(0, 30))
def test_room_is_kept(texts: list[str], room: int) -> None:
    """What comes back fits the room; a document that was not cut is as it was."""
    documents = [InputDocument(str(n), text) for n, text in enumerate(texts)]
    try:
        fitted, cuts = fit_documents(documents, room_tokens=room)
    except BudgetExceededError:
        assert room < sum(max(count_tokens(text), MARKED) for text in texts)
        return
    assert sum(count_tokens(document.text) for document in fitted) <= room
    whole = set(range(len(texts))) - {int(cut.name) for cut in cuts}
    assert all(fitted[n].text == texts[n] for n in whole)
