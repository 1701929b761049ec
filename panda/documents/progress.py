"""How long work says how far it is; a command sets what shows it."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar


@contextmanager
def unseen(label: str, total: int) -> Iterator[Callable[[], None]]:
    """Shows nothing."""
    yield lambda: None


shown_by: ContextVar[Callable[[str, int], AbstractContextManager[Callable[[], None]]]] = ContextVar(
    "shown_by", default=unseen
)


def progress(label: str, total: int) -> AbstractContextManager[Callable[[], None]]:
    """Shows a piece of work of so many things, if there are any; gives what to call after each of them."""
    return (shown_by.get() if total else unseen)(label, total)
