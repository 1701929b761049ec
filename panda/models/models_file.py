"""models.yaml: which models there are, and which one each layer uses."""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from panda.documents.yaml_text import YamlTextError, parse_yaml
from panda.errors import Location, ModelFileError, StoreError

LAYERS = ("REFLEX", "NERVES", "MIND", "VOICE", "EYES")
"""Every layer there is."""
DIALECTS = ("json_schema", "json_object", "prompt")
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
_QUANTISATIONS = ("q8_0",)
_LEAST_THINKING = 16
"""Tokens that hold the marks around thoughts, and a word or two."""
_SCHEMES = ("http://", "https://")
_HEADER = re.compile(r"[\w!#$%&'*+.^`|~-]+: [!-~](?:[ -~]*[!-~])?", re.ASCII)


@dataclass(frozen=True)
class ModelSpec:
    """One entry under `models`."""

    name: str  # its key
    backend: str  # "llama_cpp" or "openai"
    location: str  # builtin:NAME, path of a GGUF, or base URL of a server, of several the first
    n_ctx: int  # context window in model tokens
    writes: bool = False  # whether it is trusted with free text
    scores: bool = False  # whether it gives log-probabilities of options
    requantize: str | None = None  # llama_cpp: quantisation to run it in; None for the file as it is
    model: str | None = None  # openai: the server's name for the model
    api_key_env: str | None = None
    """openai: environment variable that holds the key; None if the server wants none."""
    projector: str | None = None
    """llama_cpp: path of the GGUF that turns pictures into what the model reads (mmproj), if it has one."""
    embeds: bool = False
    """llama_cpp: whether it is an encoder, which turns texts into vectors and does nothing else."""
    thinking_tokens: int = 0
    """Room of n_ctx for reasoning, beside that of the reply; 0 for a model that does not think."""
    further_servers: tuple[str, ...] = ()  # openai: base URLs behind the first, if `location` is a list
    parallel: int = 1  # openai: requests that one server serves at the same time
    timeout_seconds: float | None = None  # openai: wall clock of one call; None leaves it to the recipe
    attempt_seconds: float | None = None
    """openai: wall clock of one server's attempt at a call; None gives it all that the call has left."""
    structured: str | None = None  # openai: one of DIALECTS; None finds out which of them the server knows
    max_tokens_key: str = "max_tokens"  # openai: what the server calls the most tokens to write
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
        How many turns can be made at the same time without one waiting for another's request: the least
        width of the models on servers. None if no layer's model is on one. EYES, which a turn asks once at
        most, does not count.
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
        return ModelFileError(message, where=Location(self.path, key=key), fix=fix)


