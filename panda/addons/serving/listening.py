"""A socket, and an HTTP application behind it until a signal comes; the only importer of uvicorn."""

import errno
import socket
from collections.abc import Iterator

import uvicorn

from panda.addons.serving.guard import Application, Guard, RequestLimits, is_loopback
from panda.errors import StoreError, TryAgainError, UsageError

_CONNECTIONS = 1024
_ACCEPTED_AT_ONCE = 256


def listen(host: str, port: int) -> socket.socket:
    """A listening socket. UsageError: no host of this machine; TryAgainError: the port is taken."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
    except (OSError, UnicodeError) as exc:
        raise UsageError(f"{host[:80]!r} is no host: {exc}", where="--host", fix="give 127.0.0.1") from exc
    listener = socket.socket(family, kind, protocol)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.listen(_CONNECTIONS)
    except OSError as exc:
        listener.close()
        if exc.errno == errno.EADDRINUSE:
            fix = "give another port, or 0 for any free one"
            raise TryAgainError(f"port {port} is taken", where="--port", fix=fix) from exc
        if exc.errno == errno.EADDRNOTAVAIL:
            raise UsageError(f"{host} is no address of this machine", where="--host") from exc
        raise StoreError(f"cannot listen on {host} port {port}: {exc.strerror}", where="--port") from exc
    return listener


def check_token(host: str, token: str | None) -> None:
    """Raises UsageError if others than this machine could reach a host and there is no token."""
    if token is None and not (host == "localhost" or is_loopback(host)):
        raise UsageError(
            f"others can reach {host[:80]}, and there is no token",
            where="--host",
            fix="set PANDA_TOKEN to a secret that clients send, or listen on 127.0.0.1",
        )


def serve_http(
    application: Application,
    *,
    host: str,
    port: int,
    token: str | None,
    limits: RequestLimits,
    lifespan: bool = False,
    browser: bool = False,
) -> Iterator[str]:
    """
    Serve an application until SIGINT or SIGTERM, which let requests at hand finish. Yields the server's URL
    once it accepts connections; the rest happens on the next step. *port* 0 is any free one; *lifespan*
    applications are told of start and end; *browser* takes the token as a browser's password too. A host that
    others could reach without a token raises UsageError.
    """
    check_token(host, token)
    with listen(host, port) as listener:
        address = listener.getsockname()
        display_host = f"[{address[0]}]" if listener.family == socket.AF_INET6 else address[0]
        yield f"http://{display_host}:{address[1]}"
        local = is_loopback(address[0])
        guard = Guard(application, limits, token=token, local=local, browser=browser)
        config = uvicorn.Config(
            guard,
            http="h11",
            ws="none",
            lifespan="on" if lifespan else "off",
            interface="asgi3",
            log_config=None,
            log_level="warning",
            access_log=False,
            proxy_headers=False,
            server_header=False,
            limit_concurrency=_CONNECTIONS,
            backlog=_ACCEPTED_AT_ONCE,
            timeout_keep_alive=limits.idle_seconds,
            timeout_graceful_shutdown=limits.stop_seconds,
        )
        uvicorn.Server(config).run(sockets=[listener])
