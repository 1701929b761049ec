"""A server that speaks the chat completions protocol, whatever its dialect."""

import json
import socket
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from panda.errors import HaltError, ModelAwayError, ModelFileError, ModelTimeoutError, Problem, ReplyError
from panda.models.model_contract import GenerateParams, Message, Usage
from panda.models.models_file import DIALECTS
from tests.loopback import Answer, reply
from tests.models.conftest import Server

CHAT = (Message("system", "Be brief."), Message("user", "Hi"))
SCHEMA = {"type": "object", "properties": {"a": {"type": "string", "x-options": "spans"}}}
CLOSED = {**SCHEMA, "required": ["a"], "additionalProperties": False}
PARAMS = GenerateParams(temperature=0.5, max_tokens=9, seed=3, timeout_seconds=10, schema=SCHEMA)
FREE = GenerateParams(temperature=0, max_tokens=9, seed=3, timeout_seconds=10)
GOOD = '{"a": "x"}'


def in_turn(*answers: Any) -> Answer:
    """Each request takes the next answer; the last one stays."""
    left = list(answers)
    return lambda _: left.pop(0) if len(left) > 1 else left[0]


def dialect_of(body: dict[str, Any]) -> str:
    return str(body.get("response_format", {"type": "prompt"})["type"])


def refusing(*dialects: str, status: int = 400) -> Answer:
    """A server that does not know some dialects."""
    words = json.dumps({"error": {"message": "response_format is not supported"}}).encode()
    return lambda body: (status, words) if dialect_of(body) in dialects else reply(GOOD)


def test_request_carries_everything(server: Server) -> None:
    """Messages, parameters, schema without our own keys, and the key are sent."""
    server.model(api_key="secret").generate(CHAT, PARAMS)
    asked = server.asked[0]
    assert asked["messages"][0] == {"role": "system", "content": "Be brief."}
    assert (asked["model"], asked["temperature"], asked["max_tokens"], asked["seed"]) == ("m", 0.5, 9, 3)
    assert asked["response_format"]["json_schema"]["schema"]["properties"] == {"a": {"type": "string"}}
    assert server.headers[0]["Authorization"] == "Bearer secret"


def test_keys_of_the_model_are_sent(server: Server) -> None:
    """extra_body goes over what we send, null takes a key out; headers go along."""
    keys: dict[str, Any] = {"headers": {"api-key": "k"}, "max_tokens_key": "max_completion_tokens"}
    server.model(extra_body={"top_k": 5, "seed": None, "temperature": 1}, **keys).generate(CHAT, FREE)
    asked = server.asked[0]
    assert (asked["top_k"], asked["temperature"], asked["max_completion_tokens"]) == (5, 1, 9)
    assert not {"seed", "max_tokens"} & set(asked)
    assert server.headers[0]["api-key"] == "k"


@pytest.mark.parametrize(("schema", "strict"), [(SCHEMA, None), (CLOSED, True)])
def test_strict_only_where_the_schema_allows_it(schema: Any, strict: object, server: Server) -> None:
    """`strict` is sent only with a schema whose properties are all required."""
    server.answer = lambda _: reply(GOOD)
    params = GenerateParams(temperature=0, max_tokens=9, seed=3, timeout_seconds=10, schema=schema)
    server.model().generate(CHAT, params)
    assert server.asked[0]["response_format"]["json_schema"].get("strict") is strict


def test_long_limits_are_told_in_words_alone(server: Server) -> None:
    """A maxLength beyond 500 is not sent as a schema: servers crash at it or refuse it."""
    lengths = {"short": {"type": "string", "maxLength": 500}, "long": {"type": "string", "maxLength": 501}}
    schema = {"type": "object", "required": ["long"], "additionalProperties": False, "properties": lengths}
    server.answer = lambda _: reply('{"long": "x"}')
    params = GenerateParams(temperature=0, max_tokens=9, seed=3, timeout_seconds=10, schema=schema)
    server.model().generate(CHAT, params)
    sent = server.asked[0]["response_format"]["json_schema"]["schema"]["properties"]
    assert sent == {"short": {"type": "string", "maxLength": 500}, "long": {"type": "string"}}


