"""PAGE_DOC: the parts of a page by what they are about, with items and confidence (S3 §22). Pure."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from panda.documents.evidence import find_claims
from panda.language.sentences import split_sentences
from panda.language.topics import heads_aside, is_side_price, stock_told
from panda.web.markup import Block, Markup

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


@dataclass(frozen=True)
class Zone:
    """One part of a page."""

    type: ZoneType
    """What it is about."""
    confidence: float
    """How sure that is, and that it belongs to the page's own subject."""
    items: tuple[str, ...]
    """Its lines."""

    def to_json(self) -> dict[str, object]:
        """As extracted.json holds it."""
        return {"type": self.type, "confidence": self.confidence, "items": list(self.items)}


@dataclass(frozen=True)
class Reading:
    """A block with what was made of it."""

    block: Block
    """The block."""
    aside: bool
    """Stands in a part about other things: related products, advertisements."""
    prices: tuple[str, ...]
    """Values of the prices of the page's subject, as find_claims gives them; none if struck or aside."""
    stock: bool | None
    """What it says of availability; None if nothing."""
    name: str
    """In a list: the name that a price belongs to; "" if none."""


def read_blocks(blocks: Sequence[Block]) -> list[Reading]:
    """
    What each block says of prices and stock.

    Args:
        blocks: Of one page, in order.
    """
    found: list[Reading] = []
    aside_level = 0
    for n, block in enumerate(blocks):
        level = int(block.tag[1]) if re.fullmatch(r"h[1-6]", block.tag) else 0
        if level and (not aside_level or level <= aside_level):
            aside_level = level if heads_aside(block.text) else 0
        menu = block.in_navigation or _MENU_HINTS.search(block.hints)
        aside = bool(aside_level or menu or _ASIDE_HINTS.search(block.hints))
        short = len(block.text) <= _PRICE_CHARS
        prices: tuple[str, ...] = ()
        own = short and not block.struck and not aside and block.tag != "h1"
        if own and not is_side_price(block.text):
            prices = tuple(claim.value for claim in find_claims(block.text) if claim.kind == "price")
        stock = stock_told(block.text) if short and not aside else None
        named = bool(prices) or stock is not None
        found.append(Reading(block, aside, prices, stock, _name_before(blocks, n) if named else ""))
    return found


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
    The zones of a page, the most telling ones first.

    Args:
        markup: The page.
        readings: Of its blocks.
        is_product: Whether the page is about one product.
        main_text: Its main text; what stands in it surely belongs to the page's subject.
        prices: Values of the prices that the page says for machines; may be empty.

    Returns:
        At most one zone for each type and confidence, none empty.
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
