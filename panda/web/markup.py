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
_NARROW = r"(?<![\d.,])\d{1,3}(?:[\u00a0\u2009\u202f]\d{3})+(?!\d)"
_GROUPED = re.compile(
    rf"{_NARROW}"
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
_RAISED_NAMES = re.compile(r"(?:^|[\s_-])(?:sup|superscript)(?:$|[\s_-])", re.IGNORECASE)
_RAISED_STYLE = re.compile(r"vertical-align\s*:\s*super", re.IGNORECASE)
_LOWERED_STYLE = re.compile(r"vertical-align\s*:\s*sub", re.IGNORECASE)
_NOTE_NAMES = re.compile(r"(?:^|[\s_-])(?:fn|footnote|noteref|reference|cite|citation)", re.IGNORECASE)
_NOTE = re.compile(r"[\[(]\s*\w{1,4}\s*[\])]|\d{1,3}(?:\s?[,;–-]\s?\d{1,3})+")
"""A footnote's mark whatever stands before it: in brackets, or several numbers."""
_ORDINALS = frozenset(["st", "nd", "rd", "th", "er", "re", "ère", "e", "è", "ème", "eme", "o", "a", "º", "ª"])
_PRICE_BEFORE = re.compile(r"[$€£¥₹]\s?\d[\d.,]*\Z")
_PRICE_BEHIND = re.compile(r"\s?(?:[$€£¥₹₽]|(?:kr|zł|Kč|Ft|руб|[A-Z]{3})\b)")
_POWER = re.compile(r"[-−–+]?\w+[-−–+]?")
_SYMBOL = re.compile(r"[A-Z][a-z]?(?!\w)")
"""Of a chemical element, behind the number of an isotope."""
_PRICE_NAMES = re.compile(r"price|preis|prix", re.IGNORECASE)
_CENT_NAMES = re.compile(r"cent|fraction|decimal", re.IGNORECASE)
_LAYOUT_TAGS = ("table", "h1", "h2", "h3", "ul", "form")
"""Elements that no table of data has inside it."""
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
_BEFORE_CHARS = 40
_RAISED_CHARS = 20
_OUTER_ELEMENTS = 4
"""So many elements around a raised one are looked at for their names."""
_STEPS_A_CHAR = 8
"""So many elements at most are looked at for each character of a text that is wanted."""
_BLOCK_CHARS = 20_000
"""Longer stretches of text become several blocks."""
_MOST_TABLE_CHARS = 500_000
"""Of all tables together; a cell that spans rows and columns counts for each."""
MAX_CONTROLS = 5_000
_MOST_FIELDS = 100
_TAG = re.compile(r"<[a-z/!]", re.IGNORECASE)
"""Where a title that is never closed goes over into the page."""


def parse_html(text: str) -> HtmlElement | None:
    """
    Return the tree of a page, with its raised and lowered text spelled out so that no reader glues it to the
    number beside it; None if there is nothing in it.
    """
    from lxml import etree, html

    parser = html.HTMLParser(encoding="utf-8", remove_comments=True, remove_pis=True, no_network=True)
    try:
        root = html.document_fromstring(text.encode("utf-8", "replace"), parser=parser)
    except (etree.ParserError, etree.XMLSyntaxError):
        return None
    _spell_marks(root)
    return root


def render_html(root: HtmlElement) -> str:
    """Return a tree as a page again, without the narrow blanks that group the digits of a number."""
    from lxml import html

    text = str(html.tostring(root, encoding="unicode"))
    return re.sub(_NARROW, lambda match: "".join(match[0].split()), text)


def _spell_marks(root: HtmlElement) -> None:
    """
    Put in the place of each raised or lowered element the plain text that says the same, and struck text
    apart from what stands beside it.
    """
    from lxml import etree

    spelled: list[tuple[HtmlElement, str]] = []
    struck = list(root.iter(*_STRUCK, "ins"))
    before = ""
    skipped = None
    walker = etree.iterwalk(root, events=("start", "end"))
    for event, element in walker:
        if event == "end":
            if element is not skipped and _is_block(element):
                before = ""
            before = (before + (element.tail or ""))[-_BEFORE_CHARS:]
            continue
        if _is_block(element) or element.tag == "br":
            before = ""
        text = _spelled(element, before)
        if text is None:
            text = element.text or ""
        else:
            spelled.append((element, text))
            skipped = element
            walker.skip_subtree()
        before = (before + text)[-_BEFORE_CHARS:]
    for element, text in spelled:
        element.clear(keep_tail=True)
        element.tag = "span"
        element.text = text
        outer = element.getparent()
        if not text and outer is not None and outer.tag == "a" and not text_of(outer, 1):
            outer.tag = "span"  # a link of nothing
    for element in [*root.iter("sup", "sub")]:
        element.tag = "span"
    for element in struck:
        neighbour = element.getprevious()
        outer = element.getparent()
        if neighbour is not None:
            neighbour.tail = f"{neighbour.tail or ''} "
        elif outer is not None:
            outer.text = f"{outer.text or ''} "
        element.tail = f" {element.tail or ''}"


def _spelled(element: HtmlElement, before: str) -> str | None:
    """The plain text of an element that is raised or lowered; None if its text says the same as it stands."""
    place = _place_of(element)
    inner = text_of(element, _RAISED_CHARS) if place else ""
    if not inner or len(inner) == _RAISED_CHARS:
        return None
    behind = _text_behind(element)
    if place == "raised":
        text = _raised_text(element, inner, before, behind)
    else:
        text = _lowered_text(inner, before, behind)
    return None if text == inner else text


def _place_of(element: HtmlElement) -> Literal["raised", "lowered"] | None:
    """
    Return whether an element's text is raised, as the cents of a price in small type are too, or lowered;
    None if neither.
    """
    if element.tag in ("sup", "sub", "small"):
        return "lowered" if element.tag == "sub" else "raised"
    if element.tag not in ("span", "b", "i", "em", "strong", "a", "font"):
        return None
    names = (element.get("class") or "")[:_STYLE_CHARS]
    style = (element.get("style") or "")[:_STYLE_CHARS]
    if _RAISED_NAMES.search(names) or _RAISED_STYLE.search(style):
        return "raised"
    return "lowered" if _LOWERED_STYLE.search(style) else None


def _text_behind(element: HtmlElement) -> str:
    """The beginning of what follows an element in its line."""
    for _ in range(_OUTER_ELEMENTS):
        if element.tail:
            return str(element.tail)
        following = element.getnext()
        if following is not None:
            return "" if _is_block(following) else str(following.text or "")
        outer = element.getparent()
        if outer is None or _is_block(outer):
            return ""
        element = outer
    return ""


def _raised_text(element: HtmlElement, inner: str, before: str, behind: str) -> str:
    """
    Return raised text as plain text: the decimals of a price, the numerator of a fraction, an ordinal's
    ending, an exponent as `^3`; a footnote's mark is left out where it links to its note or stands in
    brackets, and stands apart as `[3]` where it may be one.
    """
    last = before[-1:]
    digits = inner.isdecimal()
    if not any(map(str.isalnum, inner)):
        return inner
    if _is_cents(element, inner, before, behind):
        return inner if last in ".," or not inner[0].isdigit() else f".{inner}"
    if element.tag == "small" or not re.search(r"\d", inner + last):
        return inner
    if _is_note(element, inner):
        return ""
    if behind[:1] in ("/", "\u2044") and digits:
        return f" {inner}" if last.isdigit() else inner
    apart = " " if inner[-1].isdigit() and behind[:1].isdigit() else ""
    if not before.strip():
        is_note = digits and not _SYMBOL.match(behind)
        return f"[{inner}] " if is_note else f"{inner}{apart}"
    if inner.isalpha() and (len(inner) > 1 or inner.lower() in _ORDINALS or not last.isdigit()):
        return inner
    is_priced = _PRICE_BEFORE.search(before) or (last.isdigit() and _PRICE_BEHIND.match(behind))
    if digits and (is_priced or last in '.,;:!?"”’'):
        return f" [{inner}]{apart}"
    return f"^{inner}{apart}" if _POWER.fullmatch(inner) else f"^({inner})"


def _is_cents(element: HtmlElement, inner: str, before: str, behind: str) -> bool:
    if not re.search(r"\d[.,]?\Z", before) or not re.match(r"[.,]?\d{2}(?!\d)", inner):
        return False
    around = [element, *islice(element.iterancestors(), _OUTER_ELEMENTS)]
    names = [f"{outer.get('class') or ''} {outer.get('itemprop') or ''}"[:_STYLE_CHARS] for outer in around]
    if _CENT_NAMES.search(names[0]) or any(map(_PRICE_NAMES.search, names)):
        return True
    told_behind = _PRICE_BEHIND.match(inner[2:]) or _PRICE_BEHIND.match(behind)
    return bool(_PRICE_BEFORE.search(before) or told_behind)


def _is_note(element: HtmlElement, inner: str) -> bool:
    """
    Return whether raised text is a footnote's mark: by its link within the page, its name or its brackets.
    """
    around = [*islice(element.iter(), _OUTER_ELEMENTS), *islice(element.iterancestors(), 1)]
    links = any((link.get("href") or "").startswith("#") for link in around if link.tag == "a")
    names = f"{element.get('class') or ''} {element.get('role') or ''}"[:_STYLE_CHARS]
    return links or bool(_NOTE_NAMES.search(names)) or bool(_NOTE.fullmatch(inner))


def _lowered_text(inner: str, before: str, behind: str) -> str:
    """
    Return lowered text as plain text: an index is written behind its letter as in CO2, behind a digit as
    `_2`, and apart from a digit that follows.
    """
    if before.endswith(("/", "\u2044")):
        return inner
    apart = " " if inner[-1].isdigit() and behind[:1].isdigit() else ""
    joint = "_" if (before[-1:].isdigit() and inner[0].isalnum()) or apart else ""
    return f"{joint}{inner}{apart}"


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
    """
    Return the beginning of an element's text as one line: lines and blocks in it apart, without what is
    hidden, and without struck text unless that is all of it.
    """
    text, has_struck = _text_in(element, most_chars, struck=False)
    if not text and has_struck:
        text, _ = _text_in(element, most_chars, struck=True)
    return text


def _text_in(element: HtmlElement, most_chars: int, *, struck: bool) -> tuple[str, bool]:
    """The text, with or without what is struck, and whether anything was left out because it is."""
    from lxml import etree

    pieces: list[str] = []
    left = 2 * most_chars  # of which white space may be the half
    has_struck = False
    walker = etree.iterwalk(element, events=("start", "end"))
    for event, inner in islice(walker, _STEPS_A_CHAR * most_chars):
        if inner is element:
            piece = inner.text or "" if event == "start" else ""
        elif event == "end":
            piece = inner.tail or ""
        else:
            piece = inner.text or ""
            is_left_out = inner.tag in _GONE or _is_hidden(inner)
            if not struck and _is_struck(inner):
                is_left_out = has_struck = True
            if is_left_out:
                walker.skip_subtree()
                piece = " "
        if inner is not element and (_is_block(inner) or inner.tag in ("br", "img")):
            piece = f" {piece}"
        pieces.append(piece[: max(0, left)])
        left -= len(piece)
        if left <= 0:
            break
    return squeeze("".join(pieces))[:most_chars], has_struck


@dataclass(frozen=True, kw_only=True)
class MarkupBlock:
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
    blocks: list[MarkupBlock] = field(default_factory=list)
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


def read_markup(root: HtmlElement | None) -> Markup:
    """Return what a page holds, however broken; hidden elements, scripts and forms' fields are left out."""
    markup = Markup()
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

    def blocks(self) -> Iterator[MarkupBlock]:
        text = squeeze("".join(self.texts))
        share = min(1.0, self.link_chars / max(1, len(text)))
        while text:
            end = len(text)
            if end > _BLOCK_CHARS:
                end = text.rfind(" ", 0, _BLOCK_CHARS) + 1 or _BLOCK_CHARS
            part = text[:end].strip()
            yield MarkupBlock(
                text=part,
                tag=self.tag,
                hints=self.hints,
                in_navigation=self.in_navigation,
                struck=self.struck,
                link_share=round(share, 2),
            )
            text = text[end:]


def _walk(root: HtmlElement, taken: Collection[HtmlElement]) -> Iterator[MarkupBlock]:
    """Every stretch of text, in document order; without recursion, since pages nest deeply."""
    from lxml import etree

    current = _Open()
    outer = list[_Open]()
    skipped = None
    links = 0  # that are open around the current place
    walker = etree.iterwalk(root, events=("start", "end"))
    for event, element in walker:
        if event == "end":
            if element is not skipped and _is_block(element):
                yield from current.blocks()
                current = outer.pop()
                current.add(" ")
            if element is not skipped:
                links -= element.tag == "a"
            current.add(element.tail or "")
        elif element.tag in ("br", "img") or element.tag in _GONE or element in taken or _is_hidden(element):
            current.texts.append(" ")
            skipped = element
            walker.skip_subtree()
        else:
            if _is_block(element):
                if element.tag not in _INLINE and element.tag not in _STRUCK:
                    yield from current.blocks()
                    current = replace(current, texts=[], link_chars=0)
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
    url = _joined(at, element.get("href"))
    label = _label(element)
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
    cents = _CENT_NAMES.search((element.get("class") or "")[:_STYLE_CHARS])
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
    inside = element.iterdescendants(*_LAYOUT_TAGS)
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
            text = text_of(cell, _CELL_CHARS + 1)
            deep = _span(cell, "rowspan")
            for _ in range(_span(cell, "colspan")):
                below |= {len(texts): (deep - 1, text)} if deep > 1 else {}
                texts.append(text)
        hanging = below
        yield texts[:_MOST_COLUMNS], bool(cells) and all(cell.tag == "th" for cell in cells)


def _span(cell: HtmlElement, name: str) -> int:
    span_text = (cell.get(name) or "1")[:_SPAN_DIGITS]
    return max(1, min(int(span_text), _MOST_COLUMNS)) if span_text.isascii() and span_text.isdigit() else 1


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
    if _is_in_hidden(element):
        return taken
    for inner in element.iter("dt", "dd"):
        text = text_of(inner, _CELL_CHARS + 1)
        if inner.tag == "dt":
            term = text.rstrip(": ")
        elif term and text and len(text) <= _CELL_CHARS:
            markup.pairs.setdefault(term, text)
            taken.add(inner)
            if (before := inner.getprevious()) is not None:
                taken.add(before)
    return taken
