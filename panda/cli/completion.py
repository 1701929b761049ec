"""
What a shell offers after Tab: turns, sessions, users, recipes, runs, tools and more.

Which of these words a shell gets is decided in panda/cli/shells.py.
"""

import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import typer

from panda.addon_registry import recipe_directories
from panda.errors import Problem, UntrustedError
from panda.settings import Settings, load_settings, process_environment
from panda.store.files import check_links
from panda.store.layout import LAST, METADATA_JSON, Layout, is_id, turn_name, turn_number
from panda.trust import guard_links, require_owners, require_trust

_NEWEST = 200
_GOING_ON = {"running", "halted", "interrupted", "gathered"}
_GATHERING = 2
Completion = Callable[[typer.Context, str], list[str]]


def _completion(find: Callable[[Settings], Iterable[str]]) -> Completion:
    """Offers what is found under the settings in force, with --root and --user typed before the cursor."""

    def complete(ctx: typer.Context, incomplete: str) -> list[str]:
        with suppress(Problem, OSError):
            flags = {name: ctx.params.get(name) for name in ("root", "user")}
            settings = load_settings(flags, process_environment(), Path.cwd())
            guard_links(settings)
            require_owners(settings)
            require_trust(settings, "root")
            return list(dict.fromkeys(value for value in find(settings) if value.startswith(incomplete)))
        return []

    return complete


@_completion
def complete_turns(settings: Settings) -> Iterator[str]:
    """The turns of the user, as numbers, newest first, and the word for the newest."""
    yield from map(str, _turns(settings))
    yield LAST


@_completion
def complete_unfinished_turns(settings: Settings) -> Iterator[str]:
    """Those of the newest turns that can be taken up again."""
    return (str(number) for number, it in _newest(settings) if it.get("status") in _GOING_ON)


@_completion
def complete_ungathered_turns(settings: Settings) -> Iterator[str]:
    """Those of the newest turns whose context is still to be gathered."""
    for number, metadata in _newest(settings):
        going_on = metadata.get("next")
        phase = going_on.get("phase") if isinstance(going_on, dict) else None
        if metadata.get("status") in _GOING_ON and isinstance(phase, int) and phase <= _GATHERING:
            yield str(number)


@_completion
def complete_turns_and_runs(settings: Settings) -> Iterator[str]:
    """The turns of the user, as numbers, then the runs of the store, newest first."""
    yield from map(str, _turns(settings))
    yield LAST
    yield from (path.name for path in reversed(_entries(Layout(settings.root).runs)))


@_completion
def complete_runs(settings: Settings) -> Iterator[str]:
    """The words that stand for some runs, and the runs of the store, newest first."""
    yield from (LAST, "saved")
    yield from (path.name for path in reversed(_entries(Layout(settings.root).runs)))


@_completion
def complete_sessions(settings: Settings) -> Iterator[str]:
    """The sessions of the user's newest turns."""
    sessions = (str(metadata.get("session_id")) for _, metadata in _newest(settings))
    return (session for session in sessions if is_id(session))


@_completion
def complete_users(settings: Settings) -> Iterator[str]:
    """The users of the store."""
    paths = _entries(Layout(settings.root).users)
    return (path.name for path in paths if is_id(path.name) and path.is_dir())


@_completion
def complete_formats(settings: Settings) -> Iterator[str]:
    """The files that have a schema."""
    from panda.store.records import FORMATS

    yield from FORMATS


@_completion
def complete_recipes(settings: Settings) -> Iterator[str]:
    """The recipes in force, as "pipeline/phase1_reflection"."""
    for folder in (*settings.recipe_dirs, *recipe_directories()):
        for path in folder.glob("*/*.yaml"):
            yield path.relative_to(folder).with_suffix("").as_posix()


def complete_tools(ctx: typer.Context, incomplete: str) -> list[str]:
    """The tools that plans can use."""
    from panda.tools.table import TOOLS

    return [name for name in TOOLS if name.startswith(incomplete)]


@_completion
def complete_models(settings: Settings) -> Iterator[str]:
    """The models of models.yaml that write, and the word for none."""
    from panda.trust import load_models

    models = load_models(settings).models
    yield from (name for name, spec in models.items() if not spec.embeds)
    yield "offline"


def complete_layers(ctx: typer.Context, incomplete: str) -> list[str]:
    """The layers of models.yaml."""
    from panda.models.models_file import LAYERS

    return [name for name in LAYERS if name.startswith(incomplete.upper())]


def complete_model_sources(ctx: typer.Context, incomplete: str) -> list[str]:
    """Return the prefixes of model sources, and the model files of this directory and of models/."""
    files = (path for directory in (Path(), Path("models")) for path in directory.glob("*.gguf"))
    words = ["ollama:", "http://", "hf:", *sorted(map(str, files))]
    return [word for word in words if word.startswith(incomplete)]


@_completion
def complete_interventions(settings: Settings) -> Iterator[str]:
    """All interventions of the store, as ids."""
    return (path.stem for path in _interventions(settings))


@_completion
def complete_open_interventions(settings: Settings) -> Iterator[str]:
    """The interventions that are not resolved, as ids."""
    return (path.stem for path in _interventions(settings) if _object(path).get("status") == "open")


@_completion
def complete_memory_keys(settings: Settings) -> Iterator[str]:
    """The keys of the user's preferences and facts."""
    from panda.documents.memory_file import parse_memory_file
    from panda.store.files import read_text

    layout = Layout(settings.root)
    for path in (layout.of(settings.user).preferences, layout.of(settings.user).facts):
        if path.is_file():
            yield from (entry.key for entry in parse_memory_file(read_text(path), where=str(path)))


def complete_told(ctx: typer.Context, incomplete: str) -> list[str]:
    """Return what can be forgotten: the keys of the user's memory, then turns."""
    numbers = (word for word in complete_turns(ctx, incomplete) if word != LAST)
    return [*complete_memory_keys(ctx, incomplete), *numbers]


def _entries(directory: Path) -> list[Path]:
    with os.scandir(directory) as entries:
        return sorted(Path(entry.path) for entry in entries)


def _turns(settings: Settings) -> list[int]:
    """Numbers of all turns, newest first."""
    numbers = (turn_number(path.name) for path in _entries(Layout(settings.root).of(settings.user).turns))
    return sorted((number for number in numbers if number is not None), reverse=True)


def _newest(settings: Settings) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """Numbers and metadata of the newest turns, as the files say it, unchecked."""
    for number in _turns(settings)[:_NEWEST]:
        directory = Layout(settings.root).of(settings.user).turns / turn_name(number)
        yield number, _object(directory / METADATA_JSON)


def _interventions(settings: Settings) -> list[Path]:
    paths = _entries(Layout(settings.root).interventions)
    return [path for path in paths if path.suffix == ".json" and not path.name.startswith(".")]


def _object(path: Path) -> Mapping[str, Any]:
    with suppress(OSError, ValueError, RecursionError, UntrustedError):
        check_links(path)
        value = json.loads(path.read_bytes()) if path.is_file() else None
        if isinstance(value, dict):
            return value
    return {}
