"""POST /v1/synthesis, GET /healthz and GET /openapi.json; the only importer of starlette."""

import asyncio
from collections.abc import Callable
from datetime import datetime

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from panda import __version__
from panda.errors import FileFormatError, PandaError, UsageError
from panda.memory.scope_reading import FactSource
from panda.memory.synthesis import synthesize
from panda.memory.synthesis_request import SynthesisRequest, parse_request
from panda.serving.guard import Limits, Refusal, json_bytes
from panda.serving.openapi import make_openapi
from panda.storage.files import parse_json

_JSON = "application/json"


class SynthesisApi:
    """
    The HTTP application that answers requests for a synthesis.

    Args:
        source: The facts.
        clock: Gives the present, read once a request.
        limits: How long an answer may take.
        token: Whether requests need one; the guard sees to it, this only says so.
    """

    def __init__(
        self, source: FactSource, clock: Callable[[], datetime], limits: Limits, *, token: bool
    ) -> None:
        self._source = source
        self._clock = clock
        self._limits = limits
        self._openapi = json_bytes(make_openapi(__version__, limits.body_bytes, token=token))

    def application(self) -> Starlette:
        """As ASGI."""
        routes = [
            Route("/v1/synthesis", self._synthesis, methods=["POST"]),
            Route("/healthz", self._health, methods=["GET"]),
            Route("/openapi.json", self._describe, methods=["GET"]),
        ]
        application = Starlette(
            routes=routes,
            exception_handlers={HTTPException: _refuse_route, PandaError: _refuse, 500: _refuse_bug},
        )
        application.router.redirect_slashes = False
        return application

    async def _synthesis(self, request: Request) -> Response:
        media_type, _, parameters = request.headers.get("content-type", "").partition(";")
        charset = parameters.strip().lower().replace('"', "")
        if media_type.strip().lower() != _JSON or charset not in ("", "charset=utf-8"):
            fix = f"send Content-Type: {_JSON}"
            refusal = Refusal(415, "MediaTypeError", "the body is not called JSON", "Content-Type", fix)
            return _response(refusal)
        asked = parse_request(_parse_body(await request.body()))
        try:
            async with asyncio.timeout(self._limits.answer_seconds):
                return Response(await asyncio.to_thread(self._answer, asked), media_type=_JSON)
        except TimeoutError:
            late = f"the answer took longer than {self._limits.answer_seconds:g} seconds"
            return _response(Refusal(503, "TimeoutError", late, fix="ask for one entity"))

    def _answer(self, asked: SynthesisRequest) -> bytes:
        return json_bytes(synthesize(*self._source.load(), asked, now=self._clock()).to_json())

    async def _health(self, request: Request) -> Response:
        return Response(json_bytes({"status": "ok", "version": __version__}), media_type=_JSON)

    async def _describe(self, request: Request) -> Response:
        return Response(self._openapi, media_type=_JSON)


def _parse_body(body: bytes) -> object:
    try:
        return parse_json(body.decode("utf-8"), where="body")
    except UnicodeDecodeError as exc:
        raise UsageError(f"not UTF-8: byte 0x{body[exc.start]:02x}", where="body") from exc
    except FileFormatError as exc:
        raise UsageError(exc.message, where=exc.where, fix='send {"scope": "local"}') from exc


def _response(refusal: Refusal) -> Response:
    headers = {name.decode(): value.decode() for name, value in refusal.headers}
    return Response(refusal.body, refusal.status, headers, media_type=_JSON)


async def _refuse_route(request: Request, exc: Exception) -> Response:
    """Of a path or a method that there is not."""
    assert isinstance(exc, HTTPException)
    known = "the paths are /v1/synthesis, /healthz and /openapi.json"
    if exc.status_code != 405:
        return _response(Refusal(exc.status_code, "NotFoundError", "there is no such path", "path", known))
    allowed = ", ".join(sorted((exc.headers or {}).get("Allow", "").split(", ")))
    message, fix = f"this path does not know {request.method[:20]}", f"use {allowed}"
    return _response(
        Refusal(405, "MethodError", message, "method", fix, ((b"allow", allowed.encode("latin-1")),))
    )


async def _refuse(request: Request, exc: Exception) -> Response:
    assert isinstance(exc, PandaError)
    return _response(Refusal.of(400 if isinstance(exc, UsageError) else 500, exc))


async def _refuse_bug(request: Request, exc: Exception) -> Response:
    return _response(Refusal(500, "BugError", f"panda has a bug: {type(exc).__name__}"))
