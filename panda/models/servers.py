"""The servers of one model: failures that pass are asked again and elsewhere, others told in words."""

import json
import os
import re
import ssl
import time
import weakref
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from functools import cache, cached_property
from multiprocessing import current_process
from pathlib import Path
from typing import Any, Literal, TypeVar
from urllib.parse import urlsplit
from urllib.request import getproxies

import httpx
import stamina
from stamina.instrumentation import set_on_retry_hooks

from panda.documents.json_text import load_json
from panda.documents.secrets import Secrets
from panda.errors import (
    ContextWindowError,
    HaltError,
    ModelAwayError,
    ModelFileError,
    ModelTimeoutError,
    ServerTimeoutError,
    UsageError,
)
from panda.models.access import ServerAccess
from panda.models.chat_reply import find_reported_error
from panda.models.model_contract import Deadline
from panda.models.read_deadlines import ReadDeadlines
from panda.models.refusals import plain_text, read_too_long

_Reply = TypeVar("_Reply")
PASSING = frozenset({429, *range(500, 600)} - {501})
"""Statuses that may be another one a moment later."""
_ROUNDS = 5
"""How often one call asks the servers there are."""
_FIRST_PAUSE_SECONDS = 0.5
_LONGEST_PAUSE_SECONDS = 8.0
_JITTER_SECONDS = 0.5
_AVOIDED_TIMES = 10
_MOST_AVOIDED_SECONDS = 30.0
"""After a failure that took t seconds, a server is tried last for 10 t seconds, and for 30 at most."""
_LONG_SECONDS = 1.0
"""If connecting took at least this long to fail, the server is skipped until that time is over."""
_CONNECT_SECONDS = 5.0
_CONNECTIONS = httpx.Limits(max_connections=None, keepalive_expiry=60.0)
"""A connection that nobody uses is kept for a minute: a turn may compute in between two calls."""
_MOST_REPLY_BYTES = 16 * 2**20
_MOST_WORDS = 300
_MAX_SEARCHED_CHARS = 20_000
_CONNECT_ERRORS = (httpx.ConnectError, httpx.ConnectTimeout)
_LATE = (httpx.ReadTimeout, httpx.WriteTimeout)
_LOOPBACK = ("localhost", "127.0.0.1", "::1")

FailureKind = Literal["away", "busy", "failing"]
"""Nobody listens there; it has too much to do; or it answers with an error, too late, or not to the end."""
_START = (
    "start the server, or correct location in models.yaml, and run the command again; "
    "panda turn -m offline answers without a model"
)
_WAIT = "run the command again once it has less to do, or name more servers"
_MEND = "see the server's log; if it lacks memory, give it a smaller model, context or number of slots"
_TOLD: Mapping[FailureKind, tuple[str, str, str]] = {
    "away": ("does not answer", "do not answer", _START),
    "busy": ("is busy", "are busy", _WAIT),
    "failing": ("fails", "fail", _MEND),
}
"""What is told of one server and of several that failed in one way, and what to do about it."""

set_on_retry_hooks([])  # stamina would log each pause


@dataclass(eq=False)
class ServerFailure(Exception):  # noqa: N818  # an error only once no server is left
    """A server failed in a way that may pass, and need not hold for another one."""

    words: str  # what it said, or what became of the connection, in one line
    kind: FailureKind
    pause_seconds: float = 0.0  # how long it asks to be left alone
    is_final: bool = False  # whether this call does not ask it again
    time: float = field(default_factory=lambda: time.monotonic())
    took_seconds: float = 0.0  # how long it took to fail

    @property
    def until(self) -> float:
        """When it may be asked again; where it took long to find nobody, not each call finds out anew."""
        if self.kind == "away" and self.is_final and self.took_seconds >= _LONG_SECONDS:
            return self.avoided_until
        return self.time + self.pause_seconds

    @property
    def avoided_until(self) -> float:
        return self.time + min(_AVOIDED_TIMES * self.took_seconds, _MOST_AVOIDED_SECONDS)


class _AllFailedError(Exception):
    def __init__(self, failures: Mapping[str, ServerFailure]) -> None:
        self.failures = failures  # of each server, by URL


