"""The program `panda`: its table of commands, imported when they are called, and its entry point."""

import os
import signal
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from io import TextIOWrapper
from pathlib import Path
from typing import Annotated

import typer
from typer.core import TyperCommand, TyperGroup

from panda.addon_registry import CommandEntry, already_there, find_broken_addons, load_addons, load_target
from panda.cli.boundary import run
from panda.cli.command import build_command, flag
from panda.cli.shells import use_safe_scripts
from panda.errors import AddonError
from panda.settings import process_environment
from panda.store.files import interrupt

_ABOUT = "Answer questions from plain files, every claim bound to a file on disk."


class LazyCommand(TyperCommand):
    """Stands for a command in --help and completion until it is called."""

    def __init__(self, entry: CommandEntry) -> None:
        super().__init__(entry.words.split()[-1], help=entry.help, rich_markup_mode=None)
        self.entry = entry

    def load(self) -> TyperCommand:
        """The real command."""
        return build_command(self.entry.words, load_target(self.entry.target))


class LazyGroup(TyperGroup):
    """Resolves a command by importing its module, and loads add-ons for one that the core does not have."""

    add_addons: Callable[[], None] = staticmethod(lambda: None)
    """Adds the commands of add-ons to the program, once."""

    def resolve_command(self, ctx: typer.Context, args: list[str]):  # type: ignore[no-untyped-def,override]  # Typer's own types are private
        name, command, rest = super().resolve_command(ctx, args)
        return name, command.load() if isinstance(command, LazyCommand) else command, rest

    def get_command(self, ctx: typer.Context, cmd_name: str):  # type: ignore[no-untyped-def,override]  # as above
        if cmd_name not in self.commands:
            self.add_addons()
        return super().get_command(ctx, cmd_name)

    def list_commands(self, ctx: typer.Context) -> list[str]:  # type: ignore[override]  # as above
        self.add_addons()
        return super().list_commands(ctx)


def fill_group(group: LazyGroup, entries: Sequence[CommandEntry], group_help: Mapping[str, str]) -> None:
    """
    Have a group hold a table's commands in their order, those of two words in groups of their own, which
    *group_help* has a line for. Groups that are there already stay.
    """
    inner_groups = {name: inner for name, inner in group.commands.items() if isinstance(inner, LazyGroup)}
    group.commands.clear()
    for inner in inner_groups.values():
        inner.commands.clear()
    for entry in entries:
        first, *more = entry.words.split()
        if not more:
            group.add_command(LazyCommand(entry))
            continue
        if first not in inner_groups:
            inner_groups[first] = LazyGroup(name=first, help=group_help.get(first), rich_markup_mode=None)
            inner_groups[first].add_addons = group.add_addons
        group.commands[first] = inner_groups[first]
        inner_groups[first].add_command(LazyCommand(entry))


COMMANDS = (
    CommandEntry(
        "init", "panda.cli.store:init", "Create a store; with --demo, one with a demo user's turns."
    ),
    CommandEntry("turn", "panda.cli.turn:turn", "Answer a query from the store."),
    CommandEntry("gather", "panda.cli.turn:gather", "Gather the context of a turn and stop."),
    CommandEntry("batch", "panda.cli.batch:batch", "Run many queries, each exactly once."),
    CommandEntry("replay", "panda.cli.replay:replay", "Run saved turns again, and compare."),
    CommandEntry("diff", "panda.cli.replay:diff", "Compare two runs, or a run and the saved turns."),
    CommandEntry("list", "panda.cli.turn:list_turns", "List the saved turns of a user."),
    CommandEntry("show", "panda.cli.turn:show", "Show a turn, one section of it, or one of its files."),
    CommandEntry("forget", "panda.cli.forget:forget", "Forget what was told, in every file."),
    CommandEntry(
        "validate", "panda.cli.store:validate", "Check the store, recipes, prompts and models.yaml."
    ),
    CommandEntry("schema", "panda.cli.store:schema", "Show what a file may hold."),
    CommandEntry(
        "synthesize", "panda.cli.synthesize:synthesize_scope", "Show what is known now, with contradictions."
    ),
    CommandEntry(
        "compress", "panda.cli.compress:compress_document", "Bring a document down to a number of tokens."
    ),
    CommandEntry("eval", "panda.cli.eval:eval_recipes", "Measure replies on labelled cases."),
    CommandEntry("memory list", "panda.cli.memory:list_all", "List what is remembered."),
    CommandEntry("memory get", "panda.cli.memory:get", "Print the value that is remembered under a key."),
    CommandEntry("memory set", "panda.cli.memory:set_value", "Remember a value."),
    CommandEntry("memory retract", "panda.cli.memory:retract", "Take back what is remembered under a key."),
    CommandEntry("memory history", "panda.cli.memory:history", "Show all that was ever said under a key."),
    CommandEntry("memory conflicts", "panda.cli.memory:conflicts", "List contradictions."),
    CommandEntry("memory resolve", "panda.cli.memory:resolve_conflict", "Settle a contradiction."),
    CommandEntry("memory lint", "panda.cli.memory:lint", "Check the memory for what needs a look."),
    CommandEntry("memory reflect", "panda.cli.memory:reflect_on_turns", "Propose facts from the last turns."),
    CommandEntry("memory merge", "panda.cli.memory:merge", "Add another machine's facts."),
    CommandEntry("recipe list", "panda.cli.recipe:list_recipes", "List the recipes in force."),
    CommandEntry("recipe show", "panda.cli.recipe:show", "Show a recipe."),
    CommandEntry(
        "recipe render", "panda.cli.recipe:render", "Show what a recipe sends to its model for a saved turn."
    ),
    CommandEntry("recipe history", "panda.cli.recipe:history", "Show the versions of a recipe."),
    CommandEntry("recipe eject", "panda.cli.recipe:eject", "Copy a recipe into the project, to be edited."),
    CommandEntry("recipe compare", "panda.cli.recipe:compare", "Run saved turns with two versions."),
    CommandEntry("recipe failures", "panda.cli.recipe:failures", "Show where a recipe failed."),
    CommandEntry("index rebuild", "panda.cli.index:rebuild", "Bring the index in line with the files."),
    CommandEntry("index search", "panda.cli.index:search_nodes", "Show what the index finds for a query."),
    CommandEntry("index status", "panda.cli.index:status", "Say whether the index is fresh."),
    CommandEntry("tool list", "panda.cli.tool:list_tools", "List the tools that plans can use."),
    CommandEntry("tool run", "panda.cli.tool:run", "Run one tool by hand."),
    CommandEntry(
        "intervention list", "panda.cli.intervention:list_all", "List what halted and is still open."
    ),
    CommandEntry(
        "intervention show", "panda.cli.intervention:show", "Show what halted, and what can be done."
    ),
    CommandEntry(
        "intervention resolve", "panda.cli.intervention:resolve", "Mark an intervention as resolved."
    ),
    CommandEntry("log", "panda.cli.log:log", "Show the recipes that ran: when, how long, how many tokens."),
    CommandEntry("session list", "panda.cli.session:list_all", "List the sessions of a user."),
    CommandEntry("session show", "panda.cli.session:show", "Show what the next turn of a session will know."),
    CommandEntry("session close", "panda.cli.session:close", "Close a session to further turns."),
    CommandEntry(
        "session verify", "panda.cli.session:verify", "Compare sessions with the files of their turns."
    ),
    CommandEntry("stats", "panda.cli.log:stats", "Add up the log: validity, confidence, latency, tokens."),
    CommandEntry("trust", "panda.cli.config:trust", "Let the project's files and links reach out."),
    CommandEntry("config show", "panda.cli.config:show", "Show every setting and where it came from."),
    CommandEntry("models list", "panda.cli.models:list_models", "List the models and the layers they serve."),
    CommandEntry(
        "models add", "panda.cli.models_add:add", "Add a model of a server or a file, and give it layers."
    ),
    CommandEntry(
        "models migrate", "panda.cli.models:migrate", "Rewrite a models.yaml of an earlier version."
    ),
    CommandEntry(
        "models check",
        "panda.cli.models:check",
        "Use each model once: whether it is there, its speed, its JSON.",
    ),
)

