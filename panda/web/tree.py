"""HTML as a tree, however broken it is; the only importer of lxml."""

import re
from typing import Any

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
