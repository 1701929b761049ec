"""web.fetch: one page read, kept as a visit, and quoted; a visit that is there already is refreshed."""

from collections.abc import Mapping
from typing import Any

from panda.tools.contract import Kind, ToolContext, ToolResult


class WebFetch:
    """Reads a page into the turn's webpage_cache."""

    name = "web.fetch"
    kind: Kind = "read"
    description = "Read a web page, or look again at one that was read before, for its present content."
    argument_schema: Mapping[str, Any] = {
        "type": "object",
        "properties": {
            "url": {
                "type": "string",
                "minLength": 8,
                "maxLength": 2000,
                "pattern": "^[Hh][Tt][Tt][Pp][Ss]?://",
            },
            "max_age_minutes": {
                "type": "number",
                "minimum": 0,
                "description": "A visit that is no older is used as it is; 0 always asks the server.",
            },
        },
        "required": ["url"],
        "additionalProperties": False,
    }
    result_schema: Mapping[str, Any] = {
        "type": "object",
        "properties": {
            "visit_id": {"type": "string"},
            "url": {"type": "string"},
            "final_url": {"type": "string"},
            "visited_at": {"type": "string"},
            "from": {"enum": ["server", "unchanged", "cache"]},
            "refreshes": {"type": ["string", "null"]},
            "page_type": {"type": "string"},
            "extraction_quality": {"type": "number"},
            "title": {"type": "string"},
            "fields": {"type": "object"},
        },
        "required": ["visit_id", "url", "final_url", "visited_at", "from", "refreshes", "page_type"],
        "additionalProperties": False,
    }

    def run(self, arguments: Mapping[str, Any], context: ToolContext) -> ToolResult:
        """The page's lines that speak of the query as claims; if it cannot be had, when it was last seen."""
        from panda.tools.visiting import visit_page  # loads what reads pages, a quarter of a second

        return visit_page(arguments["url"], context, max_age_minutes=arguments.get("max_age_minutes", 0))
