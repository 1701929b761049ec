"""Checks of all recipes, prompts, the registry and models.yaml, without a model (S3 §18.2)."""

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from pathlib import Path

from panda.compression.tokens import count_tokens
from panda.documents.problems import Problem, Verdict
from panda.errors import FileFormatError, PandaError, RecipeKeyError, RecipeNotFoundError, StoreError
from panda.models.models_file import ModelsFile, load_models_file
from panda.recipes.book import RecipeBook, RegistryEntry
from panda.recipes.recipe import Recipe
from panda.recipes.recipe_checks import LayerModel, Surroundings, check_recipe, unreached_values
from panda.recipes.steps import STEPS
from panda.recipes.typed_reader import Report, raise_fault

REQUIRED_MODE = "chat"
"""Mode that every step must have a recipe for."""


def check_recipes(
    recipe_dirs: Sequence[Path], prompt_dirs: Sequence[Path], models_file: Path | None, tools: Collection[str]
) -> list[Problem]:
    """
    Everything that is wrong with the recipes in force and what they name.

    Args:
        recipe_dirs: Folders with recipes, a project's own before the packaged one.
        prompt_dirs: Folders with prompts, in the same way.
        models_file: The models.yaml in force; None if it may not be read.
        tools: Names of the tools that there are.

    Returns:
        One problem a fault, by file; a file that another one hides is not in force and not looked at.
    """
    book = RecipeBook(recipe_dirs, prompt_dirs)
    problems: list[Problem] = []
    models = _load_models(models_file, problems)
    around = Surroundings(book, _model_of(models), tools, count_tokens)

    def report(fault: PandaError) -> None:
        problem = problem_of(fault)
        if problem not in problems:
            problems.append(problem)

    try:
        entries = book.inspect_registry(report)
    except StoreError as exc:
        report(exc)
        entries = ()
    served = {key: entry.step for entry in entries for key in entry.recipes.values()}
    recipes: dict[str, Recipe] = {}
    for key in book.recipe_keys():
        recipe = _inspect(book, key, report)
        if recipe is not None:
            recipes[key] = recipe
            check_recipe(recipe, served.get(key), around, report)
            problems += _unreached(recipe, around)
    _check_registry(book, entries, recipes, report)
    _check_names(recipes.values(), report)
    for path in _unread_files(recipe_dirs):
        problems.append(Problem(str(path), "this file is not read", fix="name it {category}/{name}.yaml"))
    return sorted(problems, key=lambda problem: (problem.path, problem.line or 0, problem.key or ""))


def _unreached(recipe: Recipe, around: Surroundings) -> list[Problem]:
    """Values of its enums that nothing chooses, as information: no turn is worse for them."""
    fix = "add a step for it, or leave it to models that write with x-written"
    return [
        Problem(
            str(recipe.path),
            f"no step chooses {', '.join(values)} under a model that does not write",
            key=f"output_schema.properties.{name}",
            fix=fix,
            verdict=Verdict.SOUND,
        )
        for name, values in unreached_values(recipe, around)
    ]


def check_recipes_of_mode(
    book: RecipeBook,
    mode: str,
    *,
    model_of: Callable[[str], LayerModel | None],
    tools: Collection[str],
    with_image: bool = False,
    cache_dir: Path | None = None,
) -> list[str]:
    """
    Raise the first fault of what a turn of this mode will ask: called before the turn claims its number.

    Args:
        book: Recipes and prompts.
        mode: chat or code.
        model_of: Gives the model of a layer; None if it is unset.
        tools: Names of the tools that there are.
        with_image: Whether the turn has an image to be described.
        cache_dir: Where it is kept which schemas compile; None compiles them.

    Returns:
        The layers that will be asked.

    Raises:
        RecipeError: The subclass says which kind of fault.
        StoreError: A file cannot be read.
    """
    around = Surroundings(book, model_of, tools, count_tokens, cache_dir)
    layers: dict[str, None] = {}
    for step, given in STEPS.items():
        if with_image or not given.of_image:
            recipe = book.recipe_for(step, mode)
            check_recipe(recipe, step, around, raise_fault)
            layers[recipe.model_layer] = None
    return list(layers)


