"""How servers are reached: slow ones, certificates, proxies, and variables in models.yaml."""

import base64
import json
import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

import pytest

from tests.api import CASES, LAPTOPS, PRICE_QUESTION, ModelServer, Panda, Turn, tree
from tests.script import Script

MODELS = """models:
  scripted: {{backend: openai, location: "{location}", model: scripted, n_ctx: 32768,
    structured: json_schema, {more}}}
layers: {{REFLEX: scripted, NERVES: scripted, MIND: scripted, VOICE: scripted, EYES: null}}
encoder: null
"""
SECRET = "tiger-99x-lagoon"


@pytest.fixture
def server() -> Iterator[ModelServer]:
    """A model that writes an approved turn."""
    with closing(ModelServer()) as running:
        yield running


def project(tmp_path: Path, location: str, more: str = "parallel: 1", **environ: str) -> Panda:
    """A project in which a server at a location is the model of every layer."""
    panda = Panda(tmp_path / "project", LAPTOPS, user="ann", **environ)
    panda.write("models.yaml", MODELS.format(location=location, more=more))
    return panda


def ask(panda: Panda) -> Turn:
    """A turn in a process of its own, which has the variables of its environment."""
    ended = panda.process("turn", "--json", "--", PRICE_QUESTION)
    return Turn(ended.code, ended.out, ended.err, panda.store)


# Slow servers


@contextmanager
def slow_server(first: bytes) -> Iterator[str]:
    """A server that takes each request, sends this, and then nothing for as long as it is asked."""
    listening = socket.create_server(("127.0.0.1", 0))
    taken: list[socket.socket] = []

    def serve() -> None:
        with suppress(OSError):
            while True:
                connection, _ = listening.accept()
                taken.append(connection)
                connection.recv(2**20)
                connection.sendall(first)

    threading.Thread(target=serve, daemon=True).start()
    yield f"http://127.0.0.1:{listening.getsockname()[1]}/v1"
    listening.shutdown(socket.SHUT_RDWR)
    listening.close()
    for connection in taken:
        connection.close()


HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 500\r\n\r\n"


@pytest.mark.parametrize(
    "first",
    [b"", b"HTTP/1.1 200 OK\r\n", HEAD, HEAD + b'{"choices": [{"message": {"content": "{'],
    ids=["nothing", "half a head", "a head", "half a body"],
)
def test_a_server_that_is_slow_or_stops_is_to_be_tried_again(first: bytes, tmp_path: Path) -> None:
    """A server that does not answer in time, or stops in the middle, ends with 75, and the turn can go on."""
    with slow_server(first) as url:
        panda = project(tmp_path, url, "timeout_seconds: 0.5")
        turn = panda.turn(PRICE_QUESTION)
    assert (turn.code, turn.error["type"]) == (75, "ServerTimeoutError"), turn.out
    assert "took longer than 0.5 seconds" in turn.error["message"]
    assert "timeout_seconds" in turn.error["fix"]
    assert turn.status == "halted"
    assert turn.interventions[0]["type"] == "model_timeout"
    with closing(ModelServer()) as server:
        panda.write("models.yaml", server.models())
        resumed = panda("turn", "--json", "--resume", str(turn.number))
    assert resumed.code == 0, resumed.out


def test_a_server_that_hangs_up_in_the_middle_is_to_be_tried_again(
    tmp_path: Path, pauses: list[float]
) -> None:
    """An answer that ends before its length is asked for again, after pauses, and then ends with 75."""
    with closing(ModelServer()) as server:
        server.answer = lambda _: (200, b'{"choices"', {"Content-Length": "500", "Connection": "close"})
        turn = project(tmp_path, server.url).turn(PRICE_QUESTION)
    assert (turn.code, turn.error["type"]) == (75, "ModelAwayError"), turn.out
    assert len(pauses) == 4


# Certificates


CERTIFICATE = CASES / "tls" / "server.pem"
"""A self-signed certificate for 127.0.0.1, until 2126; its key stands beside it."""


@pytest.fixture
def encrypted(server: ModelServer) -> str:
    """The address of the model's server by TLS."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(CERTIFICATE, CERTIFICATE.with_suffix(".key"))
    server.encrypt(context)
    return server.url.replace("http://", "https://")


def test_a_self_signed_certificate_is_told_with_the_key_that_trusts_it(
    encrypted: str, tmp_path: Path
) -> None:
    """Such a server is not away: the error (2) names ca_file, with which a turn succeeds."""
    turn = project(tmp_path, encrypted).turn(PRICE_QUESTION)
    assert (turn.code, turn.error["type"]) == (2, "ModelFileError"), turn.out
    assert "certificate of the model server is not trusted: self-signed certificate" in turn.error["message"]
    assert "ca_file" in turn.error["fix"]
    (tmp_path / "trusting").mkdir()
    turn = project(tmp_path / "trusting", encrypted, f"ca_file: '{CERTIFICATE}'").turn(PRICE_QUESTION)
    assert turn.status == "approved", turn.out


def test_a_certificate_of_another_name_is_told(encrypted: str, tmp_path: Path) -> None:
    """A trusted certificate that is made out to another name is an error that says so."""
    url = encrypted.replace("127.0.0.1", "localhost")
    turn = project(tmp_path, url, f"ca_file: '{CERTIFICATE}'").turn(PRICE_QUESTION)
    assert turn.code == 2, turn.out
    assert "name in location" in turn.error["fix"]


def test_a_server_without_tls_is_told(server: ModelServer, tmp_path: Path) -> None:
    """https:// before the address of a server that speaks plain HTTP is an error that says so."""
    turn = project(tmp_path, server.url.replace("http://", "https://")).turn(PRICE_QUESTION)
    assert turn.code == 2, turn.out
    assert "http://" in turn.error["fix"]


