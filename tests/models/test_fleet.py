"""One model behind several servers: who is asked, what follows a failure, and who is waited for."""

import os
import socket
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import replace
from itertools import cycle
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from panda.errors import ModelAwayError, ModelFileError, ModelTimeoutError
from panda.models.model_contract import GenerateParams, Message
from panda.models.openai import OpenAiModel
from tests.loopback import Answer, reply
from tests.models.conftest import Server

CHAT = (Message("user", "Hi"),)
FREE = GenerateParams(temperature=0, max_tokens=9, seed=3, timeout_seconds=60)
SCHEMA = {"type": "object", "properties": {"a": {"type": "string"}}}
PARAMS = GenerateParams(temperature=0, max_tokens=9, seed=3, timeout_seconds=60, schema=SCHEMA)
GOOD = '{"a": "x"}'
BUSY: Answer = lambda _: (503, b'{"error": {"message": "loading"}}')  # noqa: E731 - an answer like the others


@pytest.fixture
def servers() -> Iterator[tuple[Server, Server]]:
    """Two servers, in the order in which this process takes them."""
    first = Server()
    second = Server()
    yield (first, second) if os.getpid() % 2 == 0 else (second, first)
    first.close()
    second.close()


def in_order(servers: tuple[Server, Server]) -> tuple[Server, Server]:
    """The servers in the order of the list in models.yaml."""
    return servers if os.getpid() % 2 == 0 else (servers[1], servers[0])


def fleet(servers: tuple[Server, Server], **keys: Any) -> OpenAiModel:
    """The model on both servers."""
    first, second = in_order(servers)
    return first.model(further_servers=(second.url,), **keys)


@pytest.fixture
def later(monkeypatch: pytest.MonkeyPatch) -> Callable[[float], None]:
    """Lets seconds pass."""
    passed = [0.0]
    now = time.monotonic
    monkeypatch.setattr(time, "monotonic", lambda: now() + sum(passed))
    return passed.append


def counts(servers: tuple[Server, Server]) -> list[int]:
    return [len(server.asked) for server in servers]


def ask(model: OpenAiModel, times: int = 1) -> None:
    for _ in range(times):
        assert model.generate(CHAT, FREE).text == "Hello there"


class Gate:
    """An answer that waits until it is let through; counts who waits."""

    def __init__(self) -> None:
        self.waiting = threading.Semaphore(0)
        self.opened = threading.Event()

    def __call__(self, _: dict[str, Any]) -> tuple[int, bytes]:
        self.waiting.release()
        assert self.opened.wait(20)
        return reply("Hello there")


def test_servers_take_turns(servers: tuple[Server, Server]) -> None:
    """Calls one after the other go to the servers in turn, beginning where the process id says."""
    model = fleet(servers)
    ask(model)
    assert counts(servers) == [1, 0]
    ask(model, 5)
    assert counts(servers) == [3, 3]


def test_connections_are_kept(servers: tuple[Server, Server]) -> None:
    """Each server has one connection, however many calls follow each other."""
    ask(fleet(servers), 8)
    assert [len(set(server.connections)) for server in servers] == [1, 1]


@pytest.mark.parametrize("status", [429, 500, 502, 503, 504, 520])
def test_another_server_follows_at_once(
    status: int, servers: tuple[Server, Server], pauses: list[float]
) -> None:
    """A request that a server fails for a reason that may pass goes to the other one, without a pause."""
    servers[0].answer = lambda _: (status, b"no")
    ask(fleet(servers))
    assert (counts(servers), pauses) == ([1, 1], [])


@pytest.mark.parametrize("answer", [None, "reset"])
def test_a_lost_connection_goes_on_elsewhere(answer: Any, servers: tuple[Server, Server]) -> None:
    """A server that hangs up or resets is followed by the other one."""
    servers[0].answer = lambda _: answer
    ask(fleet(servers))
    assert counts(servers) == [1, 1]


