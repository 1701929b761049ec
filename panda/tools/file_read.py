"""file.read: lines of one file of the project."""

from collections.abc import Mapping
from typing import Any

from panda.tools.changes import project_of
from panda.tools.contract import Entity, Kind, ToolClaim, ToolContext, ToolResult

_MOST_LINES = 400


class FileRead:
    """Reads a file; writes nothing."""

    name = "file.read"
    kind: Kind = "read"
    description = f"Read a file of the project, at most {_MOST_LINES} lines at a time."
    argument_schema: Mapping[str, Any] = {
        "type": "object",
        "properties": {
            "path": {"type": "string", "minLength": 1, "maxLength": 1000},
            "first_line": {"type": "integer", "minimum": 1},
            "lines": {"type": "integer", "minimum": 1, "maximum": _MOST_LINES},
        },
        "required": ["path"],
        "additionalProperties": False,
    }
    result_schema: Mapping[str, Any] = {
        "type": "object",
        "properties": {
            "path": {"type": "string"},
            "first_line": {"type": "integer"},
            "last_line": {"type": "integer"},
            "all_lines": {"type": "integer"},
            "content": {"type": "string"},
        },
        "required": ["path", "first_line", "last_line", "all_lines", "content"],
        "additionalProperties": False,
    }

    def run(self, arguments: Mapping[str, Any], context: ToolContext) -> ToolResult:
        """The lines as they are; line breaks of Windows are kept."""
        project = project_of(context)
        lines = project.read(arguments["path"]).split("\n")
        lines = lines if lines[-1] else lines[:-1]
        name = "/".join(project.locate(arguments["path"]))
        first = arguments.get("first_line", 1)
        shown = lines[first - 1 :][: arguments.get("lines", _MOST_LINES)]
        last = first + len(shown) - 1
        claim = ToolClaim(f"{name}: lines {first} to {last} of {len(lines)}", 1.0, name, None)
        return ToolResult(
            "success",
            data={
                "path": name,
                "first_line": first,
                "last_line": last,
                "all_lines": len(lines),
                "content": "\n".join(shown),
            },
            claims=(claim,),
            entities=(Entity(f"file:{name}", "file", name),),
            text="\n".join(shown),
        )
