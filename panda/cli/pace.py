"""How far long work is, told a line now and then where no bar can be shown: a pipe, a dumb terminal."""

from collections.abc import Callable
from datetime import timedelta

_FIRST_SECONDS = 3.0
_NEXT_SECONDS = 30.0


class Pace:
    """
    Counts what is done. Work that ends soon says nothing; longer work tells after a few seconds how fast it
    is, then twice a minute, and at its end.
    """

    def __init__(
        self, label: str, total: int, tell: Callable[[str], None], clock: Callable[[], float]
    ) -> None:
        """
        Args:
            label: What is done, e.g. "replaying".
            total: How many things there are.
            clock: Seconds from any start on; never goes back.
        """
        self._label = label
        self._total = total
        self._tell = tell
        self._clock = clock
        self._done = 0
        self._began = clock()
        self._due = self._began + _FIRST_SECONDS
        self._has_told = False

    def advance(self, count: int = 1) -> None:
        """Say that so many things more are done."""
        self._done += count
        if not self._done:
            return
        now = self._clock()
        is_last = self._done >= self._total
        if now >= self._due or (is_last and self._has_told):
            self._due = now + _NEXT_SECONDS
            self._has_told = True
            self._tell(f"{self._label}: " + pace_text(self._done, self._total, now - self._began))


def pace_text(done: int, total: int, seconds: float) -> str:
    """
    Return how far work is after so many seconds, at least one thing being done.

    >>> pace_text(30, 120, 15.0), pace_text(120, 120, 61.0)
    ('30 of 120, 2.0/s, 0:00:45 left', '120 of 120, 2.0/s, 0:01:01 in all')
    """
    rate = done / max(seconds, 1e-6)
    left = timedelta(seconds=round((total - done) / rate))
    ending = f"{left} left" if done < total else f"{timedelta(seconds=round(seconds))} in all"
    return f"{done:,} of {total:,}, {rate_text(rate)}, {ending}"


def rate_text(per_second: float) -> str:
    """
    A rate by the second; by the minute where that is less than one, "" for none.

    >>> rate_text(3.25), rate_text(0.1), rate_text(0)
    ('3.2/s', '6.0/min', '')
    """
    if per_second >= 1:
        return f"{per_second:.1f}/s"
    return f"{60 * per_second:.1f}/min" if per_second else ""
