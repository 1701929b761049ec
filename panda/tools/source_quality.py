"""How much a search result promises, before it is read. Pure."""

import re
from collections.abc import Collection, Mapping
from urllib.parse import urlsplit

from panda.documents.evidence import find_claims
from panda.language.words import split_terms
from panda.web.search import SearchResult

_PUBLIC = re.compile(r"\.(?:gov|edu|mil|int)(?:\.[a-z]{2})?\Z|\.ac\.[a-z]{2}\Z")
_POOR = re.compile(
    r"pinterest|coupon|promo-?code|dealspotr|fandom\.com|quora\.com|answers\.com", re.IGNORECASE
)
_TALK = re.compile(r"reddit\.|forum|facebook\.|twitter\.|\bx\.com|tiktok\.|youtube\.", re.IGNORECASE)
_LIST = re.compile(r"/(?:tag|category|search|login|cart)(?:/|\?|\Z)|[?&]q=", re.IGNORECASE)


def site_of(url: str) -> str:
    """
    The site of an address, without www.

    >>> site_of("https://www.bestbuy.com/site/x")
    'bestbuy.com'
    """
    return urlsplit(url).netloc.rpartition("@")[2].lower().removeprefix("www.")


def judge_source(
    result: SearchResult,
    query: str,
    kind: str,
    *,
    rank: int,
    known: Mapping[str, float],
    taken: Collection[str],
) -> float:
    """
    How much a result promises, 0 to 1.

    Args:
        result: The result.
        query: What is looked for.
        kind: prices, comparison, facts, howto or news.
        rank: Place among the results, from 0.
        known: extraction_quality of sites that were read before.
        taken: Sites that a better result comes from already.

    >>> good = SearchResult("https://shop.example/loq", "Lenovo LOQ 15", "In stock for $697.00")
    >>> poor = SearchResult("http://coupons.example/tag/x", "Coupons", "")
    >>> judge = lambda r: judge_source(r, "price of the Lenovo LOQ 15", "prices", rank=0, known={}, taken=())
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
    score += 0.2 * (known[site] - 0.5) if site in known else 0.0
    score -= 0.25 if _POOR.search(site) else 0.0
    score -= 0.1 if _LIST.search(result.url) else 0.0
    score -= 0.15 if site in taken else 0.0
    return round(max(0.0, min(1.0, score)), 2)
