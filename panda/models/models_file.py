"""models.yaml: which models there are, and which one each layer uses."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal, get_args
from urllib.parse import urlsplit

from msgspec import Meta

from panda.documents.records import Record, Words, decode
from panda.documents.text import nearest
from panda.documents.yaml_text import line_of, load_yaml
from panda.errors import FileFormatError, ModelFileError
from panda.store.files import read_text

Layer = Literal["REFLEX", "NERVES", "MIND", "VOICE", "EYES"]
LAYERS: tuple[str, ...] = get_args(Layer)
"""Every layer there is."""
Dialect = Literal["json_schema", "json_object", "prompt"]
DIALECTS: tuple[Dialect, ...] = get_args(Dialect)
"""How a reply under a schema is asked for: as response_format of one kind or the other, or in words alone."""
_COMMON_KEYS = ("backend", "location", "n_ctx", "writes", "scores", "thinking_tokens")
_DIALECT_KEYS = (
    *("timeout_seconds", "attempt_seconds", "parallel"),
    *("structured", "max_tokens_key", "extra_body", "headers"),
)
_KEYS = {
    "llama_cpp": (*_COMMON_KEYS, "requantize", "projector", "embeds"),
    "openai": (*_COMMON_KEYS, "model", "api_key_env", *_DIALECT_KEYS),
}
_SERVER_PORTS = {"ollama": 11434, "llamaserver": 8080, "lmstudio": 1234, "vllm": 8000}
"""Where servers listen that some take for a backend."""
_LEAST_THINKING = 16
"""Tokens that hold the marks around thoughts, and a word or two."""
_SCHEMES = ("http://", "https://")
_HEADER = re.compile(r"[\w!#$%&'*+.^`|~-]+: [!-~](?:[ -~]*[!-~])?", re.ASCII)
_Seconds = Annotated[float, Meta(gt=0, description="seconds, such as 300")]
_Window = Annotated[int, Meta(ge=1, description="the window in model tokens, such as 8192")]
_Width = Annotated[
    int, Meta(ge=1, description="how many requests one server serves at the same time, such as 8")
]
_Count = Annotated[int, Meta(ge=0, description="a number of model tokens, less than n_ctx")]


@dataclass(frozen=True)
class ModelSpec:
    """One entry under `models`."""

    name: str  # its key
    backend: Literal["llama_cpp", "openai"]
    location: Words  # builtin:NAME, path of a GGUF, or base URL of a server, of several the first
    n_ctx: _Window  # context window in model tokens
    writes: bool = False  # whether it is trusted with free text
    scores: bool = False  # whether it gives log-probabilities of options
    requantize: Literal["q8_0"] | None = (
        None  # llama_cpp: quantisation to run it in; None for the file as it is
    )
    model: Words | None = None  # openai: the server's name for the model
    api_key_env: Words | None = None
    """openai: environment variable that holds the key; None if the server wants none."""
    projector: Words | None = None
    """llama_cpp: path of the GGUF that turns pictures into what the model reads (mmproj), if it has one."""
    embeds: bool = False
    """llama_cpp: whether it is an encoder, which turns texts into vectors and does nothing else."""
    thinking_tokens: _Count = 0
    """Room of n_ctx for reasoning, beside that of the reply; 0 for a model that does not think."""
    further_servers: tuple[str, ...] = ()  # openai: base URLs behind the first, if `location` is a list
    parallel: _Width = 1  # openai: requests that one server serves at the same time
    timeout_seconds: _Seconds | None = None  # openai: wall clock of one call; None leaves it to the recipe
    attempt_seconds: _Seconds | None = None
    """openai: wall clock of one server's attempt at a call; None gives it all that the call has left."""
    structured: Dialect | None = None  # openai: None finds out which of them the server knows
    max_tokens_key: Words = "max_tokens"  # openai: what the server calls the most tokens to write
    extra_body: Mapping[str, Any] = field(default_factory=dict)
    """openai: further keys of each request, over ours; null leaves a key out."""
    headers: Mapping[str, str] = field(default_factory=dict)  # openai: further headers of each request

    @property
    def servers(self) -> tuple[str, ...]:
        """Base URLs of the servers it runs on, in the order of the file; empty if it runs in this process."""
        return (self.location, *self.further_servers) if self.backend == "openai" else ()

    @property
    def width(self) -> int | None:
        """How many requests its servers serve at the same time; None if it runs in this process."""
        return len(self.servers) * self.parallel or None


