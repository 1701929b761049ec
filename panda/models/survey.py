"""Whether the models of models.yaml are there and work, and each of their servers."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from panda.errors import CheckError, Problem, ReplyError
from panda.models.layers import LoadedLayers
from panda.models.model_contract import Deadline, GenerateParams, Message, ModelInfo, ScoreCase, ScoreParams
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
class Trial:
    seconds: float  # wall clock of all, loading included
    tokens_per_second: float | None = None
    """Tokens written a second; None if it wrote nothing or the server does not count them."""
    structured: str | None = None  # dialect in which a server gives replies of a schema
    thinks: bool | None = None  # whether it wrote reasoning; None if it wrote nothing
    logprobs: bool | None = None  # whether it tells how probable options or, on a server, its own tokens are


@dataclass(frozen=True)
class ServerState:
    """One server of a model, and what came of looking at it."""

    url: str  # base URL
    error: Problem | None = None  # why it cannot be used
    trial: Trial | None = None  # what came of using it; None if it was not tried or failed


@dataclass(frozen=True)
class ModelState:
    """One model of models.yaml, and what came of looking at it."""

    spec: ModelSpec  # its entry
    layers: tuple[str, ...]  # the layers that use it
    info: ModelInfo | None  # what its file says; None if that cannot be told
    error: Problem | None  # why it cannot be used
    trial: Trial | None = None
    """What came of using it; None if it was not tried, failed, or runs on several servers."""
    servers: tuple[ServerState, ...] = ()  # its servers in the order of the file; empty if it has none


def survey_models(models_file: ModelsFile, layers: LoadedLayers) -> list[ModelState]:
    """The state of every model, in the order of models.yaml, without loading one."""
    return [_look(models_file, layers, spec) for spec in models_file.models.values()]


def check_models(models_file: ModelsFile, open_layers: Callable[[], LoadedLayers]) -> Iterator[ModelState]:
    """Use every model for one small request, and free it before the next one, in the order of models.yaml."""
    for spec in models_file.models.values():
        with open_layers() as layers:
            yield check_model(models_file, layers, spec.name)


def check_model(models_file: ModelsFile, layers: LoadedLayers, name: str) -> ModelState:
    """Use one model for a small request, on each of its servers."""
    state = _look(models_file, layers, models_file.models[name])
    return _try(layers, state) if state.error is None else state


def _look(models_file: ModelsFile, layers: LoadedLayers, spec: ModelSpec) -> ModelState:
    users = {**models_file.layers, "encoder": models_file.encoder}
    used = tuple(user for user, name in users.items() if name == spec.name)
    info = None
    error = None
    try:
        info = (layers.encoder_named if spec.embeds else layers.named)(spec.name).info
    except Problem as exc:
        error = exc
    return ModelState(spec, used, info, error, servers=tuple(ServerState(url, error) for url in spec.servers))


def _try(layers: LoadedLayers, state: ModelState) -> ModelState:
    """The state of a model after it was used on each of its servers: those that can't be are named."""
    spec = state.spec
    tried = []
    for url in spec.servers or [spec.location]:
        try:
            tried.append(ServerState(url, trial=_try_out(layers, spec, url)))
        except Problem as exc:
            tried.append(ServerState(url, error=exc))
    errors = {server.url: server.error for server in tried if server.error is not None}
    error = next(iter(errors.values()), None)
    if error is not None and len(tried) > 1:
        reasons = "; ".join(f"{url}: {error.message}" for url, error in errors.items())
        message = f"{len(errors)} of {len(tried)} servers of {spec.name} cannot be used: {reasons}"
        error = CheckError(message, f"models.{spec.name}.location", fix=error.fix)
    return replace(
        state,
        info=None if error else state.info,
        error=error,
        trial=tried[0].trial if len(tried) == 1 else None,
        servers=tuple(tried) if spec.servers else (),
    )


def _try_out(layers: LoadedLayers, spec: ModelSpec, url: str) -> Trial:
    from panda.models.openai import OpenAiModel  # httpx takes half a second to import

    seconds = spec.timeout_seconds or _TIMEOUT_SECONDS
    clock = Deadline(seconds)
    if spec.embeds:
        layers.encoder_named(spec.name).encode(["yes"])
        return Trial(clock.elapsed_seconds)
    model = layers.on_server(spec.name, url) if spec.servers else layers.named(spec.name)
    if isinstance(model, OpenAiModel):
        model.check_alive(within_seconds=_ALIVE_SECONDS)
    logprobs: bool | None = None
    if spec.scores:
        model.score("Are you there? Say", [ScoreCase("", " yes")], ScoreParams(timeout_seconds=seconds))
        logprobs = True
    params = GenerateParams(temperature=0, max_tokens=100, seed=0, timeout_seconds=seconds, schema=_SCHEMA)
    completion = model.generate(_MESSAGES, params)
    if not is_of(_SCHEMA, completion.text):
        message = f"the model {spec.name} does not reply as the schema asks, but {completion.text!r:.80}"
        fix = "set structured to json_object or prompt, thinking_tokens if it thinks, or another model"
        raise ReplyError(message, where=f"models.{spec.name}", fix=fix)
    thinks = bool(completion.reasoning)
    dialect = None
    if (completion.usage.output or 0) < _MEASURED_TOKENS:
        completion = model.generate(_MESSAGES, replace(params, schema=None, max_tokens=_MEASURED_TOKENS))
    if isinstance(model, OpenAiModel):
        (dialect,) = model.dialects.values()
        logprobs = model.gives_logprobs(_MESSAGES, timeout_seconds=seconds)
        model.check_window()
    output = completion.usage.output
    speed = output / completion.seconds if output and completion.seconds else None
    return Trial(clock.elapsed_seconds, speed, dialect, thinks or bool(completion.reasoning), logprobs)
