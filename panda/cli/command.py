"""What a command gets and gives back; from a plain function to a Typer command with the options all have."""

import inspect
import logging
import re
import shlex
import sys
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, BinaryIO, TextIO, TypeVar

import typer
from typer.core import TyperCommand

from panda.cli.completion import complete_users
from panda.cli.output_text import allows_color, quoted, render_rows
from panda.cli.pace import Pace
from panda.documents.progress import Advance, ignore, shown_by
from panda.documents.safe_text import visible
from panda.errors import Problem, UsageError
from panda.settings import SETTABLE, Settings, load_settings
from panda.store.demo import check_user, open_store, open_store_for_writing
from panda.store.files import begin_writing, check_target, make_directory, replace_report, sweep
from panda.store.layout import DEFAULT_USER, UserStore
from panda.trust import guard_links, is_trusted, require_owners, require_trust

if TYPE_CHECKING:
    from panda.app import App
    from panda.models.model_contract import Layers
    from panda.recipes.book import RecipeBook


_ERASE_LINE = "\r\x1b[2K"


@dataclass(frozen=True)
class Reporter:
    """Writes to stderr alone. A closed stderr is nobody's problem: what is written there is lost."""

    stream: TextIO
    quiet: bool  # errors only
    verbosity: int  # how often -v was given
    color: bool  # whether a terminal may be sent escape sequences
    clock: Callable[[], float] = time.monotonic  # seconds, for how fast work goes on
    bars: list[str] = field(default_factory=list)  # labels of the progress bars that are shown now

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
    def progress(self, label: str, total: int) -> Iterator[Advance]:
        """
        Show how far the block is while it runs, how fast and how much time is left: as a bar on a terminal,
        elsewhere as a line now and then. Gives what to call after each thing, or after several with their
        number. Work within work that shows a bar shows none.
        """
        if self.quiet or self.bars:
            yield ignore
            return
        if not (self.color and self.stream.isatty()):  # a bar moves the cursor
            yield Pace(label, total, self._line, self.clock).advance
            return
        from panda.cli.render import progress_bar

        with progress_bar(label, total, stream=self.stream) as advance:
            self.bars.append(label)
            try:
                yield advance
            finally:
                self.bars.pop()

    def _line(self, text: str) -> None:
        if not self.quiet:
            self._write(visible(text) + "\n")

    def _write(self, text: str) -> None:
        with suppress(BrokenPipeError):
            self.stream.write(_ERASE_LINE * bool(self.bars) + text)  # a bar is drawn again below the text
            self.stream.flush()


class LogHandler(logging.Handler):
    """Tells what is logged on the way: to a reporter, or to who called a tool of this server."""

    caller: ContextVar[Callable[[str], None] | None] = ContextVar("caller", default=None)

    def __init__(self, reporter: Reporter) -> None:
        super().__init__()
        self._reporter = reporter

    def emit(self, record: logging.LogRecord) -> None:
        """Tell one line; what is below INFO only with -v, and to no caller of a tool."""
        if record.levelno < logging.INFO:
            self._reporter.detail(record.getMessage())
            return
        mark = "warning: " if record.levelno >= logging.WARNING else ""
        (self.caller.get() or self._reporter.step)(f"{mark}{record.getMessage()}")


@dataclass(frozen=True)
class Markdown:
    """An answer in Markdown: rendered on a terminal, the text itself when piped; no control character."""

    text: str  # from anywhere


@dataclass(frozen=True)
class OutputDocument:
    """
    A file or a part of one: rendered on a terminal; byte for byte as it is when piped, but for control
    characters, which are written out, since what is piped often ends on a terminal.
    """

    content: bytes  # as on disk
    markdown: bool = True  # whether it is Markdown; anything else is shown as it stands
    raw: bool = False  # whether the bytes were asked for, control characters and all

    @property
    def text(self) -> str:
        """The content as text; bytes that are not UTF-8 are replaced."""
        return self.content.decode("utf-8", errors="replace")

    @property
    def piped(self) -> bytes:
        """Return the bytes for a pipe; those that are not UTF-8 are written out."""
        if self.raw:
            return self.content
        lines = self.content.decode("utf-8", errors="backslashreplace").split("\r\n")
        return "\r\n".join(map(visible, lines)).encode()


@dataclass(frozen=True)
class OutputTable:
    """Rows for people: aligned on a terminal, tab-separated below a line of heads when piped."""

    columns: Sequence[str]
    rows: Sequence[Sequence[object]]  # the cells, each row as long as *columns*; None is shown as nothing
    extra: Sequence[str] = ()  # columns that a narrow terminal leaves out, the least important first
    keeps_words: bool = False  # whether no word is shortened, also where a line is longer than the terminal


