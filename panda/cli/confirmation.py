"""Questions that are answered with yes or no on the terminal."""

import sys

from panda.documents.safe_text import visible
from panda.errors import UsageError


def can_ask() -> bool:
    """Say whether somebody can be asked."""
    return sys.stdin.isatty()


def confirm(question: str, *, where: str, undone: str, fix: str) -> None:
    """
    Ask on the terminal, and return if the answer is yes.

    Args:
        question: Without a question mark.
        where: The command that asks.
        undone: What has not happened, for the error without a terminal.
        fix: What to do without a terminal.

    Raises:
        UsageError: There is no terminal, or the answer is no.
    """
    if not can_ask():
        raise UsageError(f"no terminal to ask on: {undone}", where=where, fix=fix)
    if _read_answer(f"{question}? [y/N] ").lower() not in ("y", "yes"):
        raise UsageError("not confirmed: nothing was changed", where=where, fix="--yes does not ask")


def choose_number(question: str, count: int) -> int | None:
    """Ask on the terminal for a number from 1 to *count*; None if the answer is none."""
    answer = _read_answer(f"{question} [1-{count}] ")
    if answer.isascii() and answer.isdigit() and 1 <= int(answer[:9]) <= count:
        return int(answer)
    return None


def _read_answer(prompt: str) -> str:
    sys.stderr.write("\n".join(map(visible, prompt.split("\n"))))
    sys.stderr.flush()
    return sys.stdin.readline().strip()
