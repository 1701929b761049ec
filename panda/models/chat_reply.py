"""The answer of a chat completions server as values; whatever a server sends, the rest is a ValueError."""

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from panda.documents.json_text import load_json
from panda.models.model_contract import Usage
from panda.models.repairs import Repair

_MAX_COUNT = 2**53
_STOPS = frozenset({"eos", "eos_token", "stop_sequence", "stop_token", "end_turn", "complete", "completed"})
"""What servers other than OpenAI's call the end of a reply."""
_CUTS = frozenset({"max_tokens", "max_length", "model_length", "token_limit"})
"""What they call the end of its room."""
_TEXT_PARTS = frozenset({"text", "output_text"})
_PASSING_WORDS = ("overload", "unavailable", "capacity", "busy", "loading", "try again")
_RATE_WORDS = ("rate limit", "rate_limit", "too many requests", "quota")
_REFUSING_WORDS = (
    *("invalid", "unsupported", "not support", "context", "not found", "unauthorized", "forbidden"),
    *("api key", "api_key", "required", "must ", "not allowed", "permission", "unknown", "bad request"),
)


class _ReplyMessage(msgspec.Struct, frozen=True):
    content: str | list[Any] | None = None
    refusal: Any = None  # a text, or something else that is no reply either
    reasoning_content: Any = None
    reasoning: Any = None


class _Choice(msgspec.Struct, frozen=True):
    message: _ReplyMessage
    finish_reason: str | None = None
    logprobs: Any = None


class _PromptDetails(msgspec.Struct, frozen=True):
    cached_tokens: float | None = None


class _Usage(msgspec.Struct, frozen=True):
    prompt_tokens: float | None = None
    completion_tokens: float | None = None
    prompt_tokens_details: _PromptDetails | None = None
    cached_tokens: float | None = None  # Moonshot
    prompt_cache_hit_tokens: float | None = None  # DeepSeek
    cache_read_input_tokens: float | None = None  # Anthropic


class _ChatCompletion(msgspec.Struct, frozen=True):
    choices: Annotated[list[_Choice], Meta(min_length=1)]
    usage: _Usage | None = None
    timings: Any = None  # of llama-server
    tokens_cached: Any = None  # of older ones


class WrittenToken(msgspec.Struct, frozen=True):
    """A token as a server tells it."""

    data: bytes  # may be a part of a character
    logprob: float


class ChatReply(msgspec.Struct, frozen=True, kw_only=True):
    """The first choice of an answer."""

    content: str  # empty if there is none
    refusal: str  # why the model does not reply; empty if it does
    reasoning: str  # what it wrote beside the content
    finish_reason: str  # "stop", "length", or what else the server calls it
    usage: Usage
    tokens: tuple[WrittenToken, ...]  # of the content; empty where they are not told
    repairs: tuple[Repair, ...]  # how the answer differs from the protocol's


class ReportedError(msgspec.Struct, frozen=True):
    """An error that a server reports with status 200."""

    status: int  # that it should have
    error: Any  # as the server tells it


class CutAnswerError(Exception):
    """An answer ends before its end: the server stopped in the middle of it."""


def parse_chat_reply(data: bytes, *, room_tokens: int | None = None) -> ChatReply:
    """
    Return what a server answered, as one JSON object or as the events of a stream.

    Args:
        data: The body of an answer.
        room_tokens: How many tokens were asked for at most; a reply without a finish_reason that has as many
            was cut.

    Raises:
        CutAnswerError: The body ends in the middle.
        ValueError: It is no JSON, is nested too deeply, or has another type or number than the protocol says;
            the message names the place and quotes nothing.
    """
    repairs: list[Repair] = []
    value = _load_answer(data, repairs)
    try:
        answer = msgspec.convert(value, _ChatCompletion)
    except RecursionError as exc:
        raise ValueError("it is nested too deeply") from exc
    except msgspec.ValidationError as exc:
        raise ValueError(str(exc)) from exc
    choice = answer.choices[0]
    message = choice.message
    content = message.content or ""
    thoughts = [text for text in (message.reasoning_content, message.reasoning) if isinstance(text, str)]
    if not isinstance(content, str):
        content, inner = _join_parts(content)
        thoughts.append(inner)
        repairs.append("content_parts")
    usage = _read_usage(answer)
    return ChatReply(
        content=content,
        refusal=str(message.refusal) if message.refusal else "",
        reasoning=next(filter(None, thoughts), ""),
        finish_reason=_read_finish_reason(choice.finish_reason, usage, room_tokens, repairs),
        usage=usage,
        tokens=_read_tokens(choice.logprobs),
        repairs=tuple(repairs),
    )


