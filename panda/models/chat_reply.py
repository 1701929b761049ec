"""The answer of a chat completions server as values; whatever a server sends, the rest is a ValueError."""

from typing import Annotated, Any

import msgspec
from msgspec import Meta

from panda.documents.json_text import load_json
from panda.models.contract import Usage

_MAX_COUNT = 2**53


class _Message(msgspec.Struct, frozen=True):
    content: str | None = None
    refusal: Any = None  # a text, or something else that is no reply either
    reasoning_content: Any = None
    reasoning: Any = None


class _Choice(msgspec.Struct, frozen=True):
    message: _Message
    finish_reason: str | None


class _PromptDetails(msgspec.Struct, frozen=True):
    cached_tokens: float | None = None


class _Usage(msgspec.Struct, frozen=True):
    prompt_tokens: float | None = None
    completion_tokens: float | None = None
    prompt_tokens_details: _PromptDetails | None = None


class _Answer(msgspec.Struct, frozen=True):
    choices: Annotated[list[_Choice], Meta(min_length=1)]
    usage: _Usage | None = None


class ChatReply(msgspec.Struct, frozen=True, kw_only=True):
    """The first choice of an answer."""

    content: str  # empty if there is none
    refusal: str  # why the model does not reply; empty if it does
    reasoning: str  # what it wrote beside the content
    finish_reason: str | None
    usage: Usage


def parse_chat_reply(data: bytes) -> ChatReply:
    """
    Return what a server answered.

    Raises:
        ValueError: It is no JSON, is nested too deeply, or has another type or number than the protocol says;
            the message names the place and quotes nothing.
    """
    try:
        answer = msgspec.convert(load_json(data), _Answer)
    except RecursionError as exc:
        raise ValueError("it is nested too deeply") from exc
    except msgspec.ValidationError as exc:
        raise ValueError(str(exc)) from exc
    except ValueError as exc:
        raise ValueError(f"it is no JSON ({len(data):,} bytes)") from exc
    choice = answer.choices[0]
    message = choice.message
    reasoning = (text for text in (message.reasoning_content, message.reasoning) if isinstance(text, str))
    usage = answer.usage or _Usage()
    details = usage.prompt_tokens_details or _PromptDetails()
    return ChatReply(
        content=message.content or "",
        refusal=str(message.refusal) if message.refusal else "",
        reasoning=next(filter(None, reasoning), ""),
        finish_reason=choice.finish_reason,
        usage=Usage(
            _read_count(usage.prompt_tokens, "prompt_tokens"),
            _read_count(details.cached_tokens, "prompt_tokens_details.cached_tokens"),
            _read_count(usage.completion_tokens, "completion_tokens"),
        ),
    )


def _read_count(value: float | None, name: str) -> int | None:
    if value is None:
        return None
    if not 0 <= value <= _MAX_COUNT or not float(value).is_integer():
        raise ValueError(f"usage.{name} is no number of tokens")
    return int(value)
