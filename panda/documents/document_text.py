"""
Documents that a user hands over: what kind of text one is, and its quotable units with their lines. Pure.

Prose is read as Markdown. A row of a table, also of one that blanks align, and an object of JSON are a
unit each, with the names of their columns and keys; of code and of what cannot be read as its kind, every
line is one.
"""

import csv
import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from mimetypes import guess_type

from panda.documents.json_text import is_json, load_json
from panda.documents.markdown import TextUnit, row_text, split_units
from panda.documents.safe_text import one_line

PDF = "application/pdf"
HTML = "text/html"
JSON = "application/json"
JSON_LINES = "application/x-ndjson"
MARKDOWN = "text/markdown"
PLAIN = "text/plain"
CODE = "text/x-source"
DELIMITERS = {"text/csv": ",", "text/tab-separated-values": "\t"}
"""What parts the cells of a table, by content type; a table of comma-separated values may have another."""
_BY_SUFFIX = {
    **dict.fromkeys(("md", "markdown", "mdown"), MARKDOWN),
    **dict.fromkeys(("txt", "text", "log", "rst", "org", "adoc", "eml"), PLAIN),
    **dict.fromkeys(("html", "htm", "xhtml"), HTML),
    **dict.fromkeys(("jsonl", "ndjson"), JSON_LINES),
    "json": JSON,
    "pdf": PDF,
    "csv": "text/csv",
    "tsv": "text/tab-separated-values",
    **dict.fromkeys(("go", "rs", "ts", "tsx", "jsx", "kt", "swift", "rb", "php", "lua", "scala", "r"), CODE),
    **dict.fromkeys(("sql", "toml", "ini", "cfg", "yaml", "yml", "xml", "diff", "patch", "ps1", "tf"), CODE),
}
_PROSE = (MARKDOWN, PLAIN, HTML, PDF)
_HTML_HEAD = re.compile(r"\s*+<(?:!doctype html|html|head|body)\b", re.IGNORECASE)
_CSV_DELIMITERS = ",;\t|"
_SNIFFED_ROWS = 8
_LEAST_ROWS = 3
_LEAST_COLUMNS = 3
_SURE_COLUMNS = 5  # prose hardly has so many columns of blanks by chance
_MAX_WIDTH_CHARS = 1_000
_DIGIT = re.compile(r"\d")
_WIDE_GAP = re.compile(r"\S {2,}\S")
_MARKUP = re.compile(r"\s*(?:[|#>`]|[-*+] |\d+[.)] )")
_HEADER_CHARS = 40
_OBJECT_CHARS = 600  # a longer object is several units
_TEXT_CHARS = 300  # a longer value is a text
_JSON_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\],:]|[^\s{}\[\],:"]+')


def content_type_of(name: str | None, text: str) -> str:
    """
    Return the content type of a text: by the ending of its file's name, else by what it looks like.

    >>> content_type_of("a.csv", ""), content_type_of(None, '{"a": 1}'), content_type_of(None, "# Hi")
    ('text/csv', 'application/json', 'text/markdown')
    """
    stem, _, suffix = (name or "").rpartition(".")
    by_suffix = _BY_SUFFIX.get(suffix.lower()) if stem else None
    if by_suffix is None and name:
        by_suffix = guess_type(name)[0]
    if by_suffix and (by_suffix in _BY_SUFFIX.values() or by_suffix.startswith("text/")):
        return by_suffix
    if _HTML_HEAD.match(text):
        return HTML
    if text.lstrip()[:1] in ("{", "[") and is_json(text):
        return JSON
    first_line = text.lstrip("\ufeff \t\r\n").partition("\n")[0]
    if first_line.startswith("{") and is_json(first_line):
        return JSON_LINES
    return "text/csv" if _looks_like_table(text) else MARKDOWN


@lru_cache(maxsize=8)
def split_document(text: str, content_type: str) -> tuple[TextUnit, ...]:
    """Return the units of a document in order, each with the line where it begins."""
    return tuple(_split(text, content_type))


def _split(text: str, content_type: str) -> Sequence[TextUnit]:
    if content_type in _PROSE:
        return _aligned_rows(text) or split_units(text)
    try:
        if content_type in DELIMITERS:
            return list(_rows(text, DELIMITERS[content_type]))
        if content_type == JSON and is_json(text):
            return list(_JsonReader(text).units())
        if content_type == JSON_LINES:
            return list(_json_lines(text))
    except (csv.Error, RecursionError):  # a cell without end, or nested too deeply
        pass
    return list(_code_lines(text))


def _aligned_rows(text: str) -> list[TextUnit]:
    """
    Return the lines of a table whose columns are aligned by blanks, as `df` and `ls -l` print them, with the
    names of the columns if its first line has them; empty if the text is no such table.
    """
    lines = {n: line.expandtabs() for n, line in enumerate(text.split("\n"), 1) if line.strip()}
    table = {n: line for n, line in lines.items() if len(line.split()) >= _LEAST_COLUMNS}
    if len(table) < max(_LEAST_ROWS, len(lines) - 1) or any(map(_MARKUP.match, table.values())):
        return []
    width = max(map(len, table.values()))
    if width > _MAX_WIDTH_CHARS:
        return []
    is_blank = [all(line[at : at + 1].strip() == "" for line in table.values()) for at in range(width)]
    shape = "".join(" " if blank else "x" for blank in is_blank)
    columns = [match.span() for match in re.finditer("x+", shape)]
    spaced = [line for line in table.values() if _WIDE_GAP.search(line)]
    if len(columns) < (_LEAST_COLUMNS if 2 * len(spaced) >= len(table) else _SURE_COLUMNS):
        return []
    rows = {n: [one_line(line[start:end]) for start, end in columns] for n, line in table.items()}
    head, *_ = rows
    has_names = not _DIGIT.search(table[head]) and any(map(_DIGIT.search, table.values()))
    names = rows[head] if has_names else []
    text_units: list[TextUnit] = []
    for n, line in lines.items():
        if n not in rows:
            text_units.append(TextUnit(one_line(line), n, (), "line"))
        elif n != head or not names:
            text_units.append(TextUnit(row_text(names, rows[n]), n, (), "row", head))
    return text_units


def _code_lines(text: str) -> Iterator[TextUnit]:
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip():
            yield TextUnit(one_line(line), number, (), "code", 1)


def _looks_like_table(text: str) -> bool:
    lines = [line for line in text.split("\n", _SNIFFED_ROWS)[:_SNIFFED_ROWS] if line.strip()]
    return len(lines) >= _LEAST_ROWS and _delimiter_of(lines) is not None


def _delimiter_of(lines: Sequence[str]) -> str | None:
    """Return what parts every line into as many cells as the first, a row of short names; else None."""
    for delimiter in _CSV_DELIMITERS:
        try:
            rows = list(csv.reader(lines, delimiter=delimiter))
        except csv.Error:  # a cell longer than the library reads
            continue
        header = rows[0] if rows else []
        are_names = all(0 < len(cell.strip()) <= _HEADER_CHARS for cell in header)
        if len(header) > 1 and are_names and {len(row) for row in rows} == {len(header)}:
            return delimiter
    return None


def find_broken_lines(text: str, content_type: str) -> Iterator[tuple[int, str]]:
    """Yield each line of a table, of JSON or of JSON lines that is not as its kind has it, and why."""
    if content_type == JSON:
        try:
            json.loads(text)
        except json.JSONDecodeError as exc:
            yield exc.lineno, "it is no JSON from this line on, and its lines are text"
        except (ValueError, RecursionError):
            yield 1, "it is JSON that cannot be read, and its lines are text"
    elif content_type == JSON_LINES:
        for number, line in enumerate(text.split("\n"), 1):
            if line.strip() and not is_json(line):
                yield number, "this line is no JSON, and is text"
    elif content_type in DELIMITERS:
        try:
            yield from _ragged_rows(text, DELIMITERS[content_type])
        except csv.Error:
            yield 1, "it is a table that cannot be read, and its lines are text"


def _ragged_rows(text: str, delimiter: str) -> Iterator[tuple[int, str]]:
    width = 0
    for line, cells in _cell_rows(text, delimiter):
        width = width or len(cells)
        if len(cells) != width:
            yield line, "this row has more or fewer cells than the first"


def _rows(text: str, delimiter: str) -> Iterator[TextUnit]:
    """Yield the rows below the header as "Name: cell; Name: cell", the cells without a text left out."""
    rows = _cell_rows(text, delimiter)
    header_line, header = next(rows, (0, []))
    for line, cells in rows:
        yield TextUnit(row_text(header, cells), line, (), "row", header_line)


def _cell_rows(text: str, delimiter: str) -> Iterator[tuple[int, list[str]]]:
    """Yield the rows that are not empty, each with the line where it begins."""
    lines = text.removeprefix("\ufeff").split("\n")
    if delimiter == ",":
        delimiter = _delimiter_of([line for line in lines[:_SNIFFED_ROWS] if line.strip()]) or delimiter
    reader = csv.reader((f"{line}\n" for line in lines), delimiter=delimiter)
    while True:
        line = reader.line_num + 1
        row = next(reader, None)
        if row is None:
            return
        cells = [one_line(cell) for cell in row]
        if any(cells):
            yield line, cells


def _json_lines(text: str) -> Iterator[TextUnit]:
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        if is_json(line):
            yield from _JsonReader(line, first_line=number, list_line=1).units()
        else:
            yield TextUnit(one_line(line), number, (), "line", 1)


@dataclass
class _Member:
    key: str
    value: str
    line: int


class _JsonReader:
    """Reads the objects of a valid JSON text, each a unit "key: value; key: value" below its keys."""

    def __init__(self, text: str, *, first_line: int = 1, list_line: int | None = None) -> None:
        self._tokens = self._placed(text, first_line)
        self._list_line = list_line

    def units(self) -> Iterator[TextUnit]:
        """Yield the text units in the order of the text."""
        token, line = next(self._tokens)
        text_units: list[TextUnit] = []
        self._read(token, line, (), self._list_line, text_units)
        yield from sorted(text_units, key=lambda unit: unit.line)

    @staticmethod
    def _placed(text: str, first_line: int) -> Iterator[tuple[str, int]]:
        line = first_line
        end = 0
        for match in _JSON_TOKEN.finditer(text):
            line += text.count("\n", end, match.start())
            end = match.start()
            yield match[0], line

    def _read(
        self, token: str, line: int, path: tuple[str, ...], list_line: int | None, text_units: list[TextUnit]
    ) -> str | None:
        """Return a scalar, or a list of scalars, as text; None of what has text_units of its own."""
        if token == "{":
            self._read_object(line, path, list_line, text_units)
            return None
        if token == "[":
            return self._read_list(line, path, text_units)
        return str(load_json(token)) if token.startswith('"') else token

    def _read_object(
        self, line: int, path: tuple[str, ...], list_line: int | None, text_units: list[TextUnit]
    ) -> None:
        members: list[_Member] = []
        for token, at in self._tokens:
            if token == "}":
                break
            if token == ",":
                continue
            key = one_line(str(load_json(token)))
            next(self._tokens)  # the colon
            value, value_line = next(self._tokens)
            scalar = self._read(value, value_line, (*path, key), None, text_units)
            if scalar is not None and len(scalar) > _TEXT_CHARS:  # a text, to be quoted by its sentences
                texts = (unit.text for unit in split_units(scalar))
                text_units += [TextUnit(text, value_line, (*path, key)) for text in texts]
            elif scalar is not None and scalar.strip():
                members.append(_Member(key, one_line(scalar), at))
        self._add(members, line, path, list_line, text_units)

    def _add(
        self,
        members: Sequence[_Member],
        line: int,
        path: tuple[str, ...],
        list_line: int | None,
        text_units: list[TextUnit],
    ) -> None:
        parts: list[str] = []
        first = line
        for member in members:
            part = f"{member.key}: {member.value}"
            if parts and sum(map(len, parts)) + len(part) > _OBJECT_CHARS:
                text_units.append(self._passage("; ".join(parts), first, path, list_line))
                parts = []
            if not parts:
                first = member.line
            parts.append(part)
        if parts:
            text_units.append(self._passage("; ".join(parts), first, path, list_line))

    def _read_list(self, line: int, path: tuple[str, ...], text_units: list[TextUnit]) -> str | None:
        scalars: list[str] = []
        before = len(text_units)
        for token, at in self._tokens:
            if token == "]":
                break
            if token == ",":
                continue
            scalar = self._read(token, at, path, line, text_units)
            if scalar is not None and scalar.strip():
                scalars.append(one_line(scalar))
        text = ", ".join(scalars)
        if path and len(text_units) == before:
            return text
        if text:
            text_units.append(self._passage(f"{path[-1]}: {text}" if path else text, line, path[:-1], None))
        return None

    @staticmethod
    def _passage(text: str, line: int, path: tuple[str, ...], list_line: int | None) -> TextUnit:
        return TextUnit(text, line, path, "row" if list_line is not None else "line", list_line)
