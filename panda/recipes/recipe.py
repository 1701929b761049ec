"""A recipe file as values (S3 §10, §12–§14): one LLM call, everything it needs said in one place."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, cast

from panda.errors import RecipeBudgetError
from panda.recipes.yaml_file import Report, TypedReader, raise_fault

Layer = Literal["REFLEX", "NERVES", "MIND", "VOICE", "EYES"]
LAYERS: tuple[Layer, ...] = ("REFLEX", "NERVES", "MIND", "VOICE", "EYES")
TEMPERATURES: Mapping[Layer, float] = {"REFLEX": 0.3, "NERVES": 0.1, "MIND": 0.5, "VOICE": 0.7, "EYES": 0.3}
BELOW_THRESHOLD = ("retry", "clarify", "halt", "proceed")
MODES = ("chat", "code")
PRESERVED = (*(f"section_{number}" for number in range(7)), "tool_errors", "urls", "prices", "dates")
"""What compression.preserve may name, besides documents of input_docs; error messages stay anyway."""
OUTPUT_FORMATS = ("json", "markdown", "yaml", "text")
FORMS = ("spans", "objects", "instead")
"""Templates that name a choice."""


@dataclass(frozen=True)
class TokenBudget:
    """Ceilings of one call in budget tokens (S3 §11.1)."""

    total: int
    """Everything together."""
    prompt: int
    """What never changes: policy, role prompt, schema, examples."""
    input: int
    """Documents and options of the turn."""
    output: int
    """What the model may write, in model tokens."""
    response_reserve: int = 0
    """Kept free beside the output."""
    longest_output: int = 0
    """What a model that writes may write at most, where call and window leave room for more than output."""


@dataclass(frozen=True)
class QualityGates:
    """What a reply must pass (S3 §14)."""

    schema_validation: bool = True
    """Check the reply against output_schema."""
    confidence_threshold: float | None = None
    """Lowest confidence of the deciding choice that passes; None has no such gate."""
    below_threshold: Literal["retry", "clarify", "halt", "proceed"] = "proceed"
    """What happens below confidence_threshold, or when no confidence is known."""
    evidence_required: bool = False
    """Items must cite nodes that were given."""
    max_retries: int = 2
    """Further attempts after a reply that failed."""
    timeout_ms: int = 300_000
    """Wall clock of one model call; a timeout is not retried."""


@dataclass(frozen=True)
class Compression:
    """How the inputs are brought down to budget."""

    enabled: bool = True
    """Off: inputs over budget are an error."""
    model_layer: Layer = "NERVES"
    """Layer that compresses."""
    preserve: tuple[str, ...] = ("section_0",)
    """What is never touched."""


@dataclass(frozen=True)
class Recipe:
    """One recipe, checked."""

    path: Path
    """File it was read from."""
    key: str
    """Name to load it by, category/file."""
    name: str
    """Unique identifier."""
    description: str
    """What the call is for."""
    model_layer: Layer
    """Layer whose model runs it."""
    token_budget: TokenBudget
    """Ceilings."""
    system_prompt: str | None
    """Prompt text in the recipe; None when prompt_files name it."""
    prompt_files: tuple[str, ...]
    """Prompt files below the prompts folder, in order."""
    input_docs: tuple[str, ...]
    """Documents of the turn that the call sees."""
    input_sections: tuple[int, ...]
    """Sections of context.md that it sees, by number."""
    variables: Mapping[str, str]
    """Values for {{name}} in prompts, themselves possibly {{name}}."""
    output_format: Literal["json", "markdown", "yaml", "text"]
    """Form of the reply."""
    output_schema: Mapping[str, Any]
    """JSON Schema of the reply with the x- keys of choices."""
    quality_gates: QualityGates
    """Gates."""
    compression: Compression
    """Fitting."""
    mode: Literal["chat", "code"] | None
    """Mode it is for; None is for both."""
    tools_available: tuple[str, ...]
    """Tools that the model may choose from."""
    temperature: float
    """Sampling temperature."""
    examples: tuple[str, ...]
    """Worked examples shown in the prompt."""
    templates: Mapping[str, Any]
    """What a text property is made of when the model does not write."""
    text: str = field(repr=False, default="")
    """The file as read."""


_BUDGET = ("total", "prompt", "input", "output", "response_reserve")
_LONGEST = "longest_output"
_SECTIONS = tuple(f"§{number}" for number in range(7))
_KEYS = tuple(name for name in Recipe.__dataclass_fields__ if name not in ("path", "key", "text"))
_REQUIRED = ("name", "description", "model_layer", "token_budget", "output_format")


def parse_recipe(values: object, *, path: Path, key: str, text: str, report: Report = raise_fault) -> Recipe:
    """
    The recipe that a YAML file says.

    Args:
        values: The parsed YAML.
        path: The file, for errors.
        key: Name it was asked for by, e.g. "pipeline/phase1_reflection".
        text: The file as read.
        report: Takes the faults; the default raises the first one.

    Raises:
        RecipeKeyError: A key is unknown, missing or of the wrong type.
        RecipeBudgetError: The parts of token_budget exceed its total.

    Source:
        S3 §10, §18.2.
    """
    reader = TypedReader(path, "", report)
    recipe = reader.mapping(values)
    reader.check_keys(recipe, _KEYS, _REQUIRED)
    if ("system_prompt" in recipe) == ("prompt_files" in recipe):
        reader.fail(
            "system_prompt, prompt_files",
            "a recipe has either system_prompt or prompt_files",
            "keep one of the two" if "prompt_files" in recipe else "add prompt_files:",
        )
    layer = cast(Layer, reader.one_of(recipe.get("model_layer", LAYERS[0]), "model_layer", LAYERS))
    form = reader.one_of(recipe.get("output_format", OUTPUT_FORMATS[0]), "output_format", OUTPUT_FORMATS)
    mode = recipe.get("mode")
    return Recipe(
        path=path,
        key=key,
        name=reader.string(recipe.get("name", key), "name"),
        description=reader.string(recipe.get("description", key), "description"),
        model_layer=layer,
        token_budget=_parse_budget(recipe, path, report),
        system_prompt=reader.optional_string(recipe.get("system_prompt"), "system_prompt"),
        prompt_files=reader.strings(recipe.get("prompt_files", []), "prompt_files"),
        input_docs=reader.strings(recipe.get("input_docs", []), "input_docs"),
        input_sections=_parse_sections(reader, recipe.get("input_sections", [])),
        variables={
            name: reader.string(value, f"variables.{name}")
            for name, value in reader.mapping(recipe.get("variables", {}), "variables").items()
        },
        output_format=cast(Any, form),
        output_schema=reader.mapping(recipe.get("output_schema", {}), "output_schema"),
        quality_gates=_parse_gates(recipe.get("quality_gates", {}), path, report),
        compression=_parse_compression(recipe, path, report),
        mode=None if mode is None else cast(Any, reader.one_of(mode, "mode", MODES)),
        tools_available=reader.strings(recipe.get("tools_available", []), "tools_available"),
        temperature=reader.number(
            recipe.get("temperature", TEMPERATURES[layer]), "temperature", least=0, most=2
        ),
        examples=reader.strings(recipe.get("examples", []), "examples"),
        templates=reader.mapping(recipe.get("templates", {}), "templates"),
        text=text,
    )


def _parse_budget(recipe: Mapping[str, object], path: Path, report: Report) -> TokenBudget:
    if "token_budget" not in recipe:
        return TokenBudget(0, 0, 0, 0)
    reader = TypedReader(path, "token_budget", report)
    budget = reader.mapping(recipe["token_budget"])
    reader.check_keys(budget, (*_BUDGET, _LONGEST), _BUDGET[:4])
    longest = reader.count(budget.get(_LONGEST, 0), _LONGEST)
    parts = {name: reader.count(budget.get(name, 0), name) for name in _BUDGET}
    used = sum(parts[name] for name in _BUDGET[1:])
    if used > parts["total"] and "total" in budget:
        report(
            RecipeBudgetError(
                f"the parts of the token budget add up to {used} tokens, {used - parts['total']} more than "
                f"its total of {parts['total']}",
                where=reader.place(""),
                fix="raise total or lower prompt, input, output or response_reserve",
            )
        )
    return TokenBudget(**parts, longest_output=longest)


def _parse_gates(values: object, path: Path, report: Report) -> QualityGates:
    reader = TypedReader(path, "quality_gates", report)
    gates = reader.mapping(values)
    reader.check_keys(gates, tuple(QualityGates.__dataclass_fields__))
    given: dict[str, Any] = {}
    for name in ("schema_validation", "evidence_required"):
        if name in gates:
            given[name] = reader.boolean(gates[name], name)
    for name, least in (("max_retries", 0), ("timeout_ms", 1)):
        if name in gates:
            given[name] = reader.count(gates[name], name, least=least)
    threshold = gates.get("confidence_threshold")
    if threshold is not None:
        given["confidence_threshold"] = reader.number(threshold, "confidence_threshold", least=0, most=1)
    if "below_threshold" in gates:
        given["below_threshold"] = reader.one_of(gates["below_threshold"], "below_threshold", BELOW_THRESHOLD)
    return QualityGates(**given)


def _parse_compression(recipe: Mapping[str, object], path: Path, report: Report) -> Compression:
    documents = TypedReader(path, "", report).strings(recipe.get("input_docs", []), "input_docs")
    reader = TypedReader(path, "compression", report)
    compression = reader.mapping(recipe.get("compression", {}))
    reader.check_keys(compression, tuple(Compression.__dataclass_fields__))
    known = (*PRESERVED, *documents, *(name.rsplit(".", 1)[0] for name in documents))
    preserve = reader.strings(compression.get("preserve", ["section_0"]), "preserve")
    return Compression(
        enabled=reader.boolean(compression.get("enabled", True), "enabled"),
        model_layer=cast(Any, reader.one_of(compression.get("model_layer", "NERVES"), "model_layer", LAYERS)),
        preserve=tuple(reader.one_of(name, "preserve", known) for name in preserve),
    )


def _parse_sections(reader: TypedReader, value: object) -> tuple[int, ...]:
    names = reader.strings(value, "input_sections")
    return tuple(_SECTIONS.index(reader.one_of(name, "input_sections", _SECTIONS)) for name in names)


def template_sources(recipe: Recipe) -> set[str]:
    """Choice properties that exist only to feed templates; a model that writes is not asked for them."""
    return {
        name
        for value in recipe.templates.values()
        if isinstance(value, Mapping)
        for form in FORMS
        if form in value
        for name in named_choices(value[form])
    }


def named_choices(value: object) -> tuple[str, ...]:
    """
    The choices that a template names: one, or of `instead` several.

    >>> named_choices("lines"), named_choices(["mood", "agreement"])
    (('lines',), ('mood', 'agreement'))
    """
    return tuple(map(str, value)) if isinstance(value, list) else (str(value),)


def replaced_texts(recipe: Recipe) -> dict[str, tuple[str, ...]]:
    """
    Text properties that only models that write are asked for, each with the choices of all others.

    A template `{instead: property}` says so, or `{instead: [several]}`: who does not write makes those
    choices and leaves the text out; who writes sees neither the choices nor their options.
    """
    return {
        name: named_choices(value["instead"])
        for name, value in recipe.templates.items()
        if isinstance(value, Mapping) and "instead" in value
    }
