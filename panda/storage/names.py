"""Names that may be directories: user and session ids, turn numbers."""

import re

from panda.errors import UsageError

_TURN_NAME = re.compile(r"turn_(\d{6}|[1-9]\d{6,})", re.ASCII)
_ID = re.compile(r"[a-z0-9_-]{1,64}")


def check_id(value: str, *, what: str, where: str | None = None) -> str:
    """
    The user or session id itself, if it may be a directory name.

    Args:
        value: The id.
        what: "user" or "session", for the error.
        where: Option or file with line, for the error.

    Raises:
        UsageError: It is not 1 to 64 of a-z, 0-9, _ and -.

    Source:
        design, files.

    >>> check_id("demo", what="user")
    'demo'
    """
    if not is_id(value):
        raise UsageError(
            f"the {what} id {value[:80]!r} is not 1 to 64 characters of a-z, 0-9, _ and -",
            where=where,
            fix="use small letters, digits, _ and -",
        )
    return value


def is_id(value: str) -> bool:
    """Whether a text is a user or session id."""
    return _ID.fullmatch(value) is not None


def turn_number(name: str) -> int | None:
    """
    The number that a turn's directory name carries, or None if it is no such name.

    >>> turn_number("turn_000012"), turn_number("turn_12"), turn_number("turn_0000012")
    (12, None, None)
    """
    match = _TURN_NAME.fullmatch(name)
    return int(match[1]) or None if match else None
