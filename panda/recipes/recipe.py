"""A recipe file as values (S3 §10, §12–§14): one LLM call, everything it needs said in one place."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Literal, cast

from panda.errors import RecipeBudgetError, RecipeKeyError

Layer = Literal["REFLEX", "NERVES", "MIND", "VOICE", "EYES"]
LAYERS: tuple[Layer, ...] = ("REFLEX", "NERVES", "MIND", "VOICE", "EYES")
TEMPERATURES: Mapping[Layer, float] = {"REFLEX": 0.3, "NERVES": 0.1, "MIND": 0.5, "VOICE": 0.7, "EYES": 0.3}
BELOW_THRESHOLD = ("retry", "clarify", "halt", "proceed")
OUTPUT_FORMATS = ("json", "markdown", "yaml", "text")


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


_KEYS = tuple(name for name in Recipe.__dataclass_fields__ if name not in ("path", "key", "text"))
_REQUIRED = ("name", "description", "model_layer", "token_budget", "output_format")


def parse_recipe(values: object, *, path: Path, key: str, text: str) -> Recipe:
    """
    The recipe that a YAML file says.

    Args:
        values: The parsed YAML.
        path: The file, for errors.
        key: Name it was asked for by, e.g. "pipeline/phase1_reflection".
        text: The file as read.

    Raises:
        RecipeKeyError: A key is unknown, missing or of the wrong type.
        RecipeBudgetError: The parts of token_budget exceed its total.

    Source:
        S3 §10, §18.2.
    """
    reader = _Reader(path, "")
    recipe = reader.mapping(values)
    reader.check_keys(recipe, _KEYS, _REQUIRED)
    if ("system_prompt" in recipe) == ("prompt_files" in recipe):
        raise RecipeKeyError(
            "a recipe has either system_prompt or prompt_files",
            where=f"{path} (system_prompt, prompt_files)",
            fix="keep one of the two",
        )
    layer = reader.one_of(recipe["model_layer"], "model_layer", LAYERS)
    return Recipe(
        path=path,
        key=key,
        name=reader.string(recipe["name"], "name"),
        description=reader.string(recipe["description"], "description"),
        model_layer=cast(Layer, layer),
        token_budget=_parse_budget(recipe["token_budget"], path),
        system_prompt=reader.optional_string(recipe.get("system_prompt"), "system_prompt"),
        prompt_files=reader.strings(recipe.get("prompt_files", []), "prompt_files"),
        input_docs=reader.strings(recipe.get("input_docs", []), "input_docs"),
        input_sections=_parse_sections(reader, recipe.get("input_sections", [])),
        variables={
            name: reader.string(value, f"variables.{name}")
            for name, value in reader.mapping(recipe.get("variables", {}), "variables").items()
        },
        output_format=cast(Any, reader.one_of(recipe["output_format"], "output_format", OUTPUT_FORMATS)),
        output_schema=reader.mapping(recipe.get("output_schema", {}), "output_schema"),
        quality_gates=_parse_gates(recipe.get("quality_gates", {}), path),
        compression=_parse_compression(recipe.get("compression", {}), path),
        mode=cast(Any, recipe.get("mode") and reader.one_of(recipe["mode"], "mode", ("chat", "code"))),
        tools_available=reader.strings(recipe.get("tools_available", []), "tools_available"),
        temperature=reader.number(recipe.get("temperature", TEMPERATURES[cast(Layer, layer)]), "temperature"),
        examples=reader.strings(recipe.get("examples", []), "examples"),
        templates=reader.mapping(recipe.get("templates", {}), "templates"),
        text=text,
    )


def _parse_budget(values: object, path: Path) -> TokenBudget:
    reader = _Reader(path, "token_budget")
    budget = reader.mapping(values)
    names = ("total", "prompt", "input", "output", "response_reserve")
    reader.check_keys(budget, names, names[:4])
    parts = {name: reader.count(budget.get(name, 0), name) for name in names}
    used = sum(parts[name] for name in names[1:])
    if used > parts["total"]:
        raise RecipeBudgetError(
            f"the parts of the token budget add up to {used} tokens, {used - parts['total']} more than its "
            f"total of {parts['total']}",
            where=f"{path} (token_budget)",
            fix="raise total or lower prompt, input, output or response_reserve",
        )
    return TokenBudget(**parts)


def _parse_gates(values: object, path: Path) -> QualityGates:
    reader = _Reader(path, "quality_gates")
    gates = reader.mapping(values)
    reader.check_keys(gates, tuple(QualityGates.__dataclass_fields__), ())
    given: dict[str, Any] = {}
    for name in ("schema_validation", "evidence_required"):
        if name in gates:
            given[name] = reader.boolean(gates[name], name)
    for name in ("max_retries", "timeout_ms"):
        if name in gates:
            given[name] = reader.count(gates[name], name)
    if gates.get("confidence_threshold") is not None:
        given["confidence_threshold"] = reader.number(gates["confidence_threshold"], "confidence_threshold")
    if "below_threshold" in gates:
        given["below_threshold"] = reader.one_of(gates["below_threshold"], "below_threshold", BELOW_THRESHOLD)
    return QualityGates(**given)


def _parse_compression(values: object, path: Path) -> Compression:
    reader = _Reader(path, "compression")
    compression = reader.mapping(values)
    reader.check_keys(compression, tuple(Compression.__dataclass_fields__), ())
    return Compression(
        enabled=reader.boolean(compression.get("enabled", True), "enabled"),
        model_layer=cast(Any, reader.one_of(compression.get("model_layer", "NERVES"), "model_layer", LAYERS)),
        preserve=reader.strings(compression.get("preserve", ["section_0"]), "preserve"),
    )


def _parse_sections(reader: "_Reader", value: object) -> tuple[int, ...]:
    names = reader.strings(value, "input_sections")
    wanted = tuple(f"§{number}" for number in range(7))
    return tuple(wanted.index(reader.one_of(name, "input_sections", wanted)) for name in names)


@dataclass(frozen=True)
class _Reader:
    """Takes typed values out of parsed YAML and names file and key when they are not there."""

    path: Path
    prefix: str

    def _fail(self, key: str, message: str, fix: str | None = None) -> RecipeKeyError:
        dotted = ".".join(part for part in (self.prefix, key) if part)
        return RecipeKeyError(message, where=f"{self.path} ({dotted or 'top level'})", fix=fix)

    def _typed(self, value: object, key: str, wanted: str, fits: Callable[[object], bool]) -> Any:
        if not fits(value):
            raise self._fail(key, f"{key or 'the file'} must be {wanted}, but is {value!r:.60}")
        return value

    def mapping(self, value: object, key: str = "") -> dict[str, Any]:
        return cast(
            dict[str, Any],
            self._typed(
                value, key, "a mapping", lambda v: isinstance(v, dict) and all(isinstance(k, str) for k in v)
            ),
        )

    def string(self, value: object, key: str) -> str:
        return cast(str, self._typed(value, key, "a text", lambda v: isinstance(v, str) and v.strip() != ""))

    def optional_string(self, value: object, key: str) -> str | None:
        return None if value is None else self.string(value, key)

    def strings(self, value: object, key: str) -> tuple[str, ...]:
        items = self._typed(
            value, key, "a list of texts", lambda v: isinstance(v, list) and all(type(i) is str for i in v)
        )
        return tuple(items)

    def boolean(self, value: object, key: str) -> bool:
        return cast(bool, self._typed(value, key, "true or false", lambda v: isinstance(v, bool)))

    def count(self, value: object, key: str) -> int:
        return cast(
            int,
            self._typed(
                value,
                key,
                "a whole number of at least 0",
                lambda v: isinstance(v, int) and not isinstance(v, bool) and v >= 0,
            ),
        )

    def number(self, value: object, key: str) -> float:
        return float(
            self._typed(
                value,
                key,
                "a number",
                lambda v: isinstance(v, int | float) and not isinstance(v, bool) and 0 <= v <= 2,
            )
        )

    def one_of(self, value: object, key: str, allowed: tuple[str, ...]) -> str:
        if value not in allowed:
            raise self._fail(key, f"{key} is {value!r:.60}", f"use one of {', '.join(allowed)}")
        return value

    def check_keys(
        self, values: Mapping[str, object], known: tuple[str, ...], required: tuple[str, ...]
    ) -> None:
        for key in values:
            if key not in known:
                near = get_close_matches(key, known, n=1)
                raise self._fail(
                    key,
                    f"unknown key {key!r}",
                    f"did you mean {near[0]!r}?" if near else f"known keys: {', '.join(known)}",
                )
        for key in required:
            if key not in values:
                raise self._fail(key, f"the key {key!r} is missing", f"add {key}:")
