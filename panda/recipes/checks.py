"""Checks of all recipes, prompts, the registry and models.yaml, without a model (S3 §18.2)."""

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Protocol

from panda.choosing.ask import prompt_sections, section_items
from panda.choosing.decision import FITTED, GAIN, MUTUAL, ChoiceSpec, Step
from panda.compression.budgets import count_tokens
from panda.documents.problems import Problem, Verdict
from panda.errors import (
    FileFormatError,
    PandaError,
    RecipeBudgetError,
    RecipeError,
    RecipeKeyError,
    RecipeNotFoundError,
    RecipeSchemaError,
    StoreError,
)
from panda.models.models_file import ModelsFile, load_models_file
from panda.models.replies import check_schema
from panda.recipes.book import RecipeBook, RegistryEntry
from panda.recipes.messages import Request, build_messages
from panda.recipes.recipe import FORMS, Recipe, named_choices
from panda.recipes.schema import plain_schema
from panda.recipes.steps import BASE_VARIABLES, STEPS, TURN_DOCUMENTS, StepInputs
from panda.recipes.yaml_file import Report, raise_fault

WINDOW_RESERVE_TOKENS = 1000
"""What a layer's window must leave beside prompt and output, for the query and the least of inputs."""

_VARIABLE = re.compile(r"\{\{(.*?)\}\}")


class LayerModel(Protocol):
    """What is asked of the model of a layer."""

    @property
    def name(self) -> str: ...
    @property
    def n_ctx(self) -> int: ...
    @property
    def writes(self) -> bool: ...
    @property
    def thinking_tokens(self) -> int: ...


@dataclass(frozen=True)
class Surroundings:
    """What a recipe has to fit."""

    book: RecipeBook
    """Gives its prompts."""
    model_of: Callable[[str], LayerModel | None]
    """Gives the model of a layer; None if it is unset."""
    tools: Collection[str]
    """Names of the tools that there are."""
    count: Callable[[str], int]
    """Maps a text to budget tokens."""
    cache_dir: Path | None = None
    """Where it is kept which schemas compile; None compiles them."""


def check_recipe(recipe: Recipe, step: str | None, around: Surroundings, report: Report) -> None:
    """
    Report every way in which a recipe does not fit together.

    Args:
        recipe: A recipe whose file could be read.
        step: Step of the pipeline that it serves; None if none does, and then what its caller gives is
            not known and not checked.
        around: What it has to fit.
        report: Takes the faults.
    """
    given = STEPS.get(step) if step else None
    checks = (
        _tools,
        _documents,
        _variables,
        _choices,
        _grammar,
        _templates,
        _asking_back,
        _read_fields,
        _known_values,
        _prompt_budget,
        _window,
    )
    for check in checks:
        for fault in check(recipe, given, around):
            report(fault)


def _fault(recipe: Recipe, key: str, message: str, fix: str | None = None) -> RecipeKeyError:
    return RecipeKeyError(message, where=f"{recipe.path} ({key})", fix=fix)


def _near(name: str, known: Collection[str]) -> str:
    near = get_close_matches(name, known, n=1)
    return f"did you mean {near[0]!r}?" if near else f"use one of {', '.join(known) or '(none)'}"


def _tools(recipe: Recipe, given: StepInputs | None, around: Surroundings) -> Iterator[RecipeError]:
    for name in recipe.tools_available:
        if name not in around.tools:
            message = f"there is no tool {name!r}"
            yield _fault(recipe, "tools_available", message, _near(name, sorted(around.tools)))


def _documents(recipe: Recipe, given: StepInputs | None, around: Surroundings) -> Iterator[RecipeError]:
    known = (*TURN_DOCUMENTS, *(given.documents if given else ()))
    for name in recipe.input_docs if given else ():
        if name not in known:
            yield _fault(recipe, "input_docs", f"no phase gives the document {name!r}", _near(name, known))


def _variables(recipe: Recipe, given: StepInputs | None, around: Surroundings) -> Iterator[RecipeError]:
    if given is None:
        return
    base = (*BASE_VARIABLES, *given.variables)
    for name, value in recipe.variables.items():
        yield from _unknown_variables(recipe, f"variables.{name}", value, base)
    known = (*base, *recipe.variables)
    for key, text in _prompt_texts(recipe, around):
        yield from _unknown_variables(recipe, key, text, known)
    choices = [s.name for s in recipe.choices if not s.many]
    for name, template in recipe.templates.items():
        for text in template if isinstance(template, list) else [template]:
            if isinstance(text, str):
                yield from _unknown_variables(recipe, f"templates.{name}", text, (*known, *choices))


