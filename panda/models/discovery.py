"""What a model server tells of the models that it serves: names, windows, and which program it is."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any
from urllib.parse import urlsplit

import httpx

from panda.documents.json_text import load_json
from panda.documents.secrets import Secrets
from panda.errors import ModelAwayError, NotFoundError, Problem, UsageError
from panda.models.access import ServerAccess
from panda.models.models_file import Backend, read_locations
from panda.models.offered_model import OfferedModel
from panda.models.servers import ServerFailure, Servers

_ANSWER_SECONDS = 10.0
_OLLAMA_PORT = 11_434
_MAX_WINDOW_TOKENS = 100_000_000
_VERSION_PATH = "/v1"
_KEY_STATUSES = (401, 403)


def locate_ollama(host: str | None) -> str:
    """
    Return the address of Ollama's server for a value of OLLAMA_HOST, without a path.

    >>> locate_ollama(None), locate_ollama("0.0.0.0"), locate_ollama("https://models.example")
    ('http://127.0.0.1:11434', 'http://127.0.0.1:11434', 'https://models.example:443')
    """
    text = (host or "").strip().strip("\"'")
    has_scheme = "://" in text
    try:
        parts = urlsplit(text if has_scheme else f"http://{text}")
        port = parts.port
    except ValueError as exc:
        fix = "set it to HOST:PORT, such as 127.0.0.1:11434"
        raise UsageError("OLLAMA_HOST is no address of a server", where="OLLAMA_HOST", fix=fix) from exc
    if port is None:
        port = {"http": 80, "https": 443}.get(parts.scheme, _OLLAMA_PORT) if has_scheme else _OLLAMA_PORT
    name = parts.hostname or "127.0.0.1"
    if name in ("0.0.0.0", "::"):  # what it listens at, where nobody can be reached
        name = "127.0.0.1"
    bracketed = f"[{name}]" if ":" in name else name
    return f"{parts.scheme}://{bracketed}:{port}"


def check_server_url(text: str) -> str:
    """Return the base URL that a user means, with /v1 where it has no path. Raises UsageError: it is none."""

    def refuse(key: str, message: str, fix: str) -> UsageError:
        return UsageError(message, where="SOURCE", fix=fix)

    (url,) = read_locations("openai", text, refuse)
    parts = urlsplit(url)
    if parts.query or parts.fragment:
        raise refuse("location", "the address of a server has no ? and no #", "leave that part out")
    base = url.rstrip("/")
    return base if parts.path.strip("/") else f"{base}{_VERSION_PATH}"


class ModelDirectory:
    """
    Asks one server what it serves; a context manager, which gives the connection up.

    Args:
        url: The base URL of its OpenAI-compatible endpoint, such as http://127.0.0.1:8080/v1.
        start: What to do where nobody answers.
        api_key: Sent with each request; None sends none.
    """

    def __init__(self, url: str, *, start: str, api_key: str | None = None) -> None:
        headers = {"Authorization": f"Bearer {api_key}"} if api_key else {}
        self._url = url
        self._start = start
        self._has_key = api_key is not None
        self._root = url.removesuffix(_VERSION_PATH)
        secrets = Secrets([api_key] if api_key else [])
        access = ServerAccess(addresses={url: url, self._root: self._root}, headers=headers)
        self._servers = Servers(url, access, secrets=secrets)

    def __enter__(self) -> "ModelDirectory":
        return self

    def __exit__(self, *error: object) -> None:
        self._servers.close()

    def list_models(self) -> list[OfferedModel]:
        """
        Return the models that it serves, in its order.

        Raises:
            ModelAwayError: It does not answer, or still loads its model.
            UsageError: It wants a key, or is no OpenAI-compatible server.
        """
        entries = self._list_entries()
        windows = {name: _count(entry.get("max_model_len")) for name, entry in entries.items()}
        if any(windows.values()):
            return [self._offer("vllm", name, n_ctx=window) for name, window in windows.items()]
        properties = self._find(self._root, "/props", wants_key=_is_llama_server(entries))
        if "default_generation_settings" in properties:
            return self._read_llama_server(entries, properties)
        if "version" in self._find(self._root, "/api/version"):
            return [self.describe_on_ollama(name) for name in entries]
        listed = _mappings(self._find(self._root, "/api/v0/models").get("data"))
        if listed:
            return [self._read_lm_studio(entry) for entry in listed if isinstance(entry.get("id"), str)]
        trained = {
            name: _count(_mapping(entry.get("meta")).get("n_ctx_train")) for name, entry in entries.items()
        }
        return [self._offer("openai", name, n_ctx_trained=trained[name]) for name in entries]

    def list_ollama_names(self) -> list[str]:
        """Return the names of the models that Ollama has. Raises UsageError: it is another program."""
        answer = self._look_up(self._root, "/api/tags")
        models = _mappings(_read_object(answer).get("models"))
        if answer.status_code != 200:
            raise self._refused(answer, "Ollama's server")
        return [entry["name"] for entry in models if isinstance(entry.get("name"), str)]

    def find_on_ollama(self, name: str) -> OfferedModel:
        """
        Return the model of that name; one without a tag is its tag latest.

        Raises:
            NotFoundError: Ollama does not have it.
        """
        names = self.list_ollama_names()
        wanted = name if ":" in name.rpartition("/")[2] else f"{name}:latest"
        if wanted not in names:
            present = f"it has {', '.join(names)}" if names else "it has none yet"
            message = f"Ollama has no model {name!r}: {present}"
            raise NotFoundError(message, where=self._root, fix=f"ollama pull {name}")
        return self.describe_on_ollama(wanted)

    def describe_on_ollama(self, name: str) -> OfferedModel:
        """
        Return what Ollama tells of one of its models. Its window is that of the loaded model, else the one
        that its Modelfile sets, else None: only a loaded model tells what the server was started with.
        """
        answer = self._look_up(self._root, "/api/show", body={"model": name})
        facts = _read_object(answer) if answer.status_code == 200 else {}
        details = _mapping(facts.get("model_info"))
        trained = next((_count(details[key]) for key in details if key.endswith(".context_length")), None)
        capabilities = facts.get("capabilities")
        abilities = capabilities if isinstance(capabilities, list) else ["completion"]
        window = self.find_ollama_window(name) or _read_parameter(facts, "num_ctx")
        if window is not None and trained is not None:
            window = min(window, trained)
        offer = self._offer("ollama", name, n_ctx=window, n_ctx_trained=trained)
        return _with_abilities(offer, abilities)

    def find_ollama_window(self, name: str) -> int | None:
        """Return the window that Ollama has loaded a model with; None if that is not told."""
        running = _mappings(self._find(self._root, "/api/ps").get("models"))
        windows = (_count(entry.get("context_length")) for entry in running if entry.get("name") == name)
        return next(windows, None)

    def count_parameters(self, offer: OfferedModel) -> int | None:
        """Return how many parameters a model has; None if its server does not tell, as some do."""
        if offer.backend == "ollama":
            facts = self._find(self._root, "/api/show", body={"model": offer.model})
            return _positive(_mapping(facts.get("model_info")).get("general.parameter_count"))
        entries = _mappings(self._find(self._url, "/models").get("data"))
        metas = (_mapping(entry.get("meta")) for entry in entries if entry.get("id") == offer.model)
        return next((_positive(meta.get("n_params")) for meta in metas), None)

    def _list_entries(self) -> dict[str, Mapping[str, Any]]:
        answer = self._look_up(self._url, "/models")
        self._check_key(answer)
        data = _read_object(answer).get("data")
        if answer.status_code != 200 or not isinstance(data, list):
            raise self._refused(answer, "an OpenAI-compatible server")
        entries = {entry["id"]: entry for entry in _mappings(data) if isinstance(entry.get("id"), str)}
        if not entries:
            message = "the server serves no model"
            raise NotFoundError(
                message, where=self._url, fix="load a model there, and give the command again"
            )
        return entries

    def _check_key(self, answer: httpx.Response) -> None:
        """Raises UsageError for an answer that asks for a key, or for another one."""
        if answer.status_code not in _KEY_STATUSES:
            return
        message = "the server wants a key"
        fix = "export the key, and name the variable: --api-key-env NAME"
        if self._has_key:
            message = "the server refuses the key"
            fix = "export the server's own key in the variable that --api-key-env names"
        words = self._servers.words_of(answer)
        raise UsageError(f"{message} ({words})", where=self._url, fix=fix)

    def _refused(self, answer: httpx.Response, what: str) -> Problem:
        server_message = self._servers.words_of(answer)
        if answer.status_code == 429 or answer.status_code >= 500:
            fix = "give the command again once it is ready"
            return ModelAwayError(f"the server is not ready ({server_message})", where=self._url, fix=fix)
        fix = "give the base URL of its API, which mostly ends in /v1"
        return UsageError(f"this is not {what} ({server_message})", where=self._url, fix=fix)

    def _read_llama_server(
        self, served: Mapping[str, Mapping[str, Any]], properties: Mapping[str, Any]
    ) -> list[OfferedModel]:
        window = _count(_mapping(properties["default_generation_settings"]).get("n_ctx"))
        slots = _count(properties.get("total_slots")) or 1
        return [
            self._offer(
                "llama-server",
                name,
                n_ctx=window,
                n_ctx_trained=_count(_mapping(entry.get("meta")).get("n_ctx_train")),
                parallel=slots,
            )
            for name, entry in served.items()
        ]

    def _read_lm_studio(self, entry: Mapping[str, Any]) -> OfferedModel:
        return self._offer(
            "lmstudio",
            str(entry["id"]),
            n_ctx=_count(entry.get("loaded_context_length")),
            n_ctx_trained=_count(entry.get("max_context_length")),
            is_encoder=entry.get("type") == "embeddings",
        )

    def _look_up(self, base: str, path: str, *, body: Mapping[str, Any] | None = None) -> httpx.Response:
        try:
            return self._servers.look_up(base, path, body=body, within_seconds=_ANSWER_SECONDS)
        except ServerFailure as exc:
            message = f"nobody answers as a model server there: {exc.words}"
            raise ModelAwayError(message, where=self._url, fix=self._start) from exc

    def _find(
        self, base: str, path: str, *, body: Mapping[str, Any] | None = None, wants_key: bool = False
    ) -> Mapping[str, Any]:
        """
        Return a JSON object that some servers have at an address; empty if this one has none.

        Raises:
            UsageError: The server has it only for another key, and *wants_key* says that this counts.
        """
        with suppress(ModelAwayError):
            answer = self._look_up(base, path, body=body)
            if wants_key:
                self._check_key(answer)
            if answer.status_code == 200:
                return _read_object(answer)
        return {}

    def _offer(
        self,
        server_kind: Backend,
        name: str,
        *,
        n_ctx: int | None = None,
        n_ctx_trained: int | None = None,
        parallel: int = 1,
        is_encoder: bool = False,
    ) -> OfferedModel:
        return OfferedModel(
            backend=server_kind,
            location=self._url,
            model=name,
            n_ctx=n_ctx,
            n_ctx_trained=n_ctx_trained,
            parallel=parallel,
            is_encoder=is_encoder,
        )


def _is_llama_server(listed_models: Mapping[str, Mapping[str, Any]]) -> bool:
    """Say whether a list of models is llama-server's, which is open to whoever has no key for the rest."""
    return any(entry.get("owned_by") == "llamacpp" for entry in listed_models.values())


