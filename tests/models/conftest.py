"""The embedded model, loaded once for all tests, and a model server on loopback."""

import json
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from panda.models.llama.loaded import LoadedGgufs
from panda.models.llama.model import LlamaCppModel

BUILTIN = "builtin:smollm2-135m"


def embedded(ggufs: LoadedGgufs, *, n_ctx: int = 1024, scores: bool = True) -> LlamaCppModel:
    return ggufs.model(
        "embedded",
        BUILTIN,
        relative_to=Path(),
        n_ctx=n_ctx,
        writes=True,
        scores=scores,
        requantize="q8_0",
    )


@pytest.fixture(scope="session")
def cache_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(scope="session")
def model(cache_dir: Path) -> Iterator[LlamaCppModel]:
    ggufs = LoadedGgufs(cache_dir)
    yield embedded(ggufs)
    ggufs.close()


Answer = Callable[[dict[str, Any]], tuple[int, bytes]]


class Server:
    """A model server that answers as told and keeps what it was asked."""

    def __init__(self) -> None:
        self.asked: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.answer: Answer = lambda _: reply("Hello there")
        server = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                server.asked.append(body)
                server.headers.append(dict(self.headers))
                status, data = server.answer(body)
                try:
                    self.send_response(status)
                    self.send_header("Content-Length", str(len(data)))
                    self.end_headers()
                    self.wfile.write(data)
                except BrokenPipeError:
                    pass  # the client's time was over

            def log_message(self, format: str, *args: object) -> None:
                pass

        self._http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._http.serve_forever, args=(0.01,))
        self._thread.start()
        self.url = f"http://127.0.0.1:{self._http.server_address[1]}/v1"

    def close(self) -> None:
        self._http.shutdown()
        self._thread.join()
        self._http.server_close()


def reply(text: str, *, finish_reason: str = "stop", usage: object = None) -> tuple[int, bytes]:
    choice = {"message": {"role": "assistant", "content": text}, "finish_reason": finish_reason}
    return 200, json.dumps({"choices": [choice], "usage": usage}).encode()


@pytest.fixture
def server() -> Iterator[Server]:
    running = Server()
    yield running
    running.close()