class Servers:
    """
    The servers of one model, by base URL; for several threads. Worker i of a pool starts each call with
    server i modulo their number; any other process goes round-robin, beginning at its process id modulo that.
    *secrets* are removed from what is quoted of a server's replies. URLs are those of models.yaml; *access*
    has the real ones.
    """

    def __init__(
        self,
        name: str,
        access: ServerAccess,
        *,
        secrets: Secrets,
        attempt_seconds: float | None = None,
    ) -> None:
        self.urls = tuple(url.rstrip("/") for url in access.addresses)
        self.secrets = secrets
        self._name = name
        self._access = access
        self._addresses = {url.rstrip("/"): real.rstrip("/") for url, real in access.addresses.items()}
        self._headers = {"Accept-Encoding": "identity", **access.headers}
        self._attempt_seconds = attempt_seconds
        worker = re.search(r"-(\d+)$", current_process().name)
        self._first, self._step = (int(worker[1]), 0) if worker else (os.getpid(), 1)
        self._deadlines = ReadDeadlines()
        self._failures: dict[str, ServerFailure] = {}  # the last of each server that has not answered since
        self._expected: set[str] = set()  # who has answered: when away, it may only be starting anew

    def ask(self, exchange: Callable[[str], _Reply], deadline: Deadline) -> _Reply:
        """
        Return the result of an exchange with one of the servers. One that raises ServerFailure is followed by
        the next at once; when all have failed there is a pause, as long as one of them may come back in time.
        Raises ModelAwayError that names each, ModelTimeoutError where the time was over while a server was at
        it.
        """

        def pause(exc: Exception) -> bool | float:
            failures = exc.failures.values() if isinstance(exc, _AllFailedError) else ()
            awaited = [failure.until for failure in failures if not failure.is_final]
            if not awaited:
                return False
            asked = min(awaited) - time.monotonic()
            if max(asked, attempt.next_wait + _JITTER_SECONDS) >= deadline.left_seconds:
                return False
            return asked if asked > attempt.next_wait else True

        waits = (_FIRST_PAUSE_SECONDS, _LONGEST_PAUSE_SECONDS, _JITTER_SECONDS)
        try:
            for attempt in stamina.retry_context(pause, _ROUNDS, None, *waits):
                with attempt:
                    return self._ask_each(exchange)
        except _AllFailedError as exc:
            words = {url: exc.failures[url].words for url in self.urls}
            kinds = {url: exc.failures[url].kind for url in self.urls}
            self._expected -= {url for url in self.urls if kinds[url] == "away"}  # waited for once, in vain
            kind, *others = set(kinds.values())
            raise self.away(words, "away" if others else kind) from None
        raise AssertionError("no attempt was made")

    def post(
        self,
        url: str,
        path: str,
        body: Mapping[str, Any],
        deadline: Deadline,
        passing: Collection[int] = PASSING,
    ) -> httpx.Response:
        """
        The answer of one server to one request, sent once; one that reports an error with status 200 has the
        status of that error. ServerFailure: no connection holds, the attempt took too long, or the status is
        one that passes. ServerTimeoutError: the time of the call is over. ContextWindowError: the server says
        that the prompt does not fit. HaltError: the answer is too long.
        """
        left = deadline.left_seconds
        seconds = min(left, self._attempt_seconds or left)
        try:
            answer = _with_reported_status(self._send("POST", url, path, body, seconds))
        except ServerFailure as exc:
            if not isinstance(exc.__cause__, _LATE) or seconds < left:
                exc.is_final = exc.kind == "away" and url not in self._expected
                raise
            fix = f"set models.{self._name}.timeout_seconds in models.yaml, or use a faster model"
            raise deadline.error(f"the model {self._name}", ServerTimeoutError, where=url, fix=fix) from exc
        if answer.status_code >= 400:
            self._check_window(url, answer)
        if answer.status_code in passing:
            raise self.failure(answer)
        self._failures.pop(url, None)
        self._expected.add(url)
        return answer

    def check_alive(self, *, within_seconds: float) -> None:
        """Raises ModelAwayError that names each server that gives no answer, whatever it is, in time."""
        dead: dict[str, str] = {}
        for url in self.urls:
            try:
                self._send("GET", url, "/models", None, within_seconds)
            except ServerFailure as exc:
                dead[url] = exc.words
        if dead:
            raise self.away(dead, "away")

    def fetch(self, url: str, path: str, body: Mapping[str, Any] | None, *, within_seconds: float) -> Any:
        """
        Return the JSON at a path of a server, None where there is none. A path that begins with a slash is
        one of the host and not of its base URL; with a body it is asked for by POST. Raises ServerFailure
        where no answer comes in time.
        """
        is_of_host = path.startswith("/")
        try:
            answer = self._send(
                "GET" if body is None else "POST",
                url,
                path if is_of_host else f"/{path}",
                body,
                within_seconds,
                is_of_host=is_of_host,
            )
            return load_json(answer.content) if answer.status_code == 200 else None
        except (HaltError, ValueError, RecursionError):  # compressed, too long, or no JSON
            return None

    def _check_window(self, url: str, answer: httpx.Response) -> None:
        """Raises ContextWindowError where an error says that the prompt does not fit the window."""
        words = self.words_of(answer)
        too_long = None if answer.status_code == 429 else read_too_long(answer.content, words)
        if too_long is None:
            return
        window = too_long.window_tokens
        prompt = too_long.prompt_tokens
        fix = "set n_ctx to the window of the server, or start it with a larger one"
        if window is not None:
            fix = f"set n_ctx: {window}, to which prompts are fitted, or give the server a larger window"
        raise ContextWindowError(
            f"the prompt does not fit the context window of the model server of {self._name} ({words})",
            where=f"models.{self._name}.n_ctx",
            fix=fix,
            expected=f"at most {window:,} model tokens"
            if window
            else "a prompt that fits its context window",
            received=f"{prompt:,} model tokens" if prompt else words,
            details={"server": url},
        )

    def look_up(
        self, url: str, path: str, *, body: Mapping[str, Any] | None = None, within_seconds: float
    ) -> httpx.Response:
        """
        Return the answer, whatever its status, to one request for facts, sent once: GET, or POST of a *body*.

        Raises:
            ServerFailure: No answer comes in time.
        """
        return self._send("GET" if body is None else "POST", url, path, body, within_seconds)

    def failure(self, answer: httpx.Response, *, is_final: bool = False) -> ServerFailure:
        """Return the error to be raised for an answer that says that the server is overloaded or broken."""
        pause = _asked_pause(answer)
        words = self.words_of(answer) + (f" (it asks to wait {pause:,.0f} seconds)" if pause else "")
        return ServerFailure(
            words, "busy" if answer.status_code in (429, 503) else "failing", pause, is_final
        )

    def words_of(self, answer: httpx.Response) -> str:
        """Status and own words of an answer, in one line: the message of a JSON error, else the body."""
        try:
            value = load_json(answer.content)
            while isinstance(value, Mapping):
                keys = (key for key in ("error", "message", "detail") if key in value)
                value = next((value[key] for key in keys), str(value))
            text = str(value)
        except (ValueError, RecursionError):
            text = plain_text(answer.content.decode("utf-8", "replace"))
        text = self.secrets.hide(" ".join(text[:_MAX_SEARCHED_CHARS].split()))
        status = f"HTTP {answer.status_code}"
        if answer.extensions.get("is_reported"):
            status = f"HTTP 200 with error {answer.status_code}"
        return f"{status}: {text[:_MOST_WORDS]}"

    def close(self) -> None:
        """Give the connections up; the next request makes another one."""
        if client := self.__dict__.pop("_client", None):
            client.close()

    def _ask_each(self, exchange: Callable[[str], _Reply]) -> _Reply:
        first = self._first % len(self.urls)
        self._first += self._step
        now = time.monotonic()
        failures = self._failures.copy()
        avoided = {url for url in failures if now < failures[url].avoided_until}
        for url in sorted(self.urls[first:] + self.urls[:first], key=avoided.__contains__):
            if url in failures and now < failures[url].until:
                continue
            started = time.monotonic()
            try:
                return exchange(url)
            except ServerFailure as exc:
                exc.took_seconds = time.monotonic() - started
                failures[url] = self._failures[url] = exc
            except ModelTimeoutError as exc:
                took = time.monotonic() - started
                self._failures[url] = ServerFailure(exc.message, "failing", took_seconds=took)
                raise
        raise _AllFailedError(failures)

    def away(self, reasons: Mapping[str, str], failure_kind: FailureKind) -> ModelAwayError:
        """Return the error that names each server that failed, with what it said."""
        singular, plural, fix = _TOLD[failure_kind]
        if len(self.urls) == 1:
            ((url, reason),) = reasons.items()
            return ModelAwayError(
                f"the model server of {self._name} {singular}: {reason}", where=url, fix=fix
            )
        listed = "; ".join(f"{url}: {reason}" for url, reason in reasons.items())
        count = f"{len(reasons)} of {len(self.urls)} model servers of {self._name}"
        return ModelAwayError(f"{count} {plural}: {listed}", where=f"models.{self._name}.location", fix=fix)

    def _send(
        self,
        method: str,
        url: str,
        path: str,
        body: Mapping[str, Any] | None,
        seconds: float,
        *,
        is_of_host: bool = False,
    ) -> httpx.Response:
        """The answer to a request, whatever its status; ServerFailure where none comes within the time."""
        address = self._addresses[url]
        if is_of_host:
            address = f"{urlsplit(address).scheme}://{urlsplit(address).netloc}"
        end, seconds = Deadline(seconds), max(0.001, seconds)
        timeout = httpx.Timeout(seconds, connect=min(_CONNECT_SECONDS, seconds))
        data = bytearray()
        try:
            with (
                self._deadlines.until(end),
                self._client.stream(method, address + path, json=body, timeout=timeout) as response,
            ):
                encoding = response.headers.get("content-encoding", "identity").lower()
                if encoding != "identity":  # a few bytes could become gigabytes
                    message = f"the reply of {self._name} is compressed, which was not asked for"
                    raise HaltError(message, where=url + path, fix="turn the compression of the server off")
                for chunk in response.iter_raw():
                    data += chunk
                    if end.passed:
                        raise httpx.ReadTimeout("")
                    if len(data) > _MOST_REPLY_BYTES:
                        message = f"the reply of {self._name} is longer than {_MOST_REPLY_BYTES:,} bytes"
                        fix = "check that the URL is that of a model server"
                        raise HaltError(message, where=url + path, fix=fix)
        except _LATE as exc:
            raise ServerFailure(f"no reply within {seconds:g} seconds", "failing") from exc
        except httpx.TransportError as exc:
            self._check_certificate(url, exc)
            kind: FailureKind = "away" if isinstance(exc, _CONNECT_ERRORS) else "failing"
            words = self.secrets.hide(str(exc) or type(exc).__name__)
            if self._access.proxy is not None or isinstance(exc, httpx.ProxyError):
                words = f"{words} (through the proxy)"
            raise ServerFailure(words[:_MOST_WORDS], kind) from exc
        except httpx.InvalidURL as exc:
            raise ModelFileError("the URL is not valid", url, fix="correct models.yaml") from exc
        headers = {name: text for name, text in response.headers.items() if name == "retry-after"}
        return httpx.Response(response.status_code, headers=headers, content=bytes(data))

    def _check_certificate(self, url: str, lost: httpx.TransportError) -> None:
        """Raises ModelFileError where no encrypted connection can be made, which waiting does not change."""
        cause = _find_tls_error(lost)
        if cause is None:
            return
        if isinstance(cause, ssl.SSLCertVerificationError):
            reason = self.secrets.hide(cause.verify_message)
            message = f"the certificate of the model server is not trusted: {reason}"
            fix = "set ca_file to a PEM file with that certificate, or with that of its authority"
            if "mismatch" in reason or "not valid for" in reason:
                fix = "use a name in location that the certificate is made out to"
            raise ModelFileError(message, url, key=f"models.{self._name}.ca_file", fix=fix) from lost
        if cause.reason == "WRONG_VERSION_NUMBER":
            message = "the model server does not answer in TLS"
            raise ModelFileError(
                message, url, fix="begin location with http://, or correct its port"
            ) from lost

    @cached_property
    def _client(self) -> httpx.Client:
        certificates = self._load_certificates()
        if self._access.proxy is not None:
            client = self._client_by_proxy(self._access.proxy, certificates)
        else:
            client = self._client_by_environment(certificates)
        self._deadlines.guard(client)
        weakref.finalize(self, client.close)  # a command ends without closing its models
        return client

    def _load_certificates(self) -> ssl.SSLContext:
        try:
            return _tls_context(self._access.ca_file)
        except (OSError, ssl.SSLError) as exc:
            reason = getattr(exc, "strerror", None) or "it holds no certificate in PEM"
            fix = "name a PEM file with the certificates of the authority that signed the server's"
            raise ModelFileError(
                f"the certificates cannot be read: {reason}",
                str(self._access.ca_file),
                key=f"models.{self._name}.ca_file",
                fix=fix,
            ) from exc

    def _client_by_proxy(self, proxy: str, certificates: ssl.SSLContext) -> httpx.Client:
        where = f"models.{self._name}.proxy"
        try:
            return httpx.Client(
                headers=self._headers, limits=_CONNECTIONS, proxy=proxy, trust_env=False, verify=certificates
            )
        except ImportError as exc:
            fix = "pip install 'httpx[socks]', or name an http:// proxy"
            raise ModelFileError("a SOCKS proxy needs the package socksio", where, fix=fix) from exc
        except (ValueError, httpx.InvalidURL) as exc:  # which may quote its password
            fix = "give an http://, https:// or socks5:// URL"
            raise ModelFileError("the proxy is no URL that can be used", where, fix=fix) from exc

    def _client_by_environment(self, certificates: ssl.SSLContext) -> httpx.Client:
        mounts = {
            f"all://[{host}]" if ":" in host else f"all://{host}": None for host in _LOOPBACK
        }  # no proxy to this machine
        try:
            return httpx.Client(
                headers=self._headers, limits=_CONNECTIONS, mounts=mounts, verify=certificates
            )
        except (ValueError, ImportError, httpx.InvalidURL) as exc:  # which may quote its password
            if not all(urlsplit(url).hostname in _LOOPBACK for url in self._addresses.values()):
                fix = "set one that begins with http:// or https://, or none"
                if isinstance(exc, ImportError):
                    fix = f"pip install 'httpx[socks]', or {fix}"
                raise UsageError("the proxy that is set cannot be used", _wrong_proxies(), fix=fix) from exc
            return httpx.Client(  # the proxy is for others
                headers=self._headers, limits=_CONNECTIONS, trust_env=False, verify=certificates
            )


