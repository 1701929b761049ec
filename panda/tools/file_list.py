"""file.list: the files of the project."""

from collections.abc import Mapping
from typing import Any

from panda.tools.changes import project_of
from panda.tools.contract import Kind, ToolClaim, ToolContext, ToolResult

_MOST_FILES = 500


class FileList:
    """Lists files; writes nothing."""

    name = "file.list"
    kind: Kind = "read"
    description = "List the files of the project, or of one of its directories."
    argument_schema: Mapping[str, Any] = {
        "type": "object",
        "properties": {"directory": {"type": "string", "minLength": 1, "maxLength": 1000}},
        "required": [],
        "additionalProperties": False,
    }
    result_schema: Mapping[str, Any] = {
        "type": "object",
        "properties": {
            "files": {"type": "array", "items": {"type": "string"}},
            "left_out": {"type": "integer", "minimum": 0},
        },
        "required": ["files", "left_out"],
        "additionalProperties": False,
    }

    def run(self, arguments: Mapping[str, Any], context: ToolContext) -> ToolResult:
        """Paths relative to the project, sorted; what is not listed is counted."""
        directory = arguments.get("directory", ".")
        found = list(project_of(context).files(directory))
        shown = found[:_MOST_FILES]
        return ToolResult(
            "success",
            data={"files": shown, "left_out": len(found) - len(shown)},
            claims=(ToolClaim(f"{directory} holds {len(found)} files", 1.0, directory, None),),
            text="\n".join(shown),
        )
