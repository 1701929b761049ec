"""The model contract on a server that speaks the OpenAI chat completions protocol, in its dialect."""

import base64
import hashlib
import json
import time
import weakref
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import replace
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import Any, NoReturn, cast
from urllib.parse import urlsplit

import httpx
from tenacity import (
    RetryCallState,
    Retrying,
    retry_if_exception_type,
    retry_if_result,
    stop_after_attempt,
    stop_before_delay,
    wait_exponential,
    wait_random,
)

from panda.documents.json_text import load_json
from panda.errors import HaltError, ModelAwayError, ModelFileError, ModelTimeoutError, PandaError, ReplyError
from panda.models.cl100k import count_cl100k
from panda.models.contract import (
    Completion,
    GenerateParams,
    Message,
    ModelInfo,
    ScoreCase,
    ScoreParams,
    Usage,
)
from panda.models.llama.gguf import write_cache_file
from panda.models.models_file import DIALECTS, ModelSpec
from panda.models.replies import (
    allows_strict,
    bare_object,
    compile_schema,
    is_of,
    split_reasoning,
    strip_schema,
    with_schema,
)

PASSING = frozenset({429, 500, 502, 503, 504})
"""Statuses that may be another one a moment later."""
_ATTEMPTS = 5
_BACK_OFF = wait_exponential(multiplier=0.5, max=8) + wait_random(max=0.5)
_CONNECT_SECONDS = 5.0
_MOST_REPLY_BYTES = 16 * 2**20
_MOST_WORDS = 300
_MOST_CHARS = 500
"""Longest `maxLength` that is sent; longer ones are told in words and looked at in the reply. The server of
llama-cpp-python crashes at one of 1,200, and llama.cpp's own refuses thousands."""
_RETRY_AFTER = "retry-after"
_LOOPBACK = ("localhost", "127.0.0.1", "::1")


class ModelServer:
    """A server on which one model runs: a kept-alive connection, time and size bounded."""

    def __init__(
        self, name: str, url: str, *, headers: Mapping[str, str], sleep: Callable[[float], None]
    ) -> None:
        self._name = name
        self.url = url.rstrip("/")
        self._headers = dict(headers)
        self._sleep = sleep
        self._client: httpx.Client | None = None

    def post(
        self,
        path: str,
        body: Mapping[str, Any],
        *,
        timeout_seconds: float,
        end: float | None = None,
        passing: Collection[int] = PASSING,
    ) -> httpx.Response:
        """
        The answer to a request, sent again after a pause while it is one that passes or no connection holds.

        Args:
            timeout_seconds: Wall clock for all attempts and pauses together.
            end: Monotonic time when it is over, if it began before.
            passing: Statuses that are asked again.

        Raises:
            ModelTimeoutError: It took too long.
            ModelAwayError: There is no connection.
            HaltError: The answer is too long.
        """
        now = time.monotonic()
        end = now + timeout_seconds if end is None else end
        is_passing = retry_if_result(lambda answer: answer.status_code in passing)
        retrying = Retrying(
            sleep=self._sleep,
            wait=_pause,
            stop=stop_after_attempt(_ATTEMPTS) | stop_before_delay(end - now),
            retry=is_passing | retry_if_exception_type((httpx.NetworkError, httpx.RemoteProtocolError)),
            retry_error_callback=lambda state: cast(Future[Any], state.outcome).result(),
        )
        try:
            answer: httpx.Response = retrying(self._send, "POST", path, body, end)
        except (httpx.ReadTimeout, httpx.WriteTimeout) as exc:
            raise ModelTimeoutError(
                f"the model {self._name} took longer than {timeout_seconds:g} seconds",
                where=self.url,
                fix=f"set models.{self._name}.timeout_seconds in models.yaml, or use a faster model",
                expected=f"a reply within {timeout_seconds:g} seconds",
                received="nothing complete",
            ) from exc
        except httpx.TransportError as exc:
            raise self.away(str(exc) or type(exc).__name__) from exc
        return answer

    def check_alive(self, *, within_seconds: float) -> None:
        """
        Ask for the list of models: whatever the answer is, somebody is there.

        Raises:
            ModelAwayError: Nothing came back in time.
        """
        try:
            self._send("GET", "/models", None, time.monotonic() + within_seconds)
        except httpx.TimeoutException as exc:
            raise self.away(f"nothing within {within_seconds:g} seconds") from exc
        except httpx.TransportError as exc:
            raise self.away(str(exc) or type(exc).__name__) from exc

    def away(self, reason: str) -> ModelAwayError:
        """The error for a server that cannot be used now."""
        return ModelAwayError(
            f"the model server of {self._name} does not answer: {reason}",
            where=self.url,
            fix="start the server, or correct location in models.yaml; then run the command again",
        )

    def close(self) -> None:
        """Give the connection up; the next request makes another one."""
        if self._client is not None:
            self._client.close()
            self._client = None

    def _send(self, method: str, path: str, body: Mapping[str, Any] | None, end: float) -> httpx.Response:
        """One attempt, until the monotonic time *end*."""
        if self._client is None:
            is_local = urlsplit(self.url).hostname in _LOOPBACK  # no proxy to this machine
            self._client = httpx.Client(headers=self._headers, trust_env=not is_local)
            weakref.finalize(self, self._client.close)  # a command ends without closing its models
        left = max(0.001, end - time.monotonic())
        timeout = httpx.Timeout(left, connect=min(_CONNECT_SECONDS, left))
        data = bytearray()
        try:
            with self._client.stream(method, self.url + path, json=body, timeout=timeout) as response:
                for chunk in response.iter_bytes():
                    data += chunk
                    if time.monotonic() > end:
                        raise httpx.ReadTimeout("")
                    if len(data) > _MOST_REPLY_BYTES:
                        message = f"the reply of {self._name} is longer than {_MOST_REPLY_BYTES:,} bytes"
                        fix = "check that the URL is that of a model server"
                        raise HaltError(message, where=self.url, fix=fix)
        except httpx.InvalidURL as exc:
            message = f"the URL is not valid: {exc}"
            raise ModelFileError(message, where=self.url, fix="correct models.yaml") from exc
        asked = {name: text for name, text in response.headers.items() if name == _RETRY_AFTER}
        return httpx.Response(response.status_code, headers=asked, content=bytes(data))


