"""file.edit: one place of a file replaced, which must be the only one of its kind."""

from collections.abc import Mapping
from typing import Any

from panda.errors import UsageError
from panda.tools.changes import CHANGE_SCHEMA, change_file, project_of
from panda.tools.contract import Kind, ToolContext, ToolResult


class FileEdit:
    """Replaces a text that stands exactly once in a file; in a dry run only shows it."""

    name = "file.edit"
    kind: Kind = "write"
    description = "Replace a text in a file of the project. The old text must stand there exactly once."
    argument_schema: Mapping[str, Any] = {
        "type": "object",
        "properties": {
            "path": {"type": "string", "minLength": 1, "maxLength": 1000},
            "old": {"type": "string", "minLength": 1, "maxLength": 100_000},
            "new": {"type": "string", "maxLength": 100_000},
        },
        "required": ["path", "old", "new"],
        "additionalProperties": False,
    }
    result_schema = CHANGE_SCHEMA

    def run(self, arguments: Mapping[str, Any], context: ToolContext) -> ToolResult:
        """The change as a diff."""
        path, old = arguments["path"], arguments["old"]
        project = project_of(context)
        project.check_writable(path)
        before = project.read(path)
        found = before.count(old)
        if found != 1:
            raise UsageError(
                f"the old text stands {found} times in {path}, not once",
                fix="give more of the lines around it" if found else "read the file first",
            )
        return change_file(path, before, before.replace(old, arguments["new"]), context)
