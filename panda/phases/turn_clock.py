"""The clock of a running turn."""

from datetime import datetime

from panda.documents.times import Clock


class TurnClock:
    """
    The clock of a turn: all its phases read the instant at which it was claimed, however long they take and
    however often it is resumed or replayed. Before a turn begins it is the clock of the process.

    Args:
        clock: The clock of the process.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._pinned: datetime | None = None

    def pin(self, moment: datetime) -> None:
        """Stand still at an instant."""
        self._pinned = moment

    def __call__(self) -> datetime:
        return self._pinned or self._clock()
