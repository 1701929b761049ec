"""Checks of all recipes, prompts, the registry and models.yaml, without a model (S3 §18.2)."""

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import KW_ONLY, dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal, TypeAlias

from panda.documents.safe_text import nearest
from panda.errors import (
    FileFormatError,
    Location,
    Problem,
    RecipeBudgetError,
    RecipeError,
    RecipeKeyError,
    RecipeNotFoundError,
    RecipeSchemaError,
    StoreError,
    Verdict,
)
from panda.models.cl100k import count_tokens
from panda.models.model_contract import ModelInfo
from panda.models.models_file import OFFLINE, ModelsFile, ModelSpec, load_models_file
from panda.models.replies import check_schema
from panda.offline.support import why_not_offline
from panda.recipes.book import REMOVED_RECIPES, RecipeBook, RegistryEntry, is_packaged, removed_recipe
from panda.recipes.messages import build_messages, part_names, with_every_part
from panda.recipes.recipe_file import Recipe
from panda.recipes.schema import is_decision, plain_schema, property_schemas
from panda.steps.all_steps import BASE_VARIABLES, STEPS, TURN_DOCUMENTS
from panda.steps.request import GUIDANCE, Request
from panda.steps.step_contract import NO_CONTRACT, StepContract
from panda.store.layout import asset

_WINDOW_RESERVE_TOKENS = 1000
"""What a layer's window must leave beside prompt and output, for the query and the least of inputs."""
_MODES = ("any", "chat", "code")
_REQUIRED_MODE = "chat"
"""Mode that every step must have a recipe for."""
_VARIABLE = re.compile(r"\{\{(.*?)\}\}")

_CEILINGS: Mapping[str, tuple[int, int, int, int]] = {
    "phase0_query_analyzer": (1_500, 500, 700, 300),
    "phase1_": (2_200, 600, 1_200, 400),
    "phase2_": (10_500, 2_000, 6_000, 2_500),
    "phase3_": (5_750, 1_540, 2_000, 2_000),
    "phase4_": (12_000, 2_500, 3_500, 2_000),
    "phase5_": (10_000, 1_300, 5_500, 3_000),
    "phase6_": (6_000, 1_500, 4_000, 500),
    "compress_": (1_000, 300, 500, 200),
}
"""Total, prompt, input and output tokens of S3 §11.2, by how the steps begin."""

LayerModel: TypeAlias = ModelInfo | ModelSpec | Literal["offline"]
_count_prompt_tokens = lru_cache(maxsize=256)(count_tokens)  # the same in each turn of a process


def check_recipes(
    recipe_dirs: Sequence[Path], prompt_dirs: Sequence[Path], models_file: Path | None, tools: Collection[str]
) -> list[Problem]:
    """
    Everything that is wrong with the recipes in force and what they name, one problem a fault, by file: under
    the models that are set, and as information under models that can do more or less. Of both kinds of
    folders a project's own stand before the packaged one; a file that another one hides is not looked at.
    *models_file* None may not be read.
    """
    problems = dict.fromkeys(_every_fault(RecipeBook(recipe_dirs, prompt_dirs), models_file, tools))
    files = {path for folder in recipe_dirs for path in folder.rglob("*.y*ml") if path.is_file()}
    read = {path for folder in recipe_dirs for path in (*folder.glob("*/*.yaml"), folder / "registry.yaml")}
    for path in sorted(files - read):
        problem = Problem("this file is not read", str(path), fix="name it {category}/{name}.yaml")
        problems[problem] = None
    return sorted(problems, key=lambda problem: (problem.path, problem.line or 0, problem.key or ""))


