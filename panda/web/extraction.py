"""What a page gives: its type, data as fields, zones (S3 §22), readable content, and how good that is."""

import logging
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from panda.documents.evidence import find_claims
from panda.documents.json_text import load_json
from panda.documents.markdown import split_passages
from panda.documents.records import encode
from panda.documents.text import one_line
from panda.language.text import split_sentences
from panda.language.words import phrases
from panda.web.client import Page
from panda.web.markup import Block, Markup, PageTable, clean_text, read_markup, with_body
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

ZoneType = Literal["pricing", "product_info", "reviews", "navigation", "other"]

_ASIDE_HINTS = re.compile(
    r"related|recommend|similar|also[-_]?(?:bought|viewed|like)|sponsor|carousel|upsell|cross-?sell|recently"
    r"|accessor|advert|\bads?\b|promo|cookie|consent|newsletter|social|share|breadcrumb|paginat|\bmodal\b"
)
_MENU_HINTS = re.compile(r"\b(?:menu|navbar|nav|footer|sidebar|topbar|site-header|masthead)\b")
_REVIEW_HINTS = re.compile(r"review|rating|comment|testimonial|feedback")
_INFO_HINTS = re.compile(
    r"product|spec|feature|detail|descri|summary|highlight|overview|attribut|main|article"
)
_PRICE_CHARS = 160
_NAME_BLOCKS = 6
_SENTENCE_CHARS = 200
_MOST_ITEMS = 400
_ORDER: tuple[ZoneType, ...] = ("pricing", "product_info", "reviews", "other", "navigation")
_ENOUGH_WORDS = 60
_SPEC_CHARS = 300
_MOST_SPECS = 60
_MOST_PRODUCTS = 100
_MAIN_WORDS = 25
_SITE_TITLE = re.compile(r"\s+[|–—·]\s+[^|–—·]{1,40}\Z")


@dataclass(frozen=True)
class Zone:
    type: ZoneType  # what it is about
    confidence: float  # how sure that is, and that it belongs to the page's own subject
    items: tuple[str, ...]  # its lines


@dataclass(frozen=True)
class Reading:
    block: Block  # the block
    aside: bool  # stands in a part about other things: related products, advertisements
    prices: tuple[str, ...]
    """Values of the prices of the page's subject, as find_claims gives them; none if struck or aside."""
    stock: bool | None  # what it says of availability; None if nothing
    name: str  # in a list: the name that a price belongs to; "" if none


def read_blocks(blocks: Sequence[Block]) -> list[Reading]:
    readings: list[Reading] = []
    aside_level = 0
    for n, block in enumerate(blocks):
        level = int(block.tag[1]) if re.fullmatch(r"h[1-6]", block.tag) else 0
        if level and (not aside_level or level <= aside_level):
            aside_level = level if _finds("asides", block.text) else 0
        menu = block.in_navigation or _MENU_HINTS.search(block.hints)
        aside = bool(aside_level or menu or _ASIDE_HINTS.search(block.hints))
        short = len(block.text) <= _PRICE_CHARS
        prices: tuple[str, ...] = ()
        own = short and not block.struck and not aside and block.tag != "h1"
        if own and not _finds("side_prices", phrases("page_text.txt", "within_price").sub("", block.text)):
            prices = tuple(_prices(block.text))
        stock = _stock_told(block.text) if short and not aside else None
        named = bool(prices) or stock is not None
        readings.append(Reading(block, aside, prices, stock, _name_before(blocks, n) if named else ""))
    return readings


def _finds(group: str, text: str) -> bool:
    return phrases("page_text.txt", group).search(text) is not None


def _stock_told(line: str) -> bool | None:
    return False if _finds("sold", line) else _finds("stocked", line) or None


def _name_before(blocks: Sequence[Block], n: int) -> str:
    for block in reversed(blocks[max(0, n - _NAME_BLOCKS) : n]):
        if block.in_navigation or block.tag == "h1":
            break
        if block.tag in ("h2", "h3", "h4", "h5") or block.link_share >= 0.5:
            return block.text
    return ""


