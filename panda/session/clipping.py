"""Text within a number of characters; whatever is cut says so. Pure."""

from panda.documents.sentences import shorten

MARK = " […]"


def clip(text: str, chars: int) -> str:
    """
    The text as one line, cut after a word where it is longer, with a mark.

    Args:
        text: Any text.
        chars: Most characters of the result, mark included.

    >>> clip("one two three", 100), clip("one two three four", 14)
    ('one two three', 'one two […]')
    """
    return shorten(text, chars, MARK)


def clip_lines(text: str, chars: int, *, rest: str) -> str:
    """
    The beginning of a text with its lines, and where the rest is.

    >>> clip_lines("ab\\ncdef", 40, rest="response.md"), len(clip_lines("x" * 99, 40, rest="response.md"))
    ('ab\\ncdef', 40)
    """
    mark = f"\n[… cut, whole in {rest}]"
    return text if len(text) <= chars else text[: max(0, chars - len(mark))] + mark
