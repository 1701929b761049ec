"""The tools file.*: the project's files listed, read, searched and changed."""

import difflib
from collections import Counter
from contextlib import suppress
from typing import Annotated, TypedDict

from msgspec import Meta

from panda.addons.code.project import fingerprint, project_of, suggest_paths
from panda.documents.safe_text import count_noun, one_line
from panda.errors import Problem, UsageError
from panda.store.records import StepEntity, ToolClaim
from panda.tools.tool_contract import Arguments, ToolContext, ToolResult, tool

_MOST_FILES = 500
_MOST_LINES = 400
_MOST_MATCHES = 100
_LINE_CHARS = 240
_FilePath = Annotated[str, Meta(min_length=1, max_length=1000)]
_SOURCES = {"path": suggest_paths}
_Passage = Annotated[str, Meta(max_length=100_000)]


class _ListArguments(Arguments, frozen=True):
    directory: _FilePath = "."


class _FileList(TypedDict):
    files: list[str]
    left_out: int


class _ReadArguments(Arguments, frozen=True):
    path: _FilePath
    first_line: Annotated[int, Meta(ge=1)] = 1
    lines: Annotated[int, Meta(ge=1, le=_MOST_LINES)] = _MOST_LINES


class _FileLines(TypedDict):
    path: str
    first_line: int
    last_line: int
    all_lines: int
    content: str


class _SearchArguments(Arguments, frozen=True):
    text: Annotated[str, Meta(min_length=1, max_length=500, pattern=r"\S")]
    directory: _FilePath = "."


class _FoundLine(TypedDict):
    path: str
    line: int
    text: str


class _FoundLines(TypedDict):
    matches: list[_FoundLine]
    left_out: int


class _EditArguments(Arguments, frozen=True):
    path: _FilePath
    old: Annotated[_Passage, Meta(min_length=1)]
    new: _Passage


class _WriteArguments(Arguments, frozen=True):
    path: _FilePath
    content: Annotated[str, Meta(max_length=1_000_000)]


class _FileChange(TypedDict):
    """A changed file; before and after are fingerprints."""

    path: str
    before: str | None
    after: str
    diff: str
    dry_run: bool


@tool(
    "file.list",
    "read",
    "List the files of the project, or of one of its directories.",
    _FileList,
    uses_workspace=True,
)
def list_files(arguments: _ListArguments, context: ToolContext) -> ToolResult:
    """Paths relative to the project, sorted; what is not listed is counted."""
    paths = list(project_of(context).files(arguments.directory))
    listed = paths[:_MOST_FILES]
    return ToolResult(
        "success",
        data=_FileList(files=listed, left_out=len(paths) - len(listed)),
        claims=(
            ToolClaim(
                f"{arguments.directory} holds {count_noun(len(paths), 'file')}", 1.0, arguments.directory
            ),
        ),
        text="\n".join(listed),
    )


@tool(
    "file.read",
    "read",
    f"Read a file of the project, at most {_MOST_LINES} lines at a time.",
    _FileLines,
    uses_workspace=True,
    argument_sources=_SOURCES,
)
def read_file(arguments: _ReadArguments, context: ToolContext) -> ToolResult:
    """The lines as they are; line breaks of Windows are kept."""
    project = project_of(context)
    lines = project.read(arguments.path).split("\n")
    lines = lines if lines[-1] else lines[:-1]
    name = "/".join(project.locate(arguments.path))
    first = arguments.first_line
    if first > max(1, len(lines)):
        fix = f"read from a line between 1 and {len(lines)}" if lines else "it is empty"
        raise UsageError(
            f"{arguments.path!r} has {count_noun(len(lines), 'line')}, none from {first} on", fix=fix
        )
    shown_lines = lines[first - 1 :][: arguments.lines]
    last = first + len(shown_lines) - 1
    content = "\n".join(shown_lines)
    return ToolResult(
        "success",
        data=_FileLines(path=name, first_line=first, last_line=last, all_lines=len(lines), content=content),
        claims=(ToolClaim(f"{name}: lines {first} to {last} of {len(lines)}", 1.0, name),) if lines else (),
        entities=(StepEntity(f"file:{name}", "file", name),),
        text=content,
    )


