"""How long work says how far it is; a command sets what shows it."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from typing import Protocol


class Advance(Protocol):
    """Says that something more is done."""

    def __call__(self, count: int = 1) -> None: ...


@contextmanager
def unseen(label: str, total: int) -> Iterator[Advance]:
    """Shows nothing."""
    yield ignore


def ignore(count: int = 1) -> None:
    """Take note of nothing."""


shown_by: ContextVar[Callable[[str, int], AbstractContextManager[Advance]]] = ContextVar(
    "shown_by", default=unseen
)


def progress(label: str, total: int) -> AbstractContextManager[Advance]:
    """Shows a piece of work of so many things, if there are any; gives what to call after each of them."""
    return (shown_by.get() if total else unseen)(label, total)