@pytest.mark.parametrize(
    ("text", "words"), [(None, "there is no file"), ("no PEM", "certificates cannot be read")]
)
def test_a_ca_file_that_cannot_be_used_is_told(
    text: str | None, words: str, server: ModelServer, tmp_path: Path
) -> None:
    """A missing file, or one without certificates, ends with 2 and names the key."""
    panda = project(tmp_path, server.url, "ca_file: own.pem")
    if text is not None:
        panda.write("own.pem", text)
    turn = panda.turn(PRICE_QUESTION)
    assert turn.code == 2, turn.out
    assert words in turn.error["message"]
    assert "models.scripted.ca_file" in turn.error["where"]


# Proxies


class Proxy:
    """A proxy for plain HTTP that hands every request to one server and keeps what it was asked."""

    def __init__(self, target: int) -> None:
        self.asked: list[str] = []
        self.authorizations: list[str] = []
        self._target = target
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port = self._listening.getsockname()[1]
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        with suppress(OSError):
            while True:
                connection, _ = self._listening.accept()
                threading.Thread(target=self._talk, args=(connection,), daemon=True).start()

    def _talk(self, connection: socket.socket) -> None:
        with suppress(OSError), connection:
            data = connection.recv(2**16)
            while b"\r\n\r\n" not in data:
                data += connection.recv(2**16)
            head, _, body = data.partition(b"\r\n\r\n")
            lines = head.decode().split("\r\n")
            method, address, version = lines[0].split(" ")
            headers = dict(line.lower().split(": ", 1) for line in lines[1:])
            self.asked.append(address)
            authorization = next((line for line in lines if line.lower().startswith("proxy-auth")), "")
            self.authorizations.append(authorization.partition(": ")[2])
            while len(body) < int(headers.get("content-length", 0)):
                body += connection.recv(2**16)
            path = "/" + address.partition("://")[2].partition("/")[2]
            further = [line for line in lines[1:] if not line.lower().startswith(("connection", "proxy"))]
            request = "\r\n".join([f"{method} {path} {version}", *further, "Connection: close"]).encode()
            with socket.create_connection(("127.0.0.1", self._target)) as target:
                target.sendall(request + b"\r\n\r\n" + body)
                while part := target.recv(2**16):
                    connection.sendall(part)

    def close(self) -> None:
        """Listen no more."""
        self._listening.close()


@pytest.fixture
def proxy(server: ModelServer) -> Iterator[Proxy]:
    """A proxy to the model's server."""
    with closing(Proxy(server.port)) as running:
        yield running


def test_the_proxy_of_models_yaml_is_used(proxy: Proxy, tmp_path: Path) -> None:
    """`proxy` is asked for a server that only it can reach, with the user and password of variables."""
    panda = project(
        tmp_path,
        "http://models.example/v1",
        f"proxy: 'http://${{PROXY_USER}}:${{PROXY_PASSWORD}}@127.0.0.1:{proxy.port}'",
        PROXY_USER="ann",
        PROXY_PASSWORD=SECRET,
    )
    turn = ask(panda)
    assert turn.status == "approved", turn.out
    assert set(proxy.asked) == {"http://models.example/v1/chat/completions"}
    sent = base64.b64encode(f"ann:{SECRET}".encode()).decode()
    assert set(proxy.authorizations) == {f"Basic {sent}"}
    assert SECRET not in turn.out + turn.err
    assert not [name for name, data in tree(panda.store).items() if SECRET.encode() in data]


@pytest.mark.asks_for("models.example")
def test_the_proxy_of_the_environment_is_used_but_for_no_proxy(proxy: Proxy, tmp_path: Path) -> None:
    """HTTP_PROXY holds for servers elsewhere, unless NO_PROXY names them."""
    address = f"http://127.0.0.1:{proxy.port}"
    panda = project(tmp_path, "http://models.example/v1", HTTP_PROXY=address, http_proxy=address)
    assert ask(panda).status == "approved"
    asked = len(proxy.asked)
    panda.environ |= {"NO_PROXY": "models.example", "no_proxy": "models.example"}
    turn = ask(panda)
    assert (turn.code, len(proxy.asked)) == (75, asked), turn.out


