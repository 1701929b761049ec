"""models.yaml: which models there are, and which one each layer uses."""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from panda.documents.yaml_text import YamlTextError, parse_yaml
from panda.errors import ModelFileError, StoreError

LAYERS = ("REFLEX", "NERVES", "MIND", "VOICE", "EYES")
"""Every layer there is."""

_BACKENDS = ("llama_cpp", "openai")
_QUANTISATIONS = ("q8_0",)
DIALECTS = ("json_schema", "json_object", "prompt")
"""How a reply under a schema is asked for: as response_format of one kind or the other, or in words alone."""
_COMMON_KEYS = ("backend", "location", "n_ctx", "writes", "scores", "thinking_tokens")
_SERVER_KEYS = ("model", "api_key_env", "timeout_seconds", "structured", "max_tokens_key")
_LEAST_THINKING = 16
"""Tokens that hold the marks around thoughts, and a word or two."""
_HEADER = re.compile(r"[\w!#$%&'*+.^`|~-]+: [!-~](?:[ -~]*[!-~])?", re.ASCII)
_ENCODER = "minilm-l6"
_BACKEND_KEYS = {
    "llama_cpp": (*_COMMON_KEYS, "requantize", "projector", "embeds"),
    "openai": (*_COMMON_KEYS, *_SERVER_KEYS, "extra_body", "headers"),
}


@dataclass(frozen=True)
class ModelSpec:
    """One entry under `models`."""

    name: str
    """Its key."""
    backend: str
    """"llama_cpp" or "openai"."""
    location: str
    """builtin:NAME, path of a GGUF, or base URL of a server."""
    n_ctx: int
    """Context window in model tokens."""
    writes: bool
    """Whether it is trusted with free text."""
    scores: bool
    """Whether it gives log-probabilities of options."""
    requantize: str | None = None
    """llama_cpp: quantisation to run it in; None for the file as it is."""
    model: str | None = None
    """openai: the server's name for the model."""
    api_key_env: str | None = None
    """openai: environment variable that holds the key; None if the server wants none."""
    projector: str | None = None
    """llama_cpp: path of the GGUF that turns pictures into what the model reads (mmproj), if it has one."""
    embeds: bool = False
    """llama_cpp: whether it is an encoder, which turns texts into vectors and does nothing else."""
    thinking_tokens: int = 0
    """Room of n_ctx for reasoning, beside that of the reply; 0 for a model that does not think."""
    timeout_seconds: float | None = None
    """openai: wall clock of one call; None leaves it to the recipe."""
    structured: str | None = None
    """openai: one of DIALECTS; None finds out which of them the server knows."""
    max_tokens_key: str = "max_tokens"
    """openai: what the server calls the most tokens to write."""
    extra_body: Mapping[str, Any] = field(default_factory=dict)
    """openai: further keys of each request, over ours; null leaves a key out."""
    headers: Mapping[str, str] = field(default_factory=dict)
    """openai: further headers of each request."""


_PACKAGED_ENCODER = ModelSpec(_ENCODER, "llama_cpp", f"builtin:{_ENCODER}", 256, False, False, embeds=True)


@dataclass(frozen=True)
class ModelsFile:
    """A models.yaml that makes sense by itself; files and servers it names are not looked at."""

    path: Path
    """Where it was read from; relative locations start at its directory."""
    models: Mapping[str, ModelSpec]
    """Every model by name."""
    layers: Mapping[str, str | None]
    """Model name of each of LAYERS; None if the layer is unset."""
    encoder: str | None = None
    """Name of the model that turns texts into vectors; None if there is none."""
    text: str = field(default="", repr=False)
    """The file as it was read."""

    def error(self, key: str, message: str, fix: str) -> ModelFileError:
        """An error about one key of this file."""
        return _error(self.path, key, message, fix)


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
        raise StoreError(
            f"{path.name} cannot be read: {exc.strerror or exc}", where=str(path), fix="check the path"
        ) from exc
    except UnicodeDecodeError as exc:
        raise ModelFileError(f"{path.name} is not UTF-8", where=str(path), fix="save it as UTF-8") from exc
    return parse_models_file(text, path=path)


