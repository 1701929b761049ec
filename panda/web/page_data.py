"""The data of a page: meta tags, JSON-LD, microdata, tables, and terms with their descriptions."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from panda.web.tree import NAVIGATION_TAGS, HtmlElement, is_in_hidden, squeeze

_MOST_ROWS = 300
_MOST_COLUMNS = 30
_CELL_CHARS = 300
_TAG = re.compile(r"<[a-z/!]", re.IGNORECASE)
"""Where a title that is never closed goes over into the page."""


@dataclass(frozen=True)
class PageTable:
    """A table of data."""

    caption: str
    """Its caption or the heading before it; "" if none."""
    columns: tuple[str, ...]
    """Texts of the head; empty if it has none."""
    rows: tuple[tuple[str, ...], ...]
    """Cells, row by row."""
    left_out: int = 0
    """Rows beyond the limit."""


@dataclass
class PageData:
    """What a page says for machines and in tables."""

    title: str = ""
    """Of <title>."""
    meta: dict[str, str] = field(default_factory=dict)
    """Of <meta>: name or property, in small letters, to content."""
    scripts: list[str] = field(default_factory=list)
    """Texts of JSON-LD."""
    microdata: list[tuple[str, dict[str, str]]] = field(default_factory=list)
    """(itemtype, itemprop to value) of each outermost item."""
    tables: list[PageTable] = field(default_factory=list)
    """Tables of data, in document order."""
    pairs: dict[str, str] = field(default_factory=dict)
    """Terms with their descriptions, from lists of definitions and two-column tables."""
    taken: set[HtmlElement] = field(default_factory=set)
    """Elements that tables and pairs were made of; no blocks are made of them."""


def read_data(root: HtmlElement) -> PageData:
    """
    The data of a page.

    Args:
        root: Of the page's tree.
    """
    found = PageData()
    for element in root.iter("title", "meta", "script"):
        _read_head(element, found)
    for element in [*root.iter("table")]:
        _read_table(element, found)
    for element in root.iter("dl"):
        _read_definitions(element, found)
    for element in root.iter():
        if isinstance(element.tag, str) and element.get("itemscope") is not None and element.get("itemtype"):
            _read_item(element, found)
    return found


def _read_head(element: HtmlElement, found: PageData) -> None:
    if element.tag == "title" and not found.title:
        found.title = squeeze(_TAG.split(element.text_content(), 1)[0])
    elif element.tag == "meta":
        name = (element.get("property") or element.get("name") or "").lower()
        if name and element.get("content"):
            found.meta.setdefault(name, squeeze(element.get("content")))
    elif "ld+json" in (element.get("type") or "").lower():
        found.scripts.append(element.text or "")


def _read_item(element: HtmlElement, found: PageData) -> None:
    """Microdata, with the properties of items inside."""
    if any(outer.get("itemscope") is not None for outer in element.iterancestors()):
        return
    values: dict[str, str] = {}
    for inner in element.iter():
        name = inner.get("itemprop") if isinstance(inner.tag, str) else None
        if name and inner.get("itemscope") is None and inner.tag not in ("script", "style"):
            value = inner.get("content") or inner.get("datetime") or inner.get("href")
            value = value if value is not None and inner.tag != "a" else inner.text_content()
            values.setdefault(name.split()[0], squeeze(value)[:_CELL_CHARS])
    found.microdata.append(((element.get("itemtype") or "").rsplit("/", 1)[-1], values))


def _read_table(element: HtmlElement, found: PageData) -> None:
    if any(True for _ in element.iterdescendants("table")) or is_in_hidden(element):
        return
    if any(outer.tag in NAVIGATION_TAGS for outer in element.iterancestors()):
        return
    if next(element.iter("h1", "h2", "h3", "ul", "form"), None) is not None:
        return  # a table of layout
    rows = [(texts, head) for texts, head in _rows_of(element) if any(texts)]
    if not rows or max(len(text) for texts, _ in rows for text in texts) > _CELL_CHARS:
        return  # a table of layout
    width = max(len(texts) for texts, _ in rows)
    if width == 2 and not rows[0][1]:
        pairs = [texts for texts, _ in rows if len(texts) == 2 and all(texts)]
        found.pairs.update((first.rstrip(": "), second) for first, second in pairs)
        found.taken.add(element)
        return
    if width < 2 or len(rows) < 2:
        return
    head = rows[0][0] if rows[0][1] or all(text and not text[0].isdigit() for text in rows[0][0]) else []
    body = [tuple(texts + [""] * (width - len(texts))) for texts, _ in rows[bool(head) :]]
    found.taken.add(element)
    found.tables.append(
        PageTable(_caption(element), tuple(head), tuple(body[:_MOST_ROWS]), max(0, len(body) - _MOST_ROWS))
    )


def _rows_of(table: HtmlElement) -> Iterator[tuple[list[str], bool]]:
    """The texts of each row, a cell that spans several in each of them, and whether all are heads."""
    hanging: dict[int, tuple[int, str]] = {}
    for row in table.iter("tr"):
        cells = [cell for cell in row if cell.tag in ("td", "th")]
        texts: list[str] = []
        below: dict[int, tuple[int, str]] = {}
        for cell in [*cells, None]:
            while len(texts) in hanging:
                left, text = hanging.pop(len(texts))
                below |= {len(texts): (left - 1, text)} if left > 1 else {}
                texts.append(text)
            if cell is None:
                break
            text, deep = squeeze(cell.text_content()), _span(cell, "rowspan")
            for _ in range(_span(cell, "colspan")):
                below |= {len(texts): (deep - 1, text)} if deep > 1 else {}
                texts.append(text)
        hanging = below
        yield texts[:_MOST_COLUMNS], bool(cells) and all(cell.tag == "th" for cell in cells)


def _span(cell: HtmlElement, name: str) -> int:
    given = cell.get(name) or "1"
    return max(1, min(int(given), _MOST_COLUMNS)) if given.isascii() and given.isdigit() else 1


def _caption(element: HtmlElement) -> str:
    for inner in element.iter("caption"):
        return squeeze(inner.text_content())
    for before in element.itersiblings(preceding=True):
        if before.tag in ("h1", "h2", "h3", "h4", "h5", "h6"):
            return squeeze(before.text_content())
        if before.tag in ("table", "section"):
            break
    return ""


def _read_definitions(element: HtmlElement, found: PageData) -> None:
    if is_in_hidden(element):
        return
    term = ""
    for inner in element.iter("dt", "dd"):
        text = squeeze(inner.text_content())
        if inner.tag == "dt":
            term = text.rstrip(": ")
        elif term and text and len(text) <= _CELL_CHARS:
            found.pairs.setdefault(term, text)
            found.taken |= {inner, *(() if (before := inner.getprevious()) is None else (before,))}