def problem_of(fault: PandaError) -> Problem:
    """
    A fault as a problem of a file.

    >>> problem_of(RecipeKeyError("unknown key", where="a/b.yaml (quality_gates.x)")).key
    'quality_gates.x'
    >>> problem_of(RecipeKeyError("not readable", where="a/b.yaml:7")).line
    7
    """
    place = re.fullmatch(r"(.*?)(?::(\d+))?(?: \(([^()]*)\)|: ([^/]*))?", fault.where or "", re.DOTALL)
    assert place is not None  # every part may be missing
    path, line, key, other_key = place.groups()
    return Problem(path, fault.message, int(line) if line else None, key or other_key, fault.fix)


def _load_models(path: Path | None, problems: list[Problem]) -> ModelsFile | None:
    try:
        return load_models_file(path) if path else None
    except (FileFormatError, StoreError) as exc:
        problems.append(problem_of(exc))
        return None


def _model_of(models: ModelsFile | None) -> Callable[[str], LayerModel | None]:
    def model_of(layer: str) -> LayerModel | None:
        name = models.layers.get(layer) if models else None
        return models.models[name] if models and name else None

    return model_of


def _inspect(book: RecipeBook, key: str, report: Callable[[PandaError], None]) -> Recipe | None:
    try:
        return book.inspect(key, report)
    except StoreError as exc:
        report(exc)
        return None


def _check_registry(
    book: RecipeBook, entries: Sequence[RegistryEntry], recipes: Mapping[str, Recipe], report: Report
) -> None:
    where = str(book.registry_path)
    present = {entry.step: entry for entry in entries}
    for step in STEPS:
        if entries and step not in present:
            message = f"the registry has no step {step}, which the pipeline asks for"
            report(RecipeNotFoundError(message, where=f"{where} ({step})", fix=f"add {step}:"))
    for entry in entries:
        if entry.step not in STEPS:
            message, fix = f"the pipeline has no step {entry.step}", f"steps: {', '.join(STEPS)}"
            report(RecipeKeyError(message, where=f"{where} ({entry.step})", fix=fix))
        if not {"any", REQUIRED_MODE} & set(entry.recipes):
            message = f"the step {entry.step} has no recipe for {REQUIRED_MODE} mode"
            report(RecipeKeyError(message, where=f"{where} ({entry.step}.recipes)", fix="add chat: or any:"))
        for mode, key in entry.recipes.items():
            place = f"{where} ({entry.step}.recipes.{mode})"
            try:
                path = book.path_of(key, place)
            except RecipeKeyError as fault:
                report(fault)
                continue
            if path is None:
                fix = "see `panda recipe list`"
                report(RecipeNotFoundError(f"there is no recipe {key}", where=place, fix=fix))
            elif key in recipes and recipes[key].mode not in (None, mode):
                message = f"{key} is a recipe for {recipes[key].mode} mode and stands under {mode}"
                report(RecipeKeyError(message, where=place, fix=f"put it under {recipes[key].mode}:"))


def _check_names(recipes: Iterable[Recipe], report: Report) -> None:
    names: dict[str, Recipe] = {}
    for recipe in recipes:
        other = names.setdefault(recipe.name, recipe)
        if other is not recipe:
            message = f"the name {recipe.name!r} is also that of {other.key}"
            fix = "give each recipe its own name"
            report(RecipeKeyError(message, where=f"{recipe.path} (name)", fix=fix))


def _unread_files(recipe_dirs: Sequence[Path]) -> list[Path]:
    found = [path for folder in recipe_dirs for path in folder.rglob("*.y*ml") if path.is_file()]
    read = {path for folder in recipe_dirs for path in (*folder.glob("*/*.yaml"), folder / "registry.yaml")}
    return sorted(set(found) - read)