def load_models_file(path: Path) -> ModelsFile:
    """
    Read models.yaml.

    Raises:
        ModelFileError: It is not YAML, or a key, backend, layer, model name or value is wrong.
        StoreError: It cannot be read.

    Source:
        S3 §3 for the layers.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as exc:
        message = f"{path.name} cannot be read: {exc.strerror or exc}"
        raise StoreError(message, where=str(path), fix="check the path") from exc
    except UnicodeDecodeError as exc:
        raise ModelFileError(f"{path.name} is not UTF-8", where=str(path), fix="save it as UTF-8") from exc
    return parse_models_file(text, path=path)


def parse_models_file(text: str, *, path: Path) -> ModelsFile:
    """
    The models that the text of a models.yaml names; without `encoder` the packaged one is.

    Raises:
        ModelFileError: As load_models_file.
    """
    try:
        raw = parse_yaml(text)
    except YamlTextError as exc:
        where = Location(path, line=exc.line)
        raise ModelFileError(f"{path.name}: {exc}", where=where, fix="correct that line") from exc
    top = _Entry(path, "", raw, "top level")
    top.check_keys(("models", "layers", "encoder"))
    models = {name: _parse_spec(path, name, entry) for name, entry in top.part("models").values.items()}
    layers = top.part("layers")
    layers.check_keys(LAYERS, "layer")
    for layer, name in layers.values.items():
        if name is not None and layers.one_of(layer, tuple(models), "model") and models[name].embeds:
            fix = "name it for `encoder`, and a language model here"
            raise layers.error(layer, f"the model {name} is an encoder, not a language model", fix)
    if "encoder" not in top.values:
        models.setdefault(_PACKAGED_ENCODER.name, _PACKAGED_ENCODER)
    top.values.setdefault("encoder", _PACKAGED_ENCODER.name)
    encoder = top.values["encoder"]
    if encoder is not None and not models[top.one_of("encoder", tuple(models), "model")].embeds:
        fix = f"set models.{encoder}.embeds: true if it is one, name another model, or set encoder: null"
        raise top.error("encoder", f"the model {encoder} is no encoder", fix)
    return ModelsFile(path, models, {layer: layers.values.get(layer) for layer in LAYERS}, encoder, text)


def _parse_spec(path: Path, name: str, value: object) -> ModelSpec:
    entry = _Entry(path, f"models.{name}.", value, f"models.{name}")
    raw = entry.values
    if raw.get("backend") is None:
        raise entry.error("backend", "the backend is missing", f"use {' or '.join(_KEYS)}")
    port = _SERVER_PORTS.get(re.sub(r"[\W_]", "", str(raw["backend"]).casefold()))
    if port is not None:
        fix = f"set backend: openai and location: http://localhost:{port}/v1"
        raise entry.error("backend", f"{raw['backend']} is a server that speaks OpenAI's protocol", fix)
    backend = entry.one_of("backend", tuple(_KEYS), "backend")
    is_server = backend == "openai"
    entry.check_keys(_KEYS[backend])
    location, *further_servers = _locations(entry, is_server)
    n_ctx = raw.get("n_ctx")
    if not isinstance(n_ctx, int) or isinstance(n_ctx, bool) or n_ctx < 1:
        raise entry.error("n_ctx", f"n_ctx is {n_ctx!r}", "give the window in model tokens, such as 8192")
    scores = entry.flag("scores", not is_server)
    if is_server and scores:
        raise entry.error("scores", "a chat server cannot score options", "set scores: false")
    if raw.get("requantize") is not None:
        entry.one_of("requantize", _QUANTISATIONS, "quantisation")
    embeds = entry.flag("embeds", False)
    for key in ("writes", "scores", "projector"):
        if embeds and raw.get(key):
            raise entry.error(key, f"an encoder has no {key}", f"leave {key} out")
    return ModelSpec(
        name=name,
        backend=backend,
        location=location,
        further_servers=tuple(further_servers),
        n_ctx=n_ctx,
        writes=entry.flag("writes", False),
        scores=scores and not embeds,
        requantize=raw.get("requantize"),
        model=entry.text("model") if is_server else None,
        api_key_env=None if raw.get("api_key_env") is None else entry.text("api_key_env"),
        projector=None if raw.get("projector") is None else entry.text("projector"),
        embeds=embeds,
        thinking_tokens=_thinking(entry, n_ctx),
        **_dialect(entry),
    )


def _locations(entry: "_Entry", is_server: bool) -> list[str]:
    """The text of `location`, or for a server one or more URLs of a list, no two of the same server."""
    value = entry.values.get("location")
    if not isinstance(value, list):
        value = [entry.text("location")]
    elif not is_server:
        fix = "give one builtin:NAME or path of a GGUF file, or set backend: openai for servers"
        raise entry.error("location", f"location is a list of {len(value)}, which only servers have", fix)
    elif not value:
        raise entry.error("location", "location is an empty list", "give the URL of at least one server")
    wanted = "an http:// or https:// URL" if is_server else "builtin:NAME or the path of a GGUF file"
    places: dict[object, str] = {}
    for text in value:
        place = _server_place(text) if is_server else text
        if place is None or (not is_server and text.startswith(_SCHEMES)):
            message = f"{text!r:.200} is no location for {entry.values['backend']}"
            raise entry.error("location", message, f"give {wanted}")
        if place in places:
            message = f"{text} and {places[place]} are the same server"
            raise entry.error("location", message, "name each server once; parallel says how much one takes")
        places[place] = text
    return list(places.values())


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


def _thinking(entry: "_Entry", n_ctx: int) -> int:
    tokens, writes = entry.values.get("thinking_tokens", 0), entry.values.get("writes", False)
    if not isinstance(tokens, int) or isinstance(tokens, bool) or not 0 <= tokens < n_ctx:
        fix = f"give model tokens, less than n_ctx ({n_ctx})"
        raise entry.error("thinking_tokens", f"thinking_tokens is {tokens!r:.60}", fix)
    if tokens and entry.values["backend"] == "llama_cpp" and (tokens < _LEAST_THINKING or not writes):
        fix = f"give at least {_LEAST_THINKING} to a model that writes, or leave it out"
        raise entry.error("thinking_tokens", f"thinking_tokens is {tokens}, and writes is {writes}", fix)
    return tokens


def _dialect(entry: "_Entry") -> dict[str, Any]:
    given = {key: entry.values[key] for key in _DIALECT_KEYS if key in entry.values}
    for key in ("timeout_seconds", "attempt_seconds"):
        seconds = given.get(key, 1)
        if not isinstance(seconds, int | float) or isinstance(seconds, bool) or not 0 < seconds < math.inf:
            raise entry.error(key, f"{key} is {seconds!r:.60}", "give seconds, such as 300")
    parallel = given.get("parallel", 1)
    if not isinstance(parallel, int) or isinstance(parallel, bool) or parallel < 1:
        fix = "give how many requests one server serves at the same time, such as 8"
        raise entry.error("parallel", f"parallel is {parallel!r:.60}", fix)
    if "structured" in given:
        entry.one_of("structured", DIALECTS, "dialect")
    if "max_tokens_key" in given:
        entry.text("max_tokens_key")
    for key in ("extra_body", "headers"):
        entry.part(key, {})
    for name, value in given.get("headers", {}).items():
        if not _HEADER.fullmatch(f"{name}: {value}") or not isinstance(value, str):
            fix = f"{name!r} is no header with a text of printable ASCII characters"
            raise entry.error("headers", f"headers is {given['headers']!r:.60}", fix)
    return given


class _Entry:
    """A map of the file; what is wrong in it is raised with its key."""

    def __init__(self, path: Path, at: str, value: object, key: str) -> None:
        self.path, self.at = path, at
        if not isinstance(value, dict) or not all(isinstance(name, str) for name in value):
            fix = "see the comments in the packaged models.yaml"
            raise ModelFileError(f"{key} must be a map of names", where=Location(path, key=key), fix=fix)
        self.values: dict[str, Any] = value

    def error(self, key: str, message: str, fix: str) -> ModelFileError:
        return ModelFileError(message, where=Location(self.path, key=f"{self.at}{key}"), fix=fix)

    def part(self, key: str, default: object = None) -> "_Entry":
        key_at = f"{self.at}{key}"
        return _Entry(self.path, f"{key_at}.", self.values.get(key, default), key_at)

    def text(self, key: str) -> str:
        value = self.values.get(key)
        if not isinstance(value, str) or not value.strip() or "\0" in value:
            raise self.error(key, f"{key} must be a text, not {value!r}", "give it a value")
        return value

    def flag(self, key: str, default: bool) -> bool:
        value = self.values.get(key, default)
        if not isinstance(value, bool):
            raise self.error(key, f"{key} is {value!r}", "use true or false")
        return value

    def one_of(self, key: str, known: Sequence[str], kind: str) -> str:
        value = self.values[key]
        if not isinstance(value, str) or value not in known:
            raise self._unknown(key, str(value), known, kind)
        return value

    def check_keys(self, known: Sequence[str], kind: str = "key") -> None:
        for name in self.values:
            if name not in known:
                raise self._unknown(name, name, known, kind)

    def _unknown(self, key: str, name: str, known: Sequence[str], kind: str) -> ModelFileError:
        folded = {option.casefold(): option for option in known}
        near = get_close_matches(name.casefold(), folded, n=1, cutoff=0.5)
        fix = f"did you mean {folded[near[0]]}?" if near else f"use one of {', '.join(known) or '(none yet)'}"
        return self.error(key, f"unknown {kind} {name!r}", fix)