@tool(
    "file.search",
    "read",
    "Find the lines of the project's files that hold a text exactly.",
    _FoundLines,
    uses_workspace=True,
)
def search_files(arguments: _SearchArguments, context: ToolContext) -> ToolResult:
    """Matches by path and line; files that are no text are passed over."""
    project = project_of(context)
    matches: list[_FoundLine] = []
    for path in project.files(arguments.directory):
        with suppress(Problem):
            lines = enumerate(project.read(path).split("\n"), 1)
            holding = ((number, line) for number, line in lines if arguments.text in line)
            matches += (
                _FoundLine(path=path, line=n, text=line.rstrip("\r")[:_LINE_CHARS]) for n, line in holding
            )
    shown_matches = matches[:_MOST_MATCHES]
    paths = dict.fromkeys(match["path"] for match in shown_matches)
    return ToolResult(
        "success",
        data=_FoundLines(matches=shown_matches, left_out=len(matches) - len(shown_matches)),
        claims=tuple(
            ToolClaim(f"{match['path']}:{match['line']}: {one_line(match['text'])}", 1.0, match["path"])
            for match in shown_matches
        ),
        entities=tuple(StepEntity(f"file:{path}", "file", path) for path in paths),
    )


@tool(
    "file.edit",
    "write",
    "Replace a text in a file of the project. The old text must stand there exactly once.",
    _FileChange,
    uses_workspace=True,
    argument_sources=_SOURCES,
)
def edit_file(arguments: _EditArguments, context: ToolContext) -> ToolResult:
    project = project_of(context)
    project.check_writable(arguments.path)
    before = project.read(arguments.path)
    occurrences = before.count(arguments.old)
    if occurrences != 1:
        raise UsageError(
            f"the old text stands {count_noun(occurrences, 'time')} in {arguments.path}, not once",
            fix="give more of the lines around it" if occurrences else "read the file first",
        )
    return change_file(arguments.path, before, before.replace(arguments.old, arguments.new), context)


@tool(
    "file.write",
    "write",
    "Write a whole file of the project: a new one that the query names, or in the place of what is there.",
    _FileChange,
    uses_workspace=True,
    argument_sources=_SOURCES,
)
def write_file(arguments: _WriteArguments, context: ToolContext) -> ToolResult:
    project = project_of(context)
    project.check_writable(arguments.path)
    before = project.read(arguments.path) if project.has(arguments.path) else None
    return change_file(arguments.path, before, arguments.content, context)


def change_file(path: str, before: str | None, after: str, context: ToolContext) -> ToolResult:
    """Write a file after its change has been announced; refused if the text would stay as it is."""
    project = project_of(context)
    name = project.check_writable(path)
    if before == after:
        raise UsageError(f"{path!r} would stay as it is")
    diff = render_diff(name, before, after)
    signs = Counter(line[0] for line in diff.splitlines()[2:] if line)
    would = "would change" if project.dry else "changed"
    claim = ToolClaim(
        f"{name} {would}: {count_noun(signs['+'], 'line')} added, {signs['-']} removed", 1.0, name
    )
    result = ToolResult(
        "success",
        data=_FileChange(
            path=name,
            before=None if before is None else fingerprint(before),
            after=fingerprint(after),
            diff=diff,
            dry_run=project.dry,
        ),
        claims=(claim,),
        entities=(StepEntity(f"file:{name}", "file", name, "create" if before is None else "update"),),
        text=diff,
    )
    context.intend(result)
    project.write(path, after)
    return result


def render_diff(name: str, before: str | None, after: str) -> str:
    old = (before or "").splitlines()
    new = after.splitlines()
    source = f"a/{name}" if before is not None else "/dev/null"
    lines = list(difflib.unified_diff(old, new, source, f"b/{name}", lineterm=""))
    ends = {text.endswith("\n") for text in (before, after) if text}
    return "\n".join(lines + (["\\ the last line's break changes"] if len(ends) > 1 else []))


FILE_TOOLS = (list_files, read_file, search_files, edit_file, write_file)
