"""Connections that are slow, silent or many: none of them holds the server up."""

import socket
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import httpx
import pytest

from tests.serving.servers import Server, running

SILENCE_SECONDS, STRANGERS = 0.6, 20
SMALL_LIMITS = f"""
from panda.serving.guard import Limits
from panda.serving.listening import serve_http

async def answer(scope, receive, send):
    body = (await receive())["body"] * (1_000_000 if scope["path"] == "/long" else 1)
    await send({{"type": "http.response.start", "status": 200, "headers": []}})
    await send({{"type": "http.response.body", "body": body}})

limits = Limits(receive_seconds={SILENCE_SECONDS}, silence_seconds={SILENCE_SECONDS}, strangers={STRANGERS})
for address in serve_http(answer, host="127.0.0.1", port=0, token="right", limits=limits):
    print(address, flush=True)
"""
REQUEST = b"POST / HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer right\r\ncontent-length: 2\r\n\r\nok"


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    """A server with a token and small limits, which sends back what it is sent."""
    with running(program=(sys.executable, "-c", SMALL_LIMITS)) as server:
        yield server


def connect(server: Server) -> socket.socket:
    return socket.create_connection(("127.0.0.1", server.port), timeout=20)


def ask(connection: socket.socket) -> None:
    """One whole request and its answer."""
    connection.sendall(REQUEST)
    answer = b""
    while not answer.endswith(b"ok\r\n0\r\n\r\n"):
        answer += connection.recv(1000)
        assert answer.startswith(b"HTTP/1.1 200 OK")


def nothing(connection: socket.socket) -> None:
    pass


def half_a_request(connection: socket.socket) -> None:
    connection.sendall(REQUEST[:30])


def drops(connection: socket.socket) -> None:
    """Headers that never end, a byte at a time."""
    for byte in REQUEST[:60]:
        connection.sendall(bytes([byte]))
        time.sleep(SILENCE_SECONDS / 5)


def half_a_body(connection: socket.socket) -> None:
    connection.sendall(REQUEST[:-1])


def body_after_the_answer(connection: socket.socket) -> None:
    """A body that goes on after the request was refused."""
    connection.sendall(REQUEST.replace(b"right", b"wrong").replace(b": 2", b": 900")[:-2])
    for _ in range(60):
        connection.sendall(b"x")
        time.sleep(SILENCE_SECONDS / 5)


@pytest.mark.parametrize("answered", [0, 1, 3], ids=["at once", "after a request", "after three requests"])
@pytest.mark.parametrize("act", [nothing, half_a_request, drops, half_a_body, body_after_the_answer])
def test_every_request_has_a_limit(
    answered: int, act: Callable[[socket.socket], None], server: Server
) -> None:
    """A connection that does not go on is closed soon, whether it is its first request or a later one."""
    with connect(server) as connection:
        for _ in range(answered):
            ask(connection)
        started = time.monotonic()
        try:
            act(connection)
            while connection.recv(1000):
                """What is left: the answer that it took too long."""
        except OSError:
            """It was closed while it was written to."""
        assert time.monotonic() - started < SILENCE_SECONDS * 8


def test_answer_that_is_not_taken(server: Server) -> None:
    """A client that does not read its answer is cut off."""
    with connect(server) as connection:
        connection.sendall(REQUEST.replace(b"POST /", b"POST /long").replace(b": 2", b": 90") + b"x" * 88)
        time.sleep(SILENCE_SECONDS * 4)
        size = 0
        try:
            while data := connection.recv(1_000_000):
                size += len(data)
        except ConnectionResetError:
            """Cut off."""
        assert size < 90_000_000


@pytest.mark.parametrize(
    "sent",
    [
        b"",
        REQUEST[:30],
        REQUEST.replace(b"right", b"wrong"),
        b"GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n",
    ],
    ids=["silent", "half a request", "a wrong token", "healthz"],
)
def test_strangers_crowd_nobody_out(sent: bytes, server: Server) -> None:
    """However many connections bring no token, one that does is answered, also one that was there before."""
    with ExitStack() as stack, httpx.Client(base_url=server.url, trust_env=False) as client:
        headers = {"authorization": "Bearer right"}
        early = stack.enter_context(connect(server))
        for number in range(STRANGERS * 60):
            if number % 10 == 0:
                ask(early)
            stranger = stack.enter_context(connect(server))
            stranger.sendall(sent)
        assert client.post("/", content=b"ok", headers=headers, timeout=10).text == "ok"
