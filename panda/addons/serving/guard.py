"""What stands before every HTTP application: token, host name, body limit, time limit (ASGI)."""

import asyncio
import base64
import hmac
import ipaddress
import json
from collections.abc import Awaitable, Callable, Mapping, MutableMapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from panda.errors import Problem

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[Scope, Receive, Send], Awaitable[None]]
"""An ASGI application."""

Headers = Sequence[tuple[bytes, bytes]]

OPEN_PATHS = frozenset({"/healthz"})
"""What everybody may ask: it tells nothing."""


@dataclass(frozen=True)
class RequestLimits:
    body_bytes: int = 1_048_576  # largest body of a request
    receive_seconds: float = 10.0  # how long a request may take to arrive
    answer_seconds: float = 30.0  # how long an answer may take to be made
    idle_seconds: int = 10  # how long a connection may wait between two requests
    stop_seconds: int = 10  # how long requests at hand may go on once the server is to stop


@dataclass(frozen=True, kw_only=True)
class Refusal:
    status: int
    type: str  # name of the error's kind
    message: str
    where: str | None = None  # header or field
    fix: str | None = None  # what the client can do
    headers: Headers = ()  # further headers

    @classmethod
    def of(cls, status: int, error: Problem) -> "Refusal":
        return cls(
            status=status,
            type=type(error).__name__,
            message=error.message,
            where=error.where,
            fix=error.fix,
        )

    @property
    def body(self) -> bytes:
        error = {"type": self.type, "message": self.message, "where": self.where, "fix": self.fix}
        return json_bytes({"ok": False, "data": None, "error": error})

    async def send(self, send: Send) -> None:
        headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(self.body))]
        await send(
            {"type": "http.response.start", "status": self.status, "headers": [*headers, *self.headers]}
        )
        await send({"type": "http.response.body", "body": self.body})


def json_bytes(value: Mapping[str, object]) -> bytes:
    """JSON as UTF-8; half of a surrogate pair stays the escape that it came as."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return text.encode("utf-8", errors="backslashreplace")


class Guard:
    """
    Lets through to an application what may pass, its body read whole. A *token* has to come as
    `Authorization: Bearer`, with *browser* also as a browser's password. If *local*, only names of this
    machine are accepted as Host, so that no web page reaches the server through a name of its own (DNS
    rebinding).
    """

    def __init__(
        self,
        application: Application,
        limits: RequestLimits,
        *,
        token: str | None,
        local: bool,
        browser: bool = False,
    ) -> None:
        self._browser = browser
        self._application = application
        self._limits = limits
        self._token = token
        self._local = local

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._application(scope, receive, send)
            return
        headers = dict(scope["headers"])
        refusal = self._refusal(scope["path"], headers)
        body = refusal or await self._body(headers, receive)
        if isinstance(body, Refusal):
            await body.send(send)
        elif body is not None:
            with suppress(asyncio.CancelledError):  # the server stops and waits for it no longer
                await self._application(scope, _replayed(body, receive), send)

    def _refusal(self, path: str, headers: Mapping[bytes, bytes]) -> Refusal | None:
        host = headers.get(b"host", b"localhost").decode("latin-1")
        if self._local and not _names_this_machine(host):
            message = f"this server is not called {host[:80]}"
            return Refusal(
                status=421,
                type="HostError",
                message=message,
                where="Host",
                fix="ask for localhost or 127.0.0.1",
            )
        if self._token is None or path in OPEN_PATHS:
            return None
        scheme, _, token = headers.get(b"authorization", b"").partition(b" ")
        if self._browser and scheme.lower() == b"basic":
            scheme, token = b"bearer", _password(token.strip())
        if scheme.lower() == b"bearer" and hmac.compare_digest(token.strip(), self._token.encode()):
            return None
        asked = b'Basic realm="panda: PANDA_TOKEN is the password"' if self._browser else b"Bearer"
        challenge = ((b"www-authenticate", asked),)
        message = "the token is wrong" if token else "a token is needed"
        fix = "send Authorization: Bearer with the server's PANDA_TOKEN"
        return Refusal(
            status=401,
            type="UnauthorizedError",
            message=message,
            where="Authorization",
            fix=fix,
            headers=challenge,
        )

    async def _body(self, headers: Mapping[bytes, bytes], receive: Receive) -> bytes | Refusal | None:
        """The whole body; None if the client has gone."""
        most = self._limits.body_bytes
        too_large = Refusal(
            status=413,
            type="LimitError",
            message=f"the body has more than {most:,} bytes",
            where="body",
            fix="send less",
        )
        if int(headers.get(b"content-length", b"0")) > most:
            return too_large
        body = bytearray()
        try:
            async with asyncio.timeout(self._limits.receive_seconds):
                while True:
                    message = await receive()
                    if message["type"] == "http.disconnect":
                        return None
                    body += message.get("body", b"")
                    if len(body) > most:
                        return too_large
                    if not message.get("more_body"):
                        return bytes(body)
        except TimeoutError:
            late = f"the request took longer than {self._limits.receive_seconds:g} seconds to arrive"
            return Refusal(
                status=408,
                type="TimeoutError",
                message=late,
                where="body",
                fix="send it faster",
                headers=((b"connection", b"close"),),
            )


def _password(credentials: bytes) -> bytes:
    """The password of a browser's user, whatever the name beside it; b"" if it cannot be read."""
    try:
        return base64.b64decode(credentials, validate=True).partition(b":")[2]
    except ValueError:
        return b""


def _replayed(body: bytes, receive: Receive) -> Receive:
    """Return a function that gives an application the body at once, then whatever comes."""
    messages: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def replay() -> Message:
        return messages.pop() if messages else await receive()

    return replay


def _names_this_machine(host: str) -> bool:
    name = host.rsplit(":", 1)[0] if not host.endswith("]") else host
    return name.lower() == "localhost" or is_loopback(name.strip("[]"))


def is_loopback(address: str) -> bool:
    """
    Return whether only this machine can reach an address.

    >>> is_loopback("127.0.0.1"), is_loopback("::1"), is_loopback("0.0.0.0"), is_loopback("example.com")
    (True, True, False, False)
    """
    try:
        return ipaddress.ip_address(address).is_loopback
    except ValueError:
        return False
