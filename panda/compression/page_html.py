"""Web pages into pieces: what the reader of pages takes for their content, as Markdown below the title."""

import re

from panda.compression.pieces import TextOutline
from panda.compression.prose import parse_prose
from panda.errors import Problem

_LOST_TAGS = re.compile(r"<(/?)(dl|dt|dd|figure|figcaption)\b[^>]*>", re.IGNORECASE)
_ITEM_TAGS = {"dl": "<ul>", "/dl": "</ul>", "dt": "<li>", "/dt": ":", "dd": " ", "/dd": "</li>"}
_FIGURE_TAGS = {"figure": "<div>", "/figure": "</div>", "figcaption": "<p>", "/figcaption": "</p>"}
_KEPT_TAGS = _ITEM_TAGS | _FIGURE_TAGS
"""Of lists of definitions and figures the reader of pages loses terms and texts; items it keeps."""
_LINE_END = re.compile(r"(<pre\b.*?</pre>)|\s*\n\s*", re.IGNORECASE | re.DOTALL)
"""Outside of preformatted text a line end is a blank; the reader of pages makes a fence of one in a code."""


def parse_page(source: str) -> TextOutline:
    """Return the pieces of a page's title, main text and tables; of its markup where it has none of them."""
    return parse_prose(page_content(source) or source)


def page_content(source: str) -> str:
    """Return what a page says, as Markdown; empty if that is nothing, or it cannot be read."""
    from panda.documents.document_text import HTML
    from panda.web.page import Page
    from panda.web.page_worker import read_page

    text = _LINE_END.sub(lambda match: match[1] or " ", source)
    text = _LOST_TAGS.sub(lambda tag: _KEPT_TAGS[(tag[1] + tag[2]).lower()], text)
    try:
        page = Page(
            url="",
            final_url="",
            media_type=HTML,
            charset=None,
            text=text,
            etag=None,
            last_modified=None,
        )
        extraction = read_page(page)
    except Problem:
        return ""
    content = extraction.content.strip().replace("\n:", ":")
    if extraction.title and content and not content.startswith("# "):
        content = f"# {extraction.title}\n\n{content}"
    return content + "\n" if content else ""
