"""
Connections that reach only checked addresses and end at a deadline; the only importer of httpcore.

A host name is resolved here, its addresses are checked here, and the connection goes to the address that was
checked: a second DNS answer cannot lead elsewhere, and no proxy is ever used.
"""

import socket
import ssl
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import cache
from threading import Thread
from typing import Any

import certifi
import httpcore

from panda.errors import WebError
from panda.web.addresses import AddressRules, Url

Resolve = Callable[[str, int], list[str]]
"""Host and port to addresses; raises OSError."""

_CONNECT_SECONDS = 10.0


class RequestDeadline:
    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self._end = time.monotonic() + seconds

    def left(self) -> float:
        """Seconds left; raises httpcore.ReadTimeout if none are."""
        left = self._end - time.monotonic()
        if left <= 0:
            raise httpcore.ReadTimeout("no time left")
        return left


def resolve_host(host: str, port: int) -> list[str]:
    entries = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(entry[4][0]) for entry in entries))


class HttpExchange:
    """One request after another, all within one deadline."""

    def __init__(self, rules: AddressRules, deadline: RequestDeadline, resolve: Resolve) -> None:
        self._deadline = deadline
        self._backend = _CheckedBackend(rules, deadline, resolve)
        self._pool: httpcore.ConnectionPool | None = None

    @contextmanager
    def get(self, url: Url, headers: dict[str, str]) -> Iterator[httpcore.Response]:
        """The answer to one GET request, as it comes from the wire; no redirect is followed."""
        named = [(b"Host", url.netloc.encode("ascii"))]
        named += [
            (name.encode("ascii"), value.encode("latin-1", "replace")) for name, value in headers.items()
        ]
        with self._errors(url.host, str(url)):
            target = httpcore.URL(
                scheme=url.scheme, host=url.host, port=url.port, target=url.target.encode("ascii")
            )
            with self._connections(url).stream("GET", target, headers=named) as response:
                yield response

    def _connections(self, url: Url) -> httpcore.ConnectionPool:
        if self._pool is None:
            self._backend.look_up(url.host, url.port or (443 if url.scheme == "https" else 80))
            self._pool = httpcore.ConnectionPool(
                ssl_context=_ssl_context(), network_backend=self._backend, max_keepalive_connections=0
            )
        return self._pool

    @contextmanager
    def _errors(self, host: str, url: str) -> Iterator[None]:
        try:
            yield
        except (httpcore.ReadTimeout, httpcore.WriteTimeout, httpcore.PoolTimeout) as exc:
            raise WebError(
                f"{host} did not finish within {self._deadline.seconds:g} seconds",
                where=url,
                fix="try again later, or raise web_timeout_seconds",
            ) from exc
        except httpcore.ConnectTimeout as exc:
            raise WebError(f"no connection to {host}: no answer", where=url, fix="try again later") from exc
        except httpcore.ConnectError as exc:
            raise WebError(f"no connection to {host}: {exc}", where=url, fix="try again later") from exc
        except (httpcore.NetworkError, httpcore.ProtocolError) as exc:
            raise WebError(f"{host} broke off or does not speak HTTP: {exc}", where=url) from exc


class _CheckedBackend(httpcore.NetworkBackend):
    def __init__(self, rules: AddressRules, deadline: RequestDeadline, resolve: Resolve) -> None:
        self._rules = rules
        self._deadline = deadline
        self._resolve = resolve
        self._real = httpcore.SyncBackend()
        self._resolved: dict[tuple[str, int], list[str]] = {}

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.NetworkStream:
        addresses = self._resolved.pop((host, port), None) or self._ask(host, port)
        self._rules.check(host, port, addresses)
        failure: httpcore.ConnectError | httpcore.ConnectTimeout = httpcore.ConnectError("no address")
        for address in addresses:
            try:
                stream = self._real.connect_tcp(
                    address,
                    port,
                    timeout=min(_CONNECT_SECONDS, self._deadline.left()),
                    socket_options=socket_options,
                )
            except (httpcore.ConnectError, httpcore.ConnectTimeout) as exc:
                failure = exc
            else:
                return _TimedStream(stream, self._deadline)
        raise failure

    def connect_unix_socket(
        self, path: str, timeout: float | None = None, socket_options: Iterable[Any] | None = None
    ) -> httpcore.NetworkStream:
        raise httpcore.ConnectError("no sockets of this machine")

    def look_up(self, host: str, port: int) -> None:
        """Find the addresses for the next connection to a host; raises as connecting does."""
        self._resolved[host, port] = self._ask(host, port)

    def _ask(self, host: str, port: int) -> list[str]:
        """Asks in a thread, because the system's resolver knows no time limit."""
        results: list[list[str] | OSError | UnicodeError] = []

        def look_up() -> None:
            try:
                results.append(self._resolve(host, port))
            except (OSError, UnicodeError) as exc:
                results.append(exc)

        thread = Thread(target=look_up, daemon=True)
        thread.start()
        thread.join(self._deadline.left())
        if not results:
            raise httpcore.ConnectTimeout("the name was not resolved in time")
        if not isinstance(results[0], list):
            raise httpcore.ConnectError("there is no such host")
        return results[0]


class _TimedStream(httpcore.NetworkStream):
    """A stream on which no single wait outlasts the deadline."""

    def __init__(self, stream: httpcore.NetworkStream, deadline: RequestDeadline) -> None:
        self._stream = stream
        self._deadline = deadline

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        return self._stream.read(max_bytes, timeout=self._deadline.left())

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        self._stream.write(buffer, timeout=self._deadline.left())

    def close(self) -> None:
        self._stream.close()

    def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore.NetworkStream:
        secured = self._stream.start_tls(ssl_context, server_hostname, timeout=self._deadline.left())
        return _TimedStream(secured, self._deadline)

    def get_extra_info(self, info: str) -> Any:
        return self._stream.get_extra_info(info)


@cache
def _ssl_context() -> ssl.SSLContext:
    """Return the TLS context of all connections; reading the authorities takes longer than many a page."""
    return ssl.create_default_context(cafile=certifi.where())
