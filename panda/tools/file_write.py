"""file.write: a whole file, new or replaced."""

from collections.abc import Mapping
from typing import Any

from panda.tools.changes import CHANGE_SCHEMA, change_file, project_of
from panda.tools.contract import Kind, ToolContext, ToolResult


class FileWrite:
    """Writes a whole file; in a dry run only shows it."""

    name = "file.write"
    kind: Kind = "write"
    description = "Write a whole file of the project: a new one, or in the place of what is there."
    argument_schema: Mapping[str, Any] = {
        "type": "object",
        "properties": {
            "path": {"type": "string", "minLength": 1, "maxLength": 1000},
            "content": {"type": "string", "maxLength": 1_000_000},
        },
        "required": ["path", "content"],
        "additionalProperties": False,
    }
    result_schema = CHANGE_SCHEMA

    def run(self, arguments: Mapping[str, Any], context: ToolContext) -> ToolResult:
        """The change as a diff."""
        path = arguments["path"]
        project = project_of(context)
        project.check_writable(path)
        before = project.read(path) if project.has(path) else None
        return change_file(path, before, arguments["content"], context)
