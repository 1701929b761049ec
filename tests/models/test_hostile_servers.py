"""Whatever a server sends, a turn halts or can be tried again, and no secret of a server is repeated."""

import base64
import html
import json
import socket
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from tests.api import LAPTOPS, ModelServer, Panda, tree
from tests.loopback import Server, reply

QUERY = "How much does the Lenovo LOQ 15 cost?"
SECONDS = 60.0
KEY = "sk-4fQ9z/hunter+2-Lm80=xY"
HEADER = "opal-7Vd2&tribe<31>"
MODELS = """models:
  scripted: {{backend: openai, location: {url}, model: scripted, n_ctx: 32768,
    structured: json_schema, timeout_seconds: 4, {more}}}
layers: {{REFLEX: scripted, NERVES: scripted, MIND: scripted, VOICE: scripted, EYES: null}}
encoder: null
"""


def answer(**changes: Any) -> bytes:
    """An answer of a chat completions server with other values."""
    choice = {"message": {"role": "assistant", "content": "{}"}, "finish_reason": "stop"}
    whole = {"choices": [choice], "usage": {"prompt_tokens": 1, "completion_tokens": 1}}
    return json.dumps({**whole, **changes}).encode()


def choice_of(**changes: Any) -> bytes:
    return answer(choices=[{"message": {"content": "{}"}, "finish_reason": "stop", **changes}])


BODIES: dict[str, bytes] = {
    "usage is a list": answer(usage=[1]),
    "usage is a text": answer(usage="many"),
    "tokens are a text": answer(usage={"prompt_tokens": "12"}),
    "tokens of the reply are a text": answer(usage={"completion_tokens": "12"}),
    "tokens are a share": answer(usage={"completion_tokens": 1.5}),
    "tokens are negative": answer(usage={"completion_tokens": -1}),
    "tokens are endless": answer(usage={"prompt_tokens": 10**400}),
    "tokens are no number": b'{"choices":[{"message":{"content":"{}"},"finish_reason":"stop"}],'
    b'"usage":{"prompt_tokens":NaN}}',
    "tokens are true": answer(usage={"prompt_tokens": True}),
    "details are a list": answer(usage={"prompt_tokens_details": [1]}),
    "reused are a list": answer(usage={"prompt_tokens_details": {"cached_tokens": []}}),
    "lists in lists": b"[" * 200_000,
    "objects in objects": b'{"a":' * 200_000,
    "digits": b'{"choices": ' + b"9" * 10_000 + b"}",
    "no choice": answer(choices=[]),
    "choices are an object": answer(choices={"0": 1}),
    "choices are null": answer(choices=None),
    "a choice is a text": answer(choices=["x"]),
    "message is null": choice_of(message=None),
    "message is a list": choice_of(message=["x"]),
    "content is a number": choice_of(message={"content": 5}),
    "content is a list of pictures": choice_of(message={"content": [{"type": "image_url", "url": "x"}]}),
    "content is a list of numbers": choice_of(message={"content": [1, 2]}),
    "content is an object": choice_of(message={"content": {"a": 1}}),
    "refusal is an object": choice_of(message={"content": None, "refusal": {"a": ["b"]}}),
    "calls of tools": choice_of(message={"content": None, "tool_calls": "x"}, finish_reason="tool_calls"),
    "reason is a list": choice_of(finish_reason=["stop"]),
    "reason is long": choice_of(finish_reason="x" * 100_000),
    "no JSON": b"<html>sorry</html>",
    "no text": b"\xff\xfe\x00",
    "nothing": b"",
    "null": b"null",
    "a number": b"1e999",
    "half of a character": b'{"choices": "\\ud800"}',
    "too long": b" " * (17 * 2**20),
}
"""Answers with status 200 that are no chat completion."""


@pytest.fixture
def server() -> Iterator[Server]:
    new_server = Server()
    yield new_server
    new_server.close()


def project(tmp_path: Path, url: str, more: str = "parallel: 1", **environ: str) -> Panda:
    """A project in which a server on loopback is the model of every layer."""
    panda = Panda(tmp_path / "project", store=LAPTOPS, user="ann", **environ)
    panda.write("models.yaml", MODELS.format(url=url, more=more))
    return panda