_PACKAGED_ENCODER = ModelSpec("minilm-l6", "llama_cpp", "builtin:minilm-l6", 256, embeds=True)


@dataclass(frozen=True)
class ModelsFile:
    """A models.yaml that makes sense by itself; files and servers it names are not looked at."""

    path: Path  # where it was read from; relative locations start at its directory
    models: Mapping[str, ModelSpec]  # every model by name
    layers: Mapping[str, str | None]  # model name of each of LAYERS; None if the layer is unset
    encoder: str | None = None  # name of the model that turns texts into vectors; None if there is none
    text: str = field(default="", repr=False)  # the file as it was read

    @property
    def width(self) -> int | None:
        """
        How many turns can be made at the same time without one waiting for another's request: the least width
        of the models on servers, None without any. EYES, which a turn asks once at most, does not count.
        """
        names = {name for layer, name in self.layers.items() if name is not None and layer != "EYES"}
        return min((width for name in names if (width := self.models[name].width) is not None), default=None)

    @property
    def has_packaged_encoder(self) -> bool:
        """Whether the encoder is the one for which there are packaged fits."""
        encoder = self.models.get(self.encoder or "")
        return encoder is not None and encoder.location == _PACKAGED_ENCODER.location

    def error(self, key: str, message: str, fix: str) -> ModelFileError:
        """An error about one key of this file."""
        return ModelFileError(message, str(self.path), line=line_of(self.text, key), key=key, fix=fix)


class _File(Record, frozen=True):
    models: dict[str, dict[str, Any]]
    layers: dict[Layer, str | None]
    encoder: str | None = _PACKAGED_ENCODER.name


def load_models_file(path: Path) -> ModelsFile:
    """Read models.yaml (S3 §3); ModelFileError where it is not YAML, or a key or value is wrong."""
    try:
        text = read_text(path)
    except FileFormatError as exc:
        raise ModelFileError(exc.message, exc.path, line=exc.line, fix=exc.fix) from exc
    return parse_models_file(text, path=path)


def parse_models_file(text: str, *, path: Path) -> ModelsFile:
    """As load_models_file; without `encoder` the packaged one is."""
    values = load_yaml(text, where=str(path), fault=ModelFileError)
    said = decode(_File, values, where=str(path), fault=ModelFileError, text=text)
    models: dict[str, ModelSpec] = {}
    layers: Mapping[Any, str | None] = said.layers
    file = ModelsFile(path, models, {layer: layers.get(layer) for layer in LAYERS}, said.encoder, text)
    models.update((name, _Entry(file, name, entry).spec()) for name, entry in said.models.items())
    if "encoder" not in values:
        models.setdefault(_PACKAGED_ENCODER.name, _PACKAGED_ENCODER)
    for layer, name in file.layers.items():
        if name is not None and _named(file, f"layers.{layer}", name).embeds:
            fix = "name it for `encoder`, and a language model here"
            raise file.error(f"layers.{layer}", f"the model {name} is an encoder, not a language model", fix)
    if said.encoder is not None and not _named(file, "encoder", said.encoder).embeds:
        fix = f"set models.{said.encoder}.embeds: true if it is one, name another model, or set encoder: null"
        raise file.error("encoder", f"the model {said.encoder} is no encoder", fix)
    return file


def _named(file: ModelsFile, key: str, name: str) -> ModelSpec:
    if name not in file.models:
        raise file.error(key, f"unknown model {name!r}", nearest(name, file.models))
    return file.models[name]


