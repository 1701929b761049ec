"""git.status: what has changed in the project since the last commit, by file."""

from collections.abc import Mapping
from typing import Any

from panda.tools.changes import project_of
from panda.tools.contract import Kind, ToolClaim, ToolContext, ToolResult
from panda.tools.git_repository import ask_git
from panda.tools.project import written_name

_MOST_BYTES = 50_000_000
_MOST_SHOWN = 500


class GitStatus:
    """Asks git; writes nothing."""

    name = "git.status"
    kind: Kind = "read"
    description = "List the files of the project that differ from the last commit."
    argument_schema: Mapping[str, Any] = {"type": "object", "properties": {}, "additionalProperties": False}
    result_schema: Mapping[str, Any] = {
        "type": "object",
        "properties": {
            "changes": {"type": "array", "items": {"type": "string"}},
            "left_out": {"type": "integer", "minimum": 0},
        },
        "required": ["changes", "left_out"],
        "additionalProperties": False,
    }

    def run(self, arguments: Mapping[str, Any], context: ToolContext) -> ToolResult:
        """An entry for each file: two letters as `git status --porcelain` has them, and its name."""
        words = ("status", "--porcelain=v1", "-z", "--untracked-files=all", "--ignore-submodules=all")
        ran = ask_git(
            project_of(context), *words, limit_seconds=context.limit_seconds, most_bytes=_MOST_BYTES
        )
        entries = _entries(ran.output)
        shown = entries[:_MOST_SHOWN]
        at_least = "at least " if ran.left_out_bytes else ""
        text = (
            f"{at_least}{len(entries)} files differ from the last commit"
            if entries
            else "nothing has changed"
        )
        return ToolResult(
            "success",
            data={"changes": shown, "left_out": len(entries) - len(shown)},
            claims=(ToolClaim(text, 1.0, "git status", None),),
            text="\n".join(shown),
        )


def _entries(said: bytes) -> list[str]:
    """The entries of `git status -z`, less one that is cut off; former names stand behind new ones."""
    entries, names = [], iter(said.split(b"\0")[:-1])
    for name in names:
        former = next(names, None) if name[:1] in b"RC" or name[1:2] in b"RC" else None
        origin = f" (was {written_name(former)})" if former else ""
        entries.append(f"{name[:3].decode('ascii')}{written_name(name[3:])}{origin}")
    return entries
