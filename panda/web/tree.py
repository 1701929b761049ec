"""HTML as a tree, however broken it is; the only importer of lxml."""

import re
from typing import Any

HtmlElement = Any
"""An element of the tree: lxml ships no types, and is loaded with the first page."""

_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ufffe\uffff\ud800-\udfff]")
_XML_HEAD = re.compile(r"\A\s*<\?xml[^>]*\?>")
_HIDDEN_STYLE = re.compile(
    r"display\s*:\s*none|visibility\s*:\s*hidden|font-size\s*:\s*0(?!\.)", re.IGNORECASE
)
NAVIGATION_TAGS = frozenset({"nav", "header", "footer", "aside", "menu"})
"""Elements around what is no part of a page's own subject."""


def parse_html(text: str) -> HtmlElement | None:
    """
    The root of a page's tree; None if there is nothing in it.

    Args:
        text: As clean_text gives it.
    """
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


def squeeze(text: str) -> str:
    """
    One line: every run of white space a blank.

    >>> squeeze(" a\\n\\xa0b ")
    'a b'
    """
    return " ".join(text.replace("\u200b", "").replace("\xad", "").split())


def is_hidden(element: HtmlElement) -> bool:
    """Whether an element says that it is not shown."""
    style = element.get("style") or ""
    return (
        element.get("hidden") is not None
        or element.get("aria-hidden") == "true"
        or bool(style and _HIDDEN_STYLE.search(style))
    )


def is_in_hidden(element: HtmlElement) -> bool:
    """Whether an element or one around it is not shown."""
    return any(is_hidden(outer) for outer in (element, *element.iterancestors()))
