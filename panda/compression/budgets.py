"""Budgets of context.md and of a call: what is over, and §4 while it is written (S3 §25, §26)."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

from panda.compression.compressing import compress, least_tokens
from panda.documents.context import ContextDocument, render_context, render_section
from panda.documents.sections import SECTIONS
from panda.errors import BudgetExceededError

DOCUMENT_TOKENS = 8_600
DOCUMENT_TARGET_TOKENS = 7_500
CALL_TOKENS = 11_000
CALL_TARGET_TOKENS = 12_000
OLDER_RESULTS_TOKENS = 1_500
"""What older tool results of §4 are brought down to when a new one does not fit beside them."""

_TOOL_SECTION = 4


@dataclass(frozen=True)
class TokenBreakdown:
    """Budget tokens of a context.md."""

    total: int
    """Of the whole file."""
    by_section: Mapping[int, int]
    """Of each section as it stands on disk, heading included, by number."""


@dataclass(frozen=True)
class Overflow:
    """A budget that is exceeded."""

    level: Literal["section", "document", "call"]
    """Where; the first level is the earliest and is acted on first."""
    section: int | None
    """Number of the section; None for the other levels."""
    tokens: int
    """Budget tokens there are."""
    target_tokens: int
    """Budget tokens to bring it down to."""


def count_document(document: ContextDocument, count: Callable[[str], int]) -> TokenBreakdown:
    """
    Tokens of a document and of each section.

    Args:
        document: Any document.
        count: Maps a text to budget tokens.

    Source:
        S3 §21.1.
    """
    sections = {section.number: count(render_section(section)) for section in document.sections}
    return TokenBreakdown(count(render_context(document)), sections)


def find_overflow(breakdown: TokenBreakdown, *, prompt_tokens: int = 0) -> list[Overflow]:
    """
    What is over its budget, the earliest level first; §0 is never cut and never listed.

    Args:
        breakdown: From count_document.
        prompt_tokens: Budget tokens of what goes into the call beside the document.

    Source:
        S3 §25.

    >>> find_overflow(TokenBreakdown(3_000, {1: 200, 4: 2_700}))
    [Overflow(level='section', section=4, tokens=2700, target_tokens=2500)]
    """
    found = [
        Overflow("section", kind.number, breakdown.by_section[kind.number], kind.budget_tokens)
        for kind in SECTIONS
        if kind.number and breakdown.by_section.get(kind.number, 0) > kind.budget_tokens
    ]
    if breakdown.total > DOCUMENT_TOKENS:
        found.append(Overflow("document", None, breakdown.total, DOCUMENT_TARGET_TOKENS))
    if breakdown.total + prompt_tokens > CALL_TOKENS:
        whole = breakdown.total + prompt_tokens
        found.append(Overflow("call", None, whole, CALL_TARGET_TOKENS))
    return found


def append_result(
    existing: str,
    result: str,
    *,
    count: Callable[[str], int],
    query: str | None,
    room_tokens: int | None = None,
) -> str:
    """
    The body of §4 with one more tool result: older results shrink, the newest stays whole.

    Args:
        existing: Body so far; may be empty.
        result: The newest result.
        count: Maps a text to budget tokens.
        query: The user's query.
        room_tokens: Budget tokens for the body; None takes the section's budget less its heading.

    Returns:
        Both, parted by a blank line. Error messages of older results stay whole as long as there is room.

    Raises:
        BudgetExceededError: The newest result alone does not fit, or not beside the error messages before it.

    Source:
        S3 §26.
    """
    room = SECTIONS[_TOOL_SECTION].budget_tokens - 16 if room_tokens is None else room_tokens
    if not existing.strip():
        _check_fits(count(result), room)
        return result
    both = f"{existing}\n\n{result}"
    if count(both) <= room:
        return both
    left = min(OLDER_RESULTS_TOKENS, room - count("\n\n" + result) - 2)
    least = least_tokens(existing, kind="tool_result", count=count)
    _check_fits(room - left + least, room)
    older = compress(existing, kind="tool_result", budget_tokens=left, count=count, query=query).text
    return f"{older}\n\n{result}"


def _check_fits(tokens: int, room: int) -> None:
    if tokens > room:
        raise BudgetExceededError(
            f"a tool result and the error messages before it need {tokens} tokens, {tokens - room} more than "
            f"the {room} of §4",
            where="§4",
            fix="let the tool return less",
            expected=f"at most {room} tokens",
            received=f"{tokens} tokens",
        )