def _unknown_variables(recipe: Recipe, key: str, text: str, known: Collection[str]) -> Iterator[RecipeError]:
    for name in dict.fromkeys(_VARIABLE.findall(text)):
        if name not in known:
            yield _fault(recipe, key, f"nothing gives a value to {{{{{name}}}}}", _near(name, known))


def _prompt_texts(recipe: Recipe, around: Surroundings) -> list[tuple[str, str]]:
    """Key and text of everything that goes into the prompt and may hold variables."""
    found = [("system_prompt", recipe.system_prompt)] if recipe.system_prompt is not None else []
    texts = [(f"prompt_files: {name}", _prompt(around, name)) for name in recipe.prompt_files]
    examples = [(f"examples[{n}]", text) for n, text in enumerate(recipe.examples)]
    return [*found, *((key, text) for key, text in texts if text is not None), *examples]


def _prompt(around: Surroundings, name: str) -> str | None:
    """A prompt file's text; None if it cannot be read, which is reported where the recipe is loaded."""
    try:
        return around.book.load_prompt(name, where="")
    except RecipeError:
        return None


def _choices(recipe: Recipe, given: StepInputs | None, around: Surroundings) -> Iterator[RecipeError]:
    specs = recipe.choices
    if specs and recipe.output_format != "json":
        yield _fault(recipe, "output_format", "choices need output_format: json", "set it to json")
    for spec in specs:
        key = f"output_schema.properties.{spec.name}"
        if not spec.values and given and spec.name not in given.options:
            yield _no_options(recipe, key, spec.name, given.options)
        for n, one in enumerate(spec.steps):
            place = f"{key}.x-decide[{n}]"
            if one.over and given and one.over not in given.options:
                yield _no_options(recipe, f"{place}.over", one.over, given.options)
            yield from _scorer_prompt(recipe, spec, one, place, around)
    if given:
        for key, source in _sources(recipe.output_schema, "output_schema"):
            if source not in given.options:
                yield _no_options(recipe, key, source, given.options)


def _no_options(recipe: Recipe, key: str, name: str, known: Collection[str]) -> RecipeKeyError:
    return _fault(recipe, key, f"no phase gives options called {name!r}", _near(name, known))


def _sources(schema: Any, key: str) -> Iterator[tuple[str, str]]:
    """Every x-from of a schema, with its key."""
    for name, part in schema.items() if isinstance(schema, Mapping) else ():
        if name == "x-from":
            yield f"{key}.x-from", str(part)
        else:
            yield from _sources(part, f"{key}.{name}")


def _scorer_prompt(
    recipe: Recipe, spec: ChoiceSpec, step: Step, place: str, around: Surroundings
) -> Iterator[RecipeError]:
    text = _prompt(around, step.prompt) if step.prompt else None
    if text is None or step.scorer not in ("likelihood", "channel", "cosine", "options"):
        return
    try:
        sections = prompt_sections(text, str(step.prompt))
    except RecipeKeyError as exc:
        yield _fault(recipe, f"{place}.prompt", f"{step.prompt}: {exc.message}", "add its sections")
        return
    wanted = _wanted_sections(step)
    for name in wanted:
        if not sections.get(name, "").strip():
            message = f"{step.prompt} has no section `# {name}`, which the scorer {step.scorer} reads"
            yield _fault(recipe, f"{place}.prompt", message, f"add `# {name}` to the file")
    if "foreign" in wanted and sections.get("foreign", "").strip() and not section_items(sections["foreign"]):
        message = f"`# foreign` of {step.prompt} has no line that begins with `- `"
        yield _fault(recipe, f"{place}.prompt", message, "write each of its texts as a list item")
    if step.scorer in ("channel", "cosine"):
        yield from _classes(recipe, spec, step, place, sections)


def _wanted_sections(step: Step) -> list[str]:
    """The sections that a step's prompt file must have, besides classes."""
    if step.scorer == "options":
        back = ["reverse", "unrelated question"]
        own = {GAIN: ["shots"], MUTUAL: back, "told": ["answer"], "back": back}
        return list(dict.fromkeys(name for part in step.reads for name in own.get(part, ())))
    return ["shots", "foreign"] if step.scorer == "likelihood" else []


