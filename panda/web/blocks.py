"""A page's text as blocks: stretches that a reader sees as one, each with where it stands."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from panda.web.tree import NAVIGATION_TAGS, HtmlElement, is_hidden, squeeze

_GONE = frozenset(
    {
        *("script", "style", "noscript", "template", "svg", "canvas", "iframe", "object", "embed", "select"),
        *("textarea", "input", "head", "math", "video", "audio", "map", "dialog"),
    }
)
_INLINE = frozenset(
    {
        *(
            "a",
            "abbr",
            "b",
            "bdi",
            "bdo",
            "big",
            "cite",
            "code",
            "data",
            "dfn",
            "em",
            "font",
            "i",
            "img",
            "ins",
        ),
        *(
            "kbd",
            "label",
            "mark",
            "meter",
            "nobr",
            "output",
            "picture",
            "q",
            "rb",
            "rp",
            "rt",
            "ruby",
            "samp",
        ),
        *("small", "span", "strong", "sub", "sup", "time", "tt", "u", "var", "wbr"),
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


@dataclass(frozen=True)
class Block:
    """A stretch of text that a reader sees as one."""

    text: str
    """One line."""
    tag: str
    """Element that holds it: p, h1, li, td, …"""
    hints: str
    """Names of the elements around it, with their class, id, itemprop and role; in small letters."""
    in_navigation: bool
    """Stands in a menu, header or footer."""
    struck: bool
    """Struck through, as a price that no longer holds."""
    link_share: float
    """Share of its characters that are links, 0 to 1."""


@dataclass
class _Open:
    """The block that is being read."""

    tag: str
    hints: str
    in_navigation: bool
    struck: bool
    texts: list[str] = field(default_factory=list)
    link_chars: int = 0

    def block(self) -> Block | None:
        text = squeeze("".join(self.texts))
        if not text:
            return None
        share = min(1.0, self.link_chars / max(1, len(text)))
        return Block(text, self.tag, self.hints, self.in_navigation, self.struck, round(share, 2))


def read_blocks_of(root: HtmlElement, taken: set[HtmlElement]) -> list[Block]:
    """
    The blocks of a page, in document order; one that only repeats the one before is left out.

    Args:
        root: Of the page's tree.
        taken: Elements that were read as data; no blocks are made of them.
    """
    return list(_merged(_walk(root, taken)))


def _walk(root: HtmlElement, taken: set[HtmlElement]) -> Iterator[Block]:
    """Every stretch of text, in document order; without recursion, since pages nest deeply."""
    current = _Open("body", "", in_navigation=False, struck=False)
    stack: list[tuple[HtmlElement, bool, _Open]] = [(root, False, current)]
    done = 0
    while stack and done < _MOST_BLOCKS:
        element, is_end, outer = stack.pop()
        if is_end:
            if _is_block(element):
                if block := current.block():
                    done += 1
                    yield block
                current = _Open(outer.tag, outer.hints, outer.in_navigation, outer.struck)
            current.texts.append(element.tail or "")
            continue
        if not _is_shown(element) or element in taken:
            current.texts.append(" " + (element.tail or "") if element is not root else "")
            continue
        if element.tag == "br":
            current.texts.append(" " + (element.tail or ""))
            continue
        stack.append((element, True, current))
        if _is_block(element):
            if block := current.block():
                done += 1
                yield block
            current = _opened(element, current)
        else:
            current.texts.append(_gap(element, current.texts))
            current.hints += f" {element.get('class') or ''} {element.get('itemprop') or ''}".rstrip().lower()
        text = element.text or ""
        current.texts.append(text)
        if any(outer.tag == "a" for outer in (element, *element.iterancestors())):
            current.link_chars += len(squeeze(text))
        stack += [(child, False, current) for child in reversed(element)]
    if block := current.block():
        yield block


def _is_shown(element: HtmlElement) -> bool:
    return isinstance(element.tag, str) and element.tag not in _GONE and not is_hidden(element)


def _is_block(element: HtmlElement) -> bool:
    return element.tag not in _INLINE or _is_struck(element)


def _is_struck(element: HtmlElement) -> bool:
    names = f"{element.get('class') or ''} {element.get('style') or ''}"
    return element.tag in _STRUCK or bool(_STRUCK_NAMES.search(names))


def _opened(element: HtmlElement, outer: _Open) -> _Open:
    names = [str(element.tag), *(element.get(key) or "" for key in ("class", "id", "itemprop", "role"))]
    role = (element.get("role") or "").lower()
    struck = outer.struck or _is_struck(element)
    navigation = outer.in_navigation or _is_navigation(element) or role in _NAVIGATION_ROLES
    return _Open(str(element.tag), f"{outer.hints} {' '.join(names).lower()}".strip(), navigation, struck)


def _is_navigation(element: HtmlElement) -> bool:
    if element.tag == "header":  # an article's header holds its title, the page's own its menu
        return not any(outer.tag in ("article", "main", "section") for outer in element.iterancestors())
    return element.tag in NAVIGATION_TAGS


def _gap(element: HtmlElement, texts: list[str]) -> str:
    """What stands between an inline element and the text before it: cents are cents, labels are apart."""
    before = next((text for text in reversed(texts) if text), "")
    inner = squeeze(element.text_content())
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


def _merged(blocks: Iterator[Block]) -> Iterator[Block]:
    """The blocks without those that only say again what the one before said."""
    last = ""
    for block in blocks:
        if block.text != last:
            yield block
        last = block.text
