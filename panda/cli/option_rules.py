"""Which options of a command go together: what would be ignored is wrong usage, before the command runs."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

import typer

from panda.errors import UsageError

_Command = TypeVar("_Command", bound=Callable[..., Any])
_RULES = "__option_rules__"


@dataclass(frozen=True)
class OptionRule:
    """An option that says nothing beside another one, or without it."""

    option: str
    """Parameter of the option that would be ignored."""
    other: str
    """Parameter of the other one."""
    values: tuple[object, ...] | None
    """Values of the other one beside which the option counts; None: it counts without the other."""
    fix: str
    """What to do, where leaving the option out does not say it."""


def excludes(option: str, *others: str, fix: str = "") -> Callable[[_Command], _Command]:
    """
    Mark a command: where one option is given, others would be ignored.

    Args:
        option: A parameter of the command.
        others: Parameters that go not with it.
        fix: What to do instead; "" says to leave one of the two out.
    """
    return _marking([OptionRule(other, option, None, fix) for other in others])


def requires(option: str, other: str, *values: object, fix: str = "") -> Callable[[_Command], _Command]:
    """
    Mark a command: an option counts only where another one has one of these values, given or by default.

    Args:
        option: A parameter of the command.
        other: Another one.
        values: What makes the option count.
        fix: As for excludes.
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
        context: Of its run.
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
