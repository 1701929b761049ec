"""The model contract on servers that speak the OpenAI chat completions protocol, each in its dialect."""

import base64
import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, NoReturn

import httpx

from panda.documents.json_text import load_json
from panda.documents.secrets import Secrets, secrets_of_request
from panda.errors import HaltError, ModelFileError, Problem, ReplyError
from panda.models.chat_reply import parse_chat_reply
from panda.models.cl100k import count_tokens
from panda.models.contract import (
    Completion,
    Deadline,
    GenerateParams,
    Message,
    ModelInfo,
    ScoreCase,
    ScoreParams,
)
from panda.models.models_file import DIALECTS, ModelSpec
from panda.models.replies import (
    bare_object,
    compile_schema,
    is_of,
    response_format,
    split_reasoning,
    with_schema,
)
from panda.models.servers import PASSING, ServerFailure, Servers
from panda.store.files import write_cache_file

_PATH = "/chat/completions"
_MESSAGE_TOKENS = 4
_MORE_TOKENS = 4096
"""By how much the room of a reply grows at least when thinking has used it up."""
_MAX_QUOTED_CHARS = 300
_REFUSING = frozenset({400, 415, 422, 500, 501})
"""Statuses of servers that do not know a response_format."""


@dataclass(frozen=True)
class _Call:
    messages: Sequence[Message]  # as the recipe has them
    params: GenerateParams
    room_tokens: int  # most model tokens to write, thoughts included; less where the window holds less
    deadline: Deadline  # all that the call may take


