"""A browser that opens pages as their scripts make them; an add-on brings it."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Protocol

from panda.addon_registry import find_page_browser
from panda.errors import UsageError
from panda.web.addresses import Url
from panda.web.client import WebClient
from panda.web.page import Page


class PageBrowser(Protocol):
    """One tab. Its methods raise WebError for what cannot be had of a page."""

    def open(self, page: Page) -> Page:
        """Return a page as its scripts make it."""

    def press(self, page: Page, number: int) -> Page:
        """Return what becomes of the page that is open when the button of that number is pressed."""

    def picture(self, page: Page) -> bytes:
        """Return what is seen of the page that is open, a PNG."""


class OpenBrowser(Protocol):
    """Starts a browser that asks for nothing that *check* raises for, and ends it."""

    def __call__(
        self, client: WebClient, check: Callable[[Url], None], /
    ) -> AbstractContextManager[PageBrowser]: ...


def open_page_browser(client: WebClient, check: Callable[[Url], None]) -> AbstractContextManager[PageBrowser]:
    """
    Start the browser of an add-on.

    Args:
        client: Makes the requests of pages, under the rules of pages.
        check: Raises for an address that may not be asked for.

    Raises:
        UsageError: No add-on brings a browser, or it does not start.
    """
    open_browser: OpenBrowser | None = find_page_browser()
    if open_browser is None:
        fix = "install panda again with its add-on browser, or set web_browser = false"
        raise UsageError("web_browser is on, and there is no browser", where="web_browser", fix=fix)
    return open_browser(client, check)
