"""What a page's HTML says, before anything is made of it."""

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field, replace
from itertools import groupby, islice
from typing import Any, Literal
from urllib.parse import urlencode

from panda.errors import WebError
from panda.language.words import phrases
from panda.web.addresses import Url

HtmlElement = Any
"""An element of the tree: lxml ships no types, and is loaded with the first page."""

_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ufffe\uffff\ud800-\udfff]")
_XML_HEAD = re.compile(r"\A\s*<\?xml[^>]*\?>")
_BEFORE_BODY = re.compile(
    r"(?:\s+|<!doctype[^>]*>|<!--.*?-->|</?(?:html|head|meta|link|base)\b[^>]*>"
    r"|<(?P<tag>title|script|style|noscript)\b[^>]*>.*?</(?P=tag)\s*>)*",
    re.IGNORECASE | re.DOTALL,
)
_BODY = re.compile(r"<(?:body|frameset)\b", re.IGNORECASE)
_GROUPED = re.compile(
    r"(?<![\d.,])\d{1,3}(?:[\u00a0\u2009\u202f]\d{3})+(?!\d)"
    r"|(?:\A|(?<=[:(=])|(?<=[:(=]\s))\d{1,3}(?:\s\d{3})+(?=(?:[.,]\d\d?)?\s?(?:[$€£¥₹₽]|(?:kr|zł|Kč|Ft|руб|[A-Z]{3})\b))"
)
"""Digits in groups: with blanks that do not break anywhere, with plain ones only where a price begins."""
_HIDDEN_STYLE = re.compile(
    r"display\s*:\s*none|visibility\s*:\s*hidden|font-size\s*:\s*0(?!\.)", re.IGNORECASE
)
NAVIGATION_TAGS = frozenset({"nav", "header", "footer", "aside", "menu"})
"""Elements around what is no part of a page's own subject."""
_GONE = frozenset(
    {
        *("script", "style", "noscript", "template", "svg", "canvas", "iframe", "object", "embed", "select"),
        *("textarea", "input", "head", "math", "video", "audio", "map", "dialog"),
    }
)
_INLINE = frozenset(
    {
        *("a", "abbr", "b", "bdi", "bdo", "big", "cite", "code", "data", "dfn", "em", "font"),
        *("i", "img", "ins", "kbd", "label", "mark", "meter", "nobr", "output", "picture", "q", "rb"),
        *("rp", "rt", "ruby", "samp", "small", "span", "strong", "sub", "sup", "time", "tt", "u"),
        *("var", "wbr"),
    }
)
_STRUCK = frozenset(["del", "s", "strike"])
_STRUCK_NAMES = re.compile(
    r"(?:^|[\s_-])(?:was|old|strike|striked|strikethrough|list|original|before|previous|regular|crossed|rrp|msrp)"
    r"[_-]?price|price[_-]{1,2}(?:was|old|strike|before|original|list|previous|crossed|regular)|line-through",
    re.IGNORECASE,
)
_NAVIGATION_ROLES = frozenset(("navigation", "banner", "contentinfo", "menu", "menubar", "search"))
_CENTS = re.compile(r"\d{2}\Z")
_MOST_BLOCKS = 4_000
_MOST_ROWS = 300
_MOST_COLUMNS = 30
_CELL_CHARS = 300
_META_CHARS = 600
_TITLE_CHARS = 300
_SPAN_DIGITS = 4
_NAMES_CHARS = 200
_HINTS_CHARS = 2_000
_STYLE_CHARS = 1_000
_GAP_CHARS = 100
_BLOCK_CHARS = 20_000
"""Longer stretches of text become several blocks."""
_MOST_TABLE_CHARS = 500_000
"""Of all tables together; a cell that spans rows and columns counts for each."""
MAX_CONTROLS = 5_000
_MOST_FIELDS = 100
_TAG = re.compile(r"<[a-z/!]", re.IGNORECASE)
"""Where a title that is never closed goes over into the page."""


def parse_html(text: str) -> HtmlElement | None:
    from lxml import etree
    from lxml import html as parsing

    parser = parsing.HTMLParser(encoding="utf-8", remove_comments=True, remove_pis=True, no_network=True)
    try:
        return parsing.document_fromstring(text.encode("utf-8", "replace"), parser=parser)
    except (etree.ParserError, etree.XMLSyntaxError):
        return None