def test_unknown_usage_is_none(server: Server) -> None:
    """Tokens that the server does not tell are None; others are kept."""
    assert server.model().generate(CHAT, FREE).usage == Usage(None, None, None)
    usage = {"prompt_tokens": 7, "completion_tokens": 2, "prompt_tokens_details": {"cached_tokens": 4}}
    server.answer = lambda _: reply("x", usage=usage)
    assert server.model().generate(CHAT, FREE).usage == Usage(7, 4, 2)


@pytest.mark.parametrize("status", [400, 422, 500])
def test_a_refused_dialect_is_found_out_and_remembered(status: int, server: Server, tmp_path: Path) -> None:
    """The next dialect is tried, here and in later processes that one first; the schema is told in words."""
    server.answer = refusing("json_schema", status=status)
    model = server.model(cache_dir=tmp_path)
    assert model.generate(CHAT, PARAMS).text == GOOD
    assert model.dialects == {server.url: "json_object"}
    server.asked.clear()
    for again in (model, server.model(cache_dir=tmp_path)):
        assert again.generate(CHAT, PARAMS).text == GOOD
    assert [dialect_of(body) for body in server.asked] == ["json_object"] * 2
    assert (
        '{"type": "object", "properties": {"a": {"type": "string"}}}'
        in server.asked[0]["messages"][-1]["content"]
    )
    assert server.asked[0]["response_format"]["schema"]["type"] == "object"


def test_a_server_that_knows_no_response_format(server: Server) -> None:
    """Such a server is asked in words alone; later a remembered dialect that is refused is found out anew."""
    server.answer = refusing("json_schema", "json_object")
    model = server.model()
    assert model.generate(CHAT, PARAMS).text == GOOD
    assert model.dialects == {server.url: "prompt"}
    server.answer = refusing("prompt", "json_object", status=422)
    assert model.generate(CHAT, PARAMS).text == GOOD
    assert model.dialects == {server.url: "json_schema"}


def test_a_server_that_ignores_response_format(server: Server) -> None:
    """A dialect under which no JSON of the schema comes is no dialect."""
    server.answer = lambda body: reply(GOOD if dialect_of(body) == "prompt" else "Sure, a is x!")
    model = server.model()
    assert model.generate(CHAT, PARAMS).text == GOOD
    assert model.dialects == {server.url: "prompt"}


def test_one_500_is_no_refusal(server: Server) -> None:
    """A server that fails once keeps its dialect."""
    server.answer = in_turn((500, b"oops"), reply(GOOD))
    model = server.model()
    assert model.generate(CHAT, PARAMS).text == GOOD
    assert model.dialects == {server.url: "json_schema"}


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_dialect_that_is_set_is_the_only_one(dialect: str, server: Server) -> None:
    """`structured` is not second-guessed: what it refuses is an error in the server's own words."""
    server.answer = refusing(*DIALECTS)
    with pytest.raises(HaltError, match="HTTP 400: response_format is not supported"):
        server.model(structured=dialect).generate(CHAT, PARAMS)
    assert [dialect_of(body) for body in server.asked] == [dialect]


@pytest.mark.parametrize(
    "text",
    [
        f"```json\n{GOOD}\n```",
        f"<think>\nIs {{a}} x? I think so.\n</think>\n\n```\n{GOOD}\n```",
        f"<think>\n\n</think>\n\n{GOOD}",
        f"Here it is:\n{GOOD}\nAnything else?",
    ],
)
def test_what_stands_around_an_object_is_taken_off(text: str, server: Server) -> None:
    """Thoughts, code fences and words around the object of a schema are no part of the reply."""
    server.answer = lambda _: reply(text)
    assert server.model().generate(CHAT, PARAMS).text == GOOD


def test_fences_of_an_answer_stay(server: Server) -> None:
    """Without a schema only thoughts are taken off; a tag that an answer speaks of is no thought."""
    server.answer = in_turn(
        reply("<think>Hm.</think>\n```py\nx = {}\n```"), reply("The tag </think> ends it.")
    )
    model = server.model(thinking_tokens=0)
    assert model.generate(CHAT, FREE).text == "```py\nx = {}\n```"
    assert model.generate(CHAT, FREE).text == "The tag </think> ends it."


