"""JSON texts as values that any file can hold. Pure."""

import json
import re
from typing import Any

_HALVES = re.compile("[\ud800-\udfff]")
_HALF_ESCAPES = re.compile(r"\\(?:u|U0000)[dD][89a-fA-F]")


def load_json(text: str | bytes, **options: Any) -> Any:
    r"""
    The value of a JSON text, with U+FFFD for half of a surrogate pair, which no file could hold.

    Raises:
        ValueError, RecursionError: As json.loads does.
    """
    value = json.loads(text, **options)
    source = text if isinstance(text, str) else text.decode("latin-1")
    return whole_characters(value) if may_hold_halves(source) else value


def may_hold_halves(source: str) -> bool:
    """Return whether a JSON or YAML text may write half of a surrogate pair, or holds one."""
    return ("\\" in source and _HALF_ESCAPES.search(source) is not None) or _HALVES.search(source) is not None


def whole_characters(value: Any) -> Any:
    """A value with U+FFFD for each half of a surrogate pair in its texts and keys."""
    if isinstance(value, str):
        return _HALVES.sub("\ufffd", value)
    if isinstance(value, list):
        return [whole_characters(element) for element in value]
    if isinstance(value, dict):
        return {whole_characters(key): whole_characters(member) for key, member in value.items()}
    return value


def is_json(text: str) -> bool:
    """Return whether a text is JSON."""
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True
