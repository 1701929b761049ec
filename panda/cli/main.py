"""The program `panda`: its table of commands, imported when they are called, and its entry point."""

import os
import signal
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from io import TextIOWrapper
from pathlib import Path
from typing import Annotated

import typer
from typer.core import TyperCommand, TyperGroup

from panda.cli.boundary import run
from panda.cli.command import build_command, flag
from panda.cli.shells import use_safe_scripts
from panda.settings import process_environment
from panda.store.files import interrupt

_ABOUT = "Answer questions from plain files, every claim bound to a file on disk."


@dataclass(frozen=True)
class Entry:
    """One command of the table."""

    words: str  # what the user types, e.g. "models list".
    target: str  # where its function is, "module:function"
    help: str  # one line for `panda --help`


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
    Put a table's commands into a group in their order, those of two words into groups of their own, which
    *group_help* has a line for.
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


COMMANDS = (
    Entry("init", "panda.cli.store:init", "Create a store; with --demo, one with a demo user's turns."),
    Entry("turn", "panda.cli.turn:turn", "Answer a query from the store."),
    Entry("gather", "panda.cli.turn:gather", "Gather the context of a turn and stop."),
    Entry("batch", "panda.cli.batch:batch", "Run many queries, each exactly once."),
    Entry("replay", "panda.cli.replay:replay", "Run saved turns again, and compare."),
    Entry("diff", "panda.cli.replay:diff", "Compare two runs, or a run and the saved turns."),
    Entry("list", "panda.cli.turn:list_turns", "List the saved turns of a user."),
    Entry("show", "panda.cli.turn:show", "Show a turn, one section of it, or one of its files."),
    Entry("view", "panda.cli.view:view", "Look at turns and what they rest on in the browser."),
    Entry("export", "panda.cli.history:export", "Take saved turns out: queries, JSON lines, a transcript."),
    Entry("import", "panda.cli.history:import_file", "Save turns from JSON lines, ChatGPT, Claude or llm."),
    Entry("forget", "panda.cli.forget:forget", "Forget what was told, in every file."),
    Entry("validate", "panda.cli.store:validate", "Check the store, recipes, prompts and models.yaml."),
    Entry("schema", "panda.cli.store:schema", "Show what a file may hold."),
    Entry("synthesize", "panda.cli.serve:synthesize_scope", "Show what is known now, with contradictions."),
    Entry("serve", "panda.cli.serve:serve", "Answer requests for a synthesis over HTTP."),
    Entry("mcp", "panda.cli.serve:mcp", "Serve tools and resources to MCP clients."),
    Entry("compress", "panda.cli.compress:compress", "Bring a document down to a number of tokens."),
    Entry("eval", "panda.cli.eval:eval_recipes", "Measure replies on labelled cases."),
    Entry("memory list", "panda.cli.memory:list_all", "List what is remembered."),
    Entry("memory get", "panda.cli.memory:get", "Print the value that is remembered under a key."),
    Entry("memory set", "panda.cli.memory:set_value", "Remember a value."),
    Entry("memory retract", "panda.cli.memory:retract", "Take back what is remembered under a key."),
    Entry("memory history", "panda.cli.memory:history", "Show all that was ever said under a key."),
    Entry("memory conflicts", "panda.cli.memory:conflicts", "List contradictions."),
    Entry("memory resolve", "panda.cli.memory:resolve_conflict", "Settle a contradiction."),
    Entry("memory lint", "panda.cli.memory:lint", "Check the memory for what needs a look."),
    Entry("memory reflect", "panda.cli.memory:reflect", "Propose facts from the last turns."),
    Entry("memory merge", "panda.cli.memory:merge", "Add another machine's facts."),
    Entry("recipe list", "panda.cli.recipe:list_recipes", "List the recipes in force."),
    Entry("recipe show", "panda.cli.recipe:show", "Show a recipe."),
    Entry(
        "recipe render", "panda.cli.recipe:render", "Show what a recipe sends to its model for a saved turn."
    ),
    Entry("recipe history", "panda.cli.recipe:history", "Show the versions of a recipe."),
    Entry("recipe eject", "panda.cli.recipe:eject", "Copy a recipe into the project, to be edited."),
    Entry("recipe compare", "panda.cli.recipe:compare", "Run saved turns with two versions."),
    Entry("recipe failures", "panda.cli.recipe:failures", "Show where a recipe failed."),
    Entry("index rebuild", "panda.cli.index:rebuild", "Bring the index in line with the files."),
    Entry("index search", "panda.cli.index:search", "Show what the index finds for a query."),
    Entry("index status", "panda.cli.index:status", "Say whether the index is fresh."),
    Entry("tool list", "panda.cli.tool:list_tools", "List the tools that plans can use."),
    Entry("tool run", "panda.cli.tool:run", "Run one tool by hand."),
    Entry("intervention list", "panda.cli.intervention:list_all", "List what halted and is still open."),
    Entry("intervention show", "panda.cli.intervention:show", "Show what halted, and what can be done."),
    Entry("intervention resolve", "panda.cli.intervention:resolve", "Mark an intervention as resolved."),
    Entry("log", "panda.cli.log:log", "Show the recipes that ran: when, how long, how many tokens."),
    Entry("session list", "panda.cli.session:list_all", "List the sessions of a user."),
    Entry("session show", "panda.cli.session:show", "Show what the next turn of a session will know."),
    Entry("session close", "panda.cli.session:close", "Close a session to further turns."),
    Entry("session verify", "panda.cli.session:verify", "Compare sessions with the files of their turns."),
    Entry("stats", "panda.cli.log:stats", "Add up the log: validity, confidence, latency, tokens."),
    Entry("trust", "panda.cli.settings:trust", "Let the project's files and links reach out."),
    Entry("config show", "panda.cli.settings:show", "Show every setting and where it came from."),
    Entry("models list", "panda.cli.models:list_models", "List the models and the layers they serve."),
    Entry("models add", "panda.cli.models_add:add", "Add a model of a server or a file, and give it layers."),
    Entry("models migrate", "panda.cli.models:migrate", "Rewrite a models.yaml of an earlier version."),
    Entry(
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


def build_program() -> TyperGroup:
    """The group of all commands."""
    use_safe_scripts()
    app = typer.Typer(
        cls=LazyGroup, help=_ABOUT, rich_markup_mode=None, pretty_exceptions_enable=False, add_completion=True
    )
    app.callback(context_settings={"help_option_names": ["--help", "-h"]})(_program)
    group = typer.main.get_command(app)
    assert isinstance(group, TyperGroup)
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