def test_a_server_that_fails_slowly_is_asked_after_the_others(
    servers: tuple[Server, Server], later: Callable[[float], None], pauses: list[float]
) -> None:
    """For ten times as long as it took to fail, at most 30 seconds; then it is asked as before."""

    def fail(_: object) -> tuple[int, bytes]:
        later(5)
        return 503, b"loading"

    servers[0].answer = fail
    model = fleet(servers)
    ask(model, 6)
    for failures in (1, 2, 3):
        assert len(servers[0].asked) == failures
        later(29)
        ask(model, 4)
        assert len(servers[0].asked) == failures
        later(1.1)
        ask(model, 2)
    assert pauses == []


def test_a_server_that_is_back_is_asked_as_before(servers: tuple[Server, Server]) -> None:
    """While one is dead the other one serves; then it is asked as often again."""
    model = fleet(servers)
    ask(model, 4)
    servers[0].die()
    ask(model, 10)
    assert counts(servers) == [2, 12]
    servers[0].start()
    time.sleep(0.1)
    ask(model, 8)
    assert counts(servers) == [6, 16]


def test_where_nobody_has_listened_no_call_waits(server: Server, pauses: list[float]) -> None:
    """Each call tells at once that the connection is refused, and finds the server once it is there."""
    server.die()
    model = server.model()
    for _ in range(3):
        with pytest.raises(ModelAwayError, match="Connection refused"):
            model.generate(CHAT, FREE)
    server.start()
    time.sleep(0.1)
    ask(model, 2)
    assert (len(server.asked), pauses) == (2, [])


def test_what_takes_long_to_find_out_is_not_found_out_by_each_call(server: Server) -> None:
    """If no connection comes about in time, the calls that follow are told so at once for a while."""
    with socket.create_server(("127.0.0.1", 0), backlog=0) as full, ExitStack() as clients:
        for _ in range(3):
            client = clients.enter_context(socket.socket())
            client.setblocking(False)
            client.connect_ex(full.getsockname())
        model = server.model(location=f"http://127.0.0.1:{full.getsockname()[1]}/v1")
        started = time.monotonic()
        for _ in range(50):
            with pytest.raises(ModelAwayError, match="does not answer: timed out"):
                model.generate(CHAT, replace(FREE, timeout_seconds=1))
        assert 1 <= time.monotonic() - started < 2.5


