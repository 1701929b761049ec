"""How good an extraction is, from what it found and how its parts agree. Pure."""

from collections.abc import Mapping, Sequence
from typing import Any

from panda.documents.evidence import find_claims
from panda.web.zones import Reading

_WORST, _BEST = 0.05, 0.98
_ENOUGH_WORDS = 60


def judge_extraction(
    page_type: str, fields: Mapping[str, Any], readings: Sequence[Reading], main_text: str
) -> float:
    """
    extraction_quality: how much of what a page of its type should give it gave, less for contradictions.

    A product should give title, price, availability, details, a text, and a price that its text shows too;
    an article title, a text, author and date; a list rows with prices; any other page title and text.

    Args:
        page_type: product, listing, article or page.
        fields: What was extracted, without zones.
        readings: Of the page's blocks.
        main_text: Its main text.

    Returns:
        .05 to .98, two decimals.
    """
    title = bool(fields.get("title"))
    text = min(1.0, len(main_text.split()) / _ENOUGH_WORDS)
    parts: tuple[tuple[float, float], ...]
    if page_type == "product":
        priced = bool(fields.keys() & {"price", "lowest_price", "offers"})
        details = bool(fields.get("specs") or fields.get("description"))
        parts = (
            (0.2, title),
            (0.25, priced or (0.3 if fields.get("prices") else 0)),
            (0.2, bool(fields.get("availability") or fields.get("offers"))),
            (0.2, _is_confirmed(fields, readings)),
            (0.1, details),
            (0.05, text > 0),
        )
    elif page_type == "listing":
        rows = fields.get("products") or []
        named = sum(bool(row.get("name") and row.get("price")) for row in rows)
        parts = ((0.2, title), (0.5, named / max(1, len(rows))), (0.3, min(1.0, len(rows) / 3)))
    elif page_type == "article":
        said = (bool(fields.get("author")), bool(fields.get("published_at")))
        parts = ((0.25, title), (0.5, text), (0.1, said[0]), (0.15, said[1]))
    else:
        parts = ((0.3, title), (0.5, text), (0.2, bool(fields.get("tables")) or text == 1.0))
    broken = any("\ufffd" in reading.block.text for reading in readings)
    score = sum(weight * share for weight, share in parts)
    score -= 0.25 * len(fields.get("disagreements", ())) + 0.1 * broken
    return round(max(_WORST, min(_BEST, score)), 2)


def _is_confirmed(fields: Mapping[str, Any], readings: Sequence[Reading]) -> float:
    """1 if the page's text shows the price, .5 if only its data for machines says it."""
    said = {claim.value for claim in find_claims(str(fields.get("price", ""))) if claim.kind == "price"}
    if not said:
        return 0.0
    shown = {claim.value for r in readings for claim in find_claims(r.block.text) if claim.kind == "price"}
    return 1.0 if said <= shown else 0.5
