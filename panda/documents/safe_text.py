"""Texts made one line, short or safe: lines that can't pass for panda's own, names that are text. Pure."""

import re
from collections.abc import Collection
from difflib import get_close_matches
from urllib.parse import quote_from_bytes, unquote_to_bytes

ID_PATTERN = r"^[a-z0-9_-]{1,64}\Z"
"""What a user or session id is."""
PATH_FIX = "correct it, or move the file away: what comes out of a file leads nowhere else"
"""What to do about a text in a file that would become a path to somewhere else."""
_CITATION = re.compile(
    r"(?:(?<=[.!?,;:)\"”'])|(?<![ \t])[ \t]++)"
    r"\[\d{1,3}(?:\s*,\s*\d{1,3})*\](?:[ \t]*\[\d{1,3}\])*(?=[\s.,;:!?)]|$)"
)
_SOURCES_HEADING = re.compile(
    r"^\s*(?:#{1,6}\s*)?[*_]*(?:sources?|source references|references)[*_]*:?[*_]*\s*$", re.I
)
_SOURCE_LINE = re.compile(r"^\s*(?:[-*]\s*)?\[\d{1,3}\]:?\s+\S")


def one_line(text: str) -> str:
    """The text with every run of white space made one space."""
    return " ".join(text.split())


def count_noun(count: int, noun: str) -> str:
    """
    Return a count with its noun.

    >>> count_noun(1, "turn"), count_noun(0, "entry"), count_noun(1200, "turn")
    ('1 turn', '0 entries', '1,200 turns')
    """
    plural = f"{noun[:-1]}ies" if noun.endswith("ry") else f"{noun}s"
    return f"{count:,} {noun if count == 1 else plural}"


def shorten(text: str, most_chars: int, mark: str = "…") -> str:
    """The text as one line, cut after a word where it is longer, with a mark that counts too."""
    line = one_line(text)
    if len(line) <= most_chars:
        return line
    head = line[: most_chars - len(mark)]
    words = head.rpartition(" ")[0] if line[len(head) : len(head) + 1].strip() else head
    return (words or head).rstrip() + mark


def nearest(name: str, choices: Collection[str], otherwise: str = "") -> str:
    """Return a hint for a name that is none of the *choices*: the nearest of them, or all."""
    folded = {option.casefold(): option for option in choices}
    near = get_close_matches(name[:60].casefold(), folded, n=1, cutoff=0.5)
    listed = otherwise or f"use one of {', '.join(folded.values()) or '(none)'}"
    return f"did you mean {folded[near[0]]}?" if near else listed


def strip_citations(text: str) -> str:
    """An answer as rendered, without its marks like [1] and without its list of sources."""
    kept_lines: list[str] = []
    heading: list[str] = []  # with the blank lines below it: only above a list of sources it is theirs
    in_sources = False
    for line in text.split("\n"):
        if _SOURCE_LINE.match(line):
            heading = []
            in_sources = True
        elif _SOURCES_HEADING.match(line):
            kept_lines += heading
            heading = [line]
            in_sources = False
        elif not line.strip() and (heading or in_sources):
            if heading:
                heading.append(line)
        else:
            kept_lines += [*heading, _CITATION.sub("", line)]
            heading = []
            in_sources = False
    kept_lines += heading
    stripped = "\n".join(kept_lines).rstrip("\n")
    return stripped + "\n" if text.endswith("\n") and stripped else stripped


_BREAKS = "\n\r\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029"
_LINE_START = rf"(?:\A|(?<=[{_BREAKS}]))"
_OURS = rf"(?=## \d|```|~~~|_meta:|---[^\S{_BREAKS}]*(?:[{_BREAKS}]|\Z))"
_TO_ESCAPE = re.compile(rf"{_LINE_START}(?=\\*{_OURS})")
_PROMPT_LINES = re.compile(rf"{_LINE_START}(?=\\*(?:=====|User query:))")
_NAME_PARTS = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]|%(?=[0-9A-Fa-f]{2})")
_TO_UNESCAPE = re.compile(rf"{_LINE_START}\\(?=\\*{_OURS})")

_BLOCK_START = (
    r"\A(?=\\*(?:#{1,6}(?:\s|\Z)|```|~~~|---|=====|_meta:|User query:"
    r"|<(?!https?:|mailto:)[!?/A-Za-z]|[-*]\s+\[\d{1,3}\]:?\s))"
)
_LABEL_START = r"(?=\\*Turn \d+: )"
_MARK_END = r"(?=\\*\[\d{1,3}\]\Z)"
_QUOTE = re.compile(_BLOCK_START)
_QUOTED_MARK = re.compile(r"(`[^`]*`)|\[(\d{1,3}(?:\s*[-–,]\s*\d{1,3})*)\]")
_ITEM = re.compile(rf"\A{_LABEL_START}|(?<!\S){_MARK_END}")
_ESCAPED_ITEM = re.compile(rf"\A\\{_LABEL_START}|(?<!\S)\\{_MARK_END}")

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
    """
    return _TO_ESCAPE.sub(r"\\", text)


def unescape_text(text: str) -> str:
    """The reverse of escape_text."""
    return _TO_UNESCAPE.sub("", text) if "\\" in text else text


def escape_quote(text: str) -> str:
    r"""
    A quote as it stands in an answer: at the start of a line, with the marks of its sources behind it.

    The lines of a source are joined to one, and so can become what none of them was: a heading, a fence or a
    comment that hides what follows, a line of the list of sources. A mark such as [2] would cite another
    node.
    """
    return escape_marks(_QUOTE.sub(r"\\", text))


def escape_marks(text: str) -> str:
    """Return a quote in which nothing reads as a mark of the answer, except in `code`."""
    return _QUOTED_MARK.sub(lambda mark: mark[1] or rf"\[{mark[2]}\]", text)


def escape_item(text: str) -> str:
    """A quote as it stands in the list of a part of §2: what looks like a turn's number or a mark is none."""
    return _ITEM.sub(r"\\", text)


def unescape_item(text: str) -> str:
    """The reverse of escape_item."""
    return _ESCAPED_ITEM.sub("", text)


def escape_prompt_lines(text: str) -> str:
    """The text as it stands in a prompt: no line of it can pass for a heading of the prompt or the query."""
    return _PROMPT_LINES.sub(r"\\", text)


def visible(text: str) -> str:
    """A text that cannot steer a terminal: control characters are written out, CRLF becomes a newline."""
    return UNSAFE.sub(_written_out, text.replace("\r\n", "\n"))


def _written_out(match: re.Match[str]) -> str:
    code = ord(match[0])
    if 0xDC80 <= code <= 0xDCFF:  # a byte of a name that is not UTF-8, as node ids write it
        return escape_path(match[0])
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"


def escape_path(path: str) -> str:
    r"""
    A file's path as text that stands on one line: what node ids and sources call it. Bytes that are not UTF-8
    (halves of characters, as the system gives them), control characters, line separators and any `%` that two
    hexadecimal digits follow become `%` and two digits a byte.
    """
    return _NAME_PARTS.sub(_escaped_bytes, path)


def _escaped_bytes(match: re.Match[str]) -> str:
    is_byte = "\udc80" <= match[0] <= "\udcff"
    return quote_from_bytes(match[0].encode("utf-8", "surrogateescape" if is_byte else "surrogatepass"))


def unescape_path(name: str) -> str:
    """The reverse of escape_path; a name that it never gives stands for itself."""
    data = unquote_to_bytes(name.encode("utf-8", "surrogatepass"))
    path = data.decode("utf-8", "surrogateescape")
    return path if escape_path(path) == name else name
