"""One deadline for all that is read of a server's answer: httpx has one only for each read."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx

from panda.models.model_contract import Deadline


class ReadDeadlines:
    """
    Ends reading in each thread at the deadline that was set there.

    A server that sends a byte of its headers now and then, or one `100 Continue` after another, would never
    be given up otherwise: until the headers are read, httpx returns to nobody.
    """

    def __init__(self) -> None:
        self._local = threading.local()

    @contextmanager
    def until(self, deadline: Deadline) -> Iterator[None]:
        """Let this thread read until a deadline."""
        self._local.deadline = deadline
        try:
            yield
        finally:
            self._local.deadline = None

    def guard(self, client: httpx.Client) -> None:
        """Have all connections of a client keep to the deadlines."""
        for transport in (client._transport, *client._mounts.values()):  # httpx offers no public way
            if (pool := getattr(transport, "_pool", None)) is not None:
                pool._network_backend = _Backend(pool._network_backend, self)

    def left_seconds(self, timeout: float | None) -> float | None:
        """The time for one read; httpx.ReadTimeout where the deadline has passed."""
        deadline: Deadline | None = getattr(self._local, "deadline", None)
        if deadline is None:
            return timeout
        if deadline.passed:
            raise httpx.ReadTimeout("")
        return min(timeout if timeout is not None else deadline.left_seconds, deadline.left_seconds)


class _Backend:
    """Opens connections as another backend does."""

    def __init__(self, backend: Any, deadlines: ReadDeadlines) -> None:
        self._backend = backend
        self._deadlines = deadlines

    def connect_tcp(self, *arguments: Any, **options: Any) -> "_Stream":
        return _Stream(self._backend.connect_tcp(*arguments, **options), self._deadlines)

    def connect_unix_socket(self, *arguments: Any, **options: Any) -> "_Stream":
        return _Stream(self._backend.connect_unix_socket(*arguments, **options), self._deadlines)

    def sleep(self, seconds: float) -> None:
        self._backend.sleep(seconds)


class _Stream:
    """A connection that reads until the deadline of the thread."""

    def __init__(self, stream: Any, deadlines: ReadDeadlines) -> None:
        self._stream = stream
        self._deadlines = deadlines

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        data: bytes = self._stream.read(max_bytes, timeout=self._deadlines.left_seconds(timeout))
        return data

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        self._stream.write(buffer, timeout=timeout)

    def close(self) -> None:
        self._stream.close()

    def start_tls(self, *arguments: Any, **options: Any) -> "_Stream":
        return _Stream(self._stream.start_tls(*arguments, **options), self._deadlines)

    def get_extra_info(self, info: str) -> Any:
        return self._stream.get_extra_info(info)
