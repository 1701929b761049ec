"""Searching the web: one small interface, a SearXNG server or saved result pages behind it."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import urlencode

from panda.documents.json_text import load_json
from panda.documents.text import one_line
from panda.errors import UsageError, WebError
from panda.language.words import split_terms
from panda.web.client import WebClient
from panda.web.markup import HtmlElement, clean_text, parse_html, squeeze

_MOST_RESULTS = 20
_SNIPPET_CHARS = 400


@dataclass(frozen=True)
class SearchResult:
    """One result of a search."""

    url: str
    """Address of the page."""
    title: str
    """As the provider gives it."""
    snippet: str
    """What the provider quotes of the page; may be empty."""


class SearchProvider(Protocol):
    """Finds pages."""

    @property
    def name(self) -> str:
        """As the setting search_provider names it."""
        ...

    def search(self, phrase: str) -> list[SearchResult]:
        """
        The results for a phrase, best first; [] if there are none.

        Raises:
            WebError: The search cannot be done.
        """
        ...


def open_provider(setting: str | None, web: WebClient) -> SearchProvider:
    """
    The provider that a setting names.

    Args:
        setting: "searxng:URL" or "file:DIRECTORY"; None if nothing is set.
        web: Reads the server's answers.

    Raises:
        UsageError: Nothing is set.
    """
    kind, _, place = (setting or "").partition(":")
    if kind == "searxng":
        return _SearXng(place, web)
    if kind == "file":
        return _SavedResults(Path(place))
    raise UsageError(
        "no search provider is configured",
        where="search_provider",
        fix='set search_provider = "searxng:http://localhost:8888" or "file:DIRECTORY" in panda.toml',
    )


class _SearXng:
    """A SearXNG server, by its JSON API."""

    def __init__(self, url: str, web: WebClient) -> None:
        self.name = f"searxng:{url}"
        self._url = url.rstrip("/") + "/search"
        self._web = web

    def search(self, phrase: str) -> list[SearchResult]:
        asked = urlencode({"q": phrase, "format": "json"})
        page = self._web.fetch(f"{self._url}?{asked}", robots=False)
        try:
            value = load_json(page.text or "")
        except ValueError as exc:
            fix = "enable the format json in the server's settings.yml (search.formats)"
            raise WebError("the search server's answer is no JSON", where=self.name, fix=fix) from exc
        return list(_json_results(value, self.name))[:_MOST_RESULTS]


class _SavedResults:
    """Saved result pages in a directory: JSON as SearXNG gives it, or HTML."""

    def __init__(self, directory: Path) -> None:
        self.name = f"file:{directory}"
        self._directory = directory

    def search(self, phrase: str) -> list[SearchResult]:
        """Saved results that share a word with the phrase, those that share most first."""
        try:
            paths = sorted(p for p in self._directory.iterdir() if p.suffix in (".json", ".html", ".htm"))
            texts = [(path, path.read_text(encoding="utf-8", errors="replace")) for path in paths]
        except OSError as exc:
            raise WebError(f"the saved results cannot be read: {exc.strerror}", where=self.name) from exc
        found: dict[str, SearchResult] = {}
        for path, text in texts:
            for result in _results_of(path, text):
                found.setdefault(result.url, result)
        wanted = set(split_terms(phrase))
        scores = {url: len(wanted & set(split_terms(f"{r.title} {r.snippet}"))) for url, r in found.items()}
        ranked = sorted((url for url in found if scores[url]), key=lambda url: -scores[url])
        return [found[url] for url in ranked[:_MOST_RESULTS]]


def _results_of(path: Path, text: str) -> Iterator[SearchResult]:
    if path.suffix != ".json":
        yield from _html_results(parse_html(clean_text(text)))
        return
    try:
        value = load_json(text)
    except ValueError as exc:
        raise WebError(f"a saved result page is no JSON: {exc}", where=str(path)) from exc
    yield from _json_results(value, str(path))


def _json_results(value: Any, where: str) -> Iterator[SearchResult]:
    results = value.get("results") if isinstance(value, Mapping) else None
    if not isinstance(results, list):
        raise WebError("the answer has no list of results", where=where)
    for result in results:
        if isinstance(result, Mapping) and str(result.get("url", "")).startswith(("http://", "https://")):
            snippet = one_line(str(result.get("content") or ""))[:_SNIPPET_CHARS]
            yield SearchResult(str(result["url"]), one_line(str(result.get("title") or "")), snippet)


def _html_results(root: HtmlElement | None) -> Iterator[SearchResult]:
    """Links in headings, each with the text that follows it."""
    for link in root.iter("a") if root is not None else ():
        url = link.get("href") or ""
        heading = next(
            (e for e in (link, *link.iterancestors()) if re.fullmatch(r"h[2-4]", str(e.tag))), None
        )
        if heading is None and next((e for e in link if re.fullmatch(r"h[2-4]", str(e.tag))), None) is None:
            continue
        if url.startswith(("http://", "https://")):
            block = (heading if heading is not None else link).getparent()
            title = squeeze(link.text_content())
            text = squeeze(block.text_content()).replace(title, "", 1) if block is not None else ""
            yield SearchResult(url, title, text.strip()[:_SNIPPET_CHARS])
