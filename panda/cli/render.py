"""How things look on a terminal; the only importer of rich."""

import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from io import StringIO
from textwrap import fill
from typing import ClassVar, TextIO

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.markdown import Markdown, MarkdownElement, TableElement
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    Task,
    TextColumn,
    TimeRemainingColumn,
)
from rich.text import Text

from panda.cli.output_text import cell_text
from panda.cli.pace import rate_text
from panda.documents.progress import Advance
from panda.documents.safe_text import visible

_GIVING_WAY = ((1_000_000, 16), (20, 16), (20, 1), (8, 1))
"""
Longest words that a column keeps whole, and the room that its texts have at least, tried one after the other
until a table fits.
"""
_NUMBER_LETTERS = 3  # that a number has at most: of its unit, or T and Z of a time
_RATE_SECONDS = 0.5  # how long work runs before its rate says anything
_TEXT_CELLS = 24  # that a text has at least where another column can be left out for it
_MARGIN_CELLS = 2  # beside a table of a document
_GAP_CELLS = 2  # between two columns
_FRONT_MATTER = re.compile(r"\A---\n(.*?^)---$", re.DOTALL | re.MULTILINE)
_QUOTED_MARK = re.compile(r"(`[^`]*`)|\\\[\d{1,3}(?:\s*[-–,]\s*\d{1,3})*\\\]")


def markdown_text(text: str, *, stream: TextIO, color: bool) -> str:
    """
    Return Markdown from anywhere as it looks on a terminal, with control characters written out. The
    backslashes stay by which a quoted "[1]" is told from the mark of a source.
    """
    fenced = _FRONT_MATTER.sub(r"```yaml\n\1```\n", visible(text))
    source = _QUOTED_MARK.sub(lambda mark: mark[1] or mark[0].replace("\\", 3 * "\\"), fenced)
    return _rendered(_Document(source, hyperlinks=False), stream=stream, color=color)