def find_zones(
    markup: Markup, readings: Sequence[Reading], *, is_product: bool, main_text: str, prices: Sequence[str]
) -> list[Zone]:
    """
    The zones of a page, the most telling ones first: at most one for each type and confidence, none empty.
    What stands in the main text surely belongs to the page's subject; *prices* are those that it says for
    machines.
    """
    flat = " ".join(main_text.split())
    grouped: dict[tuple[ZoneType, float], list[str]] = {}
    if markup.data.pairs:
        grouped["product_info", 0.95] = [f"{name}: {value}" for name, value in markup.data.pairs.items()]
    for reading in readings:
        kind, confidence = _classify(reading, flat, is_product=is_product, prices=prices)
        text = reading.block.text
        if kind == "pricing" and not is_product and reading.name:
            text = f"{reading.name}: {text}"
        items = grouped.setdefault((kind, confidence), [])
        for item in split_sentences(text) if len(text) > _SENTENCE_CHARS else [text]:
            if item not in items and len(items) < _MOST_ITEMS:
                items.append(item)
    keys = sorted(grouped, key=lambda key: (_ORDER.index(key[0]), -key[1]))
    return [Zone(kind, confidence, tuple(grouped[kind, confidence])) for kind, confidence in keys]


def _classify(
    reading: Reading, main_text: str, *, is_product: bool, prices: Sequence[str]
) -> tuple[ZoneType, float]:
    block = reading.block
    in_main = block.text in main_text
    if block.in_navigation or _MENU_HINTS.search(block.hints):
        return "navigation", 0.85
    if block.link_share >= 0.8 and block.tag in ("li", "ul", "div") and not in_main:
        return "navigation", 0.85
    if reading.aside:
        return "other", 0.3
    if _REVIEW_HINTS.search(block.hints):
        return "reviews", 0.8
    if reading.prices or reading.stock is not None:
        if prices and reading.prices:
            return "pricing", 0.95 if set(reading.prices) & set(prices) else 0.45
        return "pricing", 0.9 if prices else 0.75 if is_product else 0.7
    if block.struck:
        return "other", 0.4
    if is_product and _INFO_HINTS.search(block.hints):
        return "product_info", 0.9 if in_main else 0.7
    return "other", 0.8 if in_main else 0.5


def find_main_text(html: str, url: str) -> str:
    import trafilatura  # loaded with the first page: it takes half a second

    logging.getLogger("trafilatura").setLevel(logging.CRITICAL)  # broken pages are reported by us
    text = trafilatura.extract(
        html,
        url=url,
        output_format="markdown",
        include_tables=True,
        include_comments=False,
        favor_recall=True,
    )
    return (text or "").strip()


_WORST, _BEST = 0.05, 0.98


