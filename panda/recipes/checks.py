"""Checks of all recipes, prompts, the registry and models.yaml, without a model (S3 §18.2)."""

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from panda.choosing.ask import prompt_sections, section_items
from panda.choosing.decision import FITTED, ChoiceSpec, Step
from panda.documents.text import nearest
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
from panda.models.contract import ModelInfo
from panda.models.models_file import ModelsFile, ModelSpec, load_models_file
from panda.models.replies import check_schema
from panda.recipes.book import RecipeBook, RegistryEntry, Report, named_prompts, raise_fault
from panda.recipes.messages import Request, build_messages
from panda.recipes.recipe import FORMS, Recipe, named_choices
from panda.recipes.schema import plain_schema
from panda.recipes.steps import BASE_VARIABLES, STEPS, TURN_DOCUMENTS, StepInputs
from panda.store.layout import asset

_WINDOW_RESERVE_TOKENS = 1000
"""What a layer's window must leave beside prompt and output, for the query and the least of inputs."""
_REQUIRED_MODE = "chat"
"""Mode that every step must have a recipe for."""
_VARIABLE = re.compile(r"\{\{(.*?)\}\}")

LayerModel: TypeAlias = ModelInfo | ModelSpec


def check_recipes(
    recipe_dirs: Sequence[Path], prompt_dirs: Sequence[Path], models_file: Path | None, tools: Collection[str]
) -> list[Problem]:
    """
    Everything that is wrong with the recipes in force and what they name, one problem a fault, by file. Of
    both kinds of folders a project's own stand before the packaged one; a file that another one hides is not
    looked at. *models_file* None may not be read.
    """
    book = RecipeBook(recipe_dirs, prompt_dirs)
    problems: list[Problem] = []

    def report(fault: Problem) -> None:
        if fault not in problems:
            problems.append(fault)

    models: ModelsFile | None = None
    entries: Sequence[RegistryEntry] = ()
    try:
        models = load_models_file(models_file) if models_file else None
    except (FileFormatError, StoreError) as exc:
        report(exc)
    try:
        entries = book.inspect_registry(report)
    except StoreError as exc:
        report(exc)

    def model_of(layer: str) -> LayerModel | None:
        name = models.layers.get(layer) if models else None
        return models.models[name] if models and name else None

    around = _Surroundings(book, model_of, tools)
    served = {key: entry.step for entry in entries for key in entry.recipes.values()}
    recipes: dict[str, Recipe] = {}
    for key in book.recipe_keys():
        try:
            recipe = book.inspect(key, report)
        except StoreError as exc:
            report(exc)
            continue
        if recipe is not None:
            recipes[key] = recipe
            check = _RecipeCheck(recipe, served.get(key), around, report)
            check.run()
            problems += check.unreached_values()
    problems += _unsent_prompts(book, recipes.values(), models)
    _check_registry(book, entries, recipes, report)
    _check_names(recipes.values(), report)
    files = {path for folder in recipe_dirs for path in folder.rglob("*.y*ml") if path.is_file()}
    read = {path for folder in recipe_dirs for path in (*folder.glob("*/*.yaml"), folder / "registry.yaml")}
    for path in sorted(files - read):
        problems.append(Problem("this file is not read", str(path), fix="name it {category}/{name}.yaml"))
    return sorted(problems, key=lambda problem: (problem.path, problem.line or 0, problem.key or ""))


