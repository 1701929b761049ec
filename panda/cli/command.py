"""From a plain function to a Typer command, with the options every command has and rules for its own."""

import inspect
import sys
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, TypeVar

import typer
from typer.core import TyperCommand

from panda.cli.completion import complete_users
from panda.cli.contract import Invocation, Reporter, Result
from panda.cli.text import allows_color
from panda.errors import UsageError
from panda.settings import SETTING_NAMES, load_settings
from panda.trust import guard_links

_Command = TypeVar("_Command", bound=Callable[..., Any])
_RULES = "__option_rules__"
_Completion = Callable[..., Any] | None
COMMON_FLAGS = ("--root", "--user", "--wait", "--trust", "--json", "--quiet", "-q", "--verbose", "-v")
"""What can stand behind every command."""


@dataclass(frozen=True)
class OptionRule:
    """An option that says nothing beside another one, or without it."""

    option: str  # parameter of the option that would be ignored
    other: str  # parameter of the other one
    values: tuple[object, ...] | None
    """Values of the other one beside which the option counts; None: it counts without the other."""
    fix: str  # what to do, where leaving the option out does not say it


def excludes(option: str, *others: str, fix: str = "") -> Callable[[_Command], _Command]:
    """
    Mark a command: where one option is given, others would be ignored.

    Args:
        others: Parameters that go not with it.
        fix: What to do instead; "" says to leave one of the two out.
    """
    return _marking([OptionRule(other, option, None, fix) for other in others])


def requires(option: str, other: str, *values: object, fix: str = "") -> Callable[[_Command], _Command]:
    """
    Mark a command: an option counts only where another one has one of these values, given or by default.

    Args:
        values: What makes the option count.
    """
    return _marking([OptionRule(option, other, values, fix)])


def _marking(rules: list[OptionRule]) -> Callable[[_Command], _Command]:
    def mark(command: _Command) -> _Command:
        setattr(command, _RULES, (*rules, *getattr(command, _RULES, ())))
        return command

    return mark


def check_options(command: Callable[..., Any], context: typer.Context) -> None:
    """
    Raises UsageError if what was typed holds an option that the command would ignore.

    Args:
        command: A function marked by *excludes* and *requires*.
    """
    shown = {parameter.name: _shown(parameter) for parameter in context.command.params}
    values: Mapping[str, Any] = context.params
    for rule in getattr(command, _RULES, ()):
        if not _given(context, rule.option):
            continue
        option, other = shown[rule.option], shown[rule.other]
        if rule.values is None and _given(context, rule.other):
            message = f"{option} does not go with {other}"
            raise UsageError(message, where=option, fix=rule.fix or f"leave out {option} or {other}")
        if rule.values is not None and values[rule.other] not in rule.values:
            wanted = " or ".join(other if one is True else f"{other} {one}" for one in rule.values)
            fix = rule.fix or f"leave out {option}"
            raise UsageError(f"{option} goes with {wanted}", where=option, fix=fix)


def _given(context: typer.Context, name: str) -> bool:
    """Whether a parameter was typed on the command line."""
    source = context.get_parameter_source(name)
    return source is not None and source.name == "COMMANDLINE"


def _shown(parameter: Any) -> str:
    """What a user calls a parameter: --option, or the name of an argument."""
    long = [one for one in parameter.opts if one.startswith("--")]
    if long or parameter.opts[0].startswith("-"):
        return str((long or parameter.opts)[0])
    return str(parameter.metavar or parameter.name.upper())


def option(
    help_: str, metavar: str | None = None, *names: str, complete: _Completion = None, **more: Any
) -> Any:
    """An option: its help, what stands for its value, further names, what a shell offers for it."""
    return typer.Option(*names, help=help_, metavar=metavar, autocompletion=complete, **more)


def flag(help_: str, *names: str, **more: Any) -> Any:
    """An option that is given or not."""
    return typer.Option(*names, help=help_, **more)


def argument(help_: str, metavar: str, *, complete: _Completion = None, **more: Any) -> Any:
    """An argument: its help, what stands for it, what a shell offers for it."""
    return typer.Argument(help=help_, metavar=metavar, autocompletion=complete, **more)


_ROOT = option("The store.  [env: PANDA_ROOT; default: ./panda-system-docs]", "DIR", show_default=False)
_USER = option(
    "Whose turns.  [env: PANDA_USER; default: default]", "ID", complete=complete_users, show_default=False
)
_WAIT = option(
    "Wait this long for a lock.  [env: PANDA_WAIT_SECONDS; default: 600]", "SECONDS", show_default=False
)
_TRUST = flag("Let the project's files and the store's links reach out, in this run.", "--trust")
_VERBOSE = flag("Say more on stderr.", "--verbose", "-v", count=True, show_default=False)
_OPTIONS: Mapping[str, tuple[object, object]] = {
    "root": (Annotated[str | None, _ROOT], None),
    "user": (Annotated[str | None, _USER], None),
    "wait": (Annotated[float | None, _WAIT], None),
    "trust": (Annotated[bool, _TRUST], False),
    "json": (Annotated[bool, flag("Print one JSON object.", "--json")], False),
    "quiet": (Annotated[bool, flag("Nothing on stderr but errors.", "--quiet", "-q")], False),
    "verbose": (
        Annotated[int, flag("Say more on stderr.", "--verbose", "-v", count=True, show_default=False)],
        0,
    ),
}


@dataclass(frozen=True)
class Surroundings:
    """What the process gives to every command; travels as the context's object."""

    environ: Mapping[str, str]
    cwd: Path


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