def clean_text(text: str) -> str:
    """A document without control characters, lone surrogates and the XML declaration."""
    return _CONTROL.sub("", _XML_HEAD.sub("", text))


def with_body(text: str) -> str:
    """
    A page with a tag for its body, which HTML may leave out.

    >>> with_body("<title>T</title><main>x")
    '<title>T</title><body><main>x'
    """
    start = _BEFORE_BODY.match(text)
    if start is None or _BODY.search(text):
        return text
    return f"{text[: start.end()]}<body>{text[start.end() :]}"


def squeeze(text: str) -> str:
    """
    One line: every run of white space a blank, none inside a number.

    >>> squeeze(" a\\n\\xa0b "), squeeze("now 1\\xa0249,90 €"), squeeze("1 249,90 €"), squeeze("LOQ 15 697 €")
    ('a b', 'now 1249,90 €', '1249,90 €', 'LOQ 15 697 €')
    """
    plain = text.replace("\u200b", "").replace("\xad", "").strip()
    return " ".join(_GROUPED.sub(lambda match: "".join(match[0].split()), plain).split())


def text_of(element: HtmlElement, most_chars: int) -> str:
    """The beginning of an element's text, as one line; what follows it is not looked at."""
    pieces: list[str] = []
    left = 2 * most_chars  # of which white space may be the half
    for piece in element.itertext():
        if piece:
            pieces.append(piece[:left])
            left -= len(piece)
        if left <= 0:
            break
    return squeeze("".join(pieces))[:most_chars]


@dataclass(frozen=True)
class Block:
    text: str  # one line
    tag: str  # element that holds it: p, h1, li, td, …
    hints: str  # names of the elements around it, with their class, id, itemprop and role; in small letters
    in_navigation: bool  # stands in a menu, header or footer
    struck: bool  # struck through, as a price that no longer holds
    link_share: float  # share of its characters that are links, 0 to 1

    @property
    def level(self) -> int:
        """1 to 6 of a heading, else 0."""
        return int(self.tag[1]) if re.fullmatch(r"h[1-6]", self.tag) else 0


@dataclass
class Markup:
    blocks: list[Block] = field(default_factory=list)
    """In document order, without what was read as a table or a pair, and without repetitions."""
    title: str = ""  # of <title>
    meta: dict[str, str] = field(default_factory=dict)
    """Of <meta>: name or property, in small letters, to content."""
    scripts: list[str] = field(default_factory=list)  # texts of JSON-LD
    microdata: list[tuple[str, dict[str, str]]] = field(default_factory=list)
    """(itemtype, itemprop to value) of each outermost item."""
    tables: list[dict[str, Any]] = field(default_factory=list)
    """Tables of data, in document order: caption (or the heading before it), columns (empty without a head),
    rows of cells, and left_out, the number of rows beyond the limit, if there are any."""
    table_chars: int = 0  # of what was read of tables
    pairs: dict[str, str] = field(default_factory=dict)
    """Terms with their descriptions, from lists of definitions and two-column tables."""


def read_markup(html: str) -> Markup:
    """What a page holds, however broken; hidden elements, scripts and forms' fields are left out."""
    markup, root = Markup(), parse_html(html)
    if root is None:
        return markup
    for element in root.iter("title", "meta", "script"):
        _read_head(element, markup)
    taken = {element for element in root.iter("table") if _read_table(element, markup)}
    for element in root.iter("dl"):
        if next(element.iterancestors("dl"), None) is None:  # one in another is read with that
            taken |= _read_definitions(element, markup)
    for element in root.iter():
        if isinstance(element.tag, str) and element.get("itemscope") is not None and element.get("itemtype"):
            _read_item(element, markup)
    blocks = groupby(islice(_walk(root, taken), _MOST_BLOCKS), key=lambda block: block.text)
    markup.blocks = [next(alike) for _, alike in blocks]
    return markup


