"""What a command gets and what it gives back."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, BinaryIO, TextIO

from panda.cli.text import render_rows
from panda.documents.text import visible
from panda.errors import PandaError
from panda.settings import Settings
from panda.storage.layout import Layout
from panda.storage.opening import check_user, open_store, open_store_for_writing
from panda.storage.temporaries import begin_writing, sweep_cache
from panda.trust import require_trust

if TYPE_CHECKING:
    from panda.recipes.book import RecipeBook
    from panda.recipes.executor import Layers
    from panda.storage.turns import TurnStore

_NAMED = ("--user", "PANDA_USER")
"""Where a user is named for one command; a file names one before the first turn."""


@dataclass(frozen=True)
class Reporter:
    """Writes to stderr alone. A closed stderr is nobody's problem: what is written there is lost."""

    stream: TextIO
    quiet: bool  # errors only
    verbosity: int  # how often -v was given
    color: bool  # whether colours may be used

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

    def waiting(self, holder: str) -> None:
        """Tell who holds the lock that is waited for."""
        self._line(f"waiting for {holder}")

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


@dataclass(frozen=True)
class Markdown:
    """An answer in Markdown: rendered on a terminal, the text itself when piped; no control character."""

    text: str  # from anywhere


@dataclass(frozen=True)
class Document:
    """A file or a part of one: rendered on a terminal, and byte for byte as it is when piped."""

    content: bytes  # as it goes into a pipe
    markdown: bool = True  # whether it is Markdown; anything else is shown as it stands

    @property
    def text(self) -> str:
        """The content as text; bytes that are not UTF-8 are replaced."""
        return self.content.decode("utf-8", errors="replace")


@dataclass(frozen=True)
class Table:
    """Rows for people: aligned on a terminal, tab-separated below a line of heads when piped."""

    columns: Sequence[str]
    rows: Sequence[Sequence[object]]  # the cells, each row as long as *columns*; None is shown as nothing


@dataclass(frozen=True)
class Stream:
    """Rows that come one after the other, printed as they come, separated by tabs."""

    rows: Iterable[Sequence[object]]  # the cells of each row; may have no end


@dataclass(frozen=True)
class Result:
    """What a command ends with; the framework prints it."""

    data: Mapping[str, object] | None
    """The member `data` of the `--json` object: plain JSON values; None if there is nothing to tell."""
    body: str | Markdown | Document | Table | Stream = ""
    """The answer for stdout; an empty one prints nothing."""
    exit_code: int = 0  # design §6; left at 0, the error's own code counts
    error: PandaError | None = None  # what went wrong, when there is something to show all the same

    @property
    def code(self) -> int:
        """The exit code of the process."""
        return self.exit_code or (self.error.exit_code if self.error else 0)


@dataclass(frozen=True)
class Invocation:
    """One run of one command, without its own arguments."""

    command: str  # the words of the command, e.g. "models list".
    settings: Settings  # the settings in force
    reporter: Reporter  # where progress, warnings and tables of work go: stderr
    environ: Mapping[str, str]  # environment variables, for the API keys that models.yaml names
    stdin: BinaryIO  # standard input, as bytes
    layers: "Layers | None" = None
    """Models that a server keeps from one run to the next; None for a command by itself."""
    new_user: bool = False  # whether the user may be one of whom nothing is saved yet

    def store(self, *, new_user: bool = False) -> Layout:
        """
        The store for reading.

        Args:
            new_user: Whether the user may be one of whom nothing is saved yet.

        Raises:
            NotFoundError: There is no store, or not the user that --user or PANDA_USER names.
            UntrustedError: The project moved the store.
        """
        require_trust(self.settings, "root")
        layout = open_store(self.settings.root)
        if not new_user:
            self.check_user(layout)
        return layout

    def turns(self) -> "TurnStore":
        """The user's saved turns, as store() opens it."""
        from panda.storage.turns import TurnStore

        return TurnStore(self.store(), self.settings.user, self.settings.clock)

    def book(self) -> "RecipeBook":
        """The recipes in force."""
        from panda.recipes.book import RecipeBook

        return RecipeBook(self.settings.recipe_dirs, self.settings.prompt_dirs)

    def check_user(self, layout: Layout) -> None:
        """Raises NotFoundError where --user or PANDA_USER names a user of whom the store has nothing."""
        origin = self.settings.origin("user")
        if origin in _NAMED and not self.new_user:
            check_user(layout, self.settings.user, where=origin)

    def store_for_writing(self) -> Layout:
        """The store for writing (ReadOnlyStoreError if it is the checkout's demo), without leftovers."""
        require_trust(self.settings, "root")
        layout = open_store_for_writing(self.settings.root)
        begin_writing(layout.root)
        sweep_cache(self.settings.cache_dir)
        return layout
