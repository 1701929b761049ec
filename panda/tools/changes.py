"""A change of one file: what it was, what it becomes, and whether it has happened."""

import difflib
from collections.abc import Mapping
from typing import Any

from panda.errors import UsageError
from panda.tools.contract import Entity, ToolClaim, ToolContext, ToolResult
from panda.tools.project import Project, fingerprint

CHANGE_SCHEMA: Mapping[str, Any] = {
    "type": "object",
    "properties": {
        "path": {"type": "string"},
        "before": {"type": ["string", "null"]},
        "after": {"type": "string"},
        "diff": {"type": "string"},
        "dry_run": {"type": "boolean"},
    },
    "required": ["path", "before", "after", "diff", "dry_run"],
    "additionalProperties": False,
}
"""JSON Schema of the data of a tool that changes a file; before and after are fingerprints."""


def project_of(context: ToolContext) -> Project:
    """
    The project that a tool of code mode works on.

    Raises:
        UsageError: The turn is no turn of code mode.
    """
    if context.project is None:
        raise UsageError("only code mode may see the project's files", fix="use --mode code")
    return context.project


def change_file(path: str, before: str | None, after: str, context: ToolContext) -> ToolResult:
    """
    Write a file, after its change has been announced.

    Args:
        path: As the tool was given it.
        before: Its text; None if it is new.
        after: Its new text.
        context: Of the running turn.

    Raises:
        UsageError: The file may not be changed, or would not be.
        StoreError: It cannot be written.
    """
    project = project_of(context)
    name = project.check_writable(path)
    if before == after:
        raise UsageError(f"{path!r} would stay as it is")
    diff = render_diff(name, before, after)
    added, gone = _count(diff, "+"), _count(diff, "-")
    would = "would change" if project.dry else "changed"
    claim = ToolClaim(f"{name} {would}: {added} lines added, {gone} removed", 1.0, name, None)
    result = ToolResult(
        "success",
        data={
            "path": name,
            "before": None if before is None else fingerprint(before),
            "after": fingerprint(after),
            "diff": diff,
            "dry_run": project.dry,
        },
        claims=(claim,),
        entities=(Entity(f"file:{name}", "file", name, "create" if before is None else "update"),),
        text=diff,
    )
    context.intend(result)
    project.write(path, after)
    return result


def settle_change(step: Mapping[str, Any], project: Project) -> Mapping[str, Any] | None:
    """
    What became of a change that was announced by a run that was then killed.

    Args:
        step: The step as it was announced.
        project: The files as they are now.

    Returns:
        The finished step if the change was made or can no longer be; None if it is still to be made.

    Raises:
        StoreError: The file cannot be read.
    """
    data = step["data"]
    path = data["path"]
    now = fingerprint(project.read(path)) if project.has(path) else None
    if now == data["after"]:
        return {**step, "status": "success"}
    if now == data["before"]:
        return None
    fault = f"{path} was changed by somebody else while the turn was interrupted"
    return {**step, "status": "error", "error": fault, "data": None, "claims": [], "entities": [], "text": ""}


def render_diff(name: str, before: str | None, after: str) -> str:
    """
    A unified diff.

    >>> print(render_diff("a.txt", "x\\ny\\n", "x\\nz\\n"))
    --- a/a.txt
    +++ b/a.txt
    @@ -1,2 +1,2 @@
     x
    -y
    +z
    """
    old, new = (before or "").splitlines(), after.splitlines()
    source = f"a/{name}" if before is not None else "/dev/null"
    lines = list(difflib.unified_diff(old, new, source, f"b/{name}", lineterm=""))
    ends = {text.endswith("\n") for text in (before, after) if text}
    return "\n".join(lines + (["\\ the last line's break changes"] if len(ends) > 1 else []))


def _count(diff: str, sign: str) -> int:
    return sum(line.startswith(sign) and not line.startswith(sign * 3) for line in diff.splitlines())
