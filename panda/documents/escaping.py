"""Escaping of foreign text, so that none of its lines can pass for one of panda's own."""

import re

_BREAKS = "\n\r\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029"
_LINE_START = rf"(?:\A|(?<=[{_BREAKS}]))"
_OURS = rf"(?=## \d|```|~~~|_meta:|---[^\S{_BREAKS}]*(?:[{_BREAKS}]|\Z))"
_TO_ESCAPE = re.compile(rf"{_LINE_START}(?=\\*{_OURS})")
_PROMPT_LINES = re.compile(rf"{_LINE_START}(?=\\*(?:=====|User query:))")
_TO_UNESCAPE = re.compile(rf"{_LINE_START}\\(?=\\*{_OURS})")

UNSAFE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f"  # C0 but tab and newline, DEL, C1
    "\u200e\u200f\u061c\u202a-\u202e\u2066-\u2069"  # marks that reorder the text around them
    "\u2028\u2029\ud800-\udfff]"  # line separators; halves of characters
)
"""What may reach no terminal as it is."""


def escape_text(text: str) -> str:
    r"""
    The text as it stands in a section: lines that look like structure get one more leading backslash.

    A line may begin after any character that Python or YAML takes for a line break, a lone carriage
    return included, so that other readers are not deceived either.

    Args:
        text: Anything; empty is fine.

    Source:
        design, files; the line pattern is `^\\*(## \d|```|~~~|---\s*$|_meta:)`.

    >>> escape_text("## 2. Gathered Context")
    '\\## 2. Gathered Context'
    >>> escape_text("a ## 2")
    'a ## 2'
    """
    return _TO_ESCAPE.sub(r"\\", text)


def unescape_text(text: str) -> str:
    r"""
    The reverse of escape_text.

    Args:
        text: Text as it stands in a section.

    >>> unescape_text("\\## 2. Gathered Context")
    '## 2. Gathered Context'
    """
    return _TO_UNESCAPE.sub("", text)


def escape_prompt_lines(text: str) -> str:
    r"""
    The text as it stands in a prompt: no line of it can pass for a heading of the prompt or for the query.

    Args:
        text: Anything from a file, a page, a tool, a user or a model.

    >>> print(escape_prompt_lines("a\n===== Guidance =====\nUser query: b"))
    a
    \===== Guidance =====
    \User query: b
    """
    return _PROMPT_LINES.sub(r"\\", text)


def visible(text: str) -> str:
    r"""
    A text that cannot steer a terminal: control characters are written out, CRLF becomes a newline.

    Args:
        text: Anything.

    >>> visible("a\x1b[31mb\tc\r\nd")
    'a\\x1b[31mb\tc\nd'
    """
    return UNSAFE.sub(_written_out, text.replace("\r\n", "\n"))


def _written_out(found: re.Match[str]) -> str:
    code = ord(found[0])
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"