GROUP_HELP = {
    "config": "The settings in force.",
    "intervention": "What halted, and how it was resolved.",
    "index": "The index by which turns find what is saved.",
    "memory": "Preferences and facts: what is remembered.",
    "models": "The models of models.yaml.",
    "session": "What a conversation carries from turn to turn.",
    "tool": "The tools that plans can use.",
    "recipe": "The recipes: one file for one model call.",
}


def list_commands() -> list[CommandEntry]:
    """Return the commands of the core and of all add-ons, in the order of `panda --help`."""
    entries, _ = _merge_commands()
    return entries


def _merge_commands() -> tuple[list[CommandEntry], list[AddonError]]:
    """Return all commands in their order, and an error for each that is left out: it is there already."""
    entries = list(COMMANDS)
    refused: list[AddonError] = []
    for addon in load_addons():
        for added in addon.commands:
            words = [entry.words for entry in entries]
            if added.words in words:
                refused.append(already_there(addon, f"`panda {added.words}`"))
                continue
            place = words.index(added.after) + 1 if added.after in words else len(entries)
            entries.insert(place, added)
    return entries, refused


def build_program() -> TyperGroup:
    """The group of all commands; those of add-ons are added when one is asked for, or all are."""
    use_safe_scripts()
    app = typer.Typer(
        cls=LazyGroup, help=_ABOUT, rich_markup_mode=None, pretty_exceptions_enable=False, add_completion=True
    )
    app.callback(context_settings={"help_option_names": ["--help", "-h"]})(_program)
    group = typer.main.get_command(app)
    assert isinstance(group, LazyGroup)

    @cache
    def add_addons() -> None:
        entries, refused = _merge_commands()
        group_help = {first: text for addon in load_addons() for first, text in addon.group_help.items()}
        fill_group(group, entries, {**group_help, **GROUP_HELP})
        problems = [*find_broken_addons(), *refused]
        if problems:
            group.epilog = "\n\n".join(f"Not loaded: {problem.told}" for problem in problems)

    group.add_addons = add_addons
    fill_group(group, COMMANDS, GROUP_HELP)
    return group


def main() -> None:
    """Run the command line of this process and exit with its code."""
    signal.signal(signal.SIGINT, interrupt)
    signal.signal(signal.SIGTERM, interrupt)
    _prepare_streams()
    sys.exit(run(build_program(), sys.argv[1:], process_environment()))


def _prepare_streams() -> None:
    """Make the three streams usable whatever the shell did: a closed one is empty, a pipe speaks UTF-8."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        stream = getattr(sys, name) or Path(os.devnull).open(mode, encoding="utf-8")  # noqa: SIM115  # stays open
        if mode == "w":
            encoding = None if stream.isatty() else "utf-8"
            assert isinstance(stream, TextIOWrapper)
            stream.reconfigure(encoding=encoding, errors="backslashreplace")
        setattr(sys, name, stream)


def _show_version(asked: bool) -> None:
    if asked:
        from panda.cli.version import describe_version

        typer.echo(f"panda {describe_version()}")
        raise typer.Exit


def _program(
    version: Annotated[
        bool, flag("Print the version and stop.", "--version", is_eager=True, callback=_show_version)
    ] = False,
) -> None:
    pass