def _pause(state: RetryCallState) -> float:
    """Seconds until the next attempt: what the server asks for, else longer each time."""
    outcome = state.outcome
    asked = _asked_pause(outcome.result()) if outcome and not outcome.failed else 0.0
    return float(asked or _BACK_OFF(state))


def _asked_pause(answer: httpx.Response) -> float:
    """Seconds of `Retry-After`, which may be a number or a date; 0 if there is none."""
    text = answer.headers.get(_RETRY_AFTER, "").strip()
    if text.isascii() and text.isdigit():
        return float(text[:9])
    try:
        until = parsedate_to_datetime(text)
    except ValueError:
        return 0.0
    return max(0.0, (until.replace(tzinfo=until.tzinfo or UTC) - datetime.now(UTC)).total_seconds())


def _words(answer: httpx.Response) -> str:
    """The server's own words, in one line: the message of a JSON error, else the body."""
    try:
        value = load_json(answer.content)
    except (ValueError, RecursionError):
        value = answer.content.decode("utf-8", "replace")
    while isinstance(value, Mapping):
        value = next((value[key] for key in ("error", "message", "detail") if key in value), str(value))
    return " ".join(str(value).split())[:_MOST_WORDS]


_PATH = "/chat/completions"
_MESSAGE_TOKENS = 4
_MORE_TOKENS = 4096
"""By how much the room of a reply grows at least when thinking has used it up."""
_REFUSING = frozenset({400, 415, 422, 500, 501})
"""Statuses of servers that do not know a response_format."""