@pytest.mark.parametrize(
    "answer",
    [
        reply(GOOD, reasoning_content="a is x"),
        reply(GOOD, reasoning="a is x"),
        reply(f"<think>a is x</think>{GOOD}"),
        reply(f"a is x\n</think>\n{GOOD}"),
    ],
)
def test_thinking_has_room_of_its_own(answer: Any, server: Server) -> None:
    """Room for thoughts is asked for beside that of the reply; they are kept apart from it."""
    server.answer = lambda _: answer
    completion = server.model(thinking_tokens=500).generate(CHAT, PARAMS)
    assert (completion.text, completion.reasoning) == (GOOD, "a is x")
    assert server.asked[0]["max_tokens"] == 509


@pytest.mark.parametrize(
    "first",
    [
        reply(None, finish_reason="length", reasoning_content="Hm", usage={"completion_tokens": 109}),
        reply("", finish_reason="length", reasoning_content="Hm", usage={"completion_tokens": 109}),
        reply("<think>Hm", finish_reason="length", usage={"completion_tokens": 109}),
        reply('<think>Hm</think>{"a', finish_reason="length", usage={"completion_tokens": 109}),
        reply(None, reasoning_content="Hm", usage={"completion_tokens": 109}),
    ],
)
def test_more_room_when_thinking_took_it(first: Any, server: Server) -> None:
    """A reply that thinking left no room for is asked for once more, with more room; both are counted."""
    second = reply(GOOD, reasoning_content="a is x", usage={"completion_tokens": 50})
    server.answer = in_turn(first, second)
    completion = server.model(thinking_tokens=100, n_ctx=9000).generate(CHAT, PARAMS)
    assert (completion.text, completion.reasoning) == (GOOD, "Hm\n\na is x")
    assert completion.usage.output == 159
    assert [body["max_tokens"] for body in server.asked] == [109, 4205]


def test_a_long_reply_is_no_thinking(server: Server) -> None:
    """A reply that used up its own room is cut, whether the model thought or not."""
    server.answer = lambda _: reply("so " * 20, finish_reason="length", reasoning_content="Hm")
    assert server.model(thinking_tokens=100).generate(CHAT, FREE).finish_reason == "length"
    assert len(server.asked) == 1


def test_thoughts_without_a_reply_are_an_error(server: Server) -> None:
    """A model that only thinks halts with what to set, and its thoughts are told nowhere."""
    server.answer = lambda _: reply(None, finish_reason="length", reasoning_content="secret thoughts")
    with pytest.raises(ReplyError, match="wrote no reply, but 32 characters of reasoning") as caught:
        server.model().generate(CHAT, FREE)
    assert caught.value.where == "models.served.thinking_tokens"
    assert len(server.asked) == 2
    assert "secret" not in str(vars(caught.value))


def test_thinking_counts_against_the_window(server: Server) -> None:
    """Prompt, thoughts and reply must fit the window together."""
    with pytest.raises(HaltError, match=r"context window of 1,024"):
        server.model(thinking_tokens=1015).generate(CHAT, FREE)
    assert server.asked == []


@pytest.mark.parametrize(
    ("status", "data", "error"),
    [
        (500, b'{"error": {"message": "broken"}}', ModelAwayError),
        (429, b'{"error": "slow down"}', ModelAwayError),
        (520, b"<p>odd</p>", ModelAwayError),
        (401, b"who are you", ModelFileError),
        (404, b"no such model", ModelFileError),
        (400, b'{"detail": "too long"}', HaltError),
        (400, b"use max_completion_tokens", ModelFileError),
        (200, b"<html>", HaltError),
        (200, b"{}", HaltError),
        (200, b"[]", HaltError),
        (200, reply("x", finish_reason="content_filter")[1], HaltError),
        (200, reply(None, refusal="I can't do that")[1], HaltError),
        (200, reply(None)[1], ReplyError),
    ],
)
@pytest.mark.usefixtures("pauses")
def test_refusals_are_told_apart(status: int, data: bytes, error: type[Problem], server: Server) -> None:
    """A server that is down, one that refuses, and one that answers nonsense are different errors."""
    server.answer = lambda _: (status, data)
    with pytest.raises(error) as caught:
        server.model(api_key="who").generate(CHAT, FREE)
    assert type(caught.value) is error
    assert caught.value.fix
    words = {500: "HTTP 500: broken", 429: "slow down", 401: "[secret] are you", 400: "HTTP 400"}
    assert words.get(status, "") in caught.value.message