@pytest.mark.parametrize("name", BODIES)
def test_an_answer_that_is_none_halts_the_turn(name: str, server: Server, tmp_path: Path) -> None:
    """An answer of another shape than the protocol's halts the turn (20), names the server, and is no bug."""
    server.answer = lambda _: (200, BODIES[name])
    panda = project(tmp_path, server.url)
    ended = panda.turn(QUERY)
    assert (ended.code, ended.error["type"]) == (20, "HaltError"), ended.out
    assert server.url in ended.error["where"] or "scripted" in ended.error["message"]
    assert len(ended.error["message"]) < 1_000
    assert panda("validate").code in (0, 3)


@pytest.mark.parametrize(
    ("status", "body", "headers"),
    [
        (500, b'{"error": ' + b"[" * 5_000, {}),
        (200, b'{"error":' + b"[" * 900 + b"]" * 900 + b"}", {}),
        (503, b"busy", {"Retry-After": "Wed, 21 Oct 99999999999 07:28:00 GMT"}),
        (429, b"busy", {"Retry-After": "9" * 400}),
        (200, b"\x1f\x8b" + b"\0" * 50, {"Content-Encoding": "gzip"}),
        (302, b"", {"Location": "file:///etc/passwd"}),
        (599, b"\xff" * 1_000, {}),
    ],
)
@pytest.mark.usefixtures("pauses")
def test_other_answers_are_no_bug(
    status: int, body: bytes, headers: Mapping[str, str], server: Server, tmp_path: Path
) -> None:
    """Errors, pauses and encodings of any kind halt the turn or can be tried again."""
    server.answer = lambda _: (status, body, headers)
    ended = project(tmp_path, server.url).turn(QUERY)
    assert ended.code in (20, 75), ended.out


def test_tokens_may_be_written_as_fractions(server: Server, tmp_path: Path) -> None:
    """A whole number of tokens is one, also as 12.0; it is written down as 12."""
    scripted = ModelServer()
    former = scripted.answer

    def with_usage(body: dict[str, Any]) -> Any:
        answered = former(body)
        assert isinstance(answered, tuple)
        data = answered[1]
        return 200, json.dumps({**json.loads(data), "usage": {"completion_tokens": 12.0}}).encode()

    scripted.answer = with_usage
    panda = project(tmp_path, scripted.url)
    ended = panda.turn(QUERY)
    scripted.close()
    assert ended.code == 0, ended.out
    calls = panda.turn_file(3, "calls.jsonl").read_text(encoding="utf-8").splitlines()
    written = [json.loads(line)["usage"]["output"] for line in calls]
    assert written
    assert {type(count) for count in written} == {int}


@contextmanager
def raw_server(send: Callable[[socket.socket], None]) -> Iterator[str]:
    """A server that reads what comes and sends what a function sends, on each connection."""
    listening = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        with suppress(OSError):
            while True:
                connection, _ = listening.accept()
                threading.Thread(target=talk, args=(connection,), daemon=True).start()

    def talk(connection: socket.socket) -> None:
        with suppress(OSError), connection:
            connection.recv(2**20)
            send(connection)

    threading.Thread(target=serve, daemon=True).start()
    yield f"http://127.0.0.1:{listening.getsockname()[1]}/v1"
    listening.shutdown(socket.SHUT_RDWR)
    listening.close()


def repeat(part: bytes, pause_seconds: float, first: bytes = b"") -> Callable[[socket.socket], None]:
    """Sends the same again and again until the client has gone."""

    def send(connection: socket.socket) -> None:
        connection.sendall(first)
        pause = threading.Event()
        while True:
            connection.sendall(part)
            pause.wait(pause_seconds)

    return send


HEAD = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"


