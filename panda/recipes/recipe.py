"""A recipe file as values (S3 §10, §12–§14): one LLM call, everything it needs said in one place."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Annotated, Any, Literal

from msgspec import Meta

from panda.choosing.decision import ChoiceSpec
from panda.documents.json_schema import check_schema
from panda.documents.records import Words, decode
from panda.documents.text import nearest
from panda.documents.yaml_text import line_of, load_yaml
from panda.errors import (
    Problem,
    RecipeBudgetError,
    RecipeError,
    RecipeKeyError,
    RecipeSchemaError,
    SchemaError,
)
from panda.models.models_file import Layer
from panda.recipes.schema import choice_specs, text_properties

TEMPERATURES: Mapping[str, float] = {"REFLEX": 0.3, "NERVES": 0.1, "MIND": 0.5, "VOICE": 0.7, "EYES": 0.3}
PRESERVED = (*(f"section_{number}" for number in range(7)), "tool_errors", "urls", "prices", "dates")
"""What compression.preserve may name, besides documents of input_docs; error messages stay anyway."""
_Sections = tuple[Literal["§0", "§1", "§2", "§3", "§4", "§5", "§6"], ...]
_Count = Annotated[int, Meta(ge=0)]
FORMS = ("spans", "objects", "instead")
"""Templates that name choices."""


@dataclass(frozen=True)
class TokenBudget:
    """Ceilings of one call in budget tokens (S3 §11.1)."""

    total: _Count  # everything together
    prompt: _Count  # what never changes: policy, role prompt, schema, examples
    input: _Count  # documents and options of the turn
    output: _Count  # what the model may write, in model tokens
    response_reserve: _Count = 0  # kept free beside the output
    longest_output: _Count = 0
    """What a model that writes may write at most, where call and window leave room for more than output."""


@dataclass(frozen=True)
class QualityGates:
    """What a reply must pass (S3 §14)."""

    schema_validation: bool = True  # check the reply against output_schema
    confidence_threshold: Annotated[float, Meta(ge=0, le=1)] | None = None
    """Lowest confidence of the deciding choice that passes; None has no such gate."""
    of: Literal["all", "writes"] = "all"
    """Whose confidence the threshold is for: that of every model, or of those that write and score."""
    below_threshold: Literal["retry", "clarify", "halt", "proceed"] = "proceed"
    """What happens below confidence_threshold, or when no confidence is known."""
    evidence_required: bool = False  # items must cite nodes that were given
    max_retries: _Count = 2  # further attempts after a reply that failed
    timeout_ms: Annotated[int, Meta(ge=1)] = 300_000  # wall clock of one model call; a timeout is not retried


@dataclass(frozen=True)
class Compression:
    """How the inputs are brought down to budget."""

    enabled: bool = True  # off: inputs over budget are an error
    model_layer: Layer = "NERVES"  # layer that compresses
    preserve: tuple[str, ...] = ("section_0",)  # what is never touched


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """One recipe, checked; what a call of it asks of a model is its CallPlan."""

    path: Path  # file it was read from
    key: str  # name to load it by, category/file
    name: Words  # unique identifier
    description: Words  # what the call is for
    model_layer: Layer  # layer whose model runs it
    token_budget: TokenBudget  # ceilings
    system_prompt: Words | None = None  # prompt text in the recipe; None when prompt_files name it
    prompt_files: tuple[str, ...] = ()  # prompt files below the prompts folder, in order
    input_docs: tuple[str, ...] = ()  # documents of the turn that the call sees
    input_sections: tuple[int, ...]  # sections of context.md that it sees, by number
    variables: Mapping[str, Words] = field(default_factory=dict)
    """Values for {{name}} in prompts, themselves possibly {{name}}."""
    output_format: Literal["json", "markdown", "yaml", "text"]  # form of the reply
    output_schema: Mapping[str, Any] = field(default_factory=dict)
    """JSON Schema of the reply with the x- keys of choices."""
    quality_gates: QualityGates = QualityGates()  # gates
    compression: Compression = Compression()  # fitting
    mode: Literal["chat", "code"] | None = None  # mode it is for; None is for both
    tools_available: tuple[str, ...] = ()  # tools that the model may choose from
    temperature: Annotated[float, Meta(ge=0, le=2)]  # sampling temperature
    examples: tuple[str, ...] = ()  # worked examples shown in the prompt
    templates: Mapping[str, Any] = field(default_factory=dict)
    """What a text property is made of when the model does not write."""
    text: str = field(repr=False)  # the file as read

    @property
    def is_object(self) -> bool:
        """Whether the reply is an object of output_schema, written as JSON or YAML."""
        return self.output_format in ("json", "yaml")

    @cached_property
    def choices(self) -> tuple[ChoiceSpec, ...]:
        return choice_specs(self.output_schema, path=self.path, text=self.text)

    @cached_property
    def texts(self) -> tuple[str, ...]:
        """Names of the properties that are written."""
        return text_properties(self.output_schema)

    def choice(self, name: str) -> ChoiceSpec:
        return next(spec for spec in self.choices if spec.name == name)

    @property
    def named_prompts(self) -> dict[str, str]:
        """The prompt files that it names, those of its scorers included, each with the key that names it."""
        named = dict.fromkeys(self.prompt_files, "prompt_files")
        for spec in self.choices:
            place = f"output_schema.properties.{spec.name}.x-decide"
            named |= {step.prompt: place for step in spec.steps if step.prompt}
        return named


@lru_cache(maxsize=128)
def parse_recipe(text: str, *, path: Path, key: str) -> Recipe:
    """The recipe that a YAML file says (S3 §10, §18.2), of the name that it was asked for by."""
    where = str(path)

    def read(cls: Any, value: object, at: str = "") -> Any:
        return decode(cls, value, where=where, key=at, fault=RecipeKeyError, text=text)

    def wrong(at: str, message: str, fix: str, fault: type[Problem] = RecipeKeyError) -> Problem:
        return fault(message, where, line=line_of(text, at), key=at, fix=fix)

    values = read(dict[str, Any], load_yaml(text, where=where, fault=RecipeError))
    own = {"path": path, "key": key, "text": text}
    for name in own.keys() & values.keys():
        raise wrong(name, f"unknown key {name!r}", "leave it out")
    sections = read(_Sections, values.get("input_sections", []), "input_sections")
    numbers = {"input_sections": tuple(int(section[1:]) for section in sections)}
    warmth = {"temperature": TEMPERATURES.get(str(values.get("model_layer")), 0)}
    recipe: Recipe = read(Recipe, {**warmth, **values, **own, **numbers})
    if ("system_prompt" in values) == ("prompt_files" in values):
        fix = "keep one of the two" if "prompt_files" in values else "add prompt_files:"
        message = "a recipe has either system_prompt or prompt_files"
        raise RecipeKeyError(message, where, key="system_prompt, prompt_files", fix=fix)
    budget = recipe.token_budget
    used = budget.prompt + budget.input + budget.output + budget.response_reserve
    if used > budget.total:
        over = f"{used - budget.total} more than its total of {budget.total}"
        message = f"the parts of the token budget add up to {used} tokens, {over}"
        fix = "raise total or lower prompt, input, output or response_reserve"
        raise wrong("token_budget", message, fix, RecipeBudgetError)
    preservable = (*PRESERVED, *recipe.input_docs, *(doc.rsplit(".", 1)[0] for doc in recipe.input_docs))
    for name in recipe.compression.preserve:
        if name not in preservable:
            raise wrong("compression.preserve", f"preserve is {name!r:.60}", nearest(name, preservable))
    for name, template in recipe.templates.items():
        if not _is_template(template):
            message = (
                "a template is a text, a list of texts, null or one of {spans|objects|instead: property}"
            )
            raise wrong(f"templates.{name}", message, "write it so")
    _ = recipe.choices  # raises what is wrong with them
    try:
        check_schema(recipe.output_schema)
    except SchemaError as exc:
        at = "output_schema" + (exc.key or "").rstrip("/").replace("/", ".")
        raise wrong(at, exc.message, exc.fix or "correct it", RecipeSchemaError) from exc
    return recipe


def named_choices(value: object) -> tuple[str, ...]:
    """The choices that a template names: one, or of `instead` several."""
    return tuple(map(str, value)) if isinstance(value, list) else (str(value),)


def _is_template(value: object) -> bool:
    if isinstance(value, Mapping):
        return len(value) == 1 and set(value) <= set(FORMS)
    texts = value if isinstance(value, list) else [value]
    return value is None or all(isinstance(text, str) for text in texts)