@cache
def _tls_context(ca_file: Path | None) -> ssl.SSLContext:
    """Return what servers are verified by; reading all certificates takes longer than a short call."""
    context = httpx.create_ssl_context()
    if ca_file is not None:
        context.load_verify_locations(cafile=ca_file)
    return context


def _find_tls_error(raised: BaseException) -> ssl.SSLError | None:
    """Return the error of TLS that another one comes from; None if there is none."""
    cause: BaseException | None = raised
    while cause is not None:
        if isinstance(cause, ssl.SSLError):
            return cause
        cause = cause.__cause__ or cause.__context__
    return None


def _with_reported_status(answer: httpx.Response) -> httpx.Response:
    """Return an answer of status 200 that reports an error as one of the status of that error."""
    reported = find_reported_error(answer.content) if answer.status_code == 200 else None
    if reported is None:
        return answer
    return httpx.Response(
        reported.status,
        headers=answer.headers,
        content=json.dumps({"error": reported.error}).encode(),
        extensions={"is_reported": True},
    )


def _wrong_proxies() -> str:
    """Return the variables that name proxies of another kind than httpx can use without further packages."""
    schemes = [name for name, url in getproxies().items() if not url.startswith(("http://", "https://"))]
    return ", ".join(f"{scheme.upper()}_PROXY" for scheme in schemes) or "HTTP_PROXY, HTTPS_PROXY, ALL_PROXY"


def _asked_pause(answer: httpx.Response) -> float:
    """Seconds of `Retry-After`, which may be a number or a date; 0 if there is none."""
    text = answer.headers.get("retry-after", "").strip()
    if text.isascii() and text.isdigit():
        return float(text[:9])
    try:
        until = parsedate_to_datetime(text)
    except (ValueError, OverflowError, TypeError):
        return 0.0
    return max(0.0, (until.replace(tzinfo=until.tzinfo or UTC) - datetime.now(UTC)).total_seconds())
