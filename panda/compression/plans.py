"""Which plan reads a document into pieces: one for each format, found by the file's name and the text."""

import json
from collections.abc import Callable, Sequence
from functools import partial
from itertools import pairwise
from pathlib import PurePosixPath
from typing import Literal, get_args

from panda.compression.indented_lines import parse_indented
from panda.compression.json import JsonOutline, parse_json
from panda.compression.log_lines import parse_log
from panda.compression.messages_sent import is_messages, parse_messages
from panda.compression.page_html import parse_page
from panda.compression.pieces import ContentType, TextOutline
from panda.compression.prose import parse_prose
from panda.compression.source_code import parse_code
from panda.compression.table_rows import find_delimiter, parse_table
from panda.documents.document_text import CODE, DELIMITERS, HTML, JSON_LINES, content_type_of
from panda.language.patterns import lazy_pattern

Format = Literal["text", "output", "messages", "html", "code", "log", "json", "settings", "table"]
FORMATS: tuple[Format, ...] = get_args(Format)

Outline = TextOutline | JsonOutline
"""A parsed document."""

PLANS: dict[Format, Callable[[str], TextOutline]] = {
    "text": parse_prose,
    "output": partial(parse_prose, lines_alone=True),
    "messages": parse_messages,
    "html": parse_page,
    "code": parse_code,
    "log": parse_log,
    "settings": parse_indented,
    "table": parse_table,
}
"""How a document of each format becomes pieces; JSON, which is written from its values, has `parse_json`."""

_SETTINGS = frozenset(("yaml", "yml", "toml", "ini", "cfg", "conf", "properties", "env", "service"))
_LOGS = frozenset(("log", "out", "err"))
_CODE_SUFFIXES = frozenset(
    ("py", "pyi", "js", "mjs", "ts", "c", "h", "cc", "cpp", "hpp", "java", "sh", "bash", "pl", "mk", "css")
)
_PROSE_SUFFIXES = frozenset(("md", "markdown", "rst", "txt", "adoc"))
_CODE_NAMES = frozenset(("makefile", "dockerfile", "gnumakefile"))
_LOG_LINE = lazy_pattern(
    r"[\[(]?(?:\d{4}-\d\d-\d\d[T ]|[A-Z][a-z]{2} +\d{1,2} )?\d\d:\d\d(?::\d\d)?\b|\d{4}-\d\d-\d\d[T ]\d\d:"
    r"|\[?\s*\d+/\d+\]|(?:INFO|DEBUG|WARN(?:ING)?|ERROR|TRACE|FATAL)\b|\{\"(?:time|ts|timestamp|level|msg)\""
    r"|.{0,80} \.\.\. (?:ok|FAIL|ERROR|skipped)|\S+::\S+ (?:PASSED|FAILED|ERROR)|={6,} .* ={6,}"
)
_CODE_LINE = lazy_pattern(
    r"\s*(?:def |class |import |from \S+ import |#include|#define|function |const |let |var |public |static "
    r"|return\b|if \(|for \(|\}|\{|export |package |func |fn |struct |typedef )"
)
_SETTING_LINE = lazy_pattern(r"\s*(?:- )?[\w.\"'-]+(?:\s*[:=](?:\s|$)|=)|\s*- |\[[\w.\" -]+\]\s*(?:#|$)")
_PLAIN_SETTING = lazy_pattern(rf"{_SETTING_LINE.pattern}|\s*[\w.-]+[ \t]+\S+(?:[ \t]+\S+)?$")
_COMMENT = lazy_pattern(r"\s*[#;]")
_COMMENTS_SHARE = 0.3
_HEADED_LINE = lazy_pattern(r"[A-Z][\w-]*: \S")
_LOOKED_AT_LINES = 200
_LOG_SHARE = 0.35
_CODE_SHARE = 0.3
_SETTINGS_SHARE = 0.9
_LEAST_LINES = 6
_LEAST_CELLS = 3


def detect_format(name: str, text: str, kind: ContentType) -> Format:
    """
    Return the format of a document: by the ending of its file's name, else by what its lines look like.

    >>> detect_format("a.py", "", "generic"), detect_format("", "name,size,age\\na,1,2\\nb,2,3\\n", "generic")
    ('code', 'table')
    """
    file = PurePosixPath(name).name.lower()
    suffix = file.rpartition(".")[2] if "." in file else ""
    if kind in ("context.md", "research.md"):
        return "text"
    if text.lstrip()[:1] in ("{", "["):
        try:
            json.loads(text, parse_int=str)  # a number may have any length
        except (ValueError, RecursionError):
            pass
        else:
            return "json"
    if suffix in _CODE_SUFFIXES or file in _CODE_NAMES or text.startswith("#!"):
        return "code"
    if suffix in _SETTINGS:
        return "settings"
    content_type = content_type_of(file or None, text)
    if content_type == HTML:
        return "html"
    if content_type in DELIMITERS or suffix == "tab":
        return "table"
    if suffix in _LOGS or content_type == JSON_LINES:
        return "log"
    if content_type == CODE:
        return "code"
    return _look(text, kind, is_prose=suffix in _PROSE_SUFFIXES)


def _look(text: str, kind: ContentType, *, is_prose: bool) -> Format:
    """Return the format that most lines of a text have."""
    lines = [line for line in text.split("\n", 4 * _LOOKED_AT_LINES) if line.strip()][:_LOOKED_AT_LINES]
    if is_messages(text):
        return "messages"
    if (len(lines) >= _LEAST_LINES and not is_prose) or kind == "tool_result":
        count = max(1, len(lines))
        if sum(_LOG_LINE.match(line) is not None for line in lines) >= _LOG_SHARE * count:
            return "log"
        if kind == "tool_result":
            return "output"
        if sum(_CODE_LINE.match(line) is not None for line in lines) >= _CODE_SHARE * count:
            return "code"
        if _is_settings(lines):
            return "settings"
    if len(lines) >= _LEAST_LINES and is_table(lines):
        return "table"
    return "text"


def _is_settings(lines: Sequence[str]) -> bool:
    """Return whether all but the comments of a text are keys; Markdown begins as a comment does."""
    comments = [_COMMENT.match(line) is not None for line in lines]
    body = [line for line, is_comment in zip(lines, comments, strict=True) if not is_comment]
    headed = sum(_HEADED_LINE.match(line) is not None for line in body)
    has_comments = sum(comments) >= _COMMENTS_SHARE * len(lines) and any(map(all, pairwise(comments)))
    pattern = _PLAIN_SETTING if has_comments else _SETTING_LINE
    count = sum(pattern.match(line) is not None for line in body)
    is_titled = comments[0] and not has_comments
    return count >= _SETTINGS_SHARE * len(body) > 2 * headed and not is_titled


def is_table(lines: list[str]) -> bool:
    """Return whether lines are rows of tab-separated cells."""
    rows = [line for line in lines if not line.startswith("#")]
    if find_delimiter("\n".join(rows)) != "\t":
        return False
    return len(rows) >= _LEAST_LINES and sum(
        line.count("\t") >= _LEAST_CELLS - 1 for line in rows
    ) > 0.8 * len(rows)


def parse_document(text: str, document_format: Format, kind: ContentType) -> Outline:
    """Return the pieces of a document, cut by its format; as plain text if that cannot be read."""
    if document_format == "json":
        return parse_json(text) or parse_prose(text)
    if kind in ("context.md", "research.md"):
        return parse_prose(text, is_counting=kind != "context.md")
    return PLANS[document_format](text)
