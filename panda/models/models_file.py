"""models.yaml: which models there are, and which one each layer uses."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any, Literal, get_args
from urllib.parse import urlsplit

from msgspec import Meta

from panda.documents.record_codec import Record, Words, decode
from panda.documents.safe_text import nearest
from panda.documents.secrets import has_userinfo, hide_userinfo
from panda.documents.yaml_text import line_of, load_yaml
from panda.errors import FileFormatError, ModelFileError, ObsoleteKeyError, Problem, Verdict
from panda.store.files import read_text

Layer = Literal["REFLEX", "NERVES", "MIND", "VOICE", "EYES"]
LAYERS: tuple[str, ...] = get_args(Layer)
"""Every layer there is."""
USUAL_LAYERS: tuple[str, ...] = LAYERS[:4]
"""The layers that read and write: all but EYES."""
Dialect = Literal["json_schema", "json_object", "prompt"]
DIALECTS: tuple[Dialect, ...] = get_args(Dialect)
"""How a reply under a schema is asked for: as response_format of one kind or the other, or in words alone."""
Backend = Literal["llama_cpp", "openai", "ollama", "llama-server", "lmstudio", "vllm"]
_DEFAULTS: Mapping[str, Mapping[str, str]] = {
    "llama_cpp": {},
    "openai": {},
    "ollama": {"location": "http://localhost:11434/v1"},
    "llama-server": {"location": "http://localhost:8080/v1", "model": "default"},
    "lmstudio": {"location": "http://localhost:1234/v1"},
    "vllm": {"location": "http://localhost:8000/v1"},
}
"""What an entry of each backend has unless it says otherwise; all but the first are servers."""
_LOCAL_KEYS = ("projector", "embeds")
_SERVER_KEYS = (
    *("model", "api_key_env", "timeout_seconds", "attempt_seconds", "parallel"),
    *("structured", "max_tokens_key", "extra_body", "headers", "ca_file", "proxy"),
)
OFFLINE: Literal["offline"] = "offline"
"""What `layers` says of a layer that no model serves; no model may be called so."""
OBSOLETE_KEYS = ("writes", "scores", "requantize")
"""Keys of a model that earlier versions had; they are read and have no effect."""
_SEEING = "EYES"
_LEAST_THINKING = 16
"""Tokens that hold the marks around thoughts, and a word or two."""
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,99}")
_SECRET_QUERY = re.compile(r"(?i)[?&][^=&]*(?:key|token|secret|auth|passw|sig)[^=&]*=")
_SCHEMES = ("http://", "https://")
_PROXY_SCHEMES = (*_SCHEMES, "socks5://", "socks5h://")
VARIABLES = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]{0,99})\}")
"""How `location`, `headers` and `proxy` name an environment variable whose value stands there."""
_HEADER = re.compile(r"[\w!#$%&'*+.^`|~-]+: [!-~](?:[ -~]*[!-~])?", re.ASCII)
_Seconds = Annotated[float, Meta(gt=0, description="seconds, such as 300")]
_Window = Annotated[int, Meta(ge=1, description="the window in model tokens, such as 8192")]
_Width = Annotated[int, Meta(ge=1, description="how many requests a server serves at a time, such as 8")]
_Count = Annotated[int, Meta(ge=0, description="a number of model tokens, less than n_ctx")]


class ModelSpec(Record, frozen=True):
    """One entry under `models`."""

    name: str  # its key
    backend: Backend
    location: Words  # builtin:NAME, path of a GGUF, or base URL of a server, of several the first
    n_ctx: _Window | None = None  # context window in model tokens; None asks the server for it
    thinking_tokens: _Count = 0
    """Room of n_ctx for reasoning, beside that of the reply; 0 for a model that does not think."""

    # llama_cpp
    projector: Words | None = None  # path of the GGUF that turns pictures into what the model reads (mmproj)
    embeds: bool = False  # whether it is an encoder, which turns texts into vectors and does nothing else

    # servers
    model: Words | None = None  # the server's name for the model
    api_key_env: Words | None = None  # environment variable that holds the key; None if it wants none
    further_servers: tuple[str, ...] = ()  # base URLs behind the first, if `location` is a list
    parallel: _Width = 1  # requests that one server serves at the same time
    timeout_seconds: _Seconds | None = None  # wall clock of one call; None leaves it to the recipe
    attempt_seconds: _Seconds | None = None
    """Wall clock of one server's attempt at a call; None gives it all that the call has left."""
    structured: Dialect | None = None  # None finds out which of them the server knows
    max_tokens_key: Words = "max_tokens"  # what the server calls the most tokens to write
    extra_body: Mapping[str, Any] = {}  # further keys of each request, over ours; null leaves a key out
    headers: Mapping[str, str] = {}  # further headers of each request
    ca_file: Words | None = (
        None  # path of a PEM file with certificates that are trusted beside the usual ones
    )
    proxy: Words | None = None  # URL of the proxy to the servers; None goes by the environment

    @property
    def scores(self) -> bool:
        """
        Return whether the model gives log-probabilities of texts: a GGUF in this process does, a server does
        not.
        """
        return not self.servers and not self.embeds

    @property
    def servers(self) -> tuple[str, ...]:
        """Base URLs of the servers it runs on, in the order of the file; empty if it runs in this process."""
        return () if self.backend == "llama_cpp" else (self.location, *self.further_servers)

    @property
    def width(self) -> int | None:
        """Return how many requests its servers serve at the same time; None if it runs in this process."""
        return len(self.servers) * self.parallel or None


