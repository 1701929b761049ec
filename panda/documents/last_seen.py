"""The mark of a line that may not hold any more: when its page was last seen. Pure."""

import re
from datetime import datetime

_MARK = re.compile(r" \(last seen \d{4}-\d\d-\d\d\)$")


def last_seen(moment: datetime) -> str:
    """
    The words of the mark.

    >>> last_seen(datetime(2026, 1, 4, 14, 30))
    'last seen 2026-01-04'
    """
    return f"last seen {moment:%Y-%m-%d}"


def with_last_seen(text: str, moment: datetime) -> str:
    """
    A line with its mark.

    >>> with_last_seen("tent: price $90", datetime(2026, 1, 4, 14, 30))
    'tent: price $90 (last seen 2026-01-04)'
    """
    return f"{text} ({last_seen(moment)})"


def without_last_seen(text: str) -> str:
    """
    A line without its mark, if it has one.

    >>> without_last_seen("tent: price $90 (last seen 2026-01-04)"), without_last_seen("last seen here")
    ('tent: price $90', 'last seen here')
    """
    return _MARK.sub("", text)
