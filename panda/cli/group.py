"""A group of commands whose modules are imported when they are called, not for --help."""

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module

import typer
from typer.core import TyperCommand, TyperGroup

from panda.cli.command import build_command


@dataclass(frozen=True)
class Entry:
    """One command of the table."""

    words: str
    """What the user types, e.g. "models list"."""
    target: str
    """Where its function is, "module:function"."""
    help: str
    """One line for `panda --help`."""


class LazyCommand(TyperCommand):
    """Stands for a command in --help and completion until it is called."""

    def __init__(self, entry: Entry) -> None:
        super().__init__(entry.words.split()[-1], help=entry.help, rich_markup_mode=None)
        self.entry = entry

    def load(self) -> TyperCommand:
        """The real command."""
        module, function = self.entry.target.split(":")
        return build_command(self.entry.words, getattr(import_module(module), function))


class LazyGroup(TyperGroup):
    """Resolves a command by importing its module."""

    def resolve_command(self, ctx: typer.Context, args: list[str]):  # type: ignore[no-untyped-def,override]  # Typer's own types are private
        name, command, rest = super().resolve_command(ctx, args)
        return name, command.load() if isinstance(command, LazyCommand) else command, rest


def fill_group(group: TyperGroup, entries: tuple[Entry, ...], group_help: Mapping[str, str]) -> None:
    """
    Put a table's commands into a group, those of two words into groups of their own.

    Args:
        group: The group of the whole program.
        entries: The commands, in the order in which --help shows them.
        group_help: First word to help line, for every first word of two.
    """
    for entry in entries:
        first, *more = entry.words.split()
        if not more:
            group.add_command(LazyCommand(entry))
            continue
        inner = group.commands.get(first)
        if not isinstance(inner, LazyGroup):
            inner = LazyGroup(name=first, help=group_help[first], rich_markup_mode=None)
            group.add_command(inner)
        inner.add_command(LazyCommand(entry))
