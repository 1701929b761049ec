"""git.diff: what has changed in the project since the last commit, line by line."""

from collections.abc import Mapping
from typing import Any

from panda.tools.changes import project_of
from panda.tools.contract import Kind, ToolClaim, ToolContext, ToolResult
from panda.tools.git_repository import ask_git
from panda.tools.processes import MOST_OUTPUT_BYTES

_MOST_NAME_BYTES = 50_000_000


class GitDiff:
    """Asks git; writes nothing."""

    name = "git.diff"
    kind: Kind = "read"
    description = "Show what has changed in the project since the last commit."
    argument_schema: Mapping[str, Any] = {"type": "object", "properties": {}, "additionalProperties": False}
    result_schema: Mapping[str, Any] = {
        "type": "object",
        "properties": {
            "diff": {"type": "string"},
            "files": {"type": "integer", "minimum": 0},
            "left_out_bytes": {"type": "integer", "minimum": 0},
        },
        "required": ["diff", "files", "left_out_bytes"],
        "additionalProperties": False,
    }

    def run(self, arguments: Mapping[str, Any], context: ToolContext) -> ToolResult:
        """A unified diff of the files that git knows, or the beginning of it."""
        project, limit = project_of(context), context.limit_seconds
        words = ("diff", "HEAD", "--no-ext-diff", "--no-textconv", "--no-color", "--ignore-submodules=all")
        names = ask_git(
            project, *words, "--name-only", "-z", limit_seconds=limit, most_bytes=_MOST_NAME_BYTES
        )
        ran = ask_git(project, *words, limit_seconds=limit, most_bytes=MOST_OUTPUT_BYTES)
        files = names.output.count(b"\0")
        at_least = "at least " if names.left_out_bytes else ""
        said = ran.output.decode("utf-8", errors="replace")
        claims = [ToolClaim(f"{at_least}{files} files differ from the last commit", 1.0, "git diff", None)]
        if ran.left_out_bytes:
            said = said[: said.rfind("\n") + 1]
            left = f"{ran.left_out_bytes:,} bytes at the end of the diff are left out"
            claims.append(ToolClaim(left, 1.0, "git diff", None))
        return ToolResult(
            "success",
            data={"diff": said, "files": files, "left_out_bytes": ran.left_out_bytes},
            claims=tuple(claims),
            text=said.rstrip(),
        )
