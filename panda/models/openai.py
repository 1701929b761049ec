"""The model contract on servers that speak the OpenAI chat completions protocol, each in its dialect."""

import base64
import hashlib
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any, NoReturn

import httpx

from panda.documents.json_text import load_json
from panda.documents.secrets import Secrets, secrets_of_request
from panda.errors import ContextWindowError, HaltError, ModelFileError, Problem, ReplyError
from panda.models.access import ServerAccess, plain_access
from panda.models.chat_reply import ChatReply, CutAnswerError, WrittenToken, parse_chat_reply
from panda.models.cl100k import count_tokens
from panda.models.model_contract import (
    Completion,
    Deadline,
    GenerateParams,
    Message,
    ModelInfo,
    ScoreCase,
    ScoreParams,
    TokenLogprob,
    Usage,
)
from panda.models.models_file import DIALECTS, ModelSpec
from panda.models.refusals import find_refused_parameter
from panda.models.repairs import Repair, repair_object, split_channels
from panda.models.replies import (
    compile_schema,
    is_of,
    response_format,
    split_reasoning,
    with_schema,
)
from panda.models.servers import PASSING, ServerFailure, Servers
from panda.models.windows import count_least_tokens, find_window
from panda.store.files import write_cache_file

_PATH = "/chat/completions"
_MESSAGE_TOKENS = 4
_MORE_TOKENS = 4096
"""By how much the room of a reply grows at least when thinking has used it up."""
_MAX_QUOTED_CHARS = 300
_REFUSING = frozenset({400, 415, 422, 500, 501})
"""Statuses of servers that do not know a response_format."""
_LOGPROBS: Mapping[str, object] = {"logprobs": True, "top_logprobs": 1}
_STREAM_ONLY = re.compile(
    r"\bstream(?:ing)?\b.*(?:only|must|require|enable|true)|only.*\bstream", re.IGNORECASE
)
_LEAST_WINDOW_TOKENS = 64
"""No window is as small: a server that says that it read fewer does not count them."""
_FACTS_SECONDS = 5.0
"""How long one question for the window of a server may take."""


@dataclass(frozen=True)
class _ChatCall:
    messages: Sequence[Message]  # as the recipe has them
    params: GenerateParams
    room_tokens: int  # most model tokens to write, thoughts included; less where the window holds less
    deadline: Deadline  # all that the call may take


