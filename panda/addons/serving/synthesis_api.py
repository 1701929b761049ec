"""POST /v1/synthesis, GET /healthz and GET /openapi.json over HTTP."""

import asyncio
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Annotated, Any

import msgspec
from msgspec import Meta
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from panda import __version__
from panda.actions.synthesis_facts import FactSource
from panda.addons.serving.guard import Refusal, RequestLimits, json_bytes
from panda.documents.record_codec import Record, encode
from panda.errors import FileFormatError, Problem, UsageError
from panda.memory.synthesis import Envelope, SynthesisRequest, parse_request, synthesize
from panda.store.files import parse_json

_JSON = "application/json"


class Fault(Record, frozen=True):
    type: str
    message: str
    where: str | None
    fix: str | None


class Refused(Record, frozen=True):
    """The body of a refusal."""

    ok: Annotated[bool, Meta(extra_json_schema={"const": False})]
    data: None
    error: Fault


_REFUSALS: Mapping[str, str] = {
    "400": "The request is not what it must be; the error names the field.",
    "401": "The token is missing or wrong.",
    "405": "The path does not know the method.",
    "408": "The request took too long to arrive.",
    "413": "The body is too large.",
    "415": "The body is not called JSON.",
    "421": "The server has another name.",
    "500": "The facts cannot be read.",
    "503": "The answer took too long, or too many ask at once.",
}


def make_openapi(version: str, body_bytes: int, *, token: bool) -> dict[str, Any]:
    """The OpenAPI document; *token* is whether requests need one."""
    kinds = [SynthesisRequest, Envelope, Refused]
    schemas, components = msgspec.json.schema_components(kinds, ref_template="#/components/schemas/{name}")
    request, envelope, refused = schemas
    refusals = {status: _answer(text, refused) for status, text in _REFUSALS.items()}
    open_refusals = {status: refusals[status] for status in ("405", "408", "413", "421")}
    synthesis = {
        "summary": "What is known now within a scope, contradictions shown with both values.",
        "operationId": "synthesize",
        "requestBody": {
            "required": True,
            "description": f"At most {body_bytes:,} bytes.",
            "content": {_JSON: {"schema": request}},
        },
        "responses": {"200": _answer("The answer.", envelope), **refusals},
    }
    alive = _answer("It does.", {"type": "object", "required": ["status", "version"]})
    health = {
        "summary": "Whether the server answers.",
        "operationId": "health",
        "security": [],
        "responses": {"200": alive, **open_refusals},
    }
    responses = {"200": _answer("The document.", {"type": "object"}), "401": refusals["401"]}
    document = {
        "summary": "This document.",
        "operationId": "describe",
        "responses": {**responses, **open_refusals},
    }
    return {
        "openapi": "3.1.0",
        "info": {"title": "panda", "version": version, "description": "Scope synthesis."},
        "paths": {
            "/v1/synthesis": {"post": synthesis},
            "/healthz": {"get": health},
            "/openapi.json": {"get": document},
        },
        "components": {
            "schemas": components,
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
        "security": [{"token": []}] if token else [],
    }


def _answer(description: str, schema: Mapping[str, Any]) -> dict[str, Any]:
    return {"description": description, "content": {_JSON: {"schema": schema}}}


class SynthesisApi:
    """The HTTP application that answers requests for a synthesis; *token* says whether they need one."""

    def __init__(
        self, source: FactSource, clock: Callable[[], datetime], limits: RequestLimits, *, token: bool
    ) -> None:
        self._source = source
        self._clock = clock
        self._limits = limits
        self._openapi = json_bytes(make_openapi(__version__, limits.body_bytes, token=token))

    def application(self) -> Starlette:
        routes = [
            Route("/v1/synthesis", self._synthesis, methods=["POST"]),
            Route("/healthz", self._health, methods=["GET"]),
            Route("/openapi.json", self._describe, methods=["GET"]),
        ]
        application = Starlette(
            routes=routes,
            exception_handlers={HTTPException: _refuse_route, Problem: _refuse, 500: _refuse_bug},
        )
        application.router.redirect_slashes = False
        return application

    async def _synthesis(self, request: Request) -> Response:
        media_type, _, parameters = request.headers.get("content-type", "").partition(";")
        charset = parameters.strip().lower().replace('"', "")
        if media_type.strip().lower() != _JSON or charset not in ("", "charset=utf-8"):
            fix = f"send Content-Type: {_JSON}"
            refusal = Refusal(
                status=415,
                type="MediaTypeError",
                message="the body is not called JSON",
                where="Content-Type",
                fix=fix,
            )
            return _response(refusal)
        asked = parse_request(_parse_body(await request.body()))
        try:
            async with asyncio.timeout(self._limits.answer_seconds):
                return Response(await asyncio.to_thread(self._answer, asked), media_type=_JSON)
        except TimeoutError:
            late = f"the answer took longer than {self._limits.answer_seconds:g} seconds"
            return _response(Refusal(status=503, type="TimeoutError", message=late, fix="ask for one entity"))

    def _answer(self, asked: SynthesisRequest) -> bytes:
        return json_bytes(encode(synthesize(*self._source.load(), asked, now=self._clock())))

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
    assert isinstance(exc, HTTPException)
    paths_hint = "the paths are /v1/synthesis, /healthz and /openapi.json"
    if exc.status_code != 405:
        return _response(
            Refusal(
                status=exc.status_code,
                type="NotFoundError",
                message="there is no such path",
                where="path",
                fix=paths_hint,
            )
        )
    allowed = ", ".join(sorted((exc.headers or {}).get("Allow", "").split(", ")))
    message = f"this path does not know {request.method[:20]}"
    fix = f"use {allowed}"
    return _response(
        Refusal(
            status=405,
            type="MethodError",
            message=message,
            where="method",
            fix=fix,
            headers=((b"allow", allowed.encode("latin-1")),),
        )
    )


async def _refuse(request: Request, exc: Exception) -> Response:
    assert isinstance(exc, Problem)
    return _response(Refusal.of(400 if isinstance(exc, UsageError) else 500, exc))


async def _refuse_bug(request: Request, exc: Exception) -> Response:
    return _response(Refusal(status=500, type="BugError", message=f"panda has a bug: {type(exc).__name__}"))
