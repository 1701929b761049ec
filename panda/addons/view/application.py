"""The pages over HTTP, read-only: their routes, and the headers that fence them in."""

import hashlib
from collections.abc import Mapping

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from panda.addons.view.shelf import Shelf
from panda.addons.view.site import ASSETS, POLICY, Served, Site, read_asset
from panda.errors import NotFoundError, Problem

_HEADERS = {
    "content-security-policy": f"{POLICY}; frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
}
_KEPT = "private, max-age=31536000, immutable"  # its address changes with what it holds


class ViewApplication:
    """The pages over a store as an HTTP application."""

    def __init__(self, shelf: Shelf) -> None:
        self._site = Site(shelf, Served())

    def application(self) -> Starlette:
        """As ASGI."""
        return Starlette(
            routes=[
                Route("/assets/{name}", _asset, methods=["GET"]),
                Route("/{path:path}", self._answer, methods=["GET"]),
            ],
            exception_handlers={HTTPException: self._refuse_route, Problem: self._refuse},
        )

    def _answer(self, request: Request) -> Response:  # a plain function: run in a thread
        path = request.path_params["path"]
        fields = dict(request.query_params)
        if not path and (user := fields.pop("user", None)):  # of the filter: their own list
            return RedirectResponse(Served().link("", f"turns/{user}", fields, ""), 303, _HEADERS)
        return _html(request, self._site.render(path, fields))

    async def _refuse(self, request: Request, exc: Exception) -> Response:
        assert isinstance(exc, Problem)
        status, html = self._site.render_error(request.url.path.strip("/"), exc)
        return _html(request, html, status)

    async def _refuse_route(self, request: Request, exc: Exception) -> Response:
        """Of a path or a method that there is not."""
        assert isinstance(exc, HTTPException)
        if exc.status_code == 405:
            return Response("read only\n", 405, {**_HEADERS, **(exc.headers or {})}, media_type="text/plain")
        return await self._refuse(request, NotFoundError("there is no such page", where=request.url.path))


def _html(request: Request, html: str, status: int = 200) -> Response:
    body = html.encode("utf-8", errors="replace")
    tag = f'"{hashlib.sha256(body).hexdigest()[:24]}"'
    headers = {**_HEADERS, "cache-control": "private, no-cache", "etag": tag}
    if status == 200 and tag in request.headers.get("if-none-match", ""):
        return Response(status_code=304, headers=headers)
    return Response(body, status, headers, media_type="text/html")


def _asset(request: Request) -> Response:
    name: str = request.path_params["name"]
    if name not in ASSETS:
        raise NotFoundError("there is no such page", where=request.url.path)
    headers: Mapping[str, str] = {**_HEADERS, "cache-control": _KEPT}
    return Response(read_asset(name), headers=headers, media_type=ASSETS[name])