class OpenAiModel:
    """A model behind one or more OpenAI-compatible URLs. It writes; it cannot score options."""

    def __init__(
        self, spec: ModelSpec, *, access: ServerAccess | None = None, cache_dir: Path | None = None
    ) -> None:
        access = access or plain_access(spec)
        secrets = (*secrets_of_request(access.headers, spec.extra_body), *access.secrets)
        self._hide_in_reply = Secrets(secrets).hide
        self._spec = spec
        self._cache_dir = cache_dir
        self._servers = Servers(
            spec.name,
            access,
            secrets=Secrets((*secrets, *access.hosts)),
            attempt_seconds=spec.attempt_seconds,
        )
        self.dialects = known_dialects(spec, cache_dir)
        """How replies under a schema are asked of each server, as set or found out; None if neither."""
        self._tells_logprobs = {
            url: _load_note(spec, url, cache_dir).get("logprobs") for url in self.dialects
        }
        """Whether each server tells log-probabilities when asked; None if that is not known."""

    @cached_property
    def info(self) -> ModelInfo:
        """
        Return what is known of the model; where models.yaml has no n_ctx, its servers are asked for their
        windows.
        """
        spec = self._spec
        return ModelInfo(
            spec.name,
            _digest(spec, spec.servers),
            spec.n_ctx or self._ask_window(),
            scores=False,
            extra={"backend": spec.backend, "location": spec.servers, "model": spec.model},
            sees=True,
            thinking_tokens=spec.thinking_tokens,
        )

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
        self._tells_logprobs = dict.fromkeys(self.dialects)

    def check_window(self) -> None:
        """
        Raise ModelFileError if a server tells a smaller window than models.yaml has as n_ctx; one that tells
        none passes.
        """
        if self._spec.n_ctx is None:
            return
        for url in self._servers.urls:
            try:
                tokens = self._find_window(url, is_ollama=False)
            except ServerFailure:  # it has just answered, and knows no such question
                continue
            if tokens is not None and tokens < self.info.n_ctx:
                message = f"n_ctx is {self.info.n_ctx:,}, but the window of the server has {tokens:,} tokens"
                fix = f"set n_ctx: {tokens}, or start the server with a larger window"
                raise ModelFileError(message, f"models.{self._spec.name}.n_ctx", fix=fix)

    def gives_logprobs(self, messages: Sequence[Message], *, timeout_seconds: float) -> bool:
        """Return whether the server tells how probable the tokens of a reply are."""
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
        call = _ChatCall(
            messages, params, room, Deadline(self._spec.timeout_seconds or params.timeout_seconds)
        )
        completion = self._ask(call)
        longest = _count_prompt(with_schema(messages, params.schema or {}, "prompt"))
        if _is_cut_by_thinking(completion, params) and longest + room < self.info.n_ctx:
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
        message = f"the model {self.info.name} gives no log-probabilities of texts"
        raise HaltError(message, where=f"models.{self.info.name}", fix="give the layer a llama_cpp model")

    def _ask_window(self) -> int:
        """
        Return the smallest window of the servers.

        Raises:
            ModelFileError: No server tells its window.
            ModelAwayError: None does, and one does not answer.
        """
        windows: list[int] = []
        failures: dict[str, str] = {}
        for url in self._servers.urls:
            try:
                tokens = self._find_window(url, is_ollama=self._spec.backend == "ollama")
            except ServerFailure as exc:
                failures[url] = exc.words
                continue
            if tokens is not None:
                windows.append(tokens)
        if windows:
            return min(windows)
        if failures:
            raise self._servers.away(failures, "away")
        message = f"the server of {self._spec.name} does not tell its context window"
        fix = "add n_ctx: its window in model tokens, such as 8192"
        raise ModelFileError(message, f"models.{self._spec.name}.n_ctx", fix=fix)

    def _find_window(self, url: str, *, is_ollama: bool) -> int | None:
        fetch = partial(self._servers.fetch, url, within_seconds=_FACTS_SECONDS)
        return find_window(fetch, self._spec.model or "", is_ollama=is_ollama)

    def _ask(self, call: _ChatCall) -> Completion:
        return self._servers.ask(lambda url: self._write(url, call), call.deadline)

    def _write(self, url: str, call: _ChatCall) -> Completion:
        """
        Return the completion of a server, under a schema in its dialect or the first that gives a reply of
        it.
        """
        schema = call.params.schema
        known_dialect = None if schema is None else self.dialects[url]
        dialects: Sequence[str | None] = [known_dialect]
        if schema is not None and self._spec.structured is None:
            dialects = sorted(DIALECTS, key=lambda dialect: dialect != known_dialect)
        strays: list[Completion] = []
        refusals: list[httpx.Response] = []
        for dialect in dialects:
            written = self._write_in(url, call, dialect, is_known=dialect == known_dialect)
            if isinstance(written, httpx.Response):
                if written.status_code not in _REFUSING or self._find_setting(written) is not None:
                    raise self._refused(url, written)
                refusals.append(written)
            elif dialect == known_dialect or written.finish_reason == "length" or not written.text:
                return written  # one that is cut tells nothing of the dialect
            elif is_of({**(schema or {}), "required": []}, written.text):  # for the caller to judge
                self.dialects[url] = dialect
                self._remember(url)
                return written
            else:
                strays.append(written)
        if strays:
            return strays[0]
        raise self._refused(url, refusals[0])

    def _remember(self, url: str) -> None:
        if self._cache_dir is not None:
            note = {"structured": self.dialects[url], "logprobs": self._tells_logprobs[url]}
            write_cache_file(_note(self._spec, url, self._cache_dir), json.dumps(note).encode())

    def _write_in(
        self, url: str, call: _ChatCall, dialect: str | None, *, is_known: bool
    ) -> Completion | httpx.Response:
        """Return the completion of a server in one dialect; its answer if that is no completion."""
        messages = with_schema(call.messages, call.params.schema or {}, dialect)
        prompt = _count_prompt(messages)
        self.info.check_room(prompt, call.params.max_tokens + self._spec.thinking_tokens, "about ")
        room = min(call.room_tokens, self.info.n_ctx - prompt)
        own: dict[str, object] = {"temperature": call.params.temperature, "seed": call.params.seed}
        own |= response_format(call.params.schema or {}, dialect)
        body = {**self._body(messages, own), self._spec.max_tokens_key: room}
        answer = self._post(url, body, call, is_known=is_known)
        if answer.status_code != 200:
            return answer
        reply = self._parse(url, answer, room)
        self._check_was_read(url, reply.usage, messages, room)
        if reply.content and self._wants_logprobs(url, call.params):
            self._note_logprobs(url, tells=bool(reply.tokens))
        is_open = self._spec.thinking_tokens > 0
        return _read_completion(reply, call.params, hide=self._hide_in_reply, is_open=is_open)

    def _post(self, url: str, body: Mapping[str, Any], call: _ChatCall, *, is_known: bool) -> httpx.Response:
        """
        Return the answer to a request, which asks for log-probabilities where the reply holds a choice and
        the server may tell them; one that refuses them is asked without.
        """
        if self._wants_logprobs(url, call.params):
            asking = {**body, **_LOGPROBS}
            is_certain = self._tells_logprobs[url] is True
            passing = PASSING if is_known and is_certain else PASSING - {500}  # it may mean what is asked
            answer = self._servers.post(url, _PATH, asking, call.deadline, passing)
            is_refusal = answer.status_code in {*_REFUSING, 403}
            if answer.status_code == 200 or not is_refusal or self._find_setting(answer) is not None:
                return answer
            if is_certain and "logprob" not in self._servers.words_of(answer):
                return answer
            without = self._post_twice(url, body, call, is_known=is_known)
            if without.status_code == 200:
                self._note_logprobs(url, tells=False)
            return without
        return self._post_twice(url, body, call, is_known=is_known)

    def _post_twice(
        self, url: str, body: Mapping[str, Any], call: _ChatCall, *, is_known: bool
    ) -> httpx.Response:
        """Return the answer to a request, after a second one where the first has failed with 500."""
        passing = PASSING if is_known else PASSING - {500}  # it may mean the dialect
        answer = self._servers.post(url, _PATH, body, call.deadline, passing)
        if answer.status_code == 500:
            answer = self._servers.post(url, _PATH, body, call.deadline, passing)
        return answer

    def _wants_logprobs(self, url: str, params: GenerateParams) -> bool:
        is_possible = self._tells_logprobs[url] is not False and "logprobs" not in self._spec.extra_body
        return is_possible and _holds_choice(params.schema or {})

    def _note_logprobs(self, url: str, *, tells: bool) -> None:
        if self._tells_logprobs[url] is not tells:
            self._tells_logprobs[url] = tells
            self._remember(url)

    def _check_was_read(self, url: str, usage: Usage, messages: Sequence[Message], room_tokens: int) -> None:
        """Raises ContextWindowError where the server counts far fewer tokens than the prompt has."""
        read = usage.prompt or 0
        if usage.reused is not None and usage.reused > read:  # some count only what they computed
            read += usage.reused
        if read < _LEAST_WINDOW_TOKENS or read >= count_least_tokens(messages):
            return
        sent = _count_prompt(messages)
        raise ContextWindowError(
            f"the server of {self.info.name} read {read:,} of about {sent:,} tokens of the prompt and "
            f"dropped the rest: its context window is smaller than n_ctx ({self.info.n_ctx:,})",
            where=f"models.{self.info.name}.n_ctx",
            fix=f"start the server with a window of at least {sent + room_tokens:,} tokens (Ollama: "
            "OLLAMA_CONTEXT_LENGTH, llama-server: -c), or set n_ctx to the window that it has",
            expected=f"a prompt of about {sent:,} model tokens",
            received=f"{read:,} model tokens",
            details={"server": url},
        )

    def _body(self, messages: Sequence[Message], own: Mapping[str, object]) -> dict[str, Any]:
        message_bodies = [{"role": message.role, "content": _content(message)} for message in messages]
        body = {"model": self._spec.model, "messages": message_bodies, **own, **self._spec.extra_body}
        return {key: value for key, value in body.items() if value is not None}

    def _parse(self, url: str, answer: httpx.Response, room_tokens: int) -> ChatReply:
        hide = self._servers.secrets.hide
        try:
            reply = parse_chat_reply(answer.content, room_tokens=room_tokens)
        except CutAnswerError as exc:
            raise ServerFailure(str(exc), "failing") from exc
        except ValueError as exc:
            words = self._servers.words_of(answer)
            message = (
                f"the answer of the server of {self.info.name} is not a chat completion: {exc} ({words})"
            )
            raise _no_reply(url, message, words) from exc
        if reply.refusal or reply.finish_reason not in ("stop", "length"):
            reason = hide(str(reply.refusal or reply.finish_reason))[:_MAX_QUOTED_CHARS]
            ended = hide(repr(reply.finish_reason))[:_MAX_QUOTED_CHARS]
            message = f"the server of {self.info.name} ended the reply with {ended}"
            if reply.refusal:
                message = f"{message}: {reason}"
            raise _no_reply(url, message, reason)
        return reply

    def _find_setting(self, answer: httpx.Response) -> tuple[str, str] | None:
        """Return what a server does not take, and the fix; None where its words name no setting."""
        words = self._servers.words_of(answer)
        if "max_completion_tokens" in words:
            return "max_tokens", "set max_tokens_key: max_completion_tokens"
        if "response_format" in words or "logprob" in words:
            return None
        refused = find_refused_parameter(words, ("temperature", "seed"))
        if refused == "temperature":
            return refused, (
                "set the temperature that it takes with extra_body: {temperature: 1}, or leave it out with "
                "extra_body: {temperature: null}"
            )
        if refused is not None:
            return refused, f"leave it out with extra_body: {{{refused}: null}}"
        if _STREAM_ONLY.search(words):
            return "an answer without a stream", "ask for a stream with extra_body: {stream: true}"
        return None

    def _refused(self, url: str, answer: httpx.Response) -> Problem | ServerFailure:
        if answer.status_code == 429 or answer.status_code >= 500:
            return self._servers.failure(answer, is_final=True)
        server_message = self._servers.words_of(answer)
        who = f"the model server {url}" if self._spec.further_servers else "the model server"
        where = f"models.{self.info.name}"
        if answer.status_code in (401, 403):
            fix = "name the environment variable that holds a valid key"
            return ModelFileError(
                f"{who} refuses the key ({server_message})", f"{where}.api_key_env", fix=fix
            )
        if answer.status_code in (404, 405):
            message = f"{who} does not know the URL or the model {self._spec.model!r} ({server_message})"
            fix = "correct location or model in models.yaml"
            if self._spec.backend == "ollama":
                fix = f"ollama pull {self._spec.model}, or {fix}"
            return ModelFileError(message, where, fix=fix)
        setting = self._find_setting(answer)
        if setting is not None:
            return ModelFileError(f"{who} refuses {setting[0]} ({server_message})", where, fix=setting[1])
        return HaltError(
            f"{who} refuses the request ({server_message})",
            where=url + _PATH,
            fix="go by the server's words, and see its log; extra_body sets what a request holds",
            expected="a chat completion",
            received=server_message,
        )

    def _wrote_nothing(self, completion: Completion) -> ReplyError:
        name = self.info.name
        tokens = completion.usage.output
        if not completion.reasoning and not self._spec.thinking_tokens:
            return ReplyError(
                f"the model {name} wrote nothing",
                where=f"models.{name}",
                fix="see the server's log; if the model thinks, set thinking_tokens, else use another model",
                expected="a reply",
                received=f"no text, finish_reason {completion.finish_reason}",
            )
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
    """
    Return the dialect in which each server is asked for replies under a schema, as set or remembered; None if
    neither.
    """
    return {url.rstrip("/"): spec.structured or _remembered(spec, url, cache_dir) for url in spec.servers}