def _unsent_prompts(
    book: RecipeBook, recipes: Collection[Recipe], models: ModelsFile | None
) -> Iterator[Problem]:
    """The project's own prompts that no model is sent, as information: editing them changes nothing."""
    unsent: dict[str, Recipe] = {}
    sent: set[str] = set()
    for recipe in recipes:
        with suppress(FileFormatError):  # a damaged fit is told of where it is read
            names = book.unsent_prompts(recipe, models)
            unsent |= dict.fromkeys(names, recipe)
            sent |= named_prompts(recipe).keys() - names
    for name in unsent.keys() - sent:
        recipe = unsent[name]
        with suppress(RecipeError):
            path = book.path_of_prompt(name, str(recipe.path))
            if not path.is_relative_to(asset("prompts")):
                message = f"no model that is set is ever sent it: {recipe.model_layer} only chooses"
                fix = f"see `panda recipe show {recipe.key}`, or set a model that writes in models.yaml"
                yield Problem(message, str(path), fix=fix, verdict=Verdict.SOUND)


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
    The layers that a turn of this mode will ask: called before the turn claims its number. *model_of* gives
    None for an unset layer; *with_image*: the turn has an image to be described; *cache_dir* keeps which
    schemas compile. Raises the first fault of a recipe that it will ask.
    """
    around = _Surroundings(book, model_of, tools, cache_dir)
    layers: dict[str, None] = {}
    for step, given in STEPS.items():
        if with_image or not given.of_image:
            recipe = book.recipe_for(step, mode)
            _RecipeCheck(recipe, step, around, raise_fault).run()
            layers[recipe.model_layer] = None
    return list(layers)


@dataclass(frozen=True)
class _Surroundings:
    book: RecipeBook  # gives its prompts
    model_of: Callable[[str], LayerModel | None]  # gives the model of a layer; None if it is unset
    tools: Collection[str]  # names of the tools that there are
    cache_dir: Path | None = None  # where it is kept which schemas compile; None compiles them


class _RecipeCheck:
    """
    Whether everything in one recipe fits together; the faults of its own keys are reported where it is
    loaded. *step* None serves no step: then what its caller gives is not known and not checked.
    """

    def __init__(self, recipe: Recipe, step: str | None, around: _Surroundings, report: Report) -> None:
        self.recipe = recipe
        self.given: StepInputs | None = STEPS.get(step) if step else None
        self.around = around
        self.model = around.model_of(recipe.model_layer)
        self.report = report
        properties, required = (recipe.output_schema.get(key, {}) for key in ("properties", "required"))
        self.properties: Mapping[str, Any] = properties if isinstance(properties, Mapping) else {}
        self.required: Sequence[str] = required if isinstance(required, list) else []

    def run(self) -> None:
        self._tools()
        self._documents()
        self._variables()
        self._choices()
        self._grammar()
        self._templates()
        self._asking_back()
        self._read_fields()
        self._known_values()
        self._prompt_budget()
        self._window()

    def unreached_values(self) -> Iterator[Problem]:
        """
        The values of each enum that no step of its decision list can choose, under a model that only chooses:
        as information, no turn is worse for them. Those that `x-written` leaves to models that write are not
        among them.
        """
        if self.model is None or self.model.writes:
            return
        for spec in self.recipe.choices:
            reached = set[str]()
            for step in spec.steps:
                reached |= self._chosen_by(spec, step)
                if step.choose is not None and step.at_least is None:
                    break
            left = [str(value) for value in spec.values if str(value) not in reached]
            if left:
                yield Problem(
                    f"no step chooses {', '.join(left)} under a model that does not write",
                    str(self.recipe.path),
                    key=f"output_schema.properties.{spec.name}",
                    fix="add a step for it, or leave it to models that write with x-written",
                    verdict=Verdict.SOUND,
                )

    def _fault(self, key: str, message: str, fix: str | None = None) -> None:
        self.report(RecipeKeyError(message, where=Location(self.recipe.path, key=key), fix=fix))

    def _unknown(self, key: str, message: str, name: object, known: Collection[str]) -> None:
        self._fault(key, message, nearest(str(name), known))

    def _tools(self) -> None:
        for name in self.recipe.tools_available:
            if name not in self.around.tools:
                known = sorted(self.around.tools)
                self._unknown("tools_available", f"there is no tool {name!r}", name, known)

    def _documents(self) -> None:
        known = (*TURN_DOCUMENTS, *(self.given.documents if self.given else ()))
        for name in self.recipe.input_docs if self.given else ():
            if name not in known:
                self._unknown("input_docs", f"no phase gives the document {name!r}", name, known)

    def _variables(self) -> None:
        if self.given is None:
            return
        base = (*BASE_VARIABLES, *self.given.variables)
        for name, value in self.recipe.variables.items():
            self._check_variables(f"variables.{name}", value, base)
        known = (*base, *self.recipe.variables)
        for key, text in self._prompt_texts():
            self._check_variables(key, text, known)
        choices = [spec.name for spec in self.recipe.choices if not spec.many]
        for name, template in self.recipe.templates.items():
            for text in template if isinstance(template, list) else [template]:
                if isinstance(text, str):
                    self._check_variables(f"templates.{name}", text, (*known, *choices))

    def _check_variables(self, key: str, text: str, known: Collection[str]) -> None:
        for name in dict.fromkeys(_VARIABLE.findall(text)):
            if name not in known:
                self._unknown(key, f"nothing gives a value to {{{{{name}}}}}", name, known)

    def _prompt_texts(self) -> list[tuple[str, str]]:
        recipe = self.recipe
        texts = {"system_prompt": recipe.system_prompt}
        texts |= {f"prompt_files: {name}": self._prompt(name) for name in recipe.prompt_files}
        texts |= {f"examples[{n}]": text for n, text in enumerate(recipe.examples)}
        return [(key, text) for key, text in texts.items() if text is not None]

    def _prompt(self, name: str | None) -> str | None:
        """A prompt file's text; None without one, or if it cannot be read: reported where it is loaded."""
        try:
            return self.around.book.load_prompt(name, where="") if name else None
        except RecipeError:
            return None

    def _choices(self) -> None:
        if self.recipe.choices and self.recipe.output_format != "json":
            self._fault("output_format", "choices need output_format: json", "set it to json")
        for spec in self.recipe.choices:
            key = f"output_schema.properties.{spec.name}"
            if not spec.values:
                self._check_options(key, spec.name)
            for n, step in enumerate(spec.steps):
                if step.over:
                    self._check_options(f"{key}.x-decide[{n}].over", step.over)
                self._scorer_prompt(spec, step, f"{key}.x-decide[{n}]")
        for key, source in _sources(self.recipe.output_schema, "output_schema"):
            self._check_options(key, source)

    def _check_options(self, key: str, name: str) -> None:
        if self.given and name not in self.given.options:
            self._unknown(key, f"no phase gives options called {name!r}", name, self.given.options)

    def _scorer_prompt(self, spec: ChoiceSpec, step: Step, place: str) -> None:
        text = self._prompt(step.prompt)
        if text is None or step.scorer not in ("likelihood", "channel", "cosine"):
            return
        place = f"{place}.prompt"
        try:
            sections = prompt_sections(text, str(step.prompt))
        except RecipeKeyError as exc:
            self._fault(place, f"{step.prompt}: {exc.message}", "add its sections")
            return
        wanted = ["shots", "foreign"] if step.scorer == "likelihood" else []
        for name in wanted:
            if not sections.get(name, "").strip():
                message = f"{step.prompt} has no section `# {name}`, which the scorer {step.scorer} reads"
                self._fault(place, message, f"add `# {name}` to the file")
        foreign = sections.get("foreign", "") if "foreign" in wanted else ""
        if foreign.strip() and not section_items(foreign):
            message = f"`# foreign` of {step.prompt} has no line that begins with `- `"
            self._fault(place, message, "write each of its texts as a list item")
        if step.scorer in ("channel", "cosine"):
            self._classes(spec, step, place, sections)

    def _classes(self, spec: ChoiceSpec, step: Step, place: str, sections: Mapping[str, str]) -> None:
        classes = [name for name, text in sections.items() if section_items(text)]
        for name in sections:
            if name not in classes:
                message = f"the class {name!r} of {step.prompt} has no line that begins with `- `"
                self._fault(place, message, "write each of its examples as a list item")
        if step.class_ is not None and step.class_ not in classes:
            key = f"{place.removesuffix('prompt')}class"
            self._unknown(key, f"{step.prompt} has no class {step.class_!r}", step.class_, classes)
        values = [str(value) for value in spec.values] if spec.values and not step.over else classes
        compared = classes if step.class_ is not None else [name for name in classes if name in values]
        if len(compared) < 2:
            message = f"{step.prompt} has examples of {len(compared)} classes to compare; it needs two"
            self._fault(place, message, f"add `# class` sections: {', '.join(values)}")
        for name in classes if step.class_ is None else ():
            if name not in values:
                message = f"the class {name!r} of {step.prompt} is not among the values of {spec.name}"
                self._unknown(place, message, name, values)

    def _templates(self) -> None:
        texts = self.recipe.texts
        choices = [spec.name for spec in self.recipe.choices]
        subsets = [spec.name for spec in self.recipe.choices if spec.many]
        for name, template in self.recipe.templates.items():
            key = f"templates.{name}"
            if name not in texts:
                self._unknown(key, f"{name!r} is no text property of output_schema", name, texts)
            if isinstance(template, Mapping) and len(template) == 1 and set(template) <= set(FORMS):
                ((form, value),) = template.items()
                known = subsets if form == "spans" else choices
                for chosen in named_choices(value):
                    if chosen not in known:
                        message = f"{chosen!r} is no choice of output_schema that {form} can be made of"
                        self._unknown(f"{key}.{form}", message, chosen, known)
            elif not _is_template(template):
                forms = "{spans|objects|instead: property}"
                self._fault(key, f"a template is a text, a list of texts, null or one of {forms}")
        layer = self.recipe.model_layer
        for name in self.required if self.model is not None and not self.model.writes else ():
            if name in texts and name not in self.recipe.templates:
                message = f"the text {name!r} is required, and the model of {layer} does not write"
                self._fault("templates", message, f"add {name}: to templates, or do not require it")

    def _asking_back(self) -> None:
        gates = self.recipe.quality_gates
        if self.given and gates.below_threshold == "clarify" and not self.given.may_ask:
            asking = ", ".join(step for step, inputs in STEPS.items() if inputs.may_ask)
            message = "below_threshold is clarify, and the phase of this recipe cannot ask the user back"
            fix = f"use retry, halt or proceed; only {asking} ask back"
            self._fault("quality_gates.below_threshold", message, fix)

    def _read_fields(self) -> None:
        """What the phase reads of the reply and the schema does not promise."""
        if self.given is None or not self.given.reads:
            return
        form = self.recipe.output_format
        if form != "json":
            if not self.given.may_be_text:
                message = f"the phase of this recipe reads {', '.join(self.given.reads)} of a JSON object"
                self._fault("output_format", message, "set it to json, with these in output_schema")
            elif self.model is not None and not self.model.writes:
                message = f"a reply in {form} is written, and {self.model.name} does not write"
                self._fault("output_format", message, "set it to json, or give the layer another model")
            return
        schema = self.recipe.output_schema
        if schema.get("properties", {}) != self.properties or schema.get("required", []) != self.required:
            return  # reported where the recipe is loaded, or as a schema
        for name in self.given.reads:
            if name not in self.properties:
                message = f"output_schema has no {name!r}, which the phase of this recipe reads"
                self._fault(f"output_schema.properties.{name}", message, f"add {name}: to properties")
            elif name not in self.required:
                message = f"output_schema does not require {name!r}, which the phase of this recipe reads"
                self._fault("output_schema.required", message, f"add {name} to required")

    def _known_values(self) -> None:
        """Values of a choice that decides how the turn goes on, and that the phase does not act upon."""
        for spec in self.recipe.choices if self.given else ():
            known = self.given.decides.get(spec.name, ()) if self.given else ()
            for value in spec.values if known else ():
                if value not in known:
                    message = f"the phase of this recipe does nothing for the value {value!r}"
                    self._unknown(f"output_schema.properties.{spec.name}", message, value, known)

    def _chosen_by(self, spec: ChoiceSpec, step: Step) -> set[str]:
        if step.choose is not None or step.class_ is not None:
            return {str(step.class_ if step.choose is None else step.choose)}
        if step.scorer in FITTED:
            return self.around.book.fit_classes(step.fit or "")
        if step.scorer in ("channel", "cosine"):
            text = self._prompt(step.prompt)
            sections = prompt_sections(text, str(step.prompt)) if text else {}
            return {name for name, body in sections.items() if section_items(body)}
        return {str(value) for value in (spec.values[:1] if step.scorer == "prior" else spec.values)}

    def _grammar(self) -> None:
        schema, where = self.recipe.output_schema, Location(self.recipe.path, key="output_schema")
        if not schema:
            if self.recipe.output_format == "json":
                message = "a reply in JSON needs an output_schema"
                self.report(RecipeSchemaError(message, where=where, fix="add output_schema:"))
            return
        if not isinstance(schema.get("properties", {}), Mapping):
            return  # reported where the recipe is loaded
        for name in self.required:
            if name not in self.properties:
                self._unknown("output_schema.required", f"{name!r} is no property", name, self.properties)
        try:
            plain = plain_schema(schema, only=None, options={})
            check_schema(plain, where=where, cache_dir=self.around.cache_dir)
        except RecipeSchemaError as fault:
            self.report(fault)

    def _prompt_budget(self) -> None:
        prompt = "\n\n".join(text for _, text in self._prompt_texts())
        try:
            blank = dict.fromkeys(_VARIABLE.findall(prompt), "")
            messages = build_messages(self.recipe, prompt, Request("", variables=blank), ())
        except RecipeKeyError:
            return  # a variable without a value, reported above
        used = sum(count_tokens(message.content) for message in messages)
        room = self.recipe.token_budget.prompt
        if used > room:
            self._over_budget(
                "token_budget.prompt",
                f"prompt, schema and examples have {used} tokens, {used - room} more than the prompt budget "
                f"of {room}",
                "raise token_budget.prompt (and total), or shorten the prompt",
            )

    def _window(self) -> None:
        model, budget = self.model, self.recipe.token_budget
        if model is None:
            return
        needed = budget.prompt + budget.output + budget.response_reserve + _WINDOW_RESERVE_TOKENS
        needed += model.thinking_tokens
        if needed > model.n_ctx:
            self._over_budget(
                "token_budget",
                f"prompt, output, thinking and {_WINDOW_RESERVE_TOKENS} tokens of input need {needed} "
                f"tokens, {needed - model.n_ctx} more than the window of {model.n_ctx} tokens of "
                f"{model.name}",
                f"lower prompt or output, or give {self.recipe.model_layer} a model with a larger window",
            )

    def _over_budget(self, key: str, message: str, fix: str) -> None:
        self.report(RecipeBudgetError(message, where=Location(self.recipe.path, key=key), fix=fix))


