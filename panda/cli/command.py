"""From a plain function to a Typer command that has the options every command has."""

import inspect
import sys
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperCommand

from panda.cli.completion import complete_users
from panda.cli.contract import Invocation, Result
from panda.cli.option_rules import check_options
from panda.cli.plain_text import allows_color
from panda.cli.reporter import Reporter
from panda.settings import SETTING_NAMES, load_settings
from panda.trust import guard_links

_OPTIONS: Mapping[str, tuple[object, object]] = {
    "root": (
        Annotated[
            str | None,
            typer.Option(
                help="The store.  [env: PANDA_ROOT; default: ./panda-system-docs]",
                metavar="DIR",
                show_default=False,
            ),
        ],
        None,
    ),
    "user": (
        Annotated[
            str | None,
            typer.Option(
                help="Whose turns.  [env: PANDA_USER; default: default]",
                metavar="ID",
                show_default=False,
                autocompletion=complete_users,
            ),
        ],
        None,
    ),
    "wait": (
        Annotated[
            float | None,
            typer.Option(
                help="Wait this long for a lock.  [env: PANDA_WAIT_SECONDS; default: 600]",
                metavar="SECONDS",
                show_default=False,
            ),
        ],
        None,
    ),
    "trust": (
        Annotated[
            bool,
            typer.Option(
                "--trust", help="Let the project's files and the store's links reach out, in this run."
            ),
        ],
        False,
    ),
    "json": (Annotated[bool, typer.Option("--json", help="Print one JSON object.")], False),
    "quiet": (Annotated[bool, typer.Option("--quiet", "-q", help="Nothing on stderr but errors.")], False),
    "verbose": (
        Annotated[
            int, typer.Option("--verbose", "-v", count=True, help="Say more on stderr.", show_default=False)
        ],
        0,
    ),
}

COMMON_FLAGS = ("--root", "--user", "--wait", "--trust", "--json", "--quiet", "-q", "--verbose", "-v")
"""What can stand behind every command."""


@dataclass(frozen=True)
class Surroundings:
    """What the process gives to every command; travels as the context's object."""

    environ: Mapping[str, str]
    """Environment variables."""
    cwd: Path
    """The current directory."""


def build_command(words: str, function: Callable[..., Result]) -> TyperCommand:
    """
    Make a Typer command of a function.

    Args:
        words: The words of the command, e.g. "models list".
        function: Has a parameter *invocation* first, then its own arguments and options as Typer
            annotations. One that is called like a setting (`session`, `seed`) also sets that setting when
            it is given.

    Returns:
        A command that returns the function's Result.
    """

    def run(ctx: typer.Context, **arguments: Any) -> Result:
        check_options(function, ctx)
        options = {name: arguments.pop(name) for name in _OPTIONS}
        return function(_invocation(words, ctx.obj, options, arguments), **arguments)

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
    app.command(words.split()[-1], help=inspect.getdoc(function))(run)
    command = typer.main.get_command(app)
    assert isinstance(command, TyperCommand)
    return command


def _invocation(
    words: str, surroundings: Surroundings, options: Mapping[str, Any], arguments: Mapping[str, Any]
) -> Invocation:
    own_settings = {name: arguments[name] for name in arguments if name in SETTING_NAMES}
    flags = {
        **own_settings,
        "root": options["root"],
        "user": options["user"],
        "wait_seconds": options["wait"],
        "trust": options["trust"] or None,
    }
    settings = load_settings(flags, surroundings.environ, surroundings.cwd)
    guard_links(settings)
    reporter = Reporter(
        stream=sys.stderr,
        quiet=options["quiet"],
        verbosity=options["verbose"],
        color=allows_color(surroundings.environ),
    )
    warnings.showwarning = lambda message, *rest: reporter.warn(str(message))
    return Invocation(
        command=words,
        settings=settings,
        reporter=reporter,
        environ=surroundings.environ,
        stdin=sys.stdin.buffer,
    )
