"""How many of many alike cases are tried."""

import os

_ALL = bool(os.environ.get("PANDA_TEST_ALL"))


def tried(usual: int, most: int) -> int:
    """
    How many seeds, kills or repetitions a test goes through: *most* only if PANDA_TEST_ALL is set.

    >>> 4 <= tried(4, 12) <= 12
    True
    """
    return most if _ALL else usual