@pytest.mark.parametrize(
    ("part", "pause_seconds", "first"),
    [
        (b"HTTP/1.1 100 Continue\r\n\r\n", 0.001, b""),
        (b"X", 0.5, b"HTTP/1.1 200 OK\r\nX-Slow: "),
        (b"1\r\n \r\n", 0.5, HEAD),
        (b"10000\r\n" + b" " * 65_536 + b"\r\n", 0, HEAD),
    ],
    ids=["interim answers", "slow headers", "slow body", "endless body"],
)
def test_an_answer_without_end_is_given_up(
    part: bytes, pause_seconds: float, first: bytes, tmp_path: Path
) -> None:
    """A server that never ends its answer is given up at the deadline or the limit of size."""
    with raw_server(repeat(part, pause_seconds, first)) as url:
        panda = project(tmp_path, url)
        panda.write("models.yaml", MODELS.format(url=url, more="").replace("seconds: 4", "seconds: 1"))
        with panda.start("turn", "--json", "--", QUERY) as process:
            out, err = process.communicate(timeout=SECONDS)
    assert process.returncode in (20, 75), out + err


def echo(kind: str) -> Callable[[Mapping[str, str]], tuple[int, bytes]]:
    """Return how a server repeats the headers that it got."""

    def answer_to(headers: Mapping[str, str]) -> tuple[int, bytes]:
        headers_json = json.dumps(dict(headers))
        authorization = headers["Authorization"]
        own = headers["X-Opal"]
        encoded = base64.b64encode(f"x Authorization: {authorization}, X-Opal: {own}".encode()).decode()
        pieces = f"key {KEY[:14]}*** and {HEADER[4:]} and {KEY}".upper()
        answers = {
            "json error": (400, json.dumps({"error": {"message": headers_json}}).encode()),
            "html": (401, f"<p>{html.escape(headers_json)} {html.escape(own)}</p>".encode()),
            "address": (404, f"no {quote(authorization, safe='')}?a={quote(own)}".encode()),
            "base64": (400, encoded.encode()),
            "hexadecimal": (400, KEY.encode().hex().encode()),
            "pieces": (500, pieces.encode()),
            "long": (400, b"x" * 270 + headers_json.encode()),
            "reason": (200, reply("", finish_reason=f"no {own} {authorization}")[1]),
            "refusal": (200, reply("", refusal=headers_json)[1]),
            "content": (200, reply(json.dumps({"resolved_query": f"{headers_json} {encoded}"}))[1]),
            "reasoning": (200, reply("{}", reasoning_content=f"{headers_json} {KEY} {own}")[1]),
            "no completion": (200, headers_json.encode()),
        }
        return answers[kind]

    return answer_to


def forms(secret: str) -> list[bytes]:
    """Return what may not be found anywhere: the secret, and pieces of it as servers write them."""
    encoded = base64.b64encode(secret.encode()).decode()
    texts = (secret, secret[2:12], quote(secret, safe=""), html.escape(secret), encoded[:10])
    return [text.encode() for text in (*texts, secret.encode().hex()[:16], secret.upper()[3:14])]


@pytest.mark.parametrize(
    "kind",
    [
        *("json error", "html", "address", "base64", "hexadecimal", "pieces", "long"),
        *("reason", "refusal", "content", "reasoning", "no completion"),
    ],
)
def test_what_a_server_repeats_is_hidden(kind: str, server: Server, tmp_path: Path) -> None:
    """No secret that was sent stands in output, store or cache, however a server repeats it."""
    server.answer = lambda _: echo(kind)(server.headers[-1])
    more = f"api_key_env: MODEL_KEY, headers: {{X-Opal: {HEADER!r}}}"
    cache = tmp_path / "cache"
    environ = {"MODEL_KEY": KEY, "XDG_CACHE_HOME": str(cache)}
    panda = project(tmp_path, server.url, more, **environ)
    ended = [panda("turn", "--json", "-v", "--", QUERY), panda("turn", "-v", "--", QUERY), panda("log")]
    assert server.headers[0]["Authorization"] == f"Bearer {KEY}"
    texts = [part.encode() for result in ended for part in (result.out, result.err)]
    files = {**tree(panda.store), **tree(cache)}
    for form in (*forms(KEY), *forms(HEADER)):
        assert not [text for text in texts if form in text], form
        assert not [name for name, data in files.items() if form in data], form
    if kind != "long":  # what is told ends before it
        assert b"[secret]" in b"".join([*texts, *files.values()])


