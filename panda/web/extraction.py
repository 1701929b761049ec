"""What a page gives: its type, data as fields, zones (S3 §22), readable content, and how good that is."""

import logging
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from panda.documents.evidence import find_claims
from panda.documents.json_text import load_json
from panda.documents.markdown import split_units
from panda.documents.safe_text import one_line
from panda.language.text import split_sentences
from panda.language.words import phrases
from panda.web.markup import Markup, MarkupBlock, clean_text, parse_html, read_markup, render_html, with_body
from panda.web.page import Page
from panda.web.structured import (
    ARTICLES,
    PRODUCTS,
    article_fields,
    find_listed,
    find_nodes,
    meta_fields,
    microdata_node,
    parse_json_ld,
    product_fields,
)

_ASIDE_HINTS = re.compile(
    r"related|recommend|similar|also[-_]?(?:bought|viewed|like)|sponsor|carousel|upsell|cross-?sell|recently"
    r"|accessor|advert|\bads?\b|promo|cookie|consent|newsletter|social|share|breadcrumb|paginat|\bmodal\b"
)
_MENU_HINTS = re.compile(r"\b(?:menu|navbar|nav|footer|sidebar|topbar|site-header|masthead)\b")
_REVIEW_HINTS = re.compile(r"review|rating|comment|testimonial|feedback")
_INFO_HINTS = re.compile(
    r"product|spec|feature|detail|descri|summary|highlight|overview|attribut|main|article"
)
_PRICE_HINTS = re.compile(r"price|preis|prix")
_ORDER = ("pricing", "product_info", "reviews", "other", "navigation")
"""Types of zones, the most telling ones first."""
_SITE_TITLE = re.compile(r"\s+[|–—·]\s+[^|–—·]{1,40}\Z")
_PRICE_CHARS = 160
_NAME_BLOCKS = 6
_SENTENCE_CHARS = 200
_MOST_ITEMS = 400
_ENOUGH_WORDS = 60
_SPEC_CHARS = 300
_DATA_CHARS = 5_000
_TITLE_CHARS = 300
_MOST_SPECS = 60
_MOST_PRODUCTS = 100
_MAIN_WORDS = 25
_LONG_WORDS = 250
_WORST = 0.05
_BEST = 0.98


@dataclass(frozen=True)
class Extraction:
    title: str  # of the product, article or page; "" if it has none
    page_type: str  # product, listing, article, page or data
    fields: dict[str, Any]  # the data of extracted.json
    content: str  # readable content as markdown
    quality: float  # extraction_quality, 0 to 1


@dataclass(frozen=True, kw_only=True)
class _BlockReading:
    block: MarkupBlock
    in_menu: bool  # stands in a menu, header or footer
    aside: bool  # stands in a part about other things: menus, related products, advertisements
    prices: tuple[str, ...]
    """Values of the prices of the page's subject, as find_claims gives them; none if struck or aside."""
    stock: bool | None  # what it says of availability; None if nothing
    name: str  # in a list: the name that a price belongs to; "" if none


def load_parsers() -> None:
    """Load what reads most pages; it takes half a second."""
    import trafilatura  # noqa: F401


def extract_page(page: Page) -> Extraction:
    text = clean_text(page.text or "")
    if page.media_type not in ("text/html", "application/xhtml+xml"):
        return _plain(page, text)
    root = parse_html(with_body(text))
    markup = read_markup(root)
    readings = _read_blocks(markup.blocks)
    main_text = "" if root is None else _find_main_text(render_html(root), page.final_url)
    page_type, fields = _identify(markup, readings, main_text)
    prices = [c.value for key in ("price", "lowest_price") for c in find_claims(str(fields.get(key, "")))]
    price_texts: dict[str, str] = {}
    if page_type == "product":
        for reading in readings:
            price_texts |= {c.value: c.text for c in find_claims(reading.block.text) if c.kind == "price"}
        _complete_product(fields, markup, readings, price_texts)
    zones = _find_zones(markup, readings, main_text, prices, is_product=page_type == "product")
    if page_type == "listing" and not fields.get("products"):
        fields["products"] = _listed(readings)
    if markup.tables:
        fields["tables"] = markup.tables
    quality = _judge(page_type, fields, readings, main_text, price_texts)
    content = _content(page_type, fields, markup, readings, main_text)
    return Extraction(str(fields.get("title", "")), page_type, {**fields, "zones": zones}, content, quality)


