"""How long work says how far it is, without knowing who shows it."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

Progress = Callable[[str, int], AbstractContextManager[Callable[[], None]]]
"""Shows a piece of work: its name and how many things it has; gives what to call after each of them."""


@contextmanager
def no_progress(label: str, total: int) -> Iterator[Callable[[], None]]:
    """Shows nothing."""
    yield lambda: None
