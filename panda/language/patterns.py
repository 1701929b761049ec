"""Regular expressions compiled at their first use: to compile all takes longer than most commands."""

import re
from collections.abc import Iterable
from typing import Any, cast


class _LazyPattern:
    """Stands for a compiled pattern, and has all that one has."""

    def __init__(self, pattern: str, flags: int) -> None:
        self.pattern = pattern
        self._given_flags = flags

    def __getattr__(self, name: str) -> Any:
        compiled = re.compile(self.pattern, self._given_flags)
        value = getattr(compiled, name)
        setattr(self, name, value)
        return value


def lazy_pattern(pattern: str, flags: int = 0) -> re.Pattern[str]:
    """
    Return a pattern that re.compile is given when it is first used, for constants of a module.

    >>> lazy_pattern(r"[0-9]+").sub("0", "12 of 30")
    '0 of 0'
    """
    return cast("re.Pattern[str]", _LazyPattern(pattern, flags))


def one_of(words: Iterable[str]) -> str:
    """
    Return a verbose pattern of any of some words, the longest first, in which each letter is compared once:
    what begins with none of them is passed over many times as fast as in a row of alternatives.

    >>> one_of(["ten", "tenth", "two", "eight"])
    '(?:eight|t(?:en(?:th)?|wo))'
    """
    tails: dict[str, list[str]] = {}
    for word in words:
        tails.setdefault(word[:1], []).append(word[1:])
    may_end = tails.pop("", None) is not None
    parts = [f"{re.escape(first)}{one_of(tails[first])}" for first in sorted(tails)]
    if len(parts) == 1 and not may_end:
        return parts[0]
    return f"(?:{'|'.join(parts)}){'?' if may_end else ''}" if parts else ""
