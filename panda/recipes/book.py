"""Recipes and prompts by name: loading, registry, and the recipe for a phase and mode (S3 §9, §17, §18)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path

from panda.errors import PromptNotFoundError, RecipeKeyError, RecipeNotFoundError
from panda.recipes.recipe import Recipe, parse_recipe
from panda.recipes.schemas import choice_specs
from panda.recipes.yaml_file import load_yaml
from panda.storage.files import read_text


@dataclass(frozen=True)
class RegistryEntry:
    """Which recipe serves a step of the pipeline."""

    step: str
    """Step, e.g. "phase3_planner"."""
    recipes: Mapping[str, str]
    """Recipe key by mode; the mode "any" serves every mode."""
    purpose: str
    """What the call decides."""
    risk: str
    """low, medium or high: what a wrong reply costs."""


class RecipeBook:
    """
    The recipes and prompts of a project.

    Args:
        recipe_dirs: Folders with `{category}/{name}.yaml`, searched in order: a project's own before the
            packaged ones.
        prompt_dirs: Folders with `{category}/{name}.md`, in the same way.
    """

    def __init__(self, recipe_dirs: Sequence[Path], prompt_dirs: Sequence[Path]) -> None:
        self._recipe_dirs = tuple(recipe_dirs)
        self._prompt_dirs = tuple(prompt_dirs)
        self._recipes: dict[str, Recipe] = {}
        self._prompts: dict[str, str] = {}
        self._registry: tuple[RegistryEntry, ...] | None = None

    def keys(self) -> list[str]:
        """Names of all recipes, sorted."""
        return sorted(
            {
                path.relative_to(folder).with_suffix("").as_posix()
                for folder in self._recipe_dirs
                for path in folder.glob("*/*.yaml")
            }
        )

    def load_recipe(self, key: str) -> Recipe:
        """
        The recipe of a name such as "pipeline/phase3_planner_chat".

        Raises:
            RecipeNotFoundError: No folder has it.
            RecipeError: The file is broken; see parse_recipe.
            PromptNotFoundError: It names a prompt file that is not there.
        """
        if key not in self._recipes:
            self._recipes[key] = self._read_recipe(key)
        return self._recipes[key]

    def load_prompt(self, name: str, *, where: str) -> str:
        """
        The text of a prompt file, e.g. "pipeline/phase1_reflection.md".

        Args:
            name: Path below the prompts folder; a leading `prompts/` is allowed.
            where: Who asks, for the error.

        Raises:
            PromptNotFoundError: No folder has it.
        """
        name = name.removeprefix("prompts/")
        if name not in self._prompts:
            path = _first(self._prompt_dirs, name)
            if path is None:
                raise PromptNotFoundError(
                    f"the prompt file {name} is not there",
                    where=where,
                    fix=f"create it in {self._prompt_dirs[0]}, or correct the name",
                )
            self._prompts[name] = read_text(path)
        return self._prompts[name]

    def registry(self) -> tuple[RegistryEntry, ...]:
        """
        All entries of registry.yaml.

        Raises:
            RecipeError: The file is missing or broken.
        """
        if self._registry is None:
            path = _first(self._recipe_dirs, "registry.yaml")
            if path is None:
                raise RecipeNotFoundError(
                    "there is no recipes/registry.yaml",
                    where=str(self._recipe_dirs[0]),
                    fix="restore the file",
                )
            self._registry = _parse_registry(load_yaml(path)[0], str(path))
        return self._registry

    def key_for(self, step: str, mode: str) -> str:
        """
        Name of the recipe that serves a step in a mode.

        Args:
            step: Step of the registry, e.g. "phase3_planner".
            mode: chat or code.

        Raises:
            RecipeNotFoundError: The registry has no such step, or none for the mode.
        """
        for entry in self.registry():
            if entry.step == step:
                key = entry.recipes.get(mode) or entry.recipes.get("any")
                if key is None:
                    raise RecipeNotFoundError(
                        f"the registry has no recipe for {step} in {mode} mode",
                        where=f"recipes/registry.yaml ({step})",
                        fix=f"modes there: {', '.join(entry.recipes)}",
                    )
                return key
        raise RecipeNotFoundError(f"the registry has no step {step}", where="recipes/registry.yaml")

    def recipe_for(self, step: str, mode: str) -> Recipe:
        """The recipe that serves a step in a mode; raises as key_for and load_recipe."""
        return self.load_recipe(self.key_for(step, mode))

    def _read_recipe(self, key: str) -> Recipe:
        path = _first(self._recipe_dirs, f"{key}.yaml")
        if path is None:
            near = get_close_matches(key, self.keys(), n=1)
            raise RecipeNotFoundError(
                f"there is no recipe {key}",
                where=", ".join(str(folder) for folder in self._recipe_dirs),
                fix=f"did you mean {near[0]}?" if near else "see `panda recipe list`",
            )
        values, text = load_yaml(path)
        recipe = parse_recipe(values, path=path, key=key, text=text)
        for name in recipe.prompt_files:
            self.load_prompt(name, where=f"{path} (prompt_files)")
        for spec in choice_specs(recipe.output_schema, path=path):
            for step in spec.steps:
                if step.prompt:
                    self.load_prompt(
                        step.prompt, where=f"{path} (output_schema.properties.{spec.name}.x-decide)"
                    )
        return recipe


def _first(folders: Sequence[Path], name: str) -> Path | None:
    return next((folder / name for folder in folders if (folder / name).is_file()), None)


def _parse_registry(values: object, where: str) -> tuple[RegistryEntry, ...]:
    if not isinstance(values, dict):
        raise RecipeKeyError("the registry must be a mapping of steps", where=where)
    entries = []
    for step, value in values.items():
        if not isinstance(value, dict) or set(value) != {"recipes", "purpose", "risk"}:
            raise RecipeKeyError(
                f"the step {step} needs exactly the keys recipes, purpose and risk", where=f"{where} ({step})"
            )
        if value["risk"] not in ("low", "medium", "high"):
            raise RecipeKeyError(
                f"risk is {value['risk']!r}", where=f"{where} ({step}.risk)", fix="low, medium or high"
            )
        if not isinstance(value["recipes"], dict) or not set(value["recipes"]) <= {"any", "chat", "code"}:
            raise RecipeKeyError(
                "recipes maps any, chat or code to a recipe", where=f"{where} ({step}.recipes)"
            )
        entries.append(RegistryEntry(str(step), value["recipes"], str(value["purpose"]), value["risk"]))
    return tuple(entries)
