"""One server on which a model runs: kept-alive connections, bounded time and size, and failures that pass."""

import threading
import time
import weakref
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any, Literal
from urllib.parse import urlsplit

import httpx

from panda.documents.json_text import load_json
from panda.errors import HaltError, ModelFileError, ModelTimeoutError

PASSING = frozenset({429, 500, 502, 503, 504})
"""Statuses that may be another one a moment later."""
_BUSY = frozenset({429, 503})
_CONNECT_SECONDS = 5.0
_KEPT_SECONDS = 60.0
"""How long a connection that nobody uses is kept: a turn may compute in between two calls."""
_MOST_REPLY_BYTES = 16 * 2**20
_MOST_WORDS = 300
_RETRY_AFTER = "retry-after"
_LOOPBACK = ("localhost", "127.0.0.1", "::1")


FailureKind = Literal["away", "busy", "failing"]
"""Nobody listens there; it has too much to do; or it answers with an error, too late, or not to the end."""


class AttemptError(Exception):
    """
    One attempt at a server failed, for a reason that may pass here and does not hold for another server.
    *words*: what it said, or what became of the connection, in one line. *asked_seconds*: how long it asks to
    be left alone, 0 if it does not say. *is_final*: whether the call need not ask this server again.
    """

    def __init__(
        self, words: str, *, asked_seconds: float = 0.0, is_final: bool = False, kind: FailureKind = "failing"
    ) -> None:
        super().__init__(words)
        self.words = words
        self.kind = kind
        self.asked_seconds = asked_seconds
        self.is_final = is_final


@dataclass(frozen=True)
class TimeLimit:
    """The wall clock of one call, all attempts and pauses together."""

    seconds: float  # its length
    end: float  # when it is over, on the clock of the servers


