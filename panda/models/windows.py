"""Context windows of servers: what a server tells of its own, and whether it read all of a prompt."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from panda.models.cl100k import count_tokens
from panda.models.model_contract import Message

Fetch = Callable[[str, Mapping[str, Any] | None], Any]
"""Gets the JSON at a path of a server, by POST where there is a body; None where there is none."""
_OLLAMA_TOKENS = 4096
"""The window of Ollama unless something else is set."""
_MODEL_KEYS = (
    *("max_model_len", "loaded_context_length", "n_ctx", "context_window"),
    *("max_context_length", "context_length", "max_total_tokens"),
)
"""What servers call the window in their list of models: vLLM, LM Studio, llama-server, Groq, Mistral."""
_LEAST_SHARE = 0.7
"""By how much other tokenizers shorten English at most: those with the largest vocabularies save a tenth."""
_LEAST_PROMPT_TOKENS = 256
"""Shorter prompts are not looked at: no server cuts them."""
_ASCII_WORD = re.compile(r"(?<!\S)[!-~]+(?!\S)")


def find_window(fetch: Fetch, model: str, *, is_ollama: bool) -> int | None:
    """
    Return how many tokens the window of a model has, as its server tells it; None where it does not.

    Args:
        fetch: Asks the server; paths begin at its base URL (`models`) or at its root (`/props`).
        model: The server's name for the model.
        is_ollama: Whether it is Ollama, whose window is 4,096 tokens where nothing else is set.
    """
    for look in (_ask_models, _ask_llama_server, _ask_ollama, _ask_lm_studio, _ask_tgi):
        tokens = look(fetch, model)
        if tokens is not None:
            return tokens
    return _OLLAMA_TOKENS if is_ollama else None


def count_least_tokens(messages: Sequence[Message]) -> int:
    """
    Return how many tokens a model reads at least of messages, by whatever tokenizer; 0 for short ones.

    Only words of ASCII characters are counted: tokenizers differ by far in other scripts.
    """
    words = [word for message in messages for word in _ASCII_WORD.findall(message.content)]
    tokens = count_tokens(" ".join(words))
    return int(tokens * _LEAST_SHARE) if tokens >= _LEAST_PROMPT_TOKENS else 0


def _ask_ollama(fetch: Fetch, model: str) -> int | None:
    """Return the window of the loaded model, else that of its Modelfile; None where neither is told."""
    description = fetch("/api/show", {"model": model})
    if not isinstance(description, Mapping) or "model_info" not in description:
        return None
    for entry in _entries(fetch("/api/ps", None), "models"):
        tokens = _read_tokens(entry.get("context_length"))
        if tokens is not None and model in (entry.get("name"), entry.get("model")):
            return tokens
    parameters = re.search(r"(?m)^num_ctx\s+(\d{1,9})\s*$", str(description.get("parameters", "")))
    return int(parameters[1]) if parameters else None


def _ask_models(fetch: Fetch, model: str) -> int | None:
    return _find_in_list(fetch("models", None), model)


def _ask_llama_server(fetch: Fetch, model: str) -> int | None:
    props = fetch("/props", None)
    if not isinstance(props, Mapping):
        return None
    slot = props.get("default_generation_settings")
    own = _read_tokens(slot.get("n_ctx")) if isinstance(slot, Mapping) else None
    return own or _read_tokens(props.get("n_ctx"))


def _ask_lm_studio(fetch: Fetch, model: str) -> int | None:
    return _find_in_list(fetch("/api/v0/models", None), model)


def _ask_tgi(fetch: Fetch, model: str) -> int | None:
    info = fetch("/info", None)
    return _read_tokens(info.get("max_total_tokens")) if isinstance(info, Mapping) else None


def _find_in_list(model_list: Any, model: str) -> int | None:
    """Return the window of a model in a list of models: of the one of that name, or the only one."""
    entries = list(_entries(model_list, "data"))
    named = [entry for entry in entries if entry.get("id") == model]
    for entry in named or (entries if len(entries) == 1 else []):
        meta = entry.get("meta")
        for facts in (entry, meta if isinstance(meta, Mapping) else {}):
            for key in _MODEL_KEYS:
                tokens = _read_tokens(facts.get(key))
                if tokens is not None:
                    return tokens
    return None


def _entries(model_list: Any, key: str) -> Iterator[Mapping[str, Any]]:
    entries = model_list.get(key) if isinstance(model_list, Mapping) else None
    if isinstance(entries, list):
        yield from (entry for entry in entries if isinstance(entry, Mapping))


def _read_tokens(value: object) -> int | None:
    is_count = isinstance(value, int) and not isinstance(value, bool) and 0 < value < 2**31
    return value if is_count and isinstance(value, int) else None
