"""The embedded model, loaded once for all tests, and a model server on loopback."""

import json
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from panda.models.llama.loaded import LoadedGgufs
from panda.models.llama.model import LlamaCppModel
from panda.models.models_file import ModelSpec
from panda.models.openai import OpenAiModel

BUILTIN = "builtin:smollm2-135m"


def embedded_spec(*, n_ctx: int = 1024, scores: bool = True, thinking_tokens: int = 0) -> ModelSpec:
    spec = ModelSpec("embedded", "llama_cpp", BUILTIN, n_ctx, writes=True, scores=scores)
    return replace(spec, requantize="q8_0", thinking_tokens=thinking_tokens)


def embedded(ggufs: LoadedGgufs, *, n_ctx: int = 1024, scores: bool = True) -> LlamaCppModel:
    return ggufs.model(embedded_spec(n_ctx=n_ctx, scores=scores), relative_to=Path())


@pytest.fixture(scope="session")
def cache_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(scope="session")
def model(cache_dir: Path) -> Iterator[LlamaCppModel]:
    ggufs = LoadedGgufs(cache_dir)
    yield embedded(ggufs)
    ggufs.close()


Answer = Callable[[dict[str, Any]], tuple[int, bytes] | tuple[int, bytes, Mapping[str, str]] | None]
"""Gives status, body and further headers; None hangs up."""


class Server:
    """A model server that answers as told and keeps what it was asked, and on which connection."""

    def __init__(self) -> None:
        self.asked: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.connections: list[object] = []
        self.answer: Answer = lambda _: reply("Hello there")
        self._models: list[OpenAiModel] = []
        server = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                self.reply(200, b"{}")

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                server.asked.append(body)
                server.headers.append(dict(self.headers))
                server.connections.append(self.client_address)
                answered = server.answer(body)
                if answered is None:
                    self.close_connection = True
                    return
                self.reply(*answered)

            def reply(self, status: int, data: bytes, headers: Mapping[str, str] | None = None) -> None:
                try:
                    self.send_response(status)
                    for name, value in (headers or {}).items():
                        self.send_header(name, value)
                    self.send_header("Content-Length", str(len(data)))
                    self.end_headers()
                    self.wfile.write(data)
                except (BrokenPipeError, ConnectionResetError):
                    pass  # the client's time was over

            def log_message(self, format: str, *args: object) -> None:
                pass

        self._http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._http.serve_forever, args=(0.01,))
        self._thread.start()
        self.url = f"http://127.0.0.1:{self._http.server_address[1]}/v1"

    def model(self, **keys: Any) -> OpenAiModel:
        """The model on it, with the keys of a models.yaml and the arguments of OpenAiModel."""
        own = {name: keys.pop(name) for name in ("api_key", "cache_dir", "sleep") if name in keys}
        spec: dict[str, Any] = {"name": "served", "location": self.url, "model": "m", "n_ctx": 1024}
        entry = ModelSpec(**spec | keys, backend="openai", writes=True, scores=False)
        self._models.append(OpenAiModel(entry, **own))
        return self._models[-1]

    def close(self) -> None:
        for model in self._models:
            model.close()
        self._http.shutdown()
        self._thread.join()
        self._http.server_close()


def reply(
    text: str | None, *, finish_reason: str = "stop", usage: object = None, **message: object
) -> tuple[int, bytes]:
    said = {"role": "assistant", "content": text, **message}
    choice = {"message": said, "finish_reason": finish_reason}
    return 200, json.dumps({"choices": [choice], "usage": usage}).encode()


@pytest.fixture
def server() -> Iterator[Server]:
    running = Server()
    yield running
    running.close()


@pytest.fixture
def five_servers() -> Iterator[list[Server]]:
    running = [Server() for _ in range(5)]
    yield running
    for server in running:
        server.close()
