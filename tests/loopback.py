"""A model server on loopback, which answers as told and keeps what it was asked."""

import json
import socket
import ssl
import struct
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Literal

Answer = Callable[
    [dict[str, Any]], tuple[int, bytes] | tuple[int, bytes, Mapping[str, str]] | Literal["reset"] | None
]
"""Gives status, body and further headers; None hangs up, "reset" resets the connection."""


class Server:
    """
    A model server that answers as told and keeps what it was asked, and on which connection. It may die, with
    all its connections, and come back at the same place.
    """

    def __init__(self, port: int = 0) -> None:
        self.asked: list[dict[str, Any]] = []
        self.answered: list[dict[str, Any]] = []
        """What was asked where the whole answer was written, and was one."""
        self.headers: list[dict[str, str]] = []
        self.connections: list[object] = []
        self.answer: Answer = lambda _: reply("Hello there")
        self.pages: dict[str, object] = {"/v1/models": {}}
        """JSON values, or bytes, that it gives by path: to GET, and to POST in place of an answer."""
        self.looked_up: list[str] = []
        """The paths of all requests with GET."""
        self._sockets: set[socket.socket] = set()
        self._http: ThreadingHTTPServer | None = None
        self.port = port
        self.start()
        self.url = f"http://127.0.0.1:{self.port}/v1"

    def start(self) -> None:
        """Listen."""
        server = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            wbufsize = -1  # head and body in one packet: two wait 40 ms for each other

            def setup(self) -> None:
                super().setup()
                server._sockets.add(self.connection)

            def handle(self) -> None:
                with suppress(OSError):  # the client has gone, or the server has died
                    super().handle()

            def finish(self) -> None:
                server._sockets.discard(self.connection)
                with suppress(OSError):
                    super().finish()

            def do_GET(self) -> None:
                server.looked_up.append(self.path)
                self.reply(*self.page(self.path))

            def page(self, path: str) -> tuple[int, bytes]:
                if path not in server.pages:
                    return 404, b'{"error": {"message": "Not Found"}}'
                value = server.pages[path]
                return 200, value if isinstance(value, bytes) else json.dumps(value).encode()

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                if self.path in server.pages or not self.path.endswith("/chat/completions"):
                    self.reply(*self.page(self.path))
                    return
                server.asked.append(body)
                server.headers.append(dict(self.headers))
                server.connections.append(self.client_address)
                answered = server.answer(body)
                if answered is None:
                    self.close_connection = True
                elif answered == "reset":
                    self.close_connection = True
                    self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                    self.connection.close()
                elif self.reply(*answered) and answered[0] == 200:
                    server.answered.append(body)

            def reply(self, status: int, data: bytes, headers: Mapping[str, str] | None = None) -> bool:
                """Whether the client took it."""
                try:
                    self.send_response(status)
                    for name, value in (headers or {}).items():
                        self.send_header(name, value)
                    self.send_header("Content-Length", str(len(data)))
                    self.end_headers()
                    self.wfile.write(data)
                    self.wfile.flush()
                except OSError:
                    return False  # the client's time was over, or the server has died
                return True

            def log_message(self, format: str, *args: object) -> None:
                pass

        self._http = ThreadingHTTPServer(("127.0.0.1", self.port), Handler)
        self.port = self._http.server_address[1]
        self._thread = threading.Thread(target=self._http.serve_forever, args=(0.01,))
        self._thread.start()

    def encrypt(self, context: ssl.SSLContext) -> None:
        """Speak TLS from now on."""
        assert self._http is not None
        self._http.socket = context.wrap_socket(self._http.socket, server_side=True)

    def die(self) -> None:
        """Listen no more, and reset all connections."""
        if self._http is not None:
            self._http.shutdown()
            self._thread.join()
            self._http.server_close()
            self._http = None
        for one in list(self._sockets):
            with suppress(OSError):
                one.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                one.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        self.die()


def reply(
    text: str | None, *, finish_reason: str = "stop", usage: object = None, **message: object
) -> tuple[int, bytes]:
    said = {"role": "assistant", "content": text, **message}
    choice = {"message": said, "finish_reason": finish_reason}
    return 200, json.dumps({"choices": [choice], "usage": usage}).encode()


OLLAMA: dict[str, object] = {
    "/api/version": {"version": "0.12.3"},
    "/api/tags": {"models": [{"name": "qwen3:4b"}, {"name": "phi:latest"}]},
    "/v1/models": {"data": [{"id": "qwen3:4b"}, {"id": "phi:latest"}]},
    "/api/show": {
        "capabilities": ["completion", "tools", "thinking"],
        "model_info": {"general.architecture": "qwen3", "qwen3.context_length": 40960},
    },
    "/api/ps": {"models": [{"name": "qwen3:4b", "context_length": 32768}]},
}
"""Pages of a server that behaves as Ollama, with qwen3:4b loaded; phi is not."""