_PACKAGED_ENCODER = ModelSpec("minilm-l6", "llama_cpp", "builtin:minilm-l6", 256, embeds=True)


@dataclass(frozen=True)
class ModelsFile:
    """A models.yaml that makes sense by itself; files and servers it names are not looked at."""

    path: Path  # where it was read from; relative locations start at its directory
    models: Mapping[str, ModelSpec]  # every model by name
    layers: Mapping[str, str | None]  # model name of each of LAYERS, or OFFLINE; None if the layer is unset
    encoder: str | None = None  # name of the model that turns texts into vectors; None if there is none
    text: str = field(default="", repr=False)  # the file as it was read
    obsolete: tuple[str, ...] = ()  # dotted keys of OBSOLETE_KEYS that it has

    @property
    def width(self) -> int | None:
        """
        Return how many turns can run at the same time without one waiting for another's request: the least
        width of the models on servers, None without any. EYES, which a turn asks once at most, does not
        count.
        """
        specs = [self.model_of(layer) for layer in self.layers if layer != _SEEING]
        widths = [spec.width for spec in specs if isinstance(spec, ModelSpec) and spec.width is not None]
        return min(widths, default=None)

    def model_of(self, layer: str) -> ModelSpec | Literal["offline"] | None:
        """Return the model of a layer, or that no model serves it; None if the layer is unset."""
        name = self.layers.get(layer)
        return OFFLINE if name == OFFLINE else self.models.get(name or "")

    def with_layers(self, models_by_layer: Mapping[str, str]) -> "ModelsFile":
        """
        Return the file with other models for some layers; `offline` is one.

        Raises:
            ModelFileError: There is no model of that name, or it cannot serve the layer.
        """
        for layer, name in models_by_layer.items():
            writing = [spec.name for spec in self.models.values() if not spec.embeds]
            usable = writing if layer == _SEEING else [*writing, OFFLINE]
            if name not in usable:
                message = (
                    f"there is no model {name!r:.80} for {layer}: {self.path.name} has {', '.join(usable)}"
                )
                raise ModelFileError(message, str(self.path), fix=nearest(name, usable))
        return replace(self, layers={**self.layers, **models_by_layer})

    def find_obsolete(self) -> ObsoleteKeyError | None:
        """Return what to tell of keys without effect, at the first of them; None if there are none."""
        if not self.obsolete:
            return None
        names = ", ".join(sorted({key.rpartition(".")[2] for key in self.obsolete}))
        return ObsoleteKeyError(
            f"keys of earlier versions: {names}",
            str(self.path),
            line=min(line_of(self.text, key) or 1 for key in self.obsolete),
            fix="`panda models migrate` rewrites the file",
            verdict=Verdict.SOUND,
        )

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
    read = decode(_File, values, where=str(path), fault=ModelFileError, text=text)
    models: dict[str, ModelSpec] = {}
    layers = {layer: read.layers.get(layer) for layer in get_args(Layer)}
    layers.update(_find_silent_layers(read))
    obsolete = tuple(
        f"models.{name}.{key}" for name, entry in read.models.items() for key in OBSOLETE_KEYS if key in entry
    )
    file = ModelsFile(
        path,
        models,
        layers=layers,
        encoder=read.encoder,
        text=text,
        obsolete=obsolete,
    )
    if OFFLINE in read.models:
        raise file.error(f"models.{OFFLINE}", f"no model may be called {OFFLINE}", "give it another name")
    if file.layers["EYES"] == OFFLINE:
        fix = "set EYES: null, or name a model that sees"
        raise file.error("layers.EYES", "nothing but a model describes an image: EYES cannot be offline", fix)
    models.update((name, _read_entry(file, name, entry)) for name, entry in read.models.items())
    if "encoder" not in values:
        models.setdefault(_PACKAGED_ENCODER.name, _PACKAGED_ENCODER)
    named = {**{f"layers.{layer}": name for layer, name in file.layers.items()}, "encoder": read.encoder}
    for key, name in named.items():
        if name == OFFLINE and key != "encoder":
            continue
        if name is not None and name not in models:
            known_names = models if key == "encoder" else [*models, OFFLINE]
            raise file.error(key, f"unknown model {name!r}", nearest(name, known_names))
        if name is None or models[name].embeds == (key == "encoder"):
            continue
        fix = f"set models.{name}.embeds: true if it is one, name another model, or set encoder: null"
        if key == "encoder":
            raise file.error(key, f"the model {name} is no encoder", fix)
        fix = "name it for `encoder`, and a language model here"
        raise file.error(key, f"the model {name} is an encoder, not a language model", fix)
    return file


