"""How things look on a terminal; the only importer of rich."""

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from io import StringIO
from typing import TextIO

from rich.console import Console, RenderableType
from rich.markdown import Markdown
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    Task,
    TextColumn,
    TimeRemainingColumn,
)
from rich.table import Table
from rich.text import Text

from panda.cli.pace import rate_text
from panda.cli.text import cell_text
from panda.documents.text import visible

_FRONT_MATTER = re.compile(r"\A---\n(.*?^)---$", re.DOTALL | re.MULTILINE)


def markdown_text(text: str, *, stream: TextIO, color: bool) -> str:
    """Markdown from anywhere as it looks on a terminal; control characters in it are written out."""
    shown = _FRONT_MATTER.sub(r"```yaml\n\1```\n", visible(text))
    return _rendered(Markdown(shown, hyperlinks=False), stream=stream, color=color)


def table_text(
    columns: Sequence[str], rows: Sequence[Sequence[object]], *, stream: TextIO, color: bool
) -> str:
    """A table as it looks on a terminal, numbers to the right."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    for position, head in enumerate(columns):
        numeric = any(isinstance(row[position], int | float) for row in rows)
        table.add_column(head, justify="right" if numeric else "left", overflow="fold")
    for row in rows:
        table.add_row(*(Text(visible(cell_text(cell))) for cell in row))
    return _rendered(table, stream=stream, color=color)


@contextmanager
def progress_bar(label: str, total: int, *, stream: TextIO) -> Iterator[Callable[[], None]]:
    """A progress bar on a terminal while the block runs, gone afterwards; gives what to call after each."""
    columns = (TextColumn("{task.description}", markup=False), BarColumn(), MofNCompleteColumn())
    console = Console(file=stream, force_terminal=True)
    with Progress(*columns, _Rate(), TimeRemainingColumn(), console=console, transient=True) as progress:
        task = progress.add_task(visible(label), total=total)
        yield lambda: progress.advance(task)


class _Rate(ProgressColumn):
    """How many things are done in a second or minute."""

    def render(self, task: Task) -> Text:
        """The rate so far; nothing before the first thing is done."""
        return Text(rate_text(task.speed or 0))


def _rendered(content: RenderableType, *, stream: TextIO, color: bool) -> str:
    terminal = Console(file=stream, force_terminal=True, no_color=not color)
    console = Console(
        file=StringIO(),
        force_terminal=True,
        no_color=not color,
        color_system="standard" if color else None,
        width=terminal.width,
    )
    with console.capture() as capture:
        console.print(content, markup=False, highlight=False)
    return capture.get()
