"""Quotable one-line items of turns, visits, research and knowledge documents. Pure."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from panda.documents.memory_file import render_value
from panda.documents.passages import Passage, split_passages
from panda.documents.sentences import one_line, strip_citations
from panda.documents.wikilinks import is_only_wikilinks, spell_out_wikilinks
from panda.memory.confidence import MISSING, TURN_STARTS, confidence_at
from panda.storage.records import ResearchRecord, TurnRecord, VisitRecord

_PRICE = re.compile(r"[$€£¥₹]\s?\d|\d\s?(?:[€£¥₹]|USD|EUR|GBP)\b")
_STOCK = re.compile(r"\b(?:in stock|out of stock|sold out|available|availability)\b", re.IGNORECASE)
_PRICE_FIELDS = re.compile(r"price|cost|discount|sale|msrp", re.IGNORECASE)
_STOCK_FIELDS = re.compile(r"availab|stock|inventory|deliver|pickup", re.IGNORECASE)
_VENDOR_FIELDS = re.compile(
    r"vendor|seller|store|merchant|shipping|return|retailer|rating|review", re.IGNORECASE
)
_SITE_FIELDS = re.compile(r"^(?:url|link|site|page.*)$", re.IGNORECASE)
_UNNAMED_FIELDS = frozenset({"specs", "specifications", "details", "fields"})
_EXCLAMATION = re.compile(r"(?:\w+: )?(?:[^\W\d_]+[,'’ ]*){1,3}!+\Z")
"""At most three words called out, perhaps behind the name of who says them."""
_SHORT_ITEM_WORDS = 4
MOST_LISTED = 12
"""Items of one list that are taken along."""
_SHORT_LINE_WORDS = 6
_ROW_FIELDS = frozenset({"products", "offers", "tables"})


@dataclass(frozen=True)
class Item:
    """One quotable line of a node."""

    text: str
    """One line, quotable as it stands."""
    content_type: str
    """How it ages: a key of confidence.DECAYS."""
    confidence: float
    """As of now, after decay; below .30 it is expired."""
    at: datetime | None
    """When it was said or seen; None if unknown."""
    list_id: str | None = None
    """The list or table of its node that it belongs to; None if it belongs to none."""
    heads: str | None = None
    """The list or table that it introduces; None if it introduces none."""

    def whole_list(self, items: Sequence["Item"], *, as_member: bool) -> list["Item"]:
        """
        The list that it introduces.

        Args:
            items: All of its node.
            as_member: Whether also the list that it belongs to.

        Returns:
            The items of the list in order, at most MOST_LISTED; [] if there is none.
        """
        wanted = self.heads or (self.list_id if as_member else None)
        return [one for one in items if wanted and one.list_id == wanted][:MOST_LISTED]


def turn_items(turn: TurnRecord, now: datetime) -> tuple[Item, ...]:
    """
    The summary, the sentences of the query and those of the answer.

    Args:
        turn: A saved turn.
        now: The instant that confidence is computed for.

    Returns:
        Items without repeats; citation marks, the list of sources and short exclamations ("Thanks!") are left
        out. A turn that found no answer gives only what the user said.
    """
    confidence = confidence_at(TURN_STARTS.get(turn.status, MISSING), "general_fact", turn.at, now)
    found: dict[str, Item] = {}
    texts = [one_line(turn.summary)] if turn.summary.strip() and turn.answered else []
    texts += [passage.text for passage in split_passages(turn.query)] or [one_line(turn.query)]
    said = split_passages(strip_citations(turn.response)) if turn.answered else []
    for text in filter(None, texts):
        found.setdefault(text, Item(text, "general_fact", confidence, turn.at))
    for passage in said:
        if passage.text not in found or passage.list_line is not None or passage.heads_line is not None:
            found[passage.text] = _passage_item(passage, passage.text, confidence, turn.at)
    return tuple(item for item in found.values() if not _EXCLAMATION.match(item.text))


def _passage_item(passage: Passage, text: str, confidence: float, at: datetime | None) -> Item:
    lists = [str(line) if line else None for line in (passage.list_line, passage.heads_line)]
    return Item(text, "general_fact", confidence, at, *lists)


def research_items(research: ResearchRecord, now: datetime) -> tuple[Item, ...]:
    """
    The summary and each claim with its source, "Lenovo LOQ 15 @ $697 (bestbuy.com)"; claims that contradict
    each other are one line that names them all.

    Args:
        research: A research file.
        now: The instant that confidence is computed for.
    """
    at = research.created_at
    items: list[Item] = []
    if research.summary.strip():
        start = MISSING if research.quality is None else research.quality
        items.append(
            Item(one_line(research.summary), "default", confidence_at(start, "default", at, now), at)
        )
    contested = set()
    for conflict in research.conflicts:
        values = [claim for claim in conflict.get("claims") or () if isinstance(claim, Mapping)]
        contested |= {one_line(str(claim.get("claim") or "")) for claim in values}
        sure = min((float(claim.get("confidence") or 0.0) for claim in values), default=MISSING)
        text = one_line(str(conflict.get("text") or ""))
        items.append(Item(text, "price", confidence_at(sure, "price", at, now), at))
    for claim in research.claims:
        text = one_line(str(claim.get("claim") or ""))
        if not text or text in contested:
            continue
        given = claim.get("confidence")
        start = float(given) if isinstance(given, int | float) and 0 <= given <= 1 else MISSING
        content_type = str(claim.get("content_type") or claim_type(text))
        source = one_line(str(claim.get("source") or ""))
        rendered = f"{text} ({source})" if source else text
        items.append(Item(rendered, content_type, confidence_at(start, content_type, at, now), at))
    return tuple(items)


def claim_type(text: str) -> str:
    """
    How a claim of a research file ages.

    >>> claim_type("Lenovo LOQ 15 @ $697"), claim_type("sold out"), claim_type("has a thin bezel")
    ('price', 'availability', 'product_spec')
    """
    if _PRICE.search(text):
        return "price"
    return "availability" if _STOCK.search(text) else "product_spec"


def visit_items(visit: VisitRecord, now: datetime) -> tuple[Item, ...]:
    """
    One item a field, the title in front: "Lenovo LOQ 15 Gaming Laptop: gpu NVIDIA RTX 4050"; one a row of a
    table; one a line of the page's zones, but for menus and what is likely about something else.

    Args:
        visit: A visited page.
        now: The instant that confidence is computed for.
    """
    start = MISSING if visit.quality is None else visit.quality
    title = one_line(visit.title)
    plain = {key: value for key, value in visit.fields.items() if key not in _ROW_FIELDS}
    fields = [(path, value) for path, value in _flatten(plain, ()) if path != ("title",)]
    if visit.url and not any(path[-1].lower() == "url" for path, _ in fields):
        fields.append((("url",), visit.url))
    items = []
    for path, value in fields:
        content_type = field_type(path)
        body = one_line(" ".join([*(part for part in path if part.lower() not in _UNNAMED_FIELDS), value]))
        text = f"{title}: {body}" if title else body
        items.append(
            Item(
                text,
                content_type,
                confidence_at(start, content_type, visit.visited_at, now),
                visit.visited_at,
            )
        )
    said = " ".join(value for _, value in fields)
    for text, content_type, sure in (*_rows(visit.fields, title), *_zone_lines(visit, title, said)):
        confidence = confidence_at(min(start, sure), content_type, visit.visited_at, now)
        items.append(Item(text, content_type, confidence, visit.visited_at))
    return tuple(items)


def _rows(fields: Mapping[str, object], title: str) -> Iterator[tuple[str, str, float]]:
    """Each row of a page's lists and tables as one line, with how it ages."""
    for key in ("products", "offers"):
        rows = fields.get(key)
        for row in rows if isinstance(rows, list) else ():
            cells = [f"{k.replace('_', ' ')} {render_value(v)}" for k, v in row.items() if k != "name" and v]
            name = one_line(str(row.get("name") or title))
            yield f"{name}: {', '.join(cells)}", "price" if "price" in row else "availability", 1.0
    tables = fields.get("tables")
    for table in tables if isinstance(tables, list) else ():
        columns = table["columns"]
        for row in table["rows"]:
            named = zip(columns or [""] * len(row), row, strict=False)
            cells = [f"{column} {cell}".strip() for column, cell in named if cell]
            text = one_line(f"{table.get('caption') or title}: {', '.join(cells)}")
            yield text, claim_type(text) if _PRICE.search(text) else "general_fact", 1.0


