"""Whether the models of models.yaml are there and work."""

from collections.abc import Iterator
from dataclasses import dataclass
from time import monotonic

from panda.errors import PandaError
from panda.models.contract import GenerateParams, Message, Model, ModelInfo, ScoreCase, ScoreParams
from panda.models.layers import Layers
from panda.models.models_file import ModelsFile, ModelSpec

_TIMEOUT_SECONDS = 120.0


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
    seconds: float | None = None
    """How long loading it and one token took; None if it was not tried or failed."""


def survey_models(models_file: ModelsFile, layers: Layers) -> list[ModelState]:
    """
    Look at every model without loading one.

    Returns:
        One state a model, in the order of models.yaml.
    """
    return [_look(models_file, layers, spec) for spec in models_file.models.values()]


def check_models(models_file: ModelsFile, layers: Layers) -> Iterator[ModelState]:
    """
    Load every model and run one token through it.

    Yields:
        One state a model, in the order of models.yaml, as soon as it is known.
    """
    for spec in models_file.models.values():
        started = monotonic()
        try:
            model = layers.named(spec.name)
            _run_one_token(model)
        except PandaError as exc:
            yield ModelState(spec, _used_by(models_file, spec), None, exc)
        else:
            yield ModelState(spec, _used_by(models_file, spec), model.info, None, monotonic() - started)


def _look(models_file: ModelsFile, layers: Layers, spec: ModelSpec) -> ModelState:
    try:
        info = layers.named(spec.name).info
    except PandaError as exc:
        return ModelState(spec, _used_by(models_file, spec), None, exc)
    return ModelState(spec, _used_by(models_file, spec), info, None)


def _used_by(models_file: ModelsFile, spec: ModelSpec) -> tuple[str, ...]:
    return tuple(layer for layer, name in models_file.layers.items() if name == spec.name)


def _run_one_token(model: Model) -> None:
    messages = [Message("user", "Say yes.")]
    model.generate(
        messages, GenerateParams(temperature=0, max_tokens=1, seed=0, timeout_seconds=_TIMEOUT_SECONDS)
    )
    if model.info.scores:
        prefix = model.render_chat(messages)
        model.score(prefix, [ScoreCase("", "yes")], ScoreParams(timeout_seconds=_TIMEOUT_SECONDS))