@pytest.mark.parametrize(
    ("proxy_url", "words"),
    [
        ("socks5://127.0.0.1:9", "pip install 'httpx[socks]'"),
        ("ftp://127.0.0.1:9", "give an http://, https:// or socks5:// URL"),
        (f"http://ann:{SECRET}@127.0.0.1:9", "by environment variables"),
    ],
)
def test_a_proxy_that_cannot_be_used_is_told(
    proxy_url: str, words: str, server: ModelServer, tmp_path: Path
) -> None:
    """A SOCKS proxy without its package, another scheme, or a password in the file ends with 2."""
    turn = project(tmp_path, server.url, f"proxy: '{proxy_url}'").turn(PRICE_QUESTION)
    assert turn.code == 2, turn.out
    assert words in turn.error["fix"]
    assert "models.scripted.proxy" in turn.error["where"]
    assert SECRET not in turn.out


# Variables


def test_variables_stand_in_location_and_headers(server: ModelServer, tmp_path: Path) -> None:
    """Their values are sent, and stand in no output, file or recording."""
    host = f"127.0.0.1:{server.port}"
    values = {"MODEL_HOST": host, "MODEL_TOKEN": SECRET}
    more = "headers: {X-Token: 'Token ${MODEL_TOKEN}', User-Agent: 'panda ${MODEL_TOKEN}'}"
    panda = project(tmp_path, "http://${MODEL_HOST}/v1", more, **values)
    turn = panda.turn(PRICE_QUESTION)
    assert turn.status == "approved", turn.out
    assert server.headers[0]["X-Token"] == f"Token {SECRET}"
    assert server.headers[0]["User-Agent"] == f"panda {SECRET}"
    server.answer = lambda _: (400, json.dumps({"error": {"message": f"no {SECRET} at {host}"}}).encode())
    refused = panda.turn(PRICE_QUESTION)
    assert refused.code == 20
    server.die()
    away = panda.turn(PRICE_QUESTION)
    assert away.code == 75
    assert "${MODEL_HOST}" in away.error["where"]
    listed = panda("models", "list", "--json")
    outputs = [part for ended in (turn, refused, away, listed) for part in (ended.out, ended.err)]
    for value in (SECRET, host):
        assert not [text for text in outputs if value in text], value
        assert not [name for name, data in tree(panda.store).items() if value.encode() in data], value


def test_a_reply_may_speak_of_the_host_of_a_variable(server: ModelServer, tmp_path: Path) -> None:
    """The name of a server's host is hidden in errors alone: a reply that holds the same word stays whole."""
    server.script = Script(summary={"summary": "They run it on 127.0.0.1 for now.", "topics": []})
    panda = project(tmp_path, "http://${MODEL_HOST}/v1", MODEL_HOST=f"127.0.0.1:{server.port}")
    turn = panda.turn(PRICE_QUESTION)
    assert turn.code == 0, turn.out
    assert "127.0.0.1" in turn.text("calls.jsonl")
    assert "[secret]" not in turn.text("calls.jsonl")


@pytest.mark.parametrize(
    ("location", "more", "environ", "message", "key"),
    [
        ("http://${MODEL_HOST}/v1", "parallel: 1", {}, "MODEL_HOST is not set", "location"),
        ("http://127.0.0.1:9/v1", "headers: {X: '${NOT_SET}'}", {}, "NOT_SET is not set", "headers"),
        ("http://127.0.0.1:9/v1", "proxy: '${NOT_SET}'", {}, "NOT_SET is not set", "proxy"),
        (
            "${MODEL_URL}",
            "parallel: 1",
            {"MODEL_URL": f"ftp://{SECRET}"},
            "no http:// or https:// URL",
            "location",
        ),
        ("${MODEL_URL}", "parallel: 1", {"MODEL_URL": f"http://a:{SECRET}@x"}, "no http:// or", "location"),
        (
            "http://127.0.0.1:9/v1",
            "headers: {X: '${KEY}'}",
            {"KEY": f"{SECRET}é"},
            "cannot be sent",
            "headers",
        ),
        ("ftp://${MODEL_HOST}/v1", "parallel: 1", {"MODEL_HOST": "x"}, "is no location", "location"),
    ],
)
def test_a_variable_that_cannot_be_used_is_told_unquoted(
    location: str, more: str, environ: dict[str, str], message: str, key: str, tmp_path: Path
) -> None:
    """A variable that is not set, or has a wrong value, ends with 2 and names file, key and variable."""
    turn = project(tmp_path, location, more, **environ).turn(PRICE_QUESTION)
    assert turn.code == 2, turn.out
    assert message in turn.error["message"]
    assert "models.yaml" in turn.error["where"]
    assert f"models.scripted.{key}" in turn.error["where"]
    assert SECRET not in turn.out + turn.err
