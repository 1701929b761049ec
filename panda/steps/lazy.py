"""Values that are made when they are first asked for."""

from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class Lazy(Generic[T]):
    """
    Hold a value that is made once.

    >>> greeting = Lazy(lambda: "hello")
    >>> greeting.is_made, greeting(), greeting.is_made
    (False, 'hello', True)
    """

    def __init__(self, make_value: Callable[[], T]) -> None:
        self._make = make_value
        self._values: list[T] = []

    @property
    def is_made(self) -> bool:
        """Return whether somebody has asked for it."""
        return bool(self._values)

    def __call__(self) -> T:
        """Return the value."""
        if not self._values:
            self._values.append(self._make())
        return self._values[0]
