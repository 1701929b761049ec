"""Recipes and prompts by name: loading, registry, and the recipe for a phase and mode (S3 §9, §17, §18)."""

import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path, PurePosixPath
from typing import Any, Literal, get_args

from panda.addon_registry import prompt_directories, recipe_directories
from panda.documents.record_codec import Words, decode
from panda.documents.safe_text import nearest
from panda.documents.yaml_text import load_yaml
from panda.errors import (
    FileFormatError,
    Location,
    PromptNotFoundError,
    RecipeError,
    RecipeKeyError,
    RecipeNotFoundError,
    StoreError,
)
from panda.models.models_file import OFFLINE, ModelsFile
from panda.offline.support import why_not_offline
from panda.recipes.recipe_file import Recipe, parse_recipe
from panda.steps.all_steps import STEPS
from panda.steps.step_contract import NO_CONTRACT, StepContract
from panda.store.files import FileStamp, read_text, stamp_file
from panda.store.layout import asset
from panda.store.records import Intent

REMOVED_RECIPES: Mapping[str, str] = {"pipeline/phase7_session": "pipeline/phase7_summarizer"}
"""Recipes of earlier versions, and which one does their work now."""


def read_own_text(path: Path) -> str:
    """Text of a recipe or prompt file; RecipeError: it is not UTF-8; StoreError: it cannot be read."""
    try:
        return read_text(path)
    except FileFormatError as exc:
        raise RecipeError(exc.message, exc.path, line=exc.line, fix=exc.fix) from exc


@dataclass(frozen=True)
class RegistryEntry:
    """Which recipe serves a step of the pipeline."""

    step: str  # step, e.g. "phase3_planner"
    recipes: Mapping[Literal["any", "chat", "code", Intent], Words]
    """Recipe key by mode, or of chat mode by the query's intent; the mode "any" serves every mode."""
    purpose: Words  # what the call decides
    risk: Literal["low", "medium", "high"]  # what a wrong reply costs

    def keys(self, mode: str) -> dict[str, str]:
        """The recipes that may serve a mode, by what routes to them; the last that fits a query counts."""
        names: tuple[str, ...] = ("any", mode)
        if mode == "chat":
            names += get_args(Intent)
        recipes: Mapping[Any, str] = self.recipes
        return {name: recipes[name] for name in names if name in recipes}