def _classes(
    recipe: Recipe, spec: ChoiceSpec, step: Step, place: str, sections: Mapping[str, str]
) -> Iterator[RecipeError]:
    classes = [name for name, text in sections.items() if section_items(text)]
    for name in sections:
        if name not in classes:
            message = f"the class {name!r} of {step.prompt} has no line that begins with `- `"
            yield _fault(recipe, f"{place}.prompt", message, "write each of its examples as a list item")
    if step.class_ is not None and step.class_ not in classes:
        message = f"{step.prompt} has no class {step.class_!r}"
        yield _fault(recipe, f"{place}.class", message, _near(step.class_, classes))
    values = [str(value) for value in spec.values] if spec.values and not step.over else classes
    compared = classes if step.class_ is not None else [name for name in classes if name in values]
    if len(compared) < 2:
        message = f"{step.prompt} has examples of {len(compared)} classes to compare; it needs two"
        yield _fault(recipe, f"{place}.prompt", message, f"add `# class` sections: {', '.join(values)}")
    for name in classes if step.class_ is None else ():
        if name not in values:
            message = f"the class {name!r} of {step.prompt} is not among the values of {spec.name}"
            yield _fault(recipe, f"{place}.prompt", message, _near(name, values))


def _templates(recipe: Recipe, given: StepInputs | None, around: Surroundings) -> Iterator[RecipeError]:
    texts = recipe.texts
    subsets = [spec.name for spec in recipe.choices if spec.many]
    choices = [spec.name for spec in recipe.choices]
    for name, template in recipe.templates.items():
        if name not in texts:
            message = f"{name!r} is no text property of output_schema"
            yield _fault(recipe, f"templates.{name}", message, _near(name, texts))
        if isinstance(template, Mapping) and len(template) == 1 and set(template) <= set(FORMS):
            ((form, value),) = template.items()
            known = subsets if form == "spans" else choices
            for chosen in named_choices(value):
                if chosen not in known:
                    message = f"{chosen!r} is no choice of output_schema that {form} can be made of"
                    yield _fault(recipe, f"templates.{name}.{form}", message, _near(chosen, known))
        elif not _is_template(template):
            message = (
                "a template is a text, a list of texts, null or one of {spans|objects|instead: property}"
            )
            yield _fault(recipe, f"templates.{name}", message)
    model = around.model_of(recipe.model_layer)
    required = recipe.output_schema.get("required", [])
    for name in required if model is not None and not model.writes and isinstance(required, list) else ():
        if name in texts and name not in recipe.templates:
            message = f"the text {name!r} is required, and the model of {recipe.model_layer} does not write"
            yield _fault(recipe, "templates", message, f"add {name}: to templates, or do not require it")


def _asking_back(recipe: Recipe, given: StepInputs | None, around: Surroundings) -> Iterator[RecipeError]:
    if given and recipe.quality_gates.below_threshold == "clarify" and not given.may_ask:
        asking = ", ".join(step for step, inputs in STEPS.items() if inputs.may_ask)
        message = "below_threshold is clarify, and the phase of this recipe cannot ask the user back"
        fix = f"use retry, halt or proceed; only {asking} ask back"
        yield _fault(recipe, "quality_gates.below_threshold", message, fix)


def _read_fields(recipe: Recipe, given: StepInputs | None, around: Surroundings) -> Iterator[RecipeError]:
    """What the phase reads of the reply and the schema does not promise."""
    if given is None or not given.reads:
        return
    if recipe.output_format != "json":
        model = around.model_of(recipe.model_layer)
        if not given.may_be_text:
            message = f"the phase of this recipe reads {', '.join(given.reads)} of a JSON object"
            yield _fault(recipe, "output_format", message, "set it to json, with these in output_schema")
        elif model is not None and not model.writes:
            message = f"a reply in {recipe.output_format} is written, and {model.name} does not write"
            yield _fault(recipe, "output_format", message, "set it to json, or give the layer another model")
        return
    properties = recipe.output_schema.get("properties", {})
    required = recipe.output_schema.get("required", [])
    if not isinstance(properties, Mapping) or not isinstance(required, list):
        return  # reported where the recipe is loaded, or as a schema
    for name in given.reads:
        if name not in properties:
            message = f"output_schema has no {name!r}, which the phase of this recipe reads"
            yield _fault(recipe, f"output_schema.properties.{name}", message, f"add {name}: to properties")
        elif name not in required:
            message = f"output_schema does not require {name!r}, which the phase of this recipe reads"
            yield _fault(recipe, "output_schema.required", message, f"add {name} to required")