def _find_silent_layers(read: _File) -> dict[Layer, str | None]:
    """
    Return what the layers of an earlier version's file become whose model has `writes: false`: offline, and
    EYES unset.
    """
    silent = {name for name, entry in read.models.items() if entry.get("writes") is False}
    layers = [layer for layer, name in read.layers.items() if name in silent]
    return {layer: None if layer == "EYES" else OFFLINE for layer in layers}


def _read_entry(file: ModelsFile, name: str, values: Mapping[str, Any]) -> ModelSpec:
    def error(key: str, message: str, fix: str) -> ModelFileError:
        return file.error(f"models.{name}.{key}", message, fix)

    values = {key: value for key, value in values.items() if key not in OBSOLETE_KEYS}
    backend = values.get("backend")
    if backend is None:
        raise error("backend", "the backend is missing", f"use {' or '.join(_DEFAULTS)}")
    if not isinstance(backend, str) or backend not in _DEFAULTS:
        raise error(
            "backend", f"unknown backend {backend!r:.60}", nearest(str(backend).casefold(), _DEFAULTS)
        )
    is_server = backend != "llama_cpp"
    others = ("name", "further_servers", *(_LOCAL_KEYS if is_server else _SERVER_KEYS))
    known_keys = [key for key in ModelSpec.__struct_fields__ if key not in others]
    for key in values:
        if key not in known_keys:
            raise error(key, f"unknown key {key!r:.60}", nearest(key, known_keys))
    with_defaults = {**_DEFAULTS[backend], **values}
    location, *further = read_locations(backend, with_defaults.get("location"), error)
    _check_kept_secret(values, error)
    own = {"name": name, "location": location, "further_servers": further}
    spec = decode(
        ModelSpec,
        with_defaults | own,
        where=str(file.path),
        key=f"models.{name}",
        fault=ModelFileError,
        text=file.text,
    )
    if is_server and spec.model is None:
        raise error("model", "model is missing", "add model, the server's name for it")
    if not is_server and spec.n_ctx is None:
        raise error("n_ctx", "n_ctx is missing", "give the context window in model tokens, such as 8192")
    _check_proxy(spec, error)
    if spec.embeds and spec.projector:
        raise error("projector", "an encoder has no projector", "leave projector out")
    for key, value in spec.headers.items():
        if not _HEADER.fullmatch(f"{key}: {VARIABLES.sub('x', value)}"):
            fix = f"give {key!r:.60} a name without blanks, and a text of printable ASCII characters"
            raise error("headers", "a header has a name or value that cannot be sent", fix)
    tokens = spec.thinking_tokens
    key = "thinking_tokens"
    if spec.n_ctx is not None and tokens >= spec.n_ctx:
        raise error(key, f"{key} is {tokens}", f"give model tokens, less than n_ctx ({spec.n_ctx})")
    if not is_server and 0 < tokens < _LEAST_THINKING:
        raise error(key, f"{key} is {tokens}", f"give at least {_LEAST_THINKING}, or leave it out")
    return spec


