"""A server that speaks the chat completions protocol."""

import json

import pytest

from panda.errors import HaltError, ModelAwayError, ModelFileError, PandaError
from panda.models.contract import GenerateParams, Message, Usage
from panda.models.openai import OpenAiModel
from tests.models.conftest import Server, reply

CHAT = (Message("system", "Be brief."), Message("user", "Hi"))
SCHEMA = {"type": "object", "properties": {"a": {"type": "string", "x-options": "spans"}}}
PARAMS = GenerateParams(temperature=0.5, max_tokens=9, seed=3, timeout_seconds=10, schema=SCHEMA)


def served(server: Server) -> OpenAiModel:
    return OpenAiModel("a", url=server.url, model="m", n_ctx=100, writes=True, api_key="secret")


def test_request_carries_everything(server: Server) -> None:
    """Messages, parameters, schema without our own keys, and the key are sent."""
    served(server).generate(CHAT, PARAMS)
    asked = server.asked[0]
    assert asked["messages"][0] == {"role": "system", "content": "Be brief."}
    assert (asked["model"], asked["temperature"], asked["max_tokens"], asked["seed"]) == ("m", 0.5, 9, 3)
    assert asked["response_format"]["json_schema"]["schema"]["properties"] == {"a": {"type": "string"}}
    assert server.headers[0]["Authorization"] == "Bearer secret"


def test_unknown_usage_is_none(server: Server) -> None:
    """What the server does not say is None, what it says is kept."""
    assert served(server).generate(CHAT, PARAMS).usage == Usage(None, None, None)
    known = {"prompt_tokens": 7, "completion_tokens": 2, "prompt_tokens_details": {"cached_tokens": 4}}
    server.answer = lambda _: reply("x", usage=known)
    assert served(server).generate(CHAT, PARAMS).usage == Usage(7, 4, 2)


@pytest.mark.parametrize(
    ("status", "data", "error"),
    [
        (500, b"broken", ModelAwayError),
        (429, b"slow down", ModelAwayError),
        (401, b"who are you", ModelFileError),
        (404, b"no such model", ModelFileError),
        (400, b"too long", HaltError),
        (200, b"<html>", HaltError),
        (200, b"{}", HaltError),
        (200, b"[]", HaltError),
        (200, reply("x", finish_reason="content_filter")[1], HaltError),
        (
            200,
            json.dumps({"choices": [{"message": {"content": None}, "finish_reason": "stop"}]}).encode(),
            HaltError,
        ),
    ],
)
def test_refusals_are_told_apart(status: int, data: bytes, error: type[PandaError], server: Server) -> None:
    """A server that is down, one that refuses, and one that answers nonsense are different errors."""
    server.answer = lambda _: (status, data)
    with pytest.raises(error) as caught:
        served(server).generate(CHAT, PARAMS)
    assert type(caught.value) is error
    assert caught.value.fix


def test_nobody_listening_is_away() -> None:
    """A connection refused is an error that may pass, with the URL."""
    away = OpenAiModel("a", url="http://127.0.0.1:9/v1", model="m", n_ctx=100, writes=True)
    with pytest.raises(ModelAwayError) as caught:
        away.generate(CHAT, PARAMS)
    assert caught.value.where == "http://127.0.0.1:9/v1/chat/completions"