def _known_values(recipe: Recipe, given: StepInputs | None, around: Surroundings) -> Iterator[RecipeError]:
    """Values of a choice that decides how the turn goes on, and that the phase does not act upon."""
    for spec in recipe.choices if given else ():
        known = given.decides.get(spec.name) if given else None
        for value in spec.values if known else ():
            if known and value not in known:
                message = f"the phase of this recipe does nothing for the value {value!r}"
                yield _fault(
                    recipe, f"output_schema.properties.{spec.name}", message, _near(str(value), known)
                )


def unreached_values(recipe: Recipe, around: Surroundings) -> Iterator[tuple[str, list[str]]]:
    """
    The values of each enum that no step of its decision list can choose, under a model that only chooses.

    Yields:
        Property and values; those that `x-written` leaves to models that write are not among them.
    """
    model = around.model_of(recipe.model_layer)
    if model is None or model.writes:
        return
    for spec in recipe.choices:
        written = recipe.output_schema["properties"][spec.name].get("x-written", ())
        reached: set[str] = set()
        for step in spec.steps:
            reached |= _chosen_by(spec, step, around)
            if step.choose is not None and step.at_least is None:
                break
        left = [str(v) for v in spec.values if str(v) not in reached and v not in written]
        if left:
            yield spec.name, left


def _chosen_by(spec: ChoiceSpec, step: Step, around: Surroundings) -> set[str]:
    """The values that a step can choose."""
    if step.choose is not None or step.class_ is not None:
        return {str(step.class_ if step.choose is None else step.choose)}
    if step.scorer in FITTED:
        return around.book.fit_classes(step.fit or "")
    if step.scorer in ("channel", "cosine"):
        text = _prompt(around, step.prompt) if step.prompt else None
        sections = prompt_sections(text, str(step.prompt)) if text else {}
        return {name for name, body in sections.items() if section_items(body)}
    return {str(value) for value in (spec.values[:1] if step.scorer == "prior" else spec.values)}


def _is_template(value: object) -> bool:
    texts = value if isinstance(value, list) else [value]
    return value is None or all(isinstance(text, str) for text in texts)


def _grammar(recipe: Recipe, given: StepInputs | None, around: Surroundings) -> Iterator[RecipeError]:
    if not recipe.output_schema:
        if recipe.output_format == "json":
            message = "a reply in JSON needs an output_schema"
            yield RecipeSchemaError(message, where=f"{recipe.path} (output_schema)", fix="add output_schema:")
        return
    properties = recipe.output_schema.get("properties", {})
    if not isinstance(properties, Mapping):
        return  # reported where the recipe is loaded
    required = recipe.output_schema.get("required", [])
    for name in required if isinstance(required, list) else ():
        if name not in properties:
            yield _fault(
                recipe, "output_schema.required", f"{name!r} is no property", _near(str(name), properties)
            )
    try:
        plain = plain_schema(recipe.output_schema, only=None, options={})
        check_schema(plain, where=f"{recipe.path} (output_schema)", cache_dir=around.cache_dir)
    except RecipeSchemaError as fault:
        yield fault


def _prompt_budget(recipe: Recipe, given: StepInputs | None, around: Surroundings) -> Iterator[RecipeError]:
    prompt = "\n\n".join(text for _, text in _prompt_texts(recipe, around))
    try:
        blank = dict.fromkeys(_VARIABLE.findall(prompt), "")
        messages = build_messages(recipe, prompt, Request("", variables=blank), ())
    except RecipeKeyError:
        return  # a variable without a value, reported above
    used = sum(around.count(message.content) for message in messages)
    room = recipe.token_budget.prompt
    if used > room:
        yield RecipeBudgetError(
            f"prompt, schema and examples have {used} tokens, {used - room} more than the prompt budget of "
            f"{room}",
            where=f"{recipe.path} (token_budget.prompt)",
            fix="raise token_budget.prompt (and total), or shorten the prompt",
        )


def _window(recipe: Recipe, given: StepInputs | None, around: Surroundings) -> Iterator[RecipeError]:
    model, budget = around.model_of(recipe.model_layer), recipe.token_budget
    if model is None:
        return
    needed = budget.prompt + budget.output + budget.response_reserve + WINDOW_RESERVE_TOKENS
    needed += model.thinking_tokens
    if needed > model.n_ctx:
        yield RecipeBudgetError(
            f"prompt, output, thinking and {WINDOW_RESERVE_TOKENS} tokens of input need {needed} tokens, "
            f"{needed - model.n_ctx} more than the window of {model.n_ctx} tokens of {model.name}",
            where=f"{recipe.path} (token_budget)",
            fix=f"lower prompt or output, or give {recipe.model_layer} a model with a larger window",
        )


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