@dataclass(frozen=True)
class Stream:
    """Rows that come one after the other, printed as they come, separated by tabs."""

    rows: Iterable[Sequence[object]]  # the cells of each row; may have no end


@dataclass(frozen=True)
class Result:
    """What a command ends with; the framework prints it."""

    data: Mapping[str, object] | None
    """The member `data` of the `--json` object: plain JSON values; None if there is nothing to tell."""
    body: str | Markdown | OutputDocument | OutputTable | Stream = ""
    """The answer for stdout; an empty one prints nothing."""
    exit_code: int = 0  # design §6; left at 0, the error's own code counts
    error: Problem | None = None  # what went wrong, when there is something to show all the same
    after_output: Callable[[], None] | None = None
    """Called once all of it has been printed; not if its reader has gone or it cannot be written."""

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
    stdout: TextIO  # standard output, for what is written while the command runs
    layers: "Layers | None" = None
    """Models that a server keeps from one run to the next; None for a command by itself."""
    as_json: bool = False  # whether stdout gets one JSON object
    new_user: bool | None = None
    """Whether a user who is named and not there is made; None: the command makes none."""
    cleanup: ExitStack = field(default_factory=ExitStack)
    """Runs when the command has ended."""

    def open_app(self, store: UserStore, *, settings: Settings | None = None) -> "App":
        """
        Return what runs turns on a store; models that it loads are freed when the command has ended.

        Args:
            store: The store of the user whose turns run.
            settings: Used instead of those in force.
        """
        from panda.app import App  # with all it imports: only if it is wanted
        from panda.trust import open_layers

        in_force = settings or self.settings
        layers = self.layers or self.cleanup.enter_context(open_layers(in_force, self.environ))
        return App(in_force, store, layers)

    def store(self, *, any_user: bool = False) -> UserStore:
        """
        The store for reading. Raises NotFoundError: there is none, or not the user that is named, unless
        *any_user* says that this does not matter. UntrustedError: the project moved it.
        """
        require_trust(self.settings, "root")
        open_store(self.settings.root)
        store = self.settings.store
        if not any_user:
            self.check_user(store, self.settings.place("user"))
        return store

    def book(self) -> "RecipeBook":
        """The recipes in force."""
        from panda.recipes.book import RecipeBook

        return RecipeBook(self.settings.recipe_dirs, self.settings.prompt_dirs)

    def check_user(self, store: UserStore, where: str) -> None:
        """Raises NotFoundError for a user who is not there and not to be made."""
        if not self.new_user:
            how = "" if self.new_user is None else f"add --new-user to make {store.user}"
            check_user(store, where=where, how=how)

    def make_user(self, store: UserStore) -> None:
        """A place for a user who is named and new, which is told."""
        if self.new_user and store.user != DEFAULT_USER and not store.home.is_dir():
            make_directory(store.home)
            self.reporter.step(f"user {store.user} is new")

    def store_for_writing(self, *, any_user: bool = False) -> UserStore:
        """
        Return the store for writing, after removing leftovers; a new user is made. Raises ReadOnlyStoreError:
        it is the demo of the checkout.
        """
        require_trust(self.settings, "root")
        open_store_for_writing(self.settings.root)
        store = self.settings.store
        if not any_user:
            self.check_user(store, self.settings.place("user"))
            self.make_user(store)
        begin_writing(store.root, self.settings.project_dir)
        if is_trusted(self.settings, "cache_dir"):
            for place in (self.settings.cache_dir, *self.settings.cache_dir.glob("*")):
                sweep(place)
        return store


_Command = TypeVar("_Command", bound=Callable[..., Any])
_RULES = "__option_rules__"
_Completion = Callable[..., Any] | None
_PathCheck = Callable[[typer.CallbackParam, Path], None]
COMMON_FLAGS = ("--root", "--user", "--wait", "--trust", "--json", "--quiet", "-q", "--verbose", "-v")
"""What can stand behind every command."""


_LOOKS_AT_UNTRUSTED = ("trust", "validate", "config show")
"""Commands that show what is not trusted, and so run before it is."""


@dataclass(frozen=True)
class OptionRule:
    """An option that says nothing beside another one, or without it."""

    option: str  # parameter of the option that would be ignored
    other: str  # parameter of the other one
    values: tuple[object, ...] | None
    """Values of the other one beside which the option counts; None: it counts without the other."""
    fix: str  # what to do, where leaving the option out does not say it


