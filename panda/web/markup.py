"""What a page's HTML says, before anything is made of it."""

from dataclasses import dataclass

from panda.web.blocks import Block, read_blocks_of
from panda.web.page_data import PageData, read_data
from panda.web.tree import parse_html


@dataclass(frozen=True)
class Markup:
    """A page as blocks of text and as data."""

    blocks: tuple[Block, ...]
    """In document order."""
    data: PageData
    """What it says for machines and in tables."""


def read_markup(html: str) -> Markup:
    """
    What a page holds, however broken its HTML is.

    Args:
        html: As clean_text gives it.

    Returns:
        Everything found; hidden elements, scripts and forms' fields are left out.

    >>> markup = read_markup("<title>T</title><h1>Lenovo<p>Only <b>$697</b>")
    >>> [(block.tag, block.text) for block in markup.blocks]
    [('h1', 'Lenovo'), ('p', 'Only $697')]
    """
    root = parse_html(html)
    if root is None:
        return Markup((), PageData())
    data = read_data(root)
    return Markup(tuple(read_blocks_of(root, data.taken)), data)