def find_reported_error(data: bytes) -> ReportedError | None:
    """Return the error that stands in an answer of status 200 instead of a reply; None if none does."""
    if b'"error"' not in data:
        return None
    try:
        value = _load_answer(data, [])
    except (ValueError, CutAnswerError):
        return None
    error = value.get("error") if isinstance(value, Mapping) else None
    choices = value.get("choices") if isinstance(value, Mapping) else None
    if not error and isinstance(choices, list) and choices and isinstance(choices[0], Mapping):
        error = choices[0].get("error")
    elif choices:
        error = None
    return ReportedError(_status_of(error), error) if error else None


def _status_of(reported: object) -> int:
    """Return the HTTP status that fits an error: its own code, else one by its words, else 500."""
    if isinstance(reported, Mapping):
        for key in ("code", "status", "status_code"):
            code = reported.get(key)
            if isinstance(code, str) and code.isascii() and code.isdigit():
                code = int(code[:9])
            if isinstance(code, int) and 400 <= code <= 599:
                return code
    words = str(reported)[:2_000].casefold()
    for status, signs in ((429, _RATE_WORDS), (503, _PASSING_WORDS), (400, _REFUSING_WORDS)):
        if any(sign in words for sign in signs):
            return status
    return 500


def _load_answer(data: bytes, repairs: list[Repair]) -> Any:
    text = data.lstrip()
    try:
        if text.startswith((b"data:", b"event:", b"id:", b"retry:", b":")):
            repairs.append("event_stream")
            return _join_events(text)
        return load_json(data)
    except RecursionError as exc:
        raise ValueError("it is nested too deeply") from exc
    except json.JSONDecodeError as exc:
        is_cut = exc.pos >= len(exc.doc.rstrip()) or exc.msg.startswith("Unterminated string")
        if is_cut and text.startswith(b"{"):
            raise CutAnswerError(f"its answer stops after {len(data):,} bytes") from exc
        raise ValueError(f"it is no JSON ({len(data):,} bytes)") from exc
    except ValueError as exc:
        raise ValueError(f"it is no JSON ({len(data):,} bytes)") from exc


def _join_events(data: bytes) -> dict[str, Any]:
    """Return the answer that the events of a stream come to."""
    texts: dict[str, list[str]] = {"content": [], "refusal": [], "reasoning_content": [], "reasoning": []}
    tokens: list[Any] = []
    whole: dict[str, Any] = {}
    finish_reason: str | None = None
    is_done = False
    for line in data.decode("utf-8", "replace").split("\n"):
        name, _, payload = line.partition(":")
        if name != "data":
            continue
        if payload.strip() == "[DONE]":
            is_done = True
            break
        event = load_json(payload)
        if not isinstance(event, Mapping):
            raise ValueError("an event is no object")
        for key in ("usage", "timings", "error"):
            if event.get(key):
                whole[key] = event[key]
        choice = next(iter(event.get("choices") or ()), None)
        if not isinstance(choice, Mapping):
            continue
        delta = choice.get("delta") or choice.get("message") or {}
        for key, pieces in texts.items():
            piece = delta.get(key) if isinstance(delta, Mapping) else None
            if isinstance(piece, str):
                pieces.append(piece)
        finish_reason = choice.get("finish_reason") or finish_reason
        logprobs = choice.get("logprobs")
        if isinstance(logprobs, Mapping) and isinstance(logprobs.get("content"), list):
            tokens += logprobs["content"]
    if "error" not in whole and not is_done and finish_reason is None:
        raise CutAnswerError(f"its stream stops after {len(data):,} bytes")
    message = {key: "".join(pieces) for key, pieces in texts.items()}
    choice = {"message": message, "finish_reason": finish_reason, "logprobs": {"content": tokens}}
    return {**whole, "choices": [choice] if "error" not in whole else []}