def _read_blocks(blocks: Sequence[MarkupBlock]) -> list[_BlockReading]:
    readings: list[_BlockReading] = []
    aside_level = 0
    for n, block in enumerate(blocks):
        if (level := block.level) and (not aside_level or level <= aside_level):
            aside_level = level if _finds("asides", block.text) else 0
        in_menu = block.in_navigation or bool(_MENU_HINTS.search(block.hints))
        aside = bool(aside_level or in_menu or _ASIDE_HINTS.search(block.hints))
        prices: tuple[str, ...] = ()
        stock = None
        if len(block.text) <= _PRICE_CHARS and not aside:
            around = phrases("page_text.txt", "within_price").sub("", block.text)
            if not block.struck and block.tag != "h1" and not _finds("side_prices", around):
                prices = tuple(_prices(block.text))
            stock = False if _finds("sold", block.text) else _finds("stocked", block.text) or None
        name = _name_before(blocks, n) if prices or stock is not None else ""
        readings.append(
            _BlockReading(block=block, in_menu=in_menu, aside=aside, prices=prices, stock=stock, name=name)
        )
    return readings


def _finds(group: str, text: str) -> bool:
    return phrases("page_text.txt", group).search(text) is not None


def _name_before(blocks: Sequence[MarkupBlock], n: int) -> str:
    for block in reversed(blocks[max(0, n - _NAME_BLOCKS) : n]):
        if block.in_navigation or block.tag == "h1":
            break
        if 2 <= block.level <= 5 or block.link_share >= 0.5:
            return block.text
    return ""


def _prices(text: str) -> dict[str, str]:
    """The prices in a text, by value, as they are written there."""
    texts: dict[str, str] = {}
    for claim in find_claims(text):
        if claim.kind == "price":
            texts.setdefault(claim.value, claim.text)
    return texts


def _find_main_text(html: str, url: str) -> str:
    import trafilatura  # loaded with the first page: it takes half a second

    logging.getLogger("trafilatura").setLevel(logging.CRITICAL)  # broken pages are reported by us
    text = trafilatura.extract(
        html,
        url=url,
        output_format="markdown",
        include_comments=False,
        include_tables=True,
        favor_recall=True,
    )
    return (text or "").strip()


def _find_zones(
    markup: Markup,
    readings: Sequence[_BlockReading],
    main_text: str,
    prices: Sequence[str],
    *,
    is_product: bool,
) -> list[dict[str, Any]]:
    """
    The zones of a page, the most telling ones first: at most one for each type and confidence, none empty.
    What stands in the main text surely belongs to the page's subject; *prices* are those that it says for
    machines.
    """
    flat = " ".join(main_text.split())
    grouped: dict[tuple[str, float], dict[str, None]] = {}
    if markup.pairs:
        pair_texts = (f"{name}: {value}" for name, value in markup.pairs.items())
        grouped["product_info", 0.95] = dict.fromkeys(pair_texts)
    for reading in readings:
        kind, confidence = _classify(reading, flat, prices, is_product=is_product)
        text = reading.block.text
        if kind == "pricing" and not is_product and reading.name:
            text = f"{reading.name}: {text}"
        items = grouped.setdefault((kind, confidence), {})
        sentences = split_sentences(text) if len(text) > _SENTENCE_CHARS else [text]
        for item in sentences:
            if len(items) < _MOST_ITEMS:
                items[item] = None
    keys = sorted(grouped, key=lambda key: (_ORDER.index(key[0]), -key[1]))
    return [{"type": key[0], "confidence": key[1], "items": list(grouped[key])} for key in keys]


def _classify(
    reading: _BlockReading, main_text: str, prices: Sequence[str], *, is_product: bool
) -> tuple[str, float]:
    block = reading.block
    in_main = block.text in main_text
    is_link_list = block.link_share >= 0.8 and block.tag in ("li", "ul", "div") and not in_main
    if reading.in_menu or is_link_list:
        return "navigation", 0.85
    if reading.aside:
        return "other", 0.3
    if _REVIEW_HINTS.search(block.hints):
        return "reviews", 0.8
    if prices and reading.prices:
        return "pricing", 0.95 if set(reading.prices) & set(prices) else 0.45
    if reading.prices or reading.stock is not None:
        if prices:
            return "pricing", 0.9
        return "pricing", 0.75 if is_product else 0.7
    if block.struck:
        return "other", 0.4
    if is_product and _INFO_HINTS.search(block.hints):
        return "product_info", 0.9 if in_main else 0.7
    return "other", 0.8 if in_main else 0.5


