"""The model contract on servers that speak the OpenAI chat completions protocol, each in its dialect."""

import base64
import hashlib
import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NoReturn

import httpx

from panda.documents.json_text import load_json
from panda.errors import HaltError, ModelFileError, Problem, ReplyError
from panda.models.cl100k import count_tokens
from panda.models.contract import (
    Completion,
    GenerateParams,
    Message,
    ModelInfo,
    ScoreCase,
    ScoreParams,
    Usage,
)
from panda.models.fleet import Fleet
from panda.models.llama.gguf import write_cache_file
from panda.models.model_server import PASSING, AttemptError, ModelServer, TimeLimit
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

_MOST_CHARS = 500
"""Longest `maxLength` that is sent; longer ones are told in words and looked at in the reply. The server of
llama-cpp-python crashes at one of 1,200, and llama.cpp's own refuses thousands."""
_PATH = "/chat/completions"
_MESSAGE_TOKENS = 4
_MORE_TOKENS = 4096
"""By how much the room of a reply grows at least when thinking has used it up."""
_REFUSING = frozenset({400, 415, 422, 500, 501})
"""Statuses of servers that do not know a response_format."""


@dataclass(frozen=True)
class _Call:
    messages: Sequence[Message]  # as the recipe has them
    params: GenerateParams
    room_tokens: int  # most model tokens to write, thoughts included; less where the window holds less
    limit: TimeLimit  # all that the call may take