class RecipeBook:
    """
    The recipes (`{category}/{name}.yaml`) and prompts (`{category}/{name}.md`) of a project; of the folders
    the first that has a file counts: a project's own before the packaged ones.
    """

    def __init__(self, recipe_dirs: Sequence[Path], prompt_dirs: Sequence[Path]) -> None:
        self._recipe_dirs = tuple(recipe_dirs)
        self._prompt_dirs = tuple(prompt_dirs)
        self._recipes: dict[str, Recipe] = {}
        self._prompts: dict[str, str] = {}
        self._core_registry: tuple[RegistryEntry, ...] | None = None
        self._registry: tuple[RegistryEntry, ...] | None = None

    @property
    def folders(self) -> tuple[Path, ...]:
        """The folders of recipes and of prompts, those of add-ons last."""
        own = (*self._recipe_dirs, *self._prompt_dirs)
        return (*own, *recipe_directories(), *prompt_directories())

    def recipe_keys(self) -> list[str]:
        """Names of all recipes, sorted."""
        return sorted(
            {
                path.relative_to(folder).with_suffix("").as_posix()
                for folder in (*self._recipe_dirs, *recipe_directories())
                for path in folder.glob("*/*.yaml")
            }
        )

    def load_recipe(self, key: str) -> Recipe:
        """
        The recipe of a name such as "pipeline/phase3_planner_chat"; PromptNotFoundError if it names a prompt
        file that is not there.
        """
        if key not in self._recipes:
            recipe, faults = self._read(key)
            for fault in faults:
                raise fault
            self._recipes[key] = recipe
        return self._recipes[key]

    def load_prompt(self, name: str, *, where: str) -> str:
        """
        The text of a prompt file, e.g. "pipeline/phase1_reflection.md"; a leading `prompts/` is allowed.
        *where* says in errors who asks.
        """
        if name not in self._prompts:
            self._prompts[name] = read_own_text(self.path_of_prompt(name, where))
        return self._prompts[name]

    def path_of_prompt(self, name: str, where: str) -> Path:
        """The prompt file in force; raises as load_prompt."""
        name = name.removeprefix("prompts/")  # "prompts//etc" is as absolute as "/etc"
        path = _first(self._prompt_dirs, name, where) or _first(prompt_directories(), name, where)
        if path is None:
            raise PromptNotFoundError(
                f"the prompt file {name} is not there",
                where=where,
                fix=f"create it in {self._prompt_dirs[0]}, or correct the name",
            )
        return path

    def contract_of(self, key: str) -> StepContract[Any]:
        """Return the contract of the step that a recipe serves; an empty one if it serves none."""
        return STEPS.get(self.step_of(key) or "", NO_CONTRACT)

    def served_by(self, recipe: Recipe, models: ModelsFile) -> str:
        """Return what replies to a recipe with the models that are set, in words."""
        model = models.model_of(recipe.model_layer)
        if model is None:
            return "no model"
        if model != OFFLINE:
            return model.name
        reason = why_not_offline(recipe.needs, self.contract_of(recipe.key))
        return f"nothing: {reason}" if reason else OFFLINE

    def uses(self, models: ModelsFile) -> dict[str, dict[str, list[str]]]:
        """
        Return by model and layer the keys of the recipes in force that it serves, sorted; the encoder's are
        those that are served offline. Recipes that do not read are left out.
        """
        uses: dict[str, dict[str, list[str]]] = {}
        for key in self.recipe_keys():
            recipe, _ = self.inspect(key)
            if recipe is None:
                continue
            server = self.served_by(recipe, models)
            model = models.encoder if server == OFFLINE else server
            if model in models.models:
                uses.setdefault(str(model), {}).setdefault(recipe.model_layer, []).append(key)
        return uses

    def unsent_prompts(self, recipe: Recipe, models: ModelsFile | None) -> list[str]:
        """
        Return the prompt files of a recipe that no model is ever sent: none unless its layer is offline, nor
        where it is not known which models are set.
        """
        if models is None or models.model_of(recipe.model_layer) != OFFLINE:
            return []
        return list(recipe.prompt_files)

    def prompt_of(self, recipe: Recipe) -> str:
        """The prompt of a recipe: its own text, or that of its files; raises as load_prompt."""
        if recipe.system_prompt is not None:
            return recipe.system_prompt
        return "\n\n".join(self.load_prompt(name, where=str(recipe.path)) for name in recipe.prompt_files)

    def prompts_of(self, key: str) -> dict[str, str]:
        """Every prompt file that a recipe names, with its text."""
        recipe = self.load_recipe(key)
        return {name: self.load_prompt(name, where=str(recipe.path)) for name in recipe.prompt_files}

    def registry(self) -> tuple[RegistryEntry, ...]:
        """
        All entries of registry.yaml, the packaged ones of steps that a project's own does not name, and those
        of add-ons for what these do not name. RecipeError: it is missing or broken.
        """
        if self._registry is None:
            self._registry = _with_addons(self._registry_of_core())
        return self._registry

    def _registry_of_core(self) -> tuple[RegistryEntry, ...]:
        """
        Return the registry without the entries of add-ons, which are loaded only for what stands nowhere
        else.
        """
        if self._core_registry is None:
            path = self.registry_path
            if not _is_file(path):
                message = "there is no recipes/registry.yaml"
                raise RecipeNotFoundError(message, where=str(path), fix="restore the file")
            path = place_within(path.parent, path.name, str(path))
            own = _parse_registry(read_own_text(path), str(path))
            packaged = packaged_book().registry() if path.parent != asset("recipes") else ()
            named = {entry.step for entry in own}
            self._core_registry = (*own, *(entry for entry in packaged if entry.step not in named))
        return self._core_registry

    @property
    def registry_path(self) -> Path:
        """The registry.yaml in force, or where it should be."""
        name = "registry.yaml"
        paths = (folder / name for folder in self._recipe_dirs if _is_file(folder / name))
        return next(paths, self._recipe_dirs[0] / name)

    def step_of(self, key: str) -> str | None:
        """The step that a recipe serves; None if the registry names it for none, or is broken."""
        with suppress(RecipeError, StoreError):
            for registry in (self._registry_of_core, self.registry):
                for entry in registry():
                    if key in entry.recipes.values():
                        return entry.step
        return None

    def keys_of(self, step: str, mode: str) -> dict[str, str]:
        """The recipes that may serve a step, e.g. "phase3_planner", in a mode, as RegistryEntry.keys."""
        entry = self._entry_of(step, mode)
        if entry is None:
            raise RecipeNotFoundError(f"the registry has no step {step}", where=str(self.registry_path))
        keys = entry.keys(mode)
        if not {"any", mode} & keys.keys():
            raise RecipeNotFoundError(
                f"the registry has no recipe for {step} in {mode} mode",
                where=Location(self.registry_path, key=step),
                fix=f"modes there: {', '.join(entry.recipes)}",
            )
        return keys

    def _entry_of(self, step: str, mode: str) -> RegistryEntry | None:
        """The entry of a step, of the core alone where that serves the mode; None if there is none."""
        entry = next((entry for entry in self._registry_of_core() if entry.step == step), None)
        if entry is not None and {"any", mode} & set(entry.recipes):
            return entry
        return next((entry for entry in self.registry() if entry.step == step), None)

    def key_for(self, step: str, mode: str, intent: str | None = None) -> str:
        """Name of the recipe that serves a step in a mode, for a query of an intent (S3 §5.3)."""
        keys = self.keys_of(step, mode)
        return keys.get(intent or mode) or keys.get(mode) or keys["any"]

    def recipe_for(self, step: str, mode: str, intent: str | None = None) -> Recipe:
        """The recipe that serves a step; raises as key_for and load_recipe."""
        return self.load_recipe(self.key_for(step, mode, intent))

    def inspect(self, key: str) -> tuple[Recipe | None, list[RecipeError]]:
        """
        The recipe of a name, though it names prompts that are not there; None if it is not there or its file
        is wrong; and its faults.
        """
        try:
            return self._read(key)
        except RecipeError as fault:
            return None, [fault]

    def path_of(self, key: str, where: str | None = None) -> Path | None:
        """
        File of a recipe; None if no folder has it. *where* says in errors who names it, None the name itself.
        """
        name = f"{key}.yaml"
        return _first(self._recipe_dirs, name, where or key) or _first(
            recipe_directories(), name, where or key
        )

    def _read(self, key: str) -> tuple[Recipe, list[RecipeError]]:
        """A recipe, and a fault for each prompt that cannot be loaded."""
        path = self.path_of(key)
        if path is None and key in REMOVED_RECIPES:
            raise removed_recipe(key, str(self.registry_path))
        if path is None:
            raise RecipeNotFoundError(
                f"there is no recipe {key}",
                where=", ".join(str(folder) for folder in self._recipe_dirs),
                fix=nearest(key, self.recipe_keys(), "see `panda recipe list`"),
            )
        recipe = _parse_file(path, key, stamp_file(path))
        faults: list[RecipeError] = []
        for name in dict.fromkeys(recipe.prompt_files):
            try:
                self.load_prompt(name, where=Location(path, key="prompt_files"))
            except RecipeError as fault:
                faults.append(fault)
        return recipe, faults


