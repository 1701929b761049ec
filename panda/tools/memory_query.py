"""memory.query: preferences, facts, research and visits that speak of a query."""

from collections.abc import Mapping
from typing import Any

from panda.documents.times import render_time
from panda.tools.contract import Kind, ToolContext, ToolResult
from panda.tools.found_nodes import QUERY_ARGUMENTS, best_items, claims_of, entities_of, load_found

_KINDS = ("memory:", "fact:", "research:", "visit:")
_MOST_NODES = 8
_MOST_LINES = 8


class MemoryQuery:
    """Looks into the user's memory; writes nothing."""

    name = "memory.query"
    kind: Kind = "read"
    description = "Look up preferences, facts, cached research and visited pages that match a query."
    argument_schema = QUERY_ARGUMENTS
    result_schema: Mapping[str, Any] = {
        "type": "object",
        "properties": {
            "matches": {
                "type": "array",
                "items": {
                    "type": "object",
                    "properties": {
                        "node_id": {"type": "string"},
                        "source_type": {"type": "string"},
                        "title": {"type": "string"},
                        "provenance": {"type": "string"},
                        "at": {"type": ["string", "null"]},
                        "confidence": {"type": "number"},
                        "items": {"type": "array", "items": {"type": "string"}},
                    },
                    "required": [
                        "node_id",
                        "source_type",
                        "title",
                        "provenance",
                        "at",
                        "confidence",
                        "items",
                    ],
                    "additionalProperties": False,
                },
            },
            "faults": {"type": "array", "items": {"type": "string"}},
        },
        "required": ["matches", "faults"],
        "additionalProperties": False,
    }

    def run(self, arguments: Mapping[str, Any], context: ToolContext) -> ToolResult:
        """Matches, best first; expired lines are left out, corrupt nodes are named under faults."""
        query = arguments["query"]
        nodes, faults = load_found(
            query, context, lambda node_id: node_id.startswith(_KINDS), limit=_MOST_NODES
        )
        chosen = [(node, best_items(node, query, limit=_MOST_LINES)) for node in nodes]
        chosen = [(node, items) for node, items in chosen if items]
        matches = [
            {
                "node_id": node.id,
                "source_type": node.source_type,
                "title": node.title,
                "provenance": node.provenance,
                "at": render_time(node.at) if node.at else None,
                "confidence": round(sum(item.confidence for item in items) / len(items), 2),
                "items": [item.text for item in items],
            }
            for node, items in chosen
        ]
        return ToolResult(
            "success",
            data={"matches": matches, "faults": faults},
            claims=tuple(claim for node, items in chosen for claim in claims_of(node, items)),
            entities=entities_of([node for node, _ in chosen]),
        )
