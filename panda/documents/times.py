"""Instants as text: ISO 8601, UTC, whole seconds; the mark of a line that may not hold any more."""

import re
from collections.abc import Callable
from datetime import UTC, datetime

from panda.errors import UsageError

Clock = Callable[[], datetime]  # gives the present instant, with time zone


def present() -> datetime:
    """The real clock."""
    return datetime.now(UTC)


def render_time(moment: datetime) -> str:
    """An instant as panda writes it; a naive one is taken as UTC."""
    moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ").rjust(20, "0")


def parse_time(text: str) -> datetime:
    """
    The instant that an ISO 8601 date names, with a time or not; without an offset it is UTC. Raises
    ValueError: it is no such date, or outside the years 1 to 9999 in UTC.
    """
    moment = datetime.fromisoformat(text.strip())
    try:
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).astimezone(UTC)
    except OverflowError as exc:
        raise ValueError(f"{text.strip()[:80]!r} lies outside the years 1 to 9999") from exc


class TurnClock:
    """
    The clock of a turn: all its phases read the instant at which it was claimed, however long they take and
    however often it is resumed or replayed. Before a turn begins it is the clock of the process.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._pinned: datetime | None = None

    def pin(self, moment: datetime) -> None:
        """Stand still at an instant."""
        self._pinned = moment

    def __call__(self) -> datetime:
        return self._pinned or self._clock()


_MARK = re.compile(r" \(last seen \d{4}-\d\d-\d\d\)$")


def last_seen(moment: datetime) -> str:
    """The words of the mark."""
    return f"last seen {moment:%Y-%m-%d}"


def with_last_seen(text: str, moment: datetime) -> str:
    """A line with its mark."""
    return f"{text} ({last_seen(moment)})"


def without_last_seen(text: str) -> str:
    """A line without its mark, if it has one."""
    return _MARK.sub("", text)


def time_text(moment: datetime | None) -> str | None:
    """An instant as files and tables have it; None where there is none."""
    return render_time(moment) if moment else None


def read_instant(text: str | None, where: str) -> datetime | None:
    """The instant that an option or a line names, None for none; UsageError if it is no date or time."""
    try:
        return parse_time(text) if text is not None else None
    except ValueError as exc:
        fix = "write 2026-01-04 or 2026-01-04T14:30:00Z"
        raise UsageError(f"{text!r} is no date", where=where, fix=fix) from exc