def _judge(
    page_type: str,
    fields: Mapping[str, Any],
    readings: Sequence[_BlockReading],
    main_text: str,
    price_texts: Mapping[str, str],
) -> float:
    """
    extraction_quality, .05 to .98: how much of what such a page should give it gave, less for contradictions.
    A product should give title, price, availability, details, a text, and a price that its text shows too; an
    article title, a text, author and date; a list rows with prices; any other page title and text.
    """
    has = {key for key, value in fields.items() if value}
    text = min(1.0, len(main_text.split()) / _ENOUGH_WORDS)
    title = "title" in has
    parts: tuple[tuple[float, float], ...] = (
        (0.3, title),
        (0.5, text),
        (0.2, "tables" in has or text == 1.0),
    )
    if page_type == "product":
        stated_prices = _prices(str(fields.get("price", ""))).keys()
        shows_price = 0.0
        if stated_prices:
            shows_price = 1.0 if stated_prices <= price_texts.keys() else 0.5
        parts = (
            (0.2, title),
            (
                0.25,
                bool(fields.keys() & {"price", "lowest_price", "offers"}) or (0.3 if "prices" in has else 0),
            ),
            (0.2, bool(has & {"availability", "offers"})),
            (0.2, shows_price),
            (0.1, bool(has & {"specs", "description"})),
            (0.05, text > 0),
        )
    elif page_type == "listing":
        rows = fields.get("products") or []
        named = sum(bool(row.get("name") and row.get("price")) for row in rows)
        parts = ((0.2, title), (0.5, named / max(1, len(rows))), (0.3, min(1.0, len(rows) / 3)))
    elif page_type == "article":
        parts = ((0.25, title), (0.5, text), (0.1, "author" in has), (0.15, "published_at" in has))
    broken = any("\ufffd" in reading.block.text for reading in readings)
    score = sum(weight * share for weight, share in parts)
    score -= 0.25 * len(fields.get("disagreements", ())) + 0.1 * broken
    return round(max(_WORST, min(_BEST, score)), 2)


def _identify(
    markup: Markup, readings: Sequence[_BlockReading], main_text: str
) -> tuple[str, dict[str, Any]]:
    meta = meta_fields(markup.meta)
    heading = next((b.text for b in markup.blocks if b.tag == "h1" and not b.in_navigation), "")
    title = (heading or meta.get("title") or _SITE_TITLE.sub("", markup.title))[:_TITLE_CHARS]
    values = parse_json_ld(markup.scripts)
    items = (microdata_node(values) for kind, values in markup.microdata if kind.endswith("Product"))
    products = [*find_nodes(values, PRODUCTS)] or [i for i in items if i.get("name") or i.get("offers")]
    listed = find_listed(values)
    named = [node for node in products if one_line(str(node.get("name", ""))).lower() == title.lower()]
    if about := [nodes[0] for nodes in (products, named) if len(nodes) == 1]:
        own_fields = {"title": title, **product_fields(about[0])}
        if not own_fields.keys() & {"price", "offers"}:
            own_fields |= _pick(meta, "price")
        return "product", {**_pick(meta, "availability", "brand"), **own_fields}
    if products or listed:
        rows = [product_fields(node) for node in [*products, *listed][:_MOST_PRODUCTS]]
        keys = ("price", "lowest_price", "availability", "brand")
        named_rows = [{"name": row.get("title", ""), **_pick(row, *keys)} for row in rows]
        return "listing", {"title": title, "products": named_rows}
    prices = {value for reading in readings for value in reading.prices}
    rows = _listed(readings)
    buys = any(_finds("buttons", reading.block.text) for reading in readings if len(reading.block.text) < 60)
    if meta.get("price") or (heading and prices and buys and len(rows) < 3):
        return "product", {"title": title, **_pick(meta, "price", "availability", "brand")}
    if article := next(find_nodes(values, ARTICLES), None):
        return "article", {"title": title, **article_fields(article)}
    if len(rows) >= 3 and len(prices) >= 3:
        return "listing", {"title": title}
    own_fields = _pick(meta, "author", "published_at", "modified_at", "description")
    is_article = "published_at" in own_fields or markup.meta.get("og:type") == "article"
    kind = "article" if is_article or len(main_text.split()) > _LONG_WORDS else "page"
    return kind, {**({"title": title} if title else {}), **own_fields}


def _pick(fields: Mapping[str, Any], *keys: str) -> dict[str, Any]:
    return {key: fields[key] for key in keys if key in fields}


