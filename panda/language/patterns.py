"""Regular expressions compiled at their first use: to compile all takes longer than most commands."""

import re
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