def parse_models_file(text: str, *, path: Path) -> ModelsFile:
    """
    Read the text of a models.yaml.

    Args:
        text: YAML with the maps `models` and `layers`, and the key `encoder`; without it the packaged one.
        path: For messages and relative locations.

    Raises:
        ModelFileError: As load_models_file.
    """
    try:
        raw = parse_yaml(text)
    except YamlTextError as exc:
        where = f"{path}:{exc.line}" if exc.line is not None else str(path)
        raise ModelFileError(f"{path.name}: {exc}", where=where, fix="correct that line") from exc
    top = _mapping(path, "(top)", raw)
    _check_names(path, "", top, ("models", "layers", "encoder"), "key")
    models = {
        name: _parse_spec(path, name, _mapping(path, f"models.{name}", value))
        for name, value in _mapping(path, "models", top.get("models")).items()
    }
    layers = _mapping(path, "layers", top.get("layers"))
    _check_names(path, "layers.", layers, LAYERS, "layer")
    for layer, name in layers.items():
        if name is not None and name not in models:
            raise _unknown(path, f"layers.{layer}", str(name), tuple(models), "model")
        if name is not None and models[name].embeds:
            fix = "name it for `encoder`, and a language model here"
            raise _error(
                path, f"layers.{layer}", f"the model {name} is an encoder, not a language model", fix
            )
    if "encoder" not in top:
        models.setdefault(_ENCODER, _PACKAGED_ENCODER)
    encoder = top.get("encoder", _ENCODER)
    if encoder is not None and encoder not in models:
        raise _unknown(path, "encoder", str(encoder), tuple(models), "model")
    if encoder is not None and not models[encoder].embeds:
        fix = f"set models.{encoder}.embeds: true if it is one, name another model, or set encoder: null"
        raise _error(path, "encoder", f"the model {encoder} is no encoder", fix)
    return ModelsFile(path, models, {layer: layers.get(layer) for layer in LAYERS}, encoder, text)


def _parse_spec(path: Path, name: str, raw: Mapping[str, Any]) -> ModelSpec:
    at = f"models.{name}"
    backend = raw.get("backend")
    if backend not in _BACKENDS:
        if backend is None:
            raise _error(path, f"{at}.backend", "the backend is missing", f"use {' or '.join(_BACKENDS)}")
        raise _unknown(path, f"{at}.backend", str(backend), _BACKENDS, "backend")
    _check_names(path, f"{at}.", raw, _BACKEND_KEYS[backend], "key")
    is_server = backend == "openai"
    location = _text(path, f"{at}.location", raw.get("location"))
    if is_server != location.startswith(("http://", "https://")):
        wanted = "an http:// or https:// URL" if is_server else "builtin:NAME or the path of a GGUF file"
        raise _error(path, f"{at}.location", f"{location!r} is no location for {backend}", f"give {wanted}")
    n_ctx = raw.get("n_ctx")
    if not isinstance(n_ctx, int) or isinstance(n_ctx, bool) or n_ctx < 1:
        raise _error(
            path, f"{at}.n_ctx", f"n_ctx is {n_ctx!r}", "give the window in model tokens, such as 8192"
        )
    scores = _flag(path, f"{at}.scores", raw.get("scores", not is_server))
    if is_server and scores:
        raise _error(path, f"{at}.scores", "a chat server cannot score options", "set scores: false")
    quantisation = raw.get("requantize")
    if quantisation is not None and quantisation not in _QUANTISATIONS:
        raise _unknown(path, f"{at}.requantize", str(quantisation), _QUANTISATIONS, "quantisation")
    key_name, projector = raw.get("api_key_env"), raw.get("projector")
    embeds = _flag(path, f"{at}.embeds", raw.get("embeds", False))
    for name_, given in (
        ("writes", raw.get("writes")),
        ("scores", raw.get("scores")),
        ("projector", projector),
    ):
        if embeds and given:
            raise _error(path, f"{at}.{name_}", f"an encoder has no {name_}", f"leave {name_} out")
    return ModelSpec(
        name=name,
        backend=str(backend),
        location=location,
        n_ctx=n_ctx,
        writes=_flag(path, f"{at}.writes", raw.get("writes", False)),
        scores=scores and not embeds,
        requantize=quantisation,
        model=_text(path, f"{at}.model", raw.get("model")) if is_server else None,
        api_key_env=None if key_name is None else _text(path, f"{at}.api_key_env", key_name),
        projector=None if projector is None else _text(path, f"{at}.projector", projector),
        embeds=embeds,
        thinking_tokens=_thinking(path, at, raw, n_ctx),
        **_server_keys(path, at, raw),
    )