def _check_kept_secret(values: Mapping[str, Any], error: Callable[[str, str, str], ModelFileError]) -> None:
    """Tell of wrong values that may be secrets without quoting them."""
    for key in ("headers", "extra_body"):
        value = values.get(key, {})
        if not isinstance(value, Mapping):
            raise error(key, f"{key} must be a mapping", "give a mapping")
    for name, value in values.get("headers", {}).items():
        if not isinstance(value, str):
            key = f"headers.{name:.60}"
            raise error(key, f"the value of the header {name!r:.60} is no text", "put it in quotes")
    name = values.get("api_key_env")
    if isinstance(name, str) and not _VARIABLE.fullmatch(name):
        fix = "name the variable, and set it to the key: no key stands in models.yaml"
        raise error("api_key_env", "api_key_env is not the name of an environment variable", fix)


def _check_proxy(spec: ModelSpec, error: Callable[[str, str, str], ModelFileError]) -> None:
    if spec.proxy is None:
        return
    if has_userinfo(VARIABLES.sub("", spec.proxy)) and not VARIABLES.search(spec.proxy):
        fix = "give them by environment variables: proxy: http://${PROXY_USER}:${PROXY_PASSWORD}@host:port"
        raise error("proxy", "the address of the proxy holds a user name or password", fix)
    if not spec.proxy.startswith(("${", *_PROXY_SCHEMES)):
        message = f"{_quote(spec.proxy, 200)} is no proxy"
        raise error("proxy", message, "give an http://, https:// or socks5:// URL")


def read_locations(backend: str, value: object, make_error: Callable[[str, str, str], Problem]) -> list[str]:
    """
    Return the text of `location`, or for servers one or more URLs of a list, no two of the same server.

    Args:
        backend: That of the entry.
        value: As it was given.
        make_error: Makes what is raised for a wrong value, of a key, a message and a fix.
    """
    is_server = backend != "llama_cpp"
    if isinstance(value, list) and not is_server:
        fix = "give one builtin:NAME or path of a GGUF file, or set backend: openai for servers"
        raise make_error("location", f"location is a list of {len(value)}, which only servers have", fix)
    if value == []:
        raise make_error("location", "location is an empty list", "give the URL of at least one server")
    if not isinstance(value, str | list):
        raise make_error("location", f"location must be a text, not {_quote(value, 60)}", "give it a value")
    wanted = "an http:// or https:// URL" if is_server else "builtin:NAME or the path of a GGUF file"
    places: dict[object, str] = {}
    locations = value if isinstance(value, list) else [value]
    for text in locations:
        if isinstance(text, str) and (has_userinfo(text) or _SECRET_QUERY.search(text)):
            message = "the address of a server holds a user name, password or key"
            raise make_error("location", message, "take it out; give it by api_key_env or headers")
        place = server_place(text) if is_server else text
        if place is None or (not is_server and text.startswith(_SCHEMES)):
            raise make_error(
                "location", f"{_quote(text, 200)} is no location for {backend}", f"give {wanted}"
            )
        if place in places:
            fix = "name each server once; parallel says how much one takes"
            raise make_error("location", f"{text} and {places[place]} are the same server", fix)
        places[place] = text
    return [*places.values()]


def _quote(value: object, max_chars: int) -> str:
    return hide_userinfo(repr(value))[:max_chars]


def server_place(url: object) -> object:
    """
    Return what tells a server from others, however its URL is written; None if it is no URL. Of a URL
    with environment variables that is its text: whether it is one, only their values tell.
    """
    if isinstance(url, str) and VARIABLES.search(url):
        is_begun = url.startswith(("${", *_SCHEMES))
        return url.rstrip("/") if is_begun and url.isprintable() and " " not in url else None
    if not isinstance(url, str) or not url.startswith(_SCHEMES) or not url.isprintable() or " " in url:
        return None
    try:
        parts = urlsplit(url)
        port = parts.port or {"http": 80, "https": 443}[parts.scheme]
    except ValueError:  # a port that is no number, a bracket without its other
        return None
    return (parts.scheme, parts.hostname, port, parts.path.rstrip("/")) if parts.hostname else None
