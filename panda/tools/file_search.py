"""file.search: the lines of the project's files that hold a text."""

from collections.abc import Iterator, Mapping
from typing import Any

from panda.documents.sentences import one_line
from panda.errors import PandaError
from panda.tools.changes import project_of
from panda.tools.contract import Entity, Kind, ToolClaim, ToolContext, ToolResult
from panda.tools.project import Project

_MOST_MATCHES = 100
_LINE_CHARS = 240


class FileSearch:
    """Searches files for a text as it stands, no pattern; writes nothing."""

    name = "file.search"
    kind: Kind = "read"
    description = "Find the lines of the project's files that hold a text exactly."
    argument_schema: Mapping[str, Any] = {
        "type": "object",
        "properties": {
            "text": {"type": "string", "minLength": 1, "maxLength": 500, "pattern": "\\S"},
            "directory": {"type": "string", "minLength": 1, "maxLength": 1000},
        },
        "required": ["text"],
        "additionalProperties": False,
    }
    result_schema: Mapping[str, Any] = {
        "type": "object",
        "properties": {
            "matches": {
                "type": "array",
                "items": {
                    "type": "object",
                    "properties": {
                        "path": {"type": "string"},
                        "line": {"type": "integer", "minimum": 1},
                        "text": {"type": "string"},
                    },
                    "required": ["path", "line", "text"],
                    "additionalProperties": False,
                },
            },
            "left_out": {"type": "integer", "minimum": 0},
        },
        "required": ["matches", "left_out"],
        "additionalProperties": False,
    }

    def run(self, arguments: Mapping[str, Any], context: ToolContext) -> ToolResult:
        """Matches by path and line; files that are no text are passed over."""
        project = project_of(context)
        found = list(_matches(project, arguments.get("directory", "."), arguments["text"]))
        shown = found[:_MOST_MATCHES]
        return ToolResult(
            "success",
            data={
                "matches": [{"path": path, "line": n, "text": line} for path, n, line in shown],
                "left_out": len(found) - len(shown),
            },
            claims=tuple(
                ToolClaim(f"{path}:{n}: {one_line(line)}", 1.0, path, None) for path, n, line in shown
            ),
            entities=tuple(dict.fromkeys(Entity(f"file:{path}", "file", path) for path, _, _ in shown)),
        )


def _matches(project: Project, directory: str, text: str) -> Iterator[tuple[str, int, str]]:
    for path in project.files(directory):
        try:
            lines = project.read(path).split("\n")
        except PandaError:
            continue
        for number, line in enumerate(lines, 1):
            if text in line:
                yield path, number, line.rstrip("\r")[:_LINE_CHARS]
