"""The model contract on a server that speaks the OpenAI chat completions protocol."""

import base64
import hashlib
import time
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit

import httpx

from panda.documents.json_text import load_json
from panda.errors import HaltError, ModelAwayError, ModelFileError, ModelTimeoutError, PandaError
from panda.models.cl100k import count_cl100k
from panda.models.contract import (
    Completion,
    GenerateParams,
    HiddenState,
    Message,
    ModelInfo,
    ScoreCase,
    ScoreParams,
    Scores,
    TokenScores,
    Usage,
)
from panda.models.grammar import compile_schema, strip_schema

_MESSAGE_TOKENS = 4
_CONNECT_SECONDS = 10.0
_MOST_REPLY_BYTES = 16 * 2**20
_LOOPBACK = ("localhost", "127.0.0.1", "::1")


class OpenAiModel:
    """
    A model behind an OpenAI-compatible URL. It writes; it cannot score options.

    Args:
        name: Its key in models.yaml.
        url: Base URL, such as http://127.0.0.1:8080/v1.
        model: The server's name for it.
        n_ctx: Window in model tokens, as the server runs it.
        writes: Whether it is trusted with free text.
        api_key: Sent as bearer token; None sends none.
    """

    def __init__(
        self, name: str, *, url: str, model: str, n_ctx: int, writes: bool, api_key: str | None = None
    ) -> None:
        self._url = url.rstrip("/") + "/chat/completions"
        self._model = model
        self._headers = {} if api_key is None else {"Authorization": f"Bearer {api_key}"}
        digest = hashlib.sha256(f"{self._url} {model}".encode()).hexdigest()
        extra = {"backend": "openai", "location": url, "model": model}
        self._info = ModelInfo(name, digest, n_ctx, writes, False, extra, sees=True)

    @property
    def info(self) -> ModelInfo:
        return self._info

    def count_model_tokens(self, text: str) -> int:
        """An estimate: cl100k_base tokens, since the protocol has no way to ask the server's tokenizer."""
        return count_cl100k(text)

    def render_chat(self, messages: Sequence[Message]) -> str:
        """The messages in a plain form of about the length that the server's own template gives them."""
        return "".join(f"<|{m.role}|>\n{m.content}\n" for m in messages) + "<|assistant|>\n"

    def generate(self, messages: Sequence[Message], params: GenerateParams) -> Completion:
        """
        Write one completion on the server.

        Raises:
            ModelTimeoutError: It took longer than params.timeout_seconds.
            ModelAwayError: No connection, or the server says it is overloaded or broken.
            ModelFileError: It refuses the key, or does not know the model.
            RecipeSchemaError: params.schema does not compile to a grammar.
            HaltError: The prompt does not fit, or the reply is not one.
        """
        started = time.monotonic()
        self._check_room(messages, params.max_tokens)
        body: dict[str, Any] = {
            "model": self._model,
            "messages": [{"role": m.role, "content": _content(m)} for m in messages],
            "temperature": params.temperature,
            "max_tokens": params.max_tokens,
            "seed": params.seed,
        }
        if params.schema is not None:
            compile_schema(params.schema)
            schema = {"name": "reply", "strict": True, "schema": strip_schema(params.schema)}
            body["response_format"] = {"type": "json_schema", "json_schema": schema}
        status, data = self._post(body, params.timeout_seconds, started)
        if status != 200:
            raise self._refused(status, data)
        return self._parse(data, seconds=time.monotonic() - started)

    def score(self, prefix: str, cases: Sequence[ScoreCase], params: ScoreParams) -> Scores:
        """Always refused: the protocol gives no log-probabilities of given text."""
        raise self._cannot_score()

    def score_tokens(self, prefix: str, text: str, params: ScoreParams) -> TokenScores:
        """Always refused, as score is."""
        raise self._cannot_score()

    def embed(self, prefix: str, text: str, params: ScoreParams) -> HiddenState:
        """Always refused: the protocol gives no hidden states."""
        raise self._cannot_score()

    def _cannot_score(self) -> HaltError:
        return HaltError(
            f"the model {self._info.name} cannot score options",
            where=f"models.{self._info.name}.scores",
            fix="choose by constrained generation, or give the layer a llama_cpp model",
        )

    def _post(self, body: Mapping[str, Any], timeout_seconds: float, started: float) -> tuple[int, bytes]:
        timeout = httpx.Timeout(timeout_seconds, connect=min(_CONNECT_SECONDS, timeout_seconds))
        is_local = urlsplit(self._url).hostname in _LOOPBACK
        try:
            with (
                httpx.Client(timeout=timeout, trust_env=not is_local) as client,  # no proxy to this machine
                client.stream("POST", self._url, json=body, headers=self._headers) as response,
            ):
                data = bytearray()
                for chunk in response.iter_bytes():
                    data += chunk
                    if time.monotonic() - started > timeout_seconds:
                        raise self._timed_out(timeout_seconds)
                    if len(data) > _MOST_REPLY_BYTES:
                        raise HaltError(
                            f"the reply of {self._info.name} is longer than {_MOST_REPLY_BYTES:,} bytes",
                            where=self._url,
                            fix="check that the URL is that of a model server",
                        )
                return response.status_code, bytes(data)
        except (httpx.ReadTimeout, httpx.WriteTimeout) as exc:
            raise self._timed_out(timeout_seconds) from exc
        except httpx.TransportError as exc:
            raise self._away(str(exc) or type(exc).__name__) from exc
        except httpx.InvalidURL as exc:
            raise ModelFileError(
                f"the URL is not valid: {exc}", where=self._url, fix="correct models.yaml"
            ) from exc

    def _parse(self, data: bytes, *, seconds: float) -> Completion:
        try:
            reply = load_json(data)
            choice = reply["choices"][0]
            text, reason = choice["message"]["content"], choice["finish_reason"]
        except (ValueError, KeyError, IndexError, TypeError) as exc:
            raise self._no_reply("the server's answer is not a chat completion", data) from exc
        if reason not in ("stop", "length") or not isinstance(text, str):
            raise self._no_reply(f"the server ended the reply with {reason!r}", data)
        usage = reply.get("usage") or {}
        details = usage.get("prompt_tokens_details") or {}
        return Completion(
            text=text,
            finish_reason=reason,
            usage=Usage(
                prompt=usage.get("prompt_tokens"),
                reused=details.get("cached_tokens"),
                output=usage.get("completion_tokens"),
            ),
            seconds=seconds,
        )

    def _refused(self, status: int, data: bytes) -> PandaError:
        said = " ".join(data[:300].decode("utf-8", "replace").split())
        if status == 429 or status >= 500:
            return self._away(f"HTTP {status}: {said}")
        if status in (401, 403):
            return ModelFileError(
                f"the model server refuses the key (HTTP {status})",
                where=f"models.{self._info.name}.api_key_env",
                fix="name the environment variable that holds a valid key",
            )
        if status in (404, 405):
            return ModelFileError(
                f"the server does not know the URL or the model {self._model!r} (HTTP {status}): {said}",
                where=f"models.{self._info.name}",
                fix="correct location or model in models.yaml",
            )
        return self._no_reply(f"the model server refuses the request (HTTP {status})", data)

    def _no_reply(self, message: str, data: bytes) -> HaltError:
        return HaltError(
            message,
            where=self._url,
            fix="check the server's log, and that it speaks the chat completions protocol",
            expected="a chat completion with finish_reason stop or length",
            received=data[:2000].decode("utf-8", "replace"),
        )

    def _away(self, reason: str) -> ModelAwayError:
        return ModelAwayError(
            f"the model server of {self._info.name} does not answer: {reason}",
            where=self._url,
            fix="start the server, or correct location in models.yaml",
        )

    def _timed_out(self, timeout_seconds: float) -> ModelTimeoutError:
        return ModelTimeoutError(
            f"the model {self._info.name} took longer than {timeout_seconds:g} seconds",
            where=self._url,
            fix="raise timeout_ms in the recipe, or use a faster model",
            expected=f"a reply within {timeout_seconds:g} seconds",
            received="nothing complete",
        )

    def _check_room(self, messages: Sequence[Message], output: int) -> None:
        n_ctx = self._info.n_ctx
        prompt = sum(self.count_model_tokens(m.content) + _MESSAGE_TOKENS for m in messages)
        if prompt + output > n_ctx:
            raise HaltError(
                f"the prompt of about {prompt:,} and output of {output:,} model tokens do not fit into "
                f"the context window of {n_ctx:,}",
                where=f"models.{self._info.name}.n_ctx",
                fix="shorten the input, lower the recipe's output budget, or raise n_ctx",
                expected=f"at most {n_ctx:,} model tokens",
                received=f"about {prompt + output:,} model tokens",
            )


def _content(message: Message) -> str | list[dict[str, Any]]:
    """What a message says: its text, or its pictures as data URIs before it."""
    if not message.pictures:
        return message.content
    uris = [f"data:{one.media_type};base64,{base64.b64encode(one.data).decode()}" for one in message.pictures]
    shown: list[dict[str, Any]] = [{"type": "image_url", "image_url": {"url": uri}} for uri in uris]
    return [*shown, {"type": "text", "text": message.content}]