def test_a_server_that_restarts_is_waited_for(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """One that has answered is asked again after a pause, since it may be starting anew."""
    monkeypatch.setattr("tenacity.nap.time", SimpleNamespace(sleep=lambda _: server.start()))
    model = server.model()
    ask(model)
    server.die()
    ask(model)
    assert len(server.asked) == 2


def test_a_server_that_does_not_come_back_is_dead(server: Server, pauses: list[float]) -> None:
    """One call waits for a server that has answered before; those that follow do not, until it is back."""
    model = server.model()
    ask(model)
    server.die()
    for _ in range(2):
        with pytest.raises(ModelAwayError):
            model.generate(CHAT, FREE)
        assert len(pauses) == 4
    server.start()
    time.sleep(0.1)
    ask(model)
    assert len(server.asked) == 2


@pytest.mark.usefixtures("pauses")
@pytest.mark.parametrize("status", [429, 503])
def test_a_busy_server_is_not_dead(status: int, server: Server) -> None:
    """Each call asks a server anew that has too much to do, and tells that it is busy."""
    server.answer = lambda _: (status, b"too much to do")
    model = server.model()
    for calls in (1, 2):
        with pytest.raises(ModelAwayError, match="the model server of served is busy: HTTP"):
            model.generate(CHAT, FREE)
        assert len(server.asked) == 5 * calls


WORKERS = """\
import sys
from contextlib import closing, contextmanager
from panda.models.model_contract import GenerateParams, Message
from panda.models.models_file import ModelSpec
from panda.models.openai import OpenAiModel
from panda.runs.pool import Chain, Processes, run_chains

@contextmanager
def opener():
    spec = ModelSpec("m", "openai", sys.argv[1], 1024, model="m", further_servers=(sys.argv[2],))
    model = OpenAiModel(spec)
    params = GenerateParams(temperature=0, max_tokens=9, seed=3, timeout_seconds=60)
    yield lambda task: model.generate((Message("user", "Hi"),), params).text

if __name__ == "__main__":
    tasks = (Chain(iter("a"), 1) for _ in range(10))
    with closing(Processes(opener, 2)) as workers:
        assert [value for _, value, _ in run_chains(workers, tasks)] == ["Hello there"] * 10
"""


def test_workers_as_many_as_servers_do_not_meet(servers: tuple[Server, Server], tmp_path: Path) -> None:
    """Each worker of a pool keeps to a server of its own: none waits while another has nothing to do."""
    script = tmp_path / "workers.py"
    script.write_text(WORKERS, encoding="utf-8")
    subprocess.run([sys.executable, script, *(server.url for server in servers)], check=True, timeout=60)
    assert sum(counts(servers)) == 10
    assert [len(set(server.connections)) for server in servers] == [1, 1]


def test_a_pause_that_a_server_asks_for_is_its_own(
    servers: tuple[Server, Server], later: Callable[[float], None], pauses: list[float]
) -> None:
    """A server that asks to wait is left alone for that long, while the other one serves."""
    servers[0].answer = lambda _: (429, b"slow", {"Retry-After": "40"})
    model = fleet(servers)
    ask(model, 6)
    later(39)
    ask(model, 4)
    assert len(servers[0].asked) == 1
    later(1.1)
    ask(model, 2)
    assert len(servers[0].asked) == 2
    assert pauses == []


def test_all_servers_away_names_each(servers: tuple[Server, Server], pauses: list[float]) -> None:
    """When no server is left, the call pauses longer each time, and ends with what each one said."""
    servers[0].answer = BUSY
    servers[1].die()
    with pytest.raises(ModelAwayError) as caught:
        fleet(servers).generate(CHAT, FREE)
    assert "2 of 2 model servers of served do not answer: " in caught.value.message
    assert f"{servers[0].url}: HTTP 503: loading" in caught.value.message
    assert f"{servers[1].url}: [Errno 111] Connection refused" in caught.value.message
    assert caught.value.where == "models.served.location"
    assert caught.value.exit_code == 75
    assert len(servers[0].asked) == 5
    assert pauses == sorted(pauses)
    assert len(pauses) == 4


def test_the_time_is_that_of_the_whole_call(servers: tuple[Server, Server]) -> None:
    """Pauses and attempts at all servers together take no longer than the call may."""
    servers[0].answer = servers[1].answer = BUSY
    started = time.monotonic()
    with pytest.raises(ModelAwayError):
        fleet(servers, timeout_seconds=2).generate(CHAT, FREE)
    assert 0.5 < time.monotonic() - started < 2
    assert len(servers[0].asked) == 2


def test_a_server_that_hangs(servers: tuple[Server, Server]) -> None:
    """With attempt_seconds another one follows; without, the call's time is over, which is a failure too."""
    gate = Gate()
    servers[0].answer = gate
    ask(fleet(servers, attempt_seconds=2))
    assert counts(servers) == [1, 1]
    model = fleet(servers)
    with pytest.raises(ModelTimeoutError, match="1 seconds"):
        model.generate(CHAT, replace(FREE, timeout_seconds=1))
    ask(model, 8)
    assert counts(servers) == [2, 9]
    gate.opened.set()


def test_a_refusal_names_its_server(servers: tuple[Server, Server]) -> None:
    """A fault that does not pass, such as an unknown model, ends the call and says which server it is."""
    servers[0].answer = lambda _: (404, b"no such model")
    with pytest.raises(ModelFileError, match=servers[0].url):
        fleet(servers).generate(CHAT, FREE)
    assert counts(servers) == [1, 0]


def test_each_server_has_its_dialect(servers: tuple[Server, Server], tmp_path: Path) -> None:
    """The dialect is found out of each server, and remembered for it, one of several or alone."""
    servers[0].answer = lambda body: (400, b"no") if is_of(body, "json_schema") else reply(GOOD)
    servers[1].answer = lambda _: reply(GOOD)
    model = fleet(servers, cache_dir=tmp_path)
    for _ in servers:
        assert model.generate(CHAT, PARAMS).text == GOOD
    wanted = {servers[0].url: "json_object", servers[1].url: "json_schema"}
    assert model.dialects == fleet(servers, cache_dir=tmp_path).dialects == wanted
    assert servers[0].model(cache_dir=tmp_path).dialects == {servers[0].url: "json_object"}


def test_a_server_that_is_broken_in_every_dialect(servers: tuple[Server, Server]) -> None:
    """A server that answers 500 to each of them is followed by the other one."""
    servers[0].answer = lambda _: (500, b"out of memory")
    servers[1].answer = lambda _: reply(GOOD)
    assert fleet(servers).generate(CHAT, PARAMS).text == GOOD
    assert counts(servers) == [6, 1]


def test_a_request_for_more_room_goes_elsewhere_alone(servers: tuple[Server, Server]) -> None:
    """A request that was answered is not sent again when the request that follows it fails."""
    cut = reply(None, finish_reason="length", reasoning_content="Hm")
    servers[0].answer = lambda body: cut if body["max_tokens"] == 109 else reply("Hello")
    servers[1].answer = BUSY
    model = fleet(servers, thinking_tokens=100, n_ctx=9000)
    assert model.generate(CHAT, FREE).text == "Hello"
    assert [[body["max_tokens"] for body in server.asked] for server in servers] == [[109, 4205], [4205]]


def test_the_order_of_the_list_is_no_other_model(servers: tuple[Server, Server]) -> None:
    """The digest is that of the servers in any order; that of a single text is what it always was."""
    first, second = servers
    both = first.model(further_servers=(second.url,)).info.digest
    assert both == second.model(further_servers=(first.url + "/",)).info.digest
    assert both not in (first.model().info.digest, second.model().info.digest)
    assert first.model(location="http://127.0.0.1:8080/v1").info.digest.startswith("7773510d7ec67aa97f0a")


def is_of(body: dict[str, Any], dialect: str) -> bool:
    return bool(body.get("response_format", {}).get("type") == dialect)


def test_a_server_that_fails_half_of_its_requests(servers: tuple[Server, Server]) -> None:
    """Of 100 calls by six threads each is done, by one server, once; both servers share them."""
    hangs = threading.Event()
    failures = cycle(["500", "503", "reset", "hang up", "hang"])
    numbers = cycle([True, False])
    lock = threading.Lock()

    def good(server: Server, body: dict[str, Any]) -> tuple[int, bytes]:
        time.sleep(0.005)
        return reply(f"{server.port}: {body['messages'][0]['content']}")

    def flaky(body: dict[str, Any]) -> Any:
        with lock:
            failure = next(failures) if next(numbers) else None
        if failure in ("500", "503"):
            return int(failure), b"oops"
        if failure == "hang":
            hangs.wait(20)
            return None
        if failure in ("reset", "hang up"):
            return "reset" if failure == "reset" else None
        return good(servers[0], body)

    servers[0].answer, servers[1].answer = flaky, lambda body: good(servers[1], body)
    model = fleet(servers, attempt_seconds=2)

    def call(number: int) -> str:
        return model.generate((Message("user", f"call {number}"),), FREE).text

    with ThreadPoolExecutor(6) as pool:
        texts = list(pool.map(call, range(100)))
    hangs.set()
    answered = Counter(body["messages"][0]["content"] for server in servers for body in server.answered)
    assert answered == Counter(f"call {number}" for number in range(100))
    assert texts == [f"{port}: call {number}" for number, port in enumerate(ports_of(texts))]
    shares = Counter(ports_of(texts))
    assert {server.port: len(server.answered) for server in servers} == shares
    assert len(shares) == 2  # how many each has hangs on how fast this machine finds a failure out
    assert len(servers[0].asked) > len(servers[0].answered)


def ports_of(texts: list[str]) -> list[int]:
    return [int(text.partition(":")[0]) for text in texts]