class _DocumentTable(TableElement):
    """A table of a document: where it is too wide, texts wrap between words and no number is cut."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        heads = (
            [cell.content.plain for cell in self.header.row.cells] if self.header and self.header.row else []
        )
        rows = [[cell.content.plain for cell in row.cells] for row in self.body.rows] if self.body else []
        columns = [_Column(head, at, rows, rows) for at, head in enumerate(heads)]
        room = options.max_width - _MARGIN_CELLS
        if _total(column.longest_line for column in columns) + len(columns) <= room:
            yield from super().__rich_console__(console, options)
            return
        widths = _fit_widths(columns, room)
        yield ""
        for cells, style in ((heads, "bold"), *((row, "") for row in rows)):
            for line in _row_lines(cells, columns, widths):
                yield Text(" " + line, style=style, no_wrap=True, overflow="ignore")


class _Document(Markdown):
    elements: ClassVar[dict[str, type[MarkdownElement]]] = {
        **Markdown.elements,
        "table_open": _DocumentTable,
    }


def table_text(
    columns: Sequence[str],
    rows: Sequence[Sequence[object]],
    *,
    extra: Sequence[str] = (),
    keeps_words: bool = False,
    stream: TextIO,
    color: bool,
) -> str:
    """
    Return a table as it looks on a terminal, numbers to the right.

    Texts wrap between words. Where that does not suffice, empty columns are left out, then those of *extra*,
    the first one first, which are named below the table; then long words are shortened with "…", but never a
    number. With *keeps_words* no word is, and lines may be longer than the terminal.
    """
    width = _terminal(stream, color=color).width
    texts = [[visible(cell_text(cell)) for cell in row] for row in rows]
    shown_columns = [_Column(head, at, rows, texts) for at, head in enumerate(columns)]
    if keeps_words:
        for column in shown_columns:
            column.longest_whole = column.longest_word
    empty = [column.head for column in shown_columns if column.is_empty]
    left_out: list[str] = []
    for name in (*empty, *extra):
        if _total(column.readable for column in shown_columns) <= width:
            break
        shown_columns = [column for column in shown_columns if column.head != name]
        if name not in empty:
            left_out.append(name)
    widths = _fit_widths(shown_columns, width)
    lines = _row_lines([column.head for column in shown_columns], shown_columns, widths)
    head = Text("\n".join(lines), style="bold", no_wrap=True, overflow="ignore")
    text = _rendered(head, stream=stream, color=color, width=max(width, _total(widths)))
    for row in texts:
        for line in _row_lines([row[column.at] for column in shown_columns], shown_columns, widths):
            text += f"{line}\n"
    if left_out:
        note = f"Left out on a terminal of {width} columns: {', '.join(left_out)}. --json has all."
        text += fill(note, width) + "\n"
    return text


def _row_lines(cells: Sequence[str], columns: Sequence["_Column"], widths: Sequence[int]) -> Iterator[str]:
    """Give the lines of one row, each cell wrapped between words."""
    console = Console(file=StringIO())
    wrapped = [
        [line.plain.rstrip() for line in Text(cell).wrap(console, room, overflow="ellipsis")]
        for cell, room in zip(cells, widths, strict=True)
    ]
    for at in range(max(map(len, wrapped))):
        parts = []
        for column, lines, room in zip(columns, wrapped, widths, strict=True):
            text = lines[at] if at < len(lines) else ""
            blanks = " " * (room - cell_len(text))
            parts.append(blanks + text if column.is_number else text + blanks)
        yield (" " * _GAP_CELLS).join(parts).rstrip()


class _Column:
    """A column of a table and the room that it takes, in cells of a terminal."""

    def __init__(
        self, head: str, at: int, rows: Sequence[Sequence[object]], texts: Sequence[Sequence[str]]
    ) -> None:
        self.head = head
        self.at = at  # place among the columns that are given
        self.is_empty = not any(row[at] for row in texts)
        values = [row[at] for row in rows if row[at] not in (None, "")]
        self.is_number = all(isinstance(value, int | float) for value in values)
        cells = [head, *(row[at] for row in texts)]
        self.longest_line = max(cell_len(line) for cell in cells for line in cell.split("\n"))
        words = [word for cell in cells for word in cell.split()]
        self.longest_word = max(map(cell_len, words), default=0)
        self.longest_whole = max((cell_len(word) for word in words if _is_number(word)), default=0)
        """Room of what is never shortened."""
        self.readable = max(self.longest_word, min(self.longest_line, _TEXT_CELLS))

    def least(self, word_cells: int, text_cells: int) -> int:
        """Return the least room, if words may be shortened to so many cells and texts wrapped to so many."""
        return max(self.longest_whole, min(self.longest_word, word_cells), min(self.longest_line, text_cells))


def _is_number(word: str) -> bool:
    """
    Return whether a word is a number, price, time or date, which says something else where a part is missing.
    """
    letters = sum(char.isalpha() for char in word)
    return letters <= _NUMBER_LETTERS and any(char.isdigit() for char in word)


def _fit_widths(columns: Sequence[_Column], width: int) -> list[int]:
    """Return the room of each column: what it takes, or less of the widest until all fit, if they can."""
    widths = [max(column.longest_whole, min(column.longest_line, width)) for column in columns]
    for word_cells, text_cells in _GIVING_WAY:
        least = [column.least(word_cells, text_cells) for column in columns]
        while _total(widths) > width:
            wide = [at for at, room in enumerate(widths) if room > least[at]]
            if not wide:
                break
            widths[max(wide, key=lambda at: widths[at])] -= 1
    return widths


def _total(widths: Iterable[int]) -> int:
    """Return the room of a table whose columns have these widths, with the gaps between them."""
    rooms = list(widths)
    return sum(rooms) + _GAP_CELLS * (len(rooms) - 1)


@contextmanager
def progress_bar(label: str, total: int, *, stream: TextIO) -> Iterator[Advance]:
    """A progress bar on a terminal while the block runs, gone afterwards; gives what to call after each."""
    columns = (TextColumn("{task.description}", markup=False), BarColumn(), MofNCompleteColumn())
    console = Console(file=stream, force_terminal=True)
    with Progress(*columns, _Rate(), TimeRemainingColumn(), console=console, transient=True) as progress:
        task = progress.add_task(visible(label), total=total)
        yield lambda count=1: progress.advance(task, count)


class _Rate(ProgressColumn):
    """How many things are done in a second or minute, once that can be told."""

    def render(self, task: Task) -> Text:
        """Return the rate from the beginning on; nothing in the first seconds."""
        seconds = task.elapsed or 0.0
        return Text(rate_text(task.completed / seconds) if seconds >= _RATE_SECONDS else "")


def _rendered(content: RenderableType, *, stream: TextIO, color: bool, width: int | None = None) -> str:
    console = Console(
        file=StringIO(),
        force_terminal=True,
        no_color=not color,
        color_system="standard" if color else None,
        width=width or _terminal(stream, color=color).width,
    )
    with console.capture() as capture:
        console.print(content, markup=False, highlight=False, crop=False)
    return capture.get()


def _terminal(stream: TextIO, *, color: bool) -> Console:
    return Console(file=stream, force_terminal=True, no_color=not color)