@dataclass
class _Open:
    """A block to which text is still added."""

    tag: str = "body"
    hints: str = ""
    in_navigation: bool = False
    struck: bool = False
    texts: list[str] = field(default_factory=list)
    link_chars: int = 0

    def add(self, text: str) -> None:
        if text:
            self.texts.append(text)

    def add_hints(self, names: str) -> None:
        if len(self.hints) < _HINTS_CHARS:
            self.hints += f" {names[:_NAMES_CHARS]}".rstrip().lower()

    def blocks(self) -> Iterator[Block]:
        text = squeeze("".join(self.texts))
        share = min(1.0, self.link_chars / max(1, len(text)))
        while text:
            end = len(text)
            if end > _BLOCK_CHARS:
                end = text.rfind(" ", 0, _BLOCK_CHARS) + 1 or _BLOCK_CHARS
            part = text[:end].strip()
            yield Block(part, self.tag, self.hints, self.in_navigation, self.struck, round(share, 2))
            text = text[end:]


def _walk(root: HtmlElement, taken: Collection[HtmlElement]) -> Iterator[Block]:
    """Every stretch of text, in document order; without recursion, since pages nest deeply."""
    from lxml import etree

    current, outer, skipped = _Open(), list[_Open](), None
    links = 0  # that are open around the current place
    walker = etree.iterwalk(root, events=("start", "end"))
    for event, element in walker:
        if event == "end":
            if element is not skipped and _is_block(element):
                yield from current.blocks()
                current = replace(outer.pop(), texts=[], link_chars=0)
            if element is not skipped:
                links -= element.tag == "a"
            current.add(element.tail or "")
        elif element.tag == "br" or element.tag in _GONE or element in taken or _is_hidden(element):
            current.texts.append(" ")
            skipped = element
            walker.skip_subtree()
        else:
            if _is_block(element):
                yield from current.blocks()
                outer.append(current)
                current = _opened(element, current)
            else:
                current.add(_gap(element, current.texts))
                current.add_hints(f"{element.get('class') or ''} {element.get('itemprop') or ''}")
            text = element.text or ""
            current.add(text)
            links += element.tag == "a"
            if links:
                current.link_chars += len(squeeze(text))
    yield from current.blocks()


@dataclass(frozen=True)
class Control:
    """What can be done on a page."""

    kind: Literal["link", "next", "form", "button"]  # next: a link to the page that follows in a list
    label: str  # what it says
    url: str = ""  # where it leads; of a form, what answers it; "" of a button
    field: str = ""  # of a form: the name of what is typed
    sent: tuple[tuple[str, str], ...] = ()  # of a form: what else it sends
    number: int = 0  # of a button: its place among all that BUTTONS selects, from 0

    def filled(self, text: str) -> str:
        """The address that a form asks for with a text typed into it."""
        return f"{self.url.partition('?')[0]}?{urlencode([*self.sent, (self.field, text)])}"


BUTTONS = "button, input[type=button], [role=button]"
"""CSS selector of what may be pressed."""
_LABEL_CHARS = 120


def read_controls(html: str, at: Url) -> list[Control]:
    """The links, search forms (GET) and buttons of a page at an address, in order; none that is hidden."""
    root = parse_html(clean_text(html))
    if root is None:
        return []
    base = next(root.iter("base"), None)
    at = (_joined(at, base.get("href")) if base is not None else None) or at
    controls: list[Control] = []
    hidden: set[HtmlElement] = set()
    buttons = 0
    for element in root.iter():
        if len(controls) == MAX_CONTROLS:
            break
        is_button = element.tag == "button" or element.get("role") == "button"
        is_button = is_button or (element.tag == "input" and element.get("type") == "button")
        buttons += is_button
        if element.getparent() in hidden or _is_hidden(element):
            hidden.add(element)
            continue
        control = None
        if element.tag == "a" and element.get("href"):
            control = _link(element, at)
        elif element.tag == "form":
            control = _form(element, at)
        elif is_button and (
            element.get("type") == "button" or next(element.iterancestors("form"), None) is None
        ):
            control = Control("button", _label(element), number=buttons - 1)
        if control is not None and control.label:
            controls.append(control)
    return controls


def _joined(at: Url, location: str | None) -> Url | None:
    try:
        return at.join((location or "").strip())
    except WebError:  # a mail address, a script
        return None


def _label(element: HtmlElement) -> str:
    if label := text_of(element, _LABEL_CHARS):
        return label
    attributes = [element.get(key) for key in ("aria-label", "value", "placeholder")]
    attributes += [image.get("alt") for image in islice(element.iter("img"), _MOST_FIELDS)]
    for attribute in attributes:
        if label := squeeze((attribute or "")[: 2 * _LABEL_CHARS])[:_LABEL_CHARS]:
            return label
    return ""