class OpenAiModel:
    """A model behind one or more OpenAI-compatible URLs. It writes; it cannot score options."""

    def __init__(self, spec: ModelSpec, *, api_key: str | None = None, cache_dir: Path | None = None) -> None:
        self._spec, self._cache_dir = spec, cache_dir
        headers = {**({} if api_key is None else {"Authorization": f"Bearer {api_key}"}), **spec.headers}
        self._servers = Servers(
            spec.name,
            spec.servers,
            headers=headers,
            secrets=Secrets(secrets_of_request(headers, spec.extra_body)),
            attempt_seconds=spec.attempt_seconds,
        )
        facts = {"backend": spec.backend, "location": spec.servers, "model": spec.model}
        thinking, digest = spec.thinking_tokens, _digest(spec, spec.servers)
        self._info = ModelInfo(
            spec.name, digest, spec.n_ctx, False, facts, sees=True, thinking_tokens=thinking
        )
        self.dialects = known_dialects(spec, cache_dir)
        """How replies under a schema are asked of each server, as set or found out; None if neither."""

    @property
    def info(self) -> ModelInfo:
        return self._info

    def check_file(self) -> None:
        """There is none."""

    def count_model_tokens(self, text: str) -> int:
        """An estimate: cl100k_base tokens, since the protocol has no way to ask the server's tokenizer."""
        return count_tokens(text)

    def render_chat(self, messages: Sequence[Message]) -> str:
        """The messages in a plain form of about the length that the server's own template gives them."""
        return "".join(f"<|{m.role}|>\n{m.content}\n" for m in messages) + "<|assistant|>\n"

    def check_alive(self, *, within_seconds: float) -> None:
        """Raise ModelAwayError if a server does not answer at once; then find the dialects out anew."""
        self._servers.check_alive(within_seconds=within_seconds)
        self.dialects = known_dialects(self._spec, None)

    def gives_logprobs(self, messages: Sequence[Message], *, timeout_seconds: float) -> bool:
        """Whether the server tells how probable the tokens of a reply are."""
        body = {**self._body(messages, {}), "logprobs": True, self._spec.max_tokens_key: 1}
        deadline = Deadline(timeout_seconds)
        answer = self._servers.ask(lambda url: self._servers.post(url, _PATH, body, deadline), deadline)
        try:
            return answer.status_code == 200 and bool(load_json(answer.content)["choices"][0]["logprobs"])
        except (ValueError, KeyError, IndexError, TypeError, RecursionError):
            return False

    def close(self) -> None:
        """Give the connections up."""
        self._servers.close()

    def generate(self, messages: Sequence[Message], params: GenerateParams) -> Completion:
        """
        Write one completion on one of the servers, under a schema in the dialect set or remembered for that
        server, else in the first that works; with more room if thinking has taken that of the reply. Besides
        what any model raises: ModelFileError for a refused key or unknown model, ReplyError where the model
        thinks and writes nothing.
        """
        if params.schema is not None:
            compile_schema(params.schema)
        room = params.max_tokens + self._spec.thinking_tokens
        call = _Call(messages, params, room, Deadline(self._spec.timeout_seconds or params.timeout_seconds))
        completion = self._ask(call)
        longest = _count_prompt(with_schema(messages, params.schema or {}, "prompt"))
        if _is_cut_by_thinking(completion, params) and longest + room < self._info.n_ctx:
            first = completion
            completion = self._ask(replace(call, room_tokens=room + max(room, _MORE_TOKENS)))
            completion = replace(
                completion,
                usage=first.usage + completion.usage,
                reasoning="\n\n".join(filter(None, [first.reasoning, completion.reasoning])),
            )
        if not completion.text:
            raise self._wrote_nothing(completion)
        return replace(completion, seconds=call.deadline.elapsed_seconds)

    def score(self, prefix: str, cases: Sequence[ScoreCase], params: ScoreParams) -> NoReturn:
        """Always refused: the protocol gives no log-probabilities of given text."""
        message = f"the model {self._info.name} gives no log-probabilities of texts"
        raise HaltError(message, where=f"models.{self._info.name}", fix="give the layer a llama_cpp model")

    def _ask(self, call: _Call) -> Completion:
        return self._servers.ask(lambda url: self._write(url, call), call.deadline)

    def _write(self, url: str, call: _Call) -> Completion:
        """What a server writes, under a schema in its dialect or the first that gives a reply of it."""
        schema = call.params.schema
        known = None if schema is None else self.dialects[url]
        dialects: Sequence[str | None] = [known]
        if schema is not None and self._spec.structured is None:
            dialects = sorted(DIALECTS, key=lambda dialect: dialect != known)
        strays: list[Completion] = []
        refusals: list[httpx.Response] = []
        for dialect in dialects:
            written = self._write_in(url, call, dialect, is_known=dialect == known)
            if isinstance(written, httpx.Response):
                if written.status_code not in _REFUSING:
                    raise self._refused(url, written)
                refusals.append(written)
            elif dialect == known or written.finish_reason == "length" or not written.text:
                return written  # one that is cut tells nothing of the dialect
            elif is_of({**(schema or {}), "required": []}, written.text):  # for the caller to judge
                self._remember(url, dialect)
                return written
            else:
                strays.append(written)
        if strays:
            return strays[0]
        raise self._refused(url, refusals[0])

    def _remember(self, url: str, dialect: str | None) -> None:
        self.dialects[url] = dialect
        if self._cache_dir is not None:
            note = _note(self._spec, url, self._cache_dir)
            write_cache_file(note, json.dumps({"structured": dialect}).encode())

    def _write_in(
        self, url: str, call: _Call, dialect: str | None, *, is_known: bool
    ) -> Completion | httpx.Response:
        """What a server writes in one dialect; its answer if that is no completion."""
        messages = with_schema(call.messages, call.params.schema or {}, dialect)
        prompt = _count_prompt(messages)
        self._info.check_room(prompt, call.params.max_tokens + self._spec.thinking_tokens, "about ")
        room = min(call.room_tokens, self._info.n_ctx - prompt)
        own: dict[str, object] = {"temperature": call.params.temperature, "seed": call.params.seed}
        own |= response_format(call.params.schema or {}, dialect)
        body = {**self._body(messages, own), self._spec.max_tokens_key: room}
        passing = PASSING if is_known else PASSING - {500}  # it may mean the dialect
        answer = self._servers.post(url, _PATH, body, call.deadline, passing)
        if answer.status_code == 500:
            answer = self._servers.post(url, _PATH, body, call.deadline, passing)
        return answer if answer.status_code != 200 else self._parse(url, answer, call.params)

    def _body(self, messages: Sequence[Message], own: Mapping[str, object]) -> dict[str, Any]:
        said = [{"role": message.role, "content": _content(message)} for message in messages]
        body = {"model": self._spec.model, "messages": said, **own, **self._spec.extra_body}
        return {key: value for key, value in body.items() if value is not None}

    def _parse(self, url: str, answer: httpx.Response, params: GenerateParams) -> Completion:
        hide = self._servers.secrets.hide
        try:
            reply = parse_chat_reply(answer.content)
        except ValueError as exc:
            words = self._servers.words_of(answer)
            message = f"the answer of the server of {self._info.name} is not a chat completion: {exc}"
            raise _no_reply(url, message, words) from exc
        if reply.refusal or reply.finish_reason not in ("stop", "length"):
            said = hide(str(reply.refusal or reply.finish_reason))[:_MAX_QUOTED_CHARS]
            ended = hide(repr(reply.finish_reason))[:_MAX_QUOTED_CHARS]
            message = f"the server of {self._info.name} ended the reply with {ended}"
            raise _no_reply(url, message, said)
        reason: Literal["stop", "length"] = "stop" if reply.finish_reason == "stop" else "length"
        inner, text = split_reasoning(hide(reply.content), is_open=self._spec.thinking_tokens > 0)
        if params.schema is not None:
            text = bare_object(text, params.schema)
        return Completion(text, reason, reply.usage, 0.0, reasoning=hide(reply.reasoning) or inner)

    def _refused(self, url: str, answer: httpx.Response) -> Problem | ServerFailure:
        if answer.status_code == 429 or answer.status_code >= 500:
            return self._servers.failure(answer, is_final=True)
        said = self._servers.words_of(answer)
        who = f"the model server {url}" if self._spec.further_servers else "the model server"
        where = f"models.{self._info.name}"
        if answer.status_code in (401, 403):
            fix = "name the environment variable that holds a valid key"
            return ModelFileError(f"{who} refuses the key ({said})", f"{where}.api_key_env", fix=fix)
        if answer.status_code in (404, 405):
            message = f"{who} does not know the URL or the model {self._spec.model!r} ({said})"
            return ModelFileError(message, where, fix="correct location or model in models.yaml")
        if "max_completion_tokens" in said:
            fix = "set max_tokens_key: max_completion_tokens"
            return ModelFileError(f"{who} refuses max_tokens ({said})", where, fix=fix)
        return _no_reply(url, f"the model server refuses the request ({said})", said)

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
    return {url.rstrip("/"): spec.structured or _remembered(spec, url, cache_dir) for url in spec.servers}


