"""What one call of a recipe asks, compiled once from the recipe and from what its model can do."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

from panda.choosing.decision import FITTED, ChoiceSpec, Step
from panda.models.contract import ModelInfo
from panda.models.models_file import OFFLINE, ModelSpec
from panda.recipes.recipe import FORMS, Recipe, named_choices
from panda.recipes.schema import is_confidence, lenient_properties, option_places
from panda.recipes.steps import StepInputs

Capability = Literal["chooses", "writes", "writes and scores"]
CAPABILITIES: tuple[Capability, ...] = get_args(Capability)
WRITER, ENCODER = "writer", "encoder"
_HEAD = f"{ENCODER} head"
_DECIDERS = {"head": _HEAD, "options": _HEAD, "cosine": ENCODER, "prior": "rule"}


def capability_of(model: ModelInfo | ModelSpec | Literal["offline"]) -> Capability:
    if model == OFFLINE:
        return "chooses"
    return "writes and scores" if model.scores else "writes"


@dataclass(frozen=True)
class CallPlan:
    """
    One call of a recipe under one capability. A model that writes gives texts and choices in one reply, the
    choices last; one that only chooses makes each choice by its decision list, and templates fill the texts,
    or leave them out.
    """

    recipe: Recipe
    capability: Capability
    texts: tuple[str, ...]  # text properties that the model writes; none of a recipe without a schema
    choices: tuple[ChoiceSpec, ...]  # choices that are made, in the order of the schema
    templates: Mapping[str, Any]  # properties that are filled by code, each with what it is made of
    replaced: Mapping[str, tuple[str, ...]]
    """Properties that are not asked for, each with those that are asked for instead."""
    hidden: frozenset[str]  # options that the model is not shown
    optional: tuple[str, ...]  # properties that a reply may lack, required or not
    defaults: Mapping[str, Any]  # what counts where a reply has not what the phase reads

    @property
    def writes(self) -> bool:
        return self.capability != "chooses"

    @property
    def asked(self) -> tuple[str, ...]:
        """Properties of the schema that the model is shown and asked for, in the order of the reply."""
        return (*self.texts, *(spec.name for spec in self.choices))

    @property
    def lenient(self) -> tuple[str, ...]:
        """Texts whose faults refuse no reply."""
        return lenient_properties(self.recipe.output_schema)

    @property
    def computes_confidence(self) -> bool:
        """Whether the schema asks for a confidence of the whole reply, which code computes."""
        return is_confidence("confidence", self.recipe.output_schema.get("properties", {}).get("confidence"))

    @property
    def deciding(self) -> ChoiceSpec | None:
        """The choice whose confidence is that of the reply: the last with values of its own."""
        return next((spec for spec in reversed(self.choices) if spec.values), None)

    def is_shown_whole(self, options: str, prompt: str) -> bool:
        """Whether a model that writes sees all options of that name, and not only those in no document."""
        is_chosen = options in option_places(self.recipe.output_schema) and options not in self.replaced
        return is_chosen or f'"{options}"' in prompt or not self.recipe.is_object

    def how(self) -> dict[str, str]:
        """How each property of the reply comes about, in words."""
        names = self.recipe.output_schema.get("properties") or {"text": None}
        return {name: self._how(name) for name in names}

    def _how(self, name: str) -> str:
        if name in self.replaced:
            return f"left out: {', '.join(self.replaced[name])} instead"
        if name in self.templates:
            return f"template {self.templates[name]!r}"
        if name == "confidence" and self.computes_confidence:
            return "computed"
        spec = next((spec for spec in self.choices if spec.name == name), None)
        if self.writes:
            scored = spec is not None and spec is self.deciding and self.capability == "writes and scores"
            return "written, its probability is the confidence" if scored else "written"
        return " / ".join(map(_step_words, spec.steps)) if spec else "left out"

    def deciders(self, has_fit: Callable[[Step], bool]) -> str:
        """What decides, in words; *has_fit* tells which steps have a fit for the encoder that is set."""
        if self.writes:
            return WRITER
        if not self.recipe.is_object:
            return "nothing: needs a model that writes"
        steps = [step for spec in self.choices for step in reached_steps(spec, has_fit)]
        kinds = dict.fromkeys(_DECIDERS[step.scorer] for step in steps if step.scores)
        return " + ".join(kinds) or ("rule" if self.choices else "template")


def compile_call(
    recipe: Recipe, capability: Capability, given: StepInputs | None = None, packaged: Recipe | None = None
) -> CallPlan:
    """
    The call of a recipe under a capability; *given* is the step that it serves, if it serves one, *packaged*
    the recipe that comes with the program for it. From that a model that only chooses has what the recipe
    does not say: the decision lists of its choices, and all of a reply that is to be written.
    """
    choices = recipe.choices
    if capability == "chooses" and packaged is not None:
        if not recipe.is_object:
            of_reply = ("output_format", "output_schema", "templates")
            recipe = replace(recipe, **{name: getattr(packaged, name) for name in of_reply})
        choices = tuple(_with_list(spec, recipe, packaged) for spec in recipe.choices)
    forms = {name: form for name, form in recipe.templates.items() if isinstance(form, Mapping)}
    instead = {name: named_choices(form["instead"]) for name, form in forms.items() if "instead" in form}
    sources = {  # choices that exist only to feed templates, each with the text of that template
        choice: (name,)
        for name, form in forms.items()
        for kind in FORMS
        if kind in form
        for choice in named_choices(form[kind])
    }
    properties = recipe.output_schema.get("properties", {})
    texts = tuple(name for name in recipe.texts if not is_confidence(name, properties[name]))
    optional = tuple(name for name in recipe.texts if name not in texts)
    defaults = given.defaults if given and recipe.is_object else {}
    if capability == "chooses":
        filled = {name: value for name, value in recipe.templates.items() if name not in instead}
        optional += tuple(name for name in texts if name not in filled)
        return CallPlan(recipe, capability, (), choices, filled, instead, frozenset(), optional, defaults)
    choices = tuple(spec for spec in choices if spec.name not in sources)
    hidden = frozenset(choice for choices_ in instead.values() for choice in choices_)
    return CallPlan(recipe, capability, texts, choices, {}, sources, hidden, (*optional, *sources), defaults)


def _with_list(spec: ChoiceSpec, recipe: Recipe, packaged: Recipe) -> ChoiceSpec:
    """A choice with the packaged decision list, if it has none and that chooses among its values."""
    other = next((other for other in packaged.choices if other.name == spec.name), None)
    is_own = "x-decide" in recipe.output_schema["properties"][spec.name]
    if other is None or is_own or not set(other.values) <= set(spec.values):
        return spec
    return replace(spec, values=other.values, steps=other.steps)


def reached_steps(spec: ChoiceSpec, has_fit: Callable[[Step], bool]) -> Iterator[Step]:
    """The steps of a decision list up to the first that always decides."""
    is_fitted = False
    for step in spec.steps:
        if (step.unfitted and is_fitted) or (step.scorer in FITTED and not has_fit(step)):
            continue
        is_fitted = is_fitted or step.scorer in FITTED
        yield step
        if step.at_least is None and (step.choose is not None or not step.class_):
            return


def _step_words(step: Step) -> str:
    value = "" if step.choose is None else f"{step.choose} "
    if not step.scores and step.choose is not None:
        return f"{step.choose}"
    decider = _DECIDERS[step.scorer]
    by = f"{decider} {step.fit}" if step.fit else decider
    bar = "" if step.at_least is None else f" from {step.at_least:g}"
    return f"{value}{'by ' if value else ''}{by}{bar}"