class ModelServer:
    """
    One server; may be used by several threads at once. *name* is the model's key in models.yaml; *secret* is
    kept out of what is told of the server's words; *attempt_seconds* None leaves an attempt all that the call
    has left.
    """

    def __init__(
        self,
        name: str,
        url: str,
        *,
        headers: Mapping[str, str],
        secret: str | None = None,
        attempt_seconds: float | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._name = name
        self.url = url.rstrip("/")
        self._headers = dict(headers)
        self._secret = secret
        self._attempt_seconds = attempt_seconds
        self._clock = clock
        self._lock = threading.Lock()
        self._client: httpx.Client | None = None

    def post(
        self, path: str, body: Mapping[str, Any], limit: TimeLimit, *, passing: Collection[int] = PASSING
    ) -> httpx.Response:
        """
        The answer to one request, sent once. AttemptError: no connection holds, the attempt took too long, or
        the status is one that passes. ModelTimeoutError: the time of the call is over. HaltError: the answer
        is too long.
        """
        left = limit.end - self._clock()
        seconds = left if self._attempt_seconds is None else min(self._attempt_seconds, left)
        try:
            answer = self._send("POST", path, body, seconds)
        except (httpx.ReadTimeout, httpx.WriteTimeout) as exc:
            if seconds < left:
                raise AttemptError(f"no reply within {seconds:g} seconds") from exc
            raise ModelTimeoutError(
                f"the model {self._name} took longer than {limit.seconds:g} seconds",
                where=self.url,
                fix=f"set models.{self._name}.timeout_seconds in models.yaml, or use a faster model",
                expected=f"a reply within {limit.seconds:g} seconds",
                received="nothing complete",
            ) from exc
        except httpx.TransportError as exc:
            is_final = not isinstance(exc, httpx.NetworkError | httpx.RemoteProtocolError)
            kind: FailureKind = "failing"
            if isinstance(exc, httpx.ConnectError | httpx.ConnectTimeout):
                kind = "away"
            raise AttemptError(str(exc) or type(exc).__name__, is_final=is_final, kind=kind) from exc
        if answer.status_code in passing:
            raise self.failed(answer, is_final=False)
        return answer

    def check_alive(self, *, within_seconds: float) -> None:
        """
        Ask for the list of models: whatever the answer is, somebody is there. AttemptError if nothing comes
        back in time.
        """
        try:
            self._send("GET", "/models", None, within_seconds)
        except httpx.TimeoutException as exc:
            raise AttemptError(f"nothing within {within_seconds:g} seconds", kind="away") from exc
        except httpx.TransportError as exc:
            raise AttemptError(str(exc) or type(exc).__name__, kind="away") from exc

    def failed(self, answer: httpx.Response, *, is_final: bool) -> AttemptError:
        """The error for an answer that says that the server is overloaded or broken."""
        pause = _asked_pause(answer)
        words = self.words_of(answer) + (f" (it asks to wait {pause:,.0f} seconds)" if pause else "")
        kind: FailureKind = "busy" if answer.status_code in _BUSY else "failing"
        return AttemptError(words, asked_seconds=pause, is_final=is_final, kind=kind)

    def words_of(self, answer: httpx.Response) -> str:
        """Status and own words of an answer, in one line: the message of a JSON error, else the body."""
        try:
            value = load_json(answer.content)
        except (ValueError, RecursionError):
            value = answer.content.decode("utf-8", "replace")
        while isinstance(value, Mapping):
            value = next((value[key] for key in ("error", "message", "detail") if key in value), str(value))
        words = f"HTTP {answer.status_code}: {' '.join(str(value).split())[:_MOST_WORDS]}"
        return words.replace(self._secret, "[key]") if self._secret else words

    def close(self) -> None:
        """Give the connections up; the next request makes another one."""
        with self._lock:
            if self._client is not None:
                self._client.close()
                self._client = None

    def _send(self, method: str, path: str, body: Mapping[str, Any] | None, seconds: float) -> httpx.Response:
        seconds = max(0.001, seconds)
        end = time.monotonic() + seconds
        timeout = httpx.Timeout(seconds, connect=min(_CONNECT_SECONDS, seconds))
        data = bytearray()
        try:
            with self._connected().stream(method, self.url + path, json=body, timeout=timeout) as response:
                for chunk in response.iter_bytes():
                    data += chunk
                    if time.monotonic() > end:
                        raise httpx.ReadTimeout("")
                    if len(data) > _MOST_REPLY_BYTES:
                        message = f"the reply of {self._name} is longer than {_MOST_REPLY_BYTES:,} bytes"
                        fix = "check that the URL is that of a model server"
                        raise HaltError(message, where=self.url, fix=fix)
        except httpx.InvalidURL as exc:
            message = f"the URL is not valid: {exc}"
            raise ModelFileError(message, where=self.url, fix="correct models.yaml") from exc
        asked = {name: text for name, text in response.headers.items() if name == _RETRY_AFTER}
        return httpx.Response(response.status_code, headers=asked, content=bytes(data))

    def _connected(self) -> httpx.Client:
        with self._lock:
            if self._client is None:
                is_local = urlsplit(self.url).hostname in _LOOPBACK  # no proxy to this machine
                limits = httpx.Limits(max_connections=None, keepalive_expiry=_KEPT_SECONDS)
                self._client = httpx.Client(headers=self._headers, trust_env=not is_local, limits=limits)
                weakref.finalize(self, self._client.close)  # a command ends without closing its models
            return self._client


def _asked_pause(answer: httpx.Response) -> float:
    """Seconds of `Retry-After`, which may be a number or a date; 0 if there is none."""
    text = answer.headers.get(_RETRY_AFTER, "").strip()
    if text.isascii() and text.isdigit():
        return float(text[:9])
    try:
        until = parsedate_to_datetime(text)
    except ValueError:
        return 0.0
    return max(0.0, (until.replace(tzinfo=until.tzinfo or UTC) - datetime.now(UTC)).total_seconds())
