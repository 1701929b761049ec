"""
An output schema, split into choices and text.

A property with `enum`, of type boolean, or with `x-options` is a choice: its options are scored. Every other
property is text. The x- keys of a choice say how it is made:

    x-options   candidates or spans: the options come with the call, each with an id and a text
    x-many      {max, at_least}: a subset instead of one; at_least is the lowest score that is taken
    x-decide    a list of steps; the first step that reaches its bar decides. A step has
                choose    the value it stands for; without it the best of the offered options is taken
                scorer    label, likelihood, channel or prior
                prompt    the prompt file that the scorer reads
                over      name of the options it looks at, if not the property's own
                at_least  lowest score that counts
                prior     weight of the options' own prior (their rank by words)
                reverse   weight of log P(option | query) beside log P(query | option)
                cue       for label: the words that the label completes
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, cast

from panda.errors import RecipeKeyError

Scorer = Literal["label", "likelihood", "channel", "prior"]
SCORERS: tuple[Scorer, ...] = ("label", "likelihood", "channel", "prior")


@dataclass(frozen=True)
class Many:
    """A choice of a subset."""

    max: int
    """Most options taken."""
    at_least: float
    """Lowest score that is taken."""


@dataclass(frozen=True)
class Step:
    """One step of a choice's decision list."""

    choose: str | bool | None
    """Value it stands for; None takes the best offered option."""
    scorer: Scorer
    """How options are scored."""
    prompt: str | None
    """Prompt file of the scorer."""
    over: str | None
    """Name of the options looked at; None means the property's own."""
    at_least: float | None
    """Lowest score that decides; None always decides."""
    prior: float
    """Weight of the options' own prior."""
    reverse: float
    """Weight of the reverse likelihood."""
    cue: str
    """Words that a label completes."""


@dataclass(frozen=True)
class ChoiceSpec:
    """How one choice property is made."""

    name: str
    """The property."""
    values: tuple[str | bool, ...]
    """Values of an enum or boolean; empty when the options come with the call."""
    many: Many | None
    """Set when a subset is chosen."""
    steps: tuple[Step, ...]
    """The decision list, at least one step."""


def is_choice(schema: Mapping[str, Any]) -> bool:
    """
    Whether a property is scored and not written.

    >>> is_choice({"enum": ["a", "b"]}), is_choice({"type": "string"})
    (True, False)
    """
    return "enum" in schema or "x-options" in schema or schema.get("type") == "boolean"


def choice_specs(schema: Mapping[str, Any], *, where: str) -> tuple[ChoiceSpec, ...]:
    """
    The choices of an output schema, in its order.

    Args:
        schema: Output schema of a recipe.
        where: File, for errors.

    Raises:
        RecipeKeyError: An x- key is unknown or wrong.
    """
    properties = cast(Mapping[str, Mapping[str, Any]], schema.get("properties", {}))
    return tuple(_spec(name, value, where) for name, value in properties.items() if is_choice(value))


def text_properties(schema: Mapping[str, Any]) -> tuple[str, ...]:
    """
    Names of the properties that are written.

    >>> text_properties({"properties": {"why": {"type": "string"}, "ok": {"type": "boolean"}}})
    ('why',)
    """
    return tuple(name for name, value in schema.get("properties", {}).items() if not is_choice(value))


def plain_schema(
    schema: Mapping[str, Any], *, only: Sequence[str] | None, options: Mapping[str, Sequence[str]]
) -> dict[str, Any]:
    """
    The schema without x- keys, with the ids of the given options as enums.

    Args:
        schema: Output schema of a recipe.
        only: Properties to keep; None keeps all.
        options: Ids for each `x-options` place, by property name; a nested place uses its own name or
            the name in `x-from`. A place without options becomes a string.

    >>> plain_schema({"properties": {"id": {"type": "string", "x-options": "candidates"}}}, only=None,
    ...              options={"id": ["a"]})
    {'properties': {'id': {'type': 'string', 'enum': ['a']}}}
    """
    result = cast(dict[str, Any], _strip(schema, "", options))
    if only is not None:
        result["properties"] = {name: result["properties"][name] for name in only}
        result["required"] = [name for name in result.get("required", []) if name in only]
    return result


def _strip(value: Any, name: str, options: Mapping[str, Sequence[str]]) -> Any:
    if isinstance(value, list):
        return [_strip(item, name, options) for item in value]
    if not isinstance(value, Mapping):
        return value
    result = {
        key: {inner: _strip(item, inner, options) for inner, item in part.items()}
        if key == "properties"
        else _strip(part, name, options)
        for key, part in value.items()
        if not key.startswith("x-")
    }
    ids = options.get(value.get("x-from", name)) if "x-options" in value else None
    if ids and value.get("type") == "array":
        result["items"] = {"type": "string", "enum": list(ids)}
    elif ids:
        result["enum"] = list(ids)
    return result


_STEP_KEYS = {"choose", "scorer", "prompt", "over", "at_least", "prior", "reverse", "cue"}


def _spec(name: str, schema: Mapping[str, Any], where: str) -> ChoiceSpec:
    place = f"{where} (output_schema.properties.{name})"
    known = {"x-options", "x-many", "x-decide", "x-from"}
    for key in schema:
        if key.startswith("x-") and key not in known:
            raise RecipeKeyError(
                f"unknown key {key!r}", where=place, fix=f"known: {', '.join(sorted(known))}"
            )
    values: tuple[str | bool, ...] = tuple(schema.get("enum", ()))
    if schema.get("type") == "boolean":
        values = (True, False)
    many = schema.get("x-many")
    if many is not None and set(many) != {"max", "at_least"}:
        raise RecipeKeyError("x-many needs the keys max and at_least", where=place)
    steps = tuple(_step(step, place) for step in schema.get("x-decide", [{"scorer": "label"}]))
    if not steps:
        raise RecipeKeyError("x-decide has no step", where=place, fix="leave x-decide out, or add a step")
    for step in steps:
        if step.choose is not None and values and step.choose not in values:
            raise RecipeKeyError(
                f"a step chooses {step.choose!r}, which is not among the values", where=place,
                fix=f"use one of {', '.join(str(value) for value in values)}",
            )  # fmt: skip
    return ChoiceSpec(name, values, Many(int(many["max"]), float(many["at_least"])) if many else None, steps)


def _step(step: Mapping[str, Any], place: str) -> Step:
    unknown = set(step) - _STEP_KEYS
    if unknown:
        raise RecipeKeyError(
            f"unknown key {sorted(unknown)[0]!r} in x-decide",
            where=place,
            fix=f"known: {', '.join(sorted(_STEP_KEYS))}",
        )
    scorer = step.get("scorer", "label")
    if scorer not in SCORERS:
        raise RecipeKeyError(
            f"unknown scorer {scorer!r}", where=place, fix=f"use one of {', '.join(SCORERS)}"
        )
    if scorer in ("likelihood", "channel") and not step.get("prompt"):
        raise RecipeKeyError(f"the scorer {scorer} needs a prompt file", where=place, fix="add prompt:")
    bar = step.get("at_least")
    return Step(
        choose=step.get("choose"),
        scorer=scorer,
        prompt=step.get("prompt"),
        over=step.get("over"),
        at_least=None if bar is None else float(bar),
        prior=float(step.get("prior", 0.0)),
        reverse=float(step.get("reverse", 0.0)),
        cue=str(step.get("cue", "Answer:")),
    )
