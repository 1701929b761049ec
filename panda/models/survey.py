"""Whether the models of models.yaml are there and work."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from time import monotonic

from panda.errors import PandaError, ReplyError
from panda.models.contract import GenerateParams, Message, ModelInfo, ScoreCase, ScoreParams
from panda.models.layers import Layers
from panda.models.models_file import ModelsFile, ModelSpec
from panda.models.replies import is_of

_TIMEOUT_SECONDS = 120.0
_ALIVE_SECONDS = 5.0
_MESSAGES = (Message("user", "Which colour does the sky have on a clear day? Tell why."),)
_SCHEMA = {
    "type": "object",
    "properties": {"colour": {"enum": ["red", "green", "blue"]}},
    "required": ["colour"],
    "additionalProperties": False,
}
_MEASURED_TOKENS = 48
"""So many tokens at least tell how fast a model writes."""


@dataclass(frozen=True)
class ModelState:
    """One model of models.yaml, and what came of looking at it."""

    spec: ModelSpec
    """Its entry."""
    layers: tuple[str, ...]
    """The layers that use it."""
    info: ModelInfo | None
    """What its file says; None if that cannot be told."""
    error: PandaError | None
    """Why it cannot be used."""
    trial: "Trial | None" = None
    """What came of using it; None if it was not tried or failed."""


@dataclass(frozen=True)
class Trial:
    """What one small request to a model showed."""

    seconds: float
    """Wall clock of all, loading included."""
    tokens_per_second: float | None = None
    """Tokens written a second; None if it wrote nothing or the server does not count them."""
    structured: str | None = None
    """Dialect in which a server gives replies of a schema."""
    thinks: bool | None = None
    """Whether it wrote reasoning; None if it wrote nothing."""
    logprobs: bool | None = None
    """Whether it tells how probable options or, on a server, its own tokens are."""


def survey_models(models_file: ModelsFile, layers: Layers) -> list[ModelState]:
    """
    Look at every model without loading one.

    Returns:
        One state a model, in the order of models.yaml.
    """
    return [_look(models_file, layers, spec) for spec in models_file.models.values()]


def check_models(models_file: ModelsFile, open_layers: Callable[[], Layers]) -> Iterator[ModelState]:
    """
    Use every model for one small request, and free it before the next one.

    Args:
        models_file: Which models there are.
        open_layers: Gives them, none loaded.

    Yields:
        One state a model, in the order of models.yaml, as soon as it is known.
    """
    for spec in models_file.models.values():
        with open_layers() as layers:
            state = _look(models_file, layers, spec)
            if state.error is None:
                try:
                    state = replace(state, trial=_try_out(layers, spec))
                except PandaError as exc:
                    state = replace(state, info=None, error=exc)
        yield state


def _look(models_file: ModelsFile, layers: Layers, spec: ModelSpec) -> ModelState:
    try:
        info = (layers.encoder_named if spec.embeds else layers.named)(spec.name).info
    except PandaError as exc:
        return ModelState(spec, _used_by(models_file, spec), None, exc)
    return ModelState(spec, _used_by(models_file, spec), info, None)


def _used_by(models_file: ModelsFile, spec: ModelSpec) -> tuple[str, ...]:
    used = tuple(layer for layer, name in models_file.layers.items() if name == spec.name)
    return (*used, "encoder") if models_file.encoder == spec.name else used


def _try_out(layers: Layers, spec: ModelSpec) -> Trial:
    from panda.models.openai import OpenAiModel  # httpx takes half a second to import

    started = monotonic()
    if spec.embeds:
        layers.encoder_named(spec.name).encode(["yes"])
        return Trial(monotonic() - started)
    model = layers.named(spec.name)
    seconds = spec.timeout_seconds or _TIMEOUT_SECONDS
    if isinstance(model, OpenAiModel):
        model.check_alive(within_seconds=_ALIVE_SECONDS)
    logprobs: bool | None = None
    if spec.scores:  # a base model has no chat template, and needs none for this
        model.score("Are you there? Say", [ScoreCase("", " yes")], ScoreParams(timeout_seconds=seconds))
        logprobs = True
    if spec.scores and not spec.writes:
        return Trial(monotonic() - started, logprobs=logprobs)
    params = GenerateParams(temperature=0, max_tokens=100, seed=0, timeout_seconds=seconds, schema=_SCHEMA)
    completion = model.generate(_MESSAGES, params)
    if not is_of(_SCHEMA, completion.text):
        raise ReplyError(
            f"the model {spec.name} does not reply as the schema asks, but {completion.text!r:.80}",
            where=f"models.{spec.name}",
            fix="set structured to json_object or prompt, thinking_tokens if it thinks, or another model",
        )
    thinks, dialect = bool(completion.reasoning), None
    if (completion.usage.output or 0) < _MEASURED_TOKENS:
        completion = model.generate(_MESSAGES, replace(params, schema=None, max_tokens=_MEASURED_TOKENS))
    output = completion.usage.output
    if isinstance(model, OpenAiModel):
        dialect, logprobs = model.dialect, model.gives_logprobs(_MESSAGES, timeout_seconds=seconds)
    return Trial(
        monotonic() - started,
        tokens_per_second=output / completion.seconds if output and completion.seconds else None,
        structured=dialect,
        thinks=thinks or bool(completion.reasoning),
        logprobs=logprobs,
    )
