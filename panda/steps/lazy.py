"""A value that is made when it is first asked for."""

from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class Lazy(Generic[T]):
    """
    A value, made once.

    >>> greeting = Lazy(lambda: "hello")
    >>> greeting.is_made, greeting(), greeting.is_made
    (False, 'hello', True)
    """

    def __init__(self, make: Callable[[], T]) -> None:
        self._make = make
        self._made: list[T] = []

    @property
    def is_made(self) -> bool:
        """Whether somebody has asked for it."""
        return bool(self._made)

    def __call__(self) -> T:
        """Return the value."""
        if not self._made:
            self._made.append(self._make())
        return self._made[0]
