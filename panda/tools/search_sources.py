"""What is asked of a search engine, what it gives, and which of the results are read."""

import logging
import os
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TypeVar
from urllib.parse import urlencode, urlsplit

from panda.documents.evidence import find_claims
from panda.errors import StoreError, UsageError, WebError
from panda.language.words import read_words, split_terms
from panda.retrieval.relevance import find_query_words, share_of_words
from panda.steps.all_steps import EXTRACTION_CHECK, RESEARCH_PHRASES, SOURCE_CHOICE, SOURCE_QUALITY
from panda.steps.options import Option
from panda.steps.step_contract import R, StepContract
from panda.store.files import is_below, read_beneath
from panda.store.records import RatedSource
from panda.tools.tool_contract import Ask, ToolContext
from panda.web.addresses import parse_url
from panda.web.client import WebClient
from panda.web.page_worker import read_html_results, read_json_results
from panda.web.results import SearchResult

_T = TypeVar("_T")
_log = logging.getLogger(__name__)
MAX_SAVED_PAGES = 1_000
"""Most saved pages of results that a search reads."""
MAX_SAVED_BYTES = 10_000_000
"""Size of the largest saved page of results that is read."""
_SAVED_SUFFIXES = (".json", ".html", ".htm")
_MOST_RESULTS = 20
_PUBLIC = re.compile(r"\.(?:gov|edu|mil|int)(?:\.[a-z]{2})?\Z|\.ac\.[a-z]{2}\Z")
_POOR = re.compile(
    r"pinterest|coupon|promo-?code|dealspotr|fandom\.com|quora\.com|answers\.com", re.IGNORECASE
)
_TALK = re.compile(r"reddit\.|forum|facebook\.|twitter\.|\bx\.com|tiktok\.|youtube\.", re.IGNORECASE)
_LIST = re.compile(r"/(?:tag|category|search|login|cart)(?:/|\?|\Z)|[?&]q=", re.IGNORECASE)
_MOST_CANDIDATES = 12
_WANTED: Mapping[str, Sequence[str]] = {
    "prices": ("price", "buy"),
    "comparison": ("review", "comparison"),
    "news": ("news",),
    "howto": ("how to",),
    "facts": (),
}
"""What is looked for along with the subject."""


def open_provider(setting: str | None, web: WebClient) -> Callable[[str], list[SearchResult]]:
    """
    Return a function that searches for a phrase, of a setting "searxng:URL" or "file:DIRECTORY"; UsageError
    without one.
    """
    kind, _, place = (setting or "").partition(":")
    if kind == "searxng":
        return partial(_ask_searxng, place, web)
    if kind == "file":
        return partial(_look_up, Path(place))
    raise UsageError(
        "no search provider is configured",
        where="search_provider",
        fix='set search_provider = "searxng:http://localhost:8888" or "file:DIRECTORY" in panda.toml',
    )


def _ask_searxng(url: str, web: WebClient, phrase: str) -> list[SearchResult]:
    """The results for a phrase, best first; [] if there are none."""
    asked = urlencode({"q": phrase, "format": "json"})
    where = f"searxng:{url}"
    page = web.fetch(f"{url.rstrip('/')}/search?{asked}", robots=False)
    return _with_site(read_json_results(page.text or "", where=where))[:_MOST_RESULTS]


def _look_up(directory: Path, phrase: str) -> list[SearchResult]:
    """
    Results that share a word with the phrase, those that share most first, out of saved pages of results:
    JSON as SearXNG gives it, or HTML.
    """
    results: dict[str, SearchResult] = {}
    for path, text in _read_saved_pages(directory):
        for result in _results_of(path, text):
            results.setdefault(result.url, result)
    wanted = set(split_terms(phrase))
    scores = {url: len(wanted & set(split_terms(f"{r.title} {r.snippet}"))) for url, r in results.items()}
    ranked = sorted((url for url in results if scores[url]), key=lambda url: -scores[url])
    return [results[url] for url in ranked[:_MOST_RESULTS]]