class OpenAiModel:
    """A model behind one or more OpenAI-compatible URLs. It writes; it cannot score options."""

    def __init__(
        self,
        spec: ModelSpec,
        *,
        api_key: str | None = None,
        cache_dir: Path | None = None,
        sleep: Callable[[float], None] = time.sleep,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._spec = spec
        headers = {**({} if api_key is None else {"Authorization": f"Bearer {api_key}"}), **spec.headers}
        servers = [
            ModelServer(
                spec.name,
                url,
                headers=headers,
                secret=api_key,
                attempt_seconds=spec.attempt_seconds,
                clock=clock,
            )
            for url in spec.servers
        ]
        self._fleet = Fleet(spec.name, servers, sleep=sleep, clock=clock)
        self._info = ModelInfo(
            spec.name,
            _digest(spec, spec.servers),
            spec.n_ctx,
            spec.writes,
            scores=False,
            extra={"backend": "openai", "location": spec.servers, "model": spec.model},
            sees=True,
            thinking_tokens=spec.thinking_tokens,
        )
        self._cache_dir = cache_dir
        self._dialects = known_dialects(spec, cache_dir)

    @property
    def info(self) -> ModelInfo:
        return self._info

    def count_model_tokens(self, text: str) -> int:
        """An estimate: cl100k_base tokens, since the protocol has no way to ask the server's tokenizer."""
        return count_tokens(text)

    def render_chat(self, messages: Sequence[Message]) -> str:
        """The messages in a plain form of about the length that the server's own template gives them."""
        return "".join(f"<|{m.role}|>\n{m.content}\n" for m in messages) + "<|assistant|>\n"

    @property
    def dialects(self) -> Mapping[str, str | None]:
        """How replies under a schema are asked of each server, as set or found out; None if neither."""
        return dict(self._dialects)

    def check_alive(self, *, within_seconds: float) -> None:
        """Raise ModelAwayError if a server does not answer at once; then find the dialects out anew."""
        self._fleet.check_alive(within_seconds=within_seconds)
        self._dialects = known_dialects(self._spec, None)

    def gives_logprobs(self, messages: Sequence[Message], *, timeout_seconds: float) -> bool:
        """Whether the server tells how probable the tokens of a reply are."""
        body = {**self._body(messages, None, None), "logprobs": True, self._spec.max_tokens_key: 1}
        limit = self._fleet.limit(timeout_seconds)
        answer = self._fleet.ask(lambda server: server.post(_PATH, body, limit), limit)
        try:
            return answer.status_code == 200 and bool(load_json(answer.content)["choices"][0]["logprobs"])
        except (ValueError, KeyError, IndexError, TypeError):
            return False

    def close(self) -> None:
        """Give the connections up."""
        self._fleet.close()

    def generate(self, messages: Sequence[Message], params: GenerateParams) -> Completion:
        """
        Write one completion on one of the servers, under a schema in the dialect set or remembered for that
        server, else in the first that works; with more room if thinking has taken that of the reply. Besides
        what any model raises: ModelFileError for a refused key or unknown model, ReplyError where the model
        thinks and writes nothing.
        """
        if params.schema is not None:
            compile_schema(params.schema)
        limit = self._fleet.limit(self._spec.timeout_seconds or params.timeout_seconds)
        room = params.max_tokens + self._spec.thinking_tokens
        call = _Call(messages, params, room, limit)
        completion = self._ask(call)
        longest = self._count_prompt(with_schema(messages, params.schema or {}, "prompt"))
        if _is_cut_by_thinking(completion, params) and longest + room < self._info.n_ctx:
            first = completion
            completion = self._ask(replace(call, room_tokens=room + max(room, _MORE_TOKENS)))
            completion = replace(
                completion,
                usage=first.usage + completion.usage,
                reasoning="\n\n".join(filter(None, [first.reasoning, completion.reasoning])),
                seconds=first.seconds + completion.seconds,
            )
        if not completion.text:
            raise self._wrote_nothing(completion)
        return completion

    def score(self, prefix: str, cases: Sequence[ScoreCase], params: ScoreParams) -> NoReturn:
        """Always refused: the protocol gives no log-probabilities of given text."""
        raise HaltError(
            f"the model {self._info.name} cannot score options",
            where=f"models.{self._info.name}.scores",
            fix="choose by constrained generation, or give the layer a llama_cpp model",
        )

    def score_tokens(self, prefix: str, text: str, params: ScoreParams) -> NoReturn:
        self.score(prefix, (), params)

    def _ask(self, call: _Call) -> Completion:
        return self._fleet.ask(lambda server: self._write(server, call), call.limit)

    def _write(self, server: ModelServer, call: _Call) -> Completion:
        dialect = self._dialects[server.url] if call.params.schema is not None else None
        written: Completion | httpx.Response | None = None
        if call.params.schema is None or dialect is not None:
            written = self._write_in(server, call, dialect)
        is_refused = isinstance(written, httpx.Response) and written.status_code in _REFUSING
        if written is None or (is_refused and dialect is not None and self._spec.structured is None):
            written = self._find_dialect(server, call)
        if isinstance(written, httpx.Response):
            raise self._refused(server, written)
        return written

    def _find_dialect(self, server: ModelServer, call: _Call) -> Completion | httpx.Response:
        """What comes of the first dialect that gives a reply of the schema; that one is remembered."""
        tried: list[Completion | httpx.Response] = []
        for dialect in DIALECTS:
            written = self._write_in(server, call, dialect)
            tried.append(written)
            if isinstance(written, httpx.Response):
                if written.status_code not in _REFUSING:
                    break
            elif written.finish_reason == "length" or _is_cut_by_thinking(written, call.params):
                return written  # tells nothing of the dialect
            elif is_of(
                {**(call.params.schema or {}), "required": []}, written.text
            ):  # for the caller to judge
                self._dialects[server.url] = dialect
                if self._cache_dir is not None:
                    note = _note(self._spec, server.url, self._cache_dir)
                    write_cache_file(note, json.dumps({"structured": dialect}).encode())
                return written
        return next((written for written in tried if isinstance(written, Completion)), tried[0])

    def _write_in(self, server: ModelServer, call: _Call, dialect: str | None) -> Completion | httpx.Response:
        started = time.monotonic()
        messages = with_schema(call.messages, call.params.schema or {}, dialect)
        prompt = self._count_prompt(messages)
        self._info.check_room(prompt, call.params.max_tokens + self._spec.thinking_tokens, "about ")
        room = min(call.room_tokens, self._info.n_ctx - prompt)
        body = {**self._body(messages, call.params, dialect), self._spec.max_tokens_key: room}
        answer = self._post(server, body, dialect, call.limit)
        if answer.status_code != 200:
            return answer
        return replace(self._parse(server, answer, call.params), seconds=time.monotonic() - started)

    def _count_prompt(self, messages: Sequence[Message]) -> int:
        return sum(self.count_model_tokens(m.content) + _MESSAGE_TOKENS for m in messages)

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
        self, server: ModelServer, body: Mapping[str, Any], dialect: str | None, limit: TimeLimit
    ) -> httpx.Response:
        """A server's answer. A 500 may say that it does not know a dialect that has not worked before."""
        if dialect in (None, self._dialects[server.url]):
            return server.post(_PATH, body, limit)
        answer = server.post(_PATH, body, limit, passing=PASSING - {500})
        if answer.status_code == 500:
            answer = server.post(_PATH, body, limit, passing=PASSING - {500})
        return answer

    def _parse(self, server: ModelServer, answer: httpx.Response, params: GenerateParams) -> Completion:
        try:
            reply = load_json(answer.content)
            choice = reply["choices"][0]
            message, reason = choice["message"], choice["finish_reason"]
            text, refusal = message.get("content") or "", message.get("refusal")
            thoughts = message.get("reasoning_content") or message.get("reasoning") or ""
        except (ValueError, KeyError, IndexError, TypeError, AttributeError) as exc:
            words = server.words_of(answer)
            raise self._no_reply(server, "the server's answer is not a chat completion", words) from exc
        if refusal or reason not in ("stop", "length") or not isinstance(text, str):
            raise self._no_reply(
                server, f"the server ended the reply with {reason!r}", str(refusal or reason)
            )
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

    def _refused(self, server: ModelServer, answer: httpx.Response) -> Problem | AttemptError:
        if answer.status_code == 429 or answer.status_code >= 500:
            return server.failed(answer, is_final=True)
        said = server.words_of(answer)
        who = f"the model server {server.url}" if self._spec.further_servers else "the model server"
        where = f"models.{self._info.name}"
        if answer.status_code in (401, 403):
            return ModelFileError(
                f"{who} refuses the key ({said})",
                where=f"{where}.api_key_env",
                fix="name the environment variable that holds a valid key",
            )
        if answer.status_code in (404, 405):
            return ModelFileError(
                f"{who} does not know the URL or the model {self._spec.model!r} ({said})",
                where=where,
                fix="correct location or model in models.yaml",
            )
        if "max_completion_tokens" in said:
            fix = "set max_tokens_key: max_completion_tokens"
            return ModelFileError(f"{who} refuses max_tokens ({said})", where=where, fix=fix)
        return self._no_reply(server, f"the model server refuses the request ({said})", said)

    def _no_reply(self, server: ModelServer, message: str, received: str) -> HaltError:
        return HaltError(
            message,
            where=server.url + _PATH,
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


def known_dialects(spec: ModelSpec, cache_dir: Path | None) -> dict[str, str | None]:
    """How replies under a schema are asked of each server, as set or remembered; None if neither."""
    return {url.rstrip("/"): _known_dialect(spec, url, cache_dir) for url in spec.servers}


def _known_dialect(spec: ModelSpec, url: str, cache_dir: Path | None) -> str | None:
    if spec.structured is not None or cache_dir is None:
        return spec.structured
    try:
        dialect = load_json(_note(spec, url, cache_dir).read_bytes())["structured"]
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return dialect if dialect in DIALECTS else None


def _note(spec: ModelSpec, url: str, cache_dir: Path) -> Path:
    return cache_dir / "dialects" / f"{_digest(spec, [url])[:32]}.json"


def _digest(spec: ModelSpec, urls: Sequence[str]) -> str:
    """sha256 of URLs in any order, model and what else decides the output of servers, hex."""
    further = json.dumps(spec.extra_body, sort_keys=True) if spec.extra_body else ""
    places = " ".join(sorted(f"{url.rstrip('/')}{_PATH}" for url in urls))
    return hashlib.sha256(f"{places} {spec.model}{further}".encode()).hexdigest()


def _is_cut_by_thinking(completion: Completion, params: GenerateParams) -> bool:
    """Whether there is no reply, or one that was cut before it had the room that it was given."""
    if not completion.text:
        return True
    is_cut = completion.finish_reason == "length" and bool(completion.reasoning)
    return is_cut and count_tokens(completion.text) < params.max_tokens


def _content(message: Message) -> str | list[dict[str, Any]]:
    if not message.pictures:
        return message.content
    uris = [f"data:{one.media_type};base64,{base64.b64encode(one.data).decode()}" for one in message.pictures]
    shown: list[dict[str, Any]] = [{"type": "image_url", "image_url": {"url": uri}} for uri in uris]
    return [*shown, {"type": "text", "text": message.content}]