def _with_abilities(offer: OfferedModel, abilities: Sequence[object]) -> OfferedModel:
    return replace(offer, is_encoder="completion" not in abilities, thinks="thinking" in abilities)


def _read_parameter(shown_facts: Mapping[str, Any], name: str) -> int | None:
    """Return a whole number of the parameters of Ollama's Modelfile, which are lines of name and value."""
    lines = str(shown_facts.get("parameters") or "").splitlines()
    words = (line.split() for line in lines)
    values = (parts[1] for parts in words if len(parts) > 1 and parts[0] == name)
    text = next(values, "")
    return _count(int(text)) if text.isascii() and text.isdigit() and len(text) < 10 else None


def _read_object(answer: httpx.Response) -> Mapping[str, Any]:
    """Return the JSON object of an answer; empty if it holds none."""
    with suppress(ValueError, RecursionError):
        return _mapping(load_json(answer.content))
    return {}


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _mappings(value: object) -> list[Mapping[str, Any]]:
    return [item for item in value if isinstance(item, Mapping)] if isinstance(value, list) else []


def _count(value: object) -> int | None:
    """Return a number of tokens or slots that a server tells; None if it is none."""
    count = _positive(value)
    return None if count is None or count > _MAX_WINDOW_TOKENS else count


def _positive(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else None
