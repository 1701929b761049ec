"""internet.research: a search on the web, pages read, and claims of several sources side by side."""

from collections.abc import Mapping
from typing import Any

from panda.tools.contract import Kind, ToolContext, ToolResult
from panda.tools.found_nodes import QUERY_ARGUMENTS

_TEXTS = {"type": "array", "items": {"type": "string"}}


class InternetResearch:
    """Writes research.json and research.md of the turn, and a visit for each page that it reads."""

    name = "internet.research"
    kind: Kind = "read"
    description = "Search the web, read some pages and compare what they say; for what is not in memory."
    argument_schema = QUERY_ARGUMENTS
    result_schema: Mapping[str, Any] = {
        "type": "object",
        "properties": {
            "topic": {"type": "string"},
            "summary": {"type": "string"},
            "quality_score": {"type": "number"},
            "visits": _TEXTS,
            "conflicts": _TEXTS,
            "failed": _TEXTS,
            "refreshes": _TEXTS,
            "away": _TEXTS,
        },
        "required": ["topic", "summary", "quality_score", "visits", "conflicts", "failed"],
        "additionalProperties": False,
    }

    def run(self, arguments: Mapping[str, Any], context: ToolContext) -> ToolResult:
        """
        The findings as claims; prices that differ are one claim that names every source. A page that was read
        before and cannot be had now tells when it was last seen.
        """
        from panda.tools.researching import research  # loads what reads pages

        return research(arguments["query"], context)