def _remembered(spec: ModelSpec, url: str, cache_dir: Path | None) -> str | None:
    try:
        note = _note(spec, url, cache_dir) if cache_dir else Path()
        dialect = load_json(note.read_bytes())["structured"]
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


def _count_prompt(messages: Sequence[Message]) -> int:
    return sum(count_tokens(message.content) + _MESSAGE_TOKENS for message in messages)


def _is_cut_by_thinking(completion: Completion, params: GenerateParams) -> bool:
    """Whether there is no reply, or one that was cut before it had the room that it was given."""
    if not completion.text:
        return True
    is_cut = completion.finish_reason == "length" and bool(completion.reasoning)
    return is_cut and count_tokens(completion.text) < params.max_tokens


def _content(message: Message) -> str | list[dict[str, Any]]:
    if not message.pictures:
        return message.content
    pictures = ((picture.media_type, base64.b64encode(picture.data).decode()) for picture in message.pictures)
    urls = [{"url": f"data:{kind};base64,{data}"} for kind, data in pictures]
    shown: list[dict[str, Any]] = [{"type": "image_url", "image_url": url} for url in urls]
    return [*shown, {"type": "text", "text": message.content}]


def _no_reply(url: str, message: str, received: str) -> HaltError:
    return HaltError(
        message,
        where=url + _PATH,
        fix="check the server's log, and that it speaks the chat completions protocol",
        expected="a chat completion with finish_reason stop or length",
        received=received,
    )