def excludes(option: str, others: Sequence[str], *, fix: str = "") -> Callable[[_Command], _Command]:
    """Mark a command: where one option is given, *others* would be ignored; "" says to leave one out."""
    return _marking([OptionRule(other, option, None, fix) for other in others])


def requires(option: str, other: str, *values: object, fix: str = "") -> Callable[[_Command], _Command]:
    """Mark a command: an option counts only where another one has, or is given, one of these values."""
    return _marking([OptionRule(option, other, values, fix)])


def _marking(rules: list[OptionRule]) -> Callable[[_Command], _Command]:
    def mark(command: _Command) -> _Command:
        setattr(command, _RULES, (*rules, *getattr(command, _RULES, ())))
        return command

    return mark


def check_options(command: Callable[..., Any], context: typer.Context) -> None:
    """Raises UsageError if what was typed holds an option that the command, as it is marked, would ignore."""
    names = {parameter.name: parameter_name(parameter) for parameter in context.command.params}
    values: Mapping[str, Any] = context.params
    for rule in getattr(command, _RULES, ()):
        if not _was_typed(context, rule.option):
            continue
        option = names[rule.option]
        other = names[rule.other]
        if rule.values is None and _was_typed(context, rule.other):
            message = f"{option} does not go with {other}"
            raise UsageError(message, where=option, fix=rule.fix or f"leave out {option} or {other}")
        if rule.values is not None and values[rule.other] not in rule.values:
            wanted = " or ".join(other if value is True else f"{other} {value}" for value in rule.values)
            fix = rule.fix or f"leave out {option}"
            raise UsageError(f"{option} goes with {wanted}", where=option, fix=fix)


def _was_typed(context: typer.Context, name: str) -> bool:
    """Return whether a parameter was typed on the command line."""
    source = context.get_parameter_source(name)
    return source is not None and source.name == "COMMANDLINE"


def parameter_name(parameter: Any) -> str:
    """Return what a user calls a parameter: --option, or the name of an argument."""
    long = [name for name in parameter.opts if name.startswith("--")]
    if long or parameter.opts[0].startswith("-"):
        return str((long or parameter.opts)[0])
    return str(parameter.metavar or parameter.name.upper())


def option(
    help_: str, metavar: str | None = None, *names: str, complete: _Completion = None, **more: Any
) -> Any:
    """
    An option: its help, what stands for its value, further names, what a shell offers for it. Where its
    default is None, `show_default` says in words what that means.
    """
    return typer.Option(*names, help=help_, metavar=metavar, autocompletion=complete, **more)


def _file_option(help_: str, metavar: str, names: tuple[str, ...], default: str, check: _PathCheck) -> Any:
    """Return an option whose path is checked, but not where a shell only asks what could stand behind it."""

    def check_path(ctx: typer.Context, parameter: typer.CallbackParam, path: Path | None) -> Path | None:
        if path is not None and not ctx.resilient_parsing:
            check(parameter, path)
        return path

    return option(help_, metavar, *names, show_default=default, callback=check_path)


def flag(help_: str, *names: str, **more: Any) -> Any:
    """An option that is given or not."""
    return typer.Option(*names, help=help_, **more)


def out_file(help_: str, *names: str, default: str = "none") -> Any:
    """An option that names a file to write, in a folder that is there: none is made unasked."""
    return _file_option(help_, "FILE", names, default, _check_folder)


def out_directory(help_: str) -> Any:
    """An option that names a directory to make, in a folder that is there."""
    return _file_option(help_, "DIR", (), "none", _check_parent)


def report_file(help_: str, *names: str) -> Any:
    """
    Return an option for the file of a report; a file from before is removed first, so that it is never taken
    for that of this run.
    """
    return _file_option(help_, "FILE", names, "none", _make_way)


def _make_way(parameter: typer.CallbackParam, path: Path) -> None:
    _check_folder(parameter, path)
    _at(parameter, lambda: replace_report(path))


def _at(parameter: typer.CallbackParam, check: Callable[[], None]) -> None:
    """Run a check; what it finds wrong is told of the option."""
    try:
        check()
    except UsageError as exc:
        raise UsageError(exc.message, where=parameter_name(parameter), fix=exc.fix) from exc


def _check_folder(parameter: typer.CallbackParam, path: Path) -> None:
    if path.is_dir():
        raise UsageError(f"{path} is a directory", where=parameter_name(parameter), fix="name a file in it")
    _at(parameter, lambda: check_target(path))
    _check_parent(parameter, path)


def _check_parent(parameter: typer.CallbackParam, path: Path) -> None:
    if not path.parent.is_dir():
        fix = f"make it first: mkdir -p {shlex.quote(str(path.parent))}"
        raise UsageError(f"there is no directory {path.parent}", where=parameter_name(parameter), fix=fix)