def _remembered(spec: ModelSpec, url: str, cache_dir: Path | None) -> str | None:
    dialect = _load_note(spec, url, cache_dir).get("structured")
    return dialect if dialect in DIALECTS else None


def _load_note(spec: ModelSpec, url: str, cache_dir: Path | None) -> Mapping[str, Any]:
    """Return what the cache keeps of a server; empty where it keeps nothing."""
    if cache_dir is None:
        return {}
    try:
        note = load_json(_note(spec, url, cache_dir).read_bytes())
    except (OSError, ValueError):
        return {}
    return note if isinstance(note, Mapping) else {}


def _note(spec: ModelSpec, url: str, cache_dir: Path) -> Path:
    return cache_dir / "dialects" / f"{_digest(spec, [url])[:32]}.json"


def _digest(spec: ModelSpec, base_urls: Sequence[str]) -> str:
    """Return the sha256 of URLs in any order, model and what else decides the output of servers, hex."""
    further = json.dumps(spec.extra_body, sort_keys=True) if spec.extra_body else ""
    places = " ".join(sorted(f"{url.rstrip('/')}{_PATH}" for url in base_urls))
    return hashlib.sha256(f"{places} {spec.model}{further}".encode()).hexdigest()


def _count_prompt(messages: Sequence[Message]) -> int:
    return sum(count_tokens(message.content) + _MESSAGE_TOKENS for message in messages)