@pytest.mark.parametrize(
    ("name", "text", "key"),
    [
        ("models.yaml", "location: 'http://ann:tiger-99x@127.0.0.1:9/v1'", "location"),
        (
            "models.yaml",
            "location: ['http://127.0.0.1:9/v1', 'https://:tiger-99x@127.0.0.1:9/v1']",
            "location",
        ),
        ("models.yaml", "location: 'http://ann:tiger-99x/@127.0.0.1:9/v1'", "location"),
        ("models.yaml", "location: {url: 'http://ann:tiger-99x@127.0.0.1:9/v1'}", "location"),
        ("models.yaml", "location: 'http://127.0.0.1:9/v1?api_key=tiger-99x'", "location"),
        ("models.yaml", "location: 'http://127.0.0.1:9/v1', headers: {X: \"tiger-99x\\n\"}", "headers"),
        ("models.yaml", "location: 'http://127.0.0.1:9/v1', headers: tiger-99x", "headers"),
        ("models.yaml", "location: 'http://127.0.0.1:9/v1', headers: {X: [tiger-99x]}", "headers"),
        ("models.yaml", "location: 'http://127.0.0.1:9/v1', api_key_env: tiger-99x", "api_key_env"),
        ("panda.toml", 'search_provider = "searxng:http://ann:tiger-99x@127.0.0.1:9"', "search_provider"),
        ("panda.toml", 'search_provider = "http://ann:tiger-99x@127.0.0.1:9"', "search_provider"),
        ("panda.toml", 'web_allow = ["http://ann:tiger-99x@127.0.0.1:9"]', "web_allow"),
    ],
)
def test_secrets_in_files_are_refused_unquoted(name: str, text: str, key: str, tmp_path: Path) -> None:
    """A password in an address, or a secret where none may stand, is an error (2) that does not quote it."""
    panda = project(tmp_path, "http://127.0.0.1:9/v1")
    if name == "models.yaml":
        entry = f"scripted: {{backend: openai, model: m, n_ctx: 9000, {text}}}"
        text = f"models: {{{entry}}}\nlayers: {{MIND: scripted}}\nencoder: null\n"
    panda.write(name, text)
    for words in (("turn", "--json", "--", QUERY), ("models", "--json"), ("settings", "--json")):
        ended = panda(*words)
        assert "tiger" not in ended.out + ended.err, words
    ended = panda("turn", "--json", "--", QUERY)
    assert ended.code == 2, ended.out
    assert key in ended.error["where"]


def test_a_key_that_no_header_can_hold_is_refused(server: Server, tmp_path: Path) -> None:
    """A key with a line break or other characters is an error that does not quote it."""
    for key in ("tiger-99x\nX: y", "tiger-99é"):
        panda = project(tmp_path / key[-1], server.url, "api_key_env: MODEL_KEY", MODEL_KEY=key)
        ended = panda.turn(QUERY)
        assert (ended.code, "tiger" in ended.out + ended.err) == (2, False), ended.out


def test_a_proxy_is_nothing_to_a_server_of_this_machine(tmp_path: Path) -> None:
    """With a proxy for all that cannot be used, a server on loopback answers all the same."""
    with closing(ModelServer()) as server:
        panda = project(
            tmp_path, server.url, ALL_PROXY="socks5://127.0.0.1:9", all_proxy="socks5://127.0.0.1:9"
        )
        ended = panda.process("turn", "--json", "--", QUERY)
    assert ended.code == 0, ended.out
    panda = project(tmp_path / "other", "http://models.example/v1", ALL_PROXY="socks5://127.0.0.1:9")
    ended = panda.process("turn", "--json", "--", QUERY)
    assert (ended.code, ended.error["where"]) == (2, "ALL_PROXY"), ended.out


def test_a_proxy_that_cannot_be_used_is_told_without_its_password(tmp_path: Path) -> None:
    """A proxy of another kind is an error (2), and its password is not told."""
    panda = project(tmp_path, "http://models.example/v1", HTTP_PROXY="foo://ann:tiger-99x@127.0.0.1:9")
    ended = panda.process("turn", "--json", "--", QUERY)
    assert "tiger" not in ended.out + ended.err
    assert ended.code in (2, 75), ended.out