def test_passing_failures_are_asked_again(server: Server, pauses: list[float]) -> None:
    """429, 5xx and a lost connection are asked again, after pauses that grow."""
    server.answer = in_turn((429, b"slow"), (503, b"loading"), None, (520, b"odd"), reply("Hello"))
    assert server.model().generate(CHAT, FREE).text == "Hello"
    assert len(server.asked) == 5
    assert 0.5 <= pauses[0] <= 1 <= pauses[1] <= 1.5 <= pauses[2] <= 2.5 < pauses[3] <= 4.5


def test_a_pause_is_as_long_as_the_server_says(server: Server) -> None:
    """The server is left alone for as long as Retry-After says, by this call and by those that follow."""
    server.answer = in_turn((429, b"slow", {"Retry-After": "2"}), reply("Hello"))
    model = server.model()
    started = time.monotonic()
    with pytest.raises(ModelAwayError, match="HTTP 429: slow"):
        model.generate(CHAT, replace(FREE, timeout_seconds=1))
    assert model.generate(CHAT, FREE).text == "Hello"
    assert 2 <= time.monotonic() - started < 4
    assert len(server.asked) == 2


@pytest.mark.parametrize("after", ["3600", "Wed, 21 Oct 2099 07:28:00 GMT"])
def test_a_pause_beyond_the_time_is_not_waited_for(after: str, server: Server, pauses: list[float]) -> None:
    """A server that asks to wait longer than the call may take is away at once, in its own words."""
    server.answer = lambda _: (429, b'{"error": {"message": "quota used up"}}', {"Retry-After": after})
    with pytest.raises(ModelAwayError, match=r"HTTP 429: quota used up \(it asks to wait [\d,]+ seconds\)"):
        server.model().generate(CHAT, FREE)
    assert (len(server.asked), pauses) == (1, [])


def test_connections_that_stay_lost_are_away(server: Server, pauses: list[float]) -> None:
    """A server that hangs up each time is away after five attempts."""
    server.answer = lambda _: None
    with pytest.raises(ModelAwayError, match="disconnected"):
        server.model().generate(CHAT, FREE)
    assert (len(server.asked), len(pauses)) == (5, 4)


def test_time_of_the_model_counts(server: Server) -> None:
    """timeout_seconds of the model stands over the recipe's."""

    def slow(_: object) -> tuple[int, bytes]:
        time.sleep(0.3)
        return reply("late")

    server.answer = slow
    with pytest.raises(ModelTimeoutError, match=r"0\.1 seconds"):
        server.model(timeout_seconds=0.1).generate(CHAT, FREE)


def test_nobody_listening_is_away(server: Server, pauses: list[float]) -> None:
    """A connection refused is an error that may pass, with the URL; nobody is waited for."""
    with pytest.raises(ModelAwayError) as caught:
        server.model(location="http://127.0.0.1:9/v1").generate(CHAT, FREE)
    assert (caught.value.where, pauses) == ("http://127.0.0.1:9/v1", [])


def test_a_silent_server_is_known_soon(server: Server) -> None:
    """A server that takes connections and never answers is away within the time given."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        model = server.model(location=f"http://127.0.0.1:{silent.getsockname()[1]}/v1")
        started = time.monotonic()
        with pytest.raises(ModelAwayError, match=r"no reply within 0\.2 seconds"):
            model.check_alive(within_seconds=0.2)
    assert time.monotonic() - started < 2


@pytest.mark.parametrize(
    ("answer", "gives"),
    [
        (lambda: (400, b"no logprobs"), False),
        (lambda: reply("yes"), False),
        (lambda: (200, b'{"choices": [{"logprobs": {"content": [{"token": "y", "logprob": -0.1}]}}]}'), True),
    ],
)
def test_log_probabilities_are_asked_for(answer: Callable[[], Any], gives: bool, server: Server) -> None:
    """
    A reply of one token shows whether a server tells the probabilities of its tokens in a reply of one token.
    """
    server.answer = lambda _: answer()
    assert server.model().gives_logprobs(CHAT, timeout_seconds=5) is gives
    assert (server.asked[0]["max_tokens"], server.asked[0]["logprobs"]) == (1, True)
