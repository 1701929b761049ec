"""
What add-ons bring to the program.

An add-on is a package with a manifest: a value `ADDON` that names what it adds to the tables of the core.
Some come with panda, in panda/addons/; others are installed beside it, and name their manifest in the
entry-point group `panda.addons`. The core imports no add-on: it asks here for what its tables do not have.
"""

import logging
import os
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

from msgspec import Struct

from panda.errors import AddonError

GROUP = "panda.addons"
"""The group of entry points in which an installed package names its manifest."""
_PACKAGED = Path(__file__).parent / "addons"


class CommandEntry(Struct, frozen=True):
    """A line of the table of commands."""

    words: str  # what the user types, e.g. "models list"
    target: str  # where its function is, "module:function"
    help: str  # one line for `panda --help`
    after: str | None = None  # the words of the command that it follows in `panda --help`; None: at the end


class Addon(Struct, frozen=True, kw_only=True):
    """
    The manifest of an add-on.

    A target is "module:name". It is imported when it is needed, so that a manifest imports nothing but this.
    """

    name: str
    commands: tuple[CommandEntry, ...] = ()
    group_help: Mapping[str, str] = {}  # by first word of commands of two words
    tools: str | None = None  # target of a sequence of tools, see panda/tools/tool_contract.py
    steps: str | None = None  # target of a sequence of step contracts, see panda/steps/step_contract.py
    recipe_directory: Path | None = None  # holds CATEGORY/NAME.yaml, and registry.yaml for what they serve
    prompt_directory: Path | None = None  # holds CATEGORY/NAME.md
    workspace: str | None = (
        None  # target that opens what code mode works on, see OpenWorkspace in panda/app.py
    )
    engines: Mapping[str, str] = {}
    """Target by engine of `panda batch`: connects to a cluster, see Cluster in panda/runs/cluster.py."""
    page_browser: str | None = None
    """Target that opens pages as their scripts make them, see OpenBrowser in panda/web/page_browser.py."""


def already_there(addon: Addon, what: str) -> AddonError:
    """Return the error that an add-on adds what the core or another add-on has already."""
    message = f"the add-on {addon.name} adds {what}, which is there already"
    fix = "uninstall it, or the other one that has this"
    return AddonError(message, where=f"add-on {addon.name}", fix=fix)


@cache
def warn_of(problem: AddonError) -> None:
    """Tell once of something that an add-on cannot add; the rest of the program goes on without it."""
    logging.getLogger(__name__).warning(problem.told)


def load_target(target: str) -> Any:
    """Return what "module:name" names. AddonError: there is no such module or name."""
    module_name, _, name = target.partition(":")
    try:
        return getattr(import_module(module_name), name)
    except (ImportError, AttributeError) as exc:
        fix = "install panda, or the add-on that this belongs to, again"
        raise AddonError(f"{target} cannot be loaded: {exc}", where=target, fix=fix) from exc


@cache
def load_addons() -> tuple[Addon, ...]:
    """
    Return the manifests of all add-ons: those that come with panda, by name, then those that are installed.

    An installed one that cannot be loaded is left out, see find_broken_addons.
    """
    packaged = [_load_packaged(path.parent.name) for path in sorted(_PACKAGED.glob("*/__init__.py"))]
    return (*packaged, *(item for item in _load_installed() if isinstance(item, Addon)))


def find_broken_addons() -> list[AddonError]:
    """Return why installed add-ons could not be loaded, an error each."""
    return [item for item in _load_installed() if isinstance(item, AddonError)]


def _load_packaged(name: str) -> Addon:
    addon: Addon = import_module(f"panda.addons.{name}").ADDON
    return addon


@cache
def _load_installed() -> tuple[Addon | AddonError, ...]:
    return tuple(_import_installed())


def _import_installed() -> Iterator[Addon | AddonError]:
    if not _names_group(sys.path):
        return
    from importlib.metadata import entry_points  # takes a quarter of the time of `panda --help`

    for entry in sorted(entry_points(group=GROUP), key=lambda entry: entry.name):
        package = entry.dist.name if entry.dist is not None else entry.name
        fix = f"install another version of {package}, or remove it: pip uninstall {package}"
        try:
            addon = entry.load()
        except (ImportError, AttributeError, TypeError, SyntaxError) as exc:
            message = f"the add-on {entry.name} of {package} cannot be loaded: {exc}"
            yield AddonError(message, where=entry.value, fix=fix)
            continue
        if isinstance(addon, Addon):
            yield addon
        else:
            message = f"the add-on {entry.name} of {package} is a {type(addon).__name__}, not an Addon"
            yield AddonError(message, where=entry.value, fix=fix)


def _names_group(directories: Iterable[str]) -> bool:
    """Return whether an installed package has entry points of the group; importlib.metadata loads slowly."""
    heading = f"[{GROUP}]".encode()
    for directory in directories:
        with suppress(OSError), os.scandir(directory) as entries:
            for entry in entries:
                if entry.name.endswith((".dist-info", ".egg-info")):
                    with suppress(OSError), Path(entry.path, "entry_points.txt").open("rb") as file:
                        if heading in file.read():
                            return True
    return False


def find_engine(name: str) -> Any | None:
    """Return what connects to a cluster for an engine of `panda batch`; None if no add-on has it."""
    target = next((addon.engines[name] for addon in load_addons() if name in addon.engines), None)
    return None if target is None else load_target(target)


def engine_names() -> list[str]:
    """Return the engines of `panda batch` that add-ons have."""
    return [name for addon in load_addons() for name in addon.engines]


def find_page_browser() -> Any | None:
    """Return what opens pages as their scripts make them, see OpenBrowser; None if no add-on does."""
    target = next((addon.page_browser for addon in load_addons() if addon.page_browser is not None), None)
    return None if target is None else load_target(target)


def find_workspace() -> Any | None:
    """Return what opens the files that code mode works on, see OpenWorkspace; None if no add-on does."""
    target = next((addon.workspace for addon in load_addons() if addon.workspace is not None), None)
    return None if target is None else load_target(target)


def mode_names() -> list[str]:
    """Return the modes that turns can have."""
    return ["chat"] if find_workspace() is None else ["chat", "code"]


def recipe_directories() -> list[Path]:
    """Return the directories of recipes of all add-ons."""
    return [addon.recipe_directory for addon in load_addons() if addon.recipe_directory is not None]


def prompt_directories() -> list[Path]:
    """Return the directories of prompts of all add-ons."""
    return [addon.prompt_directory for addon in load_addons() if addon.prompt_directory is not None]
