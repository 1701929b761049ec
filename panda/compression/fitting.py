"""Bring the documents of a call down to the room they have, whole lines at a time, every cut marked."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from panda.errors import BudgetExceededError

MARK = "[…]"


@dataclass(frozen=True)
class InputDocument:
    """One document that goes into a prompt."""

    name: str
    """Its title in the prompt."""
    text: str
    """What it says."""
    protected: bool = False
    """Never cut."""


@dataclass(frozen=True)
class Cut:
    """What fitting took from one document."""

    name: str
    """The document."""
    before_tokens: int
    """Budget tokens it had."""
    after_tokens: int
    """Budget tokens it kept, the mark included."""


def fit_documents(
    documents: Sequence[InputDocument], *, room_tokens: int, count: Callable[[str], int]
) -> tuple[list[InputDocument], list[Cut]]:
    """
    Documents that fit the room together.

    Args:
        documents: n documents, most important first.
        room_tokens: Budget tokens for all of them.
        count: Maps a text to budget tokens.

    Returns:
        The n documents in order, lines dropped from the end of the least important unprotected ones, with
        `[…]` in the place of what was dropped; and the cuts. Within room, the documents as given.

    Raises:
        BudgetExceededError: The protected documents alone do not fit.

    >>> fitted, cuts = fit_documents([InputDocument("a", "xx\\nyy\\nzz")], room_tokens=6, count=len)
    >>> fitted[0].text, cuts[0].before_tokens
    ('xx\\n[…]', 8)
    """
    sizes = [count(document.text) for document in documents]
    over = sum(sizes) - room_tokens
    fitted, cuts = list(documents), []
    for i in reversed(range(len(documents))):
        if over <= 0:
            break
        if documents[i].protected or not documents[i].text:
            continue
        text = _shorten(documents[i].text, max(0, sizes[i] - over), count)
        after = count(text)
        if after < sizes[i]:
            fitted[i] = replace(documents[i], text=text)
            cuts.append(Cut(documents[i].name, sizes[i], after))
            over -= sizes[i] - after
    if over > 0:
        raise BudgetExceededError(
            f"the inputs need {room_tokens + over} tokens when everything that may be cut is cut, "
            f"{over} more than the room of {room_tokens}",
            expected=f"at most {room_tokens} tokens",
            received=f"{room_tokens + over} tokens",
            fix="raise token_budget.input of the recipe, or use a model with a larger context window",
        )
    return fitted, cuts


def _shorten(text: str, room_tokens: int, count: Callable[[str], int]) -> str:
    lines = text.splitlines()
    low, high = 0, len(lines) - 1
    while low < high:
        middle = (low + high + 1) // 2
        if count("\n".join([*lines[:middle], MARK])) <= room_tokens:
            low = middle
        else:
            high = middle - 1
    return "\n".join([*lines[:low], MARK])
