"""One model server over HTTP: a kept-alive connection, what passes asked again, time and size bounded."""

import time
import weakref
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any
from urllib.parse import urlsplit

import httpx
from tenacity import (
    RetryCallState,
    Retrying,
    retry_if_exception_type,
    retry_if_result,
    stop_after_attempt,
    stop_before_delay,
    wait_exponential,
    wait_random,
)

from panda.documents.json_text import load_json
from panda.errors import HaltError, ModelAwayError, ModelFileError, ModelTimeoutError

PASSING = frozenset({429, 500, 502, 503, 504})
"""Statuses that may be another one a moment later."""
_ATTEMPTS = 5
_BACK_OFF = wait_exponential(multiplier=0.5, max=8) + wait_random(max=0.5)
_CONNECT_SECONDS = 5.0
_MOST_REPLY_BYTES = 16 * 2**20
_MOST_WORDS = 300
_LOOPBACK = ("localhost", "127.0.0.1", "::1")


@dataclass(frozen=True)
class Answer:
    """What a server answered to one request."""

    status: int
    """HTTP status."""
    data: bytes
    """The whole body."""
    wait_seconds: float = 0.0
    """How long it asks to wait before the next request (`Retry-After`)."""

    @property
    def words(self) -> str:
        """The server's own words, in one line: the message of a JSON error, else the body."""
        try:
            value = load_json(self.data)
        except (ValueError, RecursionError):
            value = self.data.decode("utf-8", "replace")
        while isinstance(value, Mapping):
            value = next((value[key] for key in ("error", "message", "detail") if key in value), str(value))
        return " ".join(str(value).split())[:_MOST_WORDS]


class ModelServer:
    """
    A server on which one model runs.

    Args:
        name: The model's key in models.yaml, for errors.
        url: Base URL.
        headers: Sent with each request.
        sleep: Waits for so many seconds.
    """

    def __init__(
        self, name: str, url: str, *, headers: Mapping[str, str], sleep: Callable[[float], None] = time.sleep
    ) -> None:
        self._name = name
        self.url = url.rstrip("/")
        """Base URL, without a slash at its end."""
        self._headers = dict(headers)
        self._sleep = sleep
        self._client: httpx.Client | None = None

    def post(
        self,
        path: str,
        body: Mapping[str, Any],
        *,
        timeout_seconds: float,
        end: float | None = None,
        passing: Collection[int] = PASSING,
    ) -> Answer:
        """
        Send a request, again after a pause while the answer is one that passes or the connection is lost.

        Args:
            path: What follows the base URL.
            body: Sent as JSON.
            timeout_seconds: Wall clock for all attempts and pauses together.
            end: Monotonic time when it is over, if it began before.
            passing: Statuses that are asked again.

        Returns:
            The answer, or the last one of those that were asked again.

        Raises:
            ModelTimeoutError: It took too long.
            ModelAwayError: There is no connection.
            HaltError: The answer is too long.
        """
        now = time.monotonic()
        end = now + timeout_seconds if end is None else end
        retrying = Retrying(
            sleep=self._sleep,
            wait=_pause,
            stop=stop_after_attempt(_ATTEMPTS) | stop_before_delay(end - now),
            retry=retry_if_result(lambda answer: answer.status in passing)
            | retry_if_exception_type((httpx.NetworkError, httpx.RemoteProtocolError)),
            retry_error_callback=_last,
        )
        try:
            answer: Answer = retrying(self._send, "POST", path, body, end)
        except (httpx.ReadTimeout, httpx.WriteTimeout) as exc:
            raise self._timed_out(timeout_seconds) from exc
        except httpx.TransportError as exc:
            raise self.away(str(exc) or type(exc).__name__) from exc
        return answer

    def check_alive(self, *, within_seconds: float) -> None:
        """
        Ask for the list of models: whatever the answer is, somebody is there.

        Raises:
            ModelAwayError: Nothing came back in time.
        """
        try:
            self._send("GET", "/models", None, time.monotonic() + within_seconds)
        except httpx.TimeoutException as exc:
            raise self.away(f"nothing within {within_seconds:g} seconds") from exc
        except httpx.TransportError as exc:
            raise self.away(str(exc) or type(exc).__name__) from exc

    def away(self, reason: str) -> ModelAwayError:
        """The error for a server that cannot be used now."""
        return ModelAwayError(
            f"the model server of {self._name} does not answer: {reason}",
            where=self.url,
            fix="start the server, or correct location in models.yaml; then run the command again",
        )

    def close(self) -> None:
        """Give the connection up; the next request makes another one."""
        if self._client is not None:
            self._client.close()
            self._client = None

    def _send(self, method: str, path: str, body: Mapping[str, Any] | None, end: float) -> Answer:
        """One attempt, until the monotonic time *end*."""
        if self._client is None:
            is_local = urlsplit(self.url).hostname in _LOOPBACK  # no proxy to this machine
            self._client = httpx.Client(headers=self._headers, trust_env=not is_local)
            weakref.finalize(self, self._client.close)  # a command ends without closing its models
        left = max(0.001, end - time.monotonic())
        timeout = httpx.Timeout(left, connect=min(_CONNECT_SECONDS, left))
        data = bytearray()
        try:
            with self._client.stream(method, self.url + path, json=body, timeout=timeout) as response:
                for chunk in response.iter_bytes():
                    data += chunk
                    if time.monotonic() > end:
                        raise httpx.ReadTimeout("")
                    if len(data) > _MOST_REPLY_BYTES:
                        raise self._too_long()
                return Answer(response.status_code, bytes(data), _asked_pause(response.headers))
        except httpx.InvalidURL as exc:
            raise ModelFileError(
                f"the URL is not valid: {exc}", where=self.url, fix="correct models.yaml"
            ) from exc

    def _too_long(self) -> HaltError:
        return HaltError(
            f"the reply of {self._name} is longer than {_MOST_REPLY_BYTES:,} bytes",
            where=self.url,
            fix="check that the URL is that of a model server",
        )

    def _timed_out(self, timeout_seconds: float) -> ModelTimeoutError:
        return ModelTimeoutError(
            f"the model {self._name} took longer than {timeout_seconds:g} seconds",
            where=self.url,
            fix=f"set models.{self._name}.timeout_seconds in models.yaml, or use a faster model",
            expected=f"a reply within {timeout_seconds:g} seconds",
            received="nothing complete",
        )


def _pause(state: RetryCallState) -> float:
    """Seconds until the next attempt: what the server asks for, else longer each time."""
    outcome = state.outcome
    asked = outcome.result().wait_seconds if outcome and not outcome.failed else 0.0
    return float(asked or _BACK_OFF(state))


def _last(state: RetryCallState) -> Any:
    """The last answer, or the error in its place."""
    assert state.outcome is not None
    return state.outcome.result()


def _asked_pause(headers: httpx.Headers) -> float:
    """Seconds of `Retry-After`, which may be a number or a date; 0 if there is none."""
    text = headers.get("Retry-After", "").strip()
    if text.isascii() and text.isdigit():
        return float(text[:9])
    try:
        until = parsedate_to_datetime(text)
    except ValueError:
        return 0.0
    return max(0.0, (until.replace(tzinfo=until.tzinfo or UTC) - datetime.now(UTC)).total_seconds())
