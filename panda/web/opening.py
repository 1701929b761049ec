"""The one client of a process through which pages are read, made when it is first asked for."""

from collections.abc import Callable, Sequence
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # loading it takes a quarter of a second
    from panda.web.client import WebClient


def web_opener(allowed: Sequence[str], timeout_seconds: float) -> "Callable[[], WebClient]":
    """
    Gives the client, always the same one.

    Args:
        allowed: Entries of the setting web_allow.
        timeout_seconds: For one page.
    """

    @cache
    def open_web() -> "WebClient":
        from panda.web.addresses import AddressRules, parse_allowed
        from panda.web.client import WebClient

        rules = AddressRules(tuple(parse_allowed(entry) for entry in allowed))
        return WebClient(rules, timeout_seconds=timeout_seconds)

    return open_web