def _read_saved_pages(directory: Path) -> Iterator[tuple[Path, str]]:
    """Yield the saved pages of a directory by name; what is not read, and why, is logged."""
    top = Path(os.path.realpath(directory))
    try:
        names = sorted(name for name in os.listdir(top) if Path(name).suffix in _SAVED_SUFFIXES)  # noqa: PTH208
    except OSError as exc:
        message = f"the saved results cannot be read: {exc.strerror}"
        raise WebError(message, where=f"file:{directory}") from exc
    if len(names) > MAX_SAVED_PAGES:
        _log.warning("%s: of %d saved pages the first %d are read", top, len(names), MAX_SAVED_PAGES)
    for name in names[:MAX_SAVED_PAGES]:
        data = _read_saved_page(top, name)
        if data is not None:
            yield top / name, data.decode("utf-8", errors="replace")


def _read_saved_page(top: Path, name: str) -> bytes | None:
    """Return a file of the directory; None, with the reason in the log, if it is not to be read."""
    target = os.path.realpath(top / name)
    if not is_below(target, str(top)):
        _skip(top / name, f"the link leads out of the directory, to {target}")
        return None
    try:
        data = read_beneath(top, Path(target).relative_to(top).parts, most_bytes=MAX_SAVED_BYTES + 1)
    except UsageError as exc:
        _skip(top / name, exc.message)
        return None
    except StoreError as exc:
        raise WebError(f"the saved results cannot be read: {exc.message}", where=str(top / name)) from exc
    if data is None:
        _skip(top / name, "it is no regular file")
        return None
    if len(data) > MAX_SAVED_BYTES:
        _skip(top / name, f"it is larger than {MAX_SAVED_BYTES / 1e6:g} MB, the most that is read")
        return None
    return data


def _skip(path: Path, reason: str) -> None:
    _log.warning("%s is left out of the search: %s", path, reason)


def _results_of(path: Path, text: str) -> Sequence[SearchResult]:
    if path.suffix == ".json":
        return _with_site(read_json_results(text, where=str(path)))
    return _with_site(read_html_results(text, where=str(path)))


def _with_site(results: Iterable[SearchResult]) -> list[SearchResult]:
    """Return the results whose address is one: a site can be told of it."""
    usable = []
    for result in results:
        with suppress(ValueError):  # a bracket without its other, for example
            site_of(result.url)
            usable.append(result)
    return usable


def site_of(url: str) -> str:
    """The site of an address, without www."""
    return urlsplit(url).netloc.rpartition("@")[2].lower().removeprefix("www.")


def judge_source(
    result: SearchResult,
    query: str,
    kind: str,
    *,
    rank: int,
    site_qualities: Mapping[str, float],
    taken: Collection[str],
) -> float:
    """
    Return how much a result promises, 0 to 1: by its place from 0, the quality of its site, and the sites
    taken.

    >>> good = SearchResult("https://shop.example/loq", "Lenovo LOQ 15", "In stock for $697.00")
    >>> poor = SearchResult("http://coupons.example/tag/x", "Coupons", "")
    >>> def judge(result):
    ...     query = "price of the Lenovo LOQ 15"
    ...     return judge_source(result, query, "prices", rank=0, site_qualities={}, taken=())
    >>> judge(good), judge(poor)
    (0.82, 0.0)
    """
    site = site_of(result.url)
    words = set(split_terms(query))
    shared = len(words & set(split_terms(f"{result.title} {result.snippet}"))) / max(1, len(words))
    score = 0.2 + 0.4 * min(1.0, 1.34 * shared) + 0.1 / (1 + 0.25 * rank)
    claims = {claim.kind for claim in find_claims(result.snippet)}
    if kind in ("prices", "comparison"):
        score += 0.2 if "price" in claims else 0.0
        score -= 0.15 if _TALK.search(site) else 0.0
    else:
        score += 0.15 if _PUBLIC.search(site) else 0.0
        score += 0.05 if "date" in claims and kind == "news" else 0.0
    score += 0.05 if result.url.startswith("https://") else 0.0
    score += 0.2 * (site_qualities[site] - 0.5) if site in site_qualities else 0.0
    score -= 0.25 if _POOR.search(site) else 0.0
    score -= 0.1 if _LIST.search(result.url) else 0.0
    score -= 0.15 if site in taken else 0.0
    return round(max(0.0, min(1.0, score)), 2)


def choose(
    ask: Ask,
    contract: StepContract[R],
    options: Sequence[tuple[Option, _T]],
    chosen_ids: Callable[[R], Sequence[str]],
) -> list[_T]:
    """
    Return what the recipe of a step chooses of some things, each told as an option.

    Args:
        contract: Its step has one set of options.
        chosen_ids: Reads the ids from the reply.
    """
    if not options:
        return []
    (name,) = contract.option_sets
    ids = chosen_ids(ask(contract, options={name: [option for option, _ in options]}))
    return [thing for option, thing in options if option.id in ids]


