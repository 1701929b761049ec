"""What a shell offers after Tab: turns, sessions, users, recipes, runs, tools and more. Silent on errors."""

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import suppress
from itertools import chain
from pathlib import Path
from typing import Any

import typer

from panda.errors import PandaError, UntrustedError
from panda.settings import Settings, load_settings, process_environment
from panda.storage.layout import METADATA_JSON, Layout, turn_name
from panda.storage.links import check_links
from panda.storage.names import turn_number
from panda.trust import guard_links, require_trust

_NEWEST = 200
_GOING_ON = {"running", "halted", "interrupted", "gathered"}
_GATHERING = 2


def complete_turns(ctx: typer.Context, incomplete: str) -> list[str]:
    """The turns of the user, as numbers."""
    return _offer(incomplete, (str(number) for settings in _settings(ctx) for number in _turns(settings)))


def complete_unfinished_turns(ctx: typer.Context, incomplete: str) -> list[str]:
    """Those of the newest turns that can be taken up again."""
    unfinished = (
        str(number)
        for settings in _settings(ctx)
        for number, metadata in _newest(settings)
        if metadata.get("status") in _GOING_ON
    )
    return _offer(incomplete, unfinished)


def complete_runs(ctx: typer.Context, incomplete: str) -> list[str]:
    """The runs of the store, newest first, and the words that stand for some."""
    found = (
        path.name for settings in _settings(ctx) for path in reversed(_entries(Layout(settings.root).runs))
    )
    return _offer(incomplete, chain(("last", "saved"), found))


def complete_ungathered_turns(ctx: typer.Context, incomplete: str) -> list[str]:
    """Those of the newest turns whose context is still to be gathered."""
    found = (
        str(number)
        for settings in _settings(ctx)
        for number, metadata in _newest(settings)
        if metadata.get("status") in _GOING_ON and _next_phase(metadata) <= _GATHERING
    )
    return _offer(incomplete, found)


def _next_phase(metadata: Mapping[str, Any]) -> int:
    going_on = metadata.get("next")
    phase = going_on.get("phase") if isinstance(going_on, dict) else None
    return phase if isinstance(phase, int) else _GATHERING + 1


def complete_sessions(ctx: typer.Context, incomplete: str) -> list[str]:
    """The sessions of the user's newest turns."""
    found = (
        str(metadata.get("session_id") or "")
        for settings in _settings(ctx)
        for _, metadata in _newest(settings)
    )
    return _offer(incomplete, found)


def complete_users(ctx: typer.Context, incomplete: str) -> list[str]:
    """The users of the store."""
    names = (
        path.name
        for settings in _settings(ctx)
        for path in _entries(Layout(settings.root).users)
        if path.is_dir()
    )
    return _offer(incomplete, (name for name in names if not name.startswith(".")))


def complete_recipes(ctx: typer.Context, incomplete: str) -> list[str]:
    """The recipes in force, as "pipeline/phase1_reflection"."""
    found = (
        path.relative_to(folder).with_suffix("").as_posix()
        for settings in _settings(ctx)
        for folder in settings.recipe_dirs
        for path in folder.glob("*/*.yaml")
    )
    return _offer(incomplete, found)


def complete_tools(ctx: typer.Context, incomplete: str) -> list[str]:
    """The tools that plans can use."""
    from panda.tools.table import TOOLS

    return _offer(incomplete, iter(TOOLS))


def complete_interventions(ctx: typer.Context, incomplete: str) -> list[str]:
    """All interventions of the store, as ids."""
    return _offer(incomplete, (path.stem for settings in _settings(ctx) for path in _interventions(settings)))


def complete_open_interventions(ctx: typer.Context, incomplete: str) -> list[str]:
    """The interventions that are not resolved, as ids."""
    is_open = (
        path.stem
        for settings in _settings(ctx)
        for path in _interventions(settings)
        if _object(path).get("status") == "open"
    )
    return _offer(incomplete, is_open)


def complete_memory_keys(ctx: typer.Context, incomplete: str) -> list[str]:
    """The keys of the user's preferences and facts."""
    found = (key for settings in _settings(ctx) for key in _memory_keys(settings))
    return _offer(incomplete, found)


def complete_told(ctx: typer.Context, incomplete: str) -> list[str]:
    """What can be forgotten: the keys of the user's memory, then turns."""
    return [*complete_memory_keys(ctx, incomplete), *complete_turns(ctx, incomplete)]


def _memory_keys(settings: Settings) -> Iterator[str]:
    from panda.documents.memory_file import parse_memory_file
    from panda.storage.files import read_text

    layout = Layout(settings.root)
    for path in (layout.preferences(settings.user), layout.facts(settings.user)):
        if path.is_file():
            yield from (entry.key for entry in parse_memory_file(read_text(path), where=str(path)))


def _offer(incomplete: str, values: Iterator[str]) -> list[str]:
    with suppress(PandaError, OSError):
        offered = (value for value in values if value and value.isprintable())  # others can't be typed
        return list(dict.fromkeys(value for value in offered if value.startswith(incomplete)))
    return []


def _settings(ctx: typer.Context) -> Iterator[Settings]:
    """The settings in force, with --root and --user if they were typed before the cursor."""
    flags = {name: ctx.params.get(name) for name in ("root", "user")}
    settings = load_settings(flags, process_environment(), Path.cwd())
    guard_links(settings)
    require_trust(settings, "root")
    yield settings


def _entries(directory: Path) -> list[Path]:
    with os.scandir(directory) as entries:
        return sorted(Path(entry.path) for entry in entries)


def _turns(settings: Settings) -> list[int]:
    """Numbers of all turns, newest first."""
    found = (turn_number(path.name) for path in _entries(Layout(settings.root).turns(settings.user)))
    return sorted((number for number in found if number is not None), reverse=True)


def _newest(settings: Settings) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """Numbers and metadata of the newest turns, as the files say it, unchecked."""
    for number in _turns(settings)[:_NEWEST]:
        directory = Layout(settings.root).turns(settings.user) / turn_name(number)
        yield number, _object(directory / METADATA_JSON)


def _interventions(settings: Settings) -> list[Path]:
    directory = Layout(settings.root).interventions
    return [path for path in _entries(directory) if path.suffix == ".json" and not path.name.startswith(".")]


def _object(path: Path) -> Mapping[str, Any]:
    with suppress(OSError, ValueError, RecursionError, UntrustedError):
        check_links(path)
        value = json.loads(path.read_bytes()) if path.is_file() else None
        if isinstance(value, dict):
            return value
    return {}
