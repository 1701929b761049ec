"""
What a page says, read in a worker process: whoever wrote a page cannot hang panda or fill its memory with it.

The modules beside this one that parse (decoding, robots, markup, structured, extraction, results) are called
through here alone, so that their libraries are loaded in the worker and nowhere else.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import TypeVar

from panda.errors import WebError
from panda.isolation import WorkerLimits, prepare_worker, run_isolated
from panda.web.addresses import Url
from panda.web.decoding import decode_body
from panda.web.extraction import Extraction, extract_page, load_parsers
from panda.web.markup import Control, read_controls
from panda.web.page import Page
from panda.web.results import SearchResult, parse_html_results, parse_json_results
from panda.web.robots import may_fetch

LIMITS = WorkerLimits(seconds=10, memory_bytes=700_000_000)
"""What each of the readings of one page may take."""

_Value = TypeVar("_Value")


def prepare_reading() -> None:
    """Have a worker load what reads pages, while this process asks for the page."""
    prepare_worker(load_parsers)


def decode_page(body: bytes, content_type: str, *, where: str) -> tuple[str, str]:
    """Return the text of a page and its charset; see `decode_body`."""
    return _read(partial(decode_body, body, content_type), where)


def read_page(page: Page) -> Extraction:
    """Return what a page gives; see `extract_page`."""
    return _read(partial(extract_page, page), page.final_url)


def read_page_controls(page: Page, at: Url) -> list[Control]:
    """Return what can be done on a page; see `read_controls`."""
    return _read(partial(read_controls, page.text or "", at), page.final_url)


def read_json_results(text: str, *, where: str) -> Sequence[SearchResult]:
    """Return the results in the JSON of a search engine; see `parse_json_results`."""
    return _read(partial(parse_json_results, text, where), where)


def read_html_results(text: str, *, where: str) -> Sequence[SearchResult]:
    """Return the results in a saved page of results; see `parse_html_results`."""
    return _read(partial(parse_html_results, text), where)


def robots_allow(text: str, url: Url) -> bool:
    """Return whether a robots.txt allows an address to be read."""
    return not text.strip() or _read(partial(may_fetch, text, str(url)), f"{url.origin}/robots.txt")


def _read(call: Callable[[], _Value], where: str) -> _Value:
    return run_isolated(call, limits=LIMITS, where=where, error=WebError, fix="open it in a browser")
