"""A recipe file as values (S3 §10, §12–§14): one LLM call, everything it needs said in one place."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any, Literal

from msgspec import Meta

from panda.documents.json_schema import check_schema
from panda.documents.record_codec import Words, decode
from panda.documents.safe_text import nearest
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
from panda.recipes.schema import is_confidence, property_schemas

TEMPERATURES: Mapping[str, float] = {"REFLEX": 0.3, "NERVES": 0.1, "MIND": 0.5, "VOICE": 0.7, "EYES": 0.3}
PRESERVED = (*(f"section_{number}" for number in range(7)), "tool_errors", "urls", "prices", "dates")
"""What compression.preserve may name, besides documents of input_docs; error messages stay anyway."""
_Sections = tuple[Literal["§0", "§1", "§2", "§3", "§4", "§5", "§6"], ...]
_Count = Annotated[int, Meta(ge=0)]
_RETIRED = ("x-options", "x-from", "x-many", "x-decide", "x-written", "x-lenient", "x-arguments")
"""Keys of output_schema that earlier versions read; the contract of the step says now what they said."""


@dataclass(frozen=True)
class TokenBudget:
    """Ceilings of one call in budget tokens (S3 §11.1)."""

    total: _Count  # everything together
    prompt: _Count  # what never changes: policy, role prompt, schema, examples
    input: _Count  # documents and options of the turn
    output: _Count  # what the model may write, in model tokens
    response_reserve: _Count = 0  # kept free beside the output
    longest_output: _Count = 0
    """What a model may write at most, where call and window leave room for more than output."""


@dataclass(frozen=True)
class QualityGates:
    """What a reply must pass (S3 §14)."""

    schema_validation: bool = True  # check the reply against output_schema
    confidence_threshold: Annotated[float, Meta(ge=0, le=1)] | None = None
    """Lowest confidence of the deciding property that passes; None has no such gate."""
    below_threshold: Literal["retry", "clarify", "halt", "proceed"] = "proceed"
    """What happens below confidence_threshold; a confidence that is not known is not below it."""
    evidence_required: bool = False  # items must cite nodes that were given
    max_retries: _Count = 2  # further attempts after a reply that failed
    timeout_ms: Annotated[int, Meta(ge=1)] = 300_000  # wall clock of one model call; a timeout is not retried


@dataclass(frozen=True)
class CompressionSettings:
    """How the inputs are brought down to budget."""

    enabled: bool = True  # off: inputs over budget are an error
    model_layer: Layer = "NERVES"  # layer that compresses
    preserve: tuple[str, ...] = ("section_0",)  # what is never touched


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """One recipe, checked."""

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
    """JSON Schema of the reply."""
    quality_gates: QualityGates = QualityGates()  # gates
    compression: CompressionSettings = CompressionSettings()  # fitting
    mode: Literal["chat", "code"] | None = None  # mode it is for; None is for both
    tools_available: tuple[str, ...] = ()  # tools that the model may choose from
    temperature: Annotated[float, Meta(ge=0, le=2)]  # sampling temperature
    examples: tuple[str, ...] = ()  # worked examples shown in the prompt
    text: str = field(repr=False)  # the file as read

    @property
    def is_object(self) -> bool:
        """Return whether the reply is an object of output_schema, written as JSON or YAML."""
        return self.output_format in ("json", "yaml")

    @property
    def needs(self) -> tuple[str, ...]:
        """Return the properties that a reply has to hold; a confidence is computed and none of them."""
        schemas = property_schemas(self.output_schema)
        required = self.output_schema.get("required", ())
        return tuple(name for name in required if not is_confidence(name, schemas.get(name)))

    def enum_of(self, name: str) -> tuple[str | bool, ...]:
        """Return the values that a property may have; empty if it is none with values of its own."""
        schema = property_schemas(self.output_schema).get(name, {})
        if schema.get("type") == "boolean":
            return True, False
        return tuple(schema.get("enum", ()))


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
    if "templates" in values:
        fix = f"leave it out; what an offline layer replies, `panda recipe show {key}` tells"
        raise wrong("templates", "templates are not read any more", fix)
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
    for at in _retired_keys(recipe.output_schema, "output_schema"):
        message = "this key is not read any more: the contract of the step has it"
        raise wrong(at, message, f"leave it out; `panda recipe show {key}` prints the contract")
    try:
        check_schema(recipe.output_schema)
    except SchemaError as exc:
        at = "output_schema" + (exc.key or "").rstrip("/").replace("/", ".")
        raise wrong(at, exc.message, exc.fix or "correct it", RecipeSchemaError) from exc
    return recipe


def _retired_keys(schema: object, place: str) -> Iterator[str]:
    """Yield the places of keys in a schema that earlier versions read."""
    if isinstance(schema, list):
        for part in schema:
            yield from _retired_keys(part, place)
    if not isinstance(schema, Mapping):
        return
    for key, part in schema.items():
        if key in _RETIRED:
            yield f"{place}.{key}"
        yield from _retired_keys(part, f"{place}.{key}")
