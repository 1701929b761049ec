"""Values as pages write them: instants, ages, numbers, confidences."""

import json
import math
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

from panda.addons.view.shelf import RowsPage
from panda.documents.safe_text import shorten, strip_citations
from panda.documents.times import parse_time
from panda.memory.confidence import level

_DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_MINUTE = 60
_HOUR = 3_600
_DAY = 86_400


def instant(moment: datetime | None) -> str:
    """
    An instant to read.

    >>> instant(datetime(2026, 1, 4, 14, 30)), instant(None)
    ('2026-01-04 14:30', '')
    """
    return f"{moment:%Y-%m-%d %H:%M}" if moment else ""


def day(moment: datetime | None) -> str:
    """
    A day to read.

    >>> day(datetime(2026, 1, 4, 14, 30)), day(None)
    ('Sunday, 2026-01-04', '')
    """
    return f"{_DAYS[moment.weekday()]}, {moment:%Y-%m-%d}" if moment else ""


def age(seconds: float) -> str:
    """
    Return how long ago something was, in the largest unit that fits.

    >>> [age(s) for s in (-5, 20, 90, 5_400, 200_000, 40_000_000)]
    ['now', '20 s', '1 min', '1.5 h', '2 days', '1.3 years']
    """
    if seconds < 1:
        return "now"
    if seconds < _MINUTE:
        return f"{seconds:.0f} s"
    if seconds < _HOUR:
        return f"{int(seconds // _MINUTE)} min"
    if seconds < _DAY:
        return f"{seconds / _HOUR:.1f} h".replace(".0 ", " ")
    days = seconds / _DAY
    return f"{days:.0f} day{'s' if days >= 1.5 else ''}" if days < 365 else f"{days / 365.25:.1f} years"


def seconds(value: float | None) -> str:
    """
    A length of time.

    >>> [seconds(value) for value in (None, 0.0, 0.0123, 4.334, 119.7)]
    ['', '0 s', '12 ms', '4.33 s', '2 min 0 s']
    """
    if value is None:
        return ""
    if 0 < value < 1:
        return f"{value * 1000:.0f} ms"
    if value < _MINUTE:
        return f"{value:.2f} s".replace(".00 ", " ")
    minutes, rest = divmod(round(value), _MINUTE)
    return f"{minutes} min {rest} s"


def number(value: float | None) -> str:
    """
    A number with its thousands apart.

    >>> number(12345), number(0.93391), number(None)
    ('12,345', '0.934', '')
    """
    if value is None:
        return ""
    return f"{value:,}" if isinstance(value, int) else f"{value:,.3f}".rstrip("0").rstrip(".")


def size(count: int) -> str:
    """
    A number of bytes.

    >>> [size(n) for n in (12, 2_048, 5_500_000)]
    ['12 B', '2.0 KB', '5.2 MB']
    """
    if count < 1024:
        return f"{count} B"
    return f"{count / 1024:,.1f} KB" if count < 1024 * 1024 else f"{count / 1024 / 1024:,.1f} MB"


def moment(text: str | None) -> datetime | None:
    """The instant that a text of a file means; None if it means none."""
    with suppress(ValueError):
        return parse_time(text).astimezone(UTC) if text else None
    return None


def turn_of(node_id: str | None) -> int | None:
    """
    The turn that a node or a source is.

    >>> turn_of("turn:813"), turn_of("user:ann"), turn_of(None)
    (813, None, None)
    """
    kind, _, name = (node_id or "").partition(":")
    return int(name) if kind == "turn" and name.isascii() and name.isdigit() and len(name) < 16 else None


FILTERS: Mapping[str, Callable[..., Any]] = {
    "instant": instant,
    "day": day,
    "age": age,
    "seconds": seconds,
    "number": number,
    "size": size,
    "moment": moment,
    "turn_of": turn_of,
    "part": RowsPage,
    "shorten": shorten,
    "strip_citations": strip_citations,
    "level": lambda confidence: level(confidence).lower(),
    "likelihood": lambda logprob: math.exp(min(0.0, logprob)),
    "json": lambda value: json.dumps(value, ensure_ascii=False, indent=2),
}
"""What templates may write behind a value, by name."""