def removed_recipe(key: str, place: str) -> RecipeNotFoundError:
    """Return the error that a recipe of an earlier version is named, with the recipe that took its place."""
    other = REMOVED_RECIPES[key]
    message = f"the recipe {key} is gone, {other} does its work"
    fix = f"name {other} in its place in registry.yaml"
    return RecipeNotFoundError(message, where=place, fix=fix)


@lru_cache(maxsize=1)
def packaged_book() -> RecipeBook:
    """The recipes that come with the program."""
    return RecipeBook([asset("recipes")], [asset("prompts")])


def _with_addons(entries: Sequence[RegistryEntry]) -> tuple[RegistryEntry, ...]:
    """Return entries with what the registries of add-ons name for other steps and modes."""
    by_step = {entry.step: entry for entry in entries}
    for folder in recipe_directories():
        path = folder / "registry.yaml"
        if not _is_file(path):
            continue
        for added in _parse_registry(read_own_text(path), str(path)):
            entry = by_step.setdefault(added.step, added)
            if "any" not in entry.recipes:
                new = {mode: key for mode, key in added.recipes.items() if mode not in entry.recipes}
                by_step[added.step] = replace(entry, recipes={**entry.recipes, **new})
    return tuple(by_step.values())


def is_packaged(path: Path) -> bool:
    """Return whether a recipe or prompt came with panda or an add-on."""
    folders = (asset("recipes"), asset("prompts"), *recipe_directories(), *prompt_directories())
    return any(path.is_relative_to(folder) for folder in folders)


def place_within(folder: Path, name: str, where: str) -> Path:
    """
    Return the path of a file of a folder of recipes or prompts, there or not. Raises RecipeKeyError, at
    *where*: the name leads out of the folder, or a link does, or the folder is a link out of the project.
    """
    path = folder / name
    parts = PurePosixPath(name).parts
    if "\0" in name or ".." in parts or "/" in parts:
        message = f"the name {name!r} leads out of {folder.name}/"
        raise RecipeKeyError(message, where=where, fix=f"name a file below {folder.name}/, without ..")
    if folder in (asset("recipes"), asset("prompts")):  # an installer may link those
        return path
    home = os.path.realpath(folder)
    real = os.path.realpath(path)
    inside = Path(real).is_relative_to(home) and Path(home).is_relative_to(os.path.realpath(folder.parent))
    if not inside and folder not in (*recipe_directories(), *prompt_directories()):
        message = f"{path} is a link that leads out of {folder.name}/, to {real}"
        raise RecipeKeyError(message, where=where, fix="put the file itself there")
    return path


def _first(folders: Sequence[Path], name: str, where: str) -> Path | None:
    return next((path for folder in folders if _is_file(path := place_within(folder, name, where))), None)


@lru_cache(maxsize=256)
def _parse_file(path: Path, key: str, _stamp: FileStamp) -> Recipe:
    """Return the recipe that a file says: parsed once a process, and again once the file is another."""
    return parse_recipe(read_own_text(path), path=path, key=key)


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except (OSError, ValueError):  # a name that no file can have
        return False


@lru_cache(maxsize=16)
def _parse_registry(text: str, where: str) -> tuple[RegistryEntry, ...]:
    def read(cls: Any, value: object, key: str = "") -> Any:
        return decode(cls, value, where=where, key=key, fault=RecipeKeyError, text=text)

    steps = read(dict[str, dict[str, Any]], load_yaml(text, where=where, fault=RecipeError))
    return tuple(read(RegistryEntry, {**entry, "step": step}, step) for step, entry in steps.items())
