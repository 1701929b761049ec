"""Progress, warnings and tables of work: everything that goes to stderr."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TextIO

from panda.cli.plain_text import render_rows
from panda.documents.escaping import visible


@dataclass(frozen=True)
class Reporter:
    """Writes to stderr alone. A closed stderr is nobody's problem: what is written there is lost."""

    stream: TextIO
    """stderr."""
    quiet: bool
    """Errors only."""
    verbosity: int
    """How often -v was given."""
    color: bool
    """Whether colours may be used."""

    def warn(self, text: str) -> None:
        """Tell of something that did not stop the command."""
        self._line(f"warning: {text}")

    def step(self, text: str) -> None:
        """Tell which part of the work begins or is done."""
        self._line(text)

    def detail(self, text: str) -> None:
        """Tell something that only -v asks for."""
        if self.verbosity:
            self._line(text)

    def table(self, columns: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
        """Show a table of work."""
        if self.quiet:
            return
        if self.stream.isatty():
            from panda.cli.render import table_text

            self._write(table_text(columns, rows, stream=self.stream, color=self.color))
        else:
            self._write(render_rows([columns, *rows]))

    @contextmanager
    def progress(self, label: str, total: int) -> Iterator[Callable[[], None]]:
        """
        Show a progress bar while the block runs, on a terminal only.

        Args:
            label: What is being done.
            total: How many things there are.

        Yields:
            A function to call after each thing.
        """
        if self.quiet or not self.stream.isatty():
            yield lambda: None
            return
        from panda.cli.render import progress_bar

        with progress_bar(label, total, stream=self.stream, color=self.color) as advance:
            yield advance

    def _line(self, text: str) -> None:
        if not self.quiet:
            self._write(visible(text) + "\n")

    def _write(self, text: str) -> None:
        with suppress(BrokenPipeError):
            self.stream.write(text)
            self.stream.flush()