def _complete_product(
    fields: dict[str, Any], markup: Markup, readings: Sequence[_BlockReading], texts: Mapping[str, str]
) -> None:
    """Adds what the page's text says; *texts* are all prices in it, by value, as it writes them."""
    own = dict.fromkeys(value for reading in readings for value in reading.prices)
    stated = [*_prices(str(fields.get("price", "")))]
    differences = []
    if stated and stated[0] in texts:
        fields["price"] = texts[stated[0]]  # as the page writes it
    elif stated and len(own) == 1:
        differences.append((fields["price"], texts[next(iter(own))]))
    elif not stated and own and not fields.keys() & {"offers", "lowest_price"}:
        marked = dict.fromkeys(v for r in readings if _PRICE_HINTS.search(r.block.hints) for v in r.prices)
        chosen = marked if len(marked) == 1 else own
        fields["price" if len(chosen) == 1 else "prices"] = ", ".join(texts[value] for value in chosen)
    stock = {r.stock: r.block.text[:100] for r in reversed(readings) if r.stock is not None}
    if (availability := fields.get("availability")) and len(stock) == 1:
        ((says, text),) = stock.items()
        if says == (availability in ("Out of Stock", "Sold Out", "Discontinued")):
            differences.append((availability, text))
    elif not availability and "offers" not in fields and stock:
        fields["availability"] = "; ".join(stock.values())
    fields["disagreements"] = [f"the page's data says {a}, its text says {b}" for a, b in differences]
    pairs = markup.pairs.items()
    specs = {name: value for name, value in pairs if len(name) < 80 and len(value) < _SPEC_CHARS}
    fields["specs"] = dict(list({**specs, **fields.get("specs", {})}.items())[:_MOST_SPECS])
    for key in [key for key, value in fields.items() if not value]:
        del fields[key]


def _listed(readings: Sequence[_BlockReading]) -> list[dict[str, str]]:
    rows: dict[str, dict[str, str]] = {}
    for n, reading in enumerate(readings):
        name = reading.name
        if reading.prices and name and name not in rows:
            price = next(iter(_prices(reading.block.text).values()))
            rows[name] = {"name": name, "price": price}
            near = (r.block.text for r in readings[n : n + 3] if r.stock is not None and r.name in ("", name))
            if (stock := next(near, None)) is not None:
                rows[name]["availability"] = stock.replace(price, "").strip(" ,;|·-")
    return list(rows.values())[:_MOST_PRODUCTS]


def _content(
    page_type: str,
    fields: Mapping[str, Any],
    markup: Markup,
    readings: Sequence[_BlockReading],
    main_text: str,
) -> str:
    title = f"# {fields['title']}" if fields.get("title") else ""
    if page_type in ("article", "page") and len(main_text.split()) >= _MAIN_WORDS:
        return main_text if main_text.startswith("# ") or not title else f"{title}\n\n{main_text}"
    lines = [title]
    for reading in readings:
        block = reading.block
        if not (reading.aside or block.struck or block.text == fields.get("title")):
            mark = ""
            if block.level:
                mark = "#" * max(2, block.level) + " "
            elif block.tag == "li":
                mark = "- "
            lines.append(f"{mark}{block.text}")
    lines += [f"- {name}: {value}" for name, value in markup.pairs.items()]
    lines += map(_render_table, markup.tables)
    return "\n\n".join(line for line in lines if line)


def _render_table(table: Mapping[str, Any]) -> str:
    """A table as markdown."""
    width = len(table["rows"][0])
    columns = table["columns"] or [""] * width
    texts = (" | ".join(cell.replace("|", "\\|") for cell in row) for row in (columns, *table["rows"]))
    head, *rows = (f"| {text} |" for text in texts)
    lines = [f"**{table['caption']}**\n"] if table["caption"] else []
    lines += [head, "|" + "---|" * width, *rows]
    return "\n".join(lines + ([f"(and {table['left_out']} more rows)"] if "left_out" in table else []))


def _plain(page: Page, text: str) -> Extraction:
    fields: dict[str, Any] = {}
    if "json" in page.media_type:
        try:
            value = load_json(text)
        except (ValueError, RecursionError):
            value = None
        pairs = value.items() if isinstance(value, dict) else ()
        scalars = {str(key): part for key, part in pairs if isinstance(part, str | int | float)}
        short = {key: part for key, part in scalars.items() if len(f"{key}{part}") <= _DATA_CHARS}
        fields["data"] = dict(list(short.items())[:_MOST_SPECS])
    passages = [passage.text for passage in split_units(text)][:_MOST_ITEMS]
    data = fields.get("data", {})
    name = page.final_url.rstrip("/").rpartition("/")[2][:80]
    title = one_line(str(data.get("title") or data.get("name") or name))[:_TITLE_CHARS]
    zones = [{"type": "other", "confidence": 0.8, "items": passages}] if passages else []
    return Extraction(
        title, "data", {**fields, "title": title, "zones": zones}, text, 0.8 if passages else 0.1
    )