def _link(element: HtmlElement, at: Url) -> Control | None:
    url, label = _joined(at, element.get("href")), _label(element)
    words = re.sub(r"^\W+|\W+$", "", label)
    is_next = "next" in (element.get("rel") or "").split()
    is_next = is_next or phrases("page_text.txt", "next_page").fullmatch(words) is not None
    return Control("next" if is_next else "link", label, str(url)) if url else None


def _form(form: HtmlElement, at: Url) -> Control | None:
    """A form that asks by GET, with a line for text; what else it sends is as the page has set it."""
    url = _joined(at, form.get("action") or str(at))
    named = (e for e in form.inputs if e.name and e.tag == "input" and e.type in ("text", "search"))
    typed = next(named, None)
    if url is None or typed is None or form.method != "GET":
        return None
    values = islice(form.form_values(), _MOST_FIELDS + 1)
    sent = tuple((name, str(value)) for name, value in values if name != typed.name)
    if len(sent) > _MOST_FIELDS:
        return None
    label = next(filter(None, (_label(e) for e in (typed, *form.iter("button")))), "search")
    return Control("form", label, str(url), typed.name, sent)


def _is_hidden(element: HtmlElement) -> bool:
    named = element.get("hidden") is not None or element.get("aria-hidden") == "true"
    return named or bool(_HIDDEN_STYLE.search((element.get("style") or "")[:_STYLE_CHARS]))


def _is_in_hidden(element: HtmlElement) -> bool:
    return any(_is_hidden(outer) for outer in (element, *element.iterancestors()))


def _is_block(element: HtmlElement) -> bool:
    return element.tag not in _INLINE or _is_struck(element)


def _is_struck(element: HtmlElement) -> bool:
    names = f"{(element.get('class') or '')[:_STYLE_CHARS]} {(element.get('style') or '')[:_STYLE_CHARS]}"
    return element.tag in _STRUCK or bool(_STRUCK_NAMES.search(names))


def _opened(element: HtmlElement, outer: _Open) -> _Open:
    names = [str(element.tag), *(element.get(key) or "" for key in ("class", "id", "itemprop", "role"))]
    role = (element.get("role") or "").lower()
    struck = outer.struck or _is_struck(element)
    navigation = outer.in_navigation or _is_navigation(element) or role in _NAVIGATION_ROLES
    opened = _Open(str(element.tag), outer.hints, navigation, struck)
    opened.add_hints(" ".join(name[:_NAMES_CHARS] for name in names))
    opened.hints = opened.hints.strip()
    return opened


def _is_navigation(element: HtmlElement) -> bool:
    if element.tag == "header":  # an article's header holds its title, the page's own its menu
        return not any(outer.tag in ("article", "main", "section") for outer in element.iterancestors())
    return element.tag in NAVIGATION_TAGS


def _gap(element: HtmlElement, texts: list[str]) -> str:
    before = texts[-1] if texts else ""
    inner = text_of(element, _GAP_CHARS)
    if not before or not inner or before[-1].isspace():
        return ""
    names = f"{element.get('class') or ''}".lower()
    cents = element.tag == "sup" or any(word in names for word in ("cent", "fraction", "decimal"))
    if cents and _CENTS.match(inner) and before[-1].isdigit():
        return "."
    neighbour = element.getprevious()
    linked = element.tag == "a" and neighbour is not None and neighbour.tag == "a"
    apart = (linked or element.get("class") is not None) and before[-1].isalnum() and inner[0].isalnum()
    glued = neighbour is not None and not neighbour.tail and before[-1].isdigit() and inner[0].isalpha()
    priced = inner[0] in "$€£¥₹" and re.search(r"[a-z\d)]\Z", before) is not None
    return " " if apart or priced or (glued and " " in inner) else ""


def _read_head(element: HtmlElement, markup: Markup) -> None:
    if element.tag == "title" and not markup.title:
        markup.title = squeeze(_TAG.split(text_of(element, _TITLE_CHARS), 1)[0])
    elif element.tag == "meta":
        name = (element.get("property") or element.get("name") or "").lower()
        if name and element.get("content"):
            content = squeeze(element.get("content")[: 2 * _META_CHARS])[:_META_CHARS]
            markup.meta.setdefault(name[:_NAMES_CHARS], content)
    elif "ld+json" in (element.get("type") or "").lower():
        markup.scripts.append(element.text or "")