def _zone_lines(visit: VisitRecord, title: str, said: str) -> Iterator[tuple[str, str, float]]:
    """The lines of a page's zones that its fields do not say already; short ones with the title in front."""
    for zone in visit.zones:
        for item in zone.items if zone.is_quotable else ():
            line = one_line(item)
            if line and line not in said and line.lower() != title.lower():
                is_short = len(line.split()) < _SHORT_LINE_WORDS or visit.page_type == "product"
                content_type = claim_type(line) if zone.type == "pricing" else "general_fact"
                yield (f"{title}: {line}" if title and is_short else line), content_type, zone.confidence


def field_type(path: tuple[str, ...]) -> str:
    """
    How an extracted field ages, by its name.

    >>> field_type(("price",)), field_type(("availability",)), field_type(("specs", "gpu"))
    ('price', 'availability', 'product_spec')
    """
    for pattern, content_type in (
        (_PRICE_FIELDS, "price"),
        (_STOCK_FIELDS, "availability"),
        (_VENDOR_FIELDS, "vendor_info"),
        (_SITE_FIELDS, "site_pattern"),
    ):
        if path[0].lower() not in _UNNAMED_FIELDS and pattern.search(path[-1]):
            return content_type
    return "product_spec"


def _flatten(value: object, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], str]]:
    if isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _flatten(inner, (*path, str(key)))
    elif isinstance(value, list) and any(isinstance(inner, Mapping) for inner in value):
        for inner in value:
            yield from _flatten(inner, path or ("item",))
    elif value is not None and path:
        rendered = render_value(value)
        if rendered:
            yield path, rendered


def knowledge_items(
    passages: Sequence[Passage], start: float, at: datetime | None, now: datetime
) -> tuple[Item, ...]:
    """
    One item a sentence or list item, links between notes as a reader sees them; the nearest heading stands in
    front of a list item too short to be understood alone. A paragraph of nothing but links is left out.

    Args:
        passages: Passages of a knowledge document, all or those of a section.
        start: Confidence of the document when it was written.
        at: When it was written; None if unknown.
        now: The instant that confidence is computed for.
    """
    confidence = confidence_at(start, "general_fact", at, now)
    items = []
    for passage in passages:
        if is_only_wikilinks(passage.text) and not passage.is_list_item:
            continue
        text = spell_out_wikilinks(passage.text)
        if passage.is_list_item and passage.headings and len(text.split()) < _SHORT_ITEM_WORDS:
            text = f"{passage.headings[-1]}: {text}"
        items.append(_passage_item(passage, text, confidence, at))
    return tuple(items)
