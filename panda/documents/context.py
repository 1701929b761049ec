"""The document context.md: front matter, numbered sections, text and `_meta` blocks. Pure, no I/O."""

from functools import lru_cache

from panda.documents.blocks import Block, ContextDocument, FrontMatter, Meta, Section, Text
from panda.documents.context_scan import FENCE, META_OPEN, ContextScan
from panda.documents.escaping import escape_text, unescape_text
from panda.documents.problems import Problem
from panda.documents.sections import heading
from panda.documents.times import render_time
from panda.documents.yaml_values import render_yaml_lines
from panda.errors import DocumentError

__all__ = [
    "Block",
    "ContextDocument",
    "FrontMatter",
    "Meta",
    "Section",
    "Text",
    "escape_text",
    "find_context_problems",
    "parse_context",
    "render_context",
    "render_section",
    "unescape_text",
]


def render_section(section: Section) -> str:
    r"""
    Heading and body as they stand on disk.

    Args:
        section: Any section.

    Returns:
        Text without a final line break.

    >>> render_section(Section(0, (Text("hi"), Meta({"intent": "query"}))))
    '## 0. User Query\n\nhi\n\n```yaml\n_meta:\n  intent: query\n```'
    """
    return "\n\n".join([heading(section.number), *(_render_block(block) for block in section.blocks)])


def _render_block(block: Block) -> str:
    if isinstance(block, Text):
        return escape_text(block.text)
    lines = "_meta:\n" + render_yaml_lines(block.values, indent="  ") if block.values else "_meta: {}\n"
    return f"{META_OPEN}\n{lines}{FENCE}"


def render_context(document: ContextDocument) -> str:
    """
    The document as its file holds it. parse_context gives back an equal document.

    Args:
        document: Any document.

    Source:
        design, files.
    """
    front = document.front
    values = {
        "schema": front.schema,
        "turn": front.turn,
        "user_id": front.user_id,
        "session_id": front.session_id,
        "mode": front.mode,
        "created_at": render_time(front.created_at),
    }
    parts = [f"---\n{render_yaml_lines(values)}---", *(render_section(one) for one in document.sections)]
    return "\n\n".join(parts) + "\n"


@lru_cache(maxsize=64)
def parse_context(text: str, *, where: str) -> ContextDocument:
    """
    The document that a context.md holds.

    Args:
        text: Content of the file, line breaks as they are in it.
        where: Path of the file, for the error.

    Raises:
        DocumentError: Anything that find_context_problems would report; it names the first.
    """
    scan = ContextScan(text, where)
    if scan.problems or scan.front is None:
        problem = min(scan.problems, key=lambda one: one.line or 0)
        raise DocumentError(problem.message, where=problem.where, fix=problem.fix)
    return ContextDocument(scan.front, tuple(scan.sections))


def find_context_problems(text: str, *, path: str) -> list[Problem]:
    """
    Everything that is damaged in a context.md.

    Args:
        text: Content of the file, line breaks as they are in it.
        path: Path of the file, for the problems.

    Returns:
        Problems in the order of their lines: front matter missing or wrong, sections unknown, doubled or
        misordered, text before the first section, fences left open, `_meta` that is broken or misplaced.
    """
    return sorted(ContextScan(text, path).problems, key=lambda one: one.line or 0)
