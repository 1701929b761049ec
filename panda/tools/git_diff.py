"""git.diff: what has changed in the project since the last commit, line by line."""

from collections.abc import Mapping
from typing import Any

from panda.tools.changes import project_of
from panda.tools.contract import Kind, ToolClaim, ToolContext, ToolResult
from panda.tools.git_repository import ask_git


class GitDiff:
    """Asks git; writes nothing."""

    name = "git.diff"
    kind: Kind = "read"
    description = "Show what has changed in the project since the last commit."
    argument_schema: Mapping[str, Any] = {"type": "object", "properties": {}, "additionalProperties": False}
    result_schema: Mapping[str, Any] = {
        "type": "object",
        "properties": {"diff": {"type": "string"}},
        "required": ["diff"],
        "additionalProperties": False,
    }

    def run(self, arguments: Mapping[str, Any], context: ToolContext) -> ToolResult:
        """A unified diff of the files that git knows."""
        words = ("diff", "HEAD", "--no-ext-diff", "--no-textconv", "--no-color")
        said = ask_git(project_of(context), *words, limit_seconds=context.limit_seconds)
        files = sum(line.startswith("diff --git ") for line in said.splitlines())
        claims = (ToolClaim(f"{files} files differ from the last commit", 1.0, "git diff", None),)
        return ToolResult("success", data={"diff": said}, claims=claims, text=said.rstrip())
