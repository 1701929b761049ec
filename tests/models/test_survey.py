"""What `panda models check` finds out of each model."""

import json
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.api import Panda
from tests.loopback import Server, reply

GOOD = '{"colour": "blue"}'
DEAD = "http://127.0.0.1:9/v1"


class Checked(Panda):
    """A project whose models are checked, with a cache of its own."""

    def check(self, *entries: str) -> list[dict[str, Any]]:
        """Return what is found of the models of these entries of models.yaml."""
        models = "".join(f"  m{number}: {{{entry}}}\n" for number, entry in enumerate(entries))
        self.write("models.yaml", f"models:\n{models}layers: {{}}\nencoder: null\n")
        ended = self("models", "check", "--json")
        assert ended.code in (0, 3), ended.out
        states: list[dict[str, Any]] = ended.data["models"]
        return states


@pytest.fixture
def panda(tmp_path: Path) -> Checked:
    """A project with a cache of its own."""
    return Checked(tmp_path / "project", XDG_CACHE_HOME=str(tmp_path / "cache"))


@pytest.fixture
def servers() -> Iterator[list[Server]]:
    """Three model servers."""
    with ExitStack() as stack:
        running = [Server() for _ in range(3)]
        for server in running:
            stack.callback(server.close)
        yield running


def entry(*urls: str) -> str:
    """Return the entry of a model on servers."""
    return f"backend: openai, location: [{', '.join(urls)}], model: m, n_ctx: 4096"


def think(body: dict[str, Any]) -> tuple[int, bytes]:
    """Answer as a server that knows json_object alone, thinks, and tells probabilities."""
    if body["max_tokens"] == 1:
        return 200, json.dumps({"choices": [{"logprobs": {"content": [{"token": "a"}]}}]}).encode()
    if body.get("response_format", {}).get("type") == "json_schema":
        return reply("I like blue.")
    return reply(f"<think>Sky.</think>```json\n{GOOD}\n```", usage={"completion_tokens": 50})


def test_what_is_said_of_a_server(servers: list[Server], panda: Checked) -> None:
    """The first dialect that gives the schema, the speed, whether it thinks and tells probabilities."""
    servers[0].answer = think
    (state,) = panda.check(entry(servers[0].url))
    assert (state["error"], state["structured"]) == (None, "json_object")
    assert (state["thinks"], state["logprobs"]) == (True, True)
    assert state["tokens_per_second"] > 0


def test_each_model_has_a_state_of_its_own(servers: list[Server], panda: Checked) -> None:
    """A dead server, and one that gives no JSON in any dialect, are named; a GGUF tells log-probabilities."""
    servers[0].answer = lambda _: reply("I like blue.")
    gguf = "backend: llama_cpp, location: 'builtin:smollm2-135m', n_ctx: 512"
    dead, vague, local = panda.check(entry(DEAD), entry(servers[0].url), gguf)
    assert dead["structured"] is None
    assert "does not answer" in dead["error"]
    assert "does not reply as the schema asks, but 'I like blue.'" in vague["error"]
    assert (local["error"], local["logprobs"]) == (None, True)
    assert local["tokens_per_second"] > 0


def test_each_server_of_a_list_is_checked(servers: list[Server], panda: Checked) -> None:
    """Each has its own dialect and speed; one that is dead or refuses is named beside those that work."""
    able, words, refusing = servers
    able.answer = lambda _: reply(GOOD, usage={"completion_tokens": 50})
    words.answer = lambda body: (400, b"no") if "response_format" in body else reply(GOOD)
    refusing.answer = lambda _: (404, b"no such model")
    urls = [able.url, words.url, DEAD, refusing.url]
    (state,) = panda.check(entry(*urls))
    assert [server["location"] for server in state["servers"]] == urls
    assert [server["structured"] for server in state["servers"]] == ["json_schema", "prompt", None, None]
    assert state["error"].startswith(f"2 of 4 servers of m0 cannot be used: {DEAD}: ")
    assert f"; {refusing.url}: the model server does not know the URL or the model" in state["error"]
    (state,) = panda.check(entry(*urls[:2]))
    assert state["error"] is None