def _sources(schema: Any, key: str) -> Iterator[tuple[str, str]]:
    for name, part in schema.items() if isinstance(schema, Mapping) else ():
        if name == "x-from":
            yield f"{key}.x-from", str(part)
        else:
            yield from _sources(part, f"{key}.{name}")


def _is_template(value: object) -> bool:
    texts = value if isinstance(value, list) else [value]
    return value is None or all(isinstance(text, str) for text in texts)


def _check_registry(
    book: RecipeBook, entries: Sequence[RegistryEntry], recipes: Mapping[str, Recipe], report: Report
) -> None:
    where = str(book.registry_path)
    present = {entry.step: entry for entry in entries}
    for step in STEPS:
        if entries and step not in present:
            message = f"the registry has no step {step}, which the pipeline asks for"
            report(RecipeNotFoundError(message, where=Location(where, key=step), fix=f"add {step}:"))
    for entry in entries:
        if entry.step not in STEPS:
            message, fix = f"the pipeline has no step {entry.step}", f"steps: {', '.join(STEPS)}"
            report(RecipeKeyError(message, where=Location(where, key=entry.step), fix=fix))
        if not {"any", _REQUIRED_MODE} & set(entry.recipes):
            message = f"the step {entry.step} has no recipe for {_REQUIRED_MODE} mode"
            report(
                RecipeKeyError(
                    message, where=Location(where, key=f"{entry.step}.recipes"), fix="add chat: or any:"
                )
            )
        for mode, key in entry.recipes.items():
            place = Location(where, key=f"{entry.step}.recipes.{mode}")
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
            report(RecipeKeyError(message, where=Location(recipe.path, key="name"), fix=fix))
