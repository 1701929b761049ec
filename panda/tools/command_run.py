"""test.run: a command that panda.toml names, and nothing else."""

from collections.abc import Mapping
from typing import Any

from panda.documents.sentences import one_line
from panda.errors import UsageError
from panda.tools.changes import project_of
from panda.tools.contract import Kind, ToolClaim, ToolContext, ToolResult
from panda.tools.processes import run_process

_SHOWN_LINES = 60
_LEFT_OUT = ("PANDA_", "GIT_")


class CommandRun:
    """Runs one of the project's named commands in its directory."""

    name = "test.run"
    kind: Kind = "analyze"
    description = "Run one of the commands that panda.toml names under [test_commands]."
    argument_schema: Mapping[str, Any] = {
        "type": "object",
        "properties": {"command": {"type": "string", "minLength": 1, "maxLength": 100}},
        "required": ["command"],
        "additionalProperties": False,
    }
    result_schema: Mapping[str, Any] = {
        "type": "object",
        "properties": {
            "command": {"type": "string"},
            "words": {"type": "array", "items": {"type": "string"}},
            "passed": {"type": "boolean"},
            "exit_code": {"type": "integer"},
            "output": {"type": "string"},
            "left_out_bytes": {"type": "integer", "minimum": 0},
        },
        "required": ["command", "words", "passed", "exit_code", "output", "left_out_bytes"],
        "additionalProperties": False,
    }

    def run(self, arguments: Mapping[str, Any], context: ToolContext) -> ToolResult:
        """How it ended and the end of what it said; a command that fails is a result, no error."""
        project = project_of(context)
        name = arguments["command"]
        words = project.commands.get(name)
        if words is None:
            known = ", ".join(project.commands) or "none"
            raise UsageError(f"panda.toml names no test command {name!r}; there are: {known}")
        if project.dry:
            return ToolResult("blocked", error=f"{name} is not run: in a dry run no file has changed")
        variables = {key: value for key, value in project.environ.items() if not key.startswith(_LEFT_OUT)}
        limit = project.command_seconds
        ran = run_process(words, project.root, variables, limit_seconds=limit, keep="end")
        output = ran.output.decode("utf-8", errors="replace")
        lines = [line for line in output.splitlines() if line.strip()]
        how = "passed" if ran.exit_code == 0 else f"failed with exit code {ran.exit_code}"
        said = f": {one_line(lines[-1])[:200]}" if lines else ""
        return ToolResult(
            "success",
            data={
                "command": name,
                "words": list(words),
                "passed": ran.exit_code == 0,
                "exit_code": ran.exit_code,
                "output": output,
                "left_out_bytes": ran.left_out_bytes,
            },
            claims=(ToolClaim(f"{name} {how}{said}", 1.0, f"panda.toml#{name}", None),),
            text="\n".join(lines[-_SHOWN_LINES:]),
        )
