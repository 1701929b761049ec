"""
Pages that need scripts, in a Chromium that reaches nothing by itself; the only importer of playwright.

Each of its requests is answered by the client, under the rules of pages, or refused: only GET, only what may
be asked for, a hundred a page. What would go past that meets a proxy that is not there.

A script can keep Chromium busy for ever, so nothing is left to it: a thread watches each page from outside,
and kills Chromium at the deadline of the page or at a limit of memory. The next page gets a new one.
"""

import os
import shutil
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from panda.errors import UsageError, WebError
from panda.web.addresses import Url, parse_url
from panda.web.client import MOST_BYTES, WebClient
from panda.web.markup import BUTTONS
from panda.web.page import Page

_PROGRAMS = ("chromium", "chromium-browser", "google-chrome")
_MOST_REQUESTS = 100
_QUIET_SECONDS = 2.0
_MAX_PROCESS_BYTES = 1_500_000_000
"""Most memory of each of Chromium's processes, shared memory not counted."""
_WATCH_SECONDS = 0.25
_CLICK_SECONDS = 5.0
_CLOSE_SECONDS = 5.0
_SEALED = (
    "--host-resolver-rules=MAP * ~NOTFOUND",
    "--webrtc-ip-handling-policy=disable_non_proxied_udp",
)
_PERMITTED_BY_PLAYWRIGHT = ("--disable-popup-blocking",)
_NOWHERE: Any = {"server": "http://127.0.0.1:9", "bypass": "<-loopback>"}
_CONTENT = "document.documentElement.outerHTML.slice(0, {most_chars})"


class Browser:
    """One tab of a Chromium that is started anew after a page that it had to be killed for."""

    def __init__(self, driver: Any, client: WebClient, check: Callable[[Url], None]) -> None:
        self._driver = driver
        self._client = client
        self._check = check
        self._chromium: Any = None
        self._tab: Any = None
        self._group = 0  # id of Chromium's process group
        self._watch: _Watch | None = None  # of the page that is at work
        self._document: str | None = None  # answers the next navigation
        self._left = 0  # requests

    def start(self) -> None:
        """Raises UsageError: no Chromium starts."""
        from playwright.sync_api import Error

        program = next(filter(None, map(shutil.which, _PROGRAMS)), None)
        sandboxed = os.geteuid() != 0  # Chromium has no sandbox for root
        try:
            self._chromium = self._driver.chromium.launch(
                executable_path=program,
                chromium_sandbox=sandboxed,
                args=_SEALED,
                ignore_default_args=_PERMITTED_BY_PLAYWRIGHT,
                proxy=_NOWHERE,
            )
            processes = self._chromium.new_browser_cdp_session().send("SystemInfo.getProcessInfo")
            (browser_id,) = (entry["id"] for entry in processes["processInfo"] if entry["type"] == "browser")
            self._group = os.getpgid(browser_id)
            assert self._group != os.getpgrp(), "Chromium runs in the process group of panda"
            context = self._chromium.new_context(service_workers="block", accept_downloads=False)
            context.route("**/*", self._answer)
            context.route_web_socket("**/*", lambda socket: socket.close())
            self._tab = context.new_page()
        except Error as exc:
            message = f"web_browser is on, and no Chromium starts: {exc.message.splitlines()[0]}"
            fix = "apt-get install chromium, or playwright install chromium"
            raise UsageError(message, where="web_browser", fix=fix) from exc

    def close(self) -> None:
        """End Chromium, by force if it does not end."""
        from playwright.sync_api import Error

        chromium, self._chromium, self._tab = self._chromium, None, None
        if chromium is not None:
            with suppress(Error), _watched(self._group, _CLOSE_SECONDS):
                chromium.close()

    def open(self, page: Page) -> Page:
        """A page as its scripts make it."""
        if self._tab is None:
            self.start()
        self._document = page.text
        return self._after(page, lambda: self._tab.goto(page.final_url, timeout=0))

    def press(self, page: Page, number: int) -> Page:
        """Press the button of that number on the open page, and return the page as it is then."""
        if self._tab is None:
            raise WebError("the browser has ended, and the page is not open any more", where=page.final_url)
        limit = min(_CLICK_SECONDS, self._client.timeout_seconds / 2) * 1000  # some buttons are covered
        return self._after(page, lambda: self._tab.locator(BUTTONS).nth(number).click(timeout=limit))

    def picture(self, page: Page) -> bytes:
        """Return a picture of the open page, a PNG."""
        if self._tab is None:
            raise WebError("the browser has ended, and the page is not open any more", where=page.final_url)
        with self._within_limits(page):
            return bytes(self._tab.screenshot(timeout=0))

    def _after(self, page: Page, act: Callable[[], object]) -> Page:
        from playwright.sync_api import Error

        self._left = _MOST_REQUESTS
        with self._within_limits(page):
            act()
            with suppress(Error):  # some pages never rest
                self._tab.wait_for_load_state("networkidle", timeout=_QUIET_SECONDS * 1000)
            text = self._content()
            url = str(parse_url(str(self._tab.url)))
        if len(text) > MOST_BYTES:
            most = f"{MOST_BYTES / 1e6:g} MB, the most that is read"
            raise WebError(f"its scripts make it more than {most}", where=page.final_url)
        rendered = replace(page, final_url=url, media_type="text/html", charset="utf-8", text=text)
        return replace(rendered, etag=None, last_modified=None)  # those of the page without its scripts

    def _content(self) -> str:
        """The page as HTML, cut there, one character beyond the limit, in a world without its scripts."""
        session = self._tab.context.new_cdp_session(self._tab)
        frame_id = session.send("Page.getFrameTree")["frameTree"]["frame"]["id"]
        world = session.send("Page.createIsolatedWorld", {"frameId": frame_id})
        expression = _CONTENT.format(most_chars=MOST_BYTES + 1)
        order = {"expression": expression, "contextId": world["executionContextId"], "returnByValue": True}
        content = str(session.send("Runtime.evaluate", order)["result"].get("value", ""))
        session.detach()
        return content

    @contextmanager
    def _within_limits(self, page: Page) -> Iterator[None]:
        """Kill Chromium at the deadline for a page as a whole, or at its limit of memory. Raises WebError."""
        from playwright.sync_api import Error

        with _watched(self._group, self._client.timeout_seconds) as self._watch:
            try:
                yield
            except Error as exc:
                message = self._watch.reason
                if not message:
                    message = f"the browser does not open it: {exc.message.splitlines()[0]}"
                if self._watch.reason or "crashed" in exc.message or not self._chromium.is_connected():
                    self.close()
                raise WebError(message, where=page.final_url, fix="open it in a browser") from exc

    def _answer(self, route: Any) -> None:
        from playwright.sync_api import Error

        with suppress(Error):  # Chromium was killed meanwhile
            self._fulfill(route)

    def _fulfill(self, route: Any) -> None:
        request = route.request
        document = self._document
        if document is not None and request.is_navigation_request():
            self._document = None
            route.fulfill(content_type="text/html; charset=utf-8", body=document)
            return
        try:
            seconds = self._watch.seconds_left() if self._watch else 0.0
            if request.method != "GET" or not self._left or seconds <= 0:
                raise WebError("not asked for", where=str(request.url))
            self._left -= 1
            kind, body = self._client.load(str(request.url), self._check, seconds=seconds)
        except WebError:
            route.abort("blockedbyclient")
        else:
            route.fulfill(headers={"content-type": kind}, body=body)