def check_recipes_of_mode(
    book: RecipeBook,
    mode: str,
    *,
    model_of: Callable[[str], LayerModel | None],
    tools: Collection[str],
    with_image: bool = False,
    cache_dir: Path | None = None,
) -> dict[str, bool]:
    """
    The layers of a turn of this mode, each with whether its language model may be asked: called before the
    turn claims its number. *model_of* gives None for an unset layer; *with_image*: the turn has an image to
    be described; *cache_dir* keeps which schemas compile. Raises the first fault of a recipe that it asks.
    """
    layers: dict[str, bool] = {}
    for step, contract in STEPS.items():
        if contract.of_image and not with_image:
            continue
        for key in book.keys_of(step, mode).values():
            recipe = book.load_recipe(key)
            model = model_of(recipe.model_layer)
            check = _RecipeCheck(recipe, contract, book=book, model=model, tools=tools, cache_dir=cache_dir)
            for fault in check.faults():
                raise fault
            is_asked = model not in (None, OFFLINE) and contract.tool is None
            layers[recipe.model_layer] = layers.get(recipe.model_layer, False) or is_asked
    return layers


def largest_window_needed(book: RecipeBook, layer: str) -> int:
    """
    Return how many tokens the window of a layer's model must have, beside its room for thinking; 0 where no
    recipe asks the layer. Recipes that cannot be read do not count.
    """
    largest = 0
    for key in book.recipe_keys():
        with suppress(RecipeError, StoreError):
            recipe = book.load_recipe(key)
            if recipe.model_layer == layer:
                largest = max(largest, _count_needed(recipe))
    return largest


def _count_needed(recipe: Recipe) -> int:
    budget = recipe.token_budget
    return budget.prompt + budget.output + budget.response_reserve + _WINDOW_RESERVE_TOKENS


def _every_fault(book: RecipeBook, models_file: Path | None, tools: Collection[str]) -> Iterator[Problem]:
    models: ModelsFile | None = None
    try:
        models = load_models_file(models_file) if models_file else None
        obsolete = models.find_obsolete() if models else None
        if obsolete is not None:
            yield obsolete
    except (FileFormatError, StoreError) as exc:
        yield exc
    entries: Sequence[RegistryEntry] = ()
    try:
        entries = book.registry()
    except (RecipeError, StoreError) as exc:
        yield exc
    recipes: dict[str, Recipe] = {}
    for key in book.recipe_keys():
        try:
            recipe, faults = book.inspect(key)
        except StoreError as exc:
            yield exc
            continue
        yield from faults
        if recipe is not None:
            recipes[key] = recipe
            model = models.model_of(recipe.model_layer) if models else None
            check = _RecipeCheck(
                recipe, STEPS.get(book.step_of(key) or ""), book=book, model=model, tools=tools
            )
            yield from check.faults()
            yield from check.information()
    yield from _unsent_prompts(book, recipes.values(), models)
    yield from _registry_faults(book, entries, recipes)
    names: dict[str, Recipe] = {}
    for recipe in recipes.values():
        other = names.setdefault(recipe.name, recipe)
        if other is not recipe:
            message = f"the name {recipe.name!r} is also that of {other.key}"
            fix = "give each recipe its own name"
            yield RecipeKeyError(message, where=Location(recipe.path, key="name"), fix=fix)


def _unsent_prompts(
    book: RecipeBook, recipes: Collection[Recipe], models: ModelsFile | None
) -> Iterator[Problem]:
    """The project's own prompts that no model is sent, as information: editing them changes nothing."""
    unsent: dict[str, Recipe] = {}
    sent: set[str] = set()
    for recipe in recipes:
        names = book.unsent_prompts(recipe, models)
        unsent |= dict.fromkeys(names, recipe)
        sent |= {*recipe.prompt_files}.difference(names)
    for name in unsent.keys() - sent:
        recipe = unsent[name]
        with suppress(RecipeError):
            path = book.path_of_prompt(name, str(recipe.path))
            if not is_packaged(path):
                message = f"no model is sent it: {recipe.model_layer} is offline"
                fix = f"see `panda recipe show {recipe.key}`, or give the layer a model in models.yaml"
                yield Problem(message, str(path), fix=fix, verdict=Verdict.SOUND)