class OpenAiModel:
    """
    A model behind an OpenAI-compatible URL. It writes; it cannot score options.

    Args:
        api_key: Sent as bearer token; None sends none.
        cache_dir: Where the dialect that was found out is remembered; None forgets it with the process.
        sleep: Waits for so many seconds.
    """

    def __init__(
        self,
        spec: ModelSpec,
        *,
        api_key: str | None = None,
        cache_dir: Path | None = None,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._spec = spec
        self._key = api_key
        bearer = {} if api_key is None else {"Authorization": f"Bearer {api_key}"}
        self._server = ModelServer(spec.name, spec.location, headers={**bearer, **spec.headers}, sleep=sleep)
        self._info = ModelInfo(
            spec.name,
            _digest(spec),
            spec.n_ctx,
            spec.writes,
            scores=False,
            extra={"backend": "openai", "location": spec.location, "model": spec.model},
            sees=True,
            thinking_tokens=spec.thinking_tokens,
        )
        self._note = _note(spec, cache_dir) if cache_dir else None
        self._dialect = known_dialect(spec, cache_dir)

    @property
    def info(self) -> ModelInfo:
        return self._info

    def count_model_tokens(self, text: str) -> int:
        """An estimate: cl100k_base tokens, since the protocol has no way to ask the server's tokenizer."""
        return count_cl100k(text)

    def render_chat(self, messages: Sequence[Message]) -> str:
        """The messages in a plain form of about the length that the server's own template gives them."""
        return "".join(f"<|{m.role}|>\n{m.content}\n" for m in messages) + "<|assistant|>\n"

    @property
    def dialect(self) -> str | None:
        """How replies under a schema are asked for, as set or found out; None if neither."""
        return self._dialect

    def check_alive(self, *, within_seconds: float) -> None:
        """Raise ModelAwayError if the server does not answer at once; then find the dialect out anew."""
        self._server.check_alive(within_seconds=within_seconds)
        self._dialect = self._spec.structured

    def gives_logprobs(self, messages: Sequence[Message], *, timeout_seconds: float) -> bool:
        """Whether the server tells how probable the tokens of a reply are."""
        body = {**self._body(messages, None, None), "logprobs": True, self._spec.max_tokens_key: 1}
        answer = self._server.post(_PATH, body, timeout_seconds=timeout_seconds)
        try:
            return answer.status_code == 200 and bool(load_json(answer.content)["choices"][0]["logprobs"])
        except (ValueError, KeyError, IndexError, TypeError):
            return False

    def close(self) -> None:
        """Give the connection up."""
        self._server.close()

    def generate(self, messages: Sequence[Message], params: GenerateParams) -> Completion:
        """
        Write one completion on the server, under a schema in the dialect set or remembered, else in the
        first that works.

        Raises:
            ModelTimeoutError: It took longer than the model or params.timeout_seconds allow.
            ModelAwayError: No connection, or the server says it is overloaded or broken, several times.
            ModelFileError: It refuses the key, or does not know the model.
            RecipeSchemaError: params.schema does not compile to a grammar.
            ReplyError: The model thinks and writes nothing, with more room too.
            HaltError: The prompt does not fit, or the reply is not one.
        """
        end = time.monotonic() + (self._spec.timeout_seconds or params.timeout_seconds)
        found: Completion | httpx.Response | None
        if params.schema is None:
            found = self._write(messages, params, None, end)
        else:
            compile_schema(params.schema)
            found = self._write(messages, params, self._dialect, end) if self._dialect else None
            is_refused = isinstance(found, httpx.Response) and found.status_code in _REFUSING
            if found is None or (is_refused and self._spec.structured is None):
                found = self._find_dialect(messages, params, end)
        if isinstance(found, httpx.Response):
            raise self._refused(found)
        return found

    def score(self, prefix: str, cases: Sequence[ScoreCase], params: ScoreParams) -> NoReturn:
        """Always refused: the protocol gives no log-probabilities of given text."""
        raise HaltError(
            f"the model {self._info.name} cannot score options",
            where=f"models.{self._info.name}.scores",
            fix="choose by constrained generation, or give the layer a llama_cpp model",
        )

    def score_tokens(self, prefix: str, text: str, params: ScoreParams) -> NoReturn:
        """Always refused, as score is."""
        self.score(prefix, (), params)

    def _find_dialect(
        self, messages: Sequence[Message], params: GenerateParams, end: float
    ) -> Completion | httpx.Response:
        """What comes of the first dialect that gives a reply of the schema; that one is remembered."""
        tried: list[Completion | httpx.Response] = []
        for dialect in DIALECTS:
            found = self._write(messages, params, dialect, end)
            tried.append(found)
            if isinstance(found, httpx.Response):
                if found.status_code not in _REFUSING:
                    break
            elif found.finish_reason == "length":
                break
            elif is_of({**(params.schema or {}), "required": []}, found.text):  # for the caller to judge
                self._dialect = dialect
                if self._note is not None:
                    write_cache_file(self._note, json.dumps({"structured": dialect}).encode())
                return found
        return next((found for found in tried if isinstance(found, Completion)), tried[0])

    def _write(
        self, messages: Sequence[Message], params: GenerateParams, dialect: str | None, end: float
    ) -> Completion | httpx.Response:
        """One completion, with more room if thinking has taken that of the reply; or the refusal."""
        started = time.monotonic()
        messages = with_schema(messages, params.schema or {}, dialect)
        body = self._body(messages, params, dialect)
        room = params.max_tokens + self._spec.thinking_tokens
        prompt = sum(self.count_model_tokens(m.content) + _MESSAGE_TOKENS for m in messages)
        self._info.check_room(prompt, room, "about ")
        most = self._info.n_ctx - prompt
        answer = self._post(body, room, dialect, params, end)
        if answer.status_code != 200:
            return answer
        completion = self._parse(answer, params)
        more = min(most, room + max(room, _MORE_TOKENS))
        if more > room and _is_cut_by_thinking(completion, params):
            answer = self._post(body, more, dialect, params, end)
            if answer.status_code != 200:
                return answer
            first, completion = completion, self._parse(answer, params)
            thoughts = "\n\n".join(filter(None, [first.reasoning, completion.reasoning]))
            completion = replace(completion, usage=first.usage + completion.usage, reasoning=thoughts)
        if not completion.text:
            raise self._wrote_nothing(completion)
        return replace(completion, seconds=time.monotonic() - started)

    def _body(
        self, messages: Sequence[Message], params: GenerateParams | None, dialect: str | None
    ) -> dict[str, Any]:
        body: dict[str, Any] = {
            "model": self._spec.model,
            "messages": [{"role": m.role, "content": _content(m)} for m in messages],
        }
        if params is not None:
            body |= {"temperature": params.temperature, "seed": params.seed}
        if params is not None and params.schema is not None and dialect != "prompt":
            schema = strip_schema(params.schema, most_chars=_MOST_CHARS)
            named = {"name": "reply", **({"strict": True} if allows_strict(schema) else {}), "schema": schema}
            body["response_format"] = {
                "type": dialect,
                **({"json_schema": named} if dialect == "json_schema" else {"schema": schema}),
            }
        return {
            key: value for key, value in (body | dict(self._spec.extra_body)).items() if value is not None
        }

    def _post(
        self, body: Mapping[str, Any], room: int, dialect: str | None, params: GenerateParams, end: float
    ) -> httpx.Response:
        """The server's answer. A 500 may say that it does not know a dialect that has not worked before."""
        passing = PASSING if dialect in (None, self._dialect) else PASSING - {500}
        body = {**body, self._spec.max_tokens_key: room}
        seconds = self._spec.timeout_seconds or params.timeout_seconds
        answer = self._server.post(_PATH, body, timeout_seconds=seconds, end=end, passing=passing)
        if answer.status_code == 500 and 500 not in passing:
            answer = self._server.post(_PATH, body, timeout_seconds=seconds, end=end, passing=passing)
        return answer

    def _parse(self, answer: httpx.Response, params: GenerateParams) -> Completion:
        try:
            reply = load_json(answer.content)
            choice = reply["choices"][0]
            message, reason = choice["message"], choice["finish_reason"]
            text, refusal = message.get("content") or "", message.get("refusal")
            thoughts = message.get("reasoning_content") or message.get("reasoning") or ""
        except (ValueError, KeyError, IndexError, TypeError, AttributeError) as exc:
            raise self._no_reply("the server's answer is not a chat completion", _words(answer)) from exc
        if refusal or reason not in ("stop", "length") or not isinstance(text, str):
            raise self._no_reply(f"the server ended the reply with {reason!r}", str(refusal or reason))
        inner, text = split_reasoning(text, is_open=self._spec.thinking_tokens > 0)
        if params.schema is not None:
            text = bare_object(text, params.schema)
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
            seconds=0.0,
            reasoning=str(thoughts) or inner,
        )

    def _refused(self, answer: httpx.Response) -> PandaError:
        said = f"HTTP {answer.status_code}: {_words(answer)}"
        if self._key:
            said = said.replace(self._key, "[key]")
        where = f"models.{self._info.name}"
        if answer.status_code == 429 or answer.status_code >= 500:
            pause = _asked_pause(answer)
            return self._server.away(said + (f" (it asks to wait {pause:,.0f} seconds)" if pause else ""))
        if answer.status_code in (401, 403):
            return ModelFileError(
                f"the model server refuses the key ({said})",
                where=f"{where}.api_key_env",
                fix="name the environment variable that holds a valid key",
            )
        if answer.status_code in (404, 405):
            return ModelFileError(
                f"the server does not know the URL or the model {self._spec.model!r} ({said})",
                where=where,
                fix="correct location or model in models.yaml",
            )
        if "max_completion_tokens" in said:
            fix = "set max_tokens_key: max_completion_tokens"
            return ModelFileError(f"the model server refuses max_tokens ({said})", where=where, fix=fix)
        return self._no_reply(f"the model server refuses the request ({said})", said)

    def _no_reply(self, message: str, received: str) -> HaltError:
        return HaltError(
            message,
            where=self._server.url + _PATH,
            fix="check the server's log, and that it speaks the chat completions protocol",
            expected="a chat completion with finish_reason stop or length",
            received=received,
        )

    def _wrote_nothing(self, completion: Completion) -> ReplyError:
        name, tokens = self._info.name, completion.usage.output
        thought = f"{len(completion.reasoning):,} characters of reasoning"
        return ReplyError(
            f"the model {name} wrote no reply, but {thought}"
            + (f" ({tokens:,} tokens)" if tokens is not None else ""),
            where=f"models.{name}.thinking_tokens",
            fix="raise thinking_tokens (and n_ctx), or turn its thinking off with extra_body",
            expected="a reply after the reasoning",
            received=f"no text, finish_reason {completion.finish_reason}",
        )