def _thinking(path: Path, at: str, raw: Mapping[str, Any], n_ctx: int) -> int:
    """How much of the window is for reasoning."""
    tokens = raw.get("thinking_tokens", 0)
    if not isinstance(tokens, int) or isinstance(tokens, bool) or not 0 <= tokens < n_ctx:
        message, fix = f"thinking_tokens is {tokens!r:.60}", f"give model tokens, less than n_ctx ({n_ctx})"
        raise _error(path, f"{at}.thinking_tokens", message, fix)
    if tokens and raw["backend"] == "llama_cpp" and (tokens < _LEAST_THINKING or not raw.get("writes")):
        message = f"thinking_tokens is {tokens}, and writes is {raw.get('writes', False)}"
        fix = f"give at least {_LEAST_THINKING} to a model that writes, or leave it out"
        raise _error(path, f"{at}.thinking_tokens", message, fix)
    return tokens


def _server_keys(path: Path, at: str, raw: Mapping[str, Any]) -> dict[str, Any]:
    """What of a server's dialect is given."""
    found = {key: raw[key] for key in (*_SERVER_KEYS[2:], "extra_body", "headers") if key in raw}

    def fail(key: str, fix: str) -> ModelFileError:
        return _error(path, f"{at}.{key}", f"{key} is {found[key]!r:.60}", fix)

    seconds = found.get("timeout_seconds", 1)
    if not isinstance(seconds, int | float) or isinstance(seconds, bool) or not 0 < seconds < math.inf:
        raise fail("timeout_seconds", "give seconds, such as 300")
    if found.get("structured", DIALECTS[0]) not in DIALECTS:
        raise _unknown(path, f"{at}.structured", str(found["structured"]), DIALECTS, "dialect")
    if "max_tokens_key" in found:
        _text(path, f"{at}.max_tokens_key", found["max_tokens_key"])
    _mapping(path, f"{at}.extra_body", found.get("extra_body", {}))
    for name, value in _mapping(path, f"{at}.headers", found.get("headers", {})).items():
        if not _HEADER.fullmatch(f"{name}: {value}") or not isinstance(value, str):
            raise fail("headers", f"{name!r} is no header with a text of printable ASCII characters")
    return found


def _mapping(path: Path, key: str, value: object) -> dict[str, Any]:
    if not isinstance(value, dict) or not all(isinstance(name, str) for name in value):
        raise _error(
            path, key, f"{key} must be a map of names", "see the comments in the packaged models.yaml"
        )
    return value


def _text(path: Path, key: str, value: object) -> str:
    if not isinstance(value, str) or not value.strip() or "\0" in value:
        raise _error(path, key, f"{key.rpartition('.')[2]} must be a text, not {value!r}", "give it a value")
    return value


def _flag(path: Path, key: str, value: object) -> bool:
    if not isinstance(value, bool):
        raise _error(path, key, f"{key.rpartition('.')[2]} is {value!r}", "use true or false")
    return value


def _check_names(path: Path, at: str, found: Mapping[str, object], known: Sequence[str], kind: str) -> None:
    for name in found:
        if name not in known:
            raise _unknown(path, f"{at}{name}", name, known, kind)


def _unknown(path: Path, key: str, name: str, known: Sequence[str], kind: str) -> ModelFileError:
    folded = {option.casefold(): option for option in known}
    near = get_close_matches(name.casefold(), folded, n=1, cutoff=0.5)
    fix = f"did you mean {folded[near[0]]}?" if near else f"use one of {', '.join(known) or '(none yet)'}"
    return _error(path, key, f"unknown {kind} {name!r}", fix)


def _error(path: Path, key: str, message: str, fix: str) -> ModelFileError:
    return ModelFileError(message, where=f"{path}: {key}", fix=fix)