@dataclass(frozen=True)
class _RecipeCheck:
    """
    Whether everything in one recipe fits together; the faults of its own keys are told where it is loaded.
    """

    recipe: Recipe
    contract: StepContract[Any] | None  # what its step gives; None serves no step: then that is not known
    _: KW_ONLY
    book: RecipeBook  # gives its prompts
    model: LayerModel | None  # the model of its layer, or OFFLINE; None if it is unset
    tools: Collection[str]  # names of the tools that there are
    cache_dir: Path | None = None  # where it is kept which schemas compile; None compiles them

    def faults(self) -> Iterator[Problem]:
        yield from self._tools()
        yield from self._documents()
        yield from self._variables()
        yield from self._decisions()
        yield from self._grammar()
        yield from self._asking_back()
        if self._is_mapped():
            yield from self._read_fields()
            yield from self._offline()
        yield from self._known_values()
        yield from self._prompt_budget()
        yield from self._window()

    def information(self) -> Iterator[Problem]:
        """
        Yield what is no fault but should be known: that a layer could not serve it offline, and ceilings.
        """
        reason = self._why_not_offline() if self._is_mapped() else None
        if reason and self.model not in (None, OFFLINE):
            message = f"{self.recipe.model_layer} could not serve it offline: {reason}"
            yield Problem(message, str(self.recipe.path), verdict=Verdict.SOUND)
        yield from self._ceilings()

    def _ceilings(self) -> Iterator[Problem]:
        step = self.book.step_of(self.recipe.key) or ""
        budget = self.recipe.token_budget
        own = {name: getattr(budget, name) for name in ("total", "prompt", "input", "output")}
        most = next((most for start, most in _CEILINGS.items() if step.startswith(start)), own.values())
        pairs = zip(own.items(), most, strict=True)
        over = [f"{name} {tokens:,} of {limit:,}" for (name, tokens), limit in pairs if tokens > limit]
        if over:
            message = f"tokens over the ceilings of S3 §11.2: {', '.join(over)}"
            fix = "lower them; of panda's own recipes see docs/decisions/0019-ceilings.md"
            yield Problem(message, str(self.recipe.path), key="token_budget", fix=fix, verdict=Verdict.SOUND)

    def _fault(self, key: str, message: str, fix: str | None = None) -> Problem:
        return RecipeKeyError(message, where=Location(self.recipe.path, key=key), fix=fix)

    def _unknown(self, key: str, message: str, name: object, choices: Collection[str]) -> Problem:
        return self._fault(key, message, nearest(str(name), choices))

    def _is_mapped(self) -> bool:
        """Return whether properties are a mapping and required a list; else it is told elsewhere."""
        schema = self.recipe.output_schema
        mapped = isinstance(schema.get("properties", {}), Mapping)
        return mapped and isinstance(schema.get("required", []), list)

    def _tools(self) -> Iterator[Problem]:
        for name in self.recipe.tools_available:
            if name not in self.tools:
                yield self._unknown("tools_available", f"there is no tool {name!r}", name, sorted(self.tools))

    def _documents(self) -> Iterator[Problem]:
        if self.contract is None:
            return
        known_documents = (*TURN_DOCUMENTS, *self.contract.documents)
        for name in self.recipe.input_docs:
            if name not in known_documents:
                yield self._unknown(
                    "input_docs", f"no phase gives the document {name!r}", name, known_documents
                )

    def _variables(self) -> Iterator[Problem]:
        if self.contract is None:
            return
        base = (*BASE_VARIABLES, *self.contract.variables)
        known_variables = (*base, *self.recipe.variables)
        texts = [(f"variables.{name}", value, base) for name, value in self.recipe.variables.items()]
        texts += [(key, text, known_variables) for key, text in self._prompt_texts()]
        parts = (
            *known_variables,
            GUIDANCE,
            *self.contract.option_sets,
            *self.contract.documents,
            *TURN_DOCUMENTS,
        )
        for key, text in self._prompt_texts():
            for name in part_names(text):
                if name not in parts:
                    yield self._unknown(key, f"no call gives {name!r}, on which a part depends", name, parts)
        for key, text, names in texts:
            for name in dict.fromkeys(_VARIABLE.findall(with_every_part(text))):
                if name not in names:
                    yield self._unknown(key, f"nothing gives a value to {{{{{name}}}}}", name, names)

    def _prompt_texts(self) -> list[tuple[str, str]]:
        recipe = self.recipe
        texts = {"system_prompt": recipe.system_prompt}
        texts |= {f"prompt_files: {name}": self._prompt(name) for name in recipe.prompt_files}
        texts |= {f"examples[{n}]": text for n, text in enumerate(recipe.examples)}
        return [(key, text) for key, text in texts.items() if text is not None]

    def _prompt(self, name: str | None) -> str | None:
        """A prompt file's text; None without one, or if it cannot be read: told where it is loaded."""
        try:
            return self.book.load_prompt(name, where="") if name else None
        except RecipeError:
            return None

    def _decisions(self) -> Iterator[Problem]:
        contract = self.contract or NO_CONTRACT
        names = [
            name
            for name, schema in property_schemas(self.recipe.output_schema).items()
            if is_decision(name, schema, contract)
        ]
        if names and not self.recipe.is_object:
            message = f"{names[0]!r} is to be chosen, which needs output_format: json or yaml"
            yield self._fault("output_format", message, "set it to json")

    def _why_not_offline(self) -> str | None:
        """Return why the layer of a phase's recipe cannot be offline; None if it can, or is no phase's."""
        if self.contract is None or self.contract.tool is not None or self.contract.is_dispensable:
            return None
        return why_not_offline(self.recipe.needs, self.contract)

    def _offline(self) -> Iterator[Problem]:
        """Yield what keeps the program from replying itself, where the layer has no language model."""
        if self.model != OFFLINE:
            return
        reason = self._why_not_offline()
        if reason:
            fix = f"do not require it, or give {self.recipe.model_layer} a model in models.yaml"
            yield self._fault(
                "output_schema.required", f"{self.recipe.model_layer} is offline: {reason}", fix
            )

    def _asking_back(self) -> Iterator[Problem]:
        gates = self.recipe.quality_gates
        if self.contract and gates.below_threshold == "clarify" and not self.contract.may_ask:
            asking = ", ".join(step for step, inputs in STEPS.items() if inputs.may_ask)
            message = "below_threshold is clarify, and the phase of this recipe cannot ask the user back"
            fix = f"use retry, halt or proceed; only {asking} ask back"
            yield self._fault("quality_gates.below_threshold", message, fix)

    def _read_fields(self) -> Iterator[Problem]:
        """Yield a fault for each field that the phase reads and this recipe does not ask for."""
        if self.contract is None or not self.contract.required:
            return
        recipe = self.recipe
        required = self.contract.required
        if not recipe.is_object:
            if not self.contract.may_be_text:
                message = f"the phase of this recipe reads {', '.join(required)} of an object"
                yield self._fault("output_format", message, "set it to json, with these in output_schema")
            return
        schema = recipe.output_schema
        for name in required:
            if name not in schema.get("properties", {}):
                message = f"output_schema has no {name!r}, which the phase of this recipe reads"
                yield self._fault(f"output_schema.properties.{name}", message, f"add {name}: to properties")
            elif name not in schema.get("required", ()):
                message = f"output_schema does not require {name!r}, which the phase of this recipe reads"
                yield self._fault("output_schema.required", message, f"add {name} to required")

    def _known_values(self) -> Iterator[Problem]:
        """Values that say how the turn goes on, and that the phase does not act upon."""
        if self.contract is None:
            return
        for name, handled_values in self.contract.decides.items():
            for value in self.recipe.enum_of(name):
                if value not in handled_values:
                    message = f"the phase of this recipe does nothing for the value {value!r}"
                    yield self._unknown(f"output_schema.properties.{name}", message, value, handled_values)

    def _grammar(self) -> Iterator[Problem]:
        schema = self.recipe.output_schema
        where = Location(self.recipe.path, key="output_schema")
        properties = schema.get("properties", {})
        if not schema and self.recipe.is_object:
            message = f"a reply in {self.recipe.output_format.upper()} needs an output_schema"
            yield RecipeSchemaError(message, where=where, fix="add output_schema:")
        if not schema or not isinstance(properties, Mapping):
            return  # the latter is told where the recipe is loaded
        required = schema.get("required", [])
        if not isinstance(required, list):
            required = []  # that is told where the recipe is loaded
        for name in required:
            if name not in properties:
                yield self._unknown("output_schema.required", f"{name!r} is no property", name, properties)
        try:
            plain = plain_schema(schema, self.contract or NO_CONTRACT)
            check_schema(plain, where=where, cache_dir=self.cache_dir)
        except RecipeSchemaError as fault:
            yield fault

    def _prompt_budget(self) -> Iterator[Problem]:
        """Prompt, schema and examples as a model is sent them."""
        if not self._is_mapped():
            return
        prompt = with_every_part("\n\n".join(text for _, text in self._prompt_texts()))
        blank = dict.fromkeys(_VARIABLE.findall(prompt), "")
        try:
            contract = self.contract or NO_CONTRACT
            messages = build_messages(self.recipe, contract, prompt, Request("", variables=blank), ())
        except RecipeKeyError:
            return  # a variable without a value, told above
        used = sum(_count_prompt_tokens(message.content) for message in messages)
        room = self.recipe.token_budget.prompt
        if used > room:
            yield self._over_budget(
                "token_budget.prompt",
                f"prompt, schema and examples have {used} tokens, {used - room} more than the prompt budget "
                f"of {room}",
                "raise token_budget.prompt (and total), or shorten the prompt",
            )

    def _window(self) -> Iterator[Problem]:
        model = self.model
        if model is None or model == OFFLINE or model.n_ctx is None:
            return
        needed = _count_needed(self.recipe) + model.thinking_tokens
        if needed > model.n_ctx:
            yield self._over_budget(
                "token_budget",
                f"prompt, output, thinking and {_WINDOW_RESERVE_TOKENS} tokens of input need {needed} "
                f"tokens, {needed - model.n_ctx} more than the window of {model.n_ctx} tokens of "
                f"{model.name}",
                f"lower prompt or output, or give {self.recipe.model_layer} a model with a larger window",
            )

    def _over_budget(self, key: str, message: str, fix: str) -> Problem:
        return RecipeBudgetError(message, where=Location(self.recipe.path, key=key), fix=fix)