def judge_extraction(
    page_type: str, fields: Mapping[str, Any], readings: Sequence[Reading], main_text: str
) -> float:
    """
    extraction_quality, .05 to .98: how much of what such a page should give it gave, less for contradictions.
    A product should give title, price, availability, details, a text, and a price that its text shows too; an
    article title, a text, author and date; a list rows with prices; any other page title and text.
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
    said = _prices(str(fields.get("price", ""))).keys()
    shown = {value for reading in readings for value in _prices(reading.block.text)}
    return 0.0 if not said else 1.0 if said <= shown else 0.5


def _prices(text: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for claim in find_claims(text):
        if claim.kind == "price":
            found.setdefault(claim.value, claim.text)
    return found


@dataclass(frozen=True)
class Extraction:
    title: str  # of the product, article or page; "" if it has none
    page_type: str  # product, listing, article, page or data
    fields: dict[str, Any]  # the data of extracted.json
    content: str  # readable content as markdown
    quality: float  # extraction_quality, 0 to 1


def extract_page(page: Page) -> Extraction:
    text = clean_text(page.text or "")
    if page.media_type not in ("text/html", "application/xhtml+xml"):
        return _plain(page, text)
    text = with_body(text)
    markup = read_markup(text)
    readings = read_blocks(markup.blocks)
    main_text = find_main_text(text, page.final_url)
    values = parse_json_ld(markup.data.scripts)
    page_type, fields = _identify(markup, values, readings, main_text)
    prices = [
        claim.value for key in ("price", "lowest_price") for claim in find_claims(str(fields.get(key, "")))
    ]
    is_product = page_type == "product"
    if is_product:
        _complete_product(fields, markup, readings)
    zones = find_zones(markup, readings, is_product=is_product, main_text=main_text, prices=prices)
    if page_type == "listing" and not fields.get("products"):
        fields["products"] = _listed(readings)
    if markup.data.tables:
        tables: list[dict[str, Any]] = [encode(table) for table in markup.data.tables]
        fields["tables"] = [{k: v for k, v in table.items() if k != "left_out" or v} for table in tables]
    quality = judge_extraction(page_type, fields, readings, main_text)
    content = _content(page_type, fields, markup, readings, main_text)
    fields["zones"] = encode(zones)
    title = str(fields.get("title", ""))
    return Extraction(title, page_type, fields, content, quality)


def _identify(
    markup: Markup, values: Sequence[Any], readings: Sequence[Reading], main_text: str
) -> tuple[str, dict[str, Any]]:
    heading = next(
        (block.text for block in markup.blocks if block.tag == "h1" and not block.in_navigation), ""
    )
    meta = meta_fields(markup.data.meta)
    title = heading or meta.get("title") or _SITE_TITLE.sub("", markup.data.title)
    items = [microdata_node(values) for kind, values in markup.data.microdata if kind.endswith("Product")]
    products = [*find_nodes(values, PRODUCTS)] or [
        item for item in items if item.get("name") or item.get("offers")
    ]
    articles = [*find_nodes(values, ARTICLES)]
    listed = find_listed(values)
    product = _about(products, title)
    if product is not None:
        told = {"title": title, **product_fields(product)}
        if "price" not in told and "offers" not in told and meta.get("price"):
            told["price"] = meta["price"]
        return "product", {**_pick(meta, "availability", "brand"), **told}
    if products or listed:
        rows = [product_fields(node) for node in (*products, *listed)][:_MOST_PRODUCTS]
        named = ("price", "lowest_price", "availability", "brand")
        return "listing", {
            "title": title,
            "products": [{"name": row.get("title", ""), **_pick(row, *named)} for row in rows],
        }
    prices = {value for reading in readings for value in reading.prices}
    buys = any(_finds("buttons", reading.block.text) for reading in readings if len(reading.block.text) < 60)
    if meta.get("price") or (heading and prices and buys and len(_listed(readings)) < 3):
        return "product", {"title": title, **_pick(meta, "price", "availability", "brand")}
    if articles:
        return "article", {"title": title, **article_fields(articles[0])}
    if len(_listed(readings)) >= 3 and len(prices) >= 3:
        return "listing", {"title": title}
    dated = _pick(meta, "author", "published_at", "modified_at", "description")
    is_article = "published_at" in dated or markup.data.meta.get("og:type") == "article"
    kind = "article" if is_article or len(main_text.split()) > 250 else "page"
    fields = {"title": title, **dated}
    return kind, {key: value for key, value in fields.items() if value}


def _pick(fields: Mapping[str, Any], *keys: str) -> dict[str, Any]:
    return {key: fields[key] for key in keys if key in fields}


def _about(products: Sequence[Mapping[str, Any]], title: str) -> Mapping[str, Any] | None:
    if len(products) == 1:
        return products[0]
    named = [node for node in products if one_line(str(node.get("name", ""))).lower() == title.lower()]
    return named[0] if len(named) == 1 else None


def _complete_product(fields: dict[str, Any], markup: Markup, readings: Sequence[Reading]) -> None:
    shown = dict.fromkeys(value for reading in readings for value in reading.prices)
    texts = {c.value: c.text for r in readings for c in find_claims(r.block.text) if c.kind == "price"}
    told = [*_prices(str(fields.get("price", "")))]
    differences = []
    if told and told[0] in texts:
        fields["price"] = texts[told[0]]  # as the page writes it
    elif told and len(shown) == 1:
        told_here = texts[next(iter(shown))]
        differences.append(f"the page's data says {fields['price']}, its text says {told_here}")
    if not told and not fields.keys() & {"offers", "lowest_price"}:
        if len(shown) == 1:
            fields["price"] = texts[next(iter(shown))]
        elif shown:
            marked = dict.fromkeys(
                v for r in readings if re.search(r"price|preis|prix", r.block.hints) for v in r.prices
            )
            chosen = marked if len(marked) == 1 else shown
            fields["price" if len(chosen) == 1 else "prices"] = ", ".join(texts[value] for value in chosen)
    stock = {reading.stock: reading.block.text for reading in reversed(readings) if reading.stock is not None}
    if not fields.get("availability") and "offers" not in fields and stock:
        fields["availability"] = "; ".join(text[:100] for text in stock.values())
    elif fields.get("availability") and len(stock) == 1:
        says = next(iter(stock))
        told_out = fields["availability"] in ("Out of Stock", "Sold Out", "Discontinued")
        if says == told_out:
            told_here = stock[says][:100]
            differences.append(f"the page's data says {fields['availability']}, its text says {told_here}")
    if differences:
        fields["disagreements"] = differences
    specs = {
        name: value
        for name, value in markup.data.pairs.items()
        if len(name) < 80 and len(value) < _SPEC_CHARS
    }
    fields["specs"] = dict(list({**specs, **fields.get("specs", {})}.items())[:_MOST_SPECS])
    for key in [key for key, value in fields.items() if not value]:
        del fields[key]


def _listed(readings: Sequence[Reading]) -> list[dict[str, str]]:
    rows: dict[str, dict[str, str]] = {}
    for n, reading in enumerate(readings):
        if reading.prices and reading.name and reading.name not in rows:
            price = next(iter(_prices(reading.block.text).values()))
            rows[reading.name] = {"name": reading.name, "price": price}
            nearby = [
                r.block.text
                for r in readings[n : n + 3]
                if r.stock is not None and r.name in ("", reading.name)
            ]
            if nearby:
                rows[reading.name]["availability"] = nearby[0].replace(price, "").strip(" ,;|·-")
    return list(rows.values())[:_MOST_PRODUCTS]


def _content(
    page_type: str, fields: Mapping[str, Any], markup: Markup, readings: Sequence[Reading], main_text: str
) -> str:
    title = f"# {fields['title']}" if fields.get("title") else ""
    if page_type in ("article", "page") and len(main_text.split()) >= _MAIN_WORDS:
        return main_text if main_text.startswith("# ") or not title else f"{title}\n\n{main_text}"
    lines = [title]
    for reading in readings:
        block = reading.block
        if reading.aside or block.struck or block.text == fields.get("title"):
            continue
        heading = re.fullmatch(r"h([1-6])", block.tag)
        mark = "#" * max(2, int(heading[1])) + " " if heading else "- " if block.tag == "li" else ""
        lines.append(f"{mark}{block.text}")
    lines += [f"- {name}: {value}" for name, value in markup.data.pairs.items()]
    lines += [render_table(table) for table in markup.data.tables]
    return "\n\n".join(line for line in lines if line)


def render_table(table: PageTable) -> str:
    """
    A table as markdown.

    >>> print(render_table(PageTable("", ("a", "b"), (("1", "2"),))))
    | a | b |
    |---|---|
    | 1 | 2 |
    """
    width = len(table.rows[0]) if table.rows else len(table.columns)
    rows = [table.columns or ("",) * width, ("---",) * width, *table.rows]
    lines = ["| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in rows]
    lines[1] = lines[1].replace(" ", "")
    more = [f"(and {table.left_out} more rows)"] if table.left_out else []
    return "\n".join([*([f"**{table.caption}**\n"] if table.caption else []), *lines, *more])


def _plain(page: Page, text: str) -> Extraction:
    name = page.final_url.rstrip("/").rpartition("/")[2][:80]
    fields: dict[str, Any] = {}
    if "json" in page.media_type:
        try:
            value = load_json(text)
        except (ValueError, RecursionError):
            value = None
        pairs = value.items() if isinstance(value, dict) else ()
        scalars = {str(key): part for key, part in pairs if isinstance(part, str | int | float)}
        fields = {"data": dict(list(scalars.items())[:_MOST_SPECS])}
    passages = tuple(passage.text for passage in split_passages(text))[:400]
    data = fields.get("data", {})
    title = one_line(str(data.get("title") or data.get("name") or name))
    fields |= {"title": title, "zones": encode([Zone("other", 0.8, passages)] if passages else [])}
    return Extraction(title, "data", fields, text, 0.8 if passages else 0.1)
