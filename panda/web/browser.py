"""
Pages that need scripts, in a Chromium that reaches nothing by itself; the only importer of playwright.

Each of its requests is answered by the client, under the rules of pages, or refused: only GET, only what may
be asked for, a hundred a page. What would go past that meets a proxy that is not there.
"""

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import Any

from panda.errors import UsageError, WebError
from panda.web.addresses import Url, parse_url
from panda.web.client import WebClient
from panda.web.markup import BUTTONS
from panda.web.page import Page

_PROGRAMS = ("chromium", "chromium-browser", "google-chrome")
_MOST_REQUESTS = 100
_QUIET_SECONDS = 2.0
_SEALED = (
    "--host-resolver-rules=MAP * ~NOTFOUND",
    "--webrtc-ip-handling-policy=disable_non_proxied_udp",
)
_NOWHERE: Any = {"server": "http://127.0.0.1:9", "bypass": "<-loopback>"}


class Browser:
    """One tab."""

    def __init__(self, tab: Any, client: WebClient, check: Callable[[Url], None]) -> None:
        self._tab, self._client, self._check = tab, client, check
        self._document: str | None = None  # answers the next navigation
        self._left = 0  # requests
        tab.context.route("**/*", self._answer)
        tab.context.route_web_socket("**/*", lambda socket: socket.close())

    def open(self, page: Page) -> Page:
        """A page as its scripts make it."""
        self._document = page.text
        return self._after(page, lambda limit: self._tab.goto(page.final_url, timeout=limit))

    def press(self, page: Page, number: int) -> Page:
        """What becomes of the page that is open when the button of that number is pressed."""
        return self._after(page, lambda limit: self._tab.locator(BUTTONS).nth(number).click(timeout=limit))

    def picture(self) -> bytes:
        """What is seen of the page, a PNG."""
        return bytes(self._tab.screenshot())

    def _after(self, page: Page, act: Callable[[float], object]) -> Page:
        from playwright.sync_api import Error

        self._left = _MOST_REQUESTS
        try:
            act(self._client.timeout_seconds * 1000)
            with suppress(Error):  # some pages never rest
                self._tab.wait_for_load_state("networkidle", timeout=_QUIET_SECONDS * 1000)
            text, url = str(self._tab.content()), str(parse_url(str(self._tab.url)))
        except Error as exc:
            message = f"the browser does not open it: {exc.message.splitlines()[0]}"
            raise WebError(message, where=page.final_url) from exc
        made = replace(page, final_url=url, media_type="text/html", charset="utf-8", text=text)
        return replace(made, etag=None, last_modified=None)  # those of the page without its scripts

    def _answer(self, route: Any) -> None:
        request, document = route.request, self._document
        if document is not None and request.is_navigation_request():
            self._document = None
            route.fulfill(content_type="text/html; charset=utf-8", body=document)
            return
        try:
            if request.method != "GET" or not self._left:
                raise WebError("not asked for", where=str(request.url))
            self._left -= 1
            kind, body = self._client.load(str(request.url), self._check)
        except WebError:
            route.abort("blockedbyclient")
        else:
            route.fulfill(headers={"content-type": kind}, body=body)


@contextmanager
def open_browser(client: WebClient, check: Callable[[Url], None]) -> Iterator[Browser]:
    """
    A browser that asks for nothing that *check* raises for. Raises UsageError: its client or Chromium is not
    installed.
    """
    try:
        from playwright.sync_api import Error, sync_playwright
    except ImportError as exc:
        message, fix = (
            "web_browser is on, and playwright is not installed",
            "pip install 'panda-turns[browser]'",
        )
        raise UsageError(message, where="web_browser", fix=fix) from exc
    program = next(filter(None, map(shutil.which, _PROGRAMS)), None)
    sandboxed = os.geteuid() != 0  # Chromium has no sandbox for root
    with sync_playwright() as driver:
        try:
            chromium = driver.chromium.launch(
                executable_path=program, chromium_sandbox=sandboxed, args=_SEALED, proxy=_NOWHERE
            )
        except Error as exc:
            message = f"web_browser is on, and no Chromium starts: {exc.message.splitlines()[0]}"
            fix = "apt-get install chromium, or playwright install chromium"
            raise UsageError(message, where="web_browser", fix=fix) from exc
        try:
            context = chromium.new_context(service_workers="block", accept_downloads=False)
            yield Browser(context.new_page(), client, check)
        finally:
            chromium.close()