def _read_item(element: HtmlElement, markup: Markup) -> None:
    if any(outer.get("itemscope") is not None for outer in element.iterancestors()):
        return
    values: dict[str, str] = {}
    for inner in element.iter():
        name = inner.get("itemprop") if isinstance(inner.tag, str) else None
        if name and inner.get("itemscope") is None and inner.tag not in ("script", "style"):
            value = inner.get("content") or inner.get("datetime") or inner.get("href")
            if value is None or inner.tag == "a":
                value = text_of(inner, _CELL_CHARS)
            value = squeeze(value[: 2 * _CELL_CHARS])[:_CELL_CHARS]
            values.setdefault((name[:_NAMES_CHARS].split() or [""])[0], value)
    markup.microdata.append(((element.get("itemtype") or "").rsplit("/", 1)[-1], values))


def _read_table(element: HtmlElement, markup: Markup) -> bool:
    """False for a table of layout, which is no data."""
    inside = element.iterdescendants("table", "h1", "h2", "h3", "ul", "form")
    if next(inside, None) is not None or _is_in_hidden(element):
        return False
    if any(outer.tag in NAVIGATION_TAGS for outer in element.iterancestors()):
        return False
    rows = [(texts, head) for texts, head in _rows_of(element) if any(texts)]
    width = max((len(texts) for texts, _ in rows), default=0)
    chars = sum(len(text) + 1 for texts, _ in rows for text in texts)
    if any(len(text) > _CELL_CHARS for texts, _ in rows for text in texts):
        return False
    if markup.table_chars + chars > _MOST_TABLE_CHARS:
        return False
    markup.table_chars += chars
    if width == 2 and not rows[0][1]:
        pairs = [texts for texts, _ in rows if len(texts) == 2 and all(texts)]
        markup.pairs.update((first.rstrip(": "), second) for first, second in pairs)
        return True
    if width < 2 or len(rows) < 2:
        return False
    head = rows[0][0] if rows[0][1] or all(text and not text[0].isdigit() for text in rows[0][0]) else []
    body = [texts + [""] * (width - len(texts)) for texts, _ in rows[bool(head) :]]
    left_out = {"left_out": len(body) - _MOST_ROWS} if len(body) > _MOST_ROWS else {}
    table = {"caption": _caption(element), "columns": head, "rows": body[:_MOST_ROWS], **left_out}
    markup.tables.append(table)
    return True


def _rows_of(table: HtmlElement) -> Iterator[tuple[list[str], bool]]:
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
            if cell is None or len(texts) >= _MOST_COLUMNS:
                break
            text, deep = text_of(cell, _CELL_CHARS + 1), _span(cell, "rowspan")
            for _ in range(_span(cell, "colspan")):
                below |= {len(texts): (deep - 1, text)} if deep > 1 else {}
                texts.append(text)
        hanging = below
        yield texts[:_MOST_COLUMNS], bool(cells) and all(cell.tag == "th" for cell in cells)


def _span(cell: HtmlElement, name: str) -> int:
    given = (cell.get(name) or "1")[:_SPAN_DIGITS]
    return max(1, min(int(given), _MOST_COLUMNS)) if given.isascii() and given.isdigit() else 1


def _caption(element: HtmlElement) -> str:
    for inner in element.iter("caption"):
        return text_of(inner, _CELL_CHARS)
    for before in element.itersiblings(preceding=True):
        if before.tag in ("h1", "h2", "h3", "h4", "h5", "h6"):
            return text_of(before, _CELL_CHARS)
        if before.tag in ("table", "section"):
            break
    return ""


def _read_definitions(element: HtmlElement, markup: Markup) -> set[HtmlElement]:
    """The terms and descriptions that were read."""
    taken: set[HtmlElement] = set()
    term = ""
    for inner in element.iter("dt", "dd") if not _is_in_hidden(element) else ():
        text = text_of(inner, _CELL_CHARS + 1)
        if inner.tag == "dt":
            term = text.rstrip(": ")
        elif term and text and len(text) <= _CELL_CHARS:
            markup.pairs.setdefault(term, text)
            taken |= {inner, *(() if (before := inner.getprevious()) is None else (before,))}
    return taken
