"""doc.search: passages of earlier turns and knowledge documents, with file and line."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from panda.documents.escaping import unescape_path
from panda.documents.sentences import one_line
from panda.documents.wikilinks import spell_out_wikilinks
from panda.memory.node import Item, Node
from panda.retrieval.query_words import find_query_words
from panda.storage.files import read_text
from panda.tools.contract import Kind, ToolContext, ToolResult
from panda.tools.found_nodes import (
    QUERY_ARGUMENTS,
    best_items,
    claims_of,
    count_shared_words,
    entities_of,
    load_found,
)

_KINDS = ("turn:", "knowledge:")
_MOST_NODES = 6
_MOST_LINES = 3
_KEY_CHARS = 40


class DocSearch:
    """Searches the user's turns and knowledge documents; writes nothing."""

    name = "doc.search"
    kind: Kind = "read"
    description = "Search earlier turns and the user's knowledge documents for passages on a query."
    argument_schema = QUERY_ARGUMENTS
    result_schema: Mapping[str, Any] = {
        "type": "object",
        "properties": {
            "passages": {
                "type": "array",
                "items": {
                    "type": "object",
                    "properties": {
                        "node_id": {"type": "string"},
                        "provenance": {"type": "string"},
                        "line": {"type": ["integer", "null"], "minimum": 1},
                        "text": {"type": "string"},
                        "confidence": {"type": "number"},
                    },
                    "required": ["node_id", "provenance", "line", "text", "confidence"],
                    "additionalProperties": False,
                },
            },
            "faults": {"type": "array", "items": {"type": "string"}},
        },
        "required": ["passages", "faults"],
        "additionalProperties": False,
    }

    def run(self, arguments: Mapping[str, Any], context: ToolContext) -> ToolResult:
        """Passages that share most words with the query come first; corrupt nodes are named under faults."""
        query = arguments["query"]
        words = find_query_words(query)
        nodes, faults = load_found(
            query, context, lambda node_id: node_id.startswith(_KINDS), limit=_MOST_NODES
        )
        pairs = [(node, item) for node in nodes for item in best_items(node, query, limit=_MOST_LINES)]
        pairs = [(node, item) for node, item in pairs if count_shared_words(item.text, words)]
        pairs.sort(key=lambda pair: -count_shared_words(pair[1].text, words))
        texts = {node.provenance: read_text(self._path(node, context)) for node, _ in pairs}
        passages = [self._passage(node, item, texts[node.provenance]) for node, item in pairs]
        return ToolResult(
            "success",
            data={"passages": passages, "faults": faults},
            claims=tuple(claim for node, item in pairs for claim in claims_of(node, [item])),
            entities=entities_of([node for node, _ in pairs]),
        )

    def _path(self, node: Node, context: ToolContext) -> Path:
        return context.layout.user(context.user) / unescape_path(node.provenance)

    def _passage(self, node: Node, item: Item, text: str) -> dict[str, object]:
        return {
            "node_id": node.id,
            "provenance": node.provenance,
            "line": find_line(text, item.text),
            "text": item.text,
            "confidence": round(item.confidence, 2),
        }


def find_line(text: str, passage: str) -> int | None:
    """
    The line of a file on which a passage begins.

    Args:
        text: The whole file.
        passage: One line, as split_passages gives it.

    Returns:
        Line from 1; None if the passage stands nowhere as it is, as a summary or a table row may.

    >>> find_line("# A\\nFirst one. Second\\none here.", "Second one here.")
    2
    """
    numbers: list[int] = []
    joined = ""
    for number, line in enumerate(spell_out_wikilinks(text).split("\n"), 1):
        piece = one_line(line)
        if piece:
            joined += piece + " "
            numbers += [number] * (len(piece) + 1)
    at = joined.find(passage)
    if at < 0:
        at = joined.find(passage[:_KEY_CHARS])
    return numbers[at] if at >= 0 else None
