"""A web site of our own on loopback: shops, articles, tables, broken pages, and servers that misbehave."""

import gzip
import threading
import time
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

PAGES = Path(__file__).parent / "pages"


@dataclass(frozen=True)
class Answer:
    """What the site gives for a path."""

    body: bytes = b""
    """As it goes over the wire."""
    status: int = 200
    """HTTP status."""
    headers: Mapping[str, str] = field(default_factory=dict)
    """Besides Content-Length."""
    drip: Callable[[], Iterator[bytes]] | None = None
    """Gives the body piece by piece, without a length, instead of *body*."""


@dataclass(frozen=True)
class Asked:
    """One request that reached the site."""

    path: str
    """Path with query."""
    headers: Mapping[str, str]
    """Names in small letters."""


class Site:
    """
    A running site.

    Args:
        host: Address of this machine to listen at.
    """

    def __init__(self, host: str = "127.0.0.1") -> None:
        self.answers: dict[str, Answer] = {}
        self.asked: list[Asked] = []
        site = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                site.answer(self)

            def log_message(self, format: str, *args: object) -> None:
                """Nothing is printed."""

        class Server(ThreadingHTTPServer):
            def handle_error(self, request: object, client_address: object) -> None:
                """A client that goes away is no error of the site's."""

        self._server = Server((host, 0), Handler)
        self._server.daemon_threads = True
        self.place = f"{host}:{self._server.server_address[1]}"
        self.root = f"http://{self.place}"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stop listening: from now on connections are refused."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def add(
        self,
        path: str,
        body: str | bytes = b"",
        *,
        status: int = 200,
        headers: Mapping[str, str] | None = None,
        drip: Callable[[], Iterator[bytes]] | None = None,
    ) -> str:
        """Put an answer at a path and return its URL."""
        data = body.encode() if isinstance(body, str) else body
        response_headers = {"Content-Type": "text/html; charset=utf-8", **(headers or {})}
        self.answers[path] = Answer(data, status, response_headers, drip)
        return self.root + path

    def add_file(self, path: str, name: str, headers: Mapping[str, str] | None = None) -> str:
        """Put one of the pages of tests/web/pages at a path."""
        return self.add(path, (PAGES / name).read_bytes(), headers=headers)

    def paths(self) -> list[str]:
        """Return the paths that were asked for, in order, robots.txt apart."""
        return [asked.path for asked in self.asked if asked.path != "/robots.txt"]

    def answer(self, handler: BaseHTTPRequestHandler) -> None:
        """Serve one request."""
        headers = {name.lower(): value for name, value in handler.headers.items()}
        self.asked.append(Asked(handler.path, headers))
        answer = self.answers.get(handler.path) or Answer(
            b"nothing here", 404, {"Content-Type": "text/plain"}
        )
        etag = answer.headers.get("ETag")
        stamp = answer.headers.get("Last-Modified")
        same = (etag and headers.get("if-none-match") == etag) or (
            stamp and headers.get("if-modified-since") == stamp
        )
        with suppress(ConnectionError):
            handler.send_response(304 if same else answer.status)
            for name, value in answer.headers.items():
                handler.send_header(name, value)
            if same or answer.drip is None:
                body = b"" if same else answer.body
                handler.send_header("Content-Length", str(len(body)))
                handler.end_headers()
                handler.wfile.write(body)
                return
            handler.send_header("Connection", "close")
            handler.end_headers()
            handler.close_connection = True
            for piece in answer.drip():
                handler.wfile.write(piece)
                handler.wfile.flush()


@contextmanager
def running_site(host: str = "127.0.0.1") -> Iterator[Site]:
    """A site for the length of a test."""
    site = Site(host)
    try:
        yield site
    finally:
        with suppress(OSError):
            site.close()


def slow(piece: bytes, seconds: float) -> Callable[[], Iterator[bytes]]:
    """A body that comes byte by byte and never ends."""

    def drip() -> Iterator[bytes]:
        while True:
            yield piece
            time.sleep(seconds)

    return drip


def gzip_bomb(megabytes: int) -> bytes:
    """A small gzip body that unpacks to that many megabytes of blanks."""
    packer = zlib.compressobj(9, zlib.DEFLATED, zlib.MAX_WBITS | 16)
    parts = [packer.compress(b" " * 1_000_000) for _ in range(megabytes)]
    return b"".join([*parts, packer.flush()])


def gzipped(text: str) -> bytes:
    """A gzip body."""
    return gzip.compress(text.encode())