def argument(help_: str, metavar: str, *, complete: _Completion = None, **more: Any) -> Any:
    """An argument: its help, what stands for it, what a shell offers for it."""
    return typer.Argument(help=help_, metavar=metavar, autocompletion=complete, **more)


Raw = Annotated[bool, flag("Give the bytes as they are, control characters too.", "--raw")]
"""The option of commands whose answer is a Document."""

SESSION_DEFAULT = "[env: PANDA_SESSION; default: one of its own]"
SEED_DEFAULT = "[env: PANDA_SEED; default: one for each turn, recipe and attempt]"
"""How the help of an option that is a setting too ends."""

NewUser = Annotated[bool, flag("Make a user who is named and not there yet.", "--new-user")]
"""The option of commands that can make the user who is named."""
Continue = Annotated[bool, flag("Go on with the user's newest session.", "--continue", "-c")]
"""The option of commands that begin a turn."""

ALLOW = option(
    "Hosts that pages may also be read at.  [env: PANDA_WEB_ALLOW; default: the setting web_allow]",
    "HOST,…",
    "--allow",
    show_default=False,
)
_ROOT = option("The store.  [env: PANDA_ROOT; default: ./panda-system-docs]", "DIR", show_default=False)
_USER = option(
    "Whose turns.  [env: PANDA_USER; default: default]", "ID", complete=complete_users, show_default=False
)
_WAIT = option(
    "Wait this long for a lock.  [env: PANDA_WAIT_SECONDS; default: 600]", "SECONDS", show_default=False
)
_TRUST = flag(
    "Let the project's files and the store's links reach out, in this run.  [env: PANDA_TRUST]", "--trust"
)
_VERBOSE = flag("Say more on stderr.", "--verbose", "-v", count=True, show_default=False)
_OPTIONS: Mapping[str, tuple[object, object]] = {
    "root": (Annotated[str | None, _ROOT], None),
    "user": (Annotated[str | None, _USER], None),
    "wait": (Annotated[float | None, _WAIT], None),
    "trust": (Annotated[bool, _TRUST], False),
    "json": (Annotated[bool, flag("Print one JSON object.", "--json")], False),
    "quiet": (Annotated[bool, flag("Nothing on stderr but errors.", "--quiet", "-q")], False),
    "verbose": (Annotated[int, _VERBOSE], 0),
}


_DEFAULT = re.compile(r"default: \((.*)\)(\]|;)")
_TEXTS = ("QUERY|-", "QUERY")
"""Arguments that are texts of several words, by what stands for them in the help."""


def _without_noise(help_text: str) -> str:
    """Return the help of a parameter without brackets around words, and without a default that is none."""
    help_text = help_text.replace("  [default: (none)]", "").replace("default: (none); ", "")
    return _DEFAULT.sub(r"default: \1\2", help_text.replace("default: (required)", "required"))


class PandaCommand(TyperCommand):
    """A command whose help has its own options first, then those that all have, and no types of Python."""

    def parse_args(self, ctx: typer.Context, args: list[str]) -> list[str]:  # type: ignore[override]  # as above
        """Take the words of a command line. Raises UsageError: the command has no use for some of them."""
        ctx.allow_extra_args = True
        left = super().parse_args(ctx, args)
        if left and not ctx.resilient_parsing:
            raise self._too_many(ctx, left)
        return left

    def _too_many(self, ctx: typer.Context, left: Sequence[str]) -> UsageError:
        fix = f"`{ctx.command_path} --help` shows what can be given"
        texts = [
            parameter
            for parameter in self.params
            if parameter.param_type_name == "argument" and parameter.metavar in _TEXTS
        ]
        if texts and isinstance(first := ctx.params.get(str(texts[-1].name)), str):
            fix = f"put it in quotes: {ctx.command_path} {quoted(' '.join([first, *left]))}"
        noun = "argument" if len(left) == 1 else "arguments"
        message = f"unexpected {noun}: {' '.join(left)}"
        return UsageError(message, where=f"command line of `{ctx.command_path}`", fix=fix)

    def format_options(self, ctx: typer.Context, formatter: Any) -> None:  # type: ignore[override]  # Typer's own types are private
        """Write what can be given, in three parts."""
        parts: dict[str, list[tuple[str, str]]] = {
            "Arguments": [],
            "Options": [],
            "Options of all commands": [],
        }
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx)
            if record is None:
                continue
            name = record[0]
            help_text = _without_noise(record[1])
            if parameter.param_type_name == "argument":
                parts["Arguments"].append((name.partition(" <")[0], help_text))
                continue
            is_own = parameter.name not in (*_OPTIONS, "help")
            parts["Options" if is_own else "Options of all commands"].append((name, help_text))
        for title, rows in parts.items():
            if rows:
                with formatter.section(title):
                    formatter.write_dl(rows)

    def collect_usage_pieces(self, ctx: typer.Context) -> list[str]:  # type: ignore[override]  # as above
        """Return the words of the usage line: what is required bare, what can be left out in brackets."""
        pieces = []
        for piece in super().collect_usage_pieces(ctx):
            bare = piece.removesuffix("...").strip("{}")
            pieces.append(f"[{bare.strip('[]')}]" if bare.startswith("[") else bare)
        return pieces

    def format_help_text(self, ctx: typer.Context, formatter: Any) -> None:  # type: ignore[override]  # as above
        """Write what the command does; an example stays on one line, to be copied."""
        for paragraph in (self.help or "").split("\n\n"):
            formatter.write_paragraph()
            with formatter.indentation():
                if (example := paragraph.removeprefix("Example: ")) != paragraph:
                    formatter.write(f"{'':{formatter.current_indent}}Example: {example}\n")
                else:
                    formatter.write_text(paragraph)