def choose_read_well(
    ask: Ask, rated: Sequence[tuple[Option, _T]], again: Callable[[_T], tuple[Option, _T] | None]
) -> tuple[list[_T], list[tuple[_T, str]]]:
    """
    Of pages, each told as an option with its quality, those that were read well enough, and the others with
    what is missing. One that is to be read *again* is, once; None if it cannot be.
    """
    well: list[_T] = []
    rejected: list[tuple[_T, str]] = []
    guidance = None
    missing = "it was not read well enough"
    while rated:
        worse = [replace(option, prior=1 - option.prior) for option, _ in rated if guidance is None]
        options = [option for option, _ in rated]
        reply = ask(EXTRACTION_CHECK, options={"accepted": options, "again": worse}, guidance=guidance)
        missing = reply.missing or missing
        anew = []
        for option, thing in rated:
            if option.id in reply.accepted:
                well.append(thing)
            elif option.id in reply.again and (fresh := again(thing)) is not None:
                anew.append(fresh)
            else:
                rejected.append((thing, missing))
        rated = anew
        guidance = f"Read once more: {missing}"
    return well, rejected


def subject_words(query: str) -> list[str]:
    """
    Return the words of a query that name its subject, without those that ask.

    >>> subject_words("How much does the Lenovo LOQ 15 cost?")
    ['Lenovo', 'LOQ', '15']
    """
    words = [plain for word in find_query_words(query) if (plain := re.sub(r"\W+", "", word))]
    asking = read_words("topic_words.txt", "asking")
    return [word for word in words if word.lower() not in asking] or words


def make_phrases(query: str, kind: str, ask: Ask) -> list[str]:
    """The search phrases: the query's words, its subject with what is wanted, a writer's own phrase."""
    names = " ".join(subject_words(query))
    wanted = _WANTED[kind]
    texts = [" ".join(find_query_words(query)), query.strip(" ?."), *(f"{names} {word}" for word in wanted)]
    options = [
        Option(f"s{n}", text, (), share_of_words(query, text))
        for n, text in enumerate(dict.fromkeys(text for text in texts if text), 1)
    ]
    reply = ask(RESEARCH_PHRASES, options={"phrases": options})
    chosen = [option.text for option in options if option.id in reply.phrases] or [options[0].text]
    own = (reply.own_phrase or "").strip()
    if own:
        chosen.insert(0, own)
    return list(dict.fromkeys(chosen))


def choose_sources(
    results: Sequence[SearchResult], query: str, kind: str, context: ToolContext, ask: Ask
) -> list[RatedSource]:
    """All results, best first by their quality, with those marked that are to be read."""
    unique = list({result.url: result for result in results}.values())
    site_qualities = _known_sites(unique, context)
    rated: list[tuple[float, SearchResult]] = []
    taken: list[str] = []
    for rank, result in enumerate(unique):
        rated.append(
            (judge_source(result, query, kind, rank=rank, site_qualities=site_qualities, taken=taken), result)
        )
        taken.append(site_of(result.url))
    rated.sort(key=lambda pair: -pair[0])
    options = [
        Option(f"r{n}", f"{score:.2f} {site_of(r.url)}: {r.title}. {r.snippet}"[:300], (), score)
        for n, (score, r) in enumerate(rated[:_MOST_CANDIDATES], 1)
    ]
    good_options = choose(
        ask, SOURCE_QUALITY, [(option, option) for option in options], lambda reply: reply.results
    )
    worth = [(Option(o.id, o.text.partition(" ")[2], (), o.prior), o.id) for o in good_options]
    read = choose(ask, SOURCE_CHOICE, worth, lambda reply: reply.sources)
    return [
        RatedSource(result.url, result.title, score, chosen=f"r{n}" in read)
        for n, (score, result) in enumerate(rated, 1)
    ]


def _known_sites(results: Sequence[SearchResult], context: ToolContext) -> dict[str, float]:
    urls = []
    for result in results:
        with suppress(WebError):
            urls.append(str(parse_url(result.url)))
    visits_by_url = context.reader.visits(urls)
    return {site_of(url): visit.manifest.extraction_quality or 0.0 for url, visit in visits_by_url.items()}
