"""An answer as HTML: its Markdown without links, images or HTML, its marks leading to its sources."""

import re
from collections.abc import Collection, Iterator, Sequence

from markdown_it import MarkdownIt
from markdown_it.token import Token
from markupsafe import Markup, escape

from panda.addons.view.evidence_page import MARK, ShownStatement
from panda.documents.safe_text import one_line, visible

MOST_CHARS = 30_000
"""A longer answer is cut for the page."""
_QUOTED_BRACKET = "\ufdd0"
"""Stands for an escaped bracket, so that what a source says is not linked as a mark of the answer."""

_PARSER = (
    MarkdownIt("commonmark", {"html": False})
    .enable("table")
    .disable(["link", "image", "autolink", "reference"])
)


def render_markdown(
    text: str, statements: Sequence[ShownStatement] = (), wrong: Sequence[str] = ()
) -> Markup:
    """
    A text by a model or a user as HTML that holds nothing but its words and their structure.

    Args:
        text: Markdown. HTML in it stays text, and so do links and pictures.
        statements: What it states; marks like [1] lead to the sources of the statement before them, and what
            is wrong in a statement is marked in the block that holds it.
        wrong: What is marked wherever it stands.

    >>> render_markdown("<b>hi</b> [x](javascript:y)")
    Markup('<p>&lt;b&gt;hi&lt;/b&gt; [x](javascript:y)</p>\\n')
    """
    visible_text = visible(text[:MOST_CHARS])
    tokens = _PARSER.parse(visible_text.replace("\\[", _QUOTED_BRACKET))
    lines = visible_text.split("\n")
    used: set[str] = set()
    for block in _inlines(tokens):
        first, last = block.map or [0, len(lines)]
        block_text = one_line("\n".join(lines[first:last]))
        here = [statement for statement in statements if _holds(block_text, statement.text)]
        refused = {claim for statement in here for claim in statement.wrong}.union(wrong)
        for token in block.children or ():
            if token.type == "text":
                linked = str(_linked(token.content, here, statements, used, refused))
                token.content = linked.replace(_QUOTED_BRACKET, "[")
                token.type = "html_inline"
    html = _PARSER.renderer.render(tokens, _PARSER.options, {})
    return Markup(html.replace(_QUOTED_BRACKET, "\\["))  # within code


def _inlines(tokens: Sequence[Token]) -> Iterator[Token]:
    """The blocks of text, each with the lines that it comes from: a cell of a table has those of its row."""
    lines = None
    for token in tokens:
        lines = token.map or lines
        if token.type == "inline":
            token.map = token.map or lines
            yield token


def _holds(block_text: str, statement: str) -> bool:
    """Return whether a block of the answer holds a statement, or a part of it where it goes over several."""
    wanted = one_line(visible(statement))
    plain = block_text.replace("\\", "")
    return bool(wanted) and (wanted.replace("\\", "") in plain or _without_marks(plain) in wanted)


def _without_marks(text: str) -> str:
    return one_line(MARK.sub("", text)).lstrip("-*+ ").strip() or "\0"


def _linked(
    text: str,
    here: Sequence[ShownStatement],
    statements: Sequence[ShownStatement],
    used: set[str],
    refused: Collection[str],
) -> Markup:
    parts: list[str] = []
    at = 0
    for mark in MARK.finditer(text):
        number = int(mark[1])
        anchors = _anchors(here, number) or _anchors(statements, number)
        anchor = next(
            (candidate for candidate in anchors if candidate not in used), anchors[0] if anchors else None
        )
        if anchor is None:
            continue
        used.add(anchor)
        parts += [
            _marked(text[at : mark.start()], refused),
            Markup('<a class="mark" href="#{}" aria-label="source {}">{}</a>').format(anchor, number, number),
        ]
        at = mark.end()
    return Markup("").join([*parts, _marked(text[at:], refused)])


def _marked(text: str, refused: Collection[str]) -> Markup:
    names = "|".join(map(re.escape, sorted(filter(None, refused), key=len, reverse=True)))
    parts = re.split(rf"(?<!\w)({names})(?!\w)", text) if names else [text]
    mark = Markup('<mark class="wrong">{}</mark>')
    return Markup("").join(mark.format(part) if n % 2 else escape(part) for n, part in enumerate(parts))


def _anchors(statements: Sequence[ShownStatement], number: int) -> list[str]:
    return [
        source.anchor for statement in statements for source in statement.sources if source.number == number
    ]