class _Watch(threading.Thread):
    """Kills a process group at a deadline, or when one of its processes holds too much memory."""

    def __init__(self, group: int, seconds: float) -> None:
        super().__init__(daemon=True)
        self.reason = ""  # why it was killed
        self._group = group
        self._seconds = seconds
        self._end = time.monotonic() + seconds
        self._done = threading.Event()

    def seconds_left(self) -> float:
        return self._end - time.monotonic()

    def run(self) -> None:
        while not self._done.wait(max(0.0, min(_WATCH_SECONDS, self.seconds_left()))):
            if self.seconds_left() <= 0:
                limit = f"{self._seconds:g} seconds, the most that is allowed (web_timeout_seconds)"
                self.reason = f"the browser needs more than {limit}"
            elif _largest_process_bytes(self._group) > _MAX_PROCESS_BYTES:
                most = f"{_MAX_PROCESS_BYTES / 1e6:,.0f} MB"
                self.reason = f"the browser needs more than {most} of memory, the most that is allowed"
            if self.reason:
                with suppress(ProcessLookupError, PermissionError):
                    os.killpg(self._group, signal.SIGKILL)
                return

    def end(self) -> None:
        self._done.set()
        self.join()


@contextmanager
def _watched(group: int, seconds: float) -> Iterator[_Watch]:
    watch = _Watch(group, seconds)
    watch.start()
    try:
        yield watch
    finally:
        watch.end()


def _largest_process_bytes(group: int) -> int:
    """The most memory that a process of a group holds for itself; 0 where the system does not tell."""
    largest = 0
    for directory in Path("/proc").glob("[0-9]*"):
        with suppress(OSError, ValueError, IndexError):
            if os.getpgid(int(directory.name)) == group:
                fields = (directory / "statm").read_text().split()
                own_pages = int(fields[1]) - int(fields[2])
                largest = max(largest, own_pages * os.sysconf("SC_PAGE_SIZE"))
    return largest


@contextmanager
def open_browser(client: WebClient, check: Callable[[Url], None]) -> Iterator[Browser]:
    """
    A browser that asks for nothing that *check* raises for. Raises UsageError: its client or Chromium is not
    installed.
    """
    try:
        from playwright.sync_api import sync_playwright
    except ImportError as exc:
        message = "web_browser is on, and playwright is not installed"
        fix = "pip install 'panda-turns[browser]'"
        raise UsageError(message, where="web_browser", fix=fix) from exc
    with sync_playwright() as driver:
        browser = Browser(driver, client, check)
        browser.start()
        try:
            yield browser
        finally:
            browser.close()