@dataclass(frozen=True)
class _Entry:
    file: ModelsFile
    name: str
    values: Mapping[str, Any]

    def error(self, key: str, message: str, fix: str) -> ModelFileError:
        return self.file.error(f"models.{self.name}.{key}", message, fix)

    def spec(self) -> ModelSpec:
        location, *further = self._locations(self._is_server())
        own = {"name": self.name, "location": location, "further_servers": further}
        scores = {"scores": self.values["backend"] == "llama_cpp" and not self.values.get("embeds")}
        file = self.file
        spec = decode(
            ModelSpec, {**scores, **self.values, **own},
            where=str(file.path), key=f"models.{self.name}", fault=ModelFileError, text=file.text,
        )  # fmt: skip
        if spec.backend == "openai":
            if spec.scores:
                raise self.error("scores", "a chat server cannot score options", "set scores: false")
            if spec.model is None:
                raise self.error("model", "model is missing", "add model, the server's name for it")
        for key in ("writes", "scores", "projector"):
            if spec.embeds and getattr(spec, key):
                raise self.error(key, f"an encoder has no {key}", f"leave {key} out")
        for name, value in spec.headers.items():
            if not _HEADER.fullmatch(f"{name}: {value}"):
                fix = f"{name!r} is no header with a text of printable ASCII characters"
                raise self.error("headers", f"headers is {dict(spec.headers)!r:.60}", fix)
        self._check_thinking(spec)
        return spec

    def _is_server(self) -> bool:
        """Checks the backend, and that it has the keys that are given."""
        named = self.values.get("backend")
        if named is None:
            raise self.error("backend", "the backend is missing", f"use {' or '.join(_KEYS)}")
        port = _SERVER_PORTS.get(re.sub(r"[\W_]", "", str(named).casefold()))
        if port is not None:
            fix = f"set backend: openai and location: http://localhost:{port}/v1"
            raise self.error("backend", f"{named} is a server that speaks OpenAI's protocol", fix)
        if named not in tuple(_KEYS):
            raise self.error("backend", f"unknown backend {named!r:.60}", nearest(str(named), _KEYS))
        for key in self.values:
            if key not in _KEYS[named]:
                raise self.error(key, f"unknown key {key!r:.60}", nearest(key, _KEYS[named]))
        return bool(named == "openai")

    def _locations(self, is_server: bool) -> Iterable[str]:
        """The text of `location`, or for a server one or more URLs of a list, no two of the same server."""
        value = self.values.get("location")
        if not isinstance(value, list):
            if not isinstance(value, str):
                raise self.error("location", f"location must be a text, not {value!r:.60}", "give it a value")
            value = [value]
        elif not is_server:
            fix = "give one builtin:NAME or path of a GGUF file, or set backend: openai for servers"
            raise self.error("location", f"location is a list of {len(value)}, which only servers have", fix)
        elif not value:
            raise self.error("location", "location is an empty list", "give the URL of at least one server")
        wanted = "an http:// or https:// URL" if is_server else "builtin:NAME or the path of a GGUF file"
        places: dict[object, str] = {}
        for text in value:
            place = _server_place(text) if is_server else text
            if place is None or (not is_server and text.startswith(_SCHEMES)):
                message = f"{text!r:.200} is no location for {self.values['backend']}"
                raise self.error("location", message, f"give {wanted}")
            if place in places:
                fix = "name each server once; parallel says how much one takes"
                raise self.error("location", f"{text} and {places[place]} are the same server", fix)
            places[place] = text
        return places.values()

    def _check_thinking(self, spec: ModelSpec) -> None:
        tokens = spec.thinking_tokens
        if tokens >= spec.n_ctx:
            fix = f"give model tokens, less than n_ctx ({spec.n_ctx})"
            raise self.error("thinking_tokens", f"thinking_tokens is {tokens}", fix)
        if tokens and spec.backend == "llama_cpp" and (tokens < _LEAST_THINKING or not spec.writes):
            fix = f"give at least {_LEAST_THINKING} to a model that writes, or leave it out"
            raise self.error(
                "thinking_tokens", f"thinking_tokens is {tokens}, and writes is {spec.writes}", fix
            )


def _server_place(url: object) -> object:
    """What tells a server from others, the same for all ways to write its URL; None if it is no URL."""
    if not isinstance(url, str) or not url.startswith(_SCHEMES) or not url.isprintable() or " " in url:
        return None
    try:
        parts = urlsplit(url)
        port = parts.port or {"http": 80, "https": 443}[parts.scheme]
    except ValueError:  # a port that is no number, a bracket without its other
        return None
    return (parts.scheme, parts.hostname, port, parts.path.rstrip("/")) if parts.hostname else None