def known_dialect(spec: ModelSpec, cache_dir: Path | None) -> str | None:
    """How replies under a schema are asked of a server, as set or remembered; None if neither."""
    if spec.structured is not None or cache_dir is None:
        return spec.structured
    try:
        found = load_json(_note(spec, cache_dir).read_bytes())["structured"]
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return found if found in DIALECTS else None


def _note(spec: ModelSpec, cache_dir: Path) -> Path:
    """Where the dialect of a server is remembered."""
    return cache_dir / "dialects" / f"{_digest(spec)[:32]}.json"


def _digest(spec: ModelSpec) -> str:
    """sha256 of URL, model and what else decides the output of a server, hex."""
    further = json.dumps(spec.extra_body, sort_keys=True) if spec.extra_body else ""
    return hashlib.sha256(f"{spec.location.rstrip('/')}{_PATH} {spec.model}{further}".encode()).hexdigest()


def _is_cut_by_thinking(completion: Completion, params: GenerateParams) -> bool:
    """Whether there is no reply, or one that was cut before it had the room that it was given."""
    if not completion.text:
        return True
    is_cut = completion.finish_reason == "length" and bool(completion.reasoning)
    return is_cut and count_cl100k(completion.text) < params.max_tokens


def _content(message: Message) -> str | list[dict[str, Any]]:
    """What a message says: its text, or its pictures as data URIs before it."""
    if not message.pictures:
        return message.content
    uris = [f"data:{one.media_type};base64,{base64.b64encode(one.data).decode()}" for one in message.pictures]
    shown: list[dict[str, Any]] = [{"type": "image_url", "image_url": {"url": uri}} for uri in uris]
    return [*shown, {"type": "text", "text": message.content}]
