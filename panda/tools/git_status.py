"""git.status: what has changed in the project since the last commit, by file."""

from collections.abc import Mapping
from typing import Any

from panda.tools.changes import project_of
from panda.tools.contract import Kind, ToolClaim, ToolContext, ToolResult
from panda.tools.git_repository import ask_git


class GitStatus:
    """Asks git; writes nothing."""

    name = "git.status"
    kind: Kind = "read"
    description = "List the files of the project that differ from the last commit."
    argument_schema: Mapping[str, Any] = {"type": "object", "properties": {}, "additionalProperties": False}
    result_schema: Mapping[str, Any] = {
        "type": "object",
        "properties": {"changes": {"type": "array", "items": {"type": "string"}}},
        "required": ["changes"],
        "additionalProperties": False,
    }

    def run(self, arguments: Mapping[str, Any], context: ToolContext) -> ToolResult:
        """A line each, as `git status --porcelain` writes it."""
        project = project_of(context)
        said = ask_git(
            project, "status", "--porcelain", "--untracked-files=all", limit_seconds=context.limit_seconds
        )
        changes = said.splitlines()
        text = f"{len(changes)} files differ from the last commit" if changes else "nothing has changed"
        claims = (ToolClaim(text, 1.0, "git status", None),)
        return ToolResult("success", data={"changes": changes}, claims=claims, text=said.rstrip())