def _holds_choice(schema: Mapping[str, object]) -> bool:
    """Return whether a reply under a schema has a property that is chosen: an enum or a Boolean."""
    properties = schema.get("properties")
    schemas = properties.values() if isinstance(properties, Mapping) else ()
    return any("enum" in part or part.get("type") == "boolean" for part in schemas)


def _read_completion(
    chat_reply: ChatReply, params: GenerateParams, *, hide: Callable[[str], str], is_open: bool
) -> Completion:
    """Return the completion of a reply, without thoughts and what stands around its object."""
    repairs: list[Repair] = [*chat_reply.repairs]
    content = hide(chat_reply.content)
    channels = split_channels(content)
    if channels is not None:
        inner, text = channels
        repairs.append("harmony_channels")
    else:
        inner, text = split_reasoning(content, is_open=is_open)
        if text != content:
            repairs.append("think_tags")
    if params.schema is not None:
        repaired = repair_object(text, params.schema)
        text = repaired.text
        repairs += repaired.repairs
    return Completion(
        text,
        "stop" if chat_reply.finish_reason == "stop" else "length",
        chat_reply.usage,
        0.0,
        reasoning=hide(chat_reply.reasoning) or inner,
        repairs=tuple(dict.fromkeys(repairs)),
        logprobs=_place_tokens(chat_reply.tokens, text),
    )


