"""What a page says of itself for machines: JSON-LD, microdata and meta tags as fields. Pure."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from html import unescape
from typing import Any

from panda.documents.json_text import load_json
from panda.web.markup import clean_text, parse_html, squeeze, text_of

_SYMBOLS = {"USD": "$", "EUR": "€", "GBP": "£", "JPY": "¥", "INR": "₹"}
PRODUCTS = frozenset(
    ("Product", "ProductGroup", "IndividualProduct", "ProductModel", "Vehicle", "Book", "SoftwareApplication")
)
ARTICLES = frozenset(
    ("Article", "NewsArticle", "BlogPosting", "TechArticle", "Report", "ScholarlyArticle", "Review")
)
_LISTS = frozenset(("ItemList", "OfferCatalog", "SearchResultsPage", "CollectionPage"))
_ASIDE = frozenset(
    ("isRelatedTo", "isSimilarTo", "isAccessoryOrSparePartFor", "isConsumableFor", "itemListElement")
)
_AVAILABILITY = {
    "instock": "In Stock",
    "outofstock": "Out of Stock",
    "soldout": "Sold Out",
    "preorder": "Pre-order",
    "presale": "Pre-order",
    "backorder": "Back-order",
    "limitedavailability": "Limited availability",
    "instoreonly": "In store only",
    "onlineonly": "Online only",
    "discontinued": "Discontinued",
    "madetoorder": "Made to order",
    "reserved": "Reserved",
}
_OF_OFFER = ("price", "priceCurrency", "availability", "itemCondition", "lowPrice", "highPrice")
_OF_RATING = ("ratingValue", "reviewCount", "ratingCount", "bestRating")
_TAG = re.compile(r"<[a-z/!][^<>]{0,200}>", re.IGNORECASE)
_MOST_DEPTH = 12
_TEXT_CHARS = 600
_SOURCE_CHARS = 6_000
"""Of a text with its tags and entities, before it is cut to those."""


def parse_json_ld(scripts: Sequence[str]) -> list[Any]:
    """
    The JSON-LD values of a page; scripts that are no JSON are left out.

    >>> parse_json_ld(['<!-- {"@type": "Product"} -->', "{broken"])
    [{'@type': 'Product'}]
    """
    values: list[Any] = []
    for script in scripts:
        try:
            value = load_json(_unwrap(script), strict=False)
        except (ValueError, RecursionError):
            continue
        values += value if isinstance(value, list) else [value]
    return values


def _unwrap(script: str) -> str:
    """A script without the comment or CDATA section that may stand around it."""
    text = script.strip()
    for start in ("<!--", "//", "<![CDATA["):
        text = text.removeprefix(start).lstrip()
    text = text.removesuffix(";").rstrip()
    for end in ("-->", "]]>", "//"):
        text = text.removesuffix(end).rstrip()
    return text


def find_nodes(value: Any, wanted: frozenset[str], depth: int = -1) -> Iterator[Mapping[str, Any]]:
    """The outermost nodes of the wanted types that are about the page itself, in document order."""
    if depth > _MOST_DEPTH:
        return
    inside: Iterable[Any] = value if isinstance(value, list) else ()
    if isinstance(value, Mapping):
        types = {name.rsplit("/", 1)[-1] for name in _as_list(value.get("@type")) if isinstance(name, str)}
        if types & wanted:
            yield value
        else:
            inside = (part for key, part in value.items() if key not in _ASIDE)
    for inner in inside:
        yield from find_nodes(inner, wanted, depth + 1)


def find_listed(values: Sequence[Any]) -> list[Mapping[str, Any]]:
    entries = [entry for node in find_nodes(values, _LISTS) for entry in _nodes(node.get("itemListElement"))]
    items = [entry.get("item", entry) for entry in entries]
    return [item for item in items if isinstance(item, Mapping) and _text(item.get("name"))]


def product_fields(node: Mapping[str, Any]) -> dict[str, Any]:
    """
    A product as fields, only what is said: title, price or lowest_price and highest_price, availability,
    offers (if there are several), brand, model, sku, seller, rating, condition, specs, description.
    """
    offers = _nodes(node.get("offers")) or [
        {**offer, "name": variant.get("name")}
        for variant in _nodes(node.get("hasVariant"))
        for offer in _nodes(variant.get("offers"))
    ]
    rows = [row for offer in offers if (row := _offer(offer))]
    fields: dict[str, Any] = {"title": _text(node.get("name")), "offers": rows}
    if len({(row.get("price"), row.get("availability")) for row in rows}) == 1:
        own = {key: value for key, value in rows[0].items() if key not in ("name", "seller")}
        fields |= {**own, "seller": rows[0].get("seller") if len(rows) == 1 else None, "offers": None}
    fields["brand"] = _name(node.get("brand")) or _name(node.get("manufacturer"))
    fields["model"] = _name(node.get("model")) or _text(node.get("mpn"))
    fields["sku"] = _text(node.get("sku"))
    fields["rating"] = _rating(node.get("aggregateRating"))
    entries = _nodes(node.get("additionalProperty"))
    specs = {_text(entry.get("name")): _text(entry.get("value")) for entry in entries}
    fields["specs"] = {name: value for name, value in specs.items() if name and value}
    fields["description"] = _text(node.get("description"))
    return _without_empty(fields)


def article_fields(node: Mapping[str, Any]) -> dict[str, Any]:
    """An article as fields: title, author, published_at, modified_at, publisher, description."""
    return _without_empty(
        {
            "title": _text(node.get("headline")) or _text(node.get("name")),
            "author": ", ".join(filter(None, map(_name, _as_list(node.get("author"))))),
            "published_at": _text(node.get("datePublished")),
            "modified_at": _text(node.get("dateModified")),
            "publisher": _name(node.get("publisher")),
            "description": _text(node.get("description")),
        }
    )


def meta_fields(meta: Mapping[str, str]) -> dict[str, Any]:
    """Return what the meta tags say, in the same fields; the weakest source."""
    amount = meta.get("product:price:amount") or meta.get("og:price:amount")
    currency = meta.get("product:price:currency") or meta.get("og:price:currency")
    stock = meta.get("product:availability") or meta.get("og:availability")
    fields = {
        "title": meta.get("og:title") or meta.get("twitter:title"),
        "price": render_price(amount, currency) if amount else None,
        "availability": _stock(stock),
        "brand": meta.get("product:brand"),
        "author": meta.get("author") or meta.get("article:author"),
        "published_at": meta.get("article:published_time"),
        "modified_at": meta.get("article:modified_time"),
        "description": meta.get("description") or meta.get("og:description"),
    }
    return _without_empty(fields)


def microdata_node(values: Mapping[str, str]) -> dict[str, Any]:
    """The node that JSON-LD would have for the properties of a product."""
    offer = {key: values[key] for key in _OF_OFFER if key in values}
    rating = {key: values[key] for key in _OF_RATING if key in values}
    return {**values, "offers": offer, "aggregateRating": rating}


def render_price(amount: object, currency: object) -> str | None:
    """
    >>> render_price("697.00", "USD"), render_price(1299, "EUR"), render_price("15", "PLN")
    ('$697.00', '€1299', '15 PLN')
    """
    text = re.sub(r"(?<=\d)\s(?=\d)", "", _text(amount))
    if not re.search(r"\d", text):
        return None
    if re.search(r"[^\d.,' \u00a0]", text):
        return text[:40]
    code = _text(currency).upper()
    symbol = _SYMBOLS.get(code)
    return f"{symbol}{text}" if symbol else f"{text} {code}".strip()


def _offer(offer: Mapping[str, Any]) -> dict[str, str]:
    specification: Mapping[str, Any] = next(iter(_nodes(offer.get("priceSpecification"))), {})
    currency = offer.get("priceCurrency") or specification.get("priceCurrency")
    low, high = (render_price(offer.get(key), currency) for key in ("lowPrice", "highPrice"))
    price = render_price(offer.get("price", specification.get("price")), currency)
    price = price or (low if low == high else None)
    row = {
        "name": _text(offer.get("name")),
        "seller": _name(offer.get("seller")),
        "price": price,
        "lowest_price": None if price else low,
        "highest_price": None if price else high,
        "availability": _stock(offer.get("availability")),
        "condition": re.sub(r"Condition\Z", "", _text(offer.get("itemCondition")).rsplit("/", 1)[-1]),
    }
    return _without_empty(row)


def _stock(value: object) -> str | None:
    text = _text(value)
    name = re.sub(r"[^a-z]", "", text.rsplit("/", 1)[-1].lower())
    return _AVAILABILITY.get(name) or (text if text and "/" not in text else None)


def _rating(value: object) -> str | None:
    if not isinstance(value, Mapping) or not _text(value.get("ratingValue")):
        return None
    count = _text(value.get("reviewCount")) or _text(value.get("ratingCount"))
    best = _text(value.get("bestRating")) or "5"
    return f"{_text(value['ratingValue'])} of {best}" + (f" from {count} reviews" if count else "")


def _name(value: object) -> str:
    if isinstance(value, list):
        return _name(value[0]) if value else ""
    return _text(value.get("name")) if isinstance(value, Mapping) else _text(value)


def _text(value: object) -> str:
    if isinstance(value, Mapping):
        value = value.get("@value")
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return ""
    text = unescape(str(value)[:_SOURCE_CHARS])
    root = parse_html(clean_text(text)) if _TAG.search(text) else None
    return squeeze(text)[:_TEXT_CHARS] if root is None else text_of(root, _TEXT_CHARS)


def _as_list(value: object) -> list[Any]:
    if isinstance(value, list):
        return value
    return [] if value is None else [value]


def _nodes(value: object) -> list[Mapping[str, Any]]:
    return [entry for entry in _as_list(value) if isinstance(entry, Mapping)]


def _without_empty(fields: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in fields.items() if value}