@dataclass(frozen=True)
class Surroundings:
    """What the process gives to every command; travels as the context's object."""

    environ: Mapping[str, str]
    cwd: Path
    stdout: TextIO = field(default_factory=lambda: sys.stdout)  # as it is before the command begins


def build_command(words: str, function: Callable[..., Result]) -> TyperCommand:
    """
    A Typer command that returns a function's Result. The function has a parameter *invocation* first, then
    its own as Typer annotations; one that is called like a setting (`session`, `seed`) also sets that when it
    is given.
    """

    def run(ctx: typer.Context, **arguments: Any) -> Result:
        check_options(function, ctx)
        options = {name: arguments.pop(name) for name in _OPTIONS}
        invocation = _invocation(words, ctx.obj, options, arguments)
        with invocation.cleanup:
            result = function(invocation, **arguments)
        if isinstance(result.body, OutputDocument) and not options["json"]:
            how_else = "; --raw gives the bytes" if "raw" in arguments else ""
            _tell_altered(result.body, invocation.reporter, how_else)
        return result

    own = [p for p in inspect.signature(function).parameters.values() if p.name != "invocation"]
    shared = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, annotation=annotation, default=default)
        for name, (annotation, default) in _OPTIONS.items()
    ]
    context = inspect.Parameter("ctx", inspect.Parameter.KEYWORD_ONLY, annotation=typer.Context)
    keyword_only = [p.replace(kind=inspect.Parameter.KEYWORD_ONLY) for p in own]
    run.__signature__ = inspect.Signature([context, *keyword_only, *shared])  # type: ignore[attr-defined]
    run.__annotations__ = {p.name: p.annotation for p in (context, *keyword_only, *shared)}
    app = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)
    app.command(words.split()[-1], cls=PandaCommand, help=inspect.getdoc(function))(run)
    command = typer.main.get_command(app)
    assert isinstance(command, TyperCommand)
    return command


def _tell_altered(document: OutputDocument, reporter: Reporter, how_else: str) -> None:
    """Warn where what is shown differs from the bytes in more than its looks, and say how to have these."""
    if document.piped != document.content:
        reporter.warn(f"control characters are written out here{how_else}")


def _invocation(
    words: str, surroundings: Surroundings, options: Mapping[str, Any], arguments: Mapping[str, Any]
) -> Invocation:
    own_settings = {name: arguments[name] for name in arguments if name in SETTABLE}
    flags = {
        **own_settings,
        "root": options["root"],
        "user": options["user"],
        "wait_seconds": options["wait"],
        "trust": options["trust"] or None,
    }
    settings = load_settings(flags, surroundings.environ, surroundings.cwd)
    guard_links(settings)
    if words not in _LOOKS_AT_UNTRUSTED:
        require_owners(settings)
    reporter = Reporter(
        stream=sys.stderr,
        quiet=options["quiet"],
        verbosity=options["verbose"],
        color=allows_color(surroundings.environ),
    )
    log = logging.getLogger("panda")
    log.handlers[:] = [LogHandler(reporter)]
    log.setLevel(logging.DEBUG)
    shown_by.set(reporter.progress)
    warnings.showwarning = lambda message, *rest: reporter.warn(str(message))
    return Invocation(
        command=words,
        settings=settings,
        reporter=reporter,
        environ=surroundings.environ,
        stdin=sys.stdin.buffer,
        stdout=surroundings.stdout,
        as_json=options["json"],
        new_user=arguments.get("new_user"),
    )
