"""Layers → models, built when first asked for and shared; and whether they are there and work."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Self

from panda.errors import PandaError, ReplyError
from panda.models.contract import Encoder, GenerateParams, Message, Model, ModelInfo, ScoreCase, ScoreParams
from panda.models.models_file import LAYERS, ModelsFile, ModelSpec
from panda.models.replies import is_of

if TYPE_CHECKING:
    from panda.models.llama.loaded import LoadedGgufs
    from panda.models.openai import OpenAiModel

EYES = "EYES"
"""The layer that sees; loaded on demand, freed after use."""


class Layers:
    """
    The models of one process.

    Args:
        models_file: What models.yaml says.
        cache_dir: For what can be computed again: requantised models, prompt prefixes, dialects of servers.
        environ: Where API keys are looked up by the name given in models.yaml.
    """

    def __init__(self, models_file: ModelsFile, *, cache_dir: Path, environ: Mapping[str, str]) -> None:
        from panda.models.llama.loaded import LoadedGgufs

        self._file = models_file
        self._environ = environ
        self._cache_dir = cache_dir
        self._servers: list[OpenAiModel] = []
        self._ggufs, self._seeing_ggufs = LoadedGgufs(cache_dir), LoadedGgufs(cache_dir)
        self._models: dict[str, Model] = {}
        self._seeing: Model | None = None

    def model(self, layer: str) -> Model:
        """
        The model of a layer; that of EYES has memory of its own, so that it can be freed alone.

        Raises:
            ModelFileError: The layer is unset, its model's file is missing, or that of EYES cannot see.
        """
        if layer not in LAYERS:
            raise ValueError(f"there is no layer {layer!r}")
        name = self._file.layers[layer]
        if name is None:
            message, fix = f"the layer {layer} has no model", f"name a model for {layer} in models.yaml"
            raise self._file.error(f"layers.{layer}", message, fix)
        if layer != EYES:
            return self.named(name)
        if self._seeing is None:
            self._seeing = self._build_seeing(self._file.models[name])
        return self._seeing

    def release(self, layer: str) -> None:
        """Free what EYES holds, the only layer loaded on demand; it is loaded again when asked again."""
        if layer == EYES:
            self._seeing_ggufs.close()

    def named(self, name: str) -> Model:
        """
        The model of that key in models.yaml.

        Raises:
            ModelFileError: Its file is missing or no GGUF, or its API key is not set.
        """
        if name not in self._models:
            self._models[name] = self._build(self._file.models[name], self._ggufs)
        return self._models[name]

    def encoder(self) -> Encoder | None:
        """The model that turns texts into vectors, as encoder_named; None if models.yaml sets none."""
        return None if self._file.encoder is None else self.encoder_named(self._file.encoder)

    def encoder_named(self, name: str) -> Encoder:
        """
        The encoder of that key in models.yaml.

        Raises:
            ModelFileError: Its file is missing or no GGUF.
        """
        return self._ggufs.encoder(self._file.models[name], relative_to=self._file.path.parent)

    def close(self) -> None:
        """Free all models. None of those given out may be used any more."""
        for server in self._servers:
            server.close()
        self._servers.clear()
        self._models.clear()
        self._seeing = None
        self._seeing_ggufs.close()
        self._ggufs.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def _build(self, spec: ModelSpec, ggufs: "LoadedGgufs") -> Model:
        if spec.backend == "llama_cpp":
            return ggufs.model(spec, relative_to=self._file.path.parent)
        from panda.models.openai import OpenAiModel

        key = None if spec.api_key_env is None else self._environ.get(spec.api_key_env, "").strip()
        if spec.api_key_env is not None and not key:
            message = f"the environment variable {spec.api_key_env} is not set"
            fix = f"export {spec.api_key_env} with the server's key"
            raise self._file.error(f"models.{spec.name}.api_key_env", message, fix)
        server = OpenAiModel(spec, api_key=key, cache_dir=self._cache_dir)
        self._servers.append(server)
        return server

    def _build_seeing(self, spec: ModelSpec) -> Model:
        at, of_eyes = f"models.{spec.name}", f"the model {spec.name} of the layer EYES"
        if not spec.writes:
            message = f"{of_eyes} does not write, so it cannot describe a picture"
            raise self._file.error(
                f"{at}.writes", message, "set writes: true, or name another model for EYES"
            )
        if spec.backend == "llama_cpp" and spec.projector is None:
            fix = "name the projector file (mmproj-….gguf) that comes with the model"
            raise self._file.error(f"{at}.projector", f"{of_eyes} has no projector, so it cannot see", fix)
        return self._build(spec, self._seeing_ggufs)


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

    spec: ModelSpec  # its entry
    layers: tuple[str, ...]  # the layers that use it
    info: ModelInfo | None  # what its file says; None if that cannot be told
    error: PandaError | None  # why it cannot be used
    trial: "Trial | None" = None  # what came of using it; None if it was not tried or failed


@dataclass(frozen=True)
class Trial:
    """What one small request to a model showed."""

    seconds: float  # wall clock of all, loading included
    tokens_per_second: float | None = None
    """Tokens written a second; None if it wrote nothing or the server does not count them."""
    structured: str | None = None  # dialect in which a server gives replies of a schema
    thinks: bool | None = None  # whether it wrote reasoning; None if it wrote nothing
    logprobs: bool | None = None  # whether it tells how probable options or, on a server, its own tokens are


def survey_models(models_file: ModelsFile, layers: Layers) -> list[ModelState]:
    """The state of every model, in the order of models.yaml, without loading one."""
    return [_look(models_file, layers, spec) for spec in models_file.models.values()]


def check_models(models_file: ModelsFile, open_layers: Callable[[], Layers]) -> Iterator[ModelState]:
    """
    Use every model for one small request, and free it before the next one.

    Args:
        open_layers: Gives the models, none loaded.

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
    used = tuple(layer for layer, name in models_file.layers.items() if name == spec.name)
    if models_file.encoder == spec.name:
        used = (*used, "encoder")
    try:
        info = (layers.encoder_named if spec.embeds else layers.named)(spec.name).info
    except PandaError as exc:
        return ModelState(spec, used, None, exc)
    return ModelState(spec, used, info, None)


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