def _place_tokens(written_tokens: Sequence[WrittenToken], text: str) -> tuple[TokenLogprob, ...]:
    """Return the tokens with their places in a text that they hold as it is; none where they do not."""
    data = text.encode("utf-8", "surrogatepass")
    first = b"".join(token.data for token in written_tokens).rfind(data)
    if first < 0 or not data:
        return ()
    char_at: list[int] = []
    for number, char in enumerate(text):
        char_at += [number] * len(char.encode("utf-8", "surrogatepass"))
    char_at.append(len(text))
    placed: list[TokenLogprob] = []
    at = -first
    for token in written_tokens:
        start = min(max(at, 0), len(data))
        at += len(token.data)
        end = min(max(at, 0), len(data))
        if end > start:
            last = char_at[end - 1] + 1
            placed.append(TokenLogprob(char_at[start], last, token.logprob))
    return tuple(placed)


def _is_cut_by_thinking(completion: Completion, params: GenerateParams) -> bool:
    """Return whether there is no reply, or one that was cut before it had the room that it was given."""
    if not completion.text:
        return True
    is_cut = completion.finish_reason == "length" and bool(completion.reasoning)
    return is_cut and count_tokens(completion.text) < params.max_tokens


def _content(message: Message) -> str | list[dict[str, Any]]:
    if not message.pictures:
        return message.content
    pictures = ((picture.media_type, base64.b64encode(picture.data).decode()) for picture in message.pictures)
    urls = [{"url": f"data:{kind};base64,{data}"} for kind, data in pictures]
    parts: list[dict[str, Any]] = [{"type": "image_url", "image_url": url} for url in urls]
    return [*parts, {"type": "text", "text": message.content}]


def _no_reply(url: str, message: str, received: str) -> HaltError:
    return HaltError(
        message,
        where=url + _PATH,
        fix="check the server's log, and that it speaks the chat completions protocol",
        expected="a chat completion with finish_reason stop or length",
        received=received,
    )
