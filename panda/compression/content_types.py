"""What kind of document a text is, which decides what of it matters (S3 §22)."""

import re
from typing import Literal, get_args

ContentType = Literal["context.md", "research.md", "page_doc", "tool_result", "prior_turn", "generic"]
CONTENT_TYPES: tuple[ContentType, ...] = get_args(ContentType)

RECIPES: dict[ContentType, str] = {
    "context.md": "compress/compress_context",
    "research.md": "compress/compress_research",
    "page_doc": "compress/compress_page_doc",
    "tool_result": "compress/compress_tool_result",
    "prior_turn": "compress/compress_prior_turn",
    "generic": "compress/compress_generic",
}
"""The recipe that rewrites a document of each type."""

_CONTEXT_LINE = re.compile(r"^## 0\. User Query\s*$", re.MULTILINE)
_RESEARCH_LINE = re.compile(r"^## Research Findings\s*$", re.MULTILINE)
_PRIOR_TURN_LINE = re.compile(r"^(?:#{1,6}\s+|\*\*)?Previous Turn\b", re.MULTILINE)
_TURN_NAME = re.compile(r"(?:^|/)turn_\d+(?:/|\.|$)")


def detect_content_type(name: str, text: str) -> ContentType:
    """
    The type of a document, by its name first and by its marks second.

    A mark counts only where it is structure, not where running text mentions it: `ocr_items` must be a key
    of a JSON document, a heading must be a heading.

    Args:
        name: Path or title; may be empty.
        text: The document.

    Source:
        S3 §22.

    >>> detect_content_type("turns/turn_000012/context.md", "")
    'context.md'
    >>> detect_content_type("", "# Notes\\n\\n## Research Findings\\n")
    'research.md'
    >>> detect_content_type("", '{"ocr_items": []}'), detect_content_type("tool:memory.query", "ok")
    ('page_doc', 'tool_result')
    """
    file = name.rsplit("/", 1)[-1]
    if file == "context.md" or _CONTEXT_LINE.search(text):
        return "context.md"
    if file == "research.md" or _RESEARCH_LINE.search(text):
        return "research.md"
    if "page_doc" in file or _is_page(text):
        return "page_doc"
    if name.startswith("tool:") or file.startswith("toolresults") or "tool_result" in file:
        return "tool_result"
    if _TURN_NAME.search(name) or _PRIOR_TURN_LINE.search(text):
        return "prior_turn"
    return "generic"


def _is_page(text: str) -> bool:
    if not text.lstrip().startswith("{") or ('"ocr_items"' not in text and '"zones"' not in text):
        return False
    from panda.compression.json_pieces import load_json  # loaded with the first text that may be a page

    try:
        value = load_json(text)
    except (ValueError, RecursionError):
        return False
    return isinstance(value, dict) and ("ocr_items" in value or "zones" in value)
