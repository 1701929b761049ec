"""The results of a search, as search engines give them. Runs in a worker."""

from collections.abc import Mapping
from dataclasses import dataclass

from panda.documents.json_text import load_json
from panda.documents.safe_text import one_line
from panda.errors import WebError
from panda.web.markup import clean_text, parse_html, text_of

MAX_RESULTS = 1_000
"""Most results that are taken from one page of results."""
_TITLE_CHARS = 300
_SNIPPET_CHARS = 400
_HEADINGS = ("h2", "h3", "h4")
_SCHEMES = ("http://", "https://")


@dataclass(frozen=True)
class SearchResult:
    url: str  # address of the page
    title: str  # as the provider gives it
    snippet: str  # what the provider quotes of the page; may be empty


def parse_json_results(text: str, where: str) -> list[SearchResult]:
    """Return the results in JSON as SearXNG gives it, in order. WebError: it is none, or has no list."""
    try:
        value = load_json(text)
    except (ValueError, RecursionError) as exc:
        why = "nested too deeply" if isinstance(exc, RecursionError) else str(exc)[:200]
        fix = "enable the format json in the server's settings.yml (search.formats)"
        raise WebError(f"the page of results is no JSON: {why}", where=where, fix=fix) from exc
    listed = value.get("results") if isinstance(value, Mapping) else None
    if not isinstance(listed, list):
        raise WebError("the answer has no list of results", where=where)
    results: list[SearchResult] = []
    for entry in listed[:MAX_RESULTS]:
        if isinstance(entry, Mapping) and str(entry.get("url", "")).startswith(_SCHEMES):
            title = one_line(str(entry.get("title") or ""))[:_TITLE_CHARS]
            snippet = one_line(str(entry.get("content") or ""))[:_SNIPPET_CHARS]
            results.append(SearchResult(str(entry["url"]), title, snippet))
    return results


def parse_html_results(text: str) -> list[SearchResult]:
    """Return the links of headings, with the text around them, in order."""
    root = parse_html(clean_text(text))
    results: list[SearchResult] = []
    if root is None:
        return results
    for link in root.iter("a"):
        if len(results) == MAX_RESULTS:
            break
        url = link.get("href") or ""
        heading = next((e for e in (link, *link.iterancestors()) if e.tag in _HEADINGS), None)
        is_title = heading is not None or any(element.tag in _HEADINGS for element in link)
        if is_title and url.startswith(_SCHEMES):
            block = (heading if heading is not None else link).getparent()
            title = text_of(link, _TITLE_CHARS)
            around = text_of(block, _TITLE_CHARS + _SNIPPET_CHARS) if block is not None else ""
            results.append(SearchResult(url, title, around.replace(title, "", 1).strip()[:_SNIPPET_CHARS]))
    return results
