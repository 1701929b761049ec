"""What a research asks a search engine, and which of the results it reads."""

from collections.abc import Sequence
from contextlib import suppress

from panda.choosing.decision import Option
from panda.errors import WebError
from panda.retrieval.relevance import find_query_words, share_of_words
from panda.tools.contract import Ask, ToolContext
from panda.tools.research_files import Source, subject_words
from panda.tools.source_quality import judge_source, site_of
from panda.web.search import SearchResult
from panda.web.url import parse_url

_MOST_CANDIDATES = 12
_PRICE_WORDS = {"prices": ("price", "buy"), "comparison": ("review", "comparison")}
_OTHER_WORDS = {"news": ("news",), "howto": ("how to",), "facts": ()}


def make_phrases(query: str, kind: str, ask: Ask) -> list[str]:
    """
    The search phrases: the query's words, its subject with what is wanted, a writer's own phrase.

    Args:
        query: What to look for.
        kind: prices, comparison, facts, howto or news.
        ask: Asks recipes.
    """
    names = " ".join(subject_words(query))
    wanted = {**_PRICE_WORDS, **_OTHER_WORDS}[kind]
    texts = [" ".join(find_query_words(query)), query.strip(" ?."), *(f"{names} {word}" for word in wanted)]
    options = [
        Option(f"s{n}", text, (), share_of_words(query, text))
        for n, text in enumerate(dict.fromkeys(text for text in texts if text), 1)
    ]
    values = ask("phase4_research_phrases", options={"phrases": options})
    chosen = [option.text for option in options if option.id in values["phrases"]] or [options[0].text]
    own = str(values.get("own_phrase") or "").strip()
    return list(dict.fromkeys([*([own] if own else []), *chosen]))


def choose_sources(
    results: Sequence[SearchResult], query: str, kind: str, context: ToolContext, ask: Ask
) -> list[Source]:
    """
    All results, best first by their quality, with those marked that are to be read.

    Args:
        results: Of all phrases.
        query: What to look for.
        kind: As for make_phrases.
        context: Knows which sites were read before.
        ask: Asks recipes.
    """
    unique = list({result.url: result for result in results}.values())
    known = _known_sites(unique, context)
    rated: list[tuple[float, SearchResult]] = []
    taken: list[str] = []
    for rank, result in enumerate(unique):
        rated.append((judge_source(result, query, kind, rank=rank, known=known, taken=taken), result))
        taken.append(site_of(result.url))
    rated.sort(key=lambda pair: -pair[0])
    options = [
        Option(f"r{n}", f"{score:.2f} {site_of(r.url)}: {r.title}. {r.snippet}"[:300], (), score)
        for n, (score, r) in enumerate(rated[:_MOST_CANDIDATES], 1)
    ]
    if not options:
        return []
    kept = ask("phase4_source_quality", options={"results": options})["results"]
    worth = [Option(o.id, o.text.partition(" ")[2], (), o.prior) for o in options if o.id in kept]
    read = ask("phase4_source_choice", options={"sources": worth})["sources"] if worth else ()
    return [
        Source(result.url, result.title, score, chosen=f"r{n}" in read)
        for n, (score, result) in enumerate(rated, 1)
    ]


def _known_sites(results: Sequence[SearchResult], context: ToolContext) -> dict[str, float]:
    """extraction_quality of the sites of which one of the results was read before."""
    urls = []
    for result in results:
        with suppress(WebError):
            urls.append(str(parse_url(result.url)))
    found = context.reader.visits(urls)
    return {site_of(url): visit.quality for url, visit in found.items()}
