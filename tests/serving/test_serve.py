"""`panda serve` over real connections."""

import json
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from http.client import HTTPConnection
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx
import pytest

from tests.api import ROOT
from tests.scope_vectors import NOW_TEXT, VECTORS, Vector
from tests.serving.servers import ENVIRON, PANDA, Server, running, write_facts

ENTITIES = 200
LARGE = b" " * 10_000_000


def fact(number: int) -> dict[str, Any]:
    """A fact of an entity of its own."""
    return {
        "id": f"f{number}",
        "entity": f"user:{number}",
        "relation": "number",
        "value": {"type": "number", "v": number},
        "source": None,
        "confidence": 0.9,
        "scope": "local",
    }


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The facts of the server."""
    path = tmp_path_factory.mktemp("serve") / "facts.json"
    write_facts(path, {"facts": [fact(number) for number in range(ENTITIES)]})
    return path


@pytest.fixture(scope="module")
def server(file: Path) -> Iterator[Server]:
    """A server for all tests that do not stop it."""
    with running("serve", "--facts", str(file), environ={"PANDA_NOW": NOW_TEXT}) as server:
        yield server


@pytest.fixture(scope="module")
def client(server: Server) -> Iterator[httpx.Client]:
    """A client of that server."""
    with httpx.Client(base_url=server.url, timeout=60, trust_env=False) as client:
        yield client


def ask(client: httpx.Client, request: Any) -> httpx.Response:
    return client.post("/v1/synthesis", json=request)


def message_of(response: httpx.Response) -> str:
    """The message of an error envelope, checked to be one."""
    body = response.json()
    assert (body["ok"], body["data"], set(body["error"])) == (
        False,
        None,
        {"type", "message", "where", "fix"},
    )
    return str(body["error"]["message"])


def test_many_at_once(server: Server) -> None:
    """200 requests at once get 200 answers, each its own."""
    start = threading.Barrier(ENTITIES)

    def one(number: int) -> object:
        with closing(HTTPConnection("127.0.0.1", server.port, timeout=60)) as connection:
            start.wait()
            body = json.dumps({"scope": "local", "entity": f"user:{number}"})
            connection.request("POST", "/v1/synthesis", body, {"content-type": "application/json"})
            answer = json.load(connection.getresponse())
        return [entry["value"]["v"] for entry in answer["summary"]]

    with ThreadPoolExecutor(ENTITIES) as pool:
        assert list(pool.map(one, range(ENTITIES))) == [[number] for number in range(ENTITIES)]


@pytest.mark.parametrize(
    ("request_", "where"),
    [
        ({"scope": "mars"}, "scope"),
        ({}, "scope"),
        ([], "body"),
        (None, "body"),
        ({"scope": "local", "min_confidence": 1.5}, "min_confidence"),
        ({"scope": "local", "min_confidence": "0.5"}, "min_confidence"),
        ({"scope": "local", "entity": "  "}, "entity"),
        ({"scope": "local", "entity": 7}, "entity"),
        ({"scope": "local", "include_expired": "yes"}, "include_expired"),
        ({"scope": "local", "as_of": "soon"}, "as_of"),
        ({"scope": "local", "limit": 3}, "limit"),
    ],
    ids=repr,
)
def test_bad_requests(request_: Any, where: str, client: httpx.Client) -> None:
    """A request that is not what it must be gets 400 and an envelope that names the field."""
    response = client.post(
        "/v1/synthesis", content=json.dumps(request_), headers={"content-type": "application/json"}
    )
    assert response.status_code == 400
    assert message_of(response)
    assert response.json()["error"]["where"] == where


@pytest.mark.parametrize(
    "body",
    [
        b'{"scope": "local", "min_confidence": NaN}',
        b'{"scope": "local", "min_confidence": 1e999}',
        b"{",
        b"",
        b'{"scope": "\xff"}',
        b"[" * 500_000,
    ],
    ids=lambda body: repr(body[:45]),
)
def test_bad_json(body: bytes, client: httpx.Client) -> None:
    """A body that is not JSON gets 400."""
    response = client.post(
        "/v1/synthesis", content=body, headers={"content-type": "application/json; charset=utf-8"}
    )
    assert response.status_code == 400
    assert message_of(response)


def test_bad_routes(client: httpx.Client) -> None:
    """Unknown paths get 404, methods 405 with Allow, other media types 415, each with the envelope."""
    answers = [
        client.get("/"),
        client.post("/v1/synthesis/", json={}),
        client.get("/v1/synthesis"),
        client.post("/v1/synthesis", data={"scope": "local"}),
        client.post("/v1/synthesis"),
    ]
    assert [answer.status_code for answer in answers] == [404, 404, 405, 415, 415]
    assert all(message_of(answer) for answer in answers)
    assert answers[2].headers["allow"] == "POST"
    assert client.get("/healthz").json()["status"] == "ok"


def test_large_bodies(client: httpx.Client) -> None:
    """10 MB get 413, announced or in chunks, and the server goes on."""
    json_type = {"content-type": "application/json"}
    announced = client.post("/v1/synthesis", content=LARGE, headers=json_type)
    chunked = client.post("/v1/synthesis", content=iter([LARGE] * 2), headers=json_type)
    assert (announced.status_code, chunked.status_code) == (413, 413)
    assert "1,048,576 bytes" in message_of(chunked)
    assert ask(client, {"scope": "local"}).status_code == 200


def test_other_names(client: httpx.Client) -> None:
    """On loopback, a request under a name of somebody else is refused."""
    response = client.get("/healthz", headers={"host": "rebound.example:80"})
    assert response.status_code == 421
    assert "rebound.example" in message_of(response)


def test_no_http(server: Server) -> None:
    """What is no HTTP gets 400, and the connection ends."""
    with socket.create_connection(("127.0.0.1", server.port), timeout=20) as connection:
        connection.sendall(b"HELO\r\n\r\n")
        answer = connection.makefile("rb").read()
    assert answer.startswith(b"HTTP/1.1 400 ")


def test_against_its_own_description(server: Server, tmp_path: Path) -> None:
    """schemathesis finds nothing that its OpenAPI document does not say."""
    found = subprocess.run(
        [
            *(sys.executable, "-m", "schemathesis.cli", "run", f"{server.url}/openapi.json"),
            *("--checks", "all", "--max-examples", "10", "--workers", "1", "--seed", "1", "--no-color"),
            *("--generation-database", "none"),
        ],
        cwd=tmp_path,
        env=ENVIRON,
        capture_output=True,
        text=True,
        check=False,
    )
    assert found.returncode == 0, found.stdout + found.stderr


@pytest.mark.parametrize("vector", VECTORS, ids=lambda vector: vector.id)
def test_vectors(vector: Vector, file: Path, client: httpx.Client) -> None:
    """Each worked case gets its envelope; the server sees that the file is another."""
    write_facts(file, vector.document)
    response = ask(client, vector.request)
    assert response.status_code == 200
    vector.check(response.json())


def test_file_that_breaks(file: Path, client: httpx.Client) -> None:
    """A file that is broken while the server runs gets 500 with the place; repaired, the server answers."""
    write_facts(file, {"facts": [{}]})
    response = ask(client, {"scope": "local"})
    assert response.status_code == 500
    assert message_of(response) == "id is missing"
    write_facts(file, {"facts": []})
    assert ask(client, {"scope": "local"}).status_code == 200


def test_token(tmp_path: Path) -> None:
    """With a token, every request but that for health must bring it."""
    write_facts(tmp_path / "f.json", {"facts": [fact(1)]})
    words = ("serve", "--facts", str(tmp_path / "f.json"), "--host", "0.0.0.0")
    with running(*words, environ={"PANDA_TOKEN": "sésame"}) as server:
        statuses = []
        for token in (None, "Bearer sesame", "Basic sésame", "Bearer sésame", "bearer  sésame"):
            headers = {} if token is None else {b"authorization": token.encode()}
            with httpx.Client(
                base_url=f"http://127.0.0.1:{server.port}", headers=headers, trust_env=False
            ) as own:
                response = ask(own, {"scope": "local"})
                statuses.append(response.status_code)
                if response.status_code == 401:
                    assert message_of(response)
                    assert response.headers["www-authenticate"] == "Bearer"
                assert own.get("/healthz").status_code == 200
        assert statuses == [401, 401, 401, 200, 200]


@pytest.mark.parametrize(
    ("words", "code", "where"),
    [
        (("--host", "0.0.0.0"), 2, "--host"),
        (("--host", "::"), 2, "--host"),
        (("--host", "example.invalid"), 2, "--host"),
        (("--facts", "/nowhere/f.json"), 74, "/nowhere/f.json"),
        (("--json",), 2, "--json"),
    ],
)
def test_does_not_start(words: tuple[str, ...], code: int, where: str, file: Path) -> None:
    """Without a token for a host that others reach, or without facts, there is no server."""
    done = subprocess.run(
        [*PANDA, "serve", "--facts", str(file), *words],
        cwd=ROOT,
        env=ENVIRON,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == code
    assert f"where: {where}\n" in done.stderr or f'"where": "{where}"' in done.stdout


def test_taken_port(server: Server, file: Path) -> None:
    """A port that is taken is an error that says so."""
    done = subprocess.run(
        [*PANDA, "serve", "--facts", str(file), "--port", str(server.port)],
        cwd=ROOT,
        env=ENVIRON,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr.splitlines()[0]) == (75, f"error: port {server.port} is taken")


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_graceful_stop(number: int, code: int, tmp_path: Path) -> None:
    """A signal lets the request at hand finish; then the server ends with the signal's code."""
    path = tmp_path / "f.json"
    write_facts(path, {"facts": [{**fact(n), "relation": f"r{n}"} for n in range(10_000)]})
    with running("serve", "--facts", str(path)) as server:
        write_facts(path, {"facts": [{**fact(n), "relation": f"r{n}"} for n in range(10_001)]})
        with ThreadPoolExecutor(1) as pool, httpx.Client(base_url=server.url, trust_env=False) as own:
            answer = pool.submit(lambda: own.post("/v1/synthesis", json={"scope": "local"}, timeout=60))
            time.sleep(0.1)  # the request is being answered: it must read 10,001 facts first
            assert server.stop(number) == code
            assert answer.result().json()["fact_count"] == 10_001


@pytest.mark.parametrize("value", ["/etc/passwd", "../../../../../../etc/passwd", "a\0b", "a\nb"])
def test_nothing_asked_for_is_a_path(value: str, client: httpx.Client) -> None:
    """No value of a request and no address leads to a file."""
    schema = client.get("/openapi.json").json()
    keys = schema["components"]["schemas"]["SynthesisRequest"]["properties"]
    for key in (*keys, "user", "session", "facts"):
        answer = ask(client, {"scope": "local", key: value})
        assert "root:" not in answer.text
        assert key in ("entity", "relation") or answer.status_code == 400, key
    for path in (quote(value), f"v1/{quote(value, safe='')}", f"v1/synthesis/{quote(value)}"):
        answer = client.get(f"/{path}")
        assert (answer.status_code, "root:" in answer.text) == (404, False)