def _join_parts(pieces: Sequence[Any]) -> tuple[str, str]:
    """Return text and reasoning of a content that is a list of parts."""
    texts: list[str] = []
    thoughts: list[str] = []
    for part in pieces:
        if isinstance(part, str):
            texts.append(part)
            continue
        kind = part.get("type", "text") if isinstance(part, Mapping) else None
        if kind in _TEXT_PARTS and isinstance(part.get("text"), str):
            texts.append(part["text"])
        elif kind in ("thinking", "reasoning"):
            inner = part.get("thinking") or part.get("text") or ""
            thoughts.append(inner if isinstance(inner, str) else _join_parts(inner)[0])
        else:
            raise ValueError("a part of the content is no text")
    return "".join(texts), "".join(thoughts)


def _read_finish_reason(
    reason: str | None, usage: Usage, room_tokens: int | None, repairs: list[Repair]
) -> str:
    if reason in ("stop", "length"):
        return reason
    if reason and reason.casefold() in _STOPS | {"stop"}:
        repairs.append("finish_reason")
        return "stop"
    if reason and reason.casefold() in _CUTS | {"length"}:
        repairs.append("finish_reason")
        return "length"
    if reason:
        return reason
    repairs.append("finish_reason")
    is_full = room_tokens is not None and usage.output is not None and usage.output >= room_tokens
    return "length" if is_full else "stop"


def _read_usage(answer: _ChatCompletion) -> Usage:
    usage = answer.usage or _Usage()
    details = usage.prompt_tokens_details or _PromptDetails()
    counts = {
        "prompt_tokens_details.cached_tokens": details.cached_tokens,
        "cached_tokens": usage.cached_tokens,
        "prompt_cache_hit_tokens": usage.prompt_cache_hit_tokens,
        "cache_read_input_tokens": usage.cache_read_input_tokens,
    }
    reused = [_read_count(value, name) for name, value in counts.items() if value is not None]
    prompt = _read_count(usage.prompt_tokens, "prompt_tokens")
    reused += _read_llama_counts(answer, prompt)
    return Usage(
        prompt,
        next(iter(reused), None),
        _read_count(usage.completion_tokens, "completion_tokens"),
    )


def _read_llama_counts(answer: _ChatCompletion, prompt: int | None) -> Iterator[int]:
    """
    Yield how many tokens of a prompt llama-server had in its cache, where it says so beside the usage. Some
    versions count the reply among `tokens_cached`: such a number is left out.
    """
    most = _MAX_COUNT if prompt is None else prompt
    timings = answer.timings if isinstance(answer.timings, Mapping) else {}
    for value in (timings.get("cache_n"), answer.tokens_cached):
        if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= most:
            yield value


def _read_count(value: float | None, name: str) -> int | None:
    if value is None:
        return None
    if not 0 <= value <= _MAX_COUNT or not float(value).is_integer():
        raise ValueError(f"usage.{name} is no number of tokens")
    return int(value)


def _read_tokens(logprobs: Any) -> tuple[WrittenToken, ...]:
    """Return the tokens of a reply with their log-probabilities; empty where one of them is not told."""
    entries = logprobs.get("content") if isinstance(logprobs, Mapping) else None
    if not isinstance(entries, list):
        return ()
    tokens: list[WrittenToken] = []
    for entry in entries:
        text = entry.get("token") if isinstance(entry, Mapping) else None
        logprob = entry.get("logprob") if isinstance(entry, Mapping) else None
        if not isinstance(text, str) or not isinstance(logprob, int | float) or not math.isfinite(logprob):
            return ()
        tokens.append(WrittenToken(_bytes_of(entry.get("bytes"), text), min(0.0, float(logprob))))
    return tuple(tokens)


def _bytes_of(byte_values: object, text: str) -> bytes:
    if isinstance(byte_values, list) and all(
        type(value) is int and 0 <= value < 256 for value in byte_values
    ):
        return bytes(byte_values)
    return text.encode("utf-8", "surrogatepass")
