"""Processes that tools start, stopped at a limit with their whole group; and the tool test.run."""

import os
import re
import signal
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryFile
from typing import Annotated, Literal, TypedDict

from msgspec import Meta

from panda.addons.code.project import Project, project_of
from panda.documents.safe_text import one_line
from panda.errors import LimitError, UsageError
from panda.store.files import umask_of_user
from panda.store.records import ToolClaim
from panda.tools.tool_contract import Arguments, ToolContext, ToolResult, tool

MOST_OUTPUT_BYTES = 200_000
"""How much of an output is kept, unless somebody wants more."""

_MOST_ERROR_BYTES = 20_000
_SHOWN_LINES = 60
_LEFT_OUT = ("PANDA_", "GIT_")


@dataclass(frozen=True)
class Ran:
    exit_code: int  # 0 is success; negative for the signal that ended it
    output: bytes  # what it wrote, or one end of it
    left_out_bytes: int  # how much of the output is missing
    errors: str  # the beginning of what it wrote to standard error, if that is not a part of the output


def run_process(
    words: Sequence[str],
    directory: Path,
    environ: Mapping[str, str],
    *,
    limit_seconds: float,
    keep: Literal["start", "end"],
    most_bytes: int = MOST_OUTPUT_BYTES,
) -> Ran:
    """
    Run a command, without a shell and without input, and wait for it; after the limit it and all that it
    started are killed. *keep* is the end of a long output that stays; for "end" errors stand among it, as on
    a terminal.
    """
    with TemporaryFile() as output, TemporaryFile() as errors:
        try:
            process = subprocess.Popen(
                list(words),
                cwd=directory,
                env=dict(environ),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=errors if keep == "start" else subprocess.STDOUT,
                start_new_session=True,
                umask=umask_of_user(),
            )
        except (OSError, ValueError) as exc:
            raise UsageError(f"{words[0]} cannot be started: {exc}") from exc
        try:
            code = process.wait(limit_seconds)
        except subprocess.TimeoutExpired as exc:
            raise LimitError(f"{' '.join(words)} was stopped at its limit of {limit_seconds:g} s") from exc
        finally:
            _stop(process)
        size = output.seek(0, os.SEEK_END)
        output.seek(max(0, size - most_bytes) if keep == "end" else 0)
        errors.seek(0)
        error_text = errors.read(_MOST_ERROR_BYTES).decode("utf-8", errors="replace")
        return Ran(code, output.read(most_bytes), max(0, size - most_bytes), error_text)


def _stop(process: subprocess.Popen[bytes]) -> None:
    """Kill what is left of the process's group, also what it left running behind it."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    with suppress(subprocess.TimeoutExpired):
        process.wait(5)


class _CommandArguments(Arguments, frozen=True):
    command: Annotated[str, Meta(min_length=1, max_length=100)]


class _CommandRun(TypedDict):
    command: str
    words: list[str]
    passed: bool
    exit_code: int
    output: str
    left_out_bytes: int


def _suggest_commands(query: str, context: ToolContext) -> list[str]:
    """Return the commands that a query names, else all that there are."""
    names = _command_names(context)
    words = set(re.findall(r"[\w.-]+", query.lower()))
    return [name for name in names if name.lower() in words] or names


def _describe_commands(context: ToolContext) -> str:
    """Return which commands there are, for prompts; "" outside of code mode."""
    if context.workspace is None:
        return ""
    return f" There are: {', '.join(_command_names(context)) or 'none'}."


def _command_names(context: ToolContext) -> list[str]:
    return list(context.workspace.commands) if isinstance(context.workspace, Project) else []


@tool(
    "test.run",
    "analyze",
    "Run one of the commands that panda.toml names under [test_commands].",
    _CommandRun,
    uses_workspace=True,
    argument_sources={"command": _suggest_commands},
    describe_more=_describe_commands,
)
def run_command(arguments: _CommandArguments, context: ToolContext) -> ToolResult:
    """Return how the command ended and the end of its output; a command that fails is a result, no error."""
    project = project_of(context)
    name = arguments.command
    words = project.commands.get(name)
    if words is None:
        names = ", ".join(project.commands) or "none"
        raise UsageError(f"panda.toml names no test command {name!r}; there are: {names}")
    if project.dry:
        return ToolResult("blocked", error=f"{name} is not run: in a dry run no file has changed")
    variables = {key: value for key, value in project.environ.items() if not key.startswith(_LEFT_OUT)}
    limit = project.command_seconds
    ran = run_process(words, project.root, variables, limit_seconds=limit, keep="end")
    output = ran.output.decode("utf-8", errors="replace")
    lines = [line for line in output.splitlines() if line.strip()]
    how = "passed" if ran.exit_code == 0 else f"failed with exit code {ran.exit_code}"
    last_line = f": {one_line(lines[-1])[:200]}" if lines else ""
    return ToolResult(
        "success",
        data=_CommandRun(
            command=name,
            words=list(words),
            passed=ran.exit_code == 0,
            exit_code=ran.exit_code,
            output=output,
            left_out_bytes=ran.left_out_bytes,
        ),
        claims=(ToolClaim(f"{name} {how}{last_line}", 1.0, f"panda.toml#{name}"),),
        text="\n".join(lines[-_SHOWN_LINES:]),
    )