def _registry_faults(
    book: RecipeBook, entries: Sequence[RegistryEntry], recipes: Mapping[str, Recipe]
) -> Iterator[Problem]:
    where = str(book.registry_path)
    for entry in entries:
        if entry.step not in STEPS:
            message = f"the pipeline has no step {entry.step}"
            fix = nearest(entry.step, STEPS, "see recipes/registry.yaml of panda for those that there are")
            for key in REMOVED_RECIPES.keys() & {*entry.recipes.values()}:
                fix = f"delete its entry: the step is gone, and {REMOVED_RECIPES[key]} does its work"
            yield RecipeKeyError(message, where=Location(where, key=entry.step), fix=fix)
            continue
        if not {"any", _REQUIRED_MODE} & set(entry.recipes):
            message = f"the step {entry.step} has no recipe for {_REQUIRED_MODE} mode"
            place = Location(where, key=f"{entry.step}.recipes")
            yield RecipeKeyError(message, where=place, fix="add chat: or any:")
        for mode, key in entry.recipes.items():
            place = Location(where, key=f"{entry.step}.recipes.{mode}")
            try:
                path = book.path_of(key, place)
            except RecipeKeyError as fault:
                yield fault
                continue
            if path is None and key in REMOVED_RECIPES:
                yield removed_recipe(key, place)
            elif path is None:
                fix = "see `panda recipe list`"
                yield RecipeNotFoundError(f"there is no recipe {key}", where=place, fix=fix)
            elif key in recipes and recipes[key].mode not in (None, mode if mode in _MODES else "chat"):
                message = f"{key} is a recipe for {recipes[key].mode} mode and stands under {mode}"
                yield RecipeKeyError(message, where=place, fix=f"put it under {recipes[key].mode}:")
    named = {key for entry in entries for key in entry.recipes.values()}
    own = where
    if book.registry_path.parent == asset("recipes"):
        own = f"recipes/registry.yaml of the project, which begins with that step's entry of {where}"
    if not entries:
        return
    for key in recipes:
        if key not in named:
            message = f"no step of the registry names {key}: it has no purpose and risk, and nothing asks it"
            fix = f"name it under recipes: of its step in {own}; or take the file away"
            yield RecipeKeyError(message, where=str(recipes[key].path), fix=fix)
