"""What `panda models check` finds out of each model."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from panda.models.layers import Layers
from panda.models.models_file import parse_models_file
from panda.models.survey import ModelState, check_models
from tests.loopback import Server, reply

GOOD = '{"colour": "blue"}'


@pytest.fixture
def check(tmp_path: Path) -> Iterator[Callable[..., list[ModelState]]]:
    """Checks the models of a models.yaml; no two of them are ever there together."""
    opened: list[Layers] = []

    def open_layers(file: Any) -> Layers:
        assert all(not layers._models for layers in opened)
        opened.append(Layers(file, cache_dir=tmp_path, environ={}))
        return opened[-1]

    def run(*entries: str) -> list[ModelState]:
        text = "models:\n" + "".join(f"  m{n}: {{{entry}}}\n" for n, entry in enumerate(entries))
        file = parse_models_file(text + "layers: {}\nencoder: null\n", path=tmp_path / "models.yaml")
        return list(check_models(file, lambda: open_layers(file)))

    yield run
    assert all(not layers._models for layers in opened)


def entry(url: str, more: str = "") -> str:
    return f"backend: openai, location: '{url}', model: m, n_ctx: 4096, writes: true{more}"


def test_what_is_said_of_a_server(
    server: Server, check: Callable[..., list[ModelState]], tmp_path: Path
) -> None:
    """The first dialect that gives the schema, the speed, whether it thinks and tells probabilities."""

    def answer(body: dict[str, Any]) -> tuple[int, bytes]:
        if body.get("logprobs"):
            return 200, json.dumps({"choices": [{"logprobs": {"content": [{"token": "a"}]}}]}).encode()
        if body.get("response_format", {}).get("type") == "json_schema":
            return reply("I like blue.")
        return reply(f"<think>Sky.</think>```json\n{GOOD}\n```", usage={"completion_tokens": 50})

    server.answer = answer
    (state,) = check(entry(server.url))
    assert state.error is None
    assert state.trial is not None
    assert (state.trial.structured, state.trial.thinks, state.trial.logprobs) == ("json_object", True, True)
    assert state.trial.tokens_per_second is not None
    assert [json.loads(note.read_text())["structured"] for note in (tmp_path / "dialects").iterdir()] == [
        "json_object"
    ]


def test_a_dead_server_is_named_and_the_next_is_checked(
    server: Server, check: Callable[..., list[ModelState]]
) -> None:
    """Each model has a state of its own; one that gives no JSON in any dialect cannot be used."""
    server.answer = lambda _: reply("I like blue.")
    dead, vague = check(entry("http://127.0.0.1:9/v1"), entry(server.url))
    assert dead.trial is None
    assert "does not answer" in str(dead.error)
    assert "does not reply as the schema asks, but 'I like blue.'" in str(vague.error)


def test_each_server_of_a_list_is_checked(
    five_servers: list[Server], check: Callable[..., list[ModelState]]
) -> None:
    """Each has its own dialect and speed; one that is dead or refuses is named beside those that work."""
    able, words, refusing = five_servers[:3]
    able.answer = lambda _: reply(GOOD, usage={"completion_tokens": 50})
    words.answer = lambda body: (400, b"no") if "response_format" in body else reply(GOOD)
    refusing.answer = lambda _: (404, b"no such model")
    urls = [able.url, words.url, "http://127.0.0.1:9/v1", refusing.url]
    (state,) = check(entry(urls[0]).replace(f"'{urls[0]}'", f"[{', '.join(urls)}]"))
    assert [server.url for server in state.servers] == urls
    tried = [server.trial.structured if server.trial else None for server in state.servers]
    assert tried == ["json_schema", "prompt", None, None]
    assert state.error is not None
    assert state.error.message.startswith("2 of 4 servers of m0 cannot be used: http://127.0.0.1:9/v1: ")
    assert f"; {refusing.url}: the model server does not know the URL or the model" in state.error.message
    (state,) = check(entry(urls[0]).replace(f"'{urls[0]}'", f"[{', '.join(urls[:2])}]"))
    assert state.error is None


def test_a_model_that_only_scores_need_not_reply(check: Callable[..., list[ModelState]]) -> None:
    """A model that may not write, such as a base model without a chat template, is asked for scores alone."""
    (state,) = check("backend: llama_cpp, location: 'builtin:smollm2-135m', n_ctx: 512")
    assert state.error is None
    assert state.trial is not None
    assert (state.trial.logprobs, state.trial.tokens_per_second) == (True, None)
