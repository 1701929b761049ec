"""The main text of a page, without menus and advertisements; the only importer of trafilatura."""

import logging


def find_main_text(html: str, url: str) -> str:
    """
    The main text as markdown.

    Args:
        html: The page.
        url: Its address.

    Returns:
        Markdown; "" if no main text was found.
    """
    import trafilatura  # loaded with the first page: it takes half a second

    logging.getLogger("trafilatura").setLevel(logging.CRITICAL)  # broken pages are reported by us
    made = trafilatura.extract(
        html,
        url=url,
        output_format="markdown",
        include_tables=True,
        include_comments=False,
        favor_recall=True,
    )
    return (made or "").strip()
