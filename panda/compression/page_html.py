"""Web pages into pieces: what the reader of pages takes for their content, as Markdown below the title."""

from panda.compression.pieces import TextOutline
from panda.compression.prose import parse_prose
from panda.errors import Problem


def parse_page(source: str) -> TextOutline:
    """Return the pieces of a page's title, main text and tables; of its markup where it has none of them."""
    return parse_prose(page_content(source) or source)


def page_content(source: str) -> str:
    """Return what a page says, as Markdown; empty if that is nothing, or it cannot be read."""
    from panda.documents.document_text import HTML
    from panda.web.page import Page
    from panda.web.page_worker import read_page

    try:
        page = Page(
            url="",
            final_url="",
            media_type=HTML,
            charset=None,
            text=source,
            etag=None,
            last_modified=None,
        )
        extraction = read_page(page)
    except Problem:
        return ""
    content = extraction.content.strip()
    if extraction.title and content and not content.startswith("# "):
        content = f"# {extraction.title}\n\n{content}"
    return content + "\n" if content else ""
